"""Mathematics: sums, differences and digits of numbers, asked and answered in characters.

The modules `add_or_sub` and `place_value` of Saxton et al. (2019), by the rules of their generator: the two numbers
share a number of digits, half of them are decimals, and the wording is drawn. Trained on three difficulties together,
as in Csordás et al. (2021).

>>> task = Mathematics(draws=20)
>>> train = task.generate("train", seed=0)
>>> question(task, train, 1)
('Calculate 50868 - 21.', '50847')
>>> question(task, train, 4)
('What is 0.01 + -14.4?', '-14.39')
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cached_property
from itertools import islice

import numpy as np

from archlang.data import store
from archlang.tasks.kit import mistakes, published_files
from archlang.tasks.kit.checks import check_bounds, check_choice, check_split
from archlang.tasks.kit.fingerprints import Patience, Seen, fingerprints, in_share
from archlang.tasks.kit.lexicon import BEGIN, END
from archlang.tasks.kit.ragged import Integers, Ragged
from archlang.tasks.kit.random_stream import RandomStream, ScalarStream
from archlang.tasks.kit.sequence_pairs import SequencePairs
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit

__all__ = ["Mathematics", "question"]

MODULES = {"add_or_sub": "arithmetic__add_or_sub", "place_value": "numbers__place_value"}
SOURCES = ("generated", "files")
DIFFICULTIES = ("easy", "medium", "hard")
SPLITS = ("train", "iid", "interpolate", "extrapolate")
# How many digits the numbers of a question have together, about: from, to.
TRAIN_DIGITS = {"add_or_sub": (4.0, 16.0), "place_value": (3.0, 10.0)}
INTERPOLATE_DIGITS = {"add_or_sub": 12.0, "place_value": 8.0}
EXTRAPOLATE_DIGITS = {"add_or_sub": (16.0, 20.0), "place_value": (10.0, 12.0)}
# {0} and {1} are the numbers; a difference is not negative.
SUMS = (
    *("{0} + {1}", "{0}+{1}", "Work out {0} + {1}.", "Add {0} and {1}.", "Put together {0} and {1}."),
    *("Sum {0} and {1}.", "Total of {0} and {1}.", "Add together {0} and {1}.", "What is {0} plus {1}?"),
    *("Calculate {0} + {1}.", "What is {0} + {1}?"),
)
SUBTRACTIONS = (
    *("{0} - {1}", "Work out {0} - {1}.", "What is {0} minus {1}?", "What is {0} take away {1}?"),
    *("What is {1} less than {0}?", "Subtract {1} from {0}.", "Calculate {0} - {1}.", "What is {0} - {1}?"),
)
DIFFERENCES = tuple(
    f"What is the {word} between {pair}?"
    for word in ("distance", "difference")
    for pair in ("{0} and {1}", "{1} and {0}")
)
PLACES = (
    *("units", "tens", "hundreds", "thousands", "ten thousands", "hundred thousands"),
    *("millions", "ten millions", "hundred millions", "billions", "ten billions", "hundred billions", "trillions"),
)
CHARACTERS = tuple(
    sorted(
        {*"0123456789.", *"".join((*SUMS, *SUBTRACTIONS, *DIFFERENCES, *PLACES, "What is the digit of ?"))} - {*"{}"}
    )
)
VOCABULARY = (*CHARACTERS, END, BEGIN)
PUBLISHED_HELD_OUT = 10_000
# The share of all questions, by fingerprint, that a split may hold.
SHARES = {"train": (1 / 8, 1.0), "iid": (0.0, 1 / 32), "interpolate": (1 / 32, 1 / 16), "extrapolate": (1 / 16, 1 / 8)}
_BATCH, _WINDOW = 1 << 14, 100
_STEPS = 1 << 10
# More digits than any number of a question has, whatever the precision that the user has set.
_EXACT = Context(prec=64)
_NUMBERS = np.full(256, len(VOCABULARY), dtype=np.uint8)
_NUMBERS[[ord(character) for character in CHARACTERS]] = np.arange(len(CHARACTERS))

Question = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Mathematics:
    """The task. `draws` is how many questions are drawn of each difficulty, before repeated ones are dropped."""

    module: str = "add_or_sub"
    data: str = "generated"
    draws: int = 666_666
    test_size: int = 10_000

    vocabulary = VOCABULARY
    begin, end = len(VOCABULARY) - 1, len(VOCABULARY) - 2
    kind = Kind.SEQ2SEQ
    in_distribution = ("train", "iid", "interpolate")
    breakdown = "digits"
    unit = Unit.SEQUENCE
    metrics = ("accuracy", "token_accuracy")
    version = 1

    def __post_init__(self) -> None:
        for static, known in (("module", tuple(MODULES)), ("data", SOURCES)):
            check_choice("mathematics", static, getattr(self, static), known)
        for static, least in (("draws", 1), ("test_size", 0)):
            check_bounds("mathematics", static, getattr(self, static), least)

    def split_names(self) -> tuple[str, ...]:
        return SPLITS

    def reads(self) -> tuple[tuple[str, str], ...]:
        if self.data != "files":
            return ()
        folders = (*(f"train-{difficulty}" for difficulty in DIFFICULTIES), "interpolate", "extrapolate")
        return tuple(("dm_math", self._member(folder)) for folder in folders)

    def generate(self, split: str, seed: int) -> Split:
        check_split("mathematics", split, SPLITS)
        if self.data == "files":
            found, difficulties = self._files[split]
        elif split in ("train", "iid"):
            found, difficulties = self._drawn(split, seed)
        else:
            found, difficulties = self._tested(split, seed), np.zeros(0, dtype=np.int64)
        digits = np.asarray([_digits(asked) for asked, _ in found], dtype=np.int64)
        groups = {"digits": digits, **({"difficulty": difficulties} if len(difficulties) else {})}
        source, target = (_encoded([one[side] for one in found]) for side in (0, 1))
        return SequencePairs(source, target, groups).split(self.begin, self.end)

    # Generated questions.

    def _drawn(self, split: str, seed: int) -> tuple[list[Question], Integers]:
        """The train set, and what is held out of it: both see the same draws."""
        low, high = TRAIN_DIGITS[self.module]
        third = (high - low) / len(DIFFICULTIES)
        seen, found, counts = Seen(), [], []
        for number, difficulty in enumerate(DIFFICULTIES):
            rng = RandomStream("mathematics", self.module, difficulty, seed)
            drawn = islice(self._questions(rng, low + number * third, low + (number + 1) * third), self.draws)
            most = PUBLISHED_HELD_OUT if split == "iid" else self.draws
            kept: list[Question] = []
            while len(kept) < most and (batch := list(islice(drawn, _BATCH))):
                kept += _fresh(batch, seen, SHARES[split])
            found += kept[:most]
            counts.append(len(kept[:most]))
        return found, np.repeat(np.arange(len(DIFFICULTIES)), counts)

    def _tested(self, split: str, seed: int) -> list[Question]:
        one = INTERPOLATE_DIGITS[self.module]
        low, high = EXTRAPOLATE_DIGITS[self.module] if split == "extrapolate" else (one, one)
        drawn = self._questions(RandomStream("mathematics", self.module, split, seed), low, high)
        seen, patience = Seen(), Patience(self.test_size, _WINDOW)
        found: list[Question] = []
        while len(found) < self.test_size:
            fresh = _fresh(list(islice(drawn, _BATCH)), seen, SHARES[split])
            found += fresh
            if patience.is_over(len(fresh)) and len(found) < self.test_size:
                raise mistakes.items_too_rare(
                    "mathematics", "test_size", self.test_size, len(found), "take `add_or_sub`"
                )
        return found[: self.test_size]

    def _questions(self, rng: RandomStream, low: float, high: float) -> Iterator[Question]:
        stream = _QuestionStream(rng)
        ask = stream.add_or_sub if self.module == "add_or_sub" else stream.place_value
        while True:
            yield ask(low + (high - low) * stream.real())

    # Published questions.

    @cached_property
    def _files(self) -> dict[str, tuple[list[Question], Integers]]:
        """All splits, of which none repeats a question of those before."""
        seen: set[str] = set()
        train: list[Question] = []
        held_out: list[Question] = []
        counts: dict[str, list[int]] = {"train": [], "iid": []}
        for difficulty in DIFFICULTIES:
            fresh = list(_unseen(self._lines(f"train-{difficulty}"), seen))
            chosen = np.zeros(len(fresh), dtype=np.bool_)
            most = min(PUBLISHED_HELD_OUT, len(fresh) // 2)
            chosen[np.random.RandomState(1234).choice(len(fresh), most, replace=False)] = True
            for name, kept, part in (("iid", held_out, chosen), ("train", train, ~chosen)):
                kept += [fresh[index] for index in np.flatnonzero(part)]
                counts[name].append(int(part.sum()))
        thirds = {name: np.repeat(np.arange(len(DIFFICULTIES)), counts[name]) for name in counts}
        none = np.zeros(0, dtype=np.int64)
        return {
            "train": (train, thirds["train"]),
            "iid": (held_out, thirds["iid"]),
            "interpolate": (list(_unseen(self._lines("interpolate"), seen)), none),
            "extrapolate": (list(_unseen(self._lines("extrapolate"), seen)), none),
        }

    def _lines(self, folder: str) -> Iterator[Question]:
        member = self._member(folder)
        return read(member, store.lines("dm_math", member))

    def _member(self, folder: str) -> str:
        ending = "_big" if folder == "extrapolate" else ""
        return f"{folder}__{MODULES[self.module]}{ending}.txt"


def read(member: str, lines: Iterable[str]) -> Iterator[Question]:
    """The questions and answers of a file, which take turns in its lines.

    Raises:
        TaskError: a question has no answer, or holds a character that no question has."""
    texts = published_files.parse_each("dm_math", member, lines, _known)
    for number, asked in enumerate(texts):
        answer = next(texts, None)
        if answer is None:
            raise mistakes.damaged_line("dm_math", member, 2 * number + 1, asked)
        yield asked, answer


def question(task: Mathematics, split: Split, index: int) -> tuple[str, str]:
    """A question and its answer as text, without the signs around them."""
    targets = split.targets
    assert isinstance(targets, Ragged)
    asked, answer = split.inputs["source"][index][1:-1], targets[index][:-1]
    return "".join(task.vocabulary[token] for token in asked), "".join(task.vocabulary[token] for token in answer)


class _QuestionStream(ScalarStream):
    """Random questions, one after another."""

    def add_or_sub(self, digits: float) -> Question:
        first = max(1.0, digits * self.real())
        p, q = self.number(first), self.number(max(1.0, digits - first))
        if self.below(2):
            return SUMS[self.below(len(SUMS))].format(_written(p), _written(q)), _written(_EXACT.add(p, q))
        wordings = (*SUBTRACTIONS, *DIFFERENCES) if p >= q else SUBTRACTIONS
        return wordings[self.below(len(wordings))].format(_written(p), _written(q)), _written(_EXACT.subtract(p, q))

    def place_value(self, digits: float) -> Question:
        number = 1 + self.below(_power_of_ten(digits))
        written = str(number)
        place = self.below(len(written))
        return f"What is the {PLACES[place]} digit of {written}?", written[-1 - place]

    def number(self, digits: float) -> Decimal:
        """A whole number or a decimal that is none, of either sign, and of about so many digits."""
        most = -(-_power_of_ten(digits) // 2)
        if self.below(2):
            return Decimal(self.below(2 * most + 1) - most)
        while True:
            whole, shift = self.below(2 * most + 1) - most, 1 + self.below(-int(-digits // 1))
            if whole % 10**shift:
                return Decimal(whole).scaleb(-shift, _EXACT)


def _powers() -> tuple[float, ...]:
    return tuple(float(_EXACT.power(10, _EXACT.divide(step, _STEPS))) for step in range(_STEPS + 1))


# 10 to the power of 0 … 1. Machines differ in the last place of a power, so the table comes from decimal arithmetic,
# and what lies between its steps is interpolated.
_POWERS = _powers()


def _power_of_ten(exponent: float) -> int:
    """10 to a power, rounded up."""
    whole = int(exponent)
    place = (exponent - whole) * _STEPS
    step = int(place)
    factor = _POWERS[step] + (_POWERS[min(step + 1, _STEPS)] - _POWERS[step]) * (place - step)
    scaled: int = int(factor * 2.0**40) * 10**whole
    return -(-scaled // 2**40)


def _written(number: Decimal) -> str:
    """A number without an exponent, and without zeros behind what is right of its point."""
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _fresh(batch: Sequence[Question], seen: Seen, share: tuple[float, float]) -> list[Question]:
    """The questions of a share that were not drawn before."""
    prints = fingerprints(_encoded([asked for asked, _ in batch]))
    return [batch[int(index)] for index in np.flatnonzero(in_share(prints, *share) & seen.fresh(prints))]


def _unseen(found: Iterable[Question], seen: set[str]) -> Iterator[Question]:
    for asked, answer in found:
        if asked not in seen:
            seen.add(asked)
            yield asked, answer


def _encoded(texts: Sequence[str]) -> Ragged:
    characters = Ragged.of_bytes(text.encode("ascii") for text in texts)
    return Ragged(_NUMBERS[characters.values], characters.offsets)


def _known(line: str) -> str:
    text = line.strip()
    if not text or not set(text) <= set(CHARACTERS):
        raise ValueError(text)
    return text


def _digits(asked: str) -> int:
    """The most digits of a number that a question holds."""
    most = digits = 0
    for character in asked:
        if character.isdigit():
            digits += 1
            most = max(most, digits)
        elif character != ".":
            digits = 0
    return most
