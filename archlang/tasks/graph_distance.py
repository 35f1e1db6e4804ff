"""Graph distance: the number of edges between the first node of a graph and each other node.

Graphs are random: each pair of nodes is joined with the same probability (Gilbert, 1959, Random Graphs).

>>> task = GraphDistance(train=Interval(4, 5), test=Interval(6, 6), names=10, farthest=3, train_size=10)
>>> train = task.generate("train", seed=0)
>>> spell_graph(task, train, 0), [task.class_names[distance] for distance in train.targets[0]]
('3 2 6 1 | 6-2 6-1 3-1 3-2 6-3', ['0', '1', '1', '1'])
>>> spell_graph(task, train, 1), [task.class_names[distance] for distance in train.targets[1]]
('7 4 5 6 3 | 5-3 5-4 6-3', ['0', 'none', 'none', 'none', 'none'])
"""

from collections.abc import Collection, Mapping

import numpy as np

from archlang.tasks.kit.drawing import Fingerprints, RandomStream, combine, draw_distinct, fingerprints
from archlang.tasks.kit.split import Integers, Ragged, Split, Truths, offsets_of
from archlang.tasks.kit.task import Kind, ShippedTask, Task, Unit
from archlang.types.statics import Interval

_BATCH = 1 << 10


class GraphDistance(ShippedTask):
    test: Interval
    names: int
    degree: float
    farthest: int

    disjoint = ("train", "test")
    kind = Kind.TAGGING
    breakdown = "nodes"
    unit = Unit.POSITION

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(str(name) for name in range(self.names))

    @property
    def class_names(self) -> tuple[str, ...]:
        return (*(str(distance) for distance in range(self.farthest + 1)), "none")

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        return {"nodes": (self.test if split == "test" else self.train).values()}

    def make(self, split: str, seed: int) -> Split:
        nodes = self.test if split == "test" else self.train
        rng = RandomStream(self.name, split, nodes.low, nodes.high, seed)

        def draw(count: int) -> tuple[Split, Fingerprints]:
            return self._items(rng, nodes.low + rng.below(nodes.high - nodes.low + 1, count))

        remedy = "more `names`, or larger graphs"
        return draw_distinct(self.name, split, self.size(split), draw, _BATCH, remedy)

    def _items(self, rng: RandomStream, counts: Integers) -> tuple[Split, Fingerprints]:
        items, most = len(counts), int(counts.max())
        names = np.argsort(rng.words((items, self.names)), axis=1, kind="stable")
        first, second = np.triu_indices(most, 1)
        inside = second < counts[:, None]
        joined = (rng.real((items, len(first))) * (counts[:, None] - 1) < self.degree) & inside
        joined[:, 0] |= ~joined.any(axis=1)  # the pair of the first two nodes
        order = np.argsort(
            np.where(joined, rng.words(joined.shape) >> np.uint64(1), np.uint64(2**64 - 1)), axis=1, kind="stable"
        )
        edges = np.arange(joined.shape[1]) < joined.sum(axis=1)[:, None]
        swapped = rng.below(2, joined.shape).astype(np.bool_)
        ends = np.stack([np.where(swapped, first, second), np.where(swapped, second, first)])
        left, right = (np.take_along_axis(names, np.take_along_axis(end, order, axis=1), axis=1) for end in ends)
        distances = self._class_of_each_node(joined, first, second, most)
        real = np.arange(most) < counts[:, None]
        offsets, edge_offsets = offsets_of(counts), offsets_of(joined.sum(axis=1))
        fields = {
            "left": Ragged(left[edges].astype(np.uint16), edge_offsets),
            "right": Ragged(right[edges].astype(np.uint16), edge_offsets),
            "node": Ragged(names[:, :most][real].astype(np.uint16), offsets),
        }
        split = Split(fields, Ragged(distances[real].astype(np.uint8), offsets), groups={"nodes": counts})
        prints = [fingerprints(field) for field in fields.values()]
        return split, combine(combine(prints[0], prints[1]), prints[2])

    def _class_of_each_node(self, joined: Truths, first: Integers, second: Integers, most: int) -> Integers:
        adjacent = np.zeros((len(joined), most, most), dtype=np.bool_)
        adjacent[:, first, second] = adjacent[:, second, first] = joined
        distances = np.full((len(joined), most), self.farthest + 1, dtype=np.int64)
        distances[:, 0] = 0
        reached = distances == 0
        for step in range(1, most):
            fresh = (adjacent & reached[:, None, :]).any(axis=2) & ~reached
            if not fresh.any():
                break
            distances[fresh] = min(step, self.farthest)
            reached |= fresh
        return distances


def spell_graph(task: Task, split: Split, index: int) -> str:
    """Returns the nodes of a graph, and its edges as text."""
    left, right, nodes = ([task.vocabulary[name] for name in field[index]] for field in split.inputs.values())
    return " ".join([*nodes, "|", *(f"{one}-{two}" for one, two in zip(left, right, strict=True))])
