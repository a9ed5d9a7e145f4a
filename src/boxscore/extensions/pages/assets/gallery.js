/* Images with boxes over them: cards with filters, and a large view in a dialog. */
const OUTCOMES = ["true positive", "false positive", "ignored", "missed"];
const KIND_WORDS = {
  classification: "wrong class", localization: "localization error", both: "wrong class, localization error", duplicate: "duplicate",
  background: "background", missed: "missed", below_threshold: "missed: matched below the threshold",
};
const PAGE = narrow.matches ? 4 : 10;
const hiddenOutcomes = new Set();
const isMistake = (box) => box.length > 8;
const kindOf = (box) => data.kinds[box[8]];
const MEASURE = data.similarity === "keypoints" ? "OKS" : "IoU";
const overlap = (value) => (isNumber(value) ? `${MEASURE} ${value.toFixed(2)}` : "");

/* Describe a box in a few words; for a mistake also the object that it hit, or the nearest one. */
function whatItIs(box) {
  if (!isMistake(box)) return OUTCOMES[box[5]];
  const [, , , , , , , , , k, iou, confidence] = box, kind = kindOf(box);
  const other = k === null ? "" : short(className(k), 40), there = [other, isNumber(confidence) ? ` ${score(confidence)}` : ""].join("");
  switch (kind) {
    case "classification": return `${other}, ${overlap(iou)}: wrong class`;
    case "both": return `${other}, ${overlap(iou)}: wrong class, localization error`;
    case "localization": return `localization error: ${overlap(iou)}`;
    case "duplicate": return `duplicate of ${there}, which matched the object (${overlap(iou)})`;
    case "background": return "background: no object here";
    case "below_threshold": return `missed: matched by ${there}, ${overlap(iou)}, below the threshold`;
    default: return k === null ? "missed: no detection nearby" : `missed: nearest detection ${there}, ${overlap(iou)}`;
  }
}

/* The outline to draw: a path, or an upright box. */
function outline(record, index, attributes) {
  const box = record.boxes[index], path = record.paths && record.paths[index];
  if (path) return svg("path", { ...attributes, d: path });
  return svg("rect", { ...attributes, x: box[0], y: box[1], width: box[2], height: box[3] });
}

/* Limbs as a path, and keypoints as a path of zero-length lines, which round caps turn into dots. */
function skeleton(joints) {
  const at = (j) => `${joints[3 * j]} ${joints[3 * j + 1]}`, drawn = (j) => joints[3 * j + 2] > 0;
  const every = Array.from({ length: Math.floor(joints.length / 3) }, (_, j) => j).filter(drawn);
  const dots = (chosen) => chosen.map((j) => `M${at(j)}h0`).join("");
  const limbs = (data.limbs || []).filter(([a, b]) => drawn(a) && drawn(b)).map(([a, b]) => `M${at(a)}L${at(b)}`).join("");
  return { limbs, dots: dots(every), hidden: dots(every.filter((j) => joints[3 * j + 2] === 1)) };
}

/* The shapes of one box. Around keypoints the box is thin. */
function shapeOf(record, index, lit, halo) {
  const joints = record.joints && record.joints[index], outcome = record.boxes[index][5];
  const path = record.paths && record.paths[index];
  const marks = ` o${outcome}${lit && lit.has(index) ? " lit" : ""}`, target = { "data-box": index };
  const nodes = [outline(record, index, { class: `box${path ? " outline" : ""}${joints ? " around" : ""}${marks}`, ...target })];
  if (halo && !joints) nodes.unshift(outline(record, index, { class: "halo" }));
  if (joints) {
    const { limbs, dots, hidden } = skeleton(joints);
    if (halo) nodes.push(svg("path", { class: "halo", d: limbs }), svg("path", { class: "halo dots", d: dots }));
    nodes.push(svg("path", { class: `limbs${marks}`, d: limbs, ...target }), svg("path", { class: `dots${marks}`, d: dots, ...target }));
    if (hidden) nodes.push(svg("path", { class: "dots hollow", d: hidden, ...target }));
  }
  return nodes;
}

