"""Multi30k: translate English descriptions of pictures into German.

Elliott et al. (2016). The split by length is from Pointer-Augmented Neural Memory (Le et al., 2024, section 3.4).

>>> split_sentence("Two young, White males are outside.")
('two', 'young', ',', 'white', 'males', 'are', 'outside', '.')
>>> split_sentence("Ein Mann - im \\"Büro\\" - sagt's.")
('ein', 'mann', '-', 'im', '"', 'büro', '"', '-', 'sagt', "'", 's', '.')
"""

from collections import Counter
from functools import cached_property
from itertools import chain

import numpy as np

from archlang.data import store
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.lexicon import BEGIN, END, UNKNOWN, Lexicon, Words, filled, most_frequent, split_sentence
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import PairTask

FILES = {
    "train": "train",
    "valid": "val",
    "test": "test_2016_flickr",
    "test_2017": "test_2017_flickr",
    "mscoco": "test_2017_mscoco",
}
# The files that `split = length` sorts by length.
SORTED = ("train", "valid", "test")
SOURCE, TARGET = "en", "de"

Sentences = tuple[list[Words], list[Words]]


class Multi30k(PairTask):
    split: str
    share: float
    source_words: int
    target_words: int

    breakdown = "length"
    metrics = ("perplexity", "token_accuracy", "accuracy")

    @property
    def in_distribution(self) -> tuple[str, ...]:
        return ("train",) if self.split == "length" else ("train", "valid", "test")

    def split_names(self) -> tuple[str, ...]:
        return ("train", "test") if self.split == "length" else tuple(FILES)

    @cached_property
    def _lexicons(self) -> tuple[Lexicon, Lexicon]:
        sides = zip(self._sentences("train"), (self.source_words, self.target_words), strict=True)
        words = ((most_frequent(Counter(chain.from_iterable(rows)), most), most) for rows, most in sides)
        source, target = (
            Lexicon((*filled(known, most), UNKNOWN, END, BEGIN), unknown=most, cut="sentence") for known, most in words
        )
        return source, target

    @property
    def lexicons(self) -> dict[str, Lexicon]:
        return dict(zip(("source", "target"), self._lexicons, strict=True))

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The German words."""
        return self._lexicons[1].texts

    @property
    def source_vocabulary(self) -> tuple[str, ...]:
        """The English words."""
        return self._lexicons[0].texts

    def reads(self) -> tuple[tuple[str, str], ...]:
        return tuple(("multi30k", f"{file}.{side}") for file in self._used.values() for side in (SOURCE, TARGET))

    def make(self, split: str, seed: int) -> Split:
        source, target = (
            lexicon.encode(rows) for lexicon, rows in zip(self._lexicons, self._sentences(split), strict=True)
        )
        marks = (self.source_words + 2, self.source_words + 1)
        return self.pairs(source, target, {"length": source.lengths // 10 * 10}, marks)

    def _sentences(self, split: str) -> Sentences:
        if self.split == "published":
            return self._files[split]
        source, target = ([row for part in SORTED for row in self._files[part][side]] for side in (0, 1))
        # The sort is stable: pairs of equal length keep the order of the files.
        order = np.argsort([len(row) for row in source], kind="stable")
        trained = round(len(order) * self.share)
        members = order[:trained] if split == "train" else order[trained:]
        return [source[index] for index in members], [target[index] for index in members]

    @cached_property
    def _files(self) -> dict[str, Sentences]:
        return {split: _pairs(file) for split, file in self._used.items()}

    @property
    def _used(self) -> dict[str, str]:
        return {split: file for split, file in FILES.items() if split in SORTED or self.split == "published"}


def _pairs(file: str) -> Sentences:
    source, target = (
        list[Words](map(split_sentence, store.lines("multi30k", f"{file}.{side}"))) for side in (SOURCE, TARGET)
    )
    if len(source) != len(target):
        raise mistakes.uneven_files(f"{file}.{SOURCE}", "multi30k", len(source), f"{file}.{TARGET}", len(target))
    return source, target
