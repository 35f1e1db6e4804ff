// Sorts and filters the rows of runs, and draws the curves of the chosen ones over each other.
"use strict";

const LEFT = 60, RIGHT = 890, TOP = 10, BOTTOM = 270;
const rows = [...document.querySelectorAll("tbody tr")], body = document.querySelector("tbody");
const filter = document.getElementById("filter"), chooser = document.getElementById("curve");
const chart = document.getElementById("chart"), chosen = new Set();
for (const name of new Set(CURVES.flatMap(Object.keys))) chooser.add(new Option(name));

function add(name, attributes, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  chart.append(element);
}

function draw() {
  chart.replaceChildren();
  rows.forEach((row) => (row.style.color = ""));
  const shown = [...chosen].filter((index) => !rows[index].hidden && CURVES[index][chooser.value]);
  const points = shown.flatMap((index) => CURVES[index][chooser.value]);
  const range = (axis) => [Math.min(...points.map((p) => p[axis])), Math.max(...points.map((p) => p[axis]))];
  if (!points.length) return;
  const [[first, last], [low, high]] = [range(0), range(1)];
  const x = (step) => LEFT + ((RIGHT - LEFT) * (step - first)) / (last - first || 1);
  const y = (value) => BOTTOM - ((BOTTOM - TOP) * (value - low)) / (high - low || 1);
  for (let tick = 0; tick <= 4; tick++) {
    const [value, step] = [low + ((high - low) * tick) / 4, first + ((last - first) * tick) / 4];
    add("path", { d: `M${LEFT} ${y(value)}H${RIGHT}`, stroke: "currentColor", opacity: 0.15 });
    add("text", { x: LEFT - 6, y: y(value) + 4, fill: "currentColor", "text-anchor": "end" }, value.toPrecision(3));
    add("text", { x: x(step), y: BOTTOM + 18, fill: "currentColor", "text-anchor": "middle" }, Math.round(step));
  }
  shown.forEach((index, place) => {
    const colour = COLOURS[place % COLOURS.length], dash = place < COLOURS.length ? "" : "6 4";
    const path = CURVES[index][chooser.value].map(([step, value]) => `${x(step)} ${y(value)}`).join("L");
    add("path", { d: `M${path}`, stroke: colour, "stroke-width": 1.8, "stroke-dasharray": dash });
    rows[index].style.color = colour;
  });
}

rows.forEach((row, index) => {
  row.tabIndex = 0;
  const toggle = () => {
    if (!chosen.delete(index)) chosen.add(index);
    draw();
  };
  row.addEventListener("click", toggle);
  row.addEventListener("keydown", (event) => event.key === "Enter" && toggle());
});
filter.addEventListener("input", () => {
  const words = filter.value.toLowerCase().split(/\s+/);
  for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  draw();
});
chooser.addEventListener("input", draw);
document.querySelectorAll("th").forEach((header, column) => {
  let sign = -1;
  header.tabIndex = 0;
  const text = (row) => row.cells[column].textContent;
  const sort = () => {
    sign = -sign;
    body.append(...[...rows].sort((a, b) => sign * text(a).localeCompare(text(b), undefined, { numeric: true })));
  };
  header.addEventListener("click", sort);
  header.addEventListener("keydown", (event) => event.key === "Enter" && sort());
});
rows.slice(0, COLOURS.length).forEach((_, index) => chosen.add(index));
draw();
