"""Compositional table lookup: apply a sequence of functions, each a table over a few symbols, to one symbol.

Liska et al. (2018), in the setting of the Neural Data Router (Csordás et al., ICLR 2022, section 3.1). In backward
order `c a 001` means c(a(001)), which is 101 by the published tables. Forward order reverses the same items.

>>> task = Ctl(order="backward")
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][11]), task.spell(train.targets[11:12])
('[B] e i g a 000 [E]', '101')
>>> task = Ctl(order="forward")
>>> test = task.generate("test", seed=0)
>>> task.spell(test.inputs["x"][0]), task.spell(test.targets[0:1])
('[B] 011 c f d b b d b h h f [E]', '011')
"""

from collections.abc import Collection, Mapping

import numpy as np

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.drawing import Drawing, Fingerprints, RandomStream, Seen, in_share, table_fingerprints
from archlang.tasks.kit.split import Integers, Ragged, Split, Truths, offsets_of
from archlang.tasks.kit.task import X_MARKS, Kind, ShippedTask
from archlang.types.statics import Interval

# Digit s of a table is the image of symbol s. Functions a to i occur in compositions; j and k are the published new
# functions.
PUBLISHED_TABLES = (
    *("61570423", "65732041", "15730462", "42150736", "75640321", "46032571"),
    *("51042673", "23014567", "65042371", "74253106", "46213057"),
)
# In the published train set each application of a new function is repeated 30 more times.
NEW_REPEATS = 30
# The published in-distribution sets are 8,000 of 61,136 distinct drawn compositions.
HELD_OUT = 8_000 / 61_136
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_BATCH = 1 << 14
_WINDOW = 200
# Up to this number, items are counted by enumeration.
_COUNTABLE = 1 << 18


