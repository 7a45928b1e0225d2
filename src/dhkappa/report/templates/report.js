"use strict";
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const element = (tag, text, attributes = {}) => {
    const made = document.createElement(tag);
    made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };

  // Tabs: one labeler at a time. Without a script and in print, all are shown.
  const parts = all(".part");
  if (parts.length > 1) {
    const list = element("div", "", { role: "tablist", "aria-label": "Labelers", class: "tabs" });
    const tabs = parts.map((part, place) => {
      const tab = element("button", part.querySelector("h3").textContent, {
        type: "button", role: "tab", id: `tab-${place + 1}`, "aria-controls": part.id, dir: "auto",
      });
      tab.addEventListener("click", () => choose(place));
      part.setAttribute("role", "tabpanel");
      part.setAttribute("aria-labelledby", tab.id);
      return tab;
    });
    const choose = (chosen) => parts.forEach((part, place) => {
      part.hidden = place !== chosen;
      tabs[place].setAttribute("aria-selected", String(place === chosen));
      tabs[place].tabIndex = place === chosen ? 0 : -1;
    });
    list.addEventListener("keydown", (event) => {
      const from = tabs.indexOf(document.activeElement);
      const steps = { ArrowRight: from + 1, ArrowLeft: from - 1, Home: 0, End: tabs.length - 1 };
      if (from < 0 || !(event.key in steps)) return;
      event.preventDefault();
      const to = (steps[event.key] + tabs.length) % tabs.length;
      choose(to);
      tabs[to].focus();
    });
    const named = () => {
      const place = parts.findIndex((part) => `#${part.id}` === location.hash);
      if (place >= 0) {
        choose(place);
        parts[place].scrollIntoView();
      }
    };
    list.append(...tabs);
    parts[0].before(list);
    choose(0);
    named();
    window.addEventListener("hashchange", named);
  }

  // Review queue: sort, search, filter, choose the labeler.
  const table = document.getElementById("queue-table");
  if (!table) return;
  const printed = Number(table.dataset.printedRows);
  const labeler = document.getElementById("queue-labeler");
  const category = document.getElementById("queue-category");
  const search = document.getElementById("queue-search");
  const count = document.getElementById("queue-count");
  const bodies = all("#queue-table tbody.rows");
  const extents = all(".queue-extent");
  const heads = all("#queue-table thead th");
  const order = new Intl.Collator(undefined, { numeric: true });
  const queues = bodies.map((body) => [...body.rows].map((row) => ({
    row,
    cells: [...row.cells].map((cell) => cell.textContent),
    text: row.textContent.toLowerCase(),
  })));
  const sorted = { column: 0, sign: 1 };
  const suggested = Number(table.dataset.suggested);
  let queue = queues[0];

  const compared = (a, b) => {
    const [one, other] = [a.cells[sorted.column], b.cells[sorted.column]];
    if (!heads[sorted.column].classList.contains("n")) return sorted.sign * order.compare(one, other);
    const [left, right] = [one, other].map((text) => (text.startsWith("<") ? 1e-9 : parseFloat(text)));
    if (Number.isNaN(left) || Number.isNaN(right)) return Number.isNaN(left) - Number.isNaN(right);
    return sorted.sign * (left - right);
  };

  const show = () => {
    const query = search.value.trim().toLowerCase();
    let found = 0;
    for (const { row, cells, text } of queue) {
      row.hidden = !text.includes(query) || (category.value !== "" && cells[suggested] !== category.value.slice(1));
      found += row.hidden ? 0 : 1;
      row.classList.toggle("beyond", found > printed);
    }
    count.textContent = `Showing ${found.toLocaleString("en")} of ${queue.length.toLocaleString("en")} items`;
  };

  const sort = () => {
    queue.sort((a, b) => compared(a, b) || Number(a.cells[0]) - Number(b.cells[0]));
    if (queue.length) queue[0].row.parentNode.append(...queue.map((entry) => entry.row));
    heads.forEach((head, place) => {
      if (place === sorted.column) head.setAttribute("aria-sort", sorted.sign > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    show();
  };

  const pick = () => {
    const place = labeler ? Number(labeler.value) : 0;
    queue = queues[place];
    bodies.forEach((body, other) => { body.hidden = other !== place; });
    extents.forEach((extent, other) => { extent.hidden = other !== place || extent.classList.contains("whole"); });
    const times = new Map();
    for (const { cells } of queue) times.set(cells[suggested], (times.get(cells[suggested]) || 0) + 1);
    const names = [...times.keys()].sort(order.compare);
    category.replaceChildren(element("option", "all", { value: "" }), ...names.map((name) =>
      element("option", `${name} (${times.get(name).toLocaleString("en")})`, { value: `=${name}`, dir: "auto" })));
    sort();
  };

  heads.forEach((head, place) => {
    const button = element("button", head.textContent, { type: "button" });
    button.addEventListener("click", () => {
      sorted.sign = sorted.column === place ? -sorted.sign : 1;
      sorted.column = place;
      sort();
    });
    head.replaceChildren(button);
  });
  all("#queue-table tbody.group").forEach((group) => { group.hidden = true; });
  if (labeler) labeler.addEventListener("change", pick);
  category.addEventListener("change", show);
  search.addEventListener("input", show);
  document.getElementById("queue-controls").hidden = false;
  pick();
})();
