"""Classify the texts of a user's own file.

>>> path = getfixture("tmp_path") / "moods.tsv"
>>> rows = ["text\\tlabel\\tsplit", "what a fine day\\tgood\\ttrain", "what a mess\\tbad\\ttrain", "storm\\tbad\\ttest"]
>>> _ = path.write_text("\\n".join(rows))
>>> task = File(path=str(path), words=4)
>>> train, test = (task.generate(split, seed=0) for split in task.split_names())
>>> task.spell(train.inputs["x"][0]), int(train.targets[0]), task.spell(train.inputs["x"][1]), int(train.targets[1])
('what a fine day', 1, 'what a <unk>', 0)
>>> task.spell(test.inputs["x"][0]), int(test.targets[0])
('<unk>', 0)
"""

from collections.abc import Mapping

import numpy as np

from archlang.tasks.kit.file_tasks import LabelledFileTask
from archlang.tasks.kit.lexicon import CUTS, Cut
from archlang.tasks.kit.split import Ragged, Split
from archlang.tasks.kit.task import Kind
from archlang.tasks.kit.user_files import Rows, one_label


class File(LabelledFileTask):
    text: str
    label: str

    version = 3
    kind = Kind.CLASSIFICATION
    own_groups = ("length", "label")

    def own_columns(self) -> Mapping[str, Cut]:
        return {self.text: CUTS[self.by], self.label: one_label}

    @property
    def group_names(self) -> dict[str, tuple[str, ...]]:
        return {"label": self.class_names, **super().group_names}

    def encode(self, rows: Rows, *columns: Ragged) -> Split:
        x, labels = columns
        counts = labels.lengths
        self.check_labels(rows, labels, counts != 1, lambda row: f"it has {counts[row]} labels, and a text has one")
        targets = labels.values.astype(np.int64)
        return Split({"x": x}, targets, groups={"length": x.lengths, "label": targets})
