// Pans, zooms and folds a picture. The SVG holds the layout with all boxes unfolded; folding only closes gaps in it.
"use strict";
// Shows the picture in the element `view`, and listens to the keys of `keys`. Returns a function that ends that, and
// returns the folded boxes and the visible part, which a later picture may take over. Without them, boxes that repeat the
// content of others are folded, and then the innermost ones until the whole picture is readable.
const showPicture = (view, keys, { folded = null, part = null } = {}) => {
  const MARGIN = 10; // around the picture
  const HALF_GAP = 9; // on each side of a box or line
  const READABLE = 0.6; // the smallest scale at which letters of 12 px are readable
  const MINIMAP = [150, 200]; // its largest width and height
  const svg = view.querySelector("svg.picture");
  const listeners = new AbortController();
  const listen = (target, type, act, options) =>
    target.addEventListener(type, act, { signal: listeners.signal, ...options });
  const groups = new Map([...svg.querySelectorAll("g[data-id]")].map((g) => [g.dataset.id, g]));

  const numbers = (text) => text.match(/-?[\d.]+/g).map(Number);
  const children = (g, selector) => [...g.children].filter((child) => child.matches(selector));
  // The unfolded layout of a group. Positions are relative to the parent, as in the SVG.
  const read = (g) => {
    const [rect] = children(g, "rect"), [inside] = children(g, "g.inside");
    const [x, y] = numbers(g.getAttribute("transform"));
    const [width, height] = ["width", "height"].map((name) => Number(rect.getAttribute(name)));
    const box = { id: g.dataset.id, g, rect, inside, x, y, width, height, children: [], routes: [] };
    if (!inside) return box;
    [box.labelWidth, box.labelHeight] = numbers(g.dataset.folded);
    box.children = children(inside, "g[data-id]").map(read);
    box.routes = children(inside, "path").map((path) => {
      const flat = numbers(path.getAttribute("d"));
      const points = Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
      return { path, source: path.dataset.from, back: path.matches(".back"), points };
    });
    return box;
  };
  const [root] = children(svg, "g[data-id]").map(read);

  // Returns the new place of a coordinate once everything is removed that intervals cover in `before` but not in `after`.
  const squeeze = (before, after) => {
    const covers = (intervals, at) => intervals.some(([low, high]) => low < at && at < high);
    const ends = [...new Set([...before, ...after].flat())].sort((a, b) => a - b);
    const removed = [];
    for (let i = 1; i < ends.length; i++) {
      const middle = (ends[i - 1] + ends[i]) / 2;
      if (covers(before, middle) && !covers(after, middle)) removed.push([ends[i - 1], ends[i]]);
    }
    return (at) => at - removed.reduce((sum, [low, high]) => sum + Math.max(0, Math.min(at, high) - low), 0);
  };
  // Sets the current size of a box, and the current positions of what is inside it. Children keep their centres.
  const place = (box) => {
    box.now = { x: box.x, y: box.y, width: box.width, height: box.height };
    if (!box.inside) return;
    if (folded.has(box.id)) {
      Object.assign(box.now, { width: box.labelWidth, height: box.labelHeight });
      return;
    }
    box.children.forEach(place);
    const around = (centre, width) => [centre - width / 2 - HALF_GAP, centre + width / 2 + HALF_GAP];
    const lines = box.routes.filter((route) => !route.back).flatMap(({ points }) => points.map(([x]) => around(x, 0)));
    const columns = (width) => box.children.map((child) => around(child.x + child.width / 2, width(child)));
    const rows = (height) => box.children.map((child) => [child.y, child.y + height(child)]);
    const toX = squeeze(columns((child) => child.width), [...columns((child) => child.now.width), ...lines]);
    const toY = squeeze(rows((child) => child.height), rows((child) => child.now.height));
    for (const child of box.children) {
      child.now.x = toX(child.x + child.width / 2) - child.now.width / 2;
      child.now.y = toY(child.y);
    }
    const bottoms = new Map(box.children.map((child) => [child.id, child.now.y + child.now.height]));
    for (const route of box.routes) {
      route.now = route.points.map(([x, y]) => [toX(x), toY(y)]);
      route.now[0][1] = bottoms.get(route.source);
    }
    box.now.width = Math.max(box.labelWidth, toX(box.width));
    box.now.height = toY(box.height);
  };
  const draw = ({ id, g, rect, inside, now, ...box }) => {
    rect.setAttribute("width", now.width.toFixed(1));
    rect.setAttribute("height", now.height.toFixed(1));
    g.setAttribute("transform", `translate(${now.x.toFixed(1)} ${now.y.toFixed(1)})`);
    if (!inside) return;
    const hidden = folded.has(id);
    inside.style.display = hidden ? "none" : "";
    if (g.hasAttribute("aria-expanded")) g.setAttribute("aria-expanded", String(!hidden));
    if (hidden) return;
    for (const route of box.routes)
      route.path.setAttribute("d", "M" + route.now.map((point) => point.map((at) => at.toFixed(1)).join(" ")).join(" L"));
    box.children.forEach(draw);
  };
  const legend = svg.querySelector("g.legend");
  const [legendWidth, legendHeight] = legend ? numbers(legend.dataset.size) : [0, 0];
  // Left, top, width and height of the whole picture.
  const whole = () => [
    -MARGIN, -MARGIN,
    Math.max(root.now.width, legendWidth) + 2 * MARGIN, root.now.height + legendHeight + 2 * MARGIN,
  ];
  const update = () => {
    place(root);
    draw(root);
    drawMinimap();
    showMinimap();
    if (legend) legend.setAttribute("transform", `translate(0 ${root.now.height.toFixed(1)})`);
  };
  const foldUntilReadable = () => {
    const levels = []; // the boxes that fold, by their depth
    const visit = (box, depth) => {
      if (box.g.hasAttribute("aria-expanded")) (levels[depth] ??= []).push(box.id);
      box.children.forEach((child) => visit(child, depth + 1));
    };
    visit(root, 0);
    svg.querySelectorAll("g[data-repeats]").forEach((g) => folded.add(g.dataset.id));
    for (const ids of levels.reverse()) {
      place(root);
      const [, , width, height] = whole();
      if (Math.min(view.clientWidth / width, view.clientHeight / height) >= READABLE) return;
      ids?.forEach((id) => folded.add(id));
    }
  };
  const toggle = (id) => {
    folded.has(id) ? folded.delete(id) : folded.add(id);
    update();
  };

  // The visible part of the picture: left, top, width and height.
  let visible = [0, 0, 100, 100];
  const viewBox = (numbers) => numbers.map((number) => number.toFixed(2)).join(" ");
  const look = (...part) => {
    visible = part;
    svg.setAttribute("viewBox", viewBox(visible));
    showMinimap();
  };
  const showAll = () => look(...whole());

  // The whole picture in a corner, with a frame around the visible part. A click moves there.
  const node = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const minimap = node("svg", { class: "minimap", "aria-hidden": "true", hidden: "" });
  const frame = node("rect", { class: "visible" });
  const boxes = node("g", {});
  minimap.append(boxes, frame);
  view.append(minimap);
  const drawMinimap = () => {
    const copies = [];
    const visit = ({ id, g, now, children }, left, top) => {
      const [x, y] = [left + now.x, top + now.y];
      const loop = g.classList.contains("loop") ? "loop" : "";
      copies.push(node("rect", { class: loop, x, y, width: now.width, height: now.height }));
      if (!folded.has(id)) children.forEach((child) => visit(child, x, y));
    };
    visit(root, 0, 0);
    boxes.replaceChildren(...copies);
  };
  const showMinimap = () => {
    const [left, top, width, height] = whole();
    const scale = Math.max(visible[2] / view.clientWidth, visible[3] / view.clientHeight);
    const part = [view.clientWidth * scale, view.clientHeight * scale];
    const shown = [visible[0] + (visible[2] - part[0]) / 2, visible[1] + (visible[3] - part[1]) / 2];
    const inside = shown[0] <= left + 1 && shown[1] <= top + 1 &&
      shown[0] + part[0] >= left + width - 1 && shown[1] + part[1] >= top + height - 1;
    minimap.toggleAttribute("hidden", inside);
    const small = Math.min(MINIMAP[0] / width, MINIMAP[1] / height);
    minimap.setAttribute("width", width * small);
    minimap.setAttribute("height", height * small);
    minimap.setAttribute("viewBox", viewBox([left, top, width, height]));
    [["x", shown[0]], ["y", shown[1]], ["width", part[0]], ["height", part[1]]]
      .forEach(([name, value]) => frame.setAttribute(name, value));
  };
  listen(minimap, "pointerdown", (event) => {
    event.stopPropagation();
    const box = minimap.getBoundingClientRect(), [left, top, width, height] = whole();
    const x = left + ((event.clientX - box.left) / box.width) * width;
    const y = top + ((event.clientY - box.top) / box.height) * height;
    look(x - visible[2] / 2, y - visible[3] / 2, visible[2], visible[3]);
  });

  // Shows the whole picture if it is readable, else the full width from the top; if the letters would be too small to
  // read, shows the left edge, or the part around the first box if it is further right.
  const showStart = () => {
    showAll();
    if (Math.min(view.clientWidth / visible[2], view.clientHeight / visible[3]) >= READABLE) return;
    const window_ = view.getBoundingClientRect();
    const [left, top, all] = visible;
    const width = Math.max(Math.min(all, window_.width / 0.6), window_.width / 1.5);
    const first = root.children.length ? root.children[0].now : root.now;
    const centred = Math.min(Math.max(first.x + first.width / 2 - width / 2, left), left + all - width);
    const height = (width * window_.height) / Math.max(1, window_.width);
    const isFirstAtLeft = first.x + first.width + MARGIN <= left + width;
    if (width < all && isFirstAtLeft) look(left, top, width, height);
    else look(width < all ? centred : left - (width - all) / 2, top, width, height);
  };
  const zoom = (factor, x, y) => {
    const window_ = view.getBoundingClientRect();
    const shareX = x === undefined ? 0.5 : (x - window_.left) / window_.width;
    const shareY = y === undefined ? 0.5 : (y - window_.top) / window_.height;
    const [left, top, width, height] = visible;
    look(left + shareX * width * (1 - factor), top + shareY * height * (1 - factor), width * factor, height * factor);
  };

  let drag = null, moved = false;
  listen(view, "pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, visible };
    moved = false;
  });
  listen(window, "pointermove", (event) => {
    if (!drag) return;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (Math.hypot(dx, dy) > 4) moved = true;
    if (!moved) return;
    const window_ = view.getBoundingClientRect();
    const [left, top, width, height] = drag.visible;
    const scale = Math.max(width / window_.width, height / window_.height);
    look(left - dx * scale, top - dy * scale, width, height);
  });
  listen(window, "pointerup", () => (drag = null));
  listen(view, "wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, event.clientX, event.clientY);
  }, { passive: false });
  listen(svg, "click", (event) => {
    const g = event.target.closest("g[data-id]");
    if (!moved && g && g.hasAttribute("aria-expanded")) toggle(g.dataset.id);
  });
  listen(keys, "keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const g = event.target.matches && event.target.matches("g[aria-expanded]") ? event.target : null;
    if (event.target.matches && event.target.matches("button")) return;
    if ((event.key === "Enter" || event.key === " ") && g) {
      event.preventDefault();
      toggle(g.dataset.id);
    } else if (step) {
      event.preventDefault();
      const [left, top, width, height] = visible;
      look(left + step[0] * width * 0.1, top + step[1] * height * 0.1, width, height);
    } else if (event.key === "+") zoom(1 / 1.2);
    else if (event.key === "-") zoom(1.2);
    else if (event.key === "0") showAll();
  });

  // What hovering shows of a box, also for the keyboard. Screen readers read the title of the box itself.
  const about = document.createElement("pre");
  about.className = "about-box";
  about.setAttribute("aria-hidden", "true");
  about.hidden = true;
  view.append(about);
  // Moves the visible part so that it shows a box, or the beginning of one that is larger.
  const follow = (g) => {
    const box = g.querySelector("rect").getBoundingClientRect(), window_ = view.getBoundingClientRect();
    const past = (low, high, start, end) =>
      low < start + MARGIN ? low - start - MARGIN : Math.max(0, Math.min(high - end + MARGIN, low - start - MARGIN));
    const [dx, dy] = [
      past(box.left, box.right, window_.left, window_.right), past(box.top, box.bottom, window_.top, window_.bottom),
    ];
    const [left, top, width, height] = visible;
    const scale = Math.max(width / window_.width, height / window_.height);
    if (dx || dy) look(left + dx * scale, top + dy * scale, width, height);
  };
  listen(svg, "focusin", ({ target }) => {
    if (target.matches("g[data-id]:focus-visible")) follow(target);
    const [title] = children(target, "title");
    about.textContent = title ? title.textContent.trim() : "";
    about.hidden = !title || !target.matches(":focus-visible");
  });
  listen(svg, "focusout", () => (about.hidden = true));

  // Highlights the paths from the model's inputs to its results through an edge, in every box around the edge.
  const highlight = (path) => {
    const reach = (paths, start, near, far) => {
      const ids = new Set([start]), reached = new Set();
      // A set yields the values that are added while it is iterated.
      for (const id of ids)
        for (const edge of paths)
          if (edge.dataset[near] === id) {
            reached.add(edge);
            ids.add(edge.dataset[far]);
          }
      return [...reached, ...[...ids].map((id) => groups.get(id))];
    };
    let inside = path.parentElement, up = path.dataset.from, down = path.dataset.to;
    path.classList.add("lit");
    while (inside) {
      const paths = children(inside, "path:not(.back)");
      const elements = [...reach(paths, up, "to", "from"), ...reach(paths, down, "from", "to")];
      elements.forEach((element) => element.classList.add("lit"));
      const parent = inside.parentElement;
      up = down = parent.dataset.id;
      inside = parent.parentElement.closest("g.inside");
    }
  };
  const clear = () => svg.querySelectorAll(".lit").forEach((element) => element.classList.remove("lit"));
  svg.querySelectorAll("path[data-from]").forEach((path) => {
    listen(path, "pointerenter", () => highlight(path));
    listen(path, "pointerleave", clear);
  });

  const press = (id, act) => listen(document.getElementById(id), "click", act);
  press("fold", () => {
    svg.querySelectorAll("g[aria-expanded]").forEach((g) => folded.add(g.dataset.id));
    update();
    showStart();
  });
  press("unfold", () => {
    folded.clear();
    update();
    showStart();
  });
  press("zoom-in", () => zoom(1 / 1.2));
  press("zoom-out", () => zoom(1.2));
  press("whole", showAll);
  listen(window, "beforeprint", showAll);
  listen(window, "resize", showStart);
  if (folded === null) {
    folded = new Set();
    foldUntilReadable();
  }
  update();
  if (part) look(...part);
  else showStart();
  return () => {
    listeners.abort();
    return { folded, part: visible };
  };
};
