/* The per-class table: the template wrote the rows; sorting, filtering, bars and the number of rows and columns are here. */
const MOST_ROWS = narrow.matches ? 10 : 100;

/* The text of a cell without a value of its own; of numbers, the first one. */
function written(cell) {
  const text = cellText(cell).replaceAll("\u2212", "-"), number = /^[+-]?[\d,]*\.?\d+/.exec(text);
  return cell.matches("th, .text") || !number ? text : number[0].replaceAll(",", "");
}

function cellValue(row, column) {
  const cell = row.cells[column], value = cell.dataset.v ?? written(cell);
  return value === undefined || value === "" ? null : column === 0 || cell.classList.contains("text") || Number.isNaN(Number(value)) ? value : Number(value);
}

/* Turn headers into sort buttons that call then(); return a function that sorts by a column. */
function sortable(table, then) {
  const orderBy = (column, order) => {
    heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
    heads[column].setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => [cellValue(row, column), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : a - b);
    });
    body.append(...rows.map(([, row]) => row));
    then();
  };
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const label = head.textContent.trim();
    if (!label) return;
    const button = el("button", { class: "sort", type: "button", title: "sort" }, label);
    head.replaceChildren(el("span", { class: "printed", "aria-hidden": "true" }, label), button);
    if (!head.hasAttribute("aria-sort")) head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const first = column === 0 ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? (first === "ascending" ? "descending" : "ascending") : first;
      orderBy(column, order);
    });
  });
  return orderBy;
}

/* Describe the order of the rows. */
function orderOf(table) {
  const head = [...table.tHead.rows[0].cells].find((each) => ["ascending", "descending"].includes(each.getAttribute("aria-sort")));
  if (!head) return "";
  const up = head.getAttribute("aria-sort") === "ascending", label = head.querySelector(".sort").textContent;
  if (head.cellIndex === 0 || head.dataset.kind === "text") return up ? "A to Z" : "Z to A";
  if (head.dataset.kind === "interval") return `${up ? "narrowest" : "widest"} interval first`;
  return `${up ? "lowest" : "highest"} ${head.dataset.kind === "spark" ? `${data.by_iou.metric} at the last IoU` : label} first`;
}

const hasCurve = (k) => (data.pair ? data.pair.curves : [data.curves]).some((view) => view.classes[k]);

/* Hide columns that do not fit, from the right, until the user shows them. */
function fitColumns(table) {
  const host = table.closest(".scroll"), heads = [...table.tHead.rows[0].cells], NAME = 150;
  const note = el("p", { class: "fits about", hidden: true }), text = el("span", null), all = el("button", { class: "link", type: "button" });
  note.append(text, " ", all);
  host.before(note);
  let whole = false, widths = null;
  const show = () => {
    let room = host.clientWidth, fit = 0;
    while (fit < heads.length && (room -= widths[fit]) >= -1) fit++;
    const shown = whole ? heads.length : Math.max(2, fit);
    for (const row of table.rows) for (let c = 2; c < row.cells.length; c++) row.cells[c].classList.toggle("dropped", c >= shown);
    host.classList.toggle("fits-in", fit >= heads.length || !whole);
    note.hidden = fit >= heads.length;
    text.textContent = whole ? "" : `${shown} of ${heads.length} columns fit here.`;
    all.textContent = whole ? "Show what fits" : "Show all columns";
  };
  all.addEventListener("click", () => { whole = !whole; show(); });
  onWidth(host, () => {
    if (!widths) {
      table.classList.add("measured");
      widths = heads.map((head, c) => (c ? head.getBoundingClientRect().width : Math.min(NAME, head.getBoundingClientRect().width)));
      table.classList.remove("measured");
    }
    show();
  });
}