/* The picture with its boxes, small ones on top. lit: positions of the highlighted boxes. */
function picture(record, place, lit, large) {
  const w = Math.max(1, record.width), h = Math.max(1, record.height);
  const root = svg("svg", { viewBox: `0 0 ${w} ${h}`, preserveAspectRatio: "xMidYMid meet", role: "img", class: lit && lit.size ? "has-lit" : null, "aria-label": `image ${short(record.id, 60)} with ${plural(record.boxes.length, "box", "boxes")}` });
  root.append(svg("rect", { class: "frame", x: 0, y: 0, width: w, height: h }));
  const small = data.pictures[record.twin ?? place], source = large && data.live && small ? small.replace(/\?small$/, "") : small;
  if (source) root.append(svg("image", { href: source, x: 0, y: 0, width: w, height: h, preserveAspectRatio: "none" }));
  const order = record.boxes.map((box, index) => [box, index]).sort(([a], [b]) => b[2] * b[3] - a[2] * a[3]);
  for (const [box, index] of order) {
    if (hiddenOutcomes.has(box[5])) continue;
    root.append(...shapeOf(record, index, lit, Boolean(source)));
  }
  return root;
}

/* Place the labels of the large picture, mistakes first. Labels without free space are left out; returns their number. */
function labels(root, record, size, lit) {
  const placed = [], apart = (a, b) => a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
  const rank = (box, index) => (lit && lit.has(index) ? 0 : isMistake(box) ? 1 : box[5] === 0 ? 2 : 3);
  const order = record.boxes.map((box, index) => [box, index]).filter(([box]) => !hiddenOutcomes.has(box[5])).sort(([a, i], [b, j]) => rank(a, i) - rank(b, j) || i - j);
  const tall = size * 1.3, w = record.width, h = record.height;
  let left = 0;
  for (const [box, index] of order) {
    const [x, y, width, height, k, outcome, confidence] = box;
    const name = short(className(k), 24) + (confidence === null ? "" : ` ${score(confidence)}`);
    const texts = isMistake(box) && outcome === 1 ? [`${name}: ${KIND_WORDS[kindOf(box)]}`, name] : [name];
    let spot = null;
    for (const text of texts) {
      const wide = Math.min(w, Array.from(text).length * size * 0.6 + size * 0.6);
      const places = [[x, y - tall], [x + width - wide, y - tall], [x, y + height], [x + width - wide, y + height], [x, y], [x + width - wide, y], [x, y + height - tall], [x + width, y], [x - wide, y], [x + width, y + height - tall], [x - wide, y + height - tall]];
      for (const [px, py] of places) {
        const tried = { x: Math.max(0, Math.min(px, w - wide)), y: py, w: wide, h: tall, text };
        if (py >= 0 && py + tall <= h && placed.every((other) => apart(tried, other))) { spot = tried; break; }
      }
      if (spot) break;
    }
    if (!spot) { left += 1; continue; }
    placed.push(spot);
    root.append(svg("rect", { class: "label-back", x: spot.x, y: spot.y, width: spot.w, height: tall }), svg("text", { class: `label o${outcome}`, x: spot.x + size * 0.3, y: spot.y + size, "font-size": size, "data-label": index }, spot.text));
  }
  return left;
}

/* The large view. items: [place, lit, note] of the images for previous and next. */
const viewer = { items: [], at: 0, lit: null };

function openImage(place, lit, items) {
  viewer.items = items || [[place, lit]];
  viewer.at = Math.max(0, viewer.items.findIndex((item) => item[0] === place && (item[1] === lit || !lit)));
  if (!byId("image-dialog").open) byId("image-dialog").showModal();
  showImage();
  byId(viewer.items.length > 1 ? "dialog-next" : "dialog-close").focus();
}

