"""The pass `slices`: cuts the features of a value once, where blocks take parts of it one by one.

    i = self.slice_features(g)                  g_parts = g.split_with_sizes([64, 64], -1)
    f = self.slice_features_2(g)                i = g_parts[0]
                                                f = g_parts[1]

The derivative of a slice writes a whole value, and those of several are added up; that of a cut is one concatenation.
The class of a block that takes `width` features from `start` on has `acts_as = "part"`."""

import operator
from collections import defaultdict
from collections.abc import Mapping, Sequence

from torch import fx, nn

from archlang.graph.graph import Instance, Node
from archlang.graph.operations import Call


def cut_once(
    graph: fx.Graph,
    nodes: Mapping[str, Node],
    instances: Mapping[str, Instance],
    classes: Mapping[str, type[nn.Module]],
) -> fx.Graph:
    """Returns the graph in which a value is cut once. `nodes` are those of its values, by their names."""
    slices: dict[fx.Node, dict[fx.Node, Instance]] = defaultdict(dict)
    for node in graph.nodes:
        origin = nodes.get(node.name)
        if node.op != "call_module" or origin is None or not isinstance(origin.operation, Call):
            continue
        path = origin.operation.instance
        if getattr(classes.get(path), "acts_as", "") == "part":
            slices[node.args[0]][node] = instances[path]
    cuts = {source: sizes for source, parts in slices.items() if (sizes := _sizes(list(parts.values())))}
    if not cuts:
        return graph
    cut, copies, parts = fx.Graph(), dict[fx.Node, fx.Node](), dict[fx.Node, fx.Node]()
    for node in graph.nodes:
        source = next((value for value in cuts if node in slices[value]), None)
        if source is None:
            copies[node] = cut.node_copy(node, copies.__getitem__)
            continue
        starts, widths = cuts[source]
        if source not in parts:
            arguments = (copies[source], widths, -1)
            parts[source] = cut.create_node("call_method", "split_with_sizes", arguments, {}, f"{source.name}_parts")
        place = starts.index(_place(slices[source][node])[0])
        copies[node] = cut.create_node("call_function", operator.getitem, (parts[source], place), {}, node.name)
    return cut


def _sizes(parts: Sequence[Instance]) -> tuple[list[int], list[int]] | None:
    """Returns where the parts of a value begin that it is cut into, and their widths; None if slices overlap."""
    starts, widths, end = list[int](), list[int](), 0
    places = {_place(instance) for instance in parts}
    for start, width in sorted(places):
        if start < end:
            return None
        for begin, size in ((end, start - end), (start, width)):
            if size:
                starts.append(begin)
                widths.append(size)
        end = start + width
    features = parts[0].features["d"].constant
    if len(places) < 2 or features is None:
        return None
    return starts, widths + ([features - end] if features > end else [])


def _place(instance: Instance) -> tuple[int, int]:
    start, width = instance.statics["start"], instance.statics["width"]
    assert isinstance(start, int)
    assert isinstance(width, int)
    return start, width
