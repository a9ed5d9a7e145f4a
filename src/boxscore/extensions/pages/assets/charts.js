/* Line charts and bar charts as SVG: sharp in print, themed by CSS, read by keyboard. */
function niceTicks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) || power;
  const ticks = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-6; value += step) ticks.push(+value.toPrecision(10));
  return ticks;
}

const pen = document.createElement("canvas").getContext("2d"), family = getComputedStyle(document.body).fontFamily;
function textWidth(text, font) {
  pen.font = `${font || "600 12px"} ${family}`;
  return pen.measureText(text).width;
}

const sharedArea = (a, b) => Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left)) * Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));

/* Place each label next to a point of its curve, without overlapping labels, over as few curves as possible. */
function placeLabels(lines, bounds, taken) {
  const high = 15, boxes = [...taken];
  return lines.map(({ text, points, prefer }) => {
    const wide = textWidth(text) + 4;
    let best = null, least = Infinity;
    points.forEach(([x, y], i) => {
      for (const [left, top] of [[x + 5, y - high - 1], [x + 5, y + 2], [x - wide - 5, y - high - 1], [x - wide - 5, y + 2], [x - wide / 2, y - high - 3], [x - wide / 2, y + 4], [x + 7, y - high / 2]]) {
        const box = { left, right: left + wide, top, bottom: top + high };
        if (box.left < bounds.left || box.right > bounds.right || box.top < bounds.top || box.bottom > bounds.bottom) continue;
        if (boxes.some((other) => sharedArea({ ...box, left: box.left - 6, right: box.right + 6 }, other) > 0)) continue;
        let cost = 6 * Math.abs(i / Math.max(1, points.length - 1) - prefer);
        for (const line of lines) {
          const own = line.points === points, far = own ? 0 : 9;
          for (const [px, py] of line.points) if (px > box.left - 2 && px < box.right + 2 && py > box.top - far && py < box.bottom + far) cost += own ? 1.5 : py > box.top && py < box.bottom ? 3 : 1;
        }
        if (cost < least) { least = cost; best = box; }
      }
    });
    if (best) boxes.push(best);
    return best && { x: best.left + 2, y: best.bottom - 4, text };
  });
}

/* series: {name, x, y, extra, tone (1-7 or null), rank ("best", "worst" or null), label, main, dashed}.
   describe(series, at) gives the tooltip's lines. */
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
    const width = Math.max(240, this.host.clientWidth);
    const height = Math.round(Math.min(460, Math.max(260, width * (onPaper() ? 0.5 : this.settings.shape || 0.46))));
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
      line.node = svg("path", { class: `curve${line.main ? " main" : ""}${line.tone ? ` picked t${line.tone}` : line.rank ? ` ${line.rank}` : ""}${line.dashed ? " dashed" : ""}`, d: path });
      root.append(line.node);
    }
    const taken = [];
    for (const mark of this.settings.marks || []) {
      const [x, y] = [toX(mark.x), toY(mark.y)], left = mark.x > (xRange[0] + xRange[1]) / 2 ? x - textWidth(mark.text) : x;
      if (mark.text) taken.push({ left: left - 6, right: left + textWidth(mark.text) + 6, top: y - 24, bottom: y - 7 });
      taken.push({ left: x - 6, right: x + 6, top: y - 6, bottom: y + 6 });
      root.append(svg("circle", { class: "dot", cx: x, cy: y, r: 5 }), svg("text", { class: "curve-label strong", x: left, y: y - 11 }, mark.text));
    }
    const bounds = { left: edge.left + 1, right: width - 2, top: edge.top - 8, bottom: height - edge.bottom - 1 };
    const labeled = this.series.filter((line) => line.label && line.x.length).sort((a, b) => this.weight(b) - this.weight(a));
    const asked = labeled.map((line) => ({ text: short(line.label, width < 420 ? 18 : 30), points: this.sampled(line, 48).map(([x, y]) => [toX(x), toY(y)]), prefer: line.main ? 0.5 : this.settings.prefer ?? 1 }));
    placeLabels(asked, bounds, taken).forEach((place, i) => {
      const line = labeled[i];
      if (place) root.append(svg("text", { class: `curve-label ${line.tone ? `t${line.tone}` : line.main ? "strong" : line.rank || ""}`, x: place.x, y: place.y }, place.text));
    });
    this.dot = svg("circle", { class: "dot", r: 4.5, visibility: "hidden" });
    root.append(this.dot);
    root.addEventListener("pointermove", (event) => this.onMove(event));
    root.addEventListener("pointerleave", () => this.point(null));
    root.addEventListener("click", () => { if (this.cursor && this.settings.pick) this.settings.pick(this.cursor.line); });
    Object.assign(this, { root, toX, toY, edge, width, height });
    this.plot.replaceChildren(root);
  }

  weight(line) { return line.main ? 3 : line.tone ? 2 : line.rank ? 1 : 0; }

  /* Points of a curve, evenly spaced along x. */
  sampled(line, steps) {
    const first = line.x[0], last = line.x[line.x.length - 1];
    return Array.from({ length: steps + 1 }, (_, i) => { const found = this.at(line, first + ((last - first) * i) / steps); return [found.x, found.y]; });
  }

  /* Interpolate a curve at x; null outside. */
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

