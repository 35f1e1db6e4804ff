"""A user's own file of texts, of which the next word is to be predicted.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> folder = TemporaryDirectory()
>>> place = Path(folder.name) / "texts.tsv"
>>> _ = place.write_text("text\\nto be or\\nnot\\n")
>>> task = FileLanguageModel(path=str(place), words=9)
>>> train = task.generate("train", seed=0)
>>> spell(task, train.inputs["x"][0]), spell(task, train.targets[0])
('[B] to be or', 'to be or [E]')
>>> spell(task, train.inputs["x"][1]), spell(task, train.targets[1])
('[B] not', 'not [E]')
>>> folder.cleanup()
"""

from __future__ import annotations

from dataclasses import dataclass

from archlang.tasks.kit.checks import check_choice
from archlang.tasks.kit.lexicon import BEGIN, END, Lexicon
from archlang.tasks.kit.ragged import append, shift
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit, spell
from archlang.tasks.kit.user_files import WAYS, OwnFile, lexicon

__all__ = ["FileLanguageModel", "spell"]


@dataclass(frozen=True, kw_only=True)
class FileLanguageModel:
    """The task."""

    path: str = ""
    valid: str = ""
    test: str = ""
    text: str = "text"
    words: int = 1_000
    by: str = "words"

    kind = Kind.LANGUAGE_MODEL
    breakdown = "length"
    in_distribution = ("train", "valid")
    unit = Unit.POSITION
    metrics = ("perplexity", "accuracy")
    version = 1

    def __post_init__(self) -> None:
        check_choice("file_language_model", "by", self.by, WAYS)

    @property
    def _own(self) -> OwnFile:
        others = {"valid": self.valid, "test": self.test}
        return OwnFile("file_language_model", self.path, others, {self.text: WAYS[self.by]})

    def files(self) -> tuple[str, ...]:
        return tuple(path for path in (self.path, self.valid, self.test) if path)

    def _lexicon(self) -> Lexicon:
        return lexicon(self._own, self.words, [0], (END, BEGIN))

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return self._lexicon().texts

    def split_names(self) -> tuple[str, ...]:
        return self._own.split_names()

    def generate(self, split: str, seed: int) -> Split:
        """The lines of the file; they do not depend on the seed."""
        known = self._lexicon()
        texts = known.encode(line.cells[0] for line in self._own.lines(split))
        targets = append(texts, self.words + 1)
        return Split({"x": shift(targets, self.words + 2)}, targets, groups={"length": texts.lengths})
