// Trains the shown recipe, and shows its curve, its evaluations, and what the model does with an item.
import { element } from "./markdown.js";

const PAUSE = 700; // milliseconds between two looks at a training
const WIDTH = 600, HEIGHT = 180, LEFT = 64, BOTTOM = 24, MARGIN = 10;
const TRAINED = "archlang-trained"; // whether this tab has begun a training
const at = (id) => document.getElementById(id);
const digits = (value) => (value === null ? "" : value.toLocaleString("en", { maximumSignificantDigits: 4 }));

const drawn = (name, attributes, text = "") => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  return node;
};

// `recipe` returns the recipe to train, or null; `later` checks the program again. If `isStarted`, a page before this one has started a training.
export const makeTraining = (call, program, recipe, trying, later, isStarted) => {
  let curve = [], isWatched = false, isStopping = false, isOwn = false, shown = "";
  at("training-part").hidden = false;

  const showCurve = (steps) => {
    const losses = curve.map(([, loss]) => loss);
    const [low, high] = [Math.min(...losses), Math.max(...losses)];
    const right = WIDTH - MARGIN, bottom = HEIGHT - BOTTOM, below = HEIGHT - 8;
    const x = (step) => LEFT + ((right - LEFT) * step) / steps;
    const y = (loss) => MARGIN + ((bottom - 2 * MARGIN) * (high - loss)) / (high - low || 1);
    const points = curve.map(([step, loss]) => `${x(step).toFixed(1)},${y(loss).toFixed(1)}`).join(" ");
    const labels = [
      ["end", LEFT - 6, y(high) + 4, digits(high)], ["end", LEFT - 6, y(low) + 4, low < high ? digits(low) : ""],
      ["end", LEFT - 6, (MARGIN + bottom) / 2, "loss"], ["start", LEFT, below, "0"],
      ["middle", (LEFT + right) / 2, below, "step"], ["end", right, below, digits(steps)],
    ];
    at("curve").replaceChildren(
      drawn("path", { d: `M${LEFT},${MARGIN}V${bottom}H${right}` }),
      drawn("polyline", { points }),
      ...labels.map(([anchor, left, top, text]) => drawn("text", { "text-anchor": anchor, x: left, y: top }, text)),
    );
    at("curve").setAttribute("aria-label", `Loss by step: from ${digits(losses[0])} to ${digits(losses.at(-1))}, at least ${digits(low)}`);
    at("curve").toggleAttribute("hidden", !curve.length);
  };
  const showEvaluations = (evaluations) => {
    const names = [...new Set(evaluations.flatMap(({ metrics }) => Object.keys(metrics)))];
    const head = ["step", "split", ...names].map((name) => element("th", { scope: "col" }, name.replaceAll("_", " ")));
    at("evaluations").tHead.rows[0].replaceChildren(...head);
    const rows = evaluations.map(({ step, split, metrics }) =>
      element("tr", {}, ...[step, split, ...names.map((name) => digits(metrics[name] ?? null))].map((text) => element("td", {}, String(text)))),
    );
    at("evaluations").tBodies[0].replaceChildren(...rows);
    at("evaluations").hidden = !evaluations.length;
  };
  const show = ({ state, message, recipe: name, step, steps, evaluations, inspection }) => {
    const loss = curve.length ? `, loss ${digits(curve.at(-1)[1])}` : "";
    const running = isStopping ? "stopping" : step === steps ? "evaluating" : "training";
    const origin = isOwn ? "" : "\nThis tab began it before it was loaded again, or another tab did since.";
    const ends = { running, done: "trained", stopped: "stopped", failed: "failed" };
    at("progress").textContent = `${ends[state]} ${name}: step ${step} of ${steps}${loss}${message ? `\n${message}` : ""}${origin}`;
    if (curve.length) showCurve(steps);
    showEvaluations(evaluations);
    if (inspection && inspection !== shown) {
      shown = inspection;
      at("inspection").src = `framed/${inspection}`;
      at("inspection").hidden = false;
    }
    at("stop").disabled = state !== "running" || isStopping;
    at("train").disabled = state === "running";
  };
  const watch = trying(async (isForeign = false) => {
    if (isWatched) return;
    isWatched = true;
    try {
      for (;;) {
        const progress = await call("progress", { after: curve.length ? curve.at(-1)[0] : 0 });
        if (isForeign && progress.state !== "running") return;
        curve.push(...progress.curve);
        show(progress);
        if (progress.state !== "running") return;
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
      }
    } catch (error) {
      at("stop").disabled = true;
      at("train").disabled = false;
      throw error;
    } finally {
      isWatched = isStopping = false;
    }
  });
  at("train").onclick = trying(async () => {
    const name = recipe();
    if (at("mistakes").querySelector("li.error")) throw new Error("Correct the errors of the program first");
    if (name === null) throw new Error("The program has no recipe to train");
    curve = [];
    await call("train", { ...program(), recipe: name, steps: Number(at("steps").value) });
    isOwn = true;
    sessionStorage.setItem(TRAINED, "true");
    later(); // shows the mistakes again in place of an earlier message
    at("curve").toggleAttribute("hidden", true);
    at("inspection").hidden = true;
    watch();
  });
  at("stop").onclick = trying(async () => {
    isStopping = true;
    at("stop").disabled = true;
    await call("stop", {});
    watch();
  });
  // A new tab shows no finished training of another one; a running one can be stopped.
  if (isStarted) watch(!sessionStorage.getItem(TRAINED));
};
