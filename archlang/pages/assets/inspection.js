// Draws the panels of `inspection`: shades on a canvas, with a slider over turns and a choice of heads.
"use strict";

// Light to dark on a light ground, dark to light on a dark one; both are ordered by lightness alone.
const RAMPS = {
  light: [[247, 251, 255], [198, 219, 239], [107, 174, 214], [33, 113, 181], [8, 36, 90]],
  dark: [[20, 26, 34], [38, 66, 106], [62, 122, 160], [150, 190, 150], [253, 236, 140]],
};
const LEVELS = 254, NOTHING = 255;
const LABEL = 11, LONGEST = 18;
const night = matchMedia("(prefers-color-scheme: dark)");

function ramp(share) {
  const stops = RAMPS[night.matches ? "dark" : "light"];
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  const colour = stops[low].map((one, i) => Math.round(one + (stops[low + 1][i] - one) * (place - low)));
  return `rgb(${colour.join(",")})`;
}

function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function bytes(text) {
  const raw = atob(text);
  return Uint8Array.from(raw, (sign) => sign.charCodeAt(0));
}

function short(text) {
  return text.length > LONGEST ? text.slice(0, LONGEST - 1) + "…" : text;
}

function draw(panel, section) {
  const canvas = section.querySelector("canvas.map"), said = section.querySelector("output");
  const slider = section.querySelector("input"), chooser = section.querySelector("select");
  const shown = { frame: 0, choice: 0, row: -1, column: -1 };
  let sizes = null;

  function value(row, column) {
    const frame = panel.frames[shown.frame];
    const shade = frame.bytes[(shown.choice * frame.rows.length + row) * frame.columns.length + column];
    return shade === NOTHING ? null : panel.low + (panel.high - panel.low) * (shade / LEVELS);
  }

  function paint() {
    const frame = panel.frames[shown.frame];
    frame.bytes ??= bytes(frame.shades);
    const context = canvas.getContext("2d");
    const font = `${LABEL}px ui-monospace, monospace`;
    context.font = font;
    const width = (texts) => Math.max(0, ...texts.map((text) => context.measureText(short(text)).width));
    // All frames have the same place, so that nothing jumps under the slider.
    const left = Math.ceil(width(panel.frames.flatMap((one) => one.rows))) + 8;
    const columns = Math.max(...panel.frames.map((one) => one.columns.length));
    const rows = Math.max(...panel.frames.map((one) => one.rows.length));
    const room = section.clientWidth - 26 - left;
    const cell = Math.max(4, Math.min(26, Math.floor(room / columns)));
    const tall = Math.max(4, Math.min(cell, 22), rows < 60 ? 13 : 4);
    const across = cell < width(frame.columns) + 4;
    const top = (across ? Math.ceil(width(panel.frames.flatMap((one) => one.columns))) : LABEL) + 8;
    const [w, h] = [left + cell * columns + 1, top + tall * rows + 1];
    const ratio = window.devicePixelRatio || 1;
    canvas.width = w * ratio; canvas.height = h * ratio;
    canvas.style.width = w + "px"; canvas.style.height = h + "px";
    context.scale(ratio, ratio);
    context.font = font;
    context.fillStyle = variable("--ground");
    context.fillRect(0, 0, w, h);
    sizes = { left, top, cell, tall };
    frame.rows.forEach((_, row) => frame.columns.forEach((_, column) => {
      const one = value(row, column);
      if (one === null) return;
      context.fillStyle = ramp((one - panel.low) / (panel.high - panel.low));
      context.fillRect(left + column * cell, top + row * tall, cell, tall);
    }));
    context.strokeStyle = variable("--line");
    context.strokeRect(left - 0.5, top - 0.5, cell * frame.columns.length + 1, tall * frame.rows.length + 1);
    context.fillStyle = variable("--text");
    context.textBaseline = "middle";
    context.textAlign = "right";
    const everyRow = Math.ceil((LABEL + 1) / tall), everyColumn = Math.ceil((LABEL + 1) / cell);
    frame.rows.forEach((text, row) => {
      if (row % everyRow === 0) context.fillText(short(text), left - 5, top + (row + 0.5) * tall);
    });
    frame.columns.forEach((text, column) => {
      if (across && column % everyColumn) return;
      context.save();
      context.translate(left + (column + 0.5) * cell, top - 5);
      if (across) context.rotate(-Math.PI / 2);
      context.textAlign = across ? "left" : "center";
      context.textBaseline = across ? "middle" : "alphabetic";
      context.fillText(short(text), 0, 0);
      context.restore();
    });
    if (shown.row >= 0 && shown.row < frame.rows.length && shown.column < frame.columns.length) {
      context.strokeStyle = variable("--bad");
      context.lineWidth = 2;
      context.strokeRect(left + shown.column * cell + 1, top + shown.row * tall + 1, cell - 2, tall - 2);
      const one = value(shown.row, shown.column);
      const number = one === null ? "nothing" : String(Number(one.toPrecision(3)));
      said.value = `${frame.rows[shown.row]} × ${frame.columns[shown.column]}: ${number}`;
    }
    const label = section.querySelector(".frame");
    if (label) label.textContent = frame.label;
    canvas.setAttribute("aria-label", `${panel.title}, ${frame.label || "all"}, ${panel.choices[shown.choice]}: ` +
      `${frame.rows.length} rows (${panel.rows}) and ${frame.columns.length} columns (${panel.columns}). ` +
      "Arrow keys move from cell to cell.");
  }

  function at(event) {
    const box = canvas.getBoundingClientRect(), frame = panel.frames[shown.frame];
    const column = Math.floor((event.clientX - box.left - sizes.left) / sizes.cell);
    const row = Math.floor((event.clientY - box.top - sizes.top) / sizes.tall);
    if (row < 0 || column < 0 || row >= frame.rows.length || column >= frame.columns.length) return;
    Object.assign(shown, { row, column });
    paint();
  }

  canvas.addEventListener("mousemove", at);
  canvas.addEventListener("click", at);
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
  chooser?.addEventListener("change", () => { shown.choice = chooser.selectedIndex; paint(); });
  section.querySelector(".save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.download = panel.title.replace(/[^\w.]+/g, "_") + ".png";
    link.href = canvas.toDataURL("image/png");
    link.click();
  });
  const scale = section.querySelector(".scale").getContext("2d");
  function legend() {
    for (let i = 0; i < 120; i++) {
      scale.fillStyle = ramp(i / 119);
      scale.fillRect(i, 0, 1, 12);
    }
  }
  const again = () => { paint(); legend(); };
  addEventListener("resize", again);
  night.addEventListener("change", again);
  again();
}

document.querySelectorAll("section[data-panel]").forEach((section) => {
  draw(panels[Number(section.dataset.panel)], section);
});
