// The colours of programs. The words of the language come from the service.
import { HighlightStyle, StreamLanguage } from "@codemirror/language";
import { highlightTree, tags } from "@lezer/highlight";

export const arch = (words) => {
  const keywords = new Set(words);
  return StreamLanguage.define({
    name: "arch",
    token(stream) {
      if (stream.match(/#.*/)) return "comment";
      if (stream.match(/"[^"]*"?/)) return "string";
      if (stream.match(/\d+(\.\d+)?([eE][-+]?\d+)?/)) return "number";
      if (stream.match(/[A-Za-z_]\w*/)) {
        const word = stream.current();
        if (keywords.has(word)) return "keyword";
        return stream.match(/\s*[[(]/, false) ? "function" : "variableName";
      }
      if (stream.match(/<-|\|>|->|[=+\-*/<>]/)) return "operator";
      stream.next();
      return null;
    },
    tokenTable: { function: tags.function(tags.variableName) },
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
