"""A picture for the terminal: a tree of boxes with the types of their values."""

from collections.abc import Iterator

from archlang.pages.pictures.box import Box


def print_tree(box: Box) -> str:
    """Returns the picture as text, one line for each box. The results of a loop stand at the end of its body."""
    heading = "  ".join([box.title, *box.notes])
    return "\n".join([heading, *_lines(box.without_repeats(), "")]) + "\n"


def _lines(box: Box, indent: str) -> Iterator[str]:
    outputs = {child.id: child.output for child in box.boxes}
    sources = {edge.target: edge.source for edge in box.edges if not edge.back}
    children = sorted(box.boxes, key=lambda child: child.kind == "result")
    for index, child in enumerate(children):
        last = index == len(children) - 1
        title = f"{child.title} [weights {child.badge}]" if child.badge else child.title
        text = "  ".join([title, *child.notes])
        if child.kind == "result":
            source = outputs.get(sources.get(child.id, ""), "")
            text = f"{child.title} ← {source}" if source else child.title
        elif child.output:
            text += f"  → {child.output}"
        yield f"{indent}{'└─ ' if last else '├─ '}{text}"
        yield from _lines(child, indent + ("   " if last else "│  "))
