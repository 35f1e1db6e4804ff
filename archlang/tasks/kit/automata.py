"""What the tasks share that run a finite automaton over random symbols, and ask for its state."""

from abc import abstractmethod
from collections.abc import Collection, Mapping

import numpy as np

from archlang.tasks.kit.drawing import DISJOINT_SHARES, Drawing, RandomStream, table_fingerprints
from archlang.tasks.kit.split import Integers, Ragged, Split, join_splits
from archlang.tasks.kit.task import Kind, ShippedTask, Unit

_BATCH_SYMBOLS = 1 << 20


class AutomatonTask(ShippedTask):
    """A task of this kind. The automaton begins in state 0. With `reveal = end` only the answer at the end counts."""

    length: int
    test_length: tuple[int, ...]
    reveal: str

    kind = Kind.TAGGING
    breakdown = "length"
    unit = Unit.POSITION
    metrics = ("accuracy", "sequence_accuracy")

    @property
    @abstractmethod
    def machine(self) -> tuple[Integers, Integers]:
        """The next state by state and symbol, [S, A], and the class of each state, [S]."""

    @property
    @abstractmethod
    def key(self) -> str:
        """What the random symbols depend on, besides the split, the length and the seed."""

    def split_names(self) -> tuple[str, ...]:
        return ("train", "valid", *(("test",) if self.test_length else ()))

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        return {"length": self._lengths(split)}

    def make(self, split: str, seed: int) -> Split:
        return join_splits([self._draw(split, length, seed) for length in self._lengths(split)])

    def _lengths(self, split: str) -> tuple[int, ...]:
        return self.test_length if split == "test" else (self.length,)

    def _draw(self, split: str, length: int, seed: int) -> Split:
        size, (transitions, classes) = self.size(split), self.machine
        rng = RandomStream(self.name, self.key, split, length, seed)
        search = Drawing(self.name, f"{split}_size", size, "choose longer sequences", share=DISJOINT_SHARES[split])
        rows = np.empty((size, length), dtype=np.uint8)
        while search.missing:
            batch = rng.below(transitions.shape[1], (max(1, _BATCH_SYMBOLS // length), length)).astype(np.uint8)
            done, fresh = size - search.missing, search.pick(table_fingerprints(batch))
            rows[done : done + len(fresh)] = batch[fresh]
        answers, states = np.empty_like(rows), np.zeros(size, dtype=np.int64)
        for place in range(length):
            states = transitions[states, rows[:, place]]
            answers[:, place] = classes[states]
        scored = np.ones_like(rows, dtype=np.bool_)
        scored[:, :-1] = self.reveal == "every"
        groups = {"length": np.full(size, length)}
        return Split({"x": Ragged.table(rows)}, Ragged.table(answers), Ragged.table(scored), groups)