/* One scale for the bars, with ticks in the header and lines behind each bar. */
function barScale(table) {
  const column = [...table.tHead.rows[0].cells].findIndex((head) => head.dataset.kind === "bar");
  if (column < 0) return null;
  const rows = [...table.tBodies[0].rows], meters = rows.map((row) => row.querySelector(".meter[data-v]")).filter(Boolean);
  const numbers = (text) => (text ? text.split(" ").map(Number) : []);
  const most = Math.max(...meters.flatMap((meter) => [Number(meter.dataset.v), ...numbers(meter.dataset.ends)]), 0.01);
  const step = niceTicks(0, most, table.tHead.rows[0].cells.length < 9 ? 5 : 3)[1], ticks = Math.ceil(most / step - 1e-9), top = ticks * step;
  const values = rows.map((row) => cellValue(row, column)).filter((value) => value !== null);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length, place = (value) => `${(100 * value) / top}%`;
  const at = (node, left) => { node.style.left = left; return node; };
  const axis = el("span", { class: "meter-axis", "aria-hidden": "true" }, ...Array.from({ length: ticks + 1 }, (_, i) => at(el("span", null, String(+(i * step).toPrecision(3))), place(i * step))));
  const head = table.tHead.rows[0].cells[column], inside = el("span", { class: "with-bar" });
  inside.append(...head.childNodes, axis);
  head.append(inside);
  return (meter) => {
    const [low, high] = numbers(meter.dataset.ends), bar = meter.appendChild(document.createElement("i"));
    for (let i = 1; i <= ticks; i++) meter.prepend(at(el("b", null), place(i * step)));
    bar.style.width = place(Number(meter.dataset.v));
    meter.append(at(el("u", null), place(mean)));
    if (high > low) { const whisker = at(el("s", null), place(low)); whisker.style.width = place(high - low); meter.append(whisker); }
  };
}

/* Small bar charts: AP or F1 at each IoU threshold. */
function spark(host, values, { thresholds, metric }, most) {
  const wide = 62 / values.length, last = values.length - 1, tall = (v) => Math.max(0.75, (16 * v) / most);
  values.forEach((v, i) => host.append(svg("rect", { x: i * wide, width: Math.max(1, wide - 1), y: 16 - tall(v), height: tall(v) })));
  host.prepend(svg("rect", { class: "spark-back", x: 0, y: 0, width: 61, height: 16 }));
  fill(host, { viewBox: "0 0 62 16", role: "img", "aria-label": `${metric} from ${ratio(values[0] / 1000)} at IoU ${thresholds[0]} to ${ratio(values[last] / 1000)} at ${thresholds[last]}` }, []);
}

/* Move the score threshold of precision to FN: a range input over the stops whose counts the page has.
   Return functions that read the moved score, "" for the stated one, and that set it; then() runs after a move. */
function movableScore(table, then) {
  const still = { read: () => "", write: () => {} }, view = data.stops;
  const heads = [...table.tHead.rows[0].cells].filter((head) => head.dataset.rate);
  if (!view || !heads.length) return still;
  const { scores, stated } = view, last = scores.length - 1, least = byId("class-score"), best = byId("class-score-best"), words = least.textContent;
  /* Add up the gains of a side from the highest stop down to this one. */
  const sum = (gains, stop) => gains.slice(0, scores.length - stop).reduce((all, one) => all + one, 0);
  const valuesAt = ([objects, gainsTrue, gainsFalse], stop) => {
    const TP = sum(gainsTrue, stop), FP = sum(gainsFalse, stop), over = (part, whole) => (whole > 0 ? part / whole : null);
    return { TP, FP, FN: objects - TP, precision: over(TP, TP + FP), recall: over(TP, objects), F1: over(2 * TP, TP + FP + objects) };
  };
  let now = stated;
  const input = el("input", { type: "range", min: 0, max: last, step: 1, value: stated, autocomplete: "off" });
  const label = el("label", { class: "moved-score" }, `Score threshold: ${words}`, input);
  const back = el("button", { class: "link back", type: "button", hidden: true }, `Best F1: ${words}`);
  const show = (stop) => {
    now = stop;
    input.value = String(stop);
    const text = stop === stated ? words : score(scores[stop]);
    input.setAttribute("aria-valuetext", text);
    label.firstChild.textContent = `Score threshold: ${text}`;
    least.textContent = text;
    best.hidden = stop !== stated;
    back.hidden = stop === stated;
    for (const row of table.tBodies[0].rows) {
      const values = valuesAt(view.classes[row.dataset.k], stop);
      for (const head of heads) {
        const value = values[head.dataset.rate], cell = row.cells[head.cellIndex];
        cell.dataset.v = value === null ? "" : String(value);
        cell.textContent = head.dataset.kind === "count" ? count(value) : ratio(value);
      }
    }
    then();
  };
  input.addEventListener("input", () => { show(Number(input.value)); chose("classes"); });
  back.addEventListener("click", () => { show(stated); chose("classes"); input.focus(); });
  byId("class-filter").parentNode.after(label, back);
  input.setAttribute("aria-valuetext", words);
  return {
    read: () => (now === stated ? "" : scores[now]),
    write: (text) => { const stop = text ? scores.indexOf(Number(text)) : stated; if (stop >= 0 && stop !== now) show(stop); },
  };
}

