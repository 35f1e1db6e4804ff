// The colours of programs. The rules come from the service.
import { HighlightStyle, StreamLanguage } from "@codemirror/language";
import { highlightTree, tags } from "@lezer/highlight";
import { splitter } from "./tokens.js";

const TAGS = {
  documentation: tags.comment,
  comment: tags.comment,
  string: tags.string,
  number: tags.number,
  keyword: tags.keyword,
  constant: tags.keyword,
  definition: tags.function(tags.variableName),
  function: tags.function(tags.variableName),
};

export const arch = (rules) => {
  const tokensAt = splitter(rules);
  return StreamLanguage.define({
    name: "arch",
    startState: () => ({ pending: [] }),
    token(stream, state) {
      if (!state.pending.length) state.pending = tokensAt(stream.string, stream.pos);
      const [length, kind] = state.pending.shift();
      stream.pos += length;
      return kind in TAGS ? kind : null;
    },
    tokenTable: TAGS,
    languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
  });
};

export const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--word)", fontWeight: "600" },
  { tag: tags.comment, color: "var(--comment)", fontStyle: "italic" },
  { tag: tags.string, color: "var(--string)" },
  { tag: tags.number, color: "var(--number)" },
  { tag: tags.function(tags.variableName), color: "var(--strong)" },
]);

// A program as coloured elements, for texts within the editor's styles.
export const colouring = (language) => (text) => {
  const parts = document.createDocumentFragment();
  let at = 0;
  highlightTree(language.parser.parse(text), colours, (from, to, classes) => {
    parts.append(text.slice(at, from));
    const part = parts.appendChild(document.createElement("span"));
    part.className = classes;
    part.textContent = text.slice(from, to);
    at = to;
  });
  parts.append(text.slice(at));
  return parts;
};
