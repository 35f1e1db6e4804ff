"""`gradient(loss, value)`: a node whose body is what leads from the value to the loss."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from archlang.elaborate import mistakes
from archlang.elaborate.frame import Frame
from archlang.elaborate.region_builder import Flow, RegionBuilder
from archlang.errors import Report, Span
from archlang.graph.graph import Input, Node, Region, is_loss_of
from archlang.graph.inline import rename
from archlang.graph.operations import Gradient, Halting, Literal, Loss
from archlang.resolve.resolve import GRADIENT
from archlang.syntax import tree
from archlang.types import FEATURED


def is_gradient(callee: tree.Name, frame: Frame) -> bool:
    """Whether a call is the form, and not of a block or value of this name."""
    name = callee.text
    hides = frame.find(name)[0] or frame.binding.lookup(name) is not None or frame.file.find(name) is not None
    return name == GRADIENT and not hides


def gradient(
    statics: Sequence[tree.StaticArgument], values: Sequence[tuple[Flow | None, Span]], span: Span, report: Report
) -> Flow | None:
    """Returns the gradient of the first of two values with respect to the second; None after a mistake."""
    if len(values) != 2 or statics:
        report(mistakes.gradient_of_two(span))
        return None
    (loss, loss_span), (value, value_span) = values
    if loss is None or value is None:
        return None
    if value.type.name not in FEATURED:
        report(mistakes.gradient_by_no_numbers(value_span, value.type))
        return None
    if not is_loss_of(loss.type, value.type):
        report(mistakes.gradient_of_no_loss(loss_span, loss.type, value.type))
        return None
    body = _between(value, loss)
    if body is None:
        report(mistakes.gradient_of_constant(loss_span, value_span))
        return None
    halting = next((node for node in body.walk() if isinstance(node.operation, Halting)), None)
    settled = next((node for node in body.walk() if getattr(node.operation, "settled", False)), None)
    if settled is not None:
        report(mistakes.gradient_of_settled(loss_span, settled.span or loss_span))
        return None
    if halting is not None:
        report(mistakes.gradient_of_halting(loss_span, halting.span or loss_span))
        return None
    builder = loss.builder
    captured = [Flow(builder, outer.id, outer.type, span) for outer in body.inputs[1:]]
    copy = _copied(body, builder.size.new_id)
    return builder.add_node(Gradient(), [value, *captured], [value.type], span, [copy])[0]


def _between(value: Flow, loss: Flow) -> Region | None:
    """Returns what computes the loss from the value, which is its first input; None if the loss does not depend on it
    in the body that computes it."""
    builder = loss.builder
    around: RegionBuilder | None = builder
    while around is not None and around is not value.builder:
        around = around.parent
    if around is None:
        return None
    origin = builder.local_id(value)
    moved = {origin}
    for node in builder.nodes:
        if not moved.isdisjoint(node.inputs):
            moved.add(node.id)
    if loss.id not in moved:
        return None
    needed, nodes = {loss.id}, list[Node]()
    for node in reversed(builder.nodes):
        is_own = node.id in moved or isinstance(node.operation, Literal)
        if node.id in needed and is_own and node.id != origin:
            nodes.append(node)
            needed.update(node.inputs)
    outside = needed - {node.id for node in nodes} - {origin}
    names = {own.id: own.name for own in builder.inputs} | {own.id: own.name for own in builder.nodes}
    types = Region(tuple(builder.inputs), tuple(builder.nodes), ()).types()
    inputs = [Input(source, types[source], names[source]) for source in (origin, *(i for i in types if i in outside))]
    return Region(tuple(inputs), tuple(reversed(nodes)), (loss.id,))


def _copied(region: Region, new_id: Callable[[], str]) -> Region:
    """Returns the region with ids of its own, and without auxiliary losses, which count where they are written."""
    nodes = [node for node in region.nodes if not isinstance(node.operation, Loss)]
    names = {identity: new_id() for identity in (*(value.id for value in region.inputs), *(node.id for node in nodes))}
    copies = [
        replace(
            node, id=names[node.id], inputs=rename(node.inputs, names),
            regions=tuple(_copied(body, new_id) for body in node.regions),
        )
        for node in nodes
    ]  # fmt: skip
    inputs = (replace(value, id=names[value.id]) for value in region.inputs)
    return Region(tuple(inputs), tuple(copies), rename(region.results, names))