class Ctl(ShippedTask):
    """Internally an item is a row of numbers: the argument, the functions in the order of their application,
    and then -1."""

    order: str
    valid: Interval
    test: Interval
    symbols: int
    functions: int
    new_functions: int
    balanced: bool
    repeated: bool
    reserved: int

    splits = ("train", "iid", "valid", "test")
    disjoint = ("train", "valid", "test")
    breakdown = "length"
    kind = Kind.CLASSIFICATION
    marks = X_MARKS
    in_distribution = ("train", "iid")

    def check(self) -> None:
        singles = len(self._singles())
        if self.train_size < singles:
            raise mistakes.too_few_for_singles(self.train_size, singles, self.name)
        composed = _lengths_from_two(self.train)
        available = {
            "train": singles + (self._items_or_estimate(composed, HELD_OUT, 1.0) if composed else 0),
            "iid": self._items_or_estimate(composed, 0.0, HELD_OUT) if composed else 0,
            "valid": self._items_or_estimate(self.valid, 0.0, 1.0),
            "test": self._items_or_estimate(self.test, 0.0, 1.0),
        }
        self.check_available(available, "choose more `functions` or `symbols`, or longer compositions")

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.vocabulary[: self.symbols]

    @property
    def vocabulary(self) -> tuple[str, ...]:
        width = max((self.symbols - 1).bit_length(), 1)
        symbols = tuple(f"{symbol:0{width}b}" for symbol in range(self.symbols))
        functions = tuple(_LETTERS[: self.functions + self.new_functions])
        return (*symbols, *functions, *(("[E]", "[B]") if self.begin_end else ()))

    @property
    def tables(self) -> Integers:
        """The image of every symbol under every function: [functions + new_functions, symbols]."""
        rows = []
        for index in range(self.functions + self.new_functions):
            if self.symbols == 8 and index < len(PUBLISHED_TABLES):
                rows.append(np.array([int(digit) for digit in PUBLISHED_TABLES[index]], dtype=np.int64))
            else:
                rows.append(RandomStream("ctl table", self.symbols, index).order(self.symbols))
        return np.stack(rows)

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        train = _lengths_from_two(self.train) if split == "iid" else self.train
        lengths = {"valid": self.valid, "test": self.test}.get(split, train)
        return {"length": () if lengths is None else lengths.values()}

    def make(self, split: str, seed: int) -> Split:
        rng = RandomStream("ctl", split, seed)
        match split:
            case "train":
                rows = self._train_rows(rng)
                if self.repeated:
                    rows = _with_equal_lengths(rows)
                rows = rows[rng.order(len(rows))]
            case "iid":
                rows = self._draw(rng, _lengths_from_two(self.train), self.iid_size, "iid_size", 0.0, HELD_OUT)
            case "valid":
                rows = self._draw(rng, self.valid, self.valid_size, "valid_size")
            case _:
                rows = self._draw(rng, self.test, self.test_size, "test_size")
        return self._split(rows)

    def _split(self, rows: Integers) -> Split:
        tables, result = self.tables, rows[:, 0]
        for functions in rows[:, 1:].T:
            result = np.where(functions >= 0, tables[functions, result], result)
        tokens = np.where(rows >= 0, rows + self.symbols, -1)
        tokens[:, 0] = rows[:, 0]
        if self.order == "backward":
            tokens = tokens[:, ::-1]
        real = tokens >= 0
        x = Ragged(tokens[real].astype(np.uint8), offsets_of(real.sum(axis=1)))
        return Split({"x": self.enclosed(x)}, result, groups={"length": real.sum(axis=1) - 1})

    def _train_rows(self, rng: RandomStream) -> Integers:
        singles = self._singles()
        composed = _lengths_from_two(self.train)
        size = self.train_size - len(singles)
        if composed is None:
            return singles
        if not self.balanced:
            rows = self._draw(rng, composed, size, "train_size", HELD_OUT, 1.0)
        else:
            lengths = [Interval(length, length) for length in range(composed.low, composed.high + 1)]
            shares = _even([self._items_or_estimate(length, HELD_OUT, 1.0) for length in lengths], size)
            rows = np.concatenate(
                [
                    _widen(self._draw(rng, length, share, "train_size", HELD_OUT, 1.0), composed.high)
                    for length, share in zip(lengths, shares, strict=True)
                ]
            )
        return np.concatenate([_widen(singles, composed.high), rows])

    def _singles(self) -> Integers:
        """Returns all single applications, with repeated ones of new functions; empty if `train` begins at 2."""
        if self.train.low > 1:
            return np.zeros((0, 2), dtype=np.int64)
        singles = _product(self.symbols, self.functions + self.new_functions)
        new = singles[singles[:, 1] >= self.functions]
        return np.concatenate([singles, np.tile(new, (NEW_REPEATS, 1))])

    def _draw(
        self, rng: RandomStream, lengths: Interval | None, size: int, static: str, low: float = 0.0, high: float = 1.0
    ) -> Integers:
        """Draws distinct rows of the share [low, high) of all items. Each length is equally likely in a draw. Short
        lengths run out of items and become rarer, as in the published sets."""
        if lengths is None or size == 0:
            return np.zeros((0, 2), dtype=np.int64)
        reserved, parts = self._reserved(lengths), []
        search = Drawing(self.name, static, size, "choose more `functions`", window=_WINDOW)
        while search.missing:
            count = rng.below(lengths.high - lengths.low + 1, _BATCH) + lengths.low
            rows = np.empty((_BATCH, lengths.high + 1), dtype=np.int64)
            rows[:, 0] = rng.below(self.symbols, _BATCH)
            rows[:, 1:] = rng.below(self.functions, (_BATCH, lengths.high))
            rows[:, 1:][np.arange(lengths.high) >= count[:, None]] = -1
            rows = rows[self._allowed(rows, reserved, low, high)]
            parts.append(rows[search.pick(table_fingerprints(rows))])
        return np.concatenate(parts)

    def _allowed(self, rows: Integers, reserved: Fingerprints, low: float, high: float) -> Truths:
        """Marks the rows in the share [low, high), without reserved compositions unless the share is [0, 1)."""
        allowed = in_share(table_fingerprints(rows), low, high)
        if len(reserved) and (low, high) != (0.0, 1.0):
            allowed &= ~np.isin(table_fingerprints(rows[:, 1:]), reserved)
        return allowed

    def _reserved(self, lengths: Interval) -> Fingerprints:
        """Returns the compositions that train never has: a quarter of each length, at most `reserved`."""
        parts = []
        for length in range(lengths.low, lengths.high + 1):
            rng, seen = RandomStream("ctl reserved", self.functions, length), Seen()
            missing = min(self.reserved, -(-(self.functions**length) // 4))
            while missing:
                prints = table_fingerprints(rng.below(self.functions, (2 * missing, length)))
                prints = prints[seen.fresh(prints)][:missing]
                parts.append(prints)
                missing -= len(prints)
        return np.concatenate([np.zeros(0, dtype=np.uint64), *parts])

    def _items_or_estimate(self, lengths: Interval, low: float, high: float) -> int:
        total = 0
        for length in range(lengths.low, lengths.high + 1):
            items = self.symbols * self.functions**length
            if (low, high) == (0.0, 1.0):
                total += items
            elif items > _COUNTABLE:
                total += int((items - self.symbols * self.reserved) * (high - low) * 0.99)
            else:
                rows = _product(self.symbols, *(self.functions,) * length)
                total += int(self._allowed(rows, self._reserved(Interval(length, length)), low, high).sum())
        return total


def _with_equal_lengths(rows: Integers) -> Integers:
    """Repeats the rows of rarer lengths until each length is as frequent as the most frequent one."""
    lengths = (rows[:, 1:] >= 0).sum(axis=1)
    most = int(np.bincount(lengths).max())
    chosen = [np.resize(np.flatnonzero(lengths == length), most) for length in np.unique(lengths)]
    return rows[np.concatenate(chosen)]


def _lengths_from_two(lengths: Interval) -> Interval | None:
    return Interval(max(lengths.low, 2), lengths.high) if lengths.high >= 2 else None


def _product(*sizes: int) -> Integers:
    """Returns every row of numbers below these sizes: [product of sizes, len(sizes)]."""
    return np.indices(sizes, dtype=np.int64).reshape(len(sizes), -1).T


def _widen(rows: Integers, length: int) -> Integers:
    return np.pad(rows, ((0, 0), (0, length + 1 - rows.shape[1])), constant_values=-1)


def _even(available: list[int], total: int) -> list[int]:
    """Divides `total` as evenly as the available numbers permit."""
    shares = [0] * len(available)
    order = sorted(range(len(available)), key=lambda index: available[index])
    for position, index in enumerate(order):
        shares[index] = min(available[index], total // (len(order) - position))
        total -= shares[index]
    return shares