function step(by) {
  const to = viewer.at + by;
  if (to < 0 || to >= viewer.items.length) { if (viewer.items.turn) viewer.items.turn(by); return; }
  viewer.at = to;
  showImage();
}

function showImage(chosen) {
  const [place, marked, note] = viewer.items[viewer.at], record = data.images[place];
  // For a page of a longer list: its offset, and the length of the list.
  const lit = chosen || marked, many = viewer.items.total || viewer.items.length, at = (viewer.items.start || 0) + viewer.at;
  viewer.lit = lit;
  byId("dialog-title").textContent = `Image ${record.id}${record.file && record.file !== record.id ? ` \u2013 ${record.file}` : ""}${note ? ` \u2013 ${note}` : ""}`;
  byId("dialog-place").textContent = many > 1 ? `${count(at + 1)} of ${count(many)}` : "";
  byId("dialog-steps").hidden = many < 2;
  // Not disabled: a button that loses the focus would interrupt keyboard navigation.
  byId("dialog-previous").setAttribute("aria-disabled", String(at === 0));
  byId("dialog-next").setAttribute("aria-disabled", String(at === many - 1));
  const host = byId("dialog-picture"), root = picture(record, place, lit, true);
  host.replaceChildren(root);
  const area = root.getBoundingClientRect();
  const scale = Math.max(record.width / Math.max(area.width, 1), record.height / Math.max(area.height, 1));
  const unnamed = labels(root, record, 13 * scale, lit);
  root.addEventListener("click", (event) => { const index = event.target.dataset && event.target.dataset.box; if (index !== undefined) light(Number(index), true); });
  root.addEventListener("pointermove", (event) => {
    const index = event.target.dataset && event.target.dataset.box;
    if (index === undefined) { hideTip(); return; }
    const box = record.boxes[index];
    showTip(event.clientX, event.clientY, `${className(box[4])}${box[6] === null ? "" : ` ${score(box[6])}`}`, [whatItIs(box)]);
  });
  root.addEventListener("pointerleave", hideTip);
  const rows = record.boxes.map((box, index) => {
    const [, , width, height, k, outcome, confidence, iou] = box;
    const show = el("button", { type: "button", class: "link", "aria-pressed": String(Boolean(lit && lit.has(index))), title: "show this box", onclick: () => light(index) }, nameNode(className(k)));
    const row = el("tr", { "data-row": index, class: lit && lit.has(index) ? "lit" : null }, el("th", { scope: "row" }, show), el("td", { class: "text" }, el("span", { class: `dot-of o${outcome}`, "aria-hidden": "true" }), whatItIs(box)), el("td", null, score(confidence)), el("td", null, isNumber(iou) ? iou.toFixed(2) : missing), el("td", { class: "wide" }, `${Math.round(width)} \u00d7 ${Math.round(height)}`));
    return row;
  });
  const heads = ["class", "outcome", "score", MEASURE, "size"].map((text, i) => el("th", { scope: "col", class: i < 2 ? "text" : i === 4 ? "wide" : null }, text));
  byId("dialog-table").replaceChildren(el("thead", null, el("tr", null, heads)), el("tbody", null, rows));
  const notes = [];
  if (unnamed) notes.push(`${plural(unnamed, "label has", "labels have")} no space in the picture; the table lists every box.`);
  if (record.joints && record.joints.some((joints) => joints && joints.some((v, i) => i % 3 === 2 && v === 1))) notes.push("Hollow keypoints are labeled but not visible.");
  if (record.hidden) notes.push(`${plural(record.hidden, "more box", "more boxes")} not listed.`);
  byId("dialog-note").textContent = notes.join(" ");
  chose("image");
}

