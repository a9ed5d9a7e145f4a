/* Narrow pages: sections of charts begin folded, and a button lists all sections. */
const FOLDED = ["errors", "sizes", "curves", "confidence", "analysis", "calibration"];

function setFold(section, folded) {
  section.classList.toggle("folded", folded);
  const button = section.querySelector(".fold");
  if (button) button.setAttribute("aria-expanded", String(!folded));
}

/* Open whatever hides an element, so that a link can lead to it. */
function reveal(id) {
  const place = id && byId(id);
  if (!place) return;
  const section = place.closest(".folded");
  if (section) setFold(section, false);
  for (let part = place.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
}

/* A heading is a button only on a narrow page. */
function folding() {
  const heads = FOLDED.map((id) => document.querySelector(`#${id} > h2`)).filter(Boolean);
  const fit = () => {
    for (const head of heads) {
      const section = head.parentElement, button = head.querySelector(".fold");
      if (narrow.matches && !button) {
        head.append(el("button", { class: "fold", type: "button", onclick: () => setFold(section, !section.classList.contains("folded")) }, ...head.childNodes));
        setFold(section, true);
      } else if (!narrow.matches && button) {
        head.replaceChildren(...button.childNodes);
        setFold(section, false);
      }
    }
    document.querySelectorAll(".filter-fold").forEach((part) => { part.open = !narrow.matches; });
  };
  fit();
  narrow.addEventListener("change", fit);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link) reveal(fromFragment(link.hash).section);
  });
  reveal(fromFragment().section);
}

/* The menu scrolls sideways on a narrow page; this button shows all of it. */
function sectionsButton() {
  const list = document.querySelector(".bar-nav ul"), words = el("span", null, "All"), set = (open) => { list.classList.toggle("open", open); button.setAttribute("aria-expanded", String(open)); };
  const button = el("button", { class: "quiet all-sections", type: "button", "aria-expanded": "false", onclick: () => set(!list.classList.contains("open")) }, words, el("span", { class: "hidden-text" }, " sections"), el("span", { "aria-hidden": "true" }, " \u25be"));
  list.after(button);
  list.addEventListener("click", () => set(false));
  list.closest("nav").addEventListener("keydown", (event) => { if (event.key === "Escape" && list.classList.contains("open")) { set(false); button.focus(); } });
}