function classTable(pick) {
  const table = byId("class-table");
  if (!table) return;
  const rows = [...table.tBodies[0].rows], filter = byId("class-filter"), shown = byId("class-shown");
  const more = el("button", { class: "more-rows", type: "button", hidden: true });
  table.closest(".scroll").after(more);
  const view = data.by_iou, most = view && 100 * Math.ceil(Math.max(...view.classes.flatMap((values) => values || [0]), 1) / 100);
  let limit = MOST_ROWS, paint = null;

  const finish = (row) => {
    if (row.dataset.done) return;
    row.dataset.done = "yes";
    const k = Number(row.dataset.k), head = row.cells[0];
    if (pick && data.pair && hasCurve(k)) {
      const button = el("button", { class: "link", type: "button", title: "show its curves" }, ...head.childNodes);
      button.addEventListener("click", () => pick(k, true));
      head.replaceChildren(button);
    }
    if (paint) row.querySelectorAll(".meter[data-v]").forEach(paint);
    const host = row.querySelector(".spark"), values = host && view && view.classes[k];
    if (values) spark(host, values, view, most);
  };
  const show = () => {
    const wanted = filter.value.trim().toLowerCase();
    let found = 0;
    for (const row of table.tBodies[0].rows) {
      const fits = wanted === "" || row.cells[0].dataset.v.toLowerCase().includes(wanted);
      found += fits;
      row.hidden = !fits || found > limit;
      row.classList.toggle("left-out", !fits);
      if (!row.hidden) finish(row);
    }
    const left = found - Math.min(found, limit), what = wanted ? `${plural(found, "class", "classes")} of ${count(rows.length)}` : plural(rows.length, "class", "classes");
    shown.textContent = [left ? `${count(limit)} of ${what} listed` : what, orderOf(table)].filter(Boolean).join(", ");
    more.hidden = !left;
    more.textContent = `Show ${plural(left, "more class", "more classes")}`;
  };
  const heads = [...table.tHead.rows[0].cells], nameOf = (head) => (head.querySelector(".sort") || head).textContent;
  let ready = false;
  const orderBy = sortable(table, () => { show(); if (ready) chose("classes"); });
  const usual = heads.findIndex((head) => ["ascending", "descending"].includes(head.getAttribute("aria-sort"))), sense = usual < 0 ? "" : heads[usual].getAttribute("aria-sort");
  const sorted = () => { const head = heads.find((each) => ["ascending", "descending"].includes(each.getAttribute("aria-sort"))); return head && (head !== heads[usual] || head.getAttribute("aria-sort") !== sense) ? [nameOf(head), head.getAttribute("aria-sort")] : ["", ""]; };
  /* Rows keep the order that was asked for when their numbers change. */
  const moved = movableScore(table, () => {
    const head = heads.find((each) => ["ascending", "descending"].includes(each.getAttribute("aria-sort")));
    ready = false;
    if (head && head.dataset.rate) orderBy(head.cellIndex, head.getAttribute("aria-sort"));
    ready = true;
  });
  paint = barScale(table);
  const sample = byId("spark-sample");
  if (sample && view) {
    spark(sample, view.mean.map((value) => 1000 * (value || 0)), view, most);
    byId("spark-most").textContent = String(most / 1000);
  }
  remember("classes", () => ({ find: filter.value, sort: sorted()[0], sense: sorted()[1], at: moved.read() }), (values) => {
    filter.value = values.get("find") || "";
    moved.write(values.get("at"));
    const column = heads.findIndex((head) => nameOf(head) === values.get("sort")), wanted = values.get("sense") === "descending" ? "descending" : "ascending";
    ready = false;
    if (column >= 0) orderBy(column, wanted);
    else if (usual >= 0) orderBy(usual, sense);
    ready = true;
    show();
  });
  ready = true;
  filter.addEventListener("input", () => { show(); chose("classes"); });
  more.addEventListener("click", () => { limit = Infinity; show(); });
  show();
  if (table.closest(".wide")) fitColumns(table);
}
