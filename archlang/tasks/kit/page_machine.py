"""The machine that runs the page of a task for many items at once: a number is an array, a word a sequence of each.

Every statement runs for all items; where a condition excludes some, their values stay. Integers are exact: numbers that
64 bits may not hold are Python's."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from math import isqrt
from operator import add, eq, ge, gt, le, lt, mul, ne, pow, sub
from typing import Any

import numpy as np

from archlang.elaborate.binding import Binding
from archlang.elaborate.task_pages import NUMBER, WORD, Page
from archlang.errors import Diagnostic
from archlang.errors.effort import spend
from archlang.syntax import tree
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.split import Integers, Ragged, offsets_of, ranges

UNITS = 1 << 57
"""The units of a number of a field `seq[n, k]`, where symbols are whole numbers."""
MOST_STEPS = 1_000_000
"""How many steps all loops of a page take together at most."""
_MOST_SYMBOLS = 1 << 20  # of a word
_MOST_BITS = 1 << 14  # of a number
_SMALL = 1 << 61

_OUTSIDE = "place {} of a word of {} symbols"
_WITHIN = "places are from 0 to `size(…) - 1`"
_COMPARISONS = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
# Any: arrays of integers, or of Python's
_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": add, "-": sub, "*": mul, "power": pow, "/": np.floor_divide, "%": np.remainder,
}  # fmt: skip


class SharedWord:
    """The numbers of a static list: a word that all items share."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.values = np.asarray(numbers, dtype=np.int64)


