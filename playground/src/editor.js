// The editor of a program: CodeMirror, asking the service for completions and what names mean.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, isolateHistory } from "@codemirror/commands";
import { bracketMatching, codeFolding, foldGutter, foldKeymap, foldService, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, StateEffect, Transaction } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers, tooltips } from "@codemirror/view";
import { arch, colouring, colours } from "./language.js";
import { element, markdown } from "./markdown.js";

const MONOSPACE = 'ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
const KINDS = { block: "function", model: "class", task: "interface", static: "property", value: "variable", input: "variable" };

const theme = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--ground)", color: "var(--text)", fontSize: "14px" },
  ".cm-scroller": { fontFamily: MONOSPACE, lineHeight: "1.45" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--card)", color: "var(--soft)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "var(--line-now)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--chosen)" },
  ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "6px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { background: "var(--chosen)", color: "var(--text)" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: MONOSPACE },
  ".cm-about": { maxWidth: "min(560px, 92vw)", maxHeight: "50vh", overflowY: "auto", padding: "4px 10px", font: "14px/1.4 system-ui, sans-serif" },
  ".cm-about p": { margin: "4px 0" },
  ".cm-about pre": { margin: "4px 0", whiteSpace: "pre-wrap", font: `13px/1.4 ${MONOSPACE}` },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", fontFamily: "system-ui, sans-serif", maxWidth: "min(560px, 92vw)" },
  ".cm-diagnosticAction": { backgroundColor: "var(--strong)", color: "var(--ground)", borderRadius: "4px" },
  ".cm-panels": { backgroundColor: "var(--card)", color: "var(--text)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--card)", borderColor: "var(--line)", color: "var(--soft)" },
  ".cm-matchingBracket": { backgroundColor: "var(--chosen) !important" },
});

// Sent when the service has said which lines fold, which may be after the text was drawn.
const newFolds = StateEffect.define();

// Text in place of a selection: Chromium would write it with inline styles, which the policy of the page forbids.
const replaceSelection = (event, view) => {
  if (event.inputType !== "insertText" || event.isComposing || event.data === null || view.state.selection.main.empty) return false;
  const { from, to } = view.state.selection.main, text = event.data;
  const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
  if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, text, insert))) view.dispatch(insert());
  event.preventDefault();
  return true;
};

export const makeEditor = (host, ask, highlighting, changed) => {
  // Within a shadow root, CodeMirror needs no inline styles, which the policy of the page forbids.
  const root = host.attachShadow({ mode: "open" });
  const language = arch(highlighting);
  const coloured = colouring(language);
  let folds = new Map(), diagnostics = [];

  const complete = async (context) => {
    const begun = context.matchBefore(/\w[\w.]*/);
    const isName = begun && /^\D/.test(begun.text);
    if (!isName && !context.explicit && !context.matchBefore(/[[.]/)) return null;
    const { options } = await ask("complete", { offset: context.pos }).catch(() => ({}));
    return options && {
      from: begun ? begun.from : context.pos,
      options: options.map(({ word, kind, detail }, place) => ({
        label: word.replace(/ ?= ?$/, ""),
        apply: word,
        detail: detail.length > 70 ? `${detail.slice(0, 69)}…` : detail,
        type: KINDS[kind] ?? kind,
        boost: -Math.min(99, place),
      })),
      validFor: /^[\w.]*$/,
    };
  };
  const describe = hoverTooltip(async (view, at) => {
    const found = await ask("hover", { offset: at }).catch(() => ({}));
    if (!found.text || found.to > view.state.doc.length) return null;
    const create = () => ({ dom: element("div", { className: "cm-about" }, markdown(found.text, coloured)) });
    return { pos: found.from, end: found.to, above: true, create };
  });
  const extensions = [
    lineNumbers(),
    foldGutter({ foldingChanged: ({ transactions }) => transactions.some(({ effects }) => effects.some((effect) => effect.is(newFolds))) }),
    codeFolding(),
    foldService.of((state, start) => {
      const first = state.doc.lineAt(start), last = folds.get(first.number - 1);
      return last === undefined || last >= state.doc.lines ? null : { from: first.to, to: state.doc.line(last + 1).to };
    }),
    history(),
    drawSelection(),
    EditorState.allowMultipleSelections.of(true),
    indentUnit.of("    "),
    language,
    syntaxHighlighting(colours),
    bracketMatching(),
    closeBrackets(),
    autocompletion({ override: [complete] }),
    describe,
    highlightActiveLine(),
    highlightSelectionMatches(),
    lintGutter(),
    tooltips({ position: "fixed" }),
    keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, ...lintKeymap]),
    EditorView.contentAttributes.of({ "aria-label": "Program", autocapitalize: "off", spellcheck: "false" }),
    EditorView.lineWrapping,
    EditorView.domEventHandlers({ beforeinput: replaceSelection }),
    theme,
    EditorView.updateListener.of((update) => update.docChanged && changed()),
  ];
  const view = new EditorView({ parent: root, root, state: EditorState.create({ extensions }) });

  const change = (edit) => {
    const { length } = view.state.doc;
    const changes = edit.changes.filter(({ from, to }) => from <= to && to <= length).map(({ from, to, text }) => ({ from, to, insert: text }));
    view.dispatch({ changes, userEvent: "input.edit" });
    view.focus();
  };
  return {
    coloured,
    change,
    text: () => view.state.doc.toString(),
    focus: (from, to = from) => {
      view.dispatch({ selection: { anchor: from, head: Math.min(to, view.state.doc.length) }, scrollIntoView: true });
      view.focus();
    },
    // Replaces the whole text, in one step to undo. The first program begins the history.
    replace: (text, isNew) => {
      const { length } = view.state.doc, isFirst = isNew && !length;
      if (isFirst) view.setState(EditorState.create({ doc: text, extensions }));
      else view.dispatch({
        changes: { from: 0, to: length, insert: text },
        annotations: [Transaction.userEvent.of("input.format"), isolateHistory.of("full")],
        ...(isNew && { selection: { anchor: 0 }, scrollIntoView: true }),
      });
      if (isFirst || text === "") changed();
    },
    mark: (mistakes) => {
      const { length } = view.state.doc;
      diagnostics = mistakes.filter(({ from, to, line }) => line && from <= to && to <= length);
      const shown = diagnostics.map(({ from, to, severity, code, message, remedy, edits }) => ({
        from, to, severity,
        source: code,
        message: remedy ? `${message}\n${remedy}` : message,
        actions: edits.map((edit) => ({ name: edit.title, apply: () => change(edit) })),
      }));
      view.dispatch(setDiagnostics(view.state, shown));
    },
    fold: (lines) => {
      folds = new Map(lines);
      view.dispatch({ effects: newFolds.of(null) });
    },
  };
};
