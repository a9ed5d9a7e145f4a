/* Precision-recall curves and curves over confidence; both show the same selected classes. */
const picked = new Map();
const pickListeners = [];
const tonesLeft = data.pair ? [3, 4, 5, 6] : [1, 4, 5, 6, 7];  /* the others are the two detectors', or the best and the worst classes' */
function pickClass(k, jump) {
  if (picked.has(k)) picked.delete(k);
  else {
    if (picked.size >= tonesLeft.length) picked.delete(picked.keys().next().value);
    const used = new Set(picked.values());
    picked.set(k, tonesLeft.find((tone) => !used.has(tone)));
  }
  pickListeners.forEach((listener) => listener());
  if (remembered.has("curves")) chose("curves");
  if (jump && picked.has(k)) reveal("curves"), byId("curves").scrollIntoView();
}

/* Select exactly these classes. */
function pickOnly(classes) {
  picked.clear();
  classes.slice(0, tonesLeft.length).forEach((k, i) => picked.set(k, tonesLeft[i]));
  pickListeners.forEach((listener) => listener());
}

function chips(host) {
  const draw = () => host.replaceChildren(...[...picked].map(([k, tone]) => el("button", { class: `chip t${tone}`, type: "button", "aria-label": `remove ${short(data.classes[k], 80)}`, onclick: () => pickClass(k) }, el("span", { class: "swatch", "aria-hidden": "true" }), nameNode(data.classes[k]), el("span", { "aria-hidden": "true" }, "\u00d7"))));
  pickListeners.push(draw);
  draw();
}

function classPicker(select, keys) {
  options(select, [["", "choose a class \u2026"], ...keys.map((k) => [k, data.classes[k]])], "");
  select.addEventListener("change", () => {
    const k = select.value;
    select.value = "";
    if (k !== "" && !picked.has(Number(k))) pickClass(Number(k));
  });
}

/* With very many classes, draw only the selected ones and an even sample of the rest. */
function faintClasses(keys) {
  if (keys.length <= 120) return keys;
  const step = keys.length / 100;
  return Array.from({ length: 100 }, (_, i) => keys[Math.floor(i * step)]);
}

/* The labeled classes of a chart: up to three with the highest and the lowest value, and those at zero as one.
   Of few classes each has its name. */
function ranked(keys, valueOf) {
  const order = keys.map((k) => [k, valueOf(k)]).filter(([, value]) => isNumber(value)).sort((a, b) => b[1] - a[1]);
  const zero = order.filter(([, value]) => value <= 0).map(([k]) => k), some = order.filter(([, value]) => value > 0).map(([k]) => k);
  const ends = Math.min(3, Math.floor(order.length / 2)), ranks = new Map();
  for (const k of some.slice(0, ends)) ranks.set(k, "best");
  const low = Math.max(0, ends - (zero.length ? 1 : 0));
  for (const k of low ? some.slice(-low) : []) if (!ranks.has(k)) ranks.set(k, "worst");
  if (order.length <= 8) for (const k of some) if (!ranks.has(k)) ranks.set(k, "named");
  return { ranks, zero };
}

/* Curves of the classes: the selected ones, the ranked ones and the faint rest. */
function classSeries(keys, wanted, valueOf, curveOf, zeroName) {
  const { ranks, zero } = ranked(keys, valueOf), chosen = new Set(picked.keys());
  if (wanted.ends) for (const k of ranks.keys()) chosen.add(k);
  if (wanted.rest) for (const k of faintClasses(keys)) chosen.add(k);
  const series = [...chosen].filter((k) => keys.includes(k)).map((k) => {
    const rank = wanted.ends ? ranks.get(k) : undefined;
    return { name: data.classes[k], k, tone: picked.get(k), rank, label: picked.has(k) || rank ? short(data.classes[k], 24) : null, ...curveOf(k) };
  });
  if (wanted.ends && zero.length) {
    const first = zero.slice(0, 2).map((k) => short(data.classes[k], 14)).join(", "), more = zero.length - 2;
    const name = more > 0 ? `${first} and ${count(more)} more` : first;
    series.push({ name, rank: "worst", label: `${zeroName}: ${first}${more > 0 ? ` +${count(more)}` : ""}`, none: true, x: wanted.span, y: [0, 0], extra: wanted.span.map(() => null) });
  }
  return series;
}

/* Area under the points of a curve. */
const under = (x, y) => x.reduce((sum, at, i) => (i ? sum + ((at - x[i - 1]) * (y[i] + y[i - 1])) / 2 : 0), 0);

