"use strict";
// Times stand in the reader's own zone; the exact one is in the tooltip.
const zoned = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
for (const time of document.querySelectorAll("time[datetime]")) {
  const moment = new Date(time.dateTime);
  if (Number.isNaN(moment.getTime())) continue;
  time.title = time.dateTime;
  time.textContent = zoned.format(moment);
}
// Names are found while somebody types.
const field = document.querySelector("header.bar input[type=search]");
const list = document.querySelector("#found");
let waiting, asked = "";
field?.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const text = field.value.trim();
    if (text.length < 2 || text === asked) return;
    asked = text;
    const answer = await fetch(`/search.json?${new URLSearchParams({ q: text, names: "1" })}`);
    if (!answer.ok || asked !== text) return;
    const { rows } = await answer.json();
    list.replaceChildren(...rows.slice(0, 12).map((row) => {
      const option = document.createElement("option");
      option.value = row.name;
      option.label = row.kind.toLowerCase();
      return option;
    }));
    list.rows = rows;
  }, 150);
});
field?.form.addEventListener("submit", (event) => {
  const row = (list.rows ?? []).find((each) => each.name === field.value);
  if (!row) return;
  event.preventDefault();
  location.assign(row.address);
});
// "/" leads to the search, as it does elsewhere.
document.addEventListener("keydown", (event) => {
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement?.tagName);
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { event.preventDefault(); field?.focus(); }
});
// A graph is moved by dragging, and made larger or smaller by Ctrl and the wheel or by + and -.
for (const graph of document.querySelectorAll("svg.graph")) {
  const box = graph.closest(".scroll");
  const natural = graph.width.baseVal.value;
  let scale = 1;
  const resize = (factor) => {
    scale = Math.min(4, Math.max(0.2, scale * factor));
    graph.setAttribute("width", natural * scale);
    graph.removeAttribute("height");
    graph.classList.add("sized");
  };
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    resize(event.deltaY < 0 ? 1.15 : 1 / 1.15);
  }, { passive: false });
  box.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "-") resize(event.key === "+" ? 1.15 : 1 / 1.15);
  });
  let from;
  box.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && !event.target.closest("a")) from = [event.clientX + box.scrollLeft, event.clientY];
  });
  addEventListener("pointermove", (event) => { if (from) box.scrollLeft = from[0] - event.clientX; });
  addEventListener("pointerup", () => { from = undefined; });
}