/* Horizontal bars on a scale; on narrow screens a name is above its bar.
   rows: {name, about, value, low, high, text, note, second, lines, gap}. */
function barChart(host, rows, settings) {
  const format = settings.format || ratio, said = (row) => row.text ?? format(row.value);
  const within = (row) => row.note || (isNumber(row.low) && isNumber(row.high) ? `${format(row.low)} to ${format(row.high)}` : "");
  const draw = () => {
    const width = Math.max(240, host.clientWidth), about = rows.some((row) => row.about);
    const widest = Math.max(...rows.flatMap((row) => [textWidth(row.name), textWidth(row.about || "", "400 11.5px")]));
    const room = Math.max(...rows.map((row) => textWidth(said(row)) + (within(row) ? textWidth(within(row), "400 11.5px") + 8 : 0))) + 14;
    const stacked = widest + room > 0.66 * width, small = width < 420;
    const thick = settings.pairs || stacked || small || rows.length > 8 && !about ? 12 : 16, names = stacked ? (about ? 33 : 18) : 0, pitch = names + (settings.pairs ? 2 * thick + 14 : about && !stacked ? 38 : thick + 12);
    const left = stacked ? 0 : widest + 14;
    const values = rows.flatMap((r) => [r.value, r.high, r.second, 0]).filter(isNumber);
    const most = Math.max(settings.most || 0, ...values) || 1, bottom = Math.min(0, ...rows.flatMap((r) => [r.value, r.low]).filter(isNumber));
    const ticks = niceTicks(bottom, most, Math.max(4, (width - left - room) / 90));
    const toX = (v) => left + 1 + ((v - bottom) / (most - bottom)) * (width - left - room - 1);
    const letters = stacked ? 60 : Math.max(6, Math.floor((left - 14) / 5));
    let y = 4;
    const tops = rows.map((row) => { y += row.gap ? 16 : 0; const top = y; y += pitch; return top; });
    const end = y + 2, height = end + 20;
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${settings.label}: ${rows.map((row) => `${short(row.name, 40)} ${said(row)}`).join(", ")}` });
    for (const v of ticks) root.append(svg("path", { class: v === 0 ? "axis" : "grid", d: stacked ? tops.map((at) => `M${toX(v)} ${at + names - 3}v${pitch - names - 4}`).join("") : `M${toX(v)} 0V${end}` }), svg("text", { class: "tick", x: toX(v), y: end + 14, "text-anchor": v === ticks[0] && stacked ? "start" : "middle" }, settings.format ? format(v) : String(+v.toPrecision(3))));
    rows.forEach((row, i) => {
      const top = tops[i], middle = top + names + (settings.pairs ? thick + 1 : about && !stacked ? pitch / 2 - 3 : thick / 2), first = settings.pairs ? middle - thick - 1 : middle - thick / 2;
      if (row.gap) root.append(svg("line", { class: "grid", x1: 0, x2: width, y1: top - 10, y2: top - 10 }));
      const bar = (value, at, kind) => isNumber(value) && root.append(svg("rect", { class: `bar ${kind}`, x: Math.min(toX(0), toX(value)), y: at, height: thick, width: Math.max(1, Math.abs(toX(value) - toX(0))), rx: 1.5 }));
      bar(row.value, first, settings.tone || "");
      if (settings.pairs) bar(row.second, middle + 1, "second");
      const named = { class: "bar-name", "text-anchor": stacked ? "start" : "end", x: stacked ? 0 : left - 10 };
      root.append(svg("text", { ...named, y: stacked ? top + 11 : row.about ? middle - 3 : middle + 4 }, short(row.name, letters)));
      if (row.about) root.append(svg("text", { ...named, class: "bar-about", y: stacked ? top + 26 : middle + 11 }, short(row.about, letters + 4)));
      if (isNumber(row.low) && isNumber(row.high)) {
        const [a, b] = [toX(row.low), toX(row.high)], d = `M${a} ${middle - 5}V${middle + 5}M${a} ${middle}H${b}M${b} ${middle - 5}V${middle + 5}`;
        root.append(svg("path", { class: "whisker back", d }), svg("path", { class: "whisker", d }));
      }
      const after = toX(Math.max(row.value || 0, row.high || 0, row.second || 0, 0)) + 8;
      root.append(svg("text", { class: "strong", x: after, y: middle + 4 }, said(row), within(row) && svg("tspan", { class: "within", dx: 7 }, within(row))));
      const area = svg("rect", { x: 0, y: top - 2, width, height: pitch, fill: "transparent" });
      area.addEventListener("pointermove", (event) => showTip(event.clientX, event.clientY, row.name, row.lines || []));
      area.addEventListener("pointerleave", hideTip);
      if (row.lines) root.append(area);
    });
    host.replaceChildren(root);
  };
  onWidth(host, draw);
}
