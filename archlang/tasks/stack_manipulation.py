"""Stack manipulation: given a stack of bits and what is done to it, what does it hold in the end?

A deterministic context-free task of Delétang et al. (2023), Neural Networks and the Chomsky Hierarchy. The stack is
given from its bottom to its top and answered from its top to its bottom, with `[E]` behind; to pop from an empty stack
changes nothing. As there, empty symbols stand behind what is given, one more than it is long, and the answer is read
where they stand; what stands behind its `[E]` does not count, in the loss either.

>>> task = StackManipulation(train=Interval(1, 8), test=Interval(9, 10), train_size=10)
>>> train = task.generate("train", seed=0)
>>> spell(task, train.inputs["x"][0]), spell(task, train.targets[0][train.scored[0]])
('0 1 1 0 1 1 pop ? ? ? ? ? ? ? ?', '1 0 1 1 0 [E]')
>>> spell(task, train.inputs["x"][3]), spell(task, train.targets[3][train.scored[3]])
('1 push0 push1 push0 ? ? ? ? ?', '0 1 0 1 [E]')
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archlang.tasks.kit.chomsky_hierarchy import ByLength, asked, groups
from archlang.tasks.kit.ragged import Integers, Ragged, offsets_of
from archlang.tasks.kit.random_stream import RandomStream
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit, spell
from archlang.types.statics import Interval

__all__ = ["Interval", "StackManipulation", "spell"]

END, POP, PUSH, EMPTY = 2, 3, 4, 6


@dataclass(frozen=True, kw_only=True)
class StackManipulation(ByLength):
    """The task. A length is that of stack and actions together."""

    name = "stack_manipulation"
    kind = Kind.TAGGING
    vocabulary = ("0", "1", "[E]", "pop", "push0", "push1", "?")
    unit = Unit.POSITION
    metrics = ("accuracy", "sequence_accuracy")

    def items(self, rng: RandomStream, lengths: Integers) -> Split:
        # A stack of at least one bit, and at least one action where there is room for one.
        stacked = 1 + rng.below(np.maximum(lengths - 1, 1), len(lengths))
        offsets = offsets_of(lengths)
        places = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        bits, actions = rng.below(2, len(places)), POP + rng.below(3, len(places))
        given = Ragged(np.where(places < np.repeat(stacked, lengths), bits, actions).astype(np.uint8), offsets)
        answers, marks = _results(given)
        x, targets, scored = asked(given, answers, EMPTY, marks)
        return Split({"x": x}, targets, scored, groups(lengths))


def _results(given: Ragged) -> tuple[Ragged, Ragged]:
    """The final stack of each item from its top, `[E]`, and zeros until it is one longer than what is given; and marks
    of all but the zeros."""
    starts, lengths = given.offsets[:-1], given.lengths
    longest = int(lengths.max(initial=0))
    stacks, heights = np.zeros((len(given), longest + 1), dtype=np.uint8), np.zeros(len(given), dtype=np.int64)
    for place in range(longest):
        at = np.flatnonzero(lengths > place)
        step = given.values[starts[at] + place]
        pushed = at[step != POP]
        stacks[pushed, heights[pushed]] = _bits(step[step != POP])
        heights[pushed] += 1
        popped = at[step == POP]
        heights[popped] = np.maximum(heights[popped] - 1, 0)
    offsets = offsets_of(lengths + 1)
    items = np.repeat(np.arange(len(given)), lengths + 1)
    left = heights[items] - 1 - (np.arange(offsets[-1]) - offsets[items])
    values = np.where(left >= 0, stacks[items, np.maximum(left, 0)], np.where(left == -1, END, 0)).astype(np.uint8)
    return Ragged(values, offsets), Ragged(left >= -1, offsets)


def _bits(steps: np.ndarray) -> np.ndarray:
    """What symbols of a stack, or actions that push, put on the stack."""
    return np.where(steps >= PUSH, steps - PUSH, steps)
