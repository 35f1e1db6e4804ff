"""The machine that runs the page of a task for many items at once: a number is an array, a word a sequence of each.

Every statement runs for all items; where a condition excludes some, their values stay. Integers are exact: numbers that
64 bits may not hold are Python's."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isqrt
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import Any

import numpy as np

from archlang.elaborate.binding import Binding
from archlang.elaborate.task_pages import NUMBER, WORD, Page
from archlang.errors import Diagnostic
from archlang.syntax import tree
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.split import Integers, Ragged, offsets_of, ranges

MOST_STEPS = 1_000_000
"""How many steps all loops of a page take together at most."""
_MOST_SYMBOLS = 1 << 20  # of a word
_MOST_BITS = 1 << 14  # of a number
_SMALL = 1 << 61

_OUTSIDE = "place {} of a word of {} symbols"
_WITHIN = "places are from 0 to `size(…) - 1`"
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {  # Any: arrays of integers or of Python's
    "+": add, "-": sub, "*": mul, "/": np.floor_divide, "%": np.remainder, "==": eq, "!=": ne, "<": lt, "<=": le,
    ">": gt, ">=": ge,
}  # fmt: skip


class SharedWord:
    """The numbers of a static list: a word that all items share."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.values = np.asarray(numbers, dtype=np.int64)


