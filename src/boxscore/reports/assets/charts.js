/* Line charts and bar charts as SVG: sharp in print, themed by CSS, read by keyboard. */
function niceTicks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || power;
  const ticks = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-6; value += step) ticks.push(+value.toPrecision(10));
  return ticks;
}

/* series: {name, x, y, extra, tone (0-6 or null), main, dashed}. describe(series, at) gives the tooltip's lines. */
class LineChart {
  constructor(host, settings) {
    this.host = host;
    this.settings = settings;
    this.series = [];
    this.cursor = null;
    this.live = el("p", { class: "hidden-text", "aria-live": "polite" });
    this.plot = el("div", { class: "plot", tabindex: 0, role: "application", "aria-label": settings.label + ". Left and right arrow keys move along a curve, up and down change the curve." });
    host.replaceChildren(this.plot, this.live);
    this.plot.addEventListener("keydown", (event) => this.onKey(event));
    this.plot.addEventListener("blur", () => this.point(null));
    onWidth(host, () => this.draw());
  }

  update(series, settings) {
    Object.assign(this.settings, settings || {});
    this.series = series;
    this.cursor = null;
    if (this.host.clientWidth) this.draw();
  }

  draw() {
    const { xLabel, yLabel, xRange, yRange } = this.settings;
    const width = Math.max(280, this.host.clientWidth);
    const height = Math.round(Math.min(460, Math.max(260, width * (this.settings.shape || 0.46))));
    const edge = { left: 50, right: 14, top: 12, bottom: 44 };
    const toX = (v) => edge.left + ((v - xRange[0]) / (xRange[1] - xRange[0] || 1)) * (width - edge.left - edge.right);
    const toY = (v) => height - edge.bottom - ((v - yRange[0]) / (yRange[1] - yRange[0] || 1)) * (height - edge.top - edge.bottom);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": this.settings.label });
    const text = (x, y, value, more) => svg("text", { x, y, "text-anchor": "middle", ...more }, value);
    for (const v of niceTicks(...xRange, width / 110)) root.append(svg("line", { class: "grid", x1: toX(v), x2: toX(v), y1: edge.top, y2: height - edge.bottom }), text(toX(v), height - edge.bottom + 17, String(+v.toPrecision(6))));
    for (const v of niceTicks(...yRange, 5)) root.append(svg("line", { class: "grid", x1: edge.left, x2: width - edge.right, y1: toY(v), y2: toY(v) }), text(edge.left - 8, toY(v) + 4, String(+v.toPrecision(6)), { "text-anchor": "end" }));
    root.append(text((edge.left + width - edge.right) / 2, height - 8, xLabel), text(0, 0, yLabel, { transform: `translate(13 ${(edge.top + height - edge.bottom) / 2}) rotate(-90)` }));
    if (this.settings.diagonal) root.append(svg("line", { class: "axis dashed", x1: toX(xRange[0]), y1: toY(yRange[0]), x2: toX(xRange[1]), y2: toY(yRange[1]) }));
    for (const line of [...this.series].sort((a, b) => this.weight(a) - this.weight(b))) {
      const path = line.x.map((x, i) => `${i ? "L" : "M"}${toX(x).toFixed(1)} ${toY(line.y[i]).toFixed(1)}`).join("");
      line.node = svg("path", { class: `curve${line.main ? " main" : ""}${line.tone ? ` picked t${line.tone}` : ""}${line.dashed ? " dashed" : ""}`, d: path });
      root.append(line.node);
    }
    for (const mark of this.settings.marks || []) root.append(svg("circle", { class: "dot", cx: toX(mark.x), cy: toY(mark.y), r: 5 }), text(toX(mark.x), toY(mark.y) - 11, mark.text, { class: "strong", "text-anchor": mark.x > (xRange[0] + xRange[1]) / 2 ? "end" : "start" }));
    this.dot = svg("circle", { class: "dot", r: 4.5, visibility: "hidden" });
    root.append(this.dot);
    root.addEventListener("pointermove", (event) => this.onMove(event));
    root.addEventListener("pointerleave", () => this.point(null));
    root.addEventListener("click", () => { if (this.cursor && this.settings.pick) this.settings.pick(this.cursor.line); });
    Object.assign(this, { root, toX, toY, edge, width, height });
    this.plot.replaceChildren(root);
  }

  weight(line) { return line.main ? 2 : line.tone ? 1 : 0; }

  /* Where a curve is at x: the value between its points, or null outside. */
  at(line, x) {
    const xs = line.x, n = xs.length;
    if (!n) return null;
    const up = xs[n - 1] >= xs[0];
    const low = up ? xs[0] : xs[n - 1], high = up ? xs[n - 1] : xs[0];
    const slack = (this.settings.xRange[1] - this.settings.xRange[0]) * 0.02;
    if (x < low - slack || x > high + slack) return null;
    const wanted = Math.min(high, Math.max(low, x));
    let first = 0, last = n - 1;
    while (last - first > 1) { const middle = (first + last) >> 1; if (up ? xs[middle] <= wanted : xs[middle] >= wanted) first = middle; else last = middle; }
    const span = xs[last] - xs[first], part = span ? (wanted - xs[first]) / span : 0;
    const between = (values) => !values || values[first] === null ? null : values[last] === null ? values[first] : values[first] + part * (values[last] - values[first]);
    return { line, x: wanted, y: between(line.y), extra: (line.extra || []).map(between) };
  }

