/* Precision-recall curves and curves over confidence; both follow the same picked classes. */
const picked = new Map();
const pickListeners = [];
const tonesLeft = data.pair ? [3, 4, 5, 6] : [1, 2, 3, 4, 5, 6];  /* two tones are the detectors' own */
function pickClass(k, jump) {
  if (picked.has(k)) picked.delete(k);
  else {
    if (picked.size >= tonesLeft.length) picked.delete(picked.keys().next().value);
    const used = new Set(picked.values());
    picked.set(k, tonesLeft.find((tone) => !used.has(tone)));
  }
  pickListeners.forEach((listener) => listener());
  if (jump && picked.has(k)) byId("curves").scrollIntoView();
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

/* With very many classes only picked ones are drawn, and a fair sample of the rest. */
function faintClasses(keys) {
  if (keys.length <= 120) return keys;
  const step = keys.length / 100;
  return Array.from({ length: 100 }, (_, i) => keys[Math.floor(i * step)]);
}

/* A curve ends where recall ends and falls to zero there; faint lines are drawn without that fall. */
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
    label: "Precision against recall", xLabel: "recall", yLabel: "precision", xRange: [0, 1], yRange: [0, 1],
    describe: ({ line, x, y, extra }) => [`IoU ${line.iou.toFixed(2)}`, `recall ${ratio(x)}, precision ${ratio(y)}`, ...(isNumber(extra[0]) ? [`at confidence ${score(extra[0])}`] : [])],
    pick: (line) => line.k !== undefined && pickClass(line.k),
  });
  const draw = () => {
    const t = Number(byId("pr-iou").value), iou = thresholds[t];
    const every = byId("pr-all").checked ? new Set([...faintClasses(keys), ...picked.keys()]) : new Set(picked.keys());
    const series = [...every].filter((k) => data.curves.classes[k]).map((k) => ({ name: data.classes[k], k, iou, tone: picked.get(k), ...unpack(data.curves.classes[k][t], picked.has(k)) }));
    if (data.curves.mean.length) series.push({ name: "mean over classes", iou, main: true, ...unpack(data.curves.mean[t], true) });
    chart.update(series);
  };
  byId("pr-iou").addEventListener("change", draw);
  byId("pr-all").addEventListener("change", draw);
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
    label: "F1 against confidence", xLabel: "confidence threshold", yLabel: "F1", xRange: [low, high], yRange: [0, 1],
    describe: ({ x, extra }) => [`confidence ${score(x)}`, `F1 ${ratio(extra[2])}`, `precision ${ratio(extra[0])}, recall ${ratio(extra[1])}`],
    pick: (line) => line.k !== undefined && pickClass(line.k),
  });
  const unit = (values) => values.map((v) => v / 10000);
  const one = (line, which) => { const rates = line.slice(1).map(unit); return { x: line[0], y: rates[which], extra: rates }; };
  const draw = () => {
    const which = Number(rate.value);
    const chosen = byId("f1-all").checked ? new Set([...faintClasses(keys), ...picked.keys()]) : new Set(picked.keys());
    const series = [...chosen].filter((k) => view.classes[k]).map((k) => ({ name: data.classes[k], k, tone: picked.get(k), ...one(view.classes[k], which) }));
    series.push({ name: "all classes together", main: true, ...one(view.all, which) });
    const best = view.best[view.best.length - 1];
    const marks = isNumber(best[0]) ? [{ x: best[0], y: best[which + 1], text: `best F1 at ${score(best[0])}` }] : [];
    chart.update(series, { yLabel: names[which], label: `${names[which]} against confidence`, marks });
  };
  for (const node of [rate, byId("f1-all")]) node.addEventListener("change", draw);
  pickListeners.push(draw);
  draw();
}
