"""Tag each word of the texts of a user's own file.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> folder = TemporaryDirectory()
>>> path = Path(folder.name) / "tags.tsv"
>>> _ = path.write_text("text\\ttags\\nthe dog barks\\tDET NOUN VERB\\ndogs bark\\tNOUN VERB\\n")
>>> task = FileTagging(path=str(path), words=9, labels=3)
>>> train = task.generate("train", seed=0)
>>> spell(task, train.inputs["x"][0]), train.targets[0].tolist()
('the dog barks', [0, 1, 2])
>>> spell(task, train.inputs["x"][1]), train.targets[1].tolist()
('dogs bark', [1, 2])
>>> folder.cleanup()
"""

from collections.abc import Mapping
from dataclasses import dataclass

from archlang.diagnostics.names import plural
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit, spell
from archlang.tasks.kit.user_file_task import Labels, UserFileTask
from archlang.tasks.kit.user_files import CUTS, Cut, split_words

__all__ = ["FileTagging", "spell"]


@dataclass(frozen=True, kw_only=True)
class FileTagging(UserFileTask):
    """The task."""

    text: str = "text"
    tags: str = "tags"
    labels: int = 2

    name = "file_tagging"
    kind = Kind.TAGGING
    unit = Unit.POSITION
    metrics = ("accuracy", "sequence_accuracy")

    def columns(self) -> Mapping[str, Cut]:
        return {self.text: CUTS[self.by], self.tags: split_words}

    @property
    def class_names(self) -> tuple[str, ...]:
        """The text of each tag."""
        return tuple(Labels.of(self.user_files, 1, self.labels).numbers)

    def generate(self, split: str, seed: int) -> Split:
        lines, labels = self.user_files.lines(split), Labels.of(self.user_files, 1, self.labels)
        x = self.lexicon.encode(line.cells[0] for line in lines)
        for line in lines:
            words, tags = line.cells
            if len(words) != len(tags):
                reason = f"it has {plural(len(words), 'word')} and {plural(len(tags), 'tag')}"
                raise mistakes.bad_line(self.user_files.path_of(split), line.number, reason)
        targets = Ragged.of([labels.encode(split, line) for line in lines], "int32")
        return Split({"x": x}, targets, groups={"length": x.lengths})
