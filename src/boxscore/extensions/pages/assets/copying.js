/* Copy tables: as CSV with a button, or a selection with tabs between cells. */
const FORMULA = /^(?:[\t\r]|[\s\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20])/;  /* what a spreadsheet may run */

/* Text of a cell, with separators between parts that are next to or below each other. */
function cellText(cell) {
  const parts = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) parts.push(node.data);
    else if (node.nodeType === Node.ELEMENT_NODE && !node.hidden && !node.matches("svg, .printed, [aria-hidden='true']")) node.childNodes.forEach(walk);
  };
  walk(cell);
  return parts.join(" ").replace(/\s+/g, " ").trim();
}

function csvCell(value) {
  const text = typeof value === "number" ? String(value) : FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
const csv = (lines) => lines.map((line) => `${line.map(csvCell).join(",")}\n`).join("");

/* A table with full precision; an interval is two columns. Rows hidden by a search are left out. */
function linesOf(table) {
  const heads = [...table.tHead.rows[0].cells];
  const kinds = heads.map((head) => head.dataset.kind || ""), names = heads.map((head) => cellText(head.querySelector(".sort") || head));
  const parts = (value, c) => (kinds[c] === "spark" ? [] : kinds[c] === "interval" ? value.split(" to ").concat("").slice(0, 2) : [value]);
  const exact = (cell, c) => {
    const value = cell.dataset.v, number = Number(value);
    if (value === "" || cell.textContent.trim() === missing) return "";
    return ["bar", "ratio", "count", "number"].includes(kinds[c]) && value !== undefined && Number.isFinite(number) ? number : c === 0 && value !== undefined ? value : cellText(cell).replaceAll("\u2212", "-");
  };
  const number = (text) => (typeof text === "string" && /^[+-]?\d[\d,]*(\.\d+)?$/.test(text) ? Number(text.replaceAll(",", "")) : text);
  const rows = [...table.tBodies[0].rows].filter((row) => !row.classList.contains("left-out"));
  return [
    names.flatMap((name, c) => (kinds[c] === "spark" ? [] : kinds[c] === "interval" ? [`${name} low`, `${name} high`] : [name])),
    ...rows.map((row) => [...row.cells].flatMap((cell, c) => parts(kinds[c] === "interval" ? cellText(cell).replaceAll("\u2212", "-") : exact(cell, c), c)).map((value, c) => (c ? number(value) : value))),
  ];
}

function csvButton(after, lines, what) {
  if (!navigator.clipboard) return;
  const words = el("span", { "aria-live": "polite" }, "Copy as CSV"), button = el("button", { class: "copy-csv", type: "button" }, words, el("span", { class: "hidden-text" }, `: ${what}`));
  button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(csv(lines())); words.textContent = "Copied"; } catch { words.textContent = "Copying not allowed"; }
    setTimeout(() => { words.textContent = "Copy as CSV"; }, 1600);
  });
  after.after(button);
}

function copying() {
  for (const table of document.querySelectorAll("main table")) {
    const section = table.closest("section").querySelector("h2");
    csvButton(table.closest(".scroll") || table, () => linesOf(table), `the table of ${section ? section.textContent : "the page"}`);
  }
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return;
    const inside = (node) => selection.containsNode(node, true);
    const place = selection.getRangeAt(0).commonAncestorContainer, around = place.nodeType === Node.TEXT_NODE ? place.parentNode : place;
    const table = around.closest("table");
    if (!table || around.closest("td, th")) return;
    const rows = [...table.rows].filter((row) => row.offsetParent && inside(row));
    const lines = rows.map((row) => [...row.cells].filter((cell) => cell.offsetParent && inside(cell)).map(cellText).join("\t"));
    event.clipboardData.setData("text/plain", lines.join("\n"));
    event.preventDefault();
  });
}
