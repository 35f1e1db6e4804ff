"""Tasks that are pages: the class of each is made from its text, and the machine generates its items."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import ClassVar

import numpy as np

from archlang.elaborate.binding import Binding, size_words
from archlang.elaborate.task_pages import LENGTH, SCORED, check_page, kind_of_page, width
from archlang.errors import ProgramError, Source
from archlang.resolve import library
from archlang.resolve.resolve import Declaration, ResolvedFile
from archlang.syntax import parse, tree
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.lengths import ByLength, DistinctItems, LengthRanges, ListedLengths, answered
from archlang.tasks.kit.lexicon import BEGUN, ENCLOSED
from archlang.tasks.kit.page_machine import UNITS, PageMachine
from archlang.tasks.kit.split import Integers, Ragged, Split, ranges
from archlang.tasks.kit.task import Kind, Unit, field_vocabulary, refuse

_SPLITS = {"length_ranges": LengthRanges, "distinct_items": DistinctItems, "listed_lengths": ListedLengths}
# The longest items with which a page is tried before it is used.
_LONGEST = 64


class PageTask(ByLength):
    """A task that is a page."""

    declaration: ClassVar[Declaration]
    item: ClassVar[tree.Extern]
    kind: ClassVar[Kind]
    unit = Unit.POSITION
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "sequence_accuracy")

    @classmethod
    def declared(cls) -> Declaration:
        return cls.declaration

    def keep(self, statics: Mapping[str, object], binding: Binding) -> None:
        self.statics, self._binding = statics, binding
        # Other statics may have the names of attributes.
        settings = library.splits(self.item)
        assert settings is not None, "the check of a page requires them"
        super().keep({static.name: statics[static.name] for static in settings.signature.statics}, binding)
        for field in self.item.signature.inputs:
            if field.type.name == "tokens" and len(field.type.dimensions) > 1:
                setattr(self, f"{field.name}_vocabulary", tuple(map(str, range(width(binding, field)))))

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        return size_words(self._binding, "vocab")

    @property
    def key(self) -> str:
        first = next(iter(self.statics.values()))  # of `word_problem` the group, as those of 60 elements differ
        return first if isinstance(first, str) else str(self.sizes["vocab"])

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        names = size_words(self._binding, "classes")
        are_words = len(names) <= len(self.vocabulary) and all(map(str.isdigit, names))
        return self.vocabulary[: len(names)] if are_words else names

    @property
    def marks(self) -> Mapping[str, tuple[str, str | None]]:
        first, *others = self.item.signature.inputs
        numbers = (field.name for field in others if field.type.name == "seq")
        marks = {**dict.fromkeys((first.name, *numbers), ENCLOSED), "target": BEGUN}
        return marks if "[B]" in self.vocabulary else {}

    def check(self) -> None:
        check_page(self._binding, refuse)
        trained, tested = self._tried("train"), self._tried("test")
        if self.disjoint and trained and tested and trained[-1] >= tested[0] and trained[0] <= tested[-1]:
            raise mistakes.lengths_overlap(self.name, trained[-1], tested[0])

    def _tried(self, split: str) -> list[int]:
        """Generates the shortest items of a split, and its longest ones unless that takes long; returns their lengths
        in order, which the page may have changed."""
        lengths = sorted(self.asked(split)) if split in self.split_names() else []
        ends = [*lengths[:2], *(length for length in lengths[-2:] if length <= _LONGEST)]
        items = self.items(RandomStream(self.name, 0), np.array(ends, dtype=np.int64))
        return sorted(items.groups["length"].tolist())

    def items(self, rng: RandomStream, lengths: Integers) -> Split:
        machine = PageMachine(self._binding, rng, lengths)
        answer = machine.read()
        fields = dict[str, Ragged]()
        for field in self.item.signature.inputs:
            if field.name in machine.values:
                fields[field.name] = self._field(machine, field, next(iter(fields.values()), None))
        names = self.class_names if self.kind in (Kind.CLASSIFICATION, Kind.TAGGING) else self.vocabulary
        answers = self._tokens(answer, names, "return")
        groups = {"length": machine.named(LENGTH).values}
        read = fields if self.kind is not Kind.SEQ2SEQ else {**fields, "return": answers}
        for name in (name for name, word in read.items() if not word.lengths.all()):
            raise mistakes.empty_word(name, self.name)
        if self.kind is Kind.CLASSIFICATION:
            return Split(fields, answers.values.astype(np.int64), groups=groups)
        if self.kind is Kind.SEQ2SEQ:
            assert isinstance(self, DecodedPage), "`page_class` makes it one"
            return replace(answered(fields, answers, self.begin, self.end), groups=groups)
        marks = machine.named(SCORED, answers).values if SCORED in machine.values else np.ones(1)
        targets, scored = self._at_end(fields["x"], answers, marks)
        return Split(fields, targets, scored, groups)

    def _field(self, machine: PageMachine, field: tree.InputParameter, first: Ragged | None) -> Ragged:
        """Returns a field, whose tokens, or rows of numbers, stand at the positions of the first one."""
        if first is None or field.type.name == "tokens":
            return self._tokens(machine.named(field.name, first), field_vocabulary(self, field.name), field.name)
        size = width(self._binding, field)
        numbers = Ragged(np.zeros(size * len(first.values)), size * first.offsets)
        values = machine.named(field.name, numbers).values.astype(np.float32) / np.float32(UNITS)
        return Ragged(values.reshape(-1, size), first.offsets)

    def _tokens(self, word: Ragged, words: tuple[str, ...], name: str) -> Ragged:
        low, high = int(word.values.min(initial=0)), int(word.values.max(initial=0))
        if low < 0 or high >= len(words):
            raise mistakes.outside_vocabulary(name, self.name, low if low < 0 else high, len(words))
        return Ragged(word.values.astype(np.min_scalar_type(max(len(words) - 1, 0))), word.offsets)

    def _at_end(self, x: Ragged, answers: Ragged, marks: np.ndarray) -> tuple[Ragged, Ragged]:
        """Returns the targets and the scored positions: an answer stands at the end of its sequence."""
        before = x.lengths - answers.lengths
        if (before < 0).any():
            worst = before.argmin()
            raise mistakes.answer_too_long(self.name, int(answers.lengths[worst]), int(x.lengths[worst]))
        in_answer = ranges(x.lengths) >= np.repeat(before, x.lengths)
        targets, scored = np.zeros(len(x.values), dtype=answers.values.dtype), np.zeros(len(x.values), dtype=np.bool_)
        targets[in_answer], scored[in_answer] = answers.values, marks != 0
        return Ragged(targets, x.offsets), Ragged(scored, x.offsets)


class DecodedPage(PageTask):
    """A page whose answers a model decodes."""

    @property
    def begin(self) -> int:
        return self.vocabulary.index("[B]")

    @property
    def end(self) -> int | None:
        return self.vocabulary.index("[E]") if self.statics.get("eos") else None


def page_class(name: str, python: str = "") -> type[PageTask] | None:
    """Returns the class of a task whose page is shipped, or is the text `python`; None if it is no page."""
    return _page_class(name, python if python.startswith(tree.PAGE) else "")


@lru_cache(maxsize=256)  # an editor makes one for each text of a page
def _page_class(name: str, text: str) -> type[PageTask] | None:
    item = library.task(name)
    if text:
        try:
            (written,) = parse(Source(f"the page of {name}", text)).items
        except (ProgramError, ValueError) as error:
            raise mistakes.damaged_page(name) from error
        if not isinstance(written, tree.Extern) or not kind_of_page(written) or library.splits(written) is None:
            raise mistakes.damaged_page(name)
        item = library.with_settings(written)
    if item is None or item.body is None:
        return None
    file = ResolvedFile(tree.Program(items=(), source=item.span.source))
    kind = Kind(kind_of_page(item))
    bases = DecodedPage if kind is Kind.SEQ2SEQ else PageTask, _SPLITS[item.includes[0].text]
    own = {"__module__": __name__, "declaration": Declaration(item, file), "item": item, "kind": kind}
    if kind is Kind.CLASSIFICATION:
        own |= {"unit": Unit.SAMPLE, "metrics": ("accuracy",)}
    made: type[PageTask] = type(name, bases, own)
    made.name = name
    if text:  # other texts have other items
        made.version = int(sha256(text.encode()).hexdigest()[:12], 16)
    return made
