"""Answer the texts of a user's own file with other texts.

>>> path = getfixture("tmp_path") / "pairs.jsonl"
>>> _ = path.write_text('{"source": "jump twice", "target": "J J"}\\n{"source": ["walk"], "target": ["W"]}\\n')
>>> task = FileSeq2Seq(path=str(path), words=9)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["source"][0]), task.spell(train.inputs["target"][0]), task.spell(train.targets[0])
('[B] jump twice [E]', '[B] J J', 'J J [E]')
>>> task.spell(train.inputs["source"][1]), task.spell(train.targets[1])
('[B] walk [E]', 'W [E]')
"""

from collections.abc import Mapping

from archlang.tasks.kit.file_tasks import TextFileTask
from archlang.tasks.kit.lexicon import BEGIN, CUTS, END, Cut
from archlang.tasks.kit.split import Ragged, Split
from archlang.tasks.kit.task import PairTask
from archlang.tasks.kit.user_files import Rows


class FileSeq2Seq(TextFileTask, PairTask):
    given: str
    answer: str

    signs = (END, BEGIN)
    fields = ("source", "target")

    @property
    def text_columns(self) -> tuple[int, ...]:
        """If `given` and `answer` name the same column, the answer is the text itself."""
        return (0, len(self.own_columns()) - 1)

    def own_columns(self) -> Mapping[str, Cut]:
        return dict.fromkeys((self.given, self.answer), CUTS[self.by])

    def encode(self, rows: Rows, *columns: Ragged) -> Split:
        source, target = columns
        return self.pairs(source, target, {"length": target.lengths})
