"""Write the hidden spans, or the rest, of a user's own texts.

>>> path = getfixture("tmp_path") / "poem.txt"
>>> _ = path.write_text("so much depends upon a red wheel barrow")
>>> task = TextSeq2Seq(path=str(path), by="words", words=9, rate=0.4, span=2.0)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["source"][0])
'[B] so much depends upon <extra_id_0> red <extra_id_1> [E]'
>>> task.spell(train.targets[0])
'<extra_id_0> a <extra_id_1> wheel barrow [E]'
>>> prefix = TextSeq2Seq(path=str(path), by="words", words=9, objective="prefix").generate("train", seed=0)
>>> task.spell(prefix.inputs["source"][0]), task.spell(prefix.targets[0])
('[B] so much depends upon [E]', 'a red wheel barrow [E]')
"""

from typing import ClassVar

import numpy as np

from archlang.tasks.kit.drawing import random_positions, words_of_positions
from archlang.tasks.kit.lexicon import BEGIN, END
from archlang.tasks.kit.split import Integers, Ragged, Split, offsets_of, ranges
from archlang.tasks.kit.task import PAIR_MARKS, Kind, PairTask
from archlang.tasks.text import Text


class TextSeq2Seq(Text, PairTask):
    objective: str
    rate: float
    span: float
    sentinels: int

    stride, begin_token, end_token = 0, -1, -1
    fields = ("source", "target")
    kind = Kind.SEQ2SEQ
    marks = PAIR_MARKS  # type: ignore[misc] # a property of `text`
    metrics: ClassVar = ("perplexity", "accuracy")

    @property
    def signs(self) -> tuple[str, ...]:  # type: ignore[override] # a ClassVar of other tasks
        return (END, BEGIN, *(f"<extra_id_{number}>" for number in reversed(range(self.sentinels))))

    @property
    def begin(self) -> int:
        return self._ends()[0]

    def items(self, windows: Split, first: int, number: int) -> Split:
        targets = windows.targets
        assert isinstance(targets, Ragged)
        # Both sides of a pair get an `[E]` of their own.
        lengths = targets.lengths - (targets.values[targets.offsets[1:] - 1] == self.end)
        kept = np.flatnonzero(lengths >= 2)
        texts = targets.slices(targets.offsets[kept], lengths[kept])
        hide = self._prefix if self.objective == "prefix" else self._spans
        source, target = hide(texts, (first + kept, number))
        return self.pairs(source, target, windows.select(kept).groups)

    def _prefix(self, texts: Ragged, key: tuple[Integers, int]) -> tuple[Ragged, Ragged]:
        words = words_of_positions((*key, 0), np.ones(len(texts), dtype=np.int64))
        sizes = 1 + (words % (texts.lengths - 1).astype(np.uint64)).astype(np.int64)
        starts = texts.offsets[:-1]
        return texts.slices(starts, sizes), texts.slices(starts + sizes, texts.lengths - sizes)

    def _spans(self, texts: Ragged, key: tuple[Integers, int]) -> tuple[Ragged, Ragged]:
        lengths = texts.lengths
        hidden = np.clip(np.rint(self.rate * lengths), 1, lengths - 1).astype(np.int64)
        shown = lengths - hidden
        most = np.minimum(np.minimum(hidden, shown + 1), self.sentinels)
        spans = np.clip(np.rint(hidden / self.span), 1, most).astype(np.int64)

        def parts(totals: Integers, counts: Integers, part: int) -> Integers:
            """Cuts each total [N] at random into so many numbers [N] above 0."""
            cuts = random_positions(words_of_positions((*key, part), totals - 1), totals - 1, counts - 1)
            begins = np.ones(totals.sum(), dtype=np.bool_)
            begins[ranges(totals) > 0] = cuts
            return np.diff(np.flatnonzero(begins), append=len(begins))

        # What is shown before, between and after the spans: the first and the last part may be empty.
        place, is_last = ranges(spans + 1), ranges(spans + 1) == np.repeat(spans, spans + 1)
        gaps = parts(shown + 2, spans + 1, 0) - (place == 0) - is_last
        sizes = parts(hidden, spans, 1)
        starts = np.cumsum(gaps)[~is_last] + offsets_of(sizes)[:-1]
        is_hidden = np.zeros(len(texts.values), dtype=np.bool_)
        is_hidden[np.repeat(starts, sizes) + ranges(sizes)] = True
        sentinels = self.sizes["vocab"] - 1 - ranges(spans)
        source, is_read = texts.values.copy(), ~is_hidden
        source[starts], is_read[starts] = sentinels, True
        target = np.insert(texts.values[is_hidden], offsets_of(sizes)[:-1], sentinels)
        return Ragged(source[is_read], offsets_of(shown + spans)), Ragged(target, offsets_of(hidden + spans))
