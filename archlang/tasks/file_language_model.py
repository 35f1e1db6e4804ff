"""Predict the next word of the texts of a user's own file.

>>> path = getfixture("tmp_path") / "texts.tsv"
>>> _ = path.write_text("text\\nto be or\\nnot\\n")
>>> task = FileLanguageModel(path=str(path), words=9)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), task.spell(train.targets[0])
('[B] to be or', 'to be or [E]')
>>> task.spell(train.inputs["x"][1]), task.spell(train.targets[1])
('[B] not', 'not [E]')
"""

from collections.abc import Mapping
from typing import ClassVar

from archlang.tasks.kit.file_tasks import TextFileTask
from archlang.tasks.kit.lexicon import BEGIN, BEGUN, CUTS, END, Cut
from archlang.tasks.kit.split import Ragged, Split, append, shift
from archlang.tasks.kit.task import Kind
from archlang.tasks.kit.user_files import Rows


class FileLanguageModel(TextFileTask):
    text: str

    signs = (END, BEGIN)
    marks: ClassVar[dict[str, tuple[str, str | None]]] = {"x": BEGUN}
    kind = Kind.LANGUAGE_MODEL
    metrics: ClassVar[tuple[str, ...]] = ("perplexity", "accuracy")

    def own_columns(self) -> Mapping[str, Cut]:
        return {self.text: CUTS[self.by]}

    def _ends(self) -> tuple[int, int]:
        return self.words + 2, self.words + 1

    @property
    def end(self) -> int:
        return self._ends()[1]

    def encode(self, rows: Rows, *columns: Ragged) -> Split:
        (texts,) = columns
        begin, end = self._ends()
        targets = append(texts, end)
        return Split({"x": shift(targets, begin)}, targets, groups={"length": texts.lengths})
