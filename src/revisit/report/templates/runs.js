// The list of runs: a filter over everything that a row says, and two ticked runs to compare.
const rows = [...document.querySelectorAll("#runs tbody tr")], field = document.getElementById("filter");
const ticks = rows.map((row) => row.querySelector("input[type=checkbox]"));

function refresh() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  const left = rows.filter((row) => !row.hidden).length;
  document.getElementById("count").textContent = (left === rows.length ? "" : left + " of ") + rows.length + " runs";
}

function enable() {
  const ticked = ticks.filter((tick) => tick.checked);
  document.getElementById("compare").disabled = ticked.length !== 2;
  for (const tick of ticks) tick.disabled = ticked.length === 2 && !tick.checked;
}

field.addEventListener("input", refresh);
document.addEventListener("change", enable);
document.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const [a, b] = ticks.filter((tick) => tick.checked).map((tick) => encodeURIComponent(tick.value));
  if (b !== undefined) location.href = "/diff?a=" + a + "&b=" + b;
});
refresh();
enable();