/* Toggle the highlight of a box in the large view. */
function light(index, scroll) {
  const again = viewer.lit && viewer.lit.size === 1 && viewer.lit.has(index);
  const focused = document.activeElement && document.activeElement.closest("tr[data-row]");
  showImage(again ? new Set() : new Set([index]));
  const row = document.querySelector(`#dialog-table tr[data-row="${index}"]`);
  if (scroll && row) row.scrollIntoView({ block: "nearest" });
  if (focused && row) row.querySelector("button").focus();
}

function card(place, title, note, lit, items) {
  const record = data.images[place];
  const button = el("button", { type: "button", "aria-label": `open image ${short(record.id, 60)}`, onclick: () => openImage(place, lit, items) }, picture(record, place, lit));
  return el("figure", { class: "card" }, button, el("figcaption", null, el("b", { dir: "auto" }, short(title, 90)), note));
}

/* Cards of one page of a list, with buttons to turn pages; the arrow keys move between cards. focus: the step to move in the cards or, as { pager: step }, in the buttons. */
function drawPage(host, cards, { start, total, page, move, focus }) {
  const end = start + cards.length, grid = el("div", { class: "cards" }, cards);
  const turn = (by, text) => el("button", { type: "button", "aria-disabled": String(by < 0 ? start === 0 : end >= total), onclick: () => move(by, { pager: by }) }, text);
  const pager = total > page && el("div", { class: "pager" }, turn(-1, "\u2190 Previous"), el("span", { class: "range", "aria-live": "polite" }, `${count(start + 1)} to ${count(end)} of ${count(total)}`), turn(1, "Next \u2192"));
  host.replaceChildren(...[grid, pager].filter(Boolean));
  const buttons = [...grid.querySelectorAll("button")];
  if (focus && focus.pager) host.querySelector(`.pager button:${focus.pager < 0 ? "first" : "last"}-of-type`).focus();
  else if (focus && buttons.length) buttons[focus < 0 ? buttons.length - 1 : 0].focus();
  host.onkeydown = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !event.target.closest(".card")) return;
    event.preventDefault();
    const next = buttons[buttons.indexOf(event.target) + by];
    if (next) next.focus(); else move(by, by);
  };
}

/* A list that is in the page, page by page. */
function paged(host, items, make, page = PAGE) {
  let start = 0;
  const move = (by, focus) => {
    const to = start + by * page;
    if (to < 0 || to >= items.length) return;
    start = to;
    draw(focus);
  };
  const draw = (focus) => drawPage(host, items.slice(start, start + page).map(make), { start, total: items.length, page, move, focus });
  draw();
}

function outcomeToggles(draw, then) {
  document.querySelectorAll("[data-outcome]").forEach((box) => box.addEventListener("change", () => {
    const code = Number(box.dataset.outcome);
    if (box.checked) hiddenOutcomes.delete(code); else hiddenOutcomes.add(code);
    draw();
    if (then) then();
  }));
  draw();
}

