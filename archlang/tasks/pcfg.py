"""PCFG SET: compute an expression of string functions, such as `reverse copy O14 O4 C12`.

Hupkes et al. (2020). Functions precede their arguments, without brackets; a comma separates two arguments.

>>> task = Pcfg(train_size=20, split="systematicity")
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["source"][8]), task.spell(train.targets[8])
('[B] append L7 A1 O9 Q1 D6 , reverse shift J14 W4 [E]', 'L7 A1 O9 Q1 D6 J14 W4 [E]')
>>> task.spell(train.inputs["source"][13]), task.spell(train.inputs["target"][13]), task.spell(train.targets[13])
('[B] swap_first_last P14 X12 Z19 N17 [E]', '[B] N17 X12 Z19 P14', 'N17 X12 Z19 P14 [E]')
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product

import numpy as np

from archlang.tasks.kit import mistakes, published_files
from archlang.tasks.kit.drawing import Drawing, RandomStream, ScalarStream, fingerprints
from archlang.tasks.kit.lexicon import BEGIN, END, Lexicon
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import PairTask

Words = tuple[str, ...]

UNARY: Mapping[str, Callable[[Words], Words]] = {
    "copy": lambda x: x,
    "reverse": lambda x: x[::-1],
    "shift": lambda x: x[1:] + x[:1],
    "swap_first_last": lambda x: x[-1:] + x[1:-1] + x[:1] if len(x) > 1 else x,
    "repeat": lambda x: x + x,
    "echo": lambda x: x + x[-1:],
}
BINARY: Mapping[str, Callable[[Words, Words], Words]] = {
    "append": lambda x, y: x + y,
    "prepend": lambda x, y: y + x,
    "remove_first": lambda x, y: y,
    "remove_second": lambda x, y: x,
}
FUNCTIONS = (*UNARY, *BINARY)
COMMA = ","
LETTERS = tuple(f"{letter}{number}" for letter, number in product("ABCDEFGHIJKLMNOPQRSTUVWXYZ", range(1, 21)))
LEXICON = Lexicon((*sorted((*FUNCTIONS, *LETTERS, COMMA)), END, BEGIN))
PAIRS = (
    ("swap_first_last", "repeat"),
    ("append", "remove_second"),
    ("repeat", "remove_second"),
    ("append", "swap_first_last"),
)
MOST_TRAINED, MOST_FUNCTIONS = 8, 30
PUBLISHED_SIZES = {
    "iid": {"train": 82_622, "iid": 4_860, "test": 9_721},
    "productivity": {"train": 81_010, "iid": 4_860, "test": 11_333},
    "systematicity": {"train": 82_168, "iid": 4_860, "test": 10_175},
}
FOLDERS = {"iid": "pcfgset", "productivity": "productivity", "systematicity": "systematicity"}
# The numbers of expressions with 1, 2, … functions among the 14,581 published ones of pcfgset/dev and pcfgset/test, and
# the numbers of their strings with 2 to 5 letters.
_COUNTS = (
    *(225, 1870, 2827, 2745, 1931, 1495, 967, 740, 500, 366, 279, 215, 118, 99, 63, 31, 23, 27, 16, 10, 10, 8, 6, 5, 2),
    *(0, 0, 2, 0, 1),
)
_LETTER_COUNTS = {2: 7071, 3: 13185, 4: 12300, 5: 11841}
_IDS = LEXICON.ids
# The length of the longest published expression.
MOST_TOKENS = 71
# The share of all expressions that a split may hold, by fingerprint. A test split that a rule separates from the others
# may hold all.
SHARES = {"train": (1 / 8, 1.0), "iid": (0.0, 1 / 16), "test": (1 / 16, 1 / 8)}
_BATCH = 1 << 13


def evaluate(expression: Sequence[str]) -> Words:
    """Returns the value of an expression.

    Raises:
        ValueError: the expression is malformed."""
    value, stop = _value_and_end(tuple(expression), 0)
    if stop != len(expression):
        raise ValueError(f"unexpected {' '.join(expression[stop:])} after {' '.join(expression[:stop])}")
    return value


def _value_and_end(words: Words, start: int) -> tuple[Words, int]:
    word = words[start] if start < len(words) else ""
    if word in UNARY:
        value, stop = _value_and_end(words, start + 1)
        return UNARY[word](value), stop
    if word in BINARY:
        first, comma = _value_and_end(words, start + 1)
        if words[comma : comma + 1] != (COMMA,):
            raise ValueError(f"{word} has no second argument in {' '.join(words)}")
        second, stop = _value_and_end(words, comma + 1)
        return BINARY[word](first, second), stop
    stop = start
    while stop < len(words) and words[stop] != COMMA and words[stop] not in UNARY and words[stop] not in BINARY:
        stop += 1
    if stop == start:
        raise ValueError(f"an argument is missing in {' '.join(words)}")
    return words[start:stop], stop


class Pcfg(PairTask):
    split: str
    data: str

    vocabulary = LEXICON.texts
    breakdown = "functions"
    groups = ("functions", "length", "pair")
    has_published_sizes = True

    @property
    def in_distribution(self) -> tuple[str, ...]:
        return self.split_names() if self.split == "iid" else tuple(n for n in self.split_names() if n != "test")

    def split_names(self) -> tuple[str, ...]:
        if self.data == "files" and self.split != "iid":
            return ("train", "test")
        return ("train", "iid", "test")

    def reads(self) -> tuple[tuple[str, str], ...]:
        splits = self.split_names() if self.data == "files" else ()
        return tuple(("pcfg_set", f"{self._path(split)}.{side}") for split in splits for side in ("src", "tgt"))

    def make(self, split: str, seed: int) -> Split:
        expressions, values = self._files(split) if self.data == "files" else self._generated(split, seed)
        source, target = LEXICON.encode(expressions), LEXICON.encode(values)
        functions = [sum(word in UNARY or word in BINARY for word in expression) for expression in expressions]
        groups = {"functions": np.asarray(functions, dtype=np.int64), "length": target.lengths}
        if self.split == "systematicity":
            groups["pair"] = np.asarray([_held_out_pair(expression) for expression in expressions], dtype=np.int64)
        return self.pairs(source, target, groups)

    def _files(self, split: str) -> tuple[list[Words], list[Words]]:
        path = self._path(split)
        expressions, values = (
            published_files.parse_lines("pcfg_set", f"{path}.{side}", _read) for side in ("src", "tgt")
        )
        if len(expressions) != len(values):
            raise mistakes.uneven_files(f"{path}.src", "pcfg_set", len(expressions), f"{path}.tgt", len(values))
        return expressions, values

    def _path(self, split: str) -> str:
        return f"{FOLDERS[self.split]}/{'dev' if split == 'iid' else split}"

    def _generated(self, split: str, seed: int) -> tuple[list[Words], list[Words]]:
        size = self.size(split) or PUBLISHED_SIZES[self.split][split]
        stream = _ExpressionStream(RandomStream("pcfg", self.split, split, seed))
        expressions: list[Words] = []
        low, high = 1, MOST_FUNCTIONS
        if self.split == "productivity":
            low, high = (MOST_TRAINED + 1, high) if split == "test" else (low, MOST_TRAINED)
        share = SHARES[split] if split != "test" or self.split == "iid" else (0.0, 1.0)
        search = Drawing(self.name, f"{split}_size", size, "choose another `split`", share=share)
        while search.missing:
            batch = [stream.short_expression(stream.weighted(_COUNTS[low - 1 : high]) + low) for _ in range(_BATCH)]
            if self.split == "systematicity":
                batch = [expression for expression in batch if bool(_held_out_pair(expression)) == (split == "test")]
            expressions += [batch[index] for index in search.pick(fingerprints(LEXICON.encode(batch)))]
        return expressions, [evaluate(expression) for expression in expressions]


class _ExpressionStream(ScalarStream):
    """Random expressions, one after another."""

    def weighted(self, weights: Sequence[int]) -> int:
        """Returns a random index in proportion to integer weights."""
        remaining = self.below(sum(weights))
        for index, weight in enumerate(weights):
            if remaining < weight:
                return index
            remaining -= weight
        raise AssertionError(weights)

    def short_expression(self, functions: int) -> Words:
        """Returns a random expression with at most `MOST_TOKENS` words."""
        while len(expression := self.expression(functions)) > MOST_TOKENS:
            pass
        return expression

    def expression(self, functions: int) -> Words:
        """Returns a random expression with this number of functions, each equally likely. Each division of functions
        between the two arguments of a binary function is equally likely, too."""
        if not functions:
            letters = 2 + self.weighted(tuple(_LETTER_COUNTS.values()))
            return tuple(LETTERS[self.below(len(LETTERS))] for _ in range(letters))
        function = FUNCTIONS[self.below(len(FUNCTIONS))]
        if function in UNARY:
            return (function, *self.expression(functions - 1))
        first = self.below(functions)
        return (function, *self.expression(first), COMMA, *self.expression(functions - 1 - first))


def _read(line: str) -> Words:
    words = tuple(line.split())
    if not words or not all(word in _IDS for word in words):
        raise ValueError(line)
    return words


def _held_out_pair(expression: Words) -> int:
    neighbours = set(pairwise(expression))
    return next((number for number, pair in enumerate(PAIRS, 1) if pair in neighbours), 0)