/* A curve drops to zero where recall ends; faint lines are drawn without the drop. */
function unpack(line, whole) {
  const end = line[0].length, stop = !whole && end > 1 && line[0][end - 1] === line[0][end - 2] ? end - 1 : end;
  return { x: line[0].slice(0, stop).map((v) => v / 1000), y: line[1].slice(0, stop).map((v) => v / 10000), extra: [line[2].slice(0, stop)] };
}

function precisionRecall() {
  const host = byId("pr-chart");
  if (!host) return;
  const keys = Object.keys(data.curves.classes).map(Number);
  const thresholds = data.curves.thresholds;
  options(byId("pr-iou"), thresholds.map((value, i) => [i, value.toFixed(2)]), 0);
  classPicker(byId("pr-class"), keys);
  chips(byId("pr-chips"));
  const chart = new LineChart(host, {
    label: "Precision against recall", xLabel: "recall", yLabel: "precision", xRange: [0, 1], yRange: [0, 1], shape: 0.66,
    describe: ({ line, x, y, extra }) => line.none ? [`IoU ${line.iou.toFixed(2)}`, "AP 0"] : [`IoU ${line.iou.toFixed(2)}`, `recall ${ratio(x)}, precision ${ratio(y)}`, ...(isNumber(extra[0]) ? [`at score ${score(extra[0])}`] : [])],
    pick: (line) => line.k !== undefined && pickClass(line.k),
  });
  const draw = () => {
    const t = Number(byId("pr-iou").value), iou = thresholds[t];
    const wanted = { ends: byId("pr-ends").checked, rest: byId("pr-all").checked, span: [0, 1] };
    const area = (k) => { const [x, y] = data.curves.classes[k][t]; return under(x, y); };
    const series = classSeries(keys, wanted, area, (k) => unpack(data.curves.classes[k][t], picked.has(k)), "AP 0").map((line) => ({ ...line, iou }));
    if (data.curves.mean.length) series.push({ name: "mean over classes", iou, main: true, label: keys.length > 1 ? "mean over classes" : null, ...unpack(data.curves.mean[t], true) });
    chart.update(series);
  };
  for (const id of ["pr-iou", "pr-ends", "pr-all"]) byId(id).addEventListener("change", () => { draw(); chose("curves"); });
  const iou = byId("pr-iou"), lines = { ends: byId("pr-ends"), rest: byId("pr-all") };
  remember("curves", () => ({ iou: iou.selectedIndex ? thresholds[iou.value] : "", curve: [...picked.keys()].map((k) => data.classes[k]), without: Object.keys(lines).filter((name) => !lines[name].checked) }), (values) => {
    iou.selectedIndex = Math.max(0, thresholds.indexOf(Number(values.get("iou"))));
    for (const name of Object.keys(lines)) lines[name].checked = !values.getAll("without").includes(name);
    pickOnly(values.getAll("curve").map((name) => data.classes.indexOf(name)).filter((k) => keys.includes(k)));
  });
  pickListeners.push(draw);
  draw();
}

function confidenceCurves() {
  const host = byId("f1-chart"), view = data.confidence;
  if (!host || !view) return;
  const keys = Object.keys(view.classes).map(Number), rate = byId("f1-rate");
  const names = ["precision", "recall", "F1"];
  options(rate, names.map((name, i) => [i, name]), 2);
  classPicker(byId("f1-class"), keys);
  chips(byId("f1-chips"));
  const every = view.all[0];
  const least = every[every.length - 1], most = every[0], inUnit = least >= 0 && most <= 1;
  const low = inUnit ? (least < 0.25 ? 0 : Math.floor(least * 10) / 10) : least, high = inUnit ? 1 : Math.max(most, least + 1e-9);
  const chart = new LineChart(host, {
    label: "F1 against the score threshold", xLabel: "score threshold", yLabel: "F1", xRange: [low, high], yRange: [0, 1], shape: 0.66, prefer: 0.6,
    describe: ({ line, x, extra }) => line.none ? ["no true positive"] : [`score ${score(x)}`, `F1 ${ratio(extra[2])}`, `precision ${ratio(extra[0])}, recall ${ratio(extra[1])}`],
    pick: (line) => line.k !== undefined && pickClass(line.k),
  });
  const unit = (values) => values.map((v) => v / 10000);
  const one = (line, which) => { const rates = line.slice(1).map(unit); return { x: line[0], y: rates[which], extra: rates }; };
  const draw = () => {
    const which = Number(rate.value);
    const wanted = { ends: byId("f1-ends").checked, rest: byId("f1-all").checked, span: [low, high] };
    const series = classSeries(keys, wanted, (k) => view.best[k][3], (k) => one(view.classes[k], which), "F1 0");
    series.push({ name: "all classes together", main: true, label: keys.length > 1 ? "all classes" : null, ...one(view.all, which) });
    const best = view.best[view.best.length - 1];
    const marks = isNumber(best[0]) ? [{ x: best[0], y: best[which + 1], text: `best F1 at ${score(best[0])}` }] : [];
    chart.update(series, { yLabel: names[which], label: `${names[which]} against the score threshold`, marks });
  };
  const lines = { ends: byId("f1-ends"), rest: byId("f1-all") };
  for (const node of [rate, ...Object.values(lines)]) node.addEventListener("change", () => { draw(); chose("confidence"); });
  remember("confidence", () => ({ rate: rate.value === "2" ? "" : names[rate.value], hidden: Object.keys(lines).filter((name) => !lines[name].checked) }), (values) => {
    rate.value = Math.max(0, names.indexOf(values.get("rate") || "F1"));
    for (const name of Object.keys(lines)) lines[name].checked = !values.getAll("hidden").includes(name);
    draw();
  });
  pickListeners.push(draw);
  draw();
}

