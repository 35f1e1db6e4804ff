"""A user's own file of texts with a tag for each word.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> folder = TemporaryDirectory()
>>> place = Path(folder.name) / "tags.tsv"
>>> _ = place.write_text("text\\ttags\\nthe dog barks\\tDET NOUN VERB\\ndogs bark\\tNOUN VERB\\n")
>>> task = FileTagging(path=str(place), words=9, labels=3)
>>> train = task.generate("train", seed=0)
>>> spell(task, train.inputs["x"][0]), train.targets[0].tolist()
('the dog barks', [0, 1, 2])
>>> spell(task, train.inputs["x"][1]), train.targets[1].tolist()
('dogs bark', [1, 2])
>>> folder.cleanup()
"""

from __future__ import annotations

from dataclasses import dataclass

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.checks import check_choice
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit, spell
from archlang.tasks.kit.user_files import WAYS, OwnFile, labels, lexicon, numbered, words

__all__ = ["FileTagging", "spell"]


@dataclass(frozen=True, kw_only=True)
class FileTagging:
    """The task."""

    path: str = ""
    valid: str = ""
    test: str = ""
    text: str = "text"
    tags: str = "tags"
    words: int = 1_000
    labels: int = 2
    by: str = "words"

    kind = Kind.TAGGING
    breakdown = "length"
    in_distribution = ("train", "valid")
    unit = Unit.POSITION
    metrics = ("accuracy", "sequence_accuracy")
    version = 1

    def __post_init__(self) -> None:
        check_choice("file_tagging", "by", self.by, WAYS)

    @property
    def _own(self) -> OwnFile:
        columns = {self.text: WAYS[self.by], self.tags: words}
        return OwnFile("file_tagging", self.path, {"valid": self.valid, "test": self.test}, columns)

    def files(self) -> tuple[str, ...]:
        return tuple(path for path in (self.path, self.valid, self.test) if path)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return lexicon(self._own, self.words, [0]).texts

    def split_names(self) -> tuple[str, ...]:
        return self._own.split_names()

    def generate(self, split: str, seed: int) -> Split:
        """The lines of the file; they do not depend on the seed."""
        own = self._own
        lines, known = own.lines(split), labels(own, 1, self.labels)
        x = lexicon(own, self.words, [0]).encode(line.cells[0] for line in lines)
        for line in lines:
            if len(line.cells[0]) != len(line.cells[1]):
                told = f"it has {len(line.cells[0])} words and {len(line.cells[1])} tags"
                raise mistakes.bad_line(own.place(split), line.number, told)
        tags = Ragged.of([numbered(own, split, line, 1, known) for line in lines], "int32")
        return Split({"x": x}, tags, groups={"length": x.lengths})
