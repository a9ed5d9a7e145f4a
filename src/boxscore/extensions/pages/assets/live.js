/* The gallery of a served page: every image of the data set, requested page by page. */
const liveValues = { class: "gallery-class", kind: "gallery-kind", order: "gallery-order", from: "gallery-low", to: "gallery-high", iou_from: "gallery-iou-low", iou_to: "gallery-iou-high", size: "gallery-size", image: "gallery-image" };

function liveGallery(host, caption) {
  const places = new Map(), shown = byId("gallery-shown"), note = byId("gallery-note");
  let asked = 0, items = [], start = 0, total = 0;
  host.classList.add("live");
  const placeOf = ({ row, record, picture }) => {
    if (!places.has(row)) {
      places.set(row, data.images.push(record) - 1);
      if (picture) data.pictures[places.get(row)] = picture;
    }
    return places.get(row);
  };
  const load = async (from, focus) => {
    const mine = ++asked, query = new URLSearchParams();
    for (const [key, id] of Object.entries(liveValues)) if (byId(id).value.trim() !== "") query.set(key, byId(id).value);
    for (const code of hiddenOutcomes) query.append("hide", OUTCOMES[code]);
    if (from) query.set("start", from);
    let answer = null;
    try {
      const response = await fetch(`${data.live.images}?${query}`);
      if (response.ok) answer = await response.json();
    } catch { /* the server has ended */ }
    if (mine !== asked) return;
    if (!answer) { note.textContent = "No answer: is boxscore view still running?"; return; }
    note.textContent = "";
    start = answer.start;
    total = answer.images;
    const most = byId("gallery-order").value === "confident" ? 1 : Infinity;  /* boxes come by falling score */
    items = answer.items.map((item) => [placeOf(item), item.lit.length ? new Set(item.lit.slice(0, most)) : undefined, undefined, item.counts, answer.filtered ? item.lit.length : 0]);
    const here = items;
    Object.assign(here, { start, total, turn: async (by) => { if (here === items && await move(by, { pager: by }) && items !== here) openImage(...(by < 0 ? items[items.length - 1] : items[0]).slice(0, 2), items); } });
    const chosen = answer.filtered || byId("gallery-image").value.trim() !== "";
    shown.textContent = `${plural(total, "image")}${chosen ? ` of ${count(data.live.count)}` : ""}, ${plural(answer.mistakes, "mistake")}`;
    byId("gallery-reset").hidden = !chosen;
    draw(focus);
  };
  const move = (by, focus) => {
    const to = start + by * data.live.page;
    if (to < 0 || to >= total) return false;
    return load(to, focus).then(() => true);
  };
  const draw = (focus) => {
    if (!items.length) { host.replaceChildren(el("p", { class: "empty" }, "No image matches these filters.")); return; }
    const cards = items.map(([place, lit, , counts, passing]) => {
      const [title, words] = caption(place, lit, counts, passing);
      return card(place, title, words, lit, items);
    });
    drawPage(host, cards, { start, total, page: data.live.page, move, focus });
  };
  return () => load(0);
}

/* Links to another detector's page keep the selection. */
function otherDetectors() {
  for (const link of document.querySelectorAll(".pages a")) link.addEventListener("click", () => { link.hash = location.hash; });
}
