"""The distances of a graph are those of its edges."""

import numpy as np
import pytest

from archlang.tasks.graph_distance import GraphDistance
from archlang.types.statics import Interval
from tests.tasks.every import answers_of

SMALL = GraphDistance(
    train=Interval(3, 6), test=Interval(7, 12), names=16, farthest=3, train_size=80, valid_size=10, test_size=30
)


@pytest.mark.parametrize("split", SMALL.split_names())
def test_each_node_is_answered_with_its_distance_from_the_first(split: str) -> None:
    items = SMALL.generate(split, 0)
    for index in range(len(items)):
        nodes, left, right = (items.inputs[name][index].tolist() for name in ("node", "left", "right"))
        assert len(set(nodes)) == len(nodes) == items.groups["nodes"][index]
        edges = {frozenset(edge) for edge in zip(left, right, strict=True)}
        assert len(edges) == len(left), "no edge is listed twice"
        assert set(left + right) <= set(nodes)
        distances = dict.fromkeys(nodes, 4)
        distances[nodes[0]] = 0
        for _ in nodes:
            for a, b in (tuple(edge) for edge in edges):
                for one, two in ((a, b), (b, a)):
                    if distances[one] < 4:
                        distances[two] = min(distances[two], distances[one] + 1, 3)
        assert answers_of(items)[index].tolist() == [distances[node] for node in nodes]


def test_a_node_has_as_many_edges_as_asked() -> None:
    items = GraphDistance(train=Interval(10, 10), degree=3.0, train_size=2_000).generate("train", 0)
    assert items.inputs["left"].lengths.mean() == pytest.approx(15, rel=0.02)
    first = np.asarray([items.inputs["left"][index][0] for index in range(500)])
    assert len(set(first.tolist())) == 32, "numbers mean nothing"
