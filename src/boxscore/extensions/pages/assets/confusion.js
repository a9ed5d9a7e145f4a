/* The confusion matrix, and the images behind a cell. */
const CHOICES = [12, 24, 40], BACKGROUND = "(background)";

function confusionMatrix() {
  const host = byId("matrix"), view = data.confusion;
  if (!host || !view) return;
  const K = view.classes, every = view.shown.filter((k) => k < K), OTHERS = -1;
  const behind = new Map(view.top.map((row) => [`${row[0]}>${row[1]}`, row]));
  const wrong = new Map(every.map((k) => [k, [0, 0]]));
  for (const [truth, predicted, number] of view.cells) {
    if (truth === predicted && wrong.has(truth)) wrong.get(truth)[1] += number;
    else if (truth < K && predicted < K) { wrong.get(truth)[0] += number; wrong.get(predicted)[0] += number; }
  }
  const order = [...every].sort((a, b) => wrong.get(b)[0] - wrong.get(a)[0] || wrong.get(b)[1] - wrong.get(a)[1]);
  let entries = [], n = 0, counts = new Map(), totals = [], place = new Map();
  let cursor = [0, 0], size = 0, left = 0, top = 0, root = null, outline = null, pinned = null, names = [], chosen = null;
  const label = (i) => (entries[i] === OTHERS ? `(${plural(every.length - n + 2, "other")})` : className(entries[i]));
  const sorting = byId("matrix-order"), titles = { file: "as in the data", AP: `lowest ${view.metric} first`, objects: "most objects first", confusion: "confused classes together" };
  options(sorting, Object.entries(titles).filter(([name]) => name !== "AP" || view.metric), "file");
  const most = byId("matrix-most"), note = byId("matrix-note");

  /* The most confused classes, the rest as one class, and the background. */
  const take = (limit) => {
    const kept = new Set(order.slice(0, limit)), rest = kept.size < every.length;
    entries = [...view.orders[sorting.value].filter((k) => kept.has(k)), ...(rest ? [OTHERS] : []), K];
    n = entries.length;
    place = new Map(entries.map((k, i) => [k, i]));
    const of = (k) => (place.has(k) ? place.get(k) : place.get(OTHERS));
    counts = new Map();
    totals = new Array(n).fill(0);
    for (const [truth, predicted, number] of view.cells) {
      const r = of(truth), c = of(predicted), key = r * n + c;
      counts.set(key, (counts.get(key) || 0) + number);
      totals[r] += number;
    }
    note.textContent = rest ? `The ${count(kept.size)} classes most often confused, of ${count(every.length)}; all others share one row and one column.` : "";
    note.hidden = !rest;
    cursor = [0, 0];
  };
  const describe = (r, c) => {
    const number = counts.get(r * n + c) || 0;
    return [`${short(label(r), 40)} \u2192 ${short(label(c), 40)}`, [`${count(number)} (${share(totals[r] ? number / totals[r] : NaN)} of the row)`]];
  };
  const draw = () => {
    const all = host.parentNode.clientWidth, width = all > 880 && chosen !== every.length ? all - 424 : all;
    const letters = all < 420 ? 12 : 18, widthOf = (text) => textWidth(short(text, letters), "400 11px");
    const widest = Math.max(...[...every, K].map((k) => widthOf(className(k))), widthOf("(99 others)"));
    const fit = Math.max(6, Math.floor((width - widest - 34) / (all < 420 ? 17 : 22)) - 2), choices = [...CHOICES.filter((each) => each < every.length), every.length];
    const limit = chosen ?? (every.length <= Math.min(30, fit) ? every.length : Math.max(...choices.filter((each) => each <= Math.min(24, fit)), Math.min(fit, choices[0])));
    options(most, [...new Set([...choices, limit])].sort((a, b) => a - b).map((each) => [each, each === every.length ? `all ${count(each)}` : `${each} most confused`]), limit);
    most.parentNode.hidden = most.options.length < 2;
    take(limit);
    const longest = Math.max(...entries.map((_, i) => widthOf(label(i))));
    const labels = longest + 10, title = 20;
    left = labels + title;
    top = labels + title;
    /* On a narrow page the cells keep their counts, and the box scrolls. */
    size = Math.max(all < 560 ? 26 : 11, Math.min(n < 14 ? 44 : 34, (width - left - 4) / n));
    const wide = left + n * size + 2, high = top + n * size + 2;
    root = svg("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": "confusion matrix", class: size < 13 ? "small" : null });
    const middle = (n * size) / 2;
    root.append(svg("text", { class: "axis-title", x: left + middle, y: 12, "text-anchor": "middle" }, "predicted class \u2192"), svg("text", { class: "axis-title", transform: `translate(12 ${top + middle}) rotate(-90)`, "text-anchor": "middle" }, "\u2190 true class"));
    names = [];
    for (let i = 0; i < n; i++) {
      const at = (i + 0.5) * size;
      const row = svg("text", { x: left - 5, y: top + at + 4, "text-anchor": "end" }, short(label(i), letters)), column = svg("text", { transform: `translate(${left + at + 4} ${top - 5}) rotate(-90)` }, short(label(i), letters));
      names.push([row, column]);
      root.append(column);
    }
    const x = left + n * size, y = top + n * size;
    root.append(svg("rect", { x: left, y: top, width: n * size, height: n * size, fill: "none", class: "rule" }), svg("line", { class: "rule", x1: x - size, x2: x - size, y1: top, y2: y }), svg("line", { class: "rule", x1: left, x2: x, y1: y - size, y2: y - size }));
    for (const [key, number] of counts) {
      const r = Math.floor(key / n), c = key % n, part = totals[r] ? number / totals[r] : 0, shade = 0.08 + 0.92 * Math.sqrt(part);
      const right = r === c && entries[r] !== OTHERS;
      root.append(svg("rect", { class: `cell${right ? " right" : r === c ? " mixed" : ""}`, x: left + c * size + 0.5, y: top + r * size + 0.5, width: size - 1, height: size - 1, "fill-opacity": shade.toFixed(3), "data-cell": `${r},${c}` }));
      if (size >= 25) root.append(svg("text", { x: left + (c + 0.5) * size, y: top + (r + 0.5) * size + 4, "text-anchor": "middle", class: `inside${shade > 0.85 ? " deep" : shade > 0.6 ? " half" : ""}` }, number > 9999 ? `${Math.round(number / 1000)}k` : number));
    }
    /* The names of the rows stay in view while the box scrolls. */
    pinned = svg("g", { class: "pinned" }, svg("rect", { x: title, y: top - 1, width: labels, height: n * size + 2 }), ...names.map(([row]) => row));
    outline = svg("rect", { class: "cursor", width: size, height: size, visibility: "hidden" });
    const area = svg("rect", { class: "hit", x: left, y: top, width: n * size, height: n * size });
    const cellAt = (event) => { const box = root.getBoundingClientRect(); return [event.clientY - box.top - top, event.clientX - box.left - left].map((v) => Math.min(n - 1, Math.max(0, Math.floor(v / size)))); };
    area.addEventListener("pointermove", (event) => { const [r, c] = cellAt(event); mark(r, c); showTip(event.clientX, event.clientY, ...describe(r, c)); });
    area.addEventListener("pointerleave", () => { hideTip(); unmark(); });
    area.addEventListener("click", (event) => choose(...cellAt(event)));
    root.append(outline, area, pinned);
    host.replaceChildren(root);
    host.classList.toggle("over", wide > width + 1);
  };
  const light = (on) => { const [row, column] = [names[cursor[0]], names[cursor[1]]]; if (row && column) { row[0].classList.toggle("lit", on); column[1].classList.toggle("lit", on); } };
  const mark = (r, c) => { light(false); cursor = [r, c]; light(true); fill(outline, { x: left + c * size, y: top + r * size, visibility: "visible" }, []); };
  const unmark = () => { if (document.activeElement !== host) { light(false); outline.setAttribute("visibility", "hidden"); } };
  let cell = null;
  const choose = (r, c) => { showCell(entries[r], entries[c], counts.get(r * n + c) || 0, totals[r]); chose("confusion"); };

  const panel = byId("cell-panel");
  function showCell(truth, predicted, number, total) {
    cell = [truth, predicted].includes(OTHERS) ? null : [truth, predicted];
    const row = behind.get(`${truth}>${predicted}`), named = (k) => nameNode(k === OTHERS ? label(place.get(OTHERS)) : className(k));
    const what = truth === K ? [named(predicted), " on the background"] : predicted === K ? [named(truth), " missed"] : truth === predicted && truth !== OTHERS ? [named(truth), " detected"] : [named(truth), " predicted as ", named(predicted)];
    const parts = [el("h3", null, ...what, `: ${count(number)}`, total ? ` (${share(number / total)} of the row)` : "")];
    if (row) {
      const images = row[4], drawn = images.filter(([, record]) => record !== null), listed = images.filter(([, record]) => record === null);
      parts.push(el("div", { class: "cards" }, drawn.map(([, record]) => card(record, data.images[record].file || data.images[record].id, null))));
      if (listed.length) parts.push(el("p", { class: "about name" }, `Also in ${plural(row[5] - drawn.length, "image")}: ${listed.map(([id]) => short(id, 40)).join(", ")}${row[5] > images.length ? ", \u2026" : ""}`));
    } else parts.push(el("p", { class: "about" }, !number ? "None." : [truth, predicted].includes(OTHERS) ? "Show all classes to see which." : truth === predicted ? "These are correct." : "Its images are not in this file; they are in tables/top_confusions."));
    panel.replaceChildren(...parts);
    return panel;
  }

  const tell = () => {
    const [title, lines] = describe(...cursor), box = root.getBoundingClientRect();
    byId("matrix-live").textContent = [title, ...lines].join(", ");
    showTip(box.left + left + (cursor[1] + 1) * size, box.top + top + (cursor[0] + 1) * size, title, lines);
  };
  host.addEventListener("focus", () => { if (host.matches(":focus-visible")) { mark(...cursor); tell(); } });
  host.addEventListener("keydown", (event) => {
    const [r, c] = cursor, last = n - 1;
    const next = { ArrowLeft: [r, c - 1], ArrowRight: [r, c + 1], ArrowUp: [r - 1, c], ArrowDown: [r + 1, c], Home: [r, 0], End: [r, last], PageUp: [0, c], PageDown: [last, c] }[event.key];
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(r, c); }
    if (!next) return;
    event.preventDefault();
    mark(...next.map((v) => Math.min(last, Math.max(0, v))));
    outline.scrollIntoView({ block: "nearest", inline: "nearest" });
    tell();
  });
  sorting.addEventListener("change", () => { draw(); chose("confusion"); });
  most.addEventListener("change", () => { chosen = Number(most.value); draw(); chose("confusion"); });
  const nameOf = (k) => (k === K ? BACKGROUND : className(k)), rowOf = (name) => rowsByName.get(name) ?? (name === BACKGROUND ? K : undefined);
  remember("confusion", () => ({ truth: cell && nameOf(cell[0]), predicted: cell && nameOf(cell[1]), most: chosen, rows: sorting.selectedIndex ? sorting.value : "" }), (values) => {
    sorting.value = values.get("rows") || "file";
    if (sorting.selectedIndex < 0) sorting.value = "file";
    const limit = Number(values.get("most")), [truth, predicted] = ["truth", "predicted"].map((key) => rowOf(values.get(key)));
    chosen = Number.isInteger(limit) && limit > 0 ? Math.min(limit, every.length) : null;
    draw();
    if (truth === undefined || predicted === undefined) { cell = null; panel.replaceChildren(); return; }
    const sum = (rows) => rows.reduce((all, row) => all + row[2], 0), row = view.cells.filter((each) => each[0] === truth);
    showCell(truth, predicted, sum(row.filter((each) => each[1] === predicted)), sum(row));
  });
  host.addEventListener("scroll", () => { pinned.setAttribute("transform", `translate(${host.scrollLeft} 0)`); hideTip(); }, { passive: true });
  host.addEventListener("blur", () => { hideTip(); unmark(); });
  onWidth(host.parentNode, draw);

  csvButton(note, () => [["truth", ...entries.map((_, c) => label(c))], ...entries.map((_, r) => [label(r), ...entries.map((_, c) => counts.get(r * n + c) || 0)])], "the confusion matrix");

  const list = byId("top-confusions");
  const frequent = view.top.filter(([truth, predicted]) => truth < view.classes && predicted < view.classes).slice(0, 20);
  const FEW = narrow.matches ? 5 : frequent.length;
  list.replaceChildren(...frequent.map((row) => el("tr", null, el("th", { scope: "row" }, el("button", { class: "link", type: "button", onclick: () => { showCell(row[0], row[1], row[2], row[3] ? row[2] / row[3] : 0).scrollIntoView({ block: "nearest" }); chose("confusion"); } }, nameNode(short(className(row[0]), 40)), " \u2192 ", nameNode(short(className(row[1]), 40)))), el("td", null, count(row[2])), el("td", null, share(row[3])))));
  let listed = FEW;
  const fold = () => [...list.rows].forEach((row, i) => { row.hidden = i >= listed; });
  if (frequent.length > FEW) {
    const rest = el("button", { class: "more-rows", type: "button", onclick: () => { listed = frequent.length; fold(); rest.remove(); } }, `Show ${frequent.length - FEW} more`);
    list.closest("table").after(rest);
  }
  if (frequent.length > 1) sortable(list.closest("table"), fold);
  fold();
  if (!frequent.length) list.replaceChildren(el("tr", null, el("td", { class: "text", colspan: 3 }, "No class is predicted as another.")));
}
