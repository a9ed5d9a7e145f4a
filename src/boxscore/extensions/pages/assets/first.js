/* The first screen: AP of every class as thin bars, and crops of the most confident mistakes. */
function classBars() {
  const host = byId("class-bars"), table = byId("class-table");
  if (!host || !table) return;
  const bars = [...table.tBodies[0].rows].map((row) => ({ k: Number(row.dataset.k), value: cellValue(row, 1), objects: cellValue(row, 2) })).filter((bar) => bar.value !== null);
  bars.sort((a, b) => b.value - a.value);
  const metric = host.dataset.metric, ofAll = host.dataset.words, mean = Number(host.dataset.mean), most = Math.max(...bars.map((bar) => bar.value), 0.01), step = niceTicks(0, most, 3)[1], top = step * Math.ceil(most / step - 1e-9);
  const live = el("p", { class: "hidden-text", "aria-live": "polite" });
  const plot = el("div", { class: "plot", tabindex: 0, role: "application", "aria-label": `${metric} of ${plural(bars.length, "class", "classes")}. Arrow keys move from class to class, Enter shows the images of one.` });
  /* The worst classes are listed below; the best are named here. */
  const best = bars.length <= 10 ? "" : el("p", { class: "range" }, "Best: ", ...bars.slice(0, 5).flatMap((bar, i) => [i ? ", " : "", el("a", { href: toImagesOf(bar.k) }, nameNode(short(className(bar.k), 24))), ` ${ratio(bar.value)}`]));
  host.replaceChildren(plot, best, live);
  let at = -1, tapped = -1, mark = null, place = null, root = null;
  const words = (bar) => [`${metric} ${ratio(bar.value)}`, plural(bar.objects, "object")];
  const show = (i, x, y) => {
    at = i;
    mark.setAttribute("visibility", "visible");
    fill(mark, place(i), []);
    const box = root.getBoundingClientRect(), spot = place(i);
    showTip(x ?? box.left + spot.x, y ?? box.top + 20, className(bars[i].k), words(bars[i]));
    if (x === undefined) live.textContent = [className(bars[i].k), ...words(bars[i])].join(", ");
  };
  const hide = () => { mark.setAttribute("visibility", "hidden"); hideTip(); };
  const open = () => { if (at >= 0) location.hash = toImagesOf(bars[at].k); };
  onWidth(host, () => {
    const width = Math.max(200, host.clientWidth), height = 158, left = 30, bottom = 6, above = 8;
    const wide = (width - left) / bars.length, gap = wide > 5 ? 1.5 : wide > 2.5 ? 0.75 : 0;
    const toY = (value) => above + (1 - value / top) * (height - above - bottom);
    root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${metric} of every class, sorted; ${ofAll} ${ratio(mean)}` });
    for (let i = 0; i * step <= top + step / 2; i++) root.append(svg("line", { class: i ? "grid" : "axis", x1: left, x2: width, y1: toY(i * step), y2: toY(i * step) }), svg("text", { class: "tick", x: left - 6, y: toY(i * step) + 4, "text-anchor": "end" }, String(+(i * step).toPrecision(2))));
    const d = bars.map((bar, i) => `M${(left + i * wide).toFixed(2)} ${toY(0)}V${Math.min(toY(bar.value), toY(0) - 1).toFixed(1)}h${Math.max(wide - gap, 0.4).toFixed(2)}V${toY(0)}z`).join("");
    root.append(svg("path", { class: "bar", d }));
    if (isNumber(mean)) {
      const label = `${ofAll} ${ratio(mean)}`;
      root.append(svg("line", { class: "axis dashed", x1: left, x2: width, y1: toY(mean), y2: toY(mean) }), svg("text", { class: "strong on-bars", x: width - 2, y: toY(mean) - 5, "text-anchor": "end" }, label));
    }
    place = (i) => ({ x: left + i * wide, y: above, width: Math.max(wide - gap, 1.5), height: height - above - bottom });
    mark = svg("rect", { class: "bar-mark", visibility: "hidden" });
    const area = svg("rect", { class: "hit", x: left, y: 0, width: width - left, height });
    const under = (event) => Math.min(bars.length - 1, Math.max(0, Math.floor(((event.clientX - root.getBoundingClientRect().left) * (width / root.getBoundingClientRect().width) - left) / wide)));
    area.addEventListener("pointermove", (event) => show(under(event), event.clientX, event.clientY));
    /* By touch, the first tap names the class, and a second one on the same bar opens its images. */
    area.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hide(); });
    area.addEventListener("click", (event) => {
      const i = under(event), first = event.pointerType === "touch" && tapped !== i;
      tapped = at = i;
      if (first) show(i, event.clientX, event.clientY); else open();
    });
    root.append(mark, area);
    plot.replaceChildren(root);
  });
  plot.addEventListener("keydown", (event) => {
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: bars.length - 1 }[event.key];
    if (event.key === "Enter") { event.preventDefault(); open(); }
    if (event.key === "Escape") hide();
    if (next === undefined) return;
    event.preventDefault();
    show(Math.min(bars.length - 1, Math.max(0, next)));
  });
  plot.addEventListener("blur", hide);
}

/* A crop of an image at full resolution, with its boxes. */
function cropped(place, box, part, source) {
  const root = picture(data.images[place], place, new Set([box])), [x, y, width, height] = part;
  root.setAttribute("viewBox", part.join(" "));
  if (source) {
    root.querySelectorAll("image").forEach((whole) => whole.remove());
    root.querySelector(".frame").after(svg("image", { href: source, x, y, width, height, preserveAspectRatio: "none" }));
  }
  return root;
}

function surestMistakes() {
  const host = byId("surest-cards");
  if (!host) return;
  const items = data.surest.map(([place, box]) => [place, new Set([box])]);
  host.replaceChildren(...data.surest.map(([place, box, part, source], i) => {
    const record = data.images[place], wrong = record.boxes[box];
    const open = el("button", { type: "button", "aria-label": `open image ${short(record.id, 60)}`, onclick: () => openImage(...items[i], items) }, cropped(place, box, part, source));
    const title = [nameNode(short(className(wrong[4]), 40)), ` ${score(wrong[6])}`];
    return el("figure", { class: "surest" }, open, el("figcaption", null, el("b", null, title), el("span", null, kindOf(wrong) === "background" ? "no object nearby: unlabeled?" : whatItIs(wrong)), el("span", { class: "name" }, short(record.file || record.id, 40))));
  }));
}
