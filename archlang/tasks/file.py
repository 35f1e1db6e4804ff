"""Classify the texts of a user's own file.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> folder = TemporaryDirectory()
>>> path = Path(folder.name) / "moods.tsv"
>>> rows = ["text\\tlabel\\tsplit", "what a fine day\\tgood\\ttrain", "what a mess\\tbad\\ttrain", "storm\\tbad\\ttest"]
>>> _ = path.write_text("\\n".join(rows))
>>> task = File(path=str(path), words=4)
>>> train, test = (task.generate(split, seed=0) for split in task.split_names())
>>> spell(task, train.inputs["x"][0]), int(train.targets[0]), spell(task, train.inputs["x"][1]), int(train.targets[1])
('what a fine day', 1, 'what a <unk>', 0)
>>> spell(task, test.inputs["x"][0]), int(test.targets[0])
('<unk>', 0)
>>> folder.cleanup()
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit, spell
from archlang.tasks.kit.user_file_task import Labels, UserFileTask
from archlang.tasks.kit.user_files import CUTS, Cut, one_label

__all__ = ["File", "spell"]


@dataclass(frozen=True, kw_only=True)
class File(UserFileTask):
    """The task."""

    text: str = "text"
    label: str = "label"
    labels: int = 2

    name = "file"
    version = 2
    kind = Kind.CLASSIFICATION
    unit = Unit.SAMPLE
    metrics = ("accuracy",)
    groups = ("length", "label")

    def columns(self) -> Mapping[str, Cut]:
        return {self.text: CUTS[self.by], self.label: one_label}

    @property
    def class_names(self) -> tuple[str, ...]:
        """The label of each class."""
        return tuple(Labels.of(self.user_files, 1, self.labels).numbers)

    @property
    def group_names(self) -> dict[str, tuple[str, ...]]:
        return {"label": self.class_names}

    def generate(self, split: str, seed: int) -> Split:
        lines, labels = self.user_files.lines(split), Labels.of(self.user_files, 1, self.labels)
        x = self.lexicon.encode(line.cells[0] for line in lines)
        targets = np.asarray([labels.encode_one(split, line) for line in lines], dtype=np.int64)
        return Split({"x": x}, targets, groups={"length": x.lengths, "label": targets})
