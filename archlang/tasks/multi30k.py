"""Multi30k: translate English descriptions of pictures into German.

Elliott et al. (2016). The split by length is from Pointer-Augmented Neural Memory (Le et al., 2024, section 3.4).

>>> split_sentence("Two young, White males are outside.")
('two', 'young', ',', 'white', 'males', 'are', 'outside', '.')
>>> split_sentence("Ein Mann - im \\"Büro\\" - sagt's.")
('ein', 'mann', '-', 'im', '"', 'büro', '"', '-', 'sagt', "'", 's', '.')
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archlang.data import store
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.checks import check_bounds, check_choice, check_share, check_split
from archlang.tasks.kit.lexicon import BEGIN, END, UNKNOWN, Lexicon, Words, filled, most_frequent, split_sentence
from archlang.tasks.kit.sequence_pairs import SequencePairs
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import PAIR_MARKS, Kind, Unit

__all__ = ["Multi30k", "split_sentence"]

FILES = {
    "train": "train",
    "valid": "val",
    "test": "test_2016_flickr",
    "test_2017": "test_2017_flickr",
    "mscoco": "test_2017_mscoco",
}
# The files that `split = length` sorts by length.
SORTED = ("train", "valid", "test")
SPLITS = ("length", "published")
SOURCE, TARGET = "en", "de"

Sentences = tuple[list[Words], list[Words]]


@dataclass(frozen=True, kw_only=True)
class Multi30k:
    """The task. Its splits are equal for every seed."""

    split: str = "length"
    share: float = 0.8
    source_words: int = 10_000
    target_words: int = 10_000

    kind = Kind.SEQ2SEQ
    marks = PAIR_MARKS
    breakdown = "length"
    unit = Unit.SEQUENCE
    metrics = ("perplexity", "token_accuracy", "accuracy")
    version = 1

    def __post_init__(self) -> None:
        check_choice("multi30k", "split", self.split, SPLITS)
        check_share("multi30k", "share", self.share)
        for static in ("source_words", "target_words"):
            check_bounds("multi30k", static, getattr(self, static), 1)

    @property
    def in_distribution(self) -> tuple[str, ...]:
        return ("train",) if self.split == "length" else ("train", "valid", "test")

    def split_names(self) -> tuple[str, ...]:
        return ("train", "test") if self.split == "length" else tuple(FILES)

    @cached_property
    def _lexicons(self) -> tuple[Lexicon, Lexicon]:
        """The English and the German words of the train split."""
        sides = zip(self._sentences("train"), (self.source_words, self.target_words), strict=True)
        source, target = (
            Lexicon((*filled(most_frequent(rows, most), most), UNKNOWN, END, BEGIN), unknown=most, cut="sentence")
            for rows, most in sides
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

    @property
    def begin(self) -> int:
        return self.target_words + 2

    @property
    def end(self) -> int:
        return self.target_words + 1

    def reads(self) -> tuple[tuple[str, str], ...]:
        return tuple(("multi30k", f"{file}.{side}") for file in self._used.values() for side in (SOURCE, TARGET))

    def generate(self, split: str, seed: int) -> Split:
        check_split("multi30k", split, self.split_names())
        source, target = (
            lexicon.encode(rows) for lexicon, rows in zip(self._lexicons, self._sentences(split), strict=True)
        )
        pairs = SequencePairs(source, target, {"length": source.lengths // 10 * 10})
        return pairs.split(self.begin, self.end, source_begin=self.source_words + 2, source_end=self.source_words + 1)

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
        raise mistakes.uneven_files("multi30k", f"{file}.{SOURCE}", len(source), f"{file}.{TARGET}", len(target))
    return source, target
