/* The confusion matrix, and the images behind a cell. */
function confusionMatrix() {
  const host = byId("matrix"), view = data.confusion;
  if (!host || !view) return;
  const n = view.shown.length, place = new Map(view.shown.map((k, i) => [k, i]));
  const counts = new Map(), totals = new Array(n).fill(0);
  for (const [truth, predicted, number] of view.cells) {
    counts.set(place.get(truth) * n + place.get(predicted), number);
    totals[place.get(truth)] += number;
  }
  const behind = new Map(view.top.map((row) => [`${row[0]}>${row[1]}`, row]));
  const longest = Math.min(18, Math.max(...view.shown.map((k) => Array.from(className(k)).length)));
  let cursor = [0, 0], size = 0, left = 0, root = null, outline = null;
  const label = (i) => className(view.shown[i]);
  const describe = (r, c) => {
    const number = counts.get(r * n + c) || 0;
    const lines = [`${count(number)} (${share(totals[r] ? number / totals[r] : NaN)} of the row)`];
    return [`${short(label(r), 40)} \u2192 ${short(label(c), 40)}`, lines];
  };
  const draw = (width) => {
    const font = 11, labels = longest * font * 0.58 + 10;
    size = Math.max(n > 45 ? 12 : 15, Math.min(30, (width - labels - 24) / n));
    left = labels;
    const side = left + n * size + 4;
    root = svg("svg", { width: side, height: side, viewBox: `0 0 ${side} ${side}`, role: "img", "aria-label": "confusion matrix", class: size < 15 ? "small" : null });
    for (let i = 0; i < n; i++) {
      const middle = left + (i + 0.5) * size;
      root.append(svg("text", { x: left - 5, y: middle + 4, "text-anchor": "end", "font-size": font }, short(label(i), 18)), svg("text", { transform: `translate(${middle + 4} ${left - 5}) rotate(-90)`, "font-size": font }, short(label(i), 18)));
    }
    const end = left + n * size, edge = end - size;
    root.append(svg("rect", { x: left, y: left, width: n * size, height: n * size, fill: "none", class: "rule" }), svg("line", { class: "rule", x1: edge, x2: edge, y1: left, y2: end }), svg("line", { class: "rule", x1: left, x2: end, y1: edge, y2: edge }));
    for (const [key, number] of counts) {
      const r = Math.floor(key / n), c = key % n, part = totals[r] ? number / totals[r] : 0;
      root.append(svg("rect", { class: `cell${r === c ? " right" : ""}`, x: left + c * size + 0.5, y: left + r * size + 0.5, width: size - 1, height: size - 1, "fill-opacity": (0.08 + 0.92 * Math.sqrt(part)).toFixed(3), "data-cell": `${r},${c}` }));
      if (size >= 26) root.append(svg("text", { x: left + (c + 0.5) * size, y: left + (r + 0.5) * size + 4, "text-anchor": "middle", "font-size": 10, class: part > 0.3 ? "inside deep" : "inside" }, number > 9999 ? `${Math.round(number / 1000)}k` : number));
    }
    outline = svg("rect", { class: "cursor", width: size, height: size, visibility: "hidden" });
    const area = svg("rect", { class: "hit", x: left, y: left, width: n * size, height: n * size });
    const cellAt = (event) => { const box = root.getBoundingClientRect(); return [event.clientY - box.top, event.clientX - box.left].map((v) => Math.min(n - 1, Math.max(0, Math.floor((v - left) / size)))); };
    area.addEventListener("pointermove", (event) => { const [r, c] = cellAt(event); mark(r, c); showTip(event.clientX, event.clientY, ...describe(r, c)); });
    area.addEventListener("pointerleave", hideTip);
    area.addEventListener("click", (event) => choose(...cellAt(event)));
    root.append(outline, area);
    host.replaceChildren(root);
  };
  const mark = (r, c) => { cursor = [r, c]; fill(outline, { x: left + c * size, y: left + r * size, visibility: "visible" }, []); };
  const choose = (r, c) => showCell(view.shown[r], view.shown[c], counts.get(r * n + c) || 0, totals[r]);

  const panel = byId("cell-panel");
  function showCell(truth, predicted, number, total) {
    const row = behind.get(`${truth}>${predicted}`), K = view.classes;
    const what = truth === K ? [nameNode(className(predicted)), " found where nothing is"] : predicted === K ? [nameNode(className(truth)), " missed"] : truth === predicted ? [nameNode(className(truth)), " found"] : [nameNode(className(truth)), " taken for ", nameNode(className(predicted))];
    const parts = [el("h3", null, ...what, `: ${count(number)}`, total ? ` (${share(number / total)} of the row)` : "")];
    if (row) {
      const images = row[4], drawn = images.filter(([, record]) => record !== null), listed = images.filter(([, record]) => record === null);
      parts.push(el("div", { class: "cards" }, drawn.map(([, record]) => card(record, data.images[record].file || data.images[record].id, null))));
      if (listed.length) parts.push(el("p", { class: "about name" }, `Also in ${plural(row[5] - drawn.length, "image")}: ${listed.map(([id]) => short(id, 40)).join(", ")}${row[5] > images.length ? ", \u2026" : ""}`));
    } else parts.push(el("p", { class: "about" }, truth === predicted || !number ? (number ? "These are right." : "None here.") : "Its images are not in this file; they are in tables/top_confusions."));
    panel.replaceChildren(...parts);
    return panel;
  }

  host.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(...cursor); }
    if (!step) return;
    event.preventDefault();
    mark(Math.min(n - 1, Math.max(0, cursor[0] + step[0])), Math.min(n - 1, Math.max(0, cursor[1] + step[1])));
    const [x, y] = [left + cursor[1] * size, left + cursor[0] * size];
    if (x < host.scrollLeft + left || x + size > host.scrollLeft + host.clientWidth) host.scrollLeft = x - host.clientWidth / 2;
    if (y < host.scrollTop || y + size > host.scrollTop + host.clientHeight) host.scrollTop = y - host.clientHeight / 2;
    const [title, lines] = describe(...cursor), box = root.getBoundingClientRect();
    byId("matrix-live").textContent = [title, ...lines].join(", ");
    showTip(box.left + x + size, box.top + y + size, title, lines);
  });
  host.addEventListener("blur", hideTip);
  onWidth(host, draw);

  const list = byId("top-confusions");
  const top = view.top.filter(([truth, predicted]) => truth < view.classes && predicted < view.classes).slice(0, 12);
  list.replaceChildren(...top.map((row) => el("tr", null, el("th", { scope: "row" }, el("button", { class: "link", type: "button", onclick: () => showCell(row[0], row[1], row[2], place.has(row[0]) ? totals[place.get(row[0])] : 0).scrollIntoView({ block: "nearest" }) }, nameNode(className(row[0])), " \u2192 ", nameNode(className(row[1])))), el("td", null, count(row[2])), el("td", null, share(row[3])))));
  if (!top.length) list.replaceChildren(el("tr", null, el("td", { class: "text", colspan: 3 }, "No class is taken for another.")));
}