/* COCO's error analysis: seven stacked areas; the highest is drawn first. */
function errorSteps() {
  const host = byId("step-chart"), view = data.analysis;
  if (!host || !view) return;
  const select = byId("step-class"), cells = [...document.querySelectorAll("#step-areas td:last-child")];
  options(select, [["", "mean over classes"], ...Object.keys(view.classes).map((k) => [k, data.names[k]])], "");
  const between = (line, x) => {
    const at = line.x.findIndex((value) => value >= x);
    if (at <= 0) return line.y[0];
    return line.y[at - 1] + ((x - line.x[at - 1]) / (line.x[at] - line.x[at - 1])) * (line.y[at] - line.y[at - 1]);
  };
  let lines = [], name = "";
  const draw = () => {
    const width = Math.max(240, host.clientWidth), height = Math.round(Math.min(420, Math.max(240, width * 0.7)));
    const edge = { left: 50, right: 14, top: 12, bottom: 44 }, wide = width - edge.left - edge.right, high = height - edge.top - edge.bottom;
    const toX = (v) => edge.left + v * wide, toY = (v) => height - edge.bottom - v * high;
    const areas = cells.map((cell, i) => `${view.steps[i]} ${cell.textContent}`).join(", ");
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${name}: ${areas}` });
    for (let i = lines.length - 1; i >= 0; i -= 1) {
      const { x, y } = lines[i], d = x.map((v, n) => `${n ? "L" : "M"}${toX(v).toFixed(1)} ${toY(y[n]).toFixed(1)}`).join("");
      root.append(svg("path", { class: `area step${i}`, d: `${d}L${toX(1)} ${toY(0)}H${toX(0)}Z` }), svg("path", { class: "step-line", d }));
    }
    const text = (x, y, value, more) => svg("text", { x, y, "text-anchor": "middle", ...more }, value);
    for (const v of [0, 0.2, 0.4, 0.6, 0.8, 1]) root.append(text(toX(v), height - edge.bottom + 17, String(v)), text(edge.left - 8, toY(v) + 4, String(v), { "text-anchor": "end" }));
    root.append(text(edge.left + wide / 2, height - 8, "recall"), text(0, 0, "precision", { transform: `translate(13 ${edge.top + high / 2}) rotate(-90)` }));
    root.addEventListener("pointermove", (event) => {
      const box = root.getBoundingClientRect(), x = ((event.clientX - box.left) * (width / box.width) - edge.left) / wide;
      if (x < 0 || x > 1) { hideTip(); return; }
      showTip(event.clientX, event.clientY, `recall ${x.toFixed(2)}`, lines.map((line, i) => `${view.steps[i]} ${ratio(between(line, x))}`).reverse());
    });
    root.addEventListener("pointerleave", hideTip);
    host.replaceChildren(root);
  };
  const show = () => {
    const [areas, packed] = select.value === "" ? view.mean : view.classes[select.value];
    name = select.value === "" ? "mean over classes" : data.names[select.value];
    lines = [];
    for (const line of packed) lines.push(line ? { x: line[0].map((v) => v / 100), y: line[1].map((v) => v / 1000) } : lines[lines.length - 1]);
    lines.push({ x: [0, 1], y: [1, 1] });
    cells.forEach((cell, i) => { cell.textContent = ratio(areas[i]); });
    if (host.clientWidth) draw();
  };
  select.addEventListener("change", () => { show(); chose("analysis"); });
  remember("analysis", () => ({ steps: select.value === "" ? "" : className(Number(select.value)) }), (values) => {
    const k = rowsByName.get(values.get("steps"));
    select.value = view.classes[k] ? k : "";
    show();
  });
  show();
  onWidth(host, draw);
}
