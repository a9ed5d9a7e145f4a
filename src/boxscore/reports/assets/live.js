/* The gallery of a served page: every image of the data set, asked for page by page. */
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
  const turn = (by, text) => el("button", { type: "button", "aria-disabled": String(by < 0 ? start === 0 : start + items.length >= total), onclick: () => move(by) }, text);
  const move = (by, focus) => {
    const to = start + by * data.live.page;
    if (to < 0 || to >= total) return false;
    return load(to, focus || { pager: by }).then(() => true);
  };
  const draw = (focus) => {
    const cards = el("div", { class: "cards" }, items.map(([place, lit, , counts, passing]) => {
      const [title, words] = caption(place, lit, counts, passing);
      return card(place, title, words, lit, items);
    }));
    const pager = total > data.live.page && el("div", { class: "pager" }, turn(-1, "\u2190 Previous"), el("span", { class: "range", "aria-live": "polite" }, `${count(start + 1)} to ${count(start + items.length)} of ${count(total)}`), turn(1, "Next \u2192"));
    host.replaceChildren(...(items.length ? [cards, pager].filter(Boolean) : [el("p", { class: "empty" }, "No image passes these filters.")]));
    const buttons = [...cards.querySelectorAll("button")];
    if (focus && focus.pager) host.querySelector(`.pager button:${focus.pager < 0 ? "first" : "last"}-of-type`).focus();
    else if (focus && buttons.length) buttons[focus < 0 ? buttons.length - 1 : 0].focus();
  };
  host.onkeydown = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !event.target.closest(".card")) return;
    event.preventDefault();
    const buttons = [...host.querySelectorAll(".card button")], next = buttons[buttons.indexOf(event.target) + by];
    if (next) next.focus(); else move(by, by);
  };
  return () => load(0);
}

/* Another detector's page shows the same choices. */
function otherDetectors() {
  for (const link of document.querySelectorAll(".pages a")) link.addEventListener("click", () => { link.hash = location.hash; });
}
