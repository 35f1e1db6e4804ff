"""A user's own file of texts with other texts as answers.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> folder = TemporaryDirectory()
>>> place = Path(folder.name) / "pairs.jsonl"
>>> _ = place.write_text('{"source": "jump twice", "target": "J J"}\\n{"source": ["walk"], "target": ["W"]}\\n')
>>> task = FileSeq2Seq(path=str(place), words=9)
>>> train = task.generate("train", seed=0)
>>> spell(task, train.inputs["source"][0]), spell(task, train.inputs["target"][0]), spell(task, train.targets[0])
('[B] jump twice [E]', '[B] J J', 'J J [E]')
>>> spell(task, train.inputs["source"][1]), spell(task, train.targets[1])
('[B] walk [E]', 'W [E]')
>>> folder.cleanup()
"""

from __future__ import annotations

from dataclasses import dataclass

from archlang.tasks.kit.checks import check_choice
from archlang.tasks.kit.lexicon import BEGIN, END, Lexicon
from archlang.tasks.kit.sequence_pairs import SequencePairs
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit, spell
from archlang.tasks.kit.user_files import WAYS, OwnFile, lexicon

__all__ = ["FileSeq2Seq", "spell"]


@dataclass(frozen=True, kw_only=True)
class FileSeq2Seq:
    """The task."""

    path: str = ""
    valid: str = ""
    test: str = ""
    given: str = "source"
    answer: str = "target"
    words: int = 1_000
    by: str = "words"

    kind = Kind.SEQ2SEQ
    breakdown = "length"
    in_distribution = ("train", "valid")
    unit = Unit.SEQUENCE
    metrics = ("accuracy", "token_accuracy")
    version = 1

    def __post_init__(self) -> None:
        check_choice("file_seq2seq", "by", self.by, WAYS)

    @property
    def _own(self) -> OwnFile:
        columns = dict.fromkeys((self.given, self.answer), WAYS[self.by])
        return OwnFile("file_seq2seq", self.path, {"valid": self.valid, "test": self.test}, columns)

    def files(self) -> tuple[str, ...]:
        return tuple(path for path in (self.path, self.valid, self.test) if path)

    def _lexicon(self) -> Lexicon:
        return lexicon(self._own, self.words, [0, -1], (END, BEGIN))

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return self._lexicon().texts

    @property
    def begin(self) -> int:
        return self.words + 2

    @property
    def end(self) -> int:
        return self.words + 1

    def split_names(self) -> tuple[str, ...]:
        return self._own.split_names()

    def generate(self, split: str, seed: int) -> Split:
        """The lines of the file; they do not depend on the seed."""
        lines, known = self._own.lines(split), self._lexicon()
        # One column may be both: then the answer is the text itself.
        source, target = (known.encode(line.cells[side] for line in lines) for side in (0, -1))
        return SequencePairs(source, target, {"length": target.lengths}).split(self.begin, self.end)
