"""Tag each word of the texts of a user's own file.

>>> path = getfixture("tmp_path") / "tags.tsv"
>>> _ = path.write_text("text\\ttags\\nthe dog barks\\tDET NOUN VERB\\ndogs bark\\tNOUN VERB\\n")
>>> task = FileTagging(path=str(path), words=9, labels=3)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), train.targets[0].tolist()
('the dog barks', [0, 1, 2])
>>> task.spell(train.inputs["x"][1]), train.targets[1].tolist()
('dogs bark', [1, 2])
"""

from collections.abc import Mapping

from archlang.errors.names import plural
from archlang.tasks.kit.file_tasks import LabelledFileTask
from archlang.tasks.kit.lexicon import CUTS, Cut, split_words
from archlang.tasks.kit.split import Ragged, Split
from archlang.tasks.kit.task import Kind, Unit
from archlang.tasks.kit.user_files import Rows


class FileTagging(LabelledFileTask):
    text: str
    tags: str

    kind = Kind.TAGGING
    unit = Unit.POSITION

    def own_columns(self) -> Mapping[str, Cut]:
        return {self.text: CUTS[self.by], self.tags: split_words}

    def encode(self, rows: Rows, *columns: Ragged) -> Split:
        x, tags = columns

        def problem(row: int) -> str:
            return f"it has {plural(len(x[row]), 'word')} and {plural(len(tags[row]), 'tag')}"

        self.check_labels(rows, tags, x.lengths != tags.lengths, problem)
        return Split({"x": x}, tags, groups={"length": x.lengths})
