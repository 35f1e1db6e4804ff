"use strict";
(() => {
  const { constants: k, root } = facts;
  const svg = document.querySelector("svg.picture");
  const view = document.getElementById("view");
  const groups = new Map([...svg.querySelectorAll("g[data-id]")].map((g) => [g.dataset.id, g]));
  const folded = new Set();
  const boxes = new Map();
  const visit = (box, outer) => {
    box.outer = outer;
    boxes.set(box.id, box);
    (box.inside || []).forEach((one) => visit(one, box));
  };
  visit(root, null);

  // Where everything stands: the same as archlang/pages/pictures/arrange.py.
  const spread = (wanted, offsets) => {
    const pools = [];
    wanted.forEach((want, i) => {
      pools.push([want - offsets[i], 1]);
      while (pools.length > 1 && pools[pools.length - 2][0] > pools[pools.length - 1][0]) {
        const [mean, count] = pools.pop();
        const [before, many] = pools.pop();
        pools.push([(before * many + mean * count) / (many + count), many + count]);
      }
    });
    return pools.flatMap(([mean, count]) => Array(count).fill(mean)).map((mean, i) => mean + offsets[i]);
  };
  const centres = (box, width) => {
    const linked = new Map(box.rows.flat().map((id) => [id, [[], []]]));
    for (const chain of box.chains)
      for (let i = 1; i < chain.length; i++) {
        linked.get(chain[i])[0].push(chain[i - 1]);
        linked.get(chain[i - 1])[1].push(chain[i]);
      }
    const offsets = (row) => {
      const found = [0];
      for (let i = 1; i < row.length; i++)
        found.push(found[i - 1] + (width(row[i - 1]) + width(row[i])) / 2 + k.gap);
      return found;
    };
    const centre = new Map();
    for (const row of box.rows) {
      const at = offsets(row);
      row.forEach((id, i) => centre.set(id, at[i] - at[at.length - 1] / 2));
    }
    for (let sweep = 0; sweep < k.sweeps; sweep++) {
      const side = sweep % 2;
      for (const row of side ? [...box.rows].reverse() : box.rows) {
        const wanted = row.map((id) => {
          const near = linked.get(id)[side].length ? linked.get(id)[side] : linked.get(id)[1 - side];
          return near.length ? near.reduce((sum, one) => sum + centre.get(one), 0) / near.length : centre.get(id);
        });
        spread(wanted, offsets(row)).forEach((x, i) => centre.set(row[i], x));
      }
    }
    return centre;
  };
  const arrange = (box) => {
    box.w = box.width;
    box.h = box.height;
    if (!box.inside || folded.has(box.id)) return;
    box.inside.forEach(arrange);
    const inside = new Map(box.inside.map((one) => [one.id, one]));
    const width = (id) => (inside.has(id) ? inside.get(id).w : k.bend);
    const centre = centres(box, width);
    const ids = box.rows.flat();
    const shift = k.padding + k.gap / 2 - Math.min(...ids.map((id) => centre.get(id) - width(id) / 2));
    const right = Math.max(...ids.map((id) => centre.get(id) + shift + width(id) / 2));
    const at = new Map(), tops = [], bottoms = [];
    let y = box.height + k.rise / 2;
    box.rows.forEach((row, number) => {
      tops.push(y);
      y += Math.max(...row.map((id) => (inside.has(id) ? inside.get(id).h : 0)));
      bottoms.push(y);
      y += k.rise;
      for (const id of row) {
        at.set(id, number);
        if (inside.has(id)) Object.assign(inside.get(id), { x: centre.get(id) + shift - width(id) / 2, y: tops[number] });
      }
    });
    box.routes = box.chains.map((chain) => {
      const source = inside.get(chain[0]), target = inside.get(chain[chain.length - 1]);
      const x = (id) => centre.get(id) + shift;
      const points = [[x(source.id), source.y + source.h], [x(source.id), bottoms[at.get(source.id)]]];
      for (const bend of chain.slice(1, -1)) points.push([x(bend), tops[at.get(bend)]], [x(bend), bottoms[at.get(bend)]]);
      points.push([x(target.id), target.y]);
      return points;
    });
    box.back.forEach(([from, to], lane) => {
      const source = inside.get(from), target = inside.get(to);
      const apart = 3 + 2 * Math.min(lane, 3), x = right + k.gap / 2 + k.lane * lane;
      const start = source.x + source.w / 2, end = target.x + target.w / 2;
      const low = source.y + source.h + apart, high = target.y - apart;
      box.routes.push([[start, source.y + source.h], [start, low], [x, low], [x, high], [end, high], [end, target.y]]);
    });
    box.w = Math.max(box.width, right + k.gap / 2 + k.lane * box.back.length + k.padding);
    box.h = y - k.rise / 2;
  };
  const child = (g, selector) => [...g.children].find((one) => one.matches(selector));
  const draw = (box) => {
    const g = groups.get(box.id);
    const rect = child(g, "rect");
    rect.setAttribute("width", box.w.toFixed(1));
    rect.setAttribute("height", box.h.toFixed(1));
    g.setAttribute("transform", `translate(${(box.x || 0).toFixed(1)} ${(box.y || 0).toFixed(1)})`);
    if (!box.inside) return;
    const inner = child(g, "g.inside");
    const hidden = folded.has(box.id);
    inner.style.display = hidden ? "none" : "";
    if (g.hasAttribute("aria-expanded")) g.setAttribute("aria-expanded", String(!hidden));
    if (hidden) return;
    [...inner.children].filter((one) => one.matches("path")).forEach((path, i) => {
      path.setAttribute("d", "M" + box.routes[i].map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join(" L"));
    });
    box.inside.forEach(draw);
  };

  // What part of the picture is seen: its left upper corner, and how large it is.
  let window_ = [0, 0, 100, 100];
  const show = () => svg.setAttribute("viewBox", window_.map((one) => one.toFixed(2)).join(" "));
  const whole = () => {
    window_ = [-k.padding, -k.padding, root.w + 2 * k.padding, root.h + 2 * k.padding];
    show();
  };
  const begin = () => {
    // As wide as the picture, from its top; where letters would be too small to read, as much as can be read around its
    // first box. The rest is reached by dragging.
    whole();
    const room = view.getBoundingClientRect();
    const [edge, top, all] = window_;
    const wide = Math.max(Math.min(all, room.width / 0.6), room.width / 1.5);
    const first = root.inside ? root.inside[0] : root;
    const around = Math.min(Math.max(first.x + first.w / 2 - wide / 2, edge), edge + all - wide);
    window_ = [wide < all ? around : edge - (wide - all) / 2, top, wide, (wide * room.height) / Math.max(1, room.width)];
    show();
  };
  const zoom = (factor, x, y) => {
    const room = view.getBoundingClientRect();
    const px = x === undefined ? 0.5 : (x - room.left) / room.width;
    const py = y === undefined ? 0.5 : (y - room.top) / room.height;
    const [left, top, wide, high] = window_;
    window_ = [left + px * wide * (1 - factor), top + py * high * (1 - factor), wide * factor, high * factor];
    show();
  };
  const again = () => {
    arrange(root);
    draw(root);
  };
  const toggle = (id) => {
    folded.has(id) ? folded.delete(id) : folded.add(id);
    again();
  };
  let from = null, moved = false;
  view.addEventListener("pointerdown", (event) => {
    from = [event.clientX, event.clientY, ...window_];
    moved = false;
  });
  window.addEventListener("pointermove", (event) => {
    if (!from) return;
    const [dx, dy] = [event.clientX - from[0], event.clientY - from[1]];
    if (Math.hypot(dx, dy) > 4) moved = true;
    if (!moved) return;
    const room = view.getBoundingClientRect();
    const scale = Math.max(from[4] / room.width, from[5] / room.height);
    window_ = [from[2] - dx * scale, from[3] - dy * scale, from[4], from[5]];
    show();
  });
  window.addEventListener("pointerup", () => (from = null));
  view.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, event.clientX, event.clientY);
  }, { passive: false });
  svg.addEventListener("click", (event) => {
    const g = event.target.closest("g[data-id]");
    if (!moved && g && g.hasAttribute("aria-expanded")) toggle(g.dataset.id);
  });
  window.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const g = event.target.closest && event.target.closest("g[aria-expanded]");
    if (event.target.matches && event.target.matches("button")) return;
    if ((event.key === "Enter" || event.key === " ") && g) {
      event.preventDefault();
      toggle(g.dataset.id);
    } else if (step) {
      event.preventDefault();
      window_ = [window_[0] + step[0] * window_[2] * 0.1, window_[1] + step[1] * window_[3] * 0.1, window_[2], window_[3]];
      show();
    } else if (event.key === "+") zoom(1 / 1.2);
    else if (event.key === "-") zoom(1.2);
    else if (event.key === "0") whole();
  });

  // The way from the model's inputs to its results through an edge that is pointed at, in every box around it.
  const light = (path) => {
    const reach = (paths, start, near, far) => {
      const seen = new Set([start]);
      const ways = new Set();
      const left = [start];
      while (left.length) {
        const one = left.pop();
        for (const way of paths)
          if (way.dataset[near] === one) {
            ways.add(way);
            if (!seen.has(way.dataset[far])) {
              seen.add(way.dataset[far]);
              left.push(way.dataset[far]);
            }
          }
      }
      return [seen, ways];
    };
    let inner = path.parentElement, up = path.dataset.from, down = path.dataset.to;
    path.classList.add("lit");
    while (inner) {
      const paths = [...inner.children].filter((one) => one.matches("path:not(.back)"));
      for (const [seen, ways] of [reach(paths, up, "to", "from"), reach(paths, down, "from", "to")]) {
        ways.forEach((way) => way.classList.add("lit"));
        seen.forEach((id) => groups.get(id) && groups.get(id).classList.add("lit"));
      }
      const outer = inner.parentElement;
      up = down = outer.dataset.id;
      inner = outer.parentElement && outer.parentElement.closest("g.inside");
    }
  };
  const dark = () => svg.querySelectorAll(".lit").forEach((one) => one.classList.remove("lit"));
  svg.querySelectorAll("path[data-from]").forEach((path) => {
    path.addEventListener("pointerenter", () => light(path));
    path.addEventListener("pointerleave", dark);
  });
  const press = (id, act) => document.getElementById(id).addEventListener("click", act);
  press("fold", () => {
    boxes.forEach((box) => box.inside && box !== root && folded.add(box.id));
    again();
    begin();
  });
  press("unfold", () => {
    folded.clear();
    again();
    begin();
  });
  press("closer", () => zoom(1 / 1.2));
  press("farther", () => zoom(1.2));
  press("whole", whole);
  window.addEventListener("beforeprint", whole);
  window.addEventListener("resize", begin);
  again();
  begin();
})();
