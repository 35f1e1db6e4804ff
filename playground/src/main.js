// The page of the playground: the program at the left, its architecture at the right.
import { makeEditor } from "./editor.js";
import { packed, unpacked } from "./link.js";
import { element, markdown } from "./markdown.js";
import { server, worker } from "./services.js";
import { makeTraining } from "./training.js";

const PAUSE = 120; // milliseconds without a key before a program is checked
const FIRST = "gutlb"; // the shipped program that the page begins with
const KEPT = "archlang-program";
const LINKED = "archlang-linked"; // the fragment of the newest link that this tab has made
const at = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");

const say = (text, isError = false) => {
  at("status").textContent = text;
  at("status").classList.toggle("error", isError);
};
const trying = (act) => async (...values) => {
  try {
    return await act(...values);
  } catch (error) {
    say(error.message, true);
  }
};

const hash = location.hash.slice(1), fragment = new URLSearchParams(hash);
const isServed = document.documentElement.dataset.service === "server";
const call = isServed ? server(fragment) : worker((text) => say(text));
let beside = ""; // the shipped program whose files this one may use
let base = { text: "", name: "" }; // what the program is compared with
let editor, leave = null, title = "";
let origin = ""; // the shipped program that this one was begun with
// What each program that was begun with may use and is compared with, by its text: undoing returns to such a program.
const begun = new Map();
let damagedLink = null; // of a link without a program: the text that is shown in its place, once it is known

const fields = () => ({ text: editor.text(), beside });
const ask = (method, more) => call(method, { ...fields(), ...more });

// Checks and draws the newest text, one request at a time.
let timer = 0, isBusy = false, isOutdated = false;
const later = () => {
  ({ beside, base } = begun.get(editor.text()) ?? { beside, base });
  isOutdated = true;
  clearTimeout(timer);
  timer = setTimeout(update, PAUSE);
};
const update = trying(async () => {
  if (isBusy) return;
  isBusy = true;
  try {
    while (isOutdated) {
      isOutdated = false;
      const text = editor.text();
      const checked = await ask("check");
      // Places of a text that has changed since would be wrong.
      if (editor.text() === text) showCheck(checked);
      if (isOutdated) continue;
      showDrawing(await ask("draw", drawing()));
      keep(text);
    }
  } finally {
    isBusy = false;
  }
});

// The program is kept for this tab, so that a reload does not lose it.
const keep = (text) => sessionStorage.setItem(KEPT, JSON.stringify({ text, beside, base, origin }));

const showCheck = ({ diagnostics, folds }) => {
  editor.mark(diagnostics);
  editor.fold(folds);
  const errors = diagnostics.filter((each) => each.severity === "error").length;
  const warnings = diagnostics.length - errors;
  const notice = damagedLink && (damagedLink.text ??= editor.text()) === editor.text() ? "The link holds no program. " : "";
  const counted = (count, word) => (count ? [`${count} ${word}${count > 1 ? "s" : ""}`] : []);
  const result = [...counted(errors, "error"), ...counted(warnings, "warning")].join(", ") || "No errors";
  say(notice + result, notice !== "" || errors > 0);
  at("mistakes").replaceChildren(...diagnostics.map(mistake));
  at("correct").hidden = !diagnostics.some((each) => each.edits.length);
};

const mistake = ({ from, to, line, severity, code, message, remedy, edits }) => {
  const place = element("button", { className: "place" }, line ? `Line ${line}` : "Used file");
  place.onclick = () => line && editor.focus(from, to);
  const about = element("button", { className: "code", title: "What does this code mean?" }, code);
  about.onclick = trying(async () => explain(await call("explain", { code })));
  const mends = edits.map((edit) => {
    const mend = element("button", { className: "mend" }, edit.title);
    mend.onclick = () => editor.change(edit);
    return mend;
  });
  const remedyText = remedy ? [element("p", { className: "soft" }, remedy)] : [];
  return element("li", { className: severity }, place, about, ` ${message}`, ...remedyText, ...mends);
};