  onMove(event) {
    const box = this.root.getBoundingClientRect(), { xRange } = this.settings;
    const scale = this.width / box.width;
    const px = (event.clientX - box.left) * scale, py = (event.clientY - box.top) * scale;
    const x = xRange[0] + ((px - this.edge.left) / (this.width - this.edge.left - this.edge.right)) * (xRange[1] - xRange[0]);
    let best = null, least = 60;
    for (const line of this.series) {
      const found = this.at(line, x);
      if (!found) continue;
      const away = Math.abs(this.toY(found.y) - py) - 3 * this.weight(line);
      if (away < least) { least = away; best = found; }
    }
    this.point(best, event.clientX, event.clientY);
  }

  point(found, clientX, clientY) {
    if (this.cursor) this.cursor.line.node.classList.remove("hot");
    this.cursor = found;
    if (!found) { this.dot.setAttribute("visibility", "hidden"); hideTip(); return; }
    found.line.node.classList.add("hot");
    fill(this.dot, { cx: this.toX(found.x), cy: this.toY(found.y), visibility: "visible" }, []);
    const box = this.root.getBoundingClientRect();
    const lines = this.settings.describe(found);
    showTip(clientX ?? box.left + (this.toX(found.x) * box.width) / this.width, clientY ?? box.top + (this.toY(found.y) * box.height) / this.height, found.line.name, lines);
    if (clientX === undefined) this.live.textContent = [found.line.name, ...lines].join(", ");
  }

  onKey(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "Escape") this.point(null);
    if ((event.key === "Enter" || event.key === " ") && this.cursor && this.settings.pick) { event.preventDefault(); this.settings.pick(this.cursor.line); }
    if (!step || !this.series.length) return;
    event.preventDefault();
    const { xRange } = this.settings;
    const order = [...this.series].sort((a, b) => this.weight(b) - this.weight(a));
    const place = this.cursor ? Math.max(0, order.indexOf(this.cursor.line)) : 0;
    const line = order[(place + step[1] + order.length) % order.length];
    const x = this.cursor ? this.cursor.x + (step[0] * (xRange[1] - xRange[0])) / 50 : (xRange[0] + xRange[1]) / 2;
    const ends = [Math.min(...line.x), Math.max(...line.x)];
    this.point(this.at(line, Math.min(ends[1], Math.max(ends[0], x))));
  }
}

/* rows: {name, value, low, high, note, second}. Horizontal bars with names, values and whiskers. */
function barChart(host, rows, settings) {
  const draw = () => {
    const width = Math.max(260, host.clientWidth), line = settings.pairs ? 42 : 32;
    const left = Math.min(settings.left || 130, width * 0.4), right = settings.right || 74, height = rows.length * line + 8;
    const values = rows.flatMap((r) => [r.value, r.high, r.second, 0]).filter(isNumber);
    const top = settings.most || Math.max(...values, 1e-9), bottom = Math.min(0, ...rows.flatMap((r) => [r.value, r.low]).filter(isNumber));
    const toX = (v) => left + ((v - bottom) / (top - bottom)) * (width - left - right);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": settings.label });
    rows.forEach((row, i) => {
      const y = i * line + 6, tall = settings.pairs ? 14 : 20;
      const bar = (value, offset, kind) => isNumber(value) && svg("rect", { class: `bar ${kind}`, x: Math.min(toX(0), toX(value)), y: y + offset, height: tall, width: Math.abs(toX(value) - toX(0)) + 0.5, rx: 2 });
      root.append(svg("text", { x: left - 10, y: y + line / 2 - 2, "text-anchor": "end" }, short(row.name, 22)));
      for (const part of [bar(row.value, 0, ""), settings.pairs && bar(row.second, tall + 2, "second")]) if (part) root.append(part);
      if (isNumber(row.low) && isNumber(row.high)) root.append(svg("line", { class: "whisker", x1: toX(row.low), x2: toX(row.high), y1: y + tall / 2, y2: y + tall / 2 }));
      root.append(svg("text", { class: "strong", x: toX(Math.max(row.value || 0, row.high || 0, row.second || 0, 0)) + 8, y: y + line / 2 - 2 }, row.text ?? ratio(row.value)));
      const area = svg("rect", { x: 0, y: y - 3, width, height: line, fill: "transparent" });
      area.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, row.name, row.lines || []));
      area.addEventListener("pointerleave", hideTip);
      root.append(area);
    });
    host.replaceChildren(root);
  };
  onWidth(host, draw);
}
