/* Images of all detectors side by side, cropped to the region in which they differ. A click shows the whole image. */
function sideBySide(host, lines, names) {
  if (!lines.length) { host.replaceChildren(el("p", { class: "empty" }, "None.")); return; }
  const place = (line, m) => line.at + m * data.together;
  const items = lines.flatMap((line) => names.map((name, m) => [place(line, m), undefined, name]));
  paged(host, lines, (line) => {
    const record = data.images[line.at];
    const views = names.map((name, m) => {
      const root = picture(data.images[place(line, m)], place(line, m)), [wrong, lost] = line.counts[m];
      root.setAttribute("viewBox", line.part.join(" "));
      const button = el("button", { type: "button", "aria-label": `open image ${short(record.id, 60)}, ${name}`, onclick: () => openImage(place(line, m), undefined, items) }, root);
      return el("div", null, button, el("p", null, el("b", { class: "name", dir: "auto" }, name), `${plural(wrong, "false positive")}, ${count(lost)} missed`));
    });
    return el("figure", { class: "card pair" }, el("figcaption", null, el("b", { dir: "auto" }, short(record.file || record.id, 60))), el("div", { class: "side-by-side" }, views));
  }, narrow.matches ? 2 : PAGE);
}

/* Precision against recall, and F1 against the threshold, of two detectors. */
function pairCurves(pair, tones, short2) {
  const keys = data.classes.map((_, k) => k).filter((k) => pair.curves.some((view) => view.classes[k]));
  const thresholds = pair.curves[0].thresholds;
  options(byId("pr-iou"), thresholds.map((value, i) => [i, value.toFixed(2)]), 0);
  classPicker(byId("pr-class"), keys);
  chips(byId("pr-chips"));
  const chart = new LineChart(byId("pair-pr-chart"), {
    label: "Precision against recall of both detectors", xLabel: "recall", yLabel: "precision", xRange: [0, 1], yRange: [0, 1],
    describe: ({ line, x, y, extra }) => [`IoU ${line.iou.toFixed(2)}`, `recall ${ratio(x)}, precision ${ratio(y)}`, ...(isNumber(extra[0]) ? [`at score ${score(extra[0])}`] : [])],
  });
  const draw = () => {
    const t = Number(byId("pr-iou").value), iou = thresholds[t], series = [];
    pair.curves.forEach((view, m) => {
      for (const [k, tone] of picked) if (view.classes[k]) series.push({ name: `${data.classes[k]}, ${short2[m]}`, label: `${short(data.classes[k], 20)}, ${short2[m]}`, iou, tone, dashed: m === 1, ...unpack(view.classes[k][t], true) });
      if (view.mean.length) series.push({ name: `mean, ${short2[m]}`, label: short2[m], iou, main: true, tone: tones[m], dashed: m === 1, ...unpack(view.mean[t], true) });
    });
    chart.update(series);
  };
  const iou = byId("pr-iou");
  iou.addEventListener("change", () => { draw(); chose("curves"); });
  remember("curves", () => ({ iou: iou.selectedIndex ? thresholds[iou.value] : "", curve: [...picked.keys()].map((k) => data.classes[k]) }), (values) => {
    iou.selectedIndex = Math.max(0, thresholds.indexOf(Number(values.get("iou"))));
    pickOnly(values.getAll("curve").map((name) => data.classes.indexOf(name)).filter((k) => keys.includes(k)));
  });
  pickListeners.push(draw);
  draw();

  const confidence = pair.confidence.map((view) => view && view.all);
  const every = confidence.filter(Boolean).flatMap((line) => [line[0][0], line[0][line[0].length - 1]]);
  const low = Math.min(0, ...every), high = Math.max(1e-9, every.every((v) => v <= 1) ? 1 : Math.max(...every));
  const f1 = new LineChart(byId("pair-f1-chart"), {
    label: "F1 against the score threshold of both detectors", xLabel: "score threshold", yLabel: "F1", xRange: [low, high], yRange: [0, 1],
    describe: ({ x, y, extra }) => [`score ${score(x)}`, `F1 ${ratio(y)}`, `precision ${ratio(extra[0])}, recall ${ratio(extra[1])}`],
  });
  f1.update(confidence.map((line, m) => line && { name: short2[m], label: short2[m], main: true, tone: tones[m], dashed: m === 1, x: line[0], y: line[3].map((v) => v / 10000), extra: [line[1].map((v) => v / 10000), line[2].map((v) => v / 10000)] }).filter(Boolean));
}

/* The page of two detectors: first solid, second dashed. */
function comparison() {
  const pair = data.pair;
  if (!pair) return;
  const tones = [1, 2], short2 = data.models.map((name) => short(name, 28));

  if (data.scored) pairCurves(pair, tones, short2);
  const both = (name, a, b) => ({ name, value: a, second: b, text: `${ratio(a)} / ${ratio(b)}`, lines: [`${short2[0]}: ${ratio(a)}`, `${short2[1]}: ${ratio(b)}`] });
  const [first, second] = pair.errors;
  if (first && second) barChart(byId("pair-error-chart"), first.rows.map(([name, , cost], i) => both(errorTitle(name), cost, second.rows[i][2])), { label: `${data.scored ? "AP" : "F1"} cost of each error type, both detectors`, pairs: true, right: 110 });
  if (byId("pair-size-chart")) barChart(byId("pair-size-chart"), pair.sizes.map((row) => both(...row)), { label: "AP by size, both detectors", pairs: true, right: 110 });

  const changes = [...document.querySelectorAll("#class-table tbody tr")].map((row) => [Number(row.dataset.k), cellValue(row, 1)]).filter(([, delta]) => delta !== null);
  const bars = (host, rows, tone, empty) => { if (rows.length) barChart(byId(host), rows.map(([k, delta]) => ({ name: data.classes[k], value: Math.abs(delta), text: signed(delta), lines: [signed(delta)] })), { label: "classes with the largest difference", tone, most: Math.max(...changes.map(([, d]) => Math.abs(d)), 1e-9) }); else byId(host).replaceChildren(el("p", { class: "empty" }, empty)); };
  const better = data.falls[0] ? -1 : 1, order = [...changes].sort((a, b) => better * (b[1] - a[1]));
  bars("gain-chart", order.filter(([, d]) => better * d > 0).slice(0, narrow.matches ? 4 : 8), "gain", "No class gains.");
  bars("loss-chart", order.reverse().filter(([, d]) => better * d < 0).slice(0, narrow.matches ? 4 : 8), "cost", "No class loses.");

  outcomeToggles(() => { for (const side of ["won", "lost"]) sideBySide(byId(`${side}-cards`), data.won_lost[side], short2); });
}

