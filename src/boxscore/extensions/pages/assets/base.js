/* Small helpers. Text from the data always becomes a text node and is never parsed as HTML. */
const data = JSON.parse(document.getElementById("report-data").textContent);
const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const nameNode = (text) => el("span", { class: "name", dir: "auto" }, text);

const missing = "\u2013";
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const ratio = (value) => (isNumber(value) ? value.toFixed(3) : missing);
const signed = (value) => (isNumber(value) ? (value >= 0.0005 ? "+" : value <= -0.0005 ? "\u2212" : "") + Math.abs(value).toFixed(3) : missing);
const share = (value) => (isNumber(value) ? (100 * value).toFixed(1) + " %" : missing);
const count = (value) => (isNumber(value) ? value.toLocaleString("en") : missing);
const plural = (value, one, many) => `${count(value)} ${value === 1 ? one : many || one + "s"}`;
const score = (value) => (isNumber(value) ? (Math.abs(value) < 0.01 && value !== 0 ? value.toPrecision(2) : String(+value.toFixed(3))) : missing);
const short = (text, most) => { const letters = Array.from(String(text)); return letters.length > most ? letters.slice(0, most - 1).join("") + "\u2026" : letters.join(""); };
const className = (row) => (row < data.names.length ? data.names[row] : "(background)");

const errorTitle = (name) => ({ both: "Both (Cls + Loc)", false_positives: "All false positives", false_negatives: "All false negatives" })[name] || name[0].toUpperCase() + name.slice(1);

/* A page as wide as a phone; the same width is in the style sheets. */
const narrow = matchMedia("(max-width: 46rem)");

/* One tooltip for the page. */
const tip = el("div", { class: "tip", hidden: true });
document.body.append(tip);
function showTip(x, y, title, lines) {
  tip.replaceChildren(el("b", { dir: "auto" }, short(title, 80)), ...lines.map((line) => el("div", null, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16;
  tip.style.transform = `translate(${Math.max(6, left)}px, ${Math.max(6, Math.min(y + 14, innerHeight - box.height - 6))}px)`;
}
const hideTip = () => { tip.hidden = true; };

/* Redraw only when the width changes; for print, draw everything at page width. */
const drawings = [], onPaper = () => document.documentElement.classList.contains("paper");
function onWidth(host, draw) {
  let last = 0;
  const look = () => {
    const width = Math.round(host.clientWidth);
    if (width && width !== last) { last = width; draw(width); }
  };
  drawings.push(look);
  new ResizeObserver(look).observe(host);
}
/* Unfold everything for print. */
const unfolded = [];
function onPaperOpen(on) {
  if (on) document.querySelectorAll("details:is(.more-numbers, .more):not([open])").forEach((part) => { part.open = true; unfolded.push(part); });
  else unfolded.splice(0).forEach((part) => { part.open = false; });
}
for (const [event, on] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(event, () => { document.documentElement.classList.toggle("paper", on); onPaperOpen(on); drawings.forEach((look) => look()); });
}

function options(select, pairs, chosen) {
  select.replaceChildren(...pairs.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen) }, short(text, 60))));
}
