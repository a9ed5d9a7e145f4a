/* Images with boxes over them: cards, and a large view in a dialog. */
const OUTCOMES = ["true positive", "false positive", "ignored", "missed"];
const hiddenOutcomes = new Set();

function picture(record, place, large, lit) {
  const w = Math.max(1, record.width), h = Math.max(1, record.height);
  const root = svg("svg", { viewBox: `0 0 ${w} ${h}`, preserveAspectRatio: "xMidYMid meet", role: "img", "aria-label": `image ${short(record.id, 60)} with ${plural(record.boxes.length, "box", "boxes")}` });
  root.append(svg("rect", { class: "frame", x: 0, y: 0, width: w, height: h }));
  const source = data.pictures[record.twin ?? place];
  if (source) root.append(svg("image", { href: source, x: 0, y: 0, width: w, height: h, preserveAspectRatio: "none" }));
  const size = Math.max(w, h) / (large ? 52 : 26);
  for (const box of [...record.boxes].reverse()) {
    const [x, y, width, height, k, outcome, confidence] = box;
    if (hiddenOutcomes.has(outcome)) continue;
    const isLit = lit && lit[0] === x && lit[1] === y && lit[2] === width && lit[3] === height && outcome === 1;
    if (source) root.append(svg("rect", { class: "halo", x, y, width, height }));
    root.append(svg("rect", { class: `box o${outcome}${isLit ? " lit" : ""}`, x, y, width, height }));
    if (!large) continue;
    const text = short(className(k), 24) + (confidence === null ? "" : ` ${score(confidence)}`);
    const top = y > size * 1.4 ? y - size * 1.3 : y, wide = Math.min(w, Array.from(text).length * size * 0.62 + size * 0.5);
    const left = Math.max(0, Math.min(x, w - wide));
    root.append(svg("rect", { class: "label-back", x: left, y: top, width: wide, height: size * 1.3 }), svg("text", { class: `label o${outcome}`, x: left + size * 0.25, y: top + size, "font-size": size }, text));
  }
  return root;
}

function openImage(place, lit) {
  const record = data.images[place], dialog = byId("image-dialog");
  byId("dialog-title").textContent = `Image ${record.id}${record.file && record.file !== record.id ? ` \u2013 ${record.file}` : ""}`;
  byId("dialog-picture").replaceChildren(picture(record, place, true, lit));
  const rows = record.boxes.map(([, , width, height, k, outcome, confidence, iou]) => el("tr", null, el("th", { scope: "row" }, nameNode(className(k))), el("td", { class: "text" }, OUTCOMES[outcome]), el("td", null, score(confidence)), el("td", null, ratio(iou)), el("td", null, `${Math.round(width)} \u00d7 ${Math.round(height)}`)));
  const heads = ["class", "outcome", "confidence", "IoU", "size"].map((text, i) => el("th", { scope: "col", class: i < 2 ? "text" : null }, text));
  byId("dialog-table").replaceChildren(el("thead", null, el("tr", null, heads)), el("tbody", null, rows));
  byId("dialog-note").textContent = record.hidden ? `${plural(record.hidden, "more box", "more boxes")} not listed.` : "";
  dialog.showModal();
}

function card(place, title, note, lit) {
  const record = data.images[place];
  const button = el("button", { type: "button", "aria-label": `open image ${short(record.id, 60)}`, onclick: () => openImage(place, lit) }, picture(record, place, false, lit));
  return el("figure", { class: "card" }, button, el("figcaption", null, el("b", { dir: "auto" }, short(title, 90)), note));
}

/* A dozen cards, and a button for the rest. */
function paged(host, items, make) {
  const cards = el("div", { class: "cards" }, items.slice(0, 12).map(make)), left = items.length - 12;
  const more = left > 0 && el("button", { class: "more-cards", type: "button", onclick: () => { more.remove(); cards.append(...items.slice(12).map(make)); } }, `Show ${plural(left, "more image")}`);
  host.replaceChildren(...[cards, more].filter(Boolean));
}

function outcomeToggles(draw) {
  document.querySelectorAll("[data-outcome]").forEach((box) => box.addEventListener("change", () => {
    const code = Number(box.dataset.outcome);
    if (box.checked) hiddenOutcomes.delete(code); else hiddenOutcomes.add(code);
    draw();
  }));
  draw();
}

function galleries() {
  const worst = byId("worst-cards"), confident = byId("confident-cards");
  if (!worst) return;
  outcomeToggles(() => {
    paged(worst, data.gallery.worst, ([place, wrong, lost, right]) => card(place, data.images[place].file || data.images[place].id, `${plural(wrong, "false positive")}, ${count(lost)} missed, ${count(right)} found`));
    paged(confident, data.gallery.confident, ([place, k, confidence, box]) => card(place, `${className(k)} ${score(confidence)}`, `image ${short(data.images[place].id, 40)}`, box));
  });
}
