"""A picture in the language of Mermaid, as GitHub and GitLab show it in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from archlang.pages.pictures.arrange import lines
from archlang.pages.pictures.picture import Box


def print_mermaid(box: Box) -> str:
    """The picture as a .mmd file: boxes that hold others are subgraphs."""
    ids = {one.id: f"b{number}" for number, one in enumerate(box.walk())}
    return "\n".join(["flowchart TD", *_subgraph(box, ids, "    ")]) + "\n"


def _subgraph(box: Box, ids: dict[str, str], indent: str) -> Iterator[str]:
    yield f"{indent}subgraph {ids[box.id]}[{_text(box)}]"
    for one in box.boxes:
        if one.boxes:
            yield from _subgraph(one, ids, indent + "    ")
        elif one.kind == "value":
            yield f"{indent}    {ids[one.id]}([{_text(one)}])"
        else:
            yield f"{indent}    {ids[one.id]}[{_text(one)}]"
    yield f"{indent}end"
    for edge in box.edges:
        yield f"{indent}{ids[edge.source]} {'-.->' if edge.back else '-->'} {ids[edge.target]}"


def _text(box: Box) -> str:
    """Quoted; whatever could be markup is written as a character's number."""
    return '"' + "<br/>".join("".join(map(_sign, line)) for line in lines(box)) + '"'


def _sign(character: str) -> str:
    return f"#{ord(character)};" if character in '"#<>&;`\\[]{}|' else character