class PageMachine(Page):
    """Computes the values of a page for items of some lengths [N]."""

    def __init__(self, binding: Binding, rng: RandomStream, lengths: Integers) -> None:
        super().__init__(binding, _refuse)
        self._rng, self._lengths, self._count = rng, np.asarray(lengths, dtype=np.int64), len(lengths)
        self._steps = 0
        self._at: tree.Syntax = self.item  # the innermost statement or expression that is computed
        self._like: Ragged | None = None
        # The items for which a statement runs, and the positions of words for which an expression is computed, with the
        # offsets of the words.
        self._lane: Any = np.True_
        self._positions: list[tuple[Integers, Any]] = []

    def _require(self, holds: Any, like: Any, node: tree.Syntax, reason: str, remedy: str, *facts: Any) -> None:
        """Raises TaskError if a condition fails for an item that counts, with its facts. `like` is the word with whose
        positions the condition is, or None."""
        if np.all(holds):
            return
        live = self._lane
        if like is not None:
            live = np.repeat(np.broadcast_to(live, self._count), like.lengths)
            for offsets, truth in self._positions:
                live = live & truth if np.array_equal(offsets, like.offsets) else live
        if np.any(fails := live & ~np.asarray(holds, dtype=np.bool_)):
            place = np.argmax(fails)
            shown = [np.broadcast_to(fact, np.shape(fails)).reshape(-1)[place] for fact in facts]
            line, text = node.span.line - self.item.span.line + 1, node.span.text.split("\n")[0]
            raise mistakes.page_fails(text, line, self.item.name, reason.format(*shown), remedy)

    @contextmanager
    def _only(self, test: Any) -> Iterator[None]:
        """Runs for the items, or the positions, where a test holds."""
        lane, positions = self._lane, list(self._positions)
        if isinstance(test, Ragged):
            self._positions.append((test.offsets, test.values != 0))
        else:
            self._lane = lane & (np.asarray(test) != 0)
        yield
        self._lane, self._positions = lane, positions

    def _statement(self, statement: tree.Statement) -> Any:
        outer, self._at = self._at, statement
        answer = super()._statement(statement)
        answer = None if answer is None else self.word(answer)
        self._at = outer
        return answer

    def value(self, node: tree.Expression, target: str = "") -> Any:
        outer, self._at = self._at, node
        value = super().value(node, target)
        self._at = outer
        return value

    def named(self, name: str, like: Ragged | None = None) -> Ragged:
        """Returns the word of a name, or its symbols beside those of another word; mistakes are where it is bound."""
        self._at = replace(self.item, span=self._places[name])
        value = self.values[name]
        if like is None:
            return self.word(value)
        return replace(like, values=np.broadcast_to(self.along(value, like, self._at), len(like.values)))

    # Values

    def length(self) -> Integers:
        return self._lengths

    def constant(self, number: int) -> Any:
        return _small(np.asarray(number, dtype=object))

    def table(self, numbers: Sequence[int]) -> SharedWord:
        return SharedWord(numbers)

    def kind(self, value: Any) -> str:
        return WORD if isinstance(value, Ragged | SharedWord) else NUMBER

    def lanes(self, number: Any) -> Integers:
        """Returns a number of each item [N]."""
        return np.asarray(np.broadcast_to(number, self._count))

    def symbols(self, numbers: Any, like: Ragged | None = None) -> Integers:
        """Returns numbers of items, or beside the symbols of a word, as symbols of words, which have 64 bits."""
        small = _small(numbers)
        if small.dtype.kind != "O":
            return np.asarray(small)
        fits = np.asarray(np.abs(small) < _SMALL, dtype=np.bool_)
        self._require(fits, like, self._at, "a symbol of a word is too large", "use a remainder")
        return _where(fits, small)

    def word(self, value: Any) -> Ragged:
        """Returns a value as a word of each item; a number is a word of one symbol."""
        if isinstance(value, SharedWord):
            return Ragged.table(np.broadcast_to(value.values, (self._count, len(value.values))))
        if isinstance(value, Ragged):
            return value
        return Ragged(self.symbols(self.lanes(value)), np.arange(self._count + 1))

    def along(self, value: Any, word: Ragged, node: tree.Syntax) -> Any:
        """Returns the symbols of a value beside those of a word; those of a number of all items are one."""
        spend(len(word.values) >> 10)
        if self.kind(value) is NUMBER:
            return np.repeat(value, word.lengths) if np.ndim(value) else value
        beside = self.word(value)
        same = beside.lengths == word.lengths
        self._require(same, None, node, "one word has {} symbols, and another {}", "combine words of one length",
                      word.lengths, beside.lengths)  # fmt: skip
        return beside.values if same.all() else self._picked(same, beside, word).values

    def _elementwise(self, values: Sequence[Any], node: tree.Syntax, function: Callable[..., Any]) -> Any:
        """Returns what a function computes from numbers, or from the symbols of words; it may read their `_like`."""
        self._like = next((self.word(value) for value in values if self.kind(value) is WORD), None)
        like = self._like
        result = function(*(value if like is None else self.along(value, like, node) for value in values))
        result = _small(result if hasattr(result, "dtype") else np.array(result, dtype=object))
        return result if like is None else Ragged(self.symbols(result, like), like.offsets)

    def _picked(self, test: Any, first: Any, second: Any) -> Any:
        """Returns the first value for the items where a test holds, and the second for the others."""
        if self.kind(first) is NUMBER:
            return np.where(test, first, second)
        a, b = self.word(first), self.word(second)
        both = Ragged(np.concatenate([a.values, b.values]), a.offsets)
        starts = np.where(test, a.offsets[:-1], b.offsets[:-1] + len(a.values))
        return both.slices(starts, np.where(test, a.lengths, b.lengths))

    # Expressions

    def binary(self, operator: str, left: Any, right: Callable[[], Any], node: tree.Syntax) -> Any:
        if operator in ("and", "or"):
            truth = self._is_not(0, left, node)
            decided = (lambda: self._is_not(0, right(), node)), (lambda: truth)
            return self.select(truth, *(decided if operator == "and" else reversed(decided)))
        return self._elementwise([left, right()], node, lambda a, b: self._computed(operator, a, b, node))

    def _is_not(self, number: int, value: Any, node: tree.Syntax) -> Any:
        return self._elementwise([value], node, lambda a: a != number)

    def _computed(self, operator: str, a: Any, b: Any, node: tree.Syntax) -> Any:
        if operator in _COMPARISONS:
            return _COMPARISONS[operator](a, b)
        function, bounds = _ARITHMETIC[operator], (_bound(a), _bound(b))
        if operator in ("/", "%"):
            self._require(b != 0, self._like, node, "it divides by zero", "exclude 0 by `when` or `if`")
            bits, b = max(bounds).bit_length(), np.where(b == 0, 1, b)
        elif operator == "power":
            self._require(b >= 0, self._like, node, "the exponent is {}", "choose one of at least 0", b)
            bits, b = bounds[0].bit_length() * bounds[1] if bounds[0] > 1 else 1, np.maximum(b, 0)
        else:
            bits = sum(each.bit_length() for each in bounds) if operator == "*" else max(bounds).bit_length() + 1
        if bits > _MOST_BITS:
            self._require(np.False_, None, node, f"a number has more than {_MOST_BITS} bits", "take remainders by `%`")
            return np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)), dtype=np.int64)  # of items that do not count
        kind = np.int64 if max(bits, max(bounds).bit_length()) < _SMALL.bit_length() else object
        return _small(np.asarray(function(_as(kind, a), _as(kind, b)), dtype=kind))

    def select(self, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        truth = self._is_not(0, test, self._at)
        with self._only(truth):
            first = then()
        with self._only(self._is_not(1, truth, self._at)):
            second = otherwise()
        if self.kind(test) is NUMBER and self.kind(first) is WORD and self.kind(second) is WORD:
            return self._picked(truth != 0, first, second)
        return self._elementwise([truth, first, second], self._at, lambda t, a, b: np.where(t != 0, a, b))

    def index(self, word: Any, place: Any, node: tree.Syntax) -> Any:
        like = self.word(place) if self.kind(place) is WORD else None
        at = place if like is None else like.values
        sizes, starts = (word.lengths, word.offsets[:-1]) if isinstance(word, Ragged) else (len(word.values), 0)
        if like is not None:
            sizes, starts = self.along(sizes, like, node), self.along(starts, like, node)
        fits = (at >= 0) & (at < sizes)
        self._require(fits, like, node, _OUTSIDE, _WITHIN, at, sizes)
        padded = word.values if len(word.values) else np.zeros(1, dtype=np.int64)
        places = np.asarray(starts + _where(fits, at))
        result = padded[np.minimum(places, len(padded) - 1, out=places)]
        return result if like is None else Ragged(result, like.offsets)

    def range(self, low: Any, high: Any, node: tree.Syntax) -> Any:
        counts = self._counts(np.maximum(self.lanes(high) - self.lanes(low) + 1, 0), node)
        return Ragged(ranges(counts) + np.repeat(self.symbols(self.lanes(low)), counts), offsets_of(counts))

    def _counts(self, number: Any, node: tree.Syntax) -> Integers:
        """Returns the lengths of new words."""
        counts = self.lanes(number)
        fits = (counts >= 0) & (counts <= _MOST_SYMBOLS)
        self._require(fits, None, node, "the word has {} symbols", f"choose a length from 0 to {_MOST_SYMBOLS}", counts)
        lengths = _where(fits & self._lane, counts)
        spend(int(lengths.sum()) >> 10)
        return lengths

    def listed(self, values: Sequence[Any]) -> Ragged:
        words = [self.word(value) for value in values or [SharedWord(())]]
        begins = np.cumsum([0, *(len(word.values) for word in words)])
        starts = np.stack([word.offsets[:-1] + begin for word, begin in zip(words, begins, strict=False)], axis=1)
        lengths = np.stack([word.lengths for word in words], axis=1)
        self._counts(lengths.sum(axis=1), self._at)
        joined = Ragged(np.concatenate([word.values for word in words]), begins)
        symbols = joined.slices(starts.reshape(-1), lengths.reshape(-1)).values
        return Ragged(symbols, offsets_of(lengths.sum(axis=1)))

    def call(self, function: str, values: Sequence[Any], node: tree.CallExpression, target: str) -> Any:
        word = self.word(values[0]) if self.kind(values[0]) is WORD else Ragged.table(np.zeros((0, 0), dtype=np.int64))
        spend(len(word.values) >> 10)
        match function, values:
            case "append", _:
                return self.listed(values)
            case "digits", [number, base, count]:
                counts, self._like = self._counts(count, node), None
                digits = Ragged(np.zeros(counts.sum(), dtype=np.int64), offsets_of(counts))
                for place in self._each_step(counts, node):
                    chosen = np.flatnonzero(counts > place)
                    digit = self.lanes(self._computed("%", number, base, node))
                    digits.values[digits.offsets[chosen] + place] = self.symbols(digit)[chosen]
                    number = self._computed("/", number, base, node)
                return digits
            case "draw", [bound]:
                like = word if self.kind(bound) is WORD else None
                drawn = self._drawn(bound if like is None else word.values, like, node)
                return drawn if like is None else Ragged(drawn, word.offsets)
            case "draw", [bound, count]:
                filled = self.call("fill", [self.constant(0), count], node, "")
                return Ragged(self._drawn(self.along(bound, filled, node), filled, node), filled.offsets)
            case "fill", [number, count]:
                counts = self._counts(count, node)
                return Ragged(np.repeat(self.symbols(self.lanes(number)), counts), offsets_of(counts))
            case "indices", _:
                return Ragged(ranges(word.lengths), word.offsets)
            case "max" | "min", _:
                extreme = np.maximum if function == "max" else np.minimum
                return self._elementwise(values, node, extreme) if values[1:] else self._extreme(extreme, word, node)
            case "normal", [count]:
                counts = self._counts(count, node)
                numbers = self._rng.normal(int(counts.sum())).astype(np.float32)
                return Ragged((numbers * np.float64(UNITS)).astype(np.int64), offsets_of(counts))
            case "order", _:
                places = self._order(word.values, word) - np.repeat(word.offsets[:-1], word.lengths)
                return Ragged(places, word.offsets)
            case "power", _:
                return self._elementwise(values, node, lambda a, b: self._computed(function, a, b, node))
            case "put", [_, place, symbol]:
                return self._put(word, self.lanes(place), self.symbols(self.lanes(symbol)), node, target)
            case "reverse", _:
                ends = np.repeat(word.offsets[:-1] + word.offsets[1:] - 1, word.lengths)
                return Ragged(word.values[ends - np.arange(len(word.values))], word.offsets)
            case "shuffle" | "sort", _:
                keys = word.values if function == "sort" else self._rng.words(len(word.values))
                return Ragged(word.values[self._order(keys, word)], word.offsets)
            case "size", _:
                return word.lengths
            case "slice", [_, start, count]:
                fits = self.lanes((start >= 0) & (count >= 0) & (start + count <= word.lengths))
                reason = "it takes {1} symbols from place {0}, and the word has {2}"
                self._require(fits, None, node, reason, _WITHIN, start, count, word.lengths)
                return word.slices(word.offsets[:-1] + _where(fits, start), _where(fits, count))
            case "sqrt", _:
                return self._elementwise(values, node, lambda a: self._root(a, node))
        largest = _bound(word.values) * int(word.lengths.max(initial=0))
        running = np.cumsum(np.append(0, word.values).astype(np.int64 if largest < _SMALL else object))
        return _small(running[word.offsets[1:]] - running[word.offsets[:-1]])

    def _drawn(self, bounds: Any, like: Ragged | None, node: tree.Syntax) -> Any:
        """Returns a random number below each bound. Those of large bounds have 64 bits more than these."""
        fits, size = bounds >= 1, self._count if like is None else len(like.values)
        self._require(fits, like, node, "a number is drawn below {}", "choose a bound of at least 1", bounds)
        bounds = np.where(fits, bounds, 1)
        if (bits := _bound(bounds).bit_length()) <= 32:
            return self._rng.below(bounds, size)
        words = self._rng.words((size, bits // 64 + 2)).astype(object)
        numbers = reduce(lambda number, word: (number << 64) | word, words.T)
        return _small((numbers * np.asarray(bounds, dtype=object)) >> (64 * words.shape[1]))

    def _order(self, keys: np.ndarray, word: Ragged) -> Integers:
        """Returns the places of the symbols of each word in the order of keys, of equal ones the first before."""
        lengths = word.lengths
        if self._count and (lengths == lengths[0]).all():  # several times as fast
            order = np.argsort(keys.reshape(self._count, -1), axis=1, kind="stable")
            return np.asarray((order + word.offsets[:-1, None]).reshape(-1))
        return np.lexsort((keys, np.repeat(np.arange(self._count), lengths)))

    def _extreme(self, function: np.ufunc, word: Ragged, node: tree.Syntax) -> Integers:
        is_full, result = word.lengths > 0, np.zeros(self._count, dtype=np.int64)
        self._require(is_full, None, node, "the word is empty", "exclude empty words by `when` or `if`")
        if is_full.any():
            result[is_full] = function.reduceat(word.values, word.offsets[:-1][is_full])
        return result

    def _put(self, word: Ragged, place: Integers, symbol: Integers, node: tree.CallExpression, target: str) -> Ragged:
        fits = (place >= 0) & (place < word.lengths)
        self._require(fits, None, node, _OUTSIDE, _WITHIN, place, word.lengths)
        # A name that is updated gives up its word, unless another name has it too.
        shares = [name for name, value in self.values.items() if value is word]
        result = word if shares == [target] else Ragged(word.values.copy(), word.offsets)
        chosen = np.flatnonzero(fits & self._lane)
        result.values[result.offsets[chosen] + _where(fits, place)[chosen]] = symbol[chosen]
        return result

    def _root(self, numbers: Any, node: tree.Syntax) -> Any:
        self._require(numbers >= 0, self._like, node, "it is the root of {}", "choose a number of at least 0", numbers)
        roots = [isqrt(max(number, 0)) for number in np.asarray(numbers, dtype=object).reshape(-1)]
        return _small(np.array(roots, dtype=object).reshape(np.shape(numbers)))

    # Statements

    def updated(self, name: str, value: Any) -> Any:
        old = self.values[name]
        return value if self._lane is np.True_ or value is old else self._picked(self._lane, value, old)

    def branch(self, test: Any, then: Callable[[], object], otherwise: Callable[[], object]) -> None:
        with self._only(test):
            then()
        with self._only(test == 0):
            otherwise()

    def repeat(self, count: Any, step: Callable[[], object], node: tree.Syntax) -> None:
        for taken in self._each_step(self.lanes(count), node):
            with self._only(count > taken):
                step()

    def scan(self, words: Sequence[Any], step: Callable[..., Any], node: tree.Syntax) -> Ragged:
        scanned = self.word(words[0])
        symbols = [np.array(self.along(word, scanned, node)) for word in words]  # a step may put others there
        emitted, last = np.zeros(len(scanned.values), dtype=np.int64), len(scanned.values) - 1
        for taken in self._each_step(scanned.lengths, node):
            with self._only(scanned.lengths > taken):
                places = np.minimum(scanned.offsets[:-1] + taken, last)
                value = step(*(each[places] for each in symbols))
                chosen = np.flatnonzero(self._lane)
                if value is not None:
                    emitted[scanned.offsets[chosen] + taken] = self.symbols(self.lanes(value))[chosen]
        return Ragged(emitted, scanned.offsets)

    def _each_step(self, counts: Integers, node: tree.Syntax) -> Iterator[int]:
        longest = int(np.where(self._lane, counts, 0).max(initial=0))
        self._steps += longest
        reason = f"the loops of the page take more than {MOST_STEPS} steps"
        self._require(np.asarray(self._steps <= MOST_STEPS), None, node, reason, "take fewer steps")
        for taken in range(longest):
            spend()
            yield taken


def _refuse(mistake: Diagnostic) -> None:
    raise mistakes.TaskError(mistake.message, mistake.remedy or f"archlang explain {mistake.code}")


def _as(kind: type, numbers: Any) -> Any:
    # An array without axes keeps numpy's integers in place of Python's.
    return np.asarray(np.asarray(numbers).tolist(), dtype=kind) if np.ndim(numbers) == 0 else np.asarray(numbers, kind)


def _bound(numbers: Any) -> int:
    """The largest magnitude of some numbers."""
    return max(abs(int(np.max(numbers))), abs(int(np.min(numbers)))) if np.size(numbers) else 0


def _where(holds: Any, numbers: Any) -> Integers:
    """Returns numbers that 64 bits hold where a condition holds, and 0 elsewhere."""
    is_whole = np.shape(holds) == np.shape(numbers) and np.all(holds)
    return np.asarray(numbers if is_whole else np.where(holds, numbers, 0), dtype=np.int64)


def _small(numbers: Any) -> Any:
    """Returns truths, and Python's integers if they fit, as an array of 64 bits."""
    numbers = np.asarray(numbers)
    is_small = numbers.dtype.kind == "b" or (numbers.dtype.kind == "O" and _bound(numbers) < _SMALL)
    return numbers.astype(np.int64) if is_small else numbers