class PageMachine(Page):
    """Computes the values of a page for items of some lengths [N]."""

    def __init__(self, binding: Binding, rng: RandomStream, lengths: Integers) -> None:
        super().__init__(binding, self._refuse_page)
        self._rng, self._lengths, self._count = rng, np.asarray(lengths, dtype=np.int64), len(lengths)
        self._steps = 0
        # The items for which the statement runs, and the positions of words of a layout for which an expression does.
        self._lane: Any = np.True_
        self._places_of: list[tuple[Integers, Any]] = []

    def _refuse_page(self, mistake: Diagnostic) -> None:
        raise mistakes.TaskError(mistake.message, mistake.remedy or f"archlang explain {mistake.code}")

    def _require(self, holds: Any, like: Any, node: tree.Syntax, reason: str, remedy: str, *facts: Any) -> None:
        """Raises TaskError if a condition fails for an item that counts, with its facts. `like` is the word with whose
        positions the condition is, or None."""
        if np.all(holds):
            return
        live = self._lane
        if isinstance(like, Ragged):
            live = np.repeat(np.broadcast_to(live, self._count), like.lengths)
            for offsets, truth in self._places_of:
                live = live & truth if _are_equal(offsets, like.offsets) else live
        fails = live & ~np.asarray(holds, dtype=np.bool_)
        if np.any(fails):
            shown = [np.broadcast_to(fact, np.shape(fails)).reshape(-1)[np.argmax(fails)] for fact in facts]
            reason = reason.format(*shown)
            line = node.span.line - self.item.span.line + 1
            raise mistakes.page_fails(node.span.text.split("\n")[0], line, self.item.name, reason, remedy)

    @contextmanager
    def _only(self, test: Any) -> Iterator[None]:
        """Runs for the items, or the positions, where a test holds."""
        lane, places = self._lane, list(self._places_of)
        if isinstance(test, Ragged):
            self._places_of.append((test.offsets, test.values != 0))
        else:
            self._lane = lane & (np.asarray(test) != 0)
        yield
        self._lane, self._places_of = lane, places

    # Values

    def length(self) -> Integers:
        return self._lengths

    def constant(self, number: int) -> Any:
        return np.asarray(number, dtype=np.int64)

    def table(self, numbers: Sequence[int]) -> SharedWord:
        return SharedWord(numbers)

    def kind(self, value: Any) -> str:
        return WORD if isinstance(value, Ragged | SharedWord) else NUMBER

    def lanes(self, number: Any) -> Integers:
        """Returns a number of each item [N]."""
        return np.asarray(np.broadcast_to(number, self._count))

    def word(self, value: Any) -> Ragged:
        """Returns a value as a word of each item; a number is a word of one symbol."""
        if isinstance(value, SharedWord):
            return Ragged.table(np.broadcast_to(value.values, (self._count, len(value.values))))
        if isinstance(value, Ragged):
            return value
        return Ragged(_small(self.lanes(value)), np.arange(self._count + 1))

    def _aligned(self, values: Sequence[Any], node: tree.Syntax) -> tuple[list[Any], Ragged | None]:
        """Returns the arrays of values for an elementwise function, and a word with the positions of its result; None
        if it is a number."""
        words = [self.word(value) for value in values if self.kind(value) is WORD]
        if not words:
            return list(values), None
        like = words[0]
        for word in words[1:]:
            same = word.lengths == like.lengths
            self._require(
                same,
                None,
                node,
                "one word has {} symbols, and another {}",
                "combine words of one length",
                word.lengths,
                like.lengths,
            )
            if not same.all():  # of items that do not count
                word = self._picked(same, word, like)
                like = self._picked(same, like, word)
        arrays = [
            np.repeat(value, like.lengths) if self.kind(value) is NUMBER and np.ndim(value) else value
            for value in values
        ]
        return [self._fitted(each, like) if self.kind(each) is WORD else each for each in arrays], like

    def along(self, value: Any, word: Ragged) -> np.ndarray:
        """Returns the symbols of a value beside those of a word."""
        return np.asarray(self._elementwise([value, word], self.item, lambda a, b: a + 0 * b.astype(np.int64)).values)

    def _fitted(self, value: Any, like: Ragged) -> Any:
        word = self.word(value)
        return word.values if len(word.values) == len(like.values) else self._picked(np.False_, word, like).values

    def _picked(self, test: Any, first: Any, second: Any) -> Any:
        """Returns the first value for the items where a test holds, and the second for the others."""
        if self.kind(first) is NUMBER:
            return np.where(test, first, second)
        a, b = self.word(first), self.word(second)
        if _are_equal(a.offsets, b.offsets):
            where = np.repeat(np.broadcast_to(test, self._count), a.lengths)
            return Ragged(np.where(where, a.values, b.values), a.offsets)
        starts = np.where(test, a.offsets[:-1], b.offsets[:-1] + len(a.values))
        both = Ragged(np.concatenate([a.values, b.values]), a.offsets)
        return both.slices(starts, np.where(test, a.lengths, b.lengths))

    # Expressions

    def binary(self, operator: str, left: Any, right: Callable[[], Any], node: tree.Syntax) -> Any:
        if operator in ("and", "or"):
            truth = self._elementwise([left, self.constant(0)], node, lambda a, b: a != b)
            test = truth if operator == "and" else self.binary("==", truth, lambda: self.constant(0), node)
            return self.select(test, lambda: self.binary("!=", right(), lambda: self.constant(0), node), lambda: truth)
        return self._elementwise([left, right()], node, lambda a, b: self._computed(operator, a, b, node))

    def _elementwise(self, values: Sequence[Any], node: tree.Syntax, function: Callable[..., Any]) -> Any:
        self._like: Ragged | None
        arrays, self._like = self._aligned(values, node)
        like = self._like
        result = function(*arrays)
        if result.dtype == np.bool_:
            result = result.astype(np.int64)
        return result if like is None else Ragged(_small(result), like.offsets)

    def _computed(self, operator: str, a: Any, b: Any, node: tree.Syntax) -> Any:
        function = _OPERATORS[operator]
        if operator in ("/", "%"):
            self._require(b != 0, self._like, node, "it divides by zero", "exclude 0 by `when` or `if`")
            return function(a, np.where(b == 0, 1, b))
        if operator not in ("+", "-", "*"):
            return function(a, b)
        bounds = _bound(a), _bound(b)
        if (bounds[0] * bounds[1] if operator == "*" else sum(bounds)) < _SMALL:
            return function(a, b)
        result = np.asarray(function(np.asarray(a, dtype=object), np.asarray(b, dtype=object)), dtype=object)
        if _bound(result).bit_length() > _MOST_BITS:
            self._require(np.False_, None, node, f"a number has more than {_MOST_BITS} bits", "take remainders by `%`")
            return np.zeros(np.shape(result), dtype=np.int64)  # no item that counts has it
        return _small(result)

    def select(self, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        with self._only(test):
            first = then()
        with self._only(self.binary("==", test, lambda: self.constant(0), self.item)):
            second = otherwise()
        if self.kind(test) is NUMBER and self.kind(first) is WORD and self.kind(second) is WORD:
            return self._picked(test != 0, first, second)
        return self._elementwise([test, first, second], self.item, lambda t, a, b: np.where(t != 0, a, b))

    def index(self, word: Any, place: Any, node: tree.Syntax) -> Any:
        at, like = (place.values, place) if isinstance(place, Ragged) else (place, None)
        if isinstance(place, SharedWord):
            at, like = self._aligned([place], node)[0][0], self.word(place)
        sizes: Any = len(word.values)
        starts: Any = 0
        if isinstance(word, Ragged):
            sizes, starts = word.lengths, word.offsets[:-1]
            if like is not None:
                sizes, starts = np.repeat(sizes, like.lengths), np.repeat(starts, like.lengths)
        fits = (at >= 0) & (at < sizes)
        self._require(fits, like, node, _OUTSIDE, _WITHIN, at, sizes)
        if not len(word.values):
            result = np.zeros(np.shape(fits), dtype=np.int64)
        else:
            result = word.values[np.minimum(starts + np.where(fits, at, 0), len(word.values) - 1)]
        return result if like is None else Ragged(result, like.offsets)

    def range(self, low: Any, high: Any, node: tree.Syntax) -> Any:
        counts = self._counts(high - low + 1, node, least=None)
        return Ragged(ranges(counts) + np.repeat(self.lanes(low), counts), offsets_of(counts))

    def _counts(self, number: Any, node: tree.Syntax, least: int | None = 0) -> Integers:
        """Returns the lengths of words that begin; a range may end before it begins."""
        counts = self.lanes(number)
        fits = (counts >= (-np.inf if least is None else least)) & (counts <= _MOST_SYMBOLS)
        self._require(fits, None, node, "the word has {} symbols", f"choose a length from 0 to {_MOST_SYMBOLS}", counts)
        return np.asarray(np.where(fits & self._lane, np.maximum(counts, 0), 0), dtype=np.int64)

    def call(self, function: str, values: Sequence[Any], node: tree.CallExpression, target: str) -> Any:
        return getattr(self, f"_call_{function}")(values, node, target)

    def listed(self, values: Sequence[Any]) -> Ragged:
        return self._call_append(values, self.item, "")

    def _call_append(self, values: Sequence[Any], node: tree.Syntax, target: str) -> Ragged:
        words = [self.word(value) for value in values]
        begins = np.cumsum([0, *(len(word.values) for word in words)])
        starts = np.stack([word.offsets[:-1] + begin for word, begin in zip(words, begins, strict=False)], axis=1)
        lengths = np.stack([word.lengths for word in words], axis=1)
        joined = Ragged(np.concatenate([word.values for word in words]), offsets_of(lengths.reshape(-1)))
        offsets = offsets_of(lengths.sum(axis=1))
        return Ragged(joined.slices(starts.reshape(-1), lengths.reshape(-1)).values, offsets)

    def _call_draw(self, values: Sequence[Any], node: tree.Syntax, target: str) -> Any:
        bound, like = values[0], values[0] if isinstance(values[0], Ragged) else None
        if len(values) == 2:
            counts = self._counts(values[1], node)
            like = Ragged(np.zeros(counts.sum(), dtype=np.int64), offsets_of(counts))
            bound = np.repeat(bound, counts) if np.ndim(bound) else bound
        bounds = self.word(bound).values if self.kind(bound) is WORD else bound
        fits = (bounds >= 1) & (bounds < 1 << 32)
        checked = like if np.ndim(bounds) and like is not None else None
        self._require(fits, checked, node, "a number is drawn below {}", "choose a bound from 1 to 2^32", bounds)
        size = self._count if like is None else len(like.values)
        drawn = self._rng.below(np.where(fits, bounds, 1), size)
        return drawn if like is None else Ragged(drawn, like.offsets)

    def _call_fill(self, values: Sequence[Any], node: tree.Syntax, target: str) -> Ragged:
        counts = self._counts(values[1], node)
        return Ragged(np.repeat(_small(self.lanes(values[0])), counts), offsets_of(counts))

    def _call_indices(self, values: Sequence[Any], node: tree.Syntax, target: str) -> Ragged:
        word = self.word(values[0])
        return Ragged(ranges(word.lengths), word.offsets)

    def _call_max(self, values: Sequence[Any], node: tree.Syntax, target: str) -> Any:
        return self._extreme(np.maximum, values, node)

    def _call_min(self, values: Sequence[Any], node: tree.Syntax, target: str) -> Any:
        return self._extreme(np.minimum, values, node)

    def _extreme(self, function: np.ufunc, values: Sequence[Any], node: tree.Syntax) -> Any:
        if len(values) == 2:
            return self._elementwise(values, node, function)
        word = self.word(values[0])
        found = word.lengths > 0
        self._require(found, None, node, "the word is empty", "exclude empty words by `when` or `if`")
        result = np.zeros(self._count, dtype=np.int64)
        if found.any():
            result[found] = function.reduceat(word.values, word.offsets[:-1][found])
        return result

    def _call_put(self, values: Sequence[Any], node: tree.CallExpression, target: str) -> Ragged:
        word, place, symbol = self.word(values[0]), self.lanes(values[1]), self.lanes(_small(values[2]))
        fits = (place >= 0) & (place < word.lengths)
        self._require(fits, None, node, _OUTSIDE, _WITHIN, place, word.lengths)
        # A name that is updated gives up its word, unless another name has it too.
        first = node.arguments and node.arguments[0]
        is_own = isinstance(first, tree.Name) and first.text == target
        shares = sum(value is word for value in self.values.values())
        result = word if is_own and shares == 1 else Ragged(word.values.copy(), word.offsets)
        chosen = np.flatnonzero(fits & self._lane)
        result.values[result.offsets[chosen] + place[chosen]] = symbol[chosen]
        return result

    def _call_reverse(self, values: Sequence[Any], node: tree.Syntax, target: str) -> Ragged:
        word = self.word(values[0])
        ends = np.repeat(word.offsets[:-1] + word.offsets[1:] - 1, word.lengths)
        return Ragged(word.values[ends - np.arange(len(word.values))], word.offsets)

    def _call_shuffle(self, values: Sequence[Any], node: tree.Syntax, target: str) -> Ragged:
        word = self.word(values[0])
        return self._ordered(word, self._rng.words(len(word.values)))

    def _call_sort(self, values: Sequence[Any], node: tree.Syntax, target: str) -> Ragged:
        word = self.word(values[0])
        return self._ordered(word, word.values)

    def _ordered(self, word: Ragged, keys: np.ndarray) -> Ragged:
        order = np.lexsort((keys, np.repeat(np.arange(self._count), word.lengths)))
        return Ragged(word.values[order], word.offsets)

    def _call_size(self, values: Sequence[Any], node: tree.Syntax, target: str) -> Any:
        return self.word(values[0]).lengths

    def _call_slice(self, values: Sequence[Any], node: tree.Syntax, target: str) -> Ragged:
        word, start, count = self.word(values[0]), self.lanes(values[1]), self.lanes(values[2])
        fits = (start >= 0) & (count >= 0) & (start + count <= word.lengths)
        self._require(
            fits,
            None,
            node,
            "it takes {1} symbols from place {0}, and the word has {2}",
            _WITHIN,
            start,
            count,
            word.lengths,
        )
        return word.slices(word.offsets[:-1] + np.where(fits, start, 0), np.where(fits, count, 0))

    def _call_sqrt(self, values: Sequence[Any], node: tree.Syntax, target: str) -> Any:
        def root(numbers: Any) -> Any:
            self._require(numbers >= 0, self._like, node, "it is the root of a negative number", "choose another one")
            whole = [isqrt(max(number, 0)) for number in np.asarray(numbers, dtype=object).reshape(-1)]
            return _small(np.array(whole, dtype=object).reshape(np.shape(numbers)))

        return self._elementwise(values, node, root)

    def _call_sum(self, values: Sequence[Any], node: tree.Syntax, target: str) -> Any:
        word = self.word(values[0])
        running = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(word.values, dtype=np.int64)])
        return running[word.offsets[1:]] - running[word.offsets[:-1]]

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

    def scan(self, word: Any, step: Callable[[Any], Any], node: tree.Syntax) -> Ragged:
        scanned = self.word(word)
        emitted, last = np.zeros(len(scanned.values), dtype=np.int64), len(scanned.values) - 1
        for taken in self._each_step(scanned.lengths, node):
            with self._only(scanned.lengths > taken):
                value = step(scanned.values[np.minimum(scanned.offsets[:-1] + taken, last)])
                chosen = np.flatnonzero(self._lane)
                if value is not None:
                    emitted[scanned.offsets[chosen] + taken] = self.lanes(_small(value))[chosen]
        return Ragged(emitted, scanned.offsets)

    def _each_step(self, counts: Integers, node: tree.Syntax) -> Iterator[int]:
        longest = int(np.where(self._lane, counts, 0).max(initial=0))
        for taken in range(longest):
            self._steps += 1
            if self._steps > MOST_STEPS or longest > MOST_STEPS:
                line = node.span.line - self.item.span.line + 1
                reason = f"the loops take more than {MOST_STEPS} steps together"
                raise mistakes.page_fails(node.span.text.split("\n")[0], line, self.item.name, reason, "take fewer")
            yield taken


def _are_equal(offsets: Integers, others: Integers) -> bool:
    return offsets is others or np.array_equal(offsets, others)


def _bound(numbers: Any) -> int:
    """The largest magnitude of some numbers, or more."""
    if not np.size(numbers):
        return 0
    return max(abs(int(np.max(numbers))), abs(int(np.min(numbers))))


def _small(numbers: Any) -> Any:
    """Returns Python's integers as an array of 64 bits, if they fit."""
    is_large = np.asarray(numbers).dtype.kind == "O" and _bound(numbers) < _SMALL
    return numbers.astype(np.int64) if is_large else numbers