const explain = ({ text }) => {
  const close = element("button", {}, "Close");
  close.onclick = () => (at("explanation").hidden = true);
  at("explanation").replaceChildren(close, markdown(text, (program) => program));
  at("explanation").hidden = false;
  at("explanation").focus();
};

const drawing = () => {
  const words = at("lengths").value.split(/[\s,;]+/).filter(Boolean);
  const isLength = (word) => /^\d+$/.test(word) && Number(word) >= 1 && Number(word) <= 1_000_000;
  const lengths = words.filter(isLength), others = words.filter((word) => !isLength(word));
  const ignored = others.length ? [`Not lengths, which are whole numbers from 1 to 1,000,000: ${others.join(" ")}`] : [];
  if (lengths.length > 12) ignored.push(`Only 12 lengths are counted, without ${lengths.slice(12).join(" ")}`);
  at("ignored-lengths").textContent = ignored.join(". ");
  return {
    lengths: lengths.slice(0, 12).map(Number),
    shown: at("shown").value,
    before: base.text === editor.text() ? "" : base.text,
    together: at("together").checked,
  };
};

const showDrawing = ({ choices, shown, reason, svg, costs, changes }) => {
  // An open list stays open while its names are the same.
  if (choices.join() !== [...at("shown").options].map((option) => option.value).join())
    at("shown").replaceChildren(...choices.map((name) => element("option", { value: name }, name)));
  if (shown) at("shown").value = shown;
  at("reason").textContent = reason ?? "";
  at("view").classList.toggle("old", !svg);
  if (svg) showSvg(svg);
  at("costs-part").classList.toggle("old", costs?.model === undefined);
  if (!choices.length) clearDrawing(reason);
  else if (costs) showCosts(costs);
  else if (at("parameters").textContent) at("uncounted").textContent = "These are the costs of the program before its errors.";
  const isSame = base.text === editor.text();
  const unknown = costs ? "the program before has nothing to compare with" : "the changes are shown once this can be drawn";
  at("base").textContent = `Since ${base.name}: ${changes ? "" : isSame ? "no changes" : unknown}`;
  at("changes").replaceChildren(...(changes ?? []).map((text) => element("li", {}, text)));
  if (changes?.length === 0) at("changes").replaceChildren(element("li", {}, "nothing changed in the architecture"));
};

const showSvg = (svg) => {
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  const picture = document.importNode(parsed, true);
  const before = leave ? leave() : {};
  const name = picture.getAttribute("aria-label");
  at("view").replaceChildren(picture);
  // The same model keeps what is folded and the visible part.
  leave = showPicture(at("view"), at("view"), name === title ? before : {});
  title = name;
};

const showCosts = ({ model, parameters, executed, note, unknown, uncounted, lengths }) => {
  if (model === undefined) return;
  const least = unknown.length ? "at least " : "";
  const repeated = `; ${number(executed)} if each counts as often as loops use it at length ${lengths[0].length}`;
  at("parameters").textContent = `${model}: ${least}${number(parameters)} parameters${executed === parameters ? "" : repeated}`;
  const size = (bytes) => {
    const [unit, name] = bytes < 1e5 ? [1e3, "kB"] : [1e6, "MB"];
    return `${(bytes / unit).toLocaleString("en", { maximumFractionDigits: 1 })} ${name}`;
  };
  const rows = lengths.map(({ length, flops, bytes }) =>
    element("tr", {}, element("th", { scope: "row" }, number(length)), element("td", {}, number(flops)), element("td", {}, size(bytes))),
  );
  at("costs").tBodies[0].replaceChildren(...rows);
  const parts = [["parameters", unknown], ["FLOPs", uncounted]].filter(([, blocks]) => blocks.length);
  const without = parts.map(([what, blocks]) => `Without the ${what} of ${blocks.join(", ")}: a size is unknown, or their signatures do not say.`);
  at("uncounted").textContent = [note, ...without].join(" ").trim();
};

