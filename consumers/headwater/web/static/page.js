"use strict";
// What leads to a box and what is made of it lights up, where the pointer or the focus is.
for (const graph of document.querySelectorAll("svg.graph")) {
  const wires = [...graph.querySelectorAll(".wire")].map((wire) => [wire, wire.dataset.from, wire.dataset.to]);
  const rowsOf = (id) => (graph.querySelector(`#${id}`)?.dataset.rows ?? "").split(" ").filter(Boolean);
  const boxOf = (id) => graph.querySelector(`#${id}`)?.dataset.box;
  const follow = (starts, near, far, lit) => {
    const seen = new Set(starts);
    for (const at of seen) {
      for (const wire of wires) {
        if (wire[near] === at) { lit.add(wire[0]); seen.add(wire[far]); }
      }
    }
    return seen;
  };
  const trace = (id) => {
    const lit = new Set();
    const starts = [id, ...rowsOf(id)];
    const found = [...follow(starts, 2, 1, lit), ...follow(starts, 1, 2, lit)];
    for (const each of found.flatMap((one) => [one, boxOf(one)]).filter(Boolean)) {
      lit.add(graph.querySelector(`#${each}`));
    }
    graph.querySelectorAll(".lit").forEach((each) => each.classList.remove("lit"));
    lit.forEach((each) => each.classList.add("lit"));
    graph.classList.add("tracing");
  };
  const leave = () => graph.classList.remove("tracing");
  for (const part of graph.querySelectorAll("g[tabindex]")) {
    for (const event of ["pointerenter", "focus"]) part.addEventListener(event, () => trace(part.id));
    for (const event of ["pointerleave", "blur"]) part.addEventListener(event, leave);
  }
}
for (const command of document.querySelectorAll(".command")) {
  const button = command.querySelector("button");
  if (!navigator.clipboard) { button.hidden = true; continue; }
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  });
}
