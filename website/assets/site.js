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
  link.parentElement.after(frame);
});
