"""Classify the texts of a user's own file.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> folder = TemporaryDirectory()
>>> path = Path(folder.name) / "moods.tsv"
>>> rows = ["text\\tlabel\\tsplit", "what a fine day\\tgood\\ttrain", "what a mess\\tbad\\ttrain", "storm\\tbad\\ttest"]
>>> _ = path.write_text("\\n".join(rows))
>>> task = File(path=str(path), words=4)
>>> train, test = (task.generate(split, seed=0) for split in task.split_names())
>>> task.spell(train.inputs["x"][0]), int(train.targets[0]), task.spell(train.inputs["x"][1]), int(train.targets[1])
('what a fine day', 1, 'what a <unk>', 0)
>>> task.spell(test.inputs["x"][0]), int(test.targets[0])
('<unk>', 0)
>>> folder.cleanup()
"""

from collections.abc import Mapping

import numpy as np

from archlang.tasks.kit.file_tasks import LabelledFileTask
from archlang.tasks.kit.lexicon import CUTS, Cut
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit
from archlang.tasks.kit.user_files import Line, one_label


class File(LabelledFileTask):
    text: str
    label: str

    version = 3
    kind = Kind.CLASSIFICATION
    unit = Unit.SAMPLE
    metrics = ("accuracy",)
    own_groups = ("length", "label")

    def own_columns(self) -> Mapping[str, Cut]:
        return {self.text: CUTS[self.by], self.label: one_label}

    @property
    def group_names(self) -> dict[str, tuple[str, ...]]:
        return {"label": self.class_names, **super().group_names}

    def make(self, split: str, seed: int) -> Split:
        def problem(line: Line) -> str:
            count = len(line.cells[1])
            return "" if count == 1 else f"it has {count} labels, and a text has one"

        lines = self.lines(split)
        x = self.lexicon.encode(line.cells[0] for line in lines)
        targets = np.asarray(self.encode_labels(split, lines, problem), dtype=np.int64).reshape(-1)
        return Split({"x": x}, targets, groups=self.grouped(lines, length=x.lengths, label=targets))
