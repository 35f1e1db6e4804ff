"""Stack manipulation: compute the content of a stack of bits after a sequence of actions.

A deterministic context-free task of Delétang et al. (2023), Neural Networks and the Chomsky Hierarchy. Popping an empty
stack changes nothing.

>>> from archlang.types.statics import Interval
>>> task = StackManipulation(train=Interval(1, 8), test=Interval(9, 10), train_size=10)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), task.spell(train.targets[0][train.scored[0]])
('0 1 1 0 1 1 pop ? ? ? ? ? ? ? ?', '1 0 1 1 0 [E]')
>>> task.spell(train.inputs["x"][3]), task.spell(train.targets[3][train.scored[3]])
('1 push0 push1 push0 ? ? ? ? ?', '0 1 0 1 [E]')
"""

import numpy as np

from archlang.tasks.kit.chomsky_hierarchy import ChomskyTask, length_groups, with_answer_tape
from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.split import Integers, Ragged, Split, offsets_of
from archlang.tasks.kit.task import Kind, Unit

END, POP, PUSH, EMPTY = 2, 3, 4, 6


class StackManipulation(ChomskyTask):
    kind = Kind.TAGGING
    vocabulary = ("0", "1", "[E]", "pop", "push0", "push1", "?")
    class_names = vocabulary[:3]
    unit = Unit.POSITION
    metrics = ("accuracy", "sequence_accuracy")

    def items(self, rng: RandomStream, lengths: Integers) -> Split:
        # A stack of at least one bit, and at least one action if the length permits it.
        stack_sizes = 1 + rng.below(np.maximum(lengths - 1, 1), len(lengths))
        offsets = offsets_of(lengths)
        positions = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        bits, actions = rng.below(2, len(positions)), POP + rng.below(3, len(positions))
        is_bit = positions < np.repeat(stack_sizes, lengths)
        inputs = Ragged(np.where(is_bit, bits, actions).astype(np.uint8), offsets)
        answers, marks = _results(inputs)
        x, targets, scored = with_answer_tape(inputs, answers, EMPTY, marks)
        return Split({"x": x}, targets, scored, length_groups(lengths))


def _results(inputs: Ragged) -> tuple[Ragged, Ragged]:
    """Returns the answers, padded with zeros to one more than the length of the input, and marks that exclude the
    padding. An answer is the final stack from its top, followed by `[E]`."""
    starts, lengths = inputs.offsets[:-1], inputs.lengths
    longest = int(lengths.max(initial=0))
    stacks, heights = np.zeros((len(inputs), longest + 1), dtype=np.uint8), np.zeros(len(inputs), dtype=np.int64)
    for position in range(longest):
        at = np.flatnonzero(lengths > position)
        step = inputs.values[starts[at] + position]
        pushed = at[step != POP]
        stacks[pushed, heights[pushed]] = _bits(step[step != POP])
        heights[pushed] += 1
        popped = at[step == POP]
        heights[popped] = np.maximum(heights[popped] - 1, 0)
    offsets = offsets_of(lengths + 1)
    items = np.repeat(np.arange(len(inputs)), lengths + 1)
    height = heights[items] - 1 - (np.arange(offsets[-1]) - offsets[items])
    values = np.where(height >= 0, stacks[items, np.maximum(height, 0)], np.where(height == -1, END, 0)).astype(
        np.uint8
    )
    return Ragged(values, offsets), Ragged(height >= -1, offsets)


def _bits(steps: np.ndarray) -> np.ndarray:
    return np.where(steps >= PUSH, steps - PUSH, steps)
