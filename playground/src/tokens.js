// Splits lines of a program by the rules of archlang/editor/highlighting.py.
export const splitter = (rules) => {
  const compiled = rules.map(({ pattern, kinds }) => [new RegExp(pattern, "y"), kinds]);
  // Returns the length and the kind of each token of the first rule that matches at a place of a line.
  return (line, place) => {
    for (const [pattern, kinds] of compiled) {
      pattern.lastIndex = place;
      const match = pattern.exec(line);
      if (match) return kinds.map((kind, group) => [match[group + 1].length, kind]).filter(([length]) => length);
    }
    return [[1, null]];
  };
};
