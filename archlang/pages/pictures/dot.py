"""A picture in the language of Graphviz."""

from collections.abc import Iterator

from archlang.pages.pictures.box import Box
from archlang.pages.pictures.label import label_text


def print_dot(box: Box) -> str:
    """Returns the picture as a .dot file. Boxes with children are clusters."""
    heading = ["digraph model {", "    compound=true; node [shape=box, fontname=monospace, fontsize=10];"]
    return "\n".join([*heading, *_cluster(box.without_repeats(), "    "), "}"]) + "\n"


def _cluster(box: Box, indent: str) -> Iterator[str]:
    yield f"{indent}subgraph {_quoted('cluster_' + box.id)} {{"
    inner = indent + "    "
    yield f"{inner}label={_label(box)}; labeljust=l; fontname=monospace;"
    for child in box.boxes:
        if child.boxes:
            yield from _cluster(child, inner)
        else:
            yield f"{inner}{_quoted(child.id)} [label={_label(child)}];"
    yield f"{indent}}}"
    clusters = {child.id: child for child in box.boxes if child.boxes}
    for edge in box.edges:
        # Graphviz connects nodes only: an edge of a cluster ends at a node inside it and is clipped at the border.
        attributes = ["style=dashed", "constraint=false"] if edge.back else []
        source, target = edge.source, edge.target
        if target in clusters:
            attributes.append(f"lhead={_quoted('cluster_' + target)}")
            target = _leaf(clusters[target], 0)
        if source in clusters:
            attributes.append(f"ltail={_quoted('cluster_' + source)}")
            source = _leaf(clusters[source], -1)
        suffix = f" [{', '.join(attributes)}]" if attributes else ""
        yield f"{indent}{_quoted(source)} -> {_quoted(target)}{suffix};"


def _leaf(box: Box, index: int) -> str:
    return _leaf(box.boxes[index], index) if box.boxes else box.id


def _label(box: Box) -> str:
    return _quoted("\n".join(label_text(box)))


def _quoted(text: str) -> str:
    # Graphviz has no other escapes that matter: a backslash of the text is doubled.
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
