/* Precision-recall curves and curves over confidence; both follow the same picked classes. */
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

/* The classes that a chart names: up to three with the highest and the lowest value, and those at zero as one.
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

/* Curves of the chosen classes: the picked ones, the ranked ones and the faint rest. */
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

/* Area under a curve's points. */
const under = (x, y) => x.reduce((sum, at, i) => (i ? sum + ((at - x[i - 1]) * (y[i] + y[i - 1])) / 2 : 0), 0);

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
  for (const id of ["pr-iou", "pr-ends", "pr-all"]) byId(id).addEventListener("change", draw);
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
  for (const node of [rate, byId("f1-ends"), byId("f1-all")]) node.addEventListener("change", draw);
  pickListeners.push(draw);
  draw();
}
