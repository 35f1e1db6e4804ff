"""Lines about parameters and FLOPs for the boxes of a picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archlang.graph.graph import Graph
from archlang.graph.summary import summarize, weights

LENGTH = 64  # positions of the sample whose FLOPs are counted
_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")


@dataclass(frozen=True)
class CostNotes:
    """`notes` are rounded and short, `details` exact."""

    notes: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


def cost_notes(graph: Graph) -> Mapping[str, CostNotes]:
    """Returns the lines for each node by its id, and those for the model by the id "".

    `parameters` counts one set of weights, `executed` the weights of all steps."""
    summary = summarize(graph, LENGTH)
    notes: dict[str, CostNotes] = {}
    for node in graph.region.walk():
        cost = summary.nodes.get(node.id)
        if node.instance is None and not node.regions:
            continue
        if cost is None:
            notes[node.id] = CostNotes(("not computed",), ("no result and no charge needs it",))
            continue
        count = weights(graph, node, summary.nodes)
        short, exact = [], []
        if count:
            executed = f", {cost.parameters:,} executed" if cost.parameters > count else ""
            short.append(f"{rounded(count)} parameters")
            exact.append(f"{count:,} parameters{executed}")
        if cost.flops:
            short.append(f"{rounded(cost.flops)} FLOPs")
            exact.append(f"{cost.flops:,} FLOPs")
        notes[node.id] = CostNotes((", ".join(short),) if short else (), tuple(exact))
    model = (
        f"{summary.unique:,} parameters, {summary.executed:,} executed{_without(summary.unknown)}",
        f"{summary.flops:,} FLOPs for a sample of {LENGTH} positions{_without(summary.uncounted)}",
    )
    notes[""] = CostNotes(model)
    return notes


def _without(blocks: Sequence[str]) -> str:
    """Returns what a count lacks: the blocks with an unknown size."""
    return f", without {', '.join(blocks)}" if blocks else ""


def rounded(number: float) -> str:
    """Returns a number with three digits and a prefix of SI.

    >>> rounded(640), rounded(65_925), rounded(999_999), rounded(126_222_336)
    ('640', '65.9k', '1M', '126M')"""
    power = 0
    while number >= 999.5 and power < len(_PREFIXES) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.3g}{_PREFIXES[power]}"