// The recipe that is shown, or the first; null if the program has none.
const recipe = () => {
  const names = [at("shown").value, ...[...at("shown").options].map((option) => option.value)];
  return names.find((name) => name.startsWith("recipe "))?.slice("recipe ".length) ?? null;
};

const begin = (text, name, besideName, begunWith = "") => {
  origin = begunWith;
  // The list shows its first option, so that each program can be chosen again.
  at("programs").options[0].textContent = origin || "…";
  if (editor.text()) begun.set(editor.text(), { beside, base });
  beside = besideName;
  base = { text, name };
  begun.set(text, { beside, base });
  at("explanation").hidden = true;
  clearDrawing();
  editor.replace(text, true);
};

const clearDrawing = (reason = "") => {
  if (leave) leave();
  leave = null;
  title = "";
  at("view").replaceChildren();
  at("costs").tBodies[0].replaceChildren();
  for (const id of ["parameters", "uncounted", "base"]) at(id).textContent = "";
  at("reason").textContent = reason;
  at("changes").replaceChildren();
};

const load = trying(async (name) => {
  const found = await call("program", { name });
  begin(found.text, name, found.beside, name);
  at("programs").value = "";
});

const shortened = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

const fill = (programs) => {
  const groups = new Map();
  for (const { name, summary, items } of programs) {
    const group = name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : "recipes";
    if (!groups.has(group)) groups.set(group, at("programs").appendChild(element("optgroup", { label: group })));
    const base = name.slice(name.lastIndexOf("/") + 1), title = `${summary} ${items}`.trim();
    const label = `${base}: ${shortened(summary, 70)} ${items && `(${shortened(items, 40)})`}`;
    groups.get(group).append(element("option", { value: name, title }, label));
  }
};

const first = async () => {
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  // A reload after `Link` keeps what was written since.
  const isOwn = kept !== null && hash === sessionStorage.getItem(LINKED);
  if (fragment.has("program") && !isOwn) {
    const text = await unpacked(fragment.get("program")).catch(() => null);
    if (text !== null) return begin(text, "the link", fragment.get("beside") ?? "");
    damagedLink = {};
  }
  if (kept === null) return load(FIRST);
  begin(kept.text, "", kept.beside, kept.origin);
  base = kept.base;
  begun.set(kept.text, { beside, base });
};

const copyLink = trying(async () => {
  const parts = new URLSearchParams({ program: await packed(editor.text()), ...(beside && { beside }) });
  history.replaceState(null, "", `#${parts}`);
  sessionStorage.setItem(LINKED, String(parts));
  try {
    await navigator.clipboard.writeText(location.href);
    say(isServed ? "The link is copied: it opens in this tab only, which has the token" : "The link is copied");
  } catch {
    say("The address of this page now holds the program");
  }
});

const start = trying(async () => {
  // A token is no part of the address to copy, and a reload keeps the program as it is by then.
  if (location.hash) history.replaceState(null, "", location.pathname);
  const { highlighting, programs, trains, is_started } = await call("start", {});
  fill(programs);
  if (trains) makeTraining(call, fields, recipe, trying, later, is_started);
  editor = makeEditor(at("editor"), ask, highlighting, later);
  at("programs").onchange = () => at("programs").value && load(at("programs").value);
  at("format").onclick = trying(async () => {
    const { text } = await ask("format");
    if (text === null) say("A program with syntax errors cannot be formatted", true);
    else if (text !== editor.text()) editor.replace(text, false);
  });
  at("correct").onclick = trying(async () => {
    const { text } = await ask("correct");
    if (text === null) say("No error has one sure correction: choose among the remedies");
    else editor.replace(text, false);
  });
  at("link").onclick = copyLink;
  at("keep").onclick = () => {
    base = { text: editor.text(), name: "the last “Compare from here”" };
    begun.set(base.text, { beside, base });
    later();
  };
  for (const id of ["shown", "lengths", "together"]) at(id).onchange = later;
  window.addEventListener("hashchange", () => location.reload());
  await first();
});
start();
