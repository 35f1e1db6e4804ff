"""What the tasks of the Chomsky hierarchy share: they train on short and test on long sequences of random symbols.

Delétang et al. (2023), Neural Networks and the Chomsky Hierarchy. Every length of a split is equally likely. Items may
repeat, because there are few short ones."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.split import Integers, Ragged, Split, offsets_of
from archlang.tasks.kit.task import ShippedTask
from archlang.types.statics import Interval

# The width of the groups of lengths that results are broken down by.
_STEP = 50


class ChomskyTask(ShippedTask):
    """A task of this kind. `train` and `test` are ranges of lengths."""

    test: Interval

    disjoint = ("train", "test")
    breakdown = "length"
    version = 2

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        lengths = self.test if split == "test" else self.train
        return {"length": {max(length // _STEP * _STEP, lengths.low) for length in lengths.values()}}

    def make(self, split: str, seed: int) -> Split:
        allowed_lengths, size = self.test if split == "test" else self.train, self.size(split)
        rng = RandomStream(self.name, split, seed)
        lengths = allowed_lengths.low + rng.below(allowed_lengths.high - allowed_lengths.low + 1, size)
        items = self.items(rng, lengths)
        # A group is called by its shortest length, so those of `train` are none of `test`.
        return replace(items, groups={"length": np.maximum(items.groups["length"], allowed_lengths.low)})

    @abstractmethod
    def items(self, rng: RandomStream, lengths: Integers) -> Split:
        """Returns random items of these lengths [N]."""


def length_groups(lengths: Integers) -> dict[str, Integers]:
    """Returns the group `length` of lengths [N]: 0 for 0 to 49, 50 for 50 to 99, and so on."""
    return {"length": lengths // _STEP * _STEP}


def random_symbols(rng: RandomStream, count: int, lengths: Integers) -> Ragged:
    """Returns random sequences of these lengths [N] over `count` symbols."""
    offsets = offsets_of(lengths)
    return Ragged(rng.below(count, int(offsets[-1])).astype(np.uint8), offsets)


def with_answer_tape(
    x: Ragged, answers: Ragged, empty: int, scored: Ragged | None = None
) -> tuple[Ragged, Ragged, Ragged]:
    """Returns the inputs, the targets and the scored positions of a task whose answer is read after its input.

    The inputs are each sequence followed by one `empty` symbol for each symbol of its answer. The targets are the
    answers at these positions. `scored` marks the symbols of the answers that count; None marks all."""
    lengths = x.lengths + answers.lengths
    offsets = offsets_of(lengths)
    in_answer = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths) >= np.repeat(x.lengths, lengths)
    tape, targets = np.full(offsets[-1], empty, dtype=np.uint8), np.zeros(offsets[-1], dtype=np.uint8)
    tape[~in_answer], targets[in_answer] = x.values, answers.values
    marks = np.zeros(offsets[-1], dtype=np.bool_)
    marks[in_answer] = True if scored is None else scored.values
    return Ragged(tape, offsets), Ragged(targets, offsets), Ragged(marks, offsets)
