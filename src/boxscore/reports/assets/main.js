/* Fills the page. Every part looks for its place and leaves when the page has none. */
function errorBars() {
  const host = byId("error-chart");
  if (!host || !data.errors) return;
  const words = {
    classification: "right place, wrong class", localisation: "right class, poorly placed", both: "wrong class and poorly placed",
    duplicate: "a second box on an object found already", background: "a box where nothing is", missed: "objects that nothing found",
    false_positives: "all false positives gone", false_negatives: "every object found",
  };
  const rows = (special) => data.errors.rows.filter(([name]) => name.startsWith("false_") === special).map(([name, number, cost]) => ({ name: name.replace("_", " "), value: cost, text: isNumber(cost) ? cost.toFixed(3) : missing, lines: [words[name] || "", plural(number, "case"), `costs ${ratio(cost)} AP`] }));
  const most = Math.max(...data.errors.rows.map((row) => row[2] || 0), 1e-6);
  barChart(host, rows(false), { label: "AP that each kind of error costs", most });
  barChart(byId("error-special"), rows(true), { label: "AP that all false positives and all misses cost", most });
}

function sizeBars() {
  const host = byId("size-chart");
  if (host && data.sizes) barChart(host, data.sizes.map((row) => ({ ...row, lines: [row.note] })), { label: "AP by size", most: Math.max(...data.sizes.flatMap((row) => [row.value || 0, row.high || 0]), 0.01) });
  const iou = byId("iou-chart");
  if (iou && data.ap_by_iou) barChart(iou, data.ap_by_iou.thresholds.map((t, i) => ({ name: `IoU ${t.toFixed(2)}`, value: data.ap_by_iou.mean[i], lines: [`AP ${ratio(data.ap_by_iou.mean[i])}`] })), { label: "AP by IoU threshold", left: 80 });
}

function reliability() {
  const host = byId("calibration-chart"), view = data.calibration;
  if (!host || !view) return;
  const chart = new LineChart(host, {
    label: "Precision against confidence in bins", xLabel: "mean confidence", yLabel: "precision", xRange: [0, 1], yRange: [0, 1], diagonal: true, shape: 0.75,
    describe: ({ x, y, extra }) => [`confidence ${ratio(x)}`, `precision ${ratio(y)}`, `about ${count(Math.round(extra[0]))} detections a bin`],
  });
  chart.update([{ name: "detector", main: true, x: view.confidence, y: view.precision, extra: [view.count] }], { marks: view.confidence.map((x, i) => ({ x, y: view.precision[i], text: "" })) });
}

function themeButton() {
  const button = byId("theme"), names = ["auto", "light", "dark"];
  let now = 0;
  button.hidden = false;
  button.addEventListener("click", () => {
    now = (now + 1) % 3;
    if (now) document.documentElement.dataset.theme = names[now]; else delete document.documentElement.dataset.theme;
    button.textContent = `Theme: ${names[now]}`;
  });
}

function copyButton() {
  const button = byId("copy-signature");
  if (!button || !navigator.clipboard) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(byId("signature-text").textContent); button.textContent = "Copied"; } catch { button.textContent = "Select and copy"; }
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  });
}

themeButton();
copyButton();
classTable(pickClass);
precisionRecall();
confidenceCurves();
confusionMatrix();
errorBars();
sizeBars();
reliability();
galleries();
imageDialog();
comparison();
overview();
const dialog = byId("image-dialog");
if (dialog) {
  byId("dialog-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}
addEventListener("scroll", hideTip, { passive: true });
document.documentElement.dataset.ready = "yes";
