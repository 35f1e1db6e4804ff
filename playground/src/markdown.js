// Markdown as elements. Every text becomes a text node, so nothing in it can act on the page.

export const element = (name, properties = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) key in made ? (made[key] = value) : made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const SIGNS = { "&lt;": "<", "&amp;": "&" };

const inline = (text) =>
  text.split(/(\\[\\`*_[\]#>]|&(?:lt|amp);|`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]*\))/).map((part) => {
    if (part in SIGNS) return SIGNS[part];
    if (part.startsWith("\\") && part.length === 2) return part[1];
    if (part.startsWith("`") && part.endsWith("`") && part.length > 2) return element("code", {}, part.slice(1, -1));
    if (part.startsWith("**") && part.length > 4) return element("strong", {}, part.slice(2, -2));
    const link = part.match(/^\[([^\]]+)\]\([^)]*\)$/);
    return link ? link[1] : part;
  });

// Headings, paragraphs, lists and fenced programs; `coloured` makes the elements of a program.
export const markdown = (text, coloured) => {
  const parts = document.createDocumentFragment();
  let lines = [], list = null;
  const flush = () => {
    if (lines.length) parts.append(element("p", {}, ...inline(lines.join(" "))));
    lines = [];
    list = null;
  };
  const all = text.split("\n");
  for (let i = 0; i < all.length; i++) {
    const line = all[i], heading = line.match(/^(#+) (.*)/), item = line.match(/^[-*] (.*)/);
    if (line.startsWith("```")) {
      flush();
      const [fence] = line.match(/^`+/);
      const end = all.findIndex((other, at) => at > i && other.startsWith(fence));
      const program = all.slice(i + 1, end < 0 ? all.length : end).join("\n");
      parts.append(element("pre", {}, line.slice(fence.length).startsWith("arch") ? coloured(program) : program));
      i = end < 0 ? all.length : end;
    } else if (heading) {
      flush();
      parts.append(element("h3", {}, ...inline(heading[2])));
    } else if (item) {
      if (!list) {
        flush();
        list = parts.appendChild(element("ul"));
      }
      list.append(element("li", {}, ...inline(item[1])));
    } else if (!line.trim()) flush();
    else lines.push(line.trim());
  }
  flush();
  return parts;
};
