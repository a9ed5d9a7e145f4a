/* The URL fragment holds the selection as "#section?key=value&key=value", so that a link restores it.
   Names are decoded as texts and looked up; what is unknown is left out. A choice of several has its key
   several times. */
const remembered = new Map();
let lastSection = "summary";

function fromFragment(hash = location.hash) {
  const [section, query] = hash.slice(1).split(/\?(.*)/s);
  return { section, query, values: new URLSearchParams(query || "") };
}

function toFragment(section, values) {
  const chosen = Object.entries(values).flatMap(([key, texts]) => [texts].flat().map((text) => [key, text])).filter(([, text]) => text !== null && text !== undefined && text !== "");
  return `#${section}${chosen.length ? "?" : ""}${chosen.map(([key, text]) => `${key}=${encodeURIComponent(text)}`).join("&")}`;
}

/* read() returns the selection of a section by key, "" for the default; write(values) applies it. */
function remember(section, read, write) { remembered.set(section, { read, write }); }

/* Update the URL after a selection, if the page is allowed to change it. */
function chose(section) {
  if (section) lastSection = section;
  const values = Object.assign({}, ...[...remembered.values()].map((part) => part.read()));
  try { history.replaceState(null, "", toFragment(lastSection, values)); } catch { /* a page within a page */ }
}

/* A link sets the whole selection of its section, and only the named keys elsewhere. */
function follow() {
  const { section, query, values } = fromFragment();
  if (query !== undefined) remembered.forEach((part, name) => { if (name === section || Object.keys(part.read()).some((key) => values.has(key))) part.write(values); });
  if (query === undefined && !remembered.has(section)) return;
  chose(section);
  reveal(section);
  const place = byId(section);
  if (place && query !== undefined && place.matches("section")) place.scrollIntoView();
}

const rowsByName = new Map();
(data.names || []).forEach((name, row) => { if (!rowsByName.has(name)) rowsByName.set(name, row); });
const toImagesOf = (row, kind) => toFragment("gallery", { class: className(row), kind });
