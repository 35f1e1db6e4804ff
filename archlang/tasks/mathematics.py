"""Mathematics: answer questions about sums, differences and digits of numbers, character by character.

The modules `add_or_sub` and `place_value` of Saxton et al. (2019), with the rules of their generator: a number of
digits is divided between the two numbers, half of the numbers are decimals, and the wording is random. Train has three
difficulties together, as in Csordás et al. (2021).

>>> task = Mathematics(draws=20)
>>> train = task.generate("train", seed=0)
>>> question(task, train, 1)
('Calculate 50868 - 21.', '50847')
>>> question(task, train, 4)
('What is 0.01 + -14.4?', '-14.39')
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Context, Decimal
from functools import cached_property
from itertools import islice

import numpy as np

from archlang.data import store
from archlang.tasks.kit import mistakes, published_files
from archlang.tasks.kit.drawing import Drawing, Fingerprints, RandomStream, ScalarStream, Seen, fingerprints, in_share
from archlang.tasks.kit.lexicon import BEGIN, END
from archlang.tasks.kit.split import Integers, Ragged, Split
from archlang.tasks.kit.task import PairTask

MODULES = {"add_or_sub": "arithmetic__add_or_sub", "place_value": "numbers__place_value"}
DIFFICULTIES = ("easy", "medium", "hard")
# The range of the approximate total number of digits in the numbers of a question.
TRAIN_DIGITS = {"add_or_sub": (4.0, 16.0), "place_value": (3.0, 10.0)}
INTERPOLATE_DIGITS = {"add_or_sub": 12.0, "place_value": 8.0}
EXTRAPOLATE_DIGITS = {"add_or_sub": (16.0, 20.0), "place_value": (10.0, 12.0)}
# {0} and {1} are the numbers. The answer to a question of DIFFERENCES is not negative.
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
# The share of all questions that a split may hold, by fingerprint.
SHARES = {"train": (1 / 8, 1.0), "iid": (0.0, 1 / 32), "interpolate": (1 / 32, 1 / 16), "extrapolate": (1 / 16, 1 / 8)}
_BATCH, _WINDOW = 1 << 14, 100
_STEPS = 1 << 10
# More digits than any number of a question, independent of the user's decimal context.
_EXACT = Context(prec=64)
# The token of each byte.
_TOKENS = bytes(CHARACTERS.index(chr(byte)) if chr(byte) in CHARACTERS else len(VOCABULARY) for byte in range(256))

Question = tuple[str, str]


class Mathematics(PairTask):
    module: str
    data: str
    draws: int

    vocabulary = VOCABULARY
    splits = ("train", "iid", "interpolate", "extrapolate")
    in_distribution = ("train", "iid", "interpolate")
    breakdown = "digits"
    groups = ("digits", "difficulty")

    def reads(self) -> tuple[tuple[str, str], ...]:
        if self.data != "files":
            return ()
        folders = (*(f"train-{difficulty}" for difficulty in DIFFICULTIES), "interpolate", "extrapolate")
        return tuple(("dm_math", self._member(folder)) for folder in folders)

    def make(self, split: str, seed: int) -> Split:
        if self.data == "files":
            questions, difficulties = self._files[split]
        elif split in ("train", "iid"):
            questions, difficulties = self._drawn(split, seed)
        else:
            questions, difficulties = self._tested(split, seed), np.zeros(0, dtype=np.int64)
        digits = np.asarray([_most_digits(text) for text, _ in questions], dtype=np.int64)
        groups = {"digits": digits, **({"difficulty": difficulties} if len(difficulties) else {})}
        source, target = (_encoded([question[side] for question in questions]) for side in (0, 1))
        return self.pairs(source, target, groups)

    # Generated questions

    def _drawn(self, split: str, seed: int) -> tuple[list[Question], Integers]:
        """Draws `train` or the held-out `iid`. Both splits share the same draws."""
        low, high = TRAIN_DIGITS[self.module]
        third = (high - low) / len(DIFFICULTIES)
        seen, questions, counts = Seen(), [], []
        for number, difficulty in enumerate(DIFFICULTIES):
            rng = RandomStream("mathematics", self.module, difficulty, seed)
            drawn = islice(self._questions(rng, low + number * third, low + (number + 1) * third), self.draws)
            most = PUBLISHED_HELD_OUT if split == "iid" else self.draws
            fresh: list[Question] = []
            while len(fresh) < most and (batch := list(islice(drawn, _BATCH))):
                fresh += _fresh(batch, seen, SHARES[split])
            questions += fresh[:most]
            counts.append(len(fresh[:most]))
        return questions, np.repeat(np.arange(len(DIFFICULTIES)), counts)

    def _tested(self, split: str, seed: int) -> list[Question]:
        digits = INTERPOLATE_DIGITS[self.module]
        low, high = EXTRAPOLATE_DIGITS[self.module] if split == "extrapolate" else (digits, digits)
        drawn = self._questions(RandomStream("mathematics", self.module, split, seed), low, high)
        remedy, share = "choose `module = add_or_sub`", SHARES[split]
        search = Drawing(self.name, "test_size", self.test_size, remedy, share=share, window=_WINDOW)
        questions: list[Question] = []
        while search.missing:
            batch = list(islice(drawn, _BATCH))
            questions += [batch[index] for index in search.pick(_prints(batch))]
        return questions

    def _questions(self, rng: RandomStream, low: float, high: float) -> Iterator[Question]:
        stream = _QuestionStream(rng)
        ask = stream.add_or_sub if self.module == "add_or_sub" else stream.place_value
        while True:
            yield ask(low + (high - low) * stream.real())

    # Published questions

    @cached_property
    def _files(self) -> dict[str, tuple[list[Question], Integers]]:
        """All splits. A split has no question of an earlier split."""
        seen: set[str] = set()
        train: list[Question] = []
        held_out: list[Question] = []
        counts: dict[str, list[int]] = {"train": [], "iid": []}
        for difficulty in DIFFICULTIES:
            fresh = list(_unseen(self._lines(f"train-{difficulty}"), seen))
            in_iid = np.zeros(len(fresh), dtype=np.bool_)
            most = min(PUBLISHED_HELD_OUT, len(fresh) // 2)
            in_iid[np.random.RandomState(1234).choice(len(fresh), most, replace=False)] = True
            for name, questions, part in (("iid", held_out, in_iid), ("train", train, ~in_iid)):
                questions += [fresh[index] for index in np.flatnonzero(part)]
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
    """Yields the questions and answers of a file, which alternate in its lines.

    Raises:
        TaskError: a question has no answer, or a line has an unknown character."""
    texts = published_files.parse_each("dm_math", member, lines, _checked)
    for number, text in enumerate(texts):
        answer = next(texts, None)
        if answer is None:
            raise mistakes.damaged_line("dm_math", member, 2 * number + 1, text)
        yield text, answer


def question(task: Mathematics, split: Split, index: int) -> tuple[str, str]:
    """Returns a question and its answer as text, without `[B]` and `[E]`."""
    targets = split.targets
    assert isinstance(targets, Ragged)
    source, answer = split.inputs["source"][index][1:-1], targets[index][:-1]
    return "".join(task.vocabulary[token] for token in source), "".join(task.vocabulary[token] for token in answer)


class _QuestionStream(ScalarStream):
    """Random questions, one after another."""

    def add_or_sub(self, digits: float) -> Question:
        """Returns a question about two numbers with about this total number of digits."""
        first = max(1.0, digits * self.real())
        p, q = self.number(first), self.number(max(1.0, digits - first))
        if self.below(2):
            return SUMS[self.below(len(SUMS))].format(_decimal_text(p), _decimal_text(q)), _decimal_text(
                _EXACT.add(p, q)
            )
        wordings = (*SUBTRACTIONS, *DIFFERENCES) if p >= q else SUBTRACTIONS
        return wordings[self.below(len(wordings))].format(_decimal_text(p), _decimal_text(q)), _decimal_text(
            _EXACT.subtract(p, q)
        )

    def place_value(self, digits: float) -> Question:
        """Returns a question about one digit of a number with about this number of digits."""
        number = 1 + self.below(_power_of_ten(digits))
        written = str(number)
        place = self.below(len(written))
        return f"What is the {PLACES[place]} digit of {written}?", written[-1 - place]

    def number(self, digits: float) -> Decimal:
        """Returns an integer, or a decimal that is not an integer, of either sign and with about this number of
        digits."""
        most = -(-_power_of_ten(digits) // 2)
        if self.below(2):
            return Decimal(self.below(2 * most + 1) - most)
        while True:
            mantissa, shift = self.below(2 * most + 1) - most, 1 + self.below(-int(-digits // 1))
            if mantissa % 10**shift:
                return Decimal(mantissa).scaleb(-shift, _EXACT)


# Powers of 10 with exponents from 0 to 1. Machines differ in the last bit of a power, so decimal arithmetic computes
# the table, and exponents between its steps are interpolated.
_POWERS = tuple(float(_EXACT.power(10, _EXACT.divide(step, _STEPS))) for step in range(_STEPS + 1))


def _power_of_ten(exponent: float) -> int:
    integer = int(exponent)
    place = (exponent - integer) * _STEPS
    step = int(place)
    factor = _POWERS[step] + (_POWERS[min(step + 1, _STEPS)] - _POWERS[step]) * (place - step)
    scaled: int = int(factor * 2.0**40) * 10**integer
    return -(-scaled // 2**40)


def _decimal_text(number: Decimal) -> str:
    """Returns a number as text without an exponent and without trailing zeros after its point."""
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _prints(batch: Sequence[Question]) -> Fingerprints:
    return fingerprints(_encoded([text for text, _ in batch]))


def _fresh(batch: Sequence[Question], seen: Seen, share: tuple[float, float]) -> list[Question]:
    prints = _prints(batch)
    return [batch[int(index)] for index in np.flatnonzero(in_share(prints, *share) & seen.fresh(prints))]


def _unseen(questions: Iterable[Question], seen: set[str]) -> Iterator[Question]:
    for text, answer in questions:
        if text not in seen:
            seen.add(text)
            yield text, answer


def _encoded(texts: Sequence[str]) -> Ragged:
    characters = Ragged.of_bytes(text.encode("ascii") for text in texts)
    return Ragged(np.frombuffer(_TOKENS, dtype=np.uint8)[characters.values], characters.offsets)


def _checked(line: str) -> str:
    text = line.strip()
    if not text or not set(text) <= set(CHARACTERS):
        raise ValueError(text)
    return text


def _most_digits(text: str) -> int:
    most = digits = 0
    for character in text:
        if character.isdigit():
            digits += 1
            most = max(most, digits)
        elif character != ".":
            digits = 0
    return most
