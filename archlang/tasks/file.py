"""A user's own file of texts and their classes.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> folder = TemporaryDirectory()
>>> place = Path(folder.name) / "moods.tsv"
>>> rows = ["text\\tlabel\\tsplit", "what a fine day\\tgood\\ttrain", "what a mess\\tbad\\ttrain", "storm\\tbad\\ttest"]
>>> _ = place.write_text("\\n".join(rows))
>>> task = File(path=str(place), words=4)
>>> train, test = (task.generate(split, seed=0) for split in task.split_names())
>>> spell(task, train.inputs["x"][0]), int(train.targets[0]), spell(task, train.inputs["x"][1]), int(train.targets[1])
('what a fine day', 1, 'what a <unk>', 0)
>>> spell(task, test.inputs["x"][0]), int(test.targets[0])
('<unk>', 0)
>>> folder.cleanup()
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archlang.tasks.kit.checks import check_choice
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit, spell
from archlang.tasks.kit.user_files import WAYS, OwnFile, labels, lexicon, numbered, whole

__all__ = ["File", "spell"]


@dataclass(frozen=True, kw_only=True)
class File:
    """The task."""

    path: str = ""
    valid: str = ""
    test: str = ""
    text: str = "text"
    label: str = "label"
    words: int = 1_000
    labels: int = 2
    by: str = "words"

    kind = Kind.CLASSIFICATION
    breakdown = "length"
    in_distribution = ("train", "valid")
    unit = Unit.SAMPLE
    metrics = ("accuracy",)
    version = 1

    def __post_init__(self) -> None:
        check_choice("file", "by", self.by, WAYS)

    @property
    def _own(self) -> OwnFile:
        columns = {self.text: WAYS[self.by], self.label: whole}
        return OwnFile("file", self.path, {"valid": self.valid, "test": self.test}, columns)

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
        found = [label for line in lines for label in numbered(own, split, line, 1, known)]
        return Split({"x": x}, np.asarray(found, dtype=np.int64), groups={"length": x.lengths})