/* The same for several detectors. */
function overviewCurves(names, tone, dashed, legend) {
  options(byId("pr-iou"), data.curves.thresholds.map((value, i) => [i, value.toFixed(2)]), 0);
  legend(byId("curve-legend"));
  const chart = new LineChart(byId("overview-pr-chart"), {
    label: "Precision against recall of every detector", xLabel: "recall", yLabel: "precision", xRange: [0, 1], yRange: [0, 1],
    describe: ({ line, x, y }) => [`IoU ${line.iou.toFixed(2)}`, `recall ${ratio(x)}, precision ${ratio(y)}`],
  });
  const draw = () => {
    const t = Number(byId("pr-iou").value);
    chart.update(data.curves.models.map((mean, m) => mean.length && { name: names[m], label: names[m], iou: data.curves.thresholds[t], main: true, tone: tone(m), dashed: dashed(m), ...unpack(mean[t], true) }).filter(Boolean));
  };
  const iou = byId("pr-iou");
  iou.addEventListener("change", () => { draw(); chose("curves"); });
  remember("curves", () => ({ iou: iou.selectedIndex ? data.curves.thresholds[iou.value] : "" }), (values) => { iou.selectedIndex = Math.max(0, data.curves.thresholds.indexOf(Number(values.get("iou")))); draw(); });
  draw();

  const lines = data.confidence, ends = lines.filter(Boolean).flatMap((line) => [line[0][0], line[0][line[0].length - 1]]);
  const low = Math.min(0, ...ends), high = Math.max(1e-9, ends.every((v) => v <= 1) ? 1 : Math.max(...ends));
  legend(byId("f1-legend"));
  const f1 = new LineChart(byId("overview-f1-chart"), {
    label: "F1 against the score threshold of every detector", xLabel: "score threshold", yLabel: "F1", xRange: [low, high], yRange: [0, 1],
    describe: ({ x, y, extra }) => [`score ${score(x)}`, `F1 ${ratio(y)}`, `precision ${ratio(extra[0])}, recall ${ratio(extra[1])}`],
  });
  const unit = (values) => values.map((v) => v / 10000);
  f1.update(lines.map((line, m) => line && { name: names[m], label: names[m], main: true, tone: tone(m), dashed: dashed(m), x: line[0], y: unit(line[3]), extra: [unit(line[1]), unit(line[2])] }).filter(Boolean));
}

/* The overview of several detectors. After seven detectors, tones repeat as dashed lines. */
function overview() {
  if (data.kind !== "overview") return;
  if (byId("differing-cards")) outcomeToggles(() => sideBySide(byId("differing-cards"), data.differing, data.models.map((name) => short(name, 28))));
  const tone = (m) => (m + 1) % 7, dashed = (m) => m >= 7, names = data.models.map((name) => short(name, 40));
  const legend = (host) => host.replaceChildren(...names.map((name, m) => el("li", { class: `t${tone(m)}` }, el("span", { class: "swatch-of", "aria-hidden": "true" }), nameNode(name), dashed(m) ? " (dashed)" : "")));
  const select = byId("pairs-metric"), table = byId("pairs-table");
  options(select, data.metrics.map((key, m) => [m, key]), 0);
  const showPairs = () => {
    const m = Number(select.value);
    table.tHead.rows[0].cells[0].firstElementChild.textContent = data.metrics[m];
    data.pairs[m].forEach((line, i) => line.forEach(([delta, interval, p, verdict], j) => {
      if (i === j) return;
      const cell = table.tBodies[0].rows[i].cells[j + 1], [tone, sign] = { better: ["up", " \u25b2"], worse: ["down", " \u25bc"] }[verdict] || ["", ""];
      cell.className = tone;
      const mark = tone ? el("span", { class: "mark", role: "img", "aria-label": verdict }, sign) : null;
      cell.replaceChildren(el("b", null, delta, mark), el("span", { class: "range" }, interval), el("span", { class: "range" }, p));
    }));
  };
  select.addEventListener("change", () => { showPairs(); chose("pairs"); });
  remember("pairs", () => ({ metric: select.selectedIndex > 0 ? data.metrics[select.value] : "" }), (values) => { select.selectedIndex = Math.max(0, data.metrics.indexOf(values.get("metric"))); showPairs(); });

  if (data.scored) overviewCurves(names, tone, dashed, legend);
  for (const cell of document.querySelectorAll(".errors-table td[data-part]")) cell.style.background = `color-mix(in srgb, var(--bad) ${Math.round(24 * Number(cell.dataset.part))}%, var(--card))`;
}