/* The filters of the gallery: an image is shown if one of its mistakes passes all of them. */
function galleries() {
  const host = byId("worst-cards");
  if (!host) return;
  const order = byId("gallery-order"), kinds = byId("gallery-kind"), classes = byId("gallery-class"), low = byId("gallery-low"), high = byId("gallery-high"), text = byId("gallery-image");
  const counts = new Map(data.gallery.worst.map(([place, ...numbers]) => [place, numbers]));
  const places = data.images.map((_, place) => place), live = data.live;
  const every = places.flatMap((place) => data.images[place].boxes.filter(isMistake));
  const tally = (key) => { const found = new Map(); every.forEach((box) => key(box).forEach((value) => found.set(value, (found.get(value) || 0) + 1))); return found; };
  const touched = (box) => [...new Set([box[4], box[9]])].filter((k) => k !== null);
  const ofKind = live ? new Map(live.kinds) : tally((box) => [kindOf(box)]), ofClass = live ? new Map(live.classes) : tally(touched);
  options(kinds, [["", "any"], ...data.kinds.filter((kind) => ofKind.has(kind)).map((kind) => [kind, `${KIND_WORDS[kind]} (${count(ofKind.get(kind))})`])], "");
  const byName = data.names.map((_, k) => k).sort((a, b) => className(a).localeCompare(className(b)));
  options(classes, [["", "any"], ...byName.map((k) => [k, `${short(className(k), 40)} (${count(ofClass.get(k) || 0)})`])], "");
  const withMistakeOf = (k) => places.filter((place) => data.images[place].boxes.some((box) => isMistake(box) && box[4] === k)).length;
  /* The page has only some of the images: describe which ones for a class. */
  const partOf = (k) => {
    const here = withMistakeOf(k), all = data.gallery.of_class[k], name = short(className(k), 60);
    if (!all) return `No image has a mistake of class ${name}.`;
    return here < all ? `${here ? `${count(here)} of the ${plural(all, "image")}` : `None of the ${plural(all, "image")}`} with a mistake of class ${name} ${here === 1 ? "is" : "are"} on this page.` : "";
  };
  const drawEmbedded = () => {
    const k = classes.value === "" ? null : Number(classes.value), kind = kinds.value, wanted = text.value.trim().toLowerCase();
    const from = low.value === "" ? null : Number(low.value), to = high.value === "" ? null : Number(high.value);
    const chosen = k !== null || kind !== "" || from !== null || to !== null;
    const passes = (box) => isMistake(box) && !hiddenOutcomes.has(box[5]) && (k === null || touched(box).includes(k)) && (kind === "" || kindOf(box) === kind) && (from === null || (box[6] !== null && box[6] >= from)) && (to === null || (box[6] !== null && box[6] <= to));
    const found = [];
    for (const place of places) {
      const record = data.images[place];
      if (wanted && !`${record.id} ${record.file || ""}`.toLowerCase().includes(wanted)) continue;
      const selected = record.boxes.map((box, index) => [box, index]).filter(([box]) => passes(box));
      if (chosen && !selected.length) continue;
      const surest = Math.max(-Infinity, ...selected.map(([box]) => box[6] ?? -Infinity));
      const numbers = counts.get(place), every = numbers ? numbers[0] + numbers[1] : selected.length + record.hidden;
      found.push({ place, selected, surest, wrong: chosen ? selected.length : every });
    }
    found.sort(order.value === "confident" ? (a, b) => b.surest - a.surest : (a, b) => b.wrong - a.wrong);
    const items = found.map(({ place, selected, surest }) => {
      const lit = order.value === "confident" ? [...selected].sort(([a], [b]) => (b[6] ?? -1) - (a[6] ?? -1)).slice(0, 1) : selected;
      return [place, chosen || (order.value === "confident" && surest > -Infinity) ? new Set(lit.map(([, index]) => index)) : undefined];
    });
    byId("gallery-shown").textContent = chosen || wanted ? `${plural(items.length, "image")} of ${count(places.length)}, ${plural(found.reduce((sum, each) => sum + each.selected.length, 0), "mistake")}` : "";
    byId("gallery-reset").hidden = !(chosen || wanted);
    byId("gallery-note").textContent = k === null ? "" : partOf(k);
    if (items.length) paged(host, items, (item) => { const [title, note] = caption(item[0], item[1], counts.get(item[0]), chosen ? found[items.indexOf(item)].selected.length : 0); return card(item[0], title, note, item[1], items); });
    else host.replaceChildren(el("p", { class: "empty" }, "No image matches these filters."));
  };
  /* Describe an image: its most confident passing mistake, the number of others, or its counts. */
  const caption = (place, lit, numbers, passing) => {
    const record = data.images[place], first = lit && lit.size ? record.boxes[[...lit][0]] : null;
    if (first) return [`${className(first[4])}${first[6] === null ? "" : ` ${score(first[6])}`}`, `${whatItIs(first)}${passing > 1 ? `; ${count(passing - 1)} more` : ""}. ${short(record.file || record.id, 40)}`];
    const by = (outcome) => record.boxes.filter((box) => box[5] === outcome).length;
    const [wrong, lost, right] = numbers || [by(1), by(3), by(0)];
    return [record.file || record.id, `${plural(wrong, "false positive")}, ${count(lost)} missed, ${plural(right, "true positive")}`];
  };
  const draw = live ? liveGallery(host, caption) : drawEmbedded;
  const further = live ? [["iou_from", "gallery-iou-low"], ["iou_to", "gallery-iou-high"], ["size", "gallery-size"]].map(([key, id]) => [key, byId(id)]) : [];
  if (live) options(byId("gallery-size"), [["", "any"], ...live.sizes.map((name) => [name, name])], "");
  const choose = () => { draw(); chose("gallery"); };
  for (const [, node] of further) node.addEventListener("input", choose);
  for (const node of [order, kinds, classes]) node.addEventListener("change", choose);
  for (const node of [low, high, text]) node.addEventListener("input", choose);
  byId("gallery-reset").addEventListener("click", () => { for (const node of [kinds, classes, low, high, text, ...further.map(([, each]) => each)]) node.value = ""; choose(); kinds.focus(); });
  const boxes = [...document.querySelectorAll("[data-outcome]")];
  remember("gallery", () => ({
    class: classes.value === "" ? "" : className(Number(classes.value)), kind: kinds.value, order: order.selectedIndex ? order.value : "", image: text.value, from: low.value, to: high.value,
    hide: [...hiddenOutcomes].sort().map((code) => OUTCOMES[code]), ...Object.fromEntries(further.map(([key, node]) => [key, node.value])),
  }), (values) => {
    const take = (node, value) => { node.value = value ?? ""; if (node.selectedIndex === -1) node.selectedIndex = 0; };
    take(classes, rowsByName.get(values.get("class")));
    take(kinds, values.get("kind"));
    take(order, values.get("order") || order.options[0].value);
    take(text, values.get("image"));
    for (const [node, key] of [[low, "from"], [high, "to"]]) take(node, values.get(key) && Number.isFinite(Number(values.get(key))) ? values.get(key) : "");
    for (const [key, node] of further) take(node, values.get(key));
    const hidden = values.getAll("hide");
    for (const box of boxes) { const code = Number(box.dataset.outcome); box.checked = !hidden.includes(OUTCOMES[code]); if (box.checked) hiddenOutcomes.delete(code); else hiddenOutcomes.add(code); }
    draw();
  });
  outcomeToggles(draw, () => chose("gallery"));
}

