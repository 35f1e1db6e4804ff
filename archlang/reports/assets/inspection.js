// Paints the heatmaps of an inspection on canvases, with a slider over turns and a choice of heads.
"use strict";

// Ordered by lightness: from light to dark on a light background, from dark to light on a dark one.
const RAMPS = {
  light: [[247, 251, 255], [198, 219, 239], [107, 174, 214], [33, 113, 181], [8, 36, 90]],
  dark: [[20, 26, 34], [38, 66, 106], [62, 122, 160], [150, 190, 150], [253, 236, 140]],
};
// The encoding of numbers as bytes, as in heatmap.py.
const LEVELS = 254, EMPTY = 255;
const FONT_SIZE = 11, LONGEST_LABEL = 18;
// In pixels: the sizes of cells, and the part of the window's height that a map may take.
const LEAST_CELL = 4, LARGEST_CELL = 120, LEAST_ROW = 13, LARGEST_ROW = 60, MOST_HEIGHT = 0.7, NUMBER_WIDTH = 40;
const darkScheme = matchMedia("(prefers-color-scheme: dark)");

// Returns the red, green and blue of a number between 0 and 1.
function channels(fraction) {
  const stops = RAMPS[darkScheme.matches ? "dark" : "light"];
  const position = Math.min(Math.max(fraction, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(position), stops.length - 2);
  return stops[low].map((value, i) => Math.round(value + (stops[low + 1][i] - value) * (position - low)));
}

function colour(fraction) {
  return `rgb(${channels(fraction).join(",")})`;
}

// Returns black or white, whichever has more contrast by WCAG: at least 4.58. They are equal at the luminance 0.179.
function ink(fraction) {
  const [red, green, blue] = channels(fraction).map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

function shortened(number) {
  return String(Number(number.toPrecision(3)));
}

function cssVariable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function decodeBytes(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function truncate(text) {
  return text.length > LONGEST_LABEL ? text.slice(0, LONGEST_LABEL - 1) + "…" : text;
}

function connect(panel, section) {
  const canvas = section.querySelector("canvas.map"), reading = section.querySelector("output");
  const slider = section.querySelector("input[type=range]"), stretch = section.querySelector("input[type=checkbox]");
  const chooser = section.querySelector("select");
  const shown = { frame: 0, choice: 0, row: -1, column: -1 };
  let geometry = null;

  // The upper end of the scale.
  const high = () => (stretch?.checked ? panel.high : panel.scale);

  // Returns the number of a cell, or null if it is empty.
  function value(row, column) {
    const frame = panel.frames[shown.frame];
    const shade = frame.bytes[(shown.choice * frame.rows.length + row) * frame.columns.length + column];
    return shade === EMPTY ? null : panel.low + (panel.high - panel.low) * (shade / LEVELS);
  }

  function paint() {
    const frame = panel.frames[shown.frame];
    frame.bytes ??= decodeBytes(frame.shades);
    const context = canvas.getContext("2d");
    const font = `${FONT_SIZE}px ui-monospace, monospace`;
    context.font = font;
    const longest = (texts) => Math.max(0, ...texts.map((text) => context.measureText(truncate(text)).width));
    // All frames have the same size, so that nothing moves when the slider moves.
    const left = Math.ceil(longest(panel.frames.flatMap((other) => other.rows))) + 8;
    const columns = Math.max(...panel.frames.map((other) => other.columns.length));
    const rows = Math.max(...panel.frames.map((other) => other.rows.length));
    const available = section.clientWidth - 26 - left;
    const cellWidth = Math.max(LEAST_CELL, Math.min(LARGEST_CELL, Math.floor(available / columns)));
    const fitting = Math.floor((MOST_HEIGHT * innerHeight) / rows);
    const cellHeight = Math.max(LEAST_CELL, Math.min(cellWidth, LARGEST_ROW, fitting), rows < 60 ? LEAST_ROW : LEAST_CELL);
    const rotated = cellWidth < longest(frame.columns) + 4;
    const top = (rotated ? Math.ceil(longest(panel.frames.flatMap((other) => other.columns))) : FONT_SIZE) + 8;
    const width = left + cellWidth * columns + 1, height = top + cellHeight * rows + 1;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio; canvas.height = height * ratio;
    canvas.style.width = width + "px"; canvas.style.height = height + "px";
    context.scale(ratio, ratio);
    context.font = font;
    context.fillStyle = cssVariable("--ground");
    context.fillRect(0, 0, width, height);
    geometry = { left, top, cellWidth, cellHeight };
    context.textAlign = "center";
    context.textBaseline = "middle";
    frame.rows.forEach((_, row) => frame.columns.forEach((_, column) => {
      const number = value(row, column);
      if (number === null) return;
      const fraction = (number - panel.low) / (high() - panel.low);
      context.fillStyle = colour(fraction);
      context.fillRect(left + column * cellWidth, top + row * cellHeight, cellWidth, cellHeight);
      if (cellWidth < NUMBER_WIDTH || cellHeight < LEAST_ROW) return;
      context.fillStyle = ink(fraction);
      context.fillText(shortened(number), left + (column + 0.5) * cellWidth, top + (row + 0.5) * cellHeight);
    }));
    context.strokeStyle = cssVariable("--line");
    context.strokeRect(
      left - 0.5, top - 0.5, cellWidth * frame.columns.length + 1, cellHeight * frame.rows.length + 1);
    context.fillStyle = cssVariable("--text");
    context.textBaseline = "middle";
    context.textAlign = "right";
    const rowStep = Math.ceil((FONT_SIZE + 1) / cellHeight), columnStep = Math.ceil((FONT_SIZE + 1) / cellWidth);
    frame.rows.forEach((text, row) => {
      if (row % rowStep === 0) context.fillText(truncate(text), left - 5, top + (row + 0.5) * cellHeight);
    });
    frame.columns.forEach((text, column) => {
      if (rotated && column % columnStep) return;
      context.save();
      context.translate(left + (column + 0.5) * cellWidth, top - 5);
      if (rotated) context.rotate(-Math.PI / 2);
      context.textAlign = rotated ? "left" : "center";
      context.textBaseline = rotated ? "middle" : "alphabetic";
      context.fillText(truncate(text), 0, 0);
      context.restore();
    });
    if (shown.row >= 0 && shown.row < frame.rows.length && shown.column < frame.columns.length) {
      context.strokeStyle = cssVariable("--bad");
      context.lineWidth = 2;
      context.strokeRect(
        left + shown.column * cellWidth + 1, top + shown.row * cellHeight + 1, cellWidth - 2, cellHeight - 2);
      const number = value(shown.row, shown.column);
      const text = number === null ? "nothing" : shortened(number);
      reading.value = `${frame.rows[shown.row]} × ${frame.columns[shown.column]}: ${text}`;
    }
    section.querySelector(".high").textContent = shortened(high());
    const label = section.querySelector(".frame");
    if (label) label.textContent = frame.label;
    canvas.setAttribute("aria-label", `${panel.title}, ${frame.label || "all"}, ${panel.choices[shown.choice]}: ` +
      `${frame.rows.length} rows (${panel.rows}) and ${frame.columns.length} columns (${panel.columns}). ` +
      "Arrow keys move from cell to cell.");
  }

  function select(event) {
    const box = canvas.getBoundingClientRect(), frame = panel.frames[shown.frame];
    const column = Math.floor((event.clientX - box.left - geometry.left) / geometry.cellWidth);
    const row = Math.floor((event.clientY - box.top - geometry.top) / geometry.cellHeight);
    if (row < 0 || column < 0 || row >= frame.rows.length || column >= frame.columns.length) return;
    Object.assign(shown, { row, column });
    paint();
  }

  canvas.addEventListener("mousemove", select);
  canvas.addEventListener("click", select);
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const move = moves[event.key], frame = panel.frames[shown.frame];
    if (!move) return;
    event.preventDefault();
    shown.row = Math.min(Math.max(shown.row + move[0], 0), frame.rows.length - 1);
    shown.column = Math.min(Math.max(shown.column + move[1], 0), frame.columns.length - 1);
    paint();
  });
  slider?.addEventListener("input", () => { shown.frame = Number(slider.value); paint(); });
  stretch?.addEventListener("change", paint);
  chooser?.addEventListener("change", () => { shown.choice = chooser.selectedIndex; paint(); });
  section.querySelector(".save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.download = panel.title.replace(/[^\w.]+/g, "_") + ".png";
    link.href = canvas.toDataURL("image/png");
    link.click();
  });
  const scale = section.querySelector(".scale").getContext("2d");
  function paintScale() {
    for (let x = 0; x < 120; x++) {
      scale.fillStyle = colour(x / 119);
      scale.fillRect(x, 0, 1, 12);
    }
  }
  const repaint = () => { paint(); paintScale(); };
  addEventListener("resize", repaint);
  darkScheme.addEventListener("change", repaint);
  repaint();
}

document.querySelectorAll("section[data-panel]").forEach((section) => {
  connect(panels[Number(section.dataset.panel)], section);
});
