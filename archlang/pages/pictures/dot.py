"""A picture in the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from archlang.pages.pictures.arrange import lines
from archlang.pages.pictures.picture import Box


def print_dot(box: Box) -> str:
    """The picture as a .dot file: boxes that hold others are clusters."""
    heading = ["digraph model {", "    compound=true; node [shape=box, fontname=monospace, fontsize=10];"]
    return "\n".join([*heading, *_cluster(box, "    "), "}"]) + "\n"


def _cluster(box: Box, indent: str) -> Iterator[str]:
    yield f"{indent}subgraph {_quoted('cluster_' + box.id)} {{"
    inner = indent + "    "
    yield f"{inner}label={_text(box)}; labeljust=l; fontname=monospace;"
    for one in box.boxes:
        if one.boxes:
            yield from _cluster(one, inner)
        else:
            shape = ", shape=plaintext" if one.kind == "value" else ""
            yield f"{inner}{_quoted(one.id)} [label={_text(one)}{shape}];"
    yield f"{indent}}}"
    opens = {one.id: one for one in box.boxes if one.boxes}
    for edge in box.edges:
        settings = ["style=dashed", "constraint=false"] if edge.back else []
        source, target = edge.source, edge.target
        if target in opens:
            settings.append(f"lhead={_quoted('cluster_' + target)}")
            target = _leaf(opens[target], 0)
        if source in opens:
            settings.append(f"ltail={_quoted('cluster_' + source)}")
            source = _leaf(opens[source], -1)
        said = f" [{', '.join(settings)}]" if settings else ""
        yield f"{indent}{_quoted(source)} -> {_quoted(target)}{said};"


def _leaf(box: Box, index: int) -> str:
    return _leaf(box.boxes[index], index) if box.boxes else box.id


def _text(box: Box) -> str:
    return _quoted("\n".join(lines(box)))


def _quoted(text: str) -> str:
    # Graphviz has no other escapes that matter: a backslash of the text itself is doubled.
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
