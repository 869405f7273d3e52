// Tables whose headings are buttons with data-column sort by it: first from the better end, then from the other.
// Cells carry data-value; those without a value, and rows of the truth, stay below.
document.addEventListener("click", (event) => {
  const sorter = event.target.closest("button[data-column]");
  if (sorter) sortTable(sorter);
});

function sortTable(button) {
  const table = button.closest("table"), body = table.tBodies[0], column = Number(button.dataset.column);
  const head = button.closest("th");
  const first = button.dataset.first || "ascending";
  const now = head.getAttribute("aria-sort");
  const next = now === first ? (first === "ascending" ? "descending" : "ascending") : first;
  table.querySelectorAll("[aria-sort]").forEach((cell) => cell.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", next);
  const sign = next === "ascending" ? 1 : -1;
  const rows = [...body.rows].filter((row) => !row.classList.contains("truth")).map((row) => [row.cells[column].dataset.value, row]);
  rows.sort(([a], [b]) => {
    if (column === 0 || button.dataset.text !== undefined) return sign * a.localeCompare(b);
    if (a === "" || b === "") return (a === "") - (b === "");
    return sign * (Number(a) - Number(b));
  });
  body.prepend(...rows.map((pair) => pair[1]));
}
