"""Predict the hidden tokens of a user's own texts.

>>> path = getfixture("tmp_path") / "poem.txt"
>>> _ = path.write_text("so much depends upon")
>>> task = TextMasked(path=str(path), length=11, rate=0.3, copies=1)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), task.spell(train.targets[0][train.scored[0]])
('s o   [M] [M] [M] h   d e p', 'm u c')
>>> task.spell(train.inputs["x"][1]), task.spell(train.targets[1][train.scored[1]])
('e n d s [M] u p o n [E]', 'd   p')
"""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from archlang.tasks.kit.drawing import random_positions, words_of_positions
from archlang.tasks.kit.lexicon import END
from archlang.tasks.kit.split import Ragged, Split
from archlang.tasks.kit.task import Kind
from archlang.tasks.text import Text

MASK = "[M]"


class TextMasked(Text):
    rate: float
    masked: float
    random: float

    stride, begin_token, end_token = 0, -1, -1
    signs = (END, MASK)
    kind = Kind.TAGGING
    marks: ClassVar[dict[str, tuple[str, str | None]]] = {}
    metrics: ClassVar = ("perplexity", "accuracy")

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.vocabulary

    def items(self, windows: Split, first: int, number: int) -> Split:
        targets, lexicon = windows.targets, self.lexicon
        assert isinstance(targets, Ragged)
        lengths = targets.lengths
        chosen_by, changed_by, tokens = (
            words_of_positions((first + np.arange(len(windows)), number, part), lengths) for part in range(3)
        )
        counts = np.maximum(np.rint(self.rate * lengths), 1).astype(np.int64)
        scored = random_positions(chosen_by, lengths, counts)
        share = (changed_by >> np.uint64(11)) * 2.0**-53
        words = len(lexicon) if lexicon.known is None else lexicon.known
        x = np.where(scored & (share < self.masked + self.random), tokens % np.uint64(words), targets.values)
        x[scored & (share < self.masked)] = len(lexicon) - 1
        return replace(
            windows, inputs={"x": Ragged(x.astype(lexicon.dtype), targets.offsets)},
            scored=Ragged(scored, targets.offsets), notes={},
        )  # fmt: skip
