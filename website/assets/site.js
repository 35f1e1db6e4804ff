// A link to the playground opens it below the program; with a key such as Ctrl, in a new tab as other links.
document.addEventListener("click", (event) => {
  const link = event.target.closest("p.playground a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const below = link.parentElement.nextElementSibling;
  if (below?.matches("iframe.playground")) return below.remove();
  const frame = document.createElement("iframe");
  frame.className = "playground";
  frame.title = "Playground";
  frame.src = link.href;
  frame.addEventListener("load", () => {
    frame.rulesOfDark = [...frame.contentDocument.styleSheets]
      .flatMap((sheet) => [...sheet.cssRules])
      .filter((rule) => rule.media?.mediaText.includes("prefers-color-scheme: dark"));
    setScheme(frame);
  });
  link.parentElement.after(frame);
});

// The playground asks the browser for the colours that the reader prefers; here the page has a switch.
function setScheme(frame) {
  const isDark = document.body.dataset.mdColorScheme === "slate";
  frame.contentDocument.documentElement.style.colorScheme = isDark ? "dark" : "light";
  for (const rule of frame.rulesOfDark ?? []) rule.media.mediaText = isDark ? "all" : "not all";
}
new MutationObserver(() => document.querySelectorAll("iframe.playground").forEach(setScheme)).observe(document.body, {
  attributeFilter: ["data-md-color-scheme"],
});

// A table that is wider than the page scrolls; so that the keyboard can scroll it, it takes the focus.
addEventListener("load", () => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
  }
});