function imageDialog() {
  const dialog = byId("image-dialog");
  if (!dialog) return;
  byId("dialog-previous").addEventListener("click", () => step(-1));
  byId("dialog-next").addEventListener("click", () => step(1));
  dialog.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && !event.altKey && !event.ctrlKey && !event.metaKey) { event.preventDefault(); step(by); }
  });
  dialog.addEventListener("close", () => { hideTip(); chose(["gallery", "won_lost", "differing"].find(byId)); });
  /* On pages of several detectors, an image occurs once for each; the first one needs no number. */
  const detector = (record) => (record.detector ? String(record.detector + 1) : "");
  remember("image", () => {
    if (!dialog.open || !viewer.items.length) return { id: "", detector: "", box: "" };
    const record = data.images[viewer.items[viewer.at][0]], lit = viewer.lit ? [...viewer.lit] : [];
    return { id: record.id, detector: detector(record), box: lit.length === 1 ? lit[0] + 1 : "" };
  }, (values) => {
    const place = data.images.findIndex((record) => record.id === values.get("id") && detector(record) === (values.get("detector") || ""));
    if (place < 0) { if (dialog.open) dialog.close(); return; }
    const box = Number(values.get("box")) - 1;
    openImage(place, data.images[place].boxes[box] ? new Set([box]) : undefined);
  });
}
