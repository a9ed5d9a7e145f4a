/* Fill the page. Each part looks for its element and returns if the page does not have it. */
function errorBars() {
  const host = byId("error-chart");
  if (!host || !data.errors) return;
  const words = {
    classification: `${MEASURE} \u2265 0.5 with an object of another class`, localization: `${MEASURE} 0.1 to 0.5 with an object of its class`,
    both: `wrong class, and ${MEASURE} < 0.5`, duplicate: `${MEASURE} \u2265 0.5 with an object already matched`, background: `${MEASURE} \u2264 0.1 with every object`,
    missed: "objects that no detection matches", false_positives: "if all were removed", false_negatives: "if every object were detected",
  };
  const one = ([name, number, cost]) => ({ name: errorTitle(name), about: words[name] || "", value: cost, note: plural(number, "case"), special: name.startsWith("false_") });
  const rows = data.errors.rows.map(one), kinds = rows.filter((row) => !row.special).sort((a, b) => (b.value || 0) - (a.value || 0));
  const sides = rows.filter((row) => row.special);
  if (sides.length) sides[0].gap = true;
  barChart(host, [...kinds, ...sides], { label: `${data.errors.unit} cost of each error type`, tone: "cost" });
}

function sizeBars() {
  const host = byId("size-chart");
  if (host && data.sizes) barChart(host, data.sizes.map((row) => ({ ...row, note: null, name: `${row.name} objects`, lines: [row.note] })), { label: "AP by size" });
  const iou = byId("iou-chart");
  if (iou && data.by_iou) barChart(iou, data.by_iou.thresholds.map((t, i) => ({ name: `IoU ${t.toFixed(2)}`, value: data.by_iou.mean[i] })), { label: `${data.by_iou.metric} by IoU threshold` });
}

function reliability() {
  const host = byId("calibration-chart"), view = data.calibration;
  if (!host || !view) return;
  const chart = new LineChart(host, {
    label: "Precision against score in bins", xLabel: "mean score", yLabel: "precision", xRange: [0, 1], yRange: [0, 1], diagonal: true, shape: 0.6,
    describe: ({ x, y, extra }) => [`score ${ratio(x)}`, `precision ${ratio(y)}`, `about ${count(Math.round(extra[0]))} detections per bin`],
  });
  chart.update([{ name: "detector", main: true, x: view.confidence, y: view.precision, extra: [view.count] }], { marks: view.confidence.map((x, i) => ({ x, y: view.precision[i], text: "" })) });
  const bins = byId("calibration-bins");
  if (bins) barChart(bins, view.confidence.map((x, i) => ({ name: `score ${x.toFixed(2)}`, value: view.count[i], text: count(view.count[i]), lines: [`precision ${ratio(view.precision[i])}`] })), { label: "Detections by score", format: count });
}

/* The menu marks the section in view, and fades at the edge if it scrolls. */
function menu() {
  const list = document.querySelector(".bar-nav ul"), bar = document.querySelector(".bar-nav");
  const links = new Map([...list.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
  const edges = () => {
    list.classList.toggle("more-before", list.scrollLeft > 4);
    list.classList.toggle("more-after", list.scrollLeft + list.clientWidth < list.scrollWidth - 4);
  };
  const here = () => {
    const line = bar.getBoundingClientRect().bottom + 0.3 * innerHeight;
    let current = null;
    for (const [id] of links) { const section = byId(id); if (section && section.getBoundingClientRect().top <= line) current = id; }
    if (innerHeight + scrollY >= document.documentElement.scrollHeight - 4) current = [...links.keys()].pop();
    for (const [id, link] of links) {
      if (id !== current) link.removeAttribute("aria-current");
      else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        list.scrollLeft = link.offsetLeft - list.offsetLeft - (list.clientWidth - link.clientWidth) / 2;
      }
    }
  };
  let waiting = false;
  addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; here(); }); } }, { passive: true });
  list.addEventListener("scroll", edges, { passive: true });
  onWidth(bar, () => { document.documentElement.style.setProperty("--menu", `${bar.offsetHeight}px`); edges(); here(); });
}

function themeButton() {
  const button = byId("theme"), names = ["auto", "light", "dark"];
  let now = 0;
  button.hidden = false;
  button.addEventListener("click", () => {
    now = (now + 1) % 3;
    if (now) document.documentElement.dataset.theme = names[now]; else delete document.documentElement.dataset.theme;
    byId("theme-now").textContent = names[now];
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
sectionsButton();
menu();
folding();
classTable(pickClass);
precisionRecall();
confidenceCurves();
errorSteps();
confusionMatrix();
errorBars();
sizeBars();
reliability();
classBars();
surestMistakes();
galleries();
imageDialog();
if (data.live) otherDetectors();
comparison();
overview();
const dialog = byId("image-dialog");
if (dialog) {
  byId("dialog-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
}
/* Every table of rows is sortable; that of pairs is a matrix. */
document.querySelectorAll("main table:not(.pairs-table)").forEach((table) => { if (table.tBodies[0].rows.length > 1 && !table.querySelector(".sort")) sortable(table, () => {}); });
copying();
follow();
addEventListener("hashchange", follow);
addEventListener("scroll", hideTip, { passive: true });
document.documentElement.dataset.ready = "yes";
