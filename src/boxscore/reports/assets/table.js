/* The per-class table: the server wrote the rows; sorting, filtering and small bars are added here. */
function cellValue(row, column) {
  const value = row.cells[column].dataset.v;
  return value === undefined || value === "" ? null : column === 0 ? value : Number(value);
}

function sortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const label = head.textContent.trim();
    if (!label) return;
    const button = el("button", { class: "sort", type: "button" }, label);
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const first = column === 0 ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? (first === "ascending" ? "descending" : "ascending") : first;
      heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row) => [cellValue(row, column), row]);
      rows.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}

const hasCurve = (k) => (data.pair ? data.pair.curves : [data.curves]).some((view) => view.classes[k]);

function classTable(pick) {
  const table = byId("class-table");
  if (!table) return;
  sortable(table);
  const rows = [...table.tBodies[0].rows];
  const filter = byId("class-filter"), shown = byId("class-shown");
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    let left = 0;
    for (const row of rows) {
      row.hidden = wanted !== "" && !row.cells[0].dataset.v.toLowerCase().includes(wanted);
      left += !row.hidden;
    }
    shown.textContent = wanted ? `${plural(left, "class", "classes")} of ${count(rows.length)}` : "";
  });
  for (const row of rows) {
    const k = Number(row.dataset.k), head = row.cells[0];
    if (pick && hasCurve(k)) {
      const button = el("button", { class: "link", type: "button", title: "show its curves" }, ...head.childNodes);
      button.addEventListener("click", () => pick(k, true));
      head.replaceChildren(button);
    }
    for (const meter of row.querySelectorAll(".meter > i")) meter.style.width = `${100 * Number(meter.parentNode.dataset.v)}%`;
    const spark = row.querySelector(".spark");
    const values = spark && data.ap_by_iou && data.ap_by_iou.classes[k];
    if (values) {
      const wide = 62 / values.length, high = Math.max(...values, 1);
      values.forEach((v, i) => spark.append(svg("rect", { x: i * wide, width: Math.max(1, wide - 1), y: 20 - Math.max(0.5, (19 * v) / high), height: Math.max(0.5, (19 * v) / high) })));
      fill(spark, { viewBox: "0 0 62 20", role: "img", "aria-label": `AP from ${ratio(values[0] / 1000)} at IoU ${data.ap_by_iou.thresholds[0]} to ${ratio(values[values.length - 1] / 1000)} at ${data.ap_by_iou.thresholds[values.length - 1]}` }, []);
    }
  }
}
