"""A picture in the language of Mermaid, which GitHub and GitLab render in Markdown."""

from collections.abc import Iterator, Mapping

from archlang.pages.pictures.box import Box
from archlang.pages.pictures.label import label_text


def print_mermaid(box: Box) -> str:
    """Returns the picture as a .mmd file. Boxes with children are subgraphs."""
    box = box.without_repeats()
    ids = {inner.id: f"b{number}" for number, inner in enumerate(box.walk())}
    return "\n".join(["flowchart TD", *_subgraph(box, ids, "    ")]) + "\n"


def _subgraph(box: Box, ids: Mapping[str, str], indent: str) -> Iterator[str]:
    yield f"{indent}subgraph {ids[box.id]}[{_label(box)}]"
    for child in box.boxes:
        if child.boxes:
            yield from _subgraph(child, ids, indent + "    ")
        else:
            yield f"{indent}    {ids[child.id]}[{_label(child)}]"
    yield f"{indent}end"
    for edge in box.edges:
        yield f"{indent}{ids[edge.source]} {'-.->' if edge.back else '-->'} {ids[edge.target]}"


def _label(box: Box) -> str:
    """Returns the quoted text of a box. Characters that could be markup are written as entities."""
    return '"' + "<br/>".join("".join(map(_escaped, line)) for line in label_text(box)) + '"'


def _escaped(character: str) -> str:
    return f"#{ord(character)};" if character in '"#<>&;`\\[]{}|' else character
