// Sorting and filtering of the table of new members.
(() => {
  const table = document.getElementById("members");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const search = document.getElementById("search");
  const least = document.getElementById("least");
  const boxes = [...document.querySelectorAll("#choices input")];

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const classes = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const minimum = Number(least.value);
    let shown = 0;
    for (const row of rows) {
      const text = [...row.cells].filter((cell) => cell.className !== "links")
        .map((cell) => cell.textContent).join(" ").toLowerCase();
      row.hidden = !(classes.has(row.dataset.class) && Number(row.dataset.p) >= minimum
        && words.every((word) => text.includes(word)));
      shown += !row.hidden;
    }
    document.getElementById("shown").textContent = `${shown} of ${rows.length} sources`;
  }

  function value(row, column, numeric) {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent;
    return numeric ? Number(text) : text;
  }

  function sort(heading) {
    const numeric = heading.dataset.sort === "number";
    const current = heading.getAttribute("aria-sort");
    const descending = current ? current === "ascending" : numeric;
    const column = heading.cellIndex;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    rows.sort((a, b) => {
      const [x, y] = [value(a, column, numeric), value(b, column, numeric)];
      if (numeric && (Number.isNaN(x) || Number.isNaN(y))) { // missing: last in both directions
        return Number.isNaN(x) - Number.isNaN(y);
      }
      const order = numeric ? x - y : x.localeCompare(y);
      return descending ? -order : order;
    });
    body.append(...rows);
  }

  for (const heading of table.querySelectorAll("th[data-sort]")) {
    heading.tabIndex = 0;
    heading.addEventListener("click", () => sort(heading));
    heading.addEventListener("keydown", (event) => event.key === "Enter" && sort(heading));
  }
  for (const control of [search, least, ...boxes]) control.addEventListener("input", filter);
  filter();
})();
