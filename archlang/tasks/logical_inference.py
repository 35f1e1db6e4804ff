"""Logical inference: find the relation between two propositional formulas over six variables.

Bowman et al. (2015), split by the number of operators as in Tran et al. (2018) and Shen et al. (2019). The relations
are `=` equivalence, `<` entailment, `>` reverse entailment, `^` negation, `|` exclusion, `v` cover, and `#` none of
these.

>>> task = LogicalInference(draws=2000)
>>> train = task.generate("train", seed=0)
>>> [task.spell(train.inputs[side][3]) for side in ("left", "right")], RELATIONS[train.targets[3]]
(['( e ( and a ) )', '( e ( or ( not c ) ) )'], '<')
>>> [task.spell(train.inputs[side][7]) for side in ("left", "right")], RELATIONS[train.targets[7]]
(['( ( not a ) ( and ( not e ) ) )', 'e'], '|')
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit import published_files
from archlang.tasks.kit.drawing import RandomStream, Seen, combine, fingerprints, in_share
from archlang.tasks.kit.lexicon import ENCLOSED, Lexicon
from archlang.tasks.kit.split import Integers, Ragged, Split, Truths, join, offsets_of
from archlang.tasks.kit.task import Kind, ShippedTask
from archlang.types.statics import Interval

RELATIONS = ("=", "<", ">", "^", "|", "v", "#")
VOCABULARY = ("a", "b", "c", "d", "e", "f", "(", ")", "and", "or", "not")
VARIABLES, OPEN, CLOSE, AND, OR, NOT = 6, 6, 7, 8, 9, 10
MOST_OPERATORS = 12
# Shen et al. validate on every tenth line of the concatenated train files.
_HELD_OUT = 10
PAIR_VARIABLES = 4
# 15 % of the published pairs are for test, and a tenth of the rest is for validation.
SHARES = {"train": (0.0, 0.765), "valid": (0.765, 0.85), "iid": (0.85, 1.0), "test": (0.85, 1.0)}
# A formula has at most 12 operators, an argument of an operator at most half as many, so 7 nodes can be operators.
_INNER = 7
_NODES = 15
_BATCH = 1 << 14

_LEXICON = Lexicon(VOCABULARY)
_WORDS = frozenset(VOCABULARY)
_RELATIONS = {relation: number for number, relation in enumerate(RELATIONS)}

Worlds = npt.NDArray[np.uint64]

# Bit w of a formula is its truth value in world w, where bit v of w is the truth value of variable v.
_TRUE = tuple(sum(1 << world for world in range(64) if world >> variable & 1) for variable in range(VARIABLES))


@dataclass(frozen=True, eq=False)
class _Formulas:
    """N formulas as complete binary trees with 15 nodes, where the arguments of node k are 2k + 1 and 2k + 2. `token`
    [N, 15] is AND, OR or a variable; `negated` [N, 15] marks nodes after `not`; `real` [N, 15] marks nodes in use."""

    token: Integers
    negated: Truths
    real: Truths

    def select(self, chosen: Truths | Integers) -> _Formulas:
        """Returns the formulas at these indices, or those where a mask [N] is true."""
        return _Formulas(self.token[chosen], self.negated[chosen], self.real[chosen])

    def operators(self) -> Integers:
        """Returns the number of operators of each formula, including `not`: [N]."""
        operators = (self.token >= VARIABLES).astype(np.int64) + self.negated
        return np.asarray(np.sum(operators * self.real, axis=1), dtype=np.int64)

    def worlds(self) -> Worlds:
        """Returns the worlds in which each formula is true, as bits: [N]."""
        true = np.empty(self.token.shape, dtype=np.uint64)
        true_of_variable = np.array(_TRUE, dtype=np.uint64)
        for node in reversed(range(_NODES)):
            token = self.token[:, node]
            true[:, node] = true_of_variable[np.where(token < VARIABLES, token, 0)]
            if node < _INNER:
                left, right = true[:, 2 * node + 1], true[:, 2 * node + 2]
                true[:, node] = np.where(token == AND, left & right, true[:, node])
                true[:, node] = np.where(token == OR, left | right, true[:, node])
            true[:, node] = np.where(self.negated[:, node], ~true[:, node], true[:, node])
        return true[:, 0]

    def tokens(self) -> Ragged:
        """Returns the formulas as tokens: `a`, `( not x )`, `( x ( and y ) )`."""
        sizes = 1 + 3 * self.negated.astype(np.int64)
        for node in reversed(range(_INNER)):
            arguments = sizes[:, 2 * node + 1] + sizes[:, 2 * node + 2]
            sizes[:, node] += np.where(self.token[:, node] >= VARIABLES, 4 + arguments, 0)
        offsets = offsets_of(sizes[:, 0])
        values = np.empty(offsets[-1], dtype=np.uint8)
        starts = np.empty(self.token.shape, dtype=np.int64)
        starts[:, 0] = offsets[:-1]
        for node in range(_NODES):
            start, token = starts[:, node].copy(), self.token[:, node]
            stop = start + sizes[:, node]
            negated = self.negated[:, node] & self.real[:, node]
            values[start[negated]], values[start[negated] + 1], values[stop[negated] - 1] = OPEN, NOT, CLOSE
            start += 2 * negated
            stop -= negated
            leaf = self.real[:, node] & (token < VARIABLES)
            values[start[leaf]] = token[leaf]
            if node >= _INNER:
                continue
            operator = self.real[:, node] & (token >= VARIABLES)
            middle = start + 1 + sizes[:, 2 * node + 1]
            values[start[operator]], values[middle[operator]] = OPEN, OPEN
            values[middle[operator] + 1] = token[operator]
            values[stop[operator] - 1] = values[stop[operator] - 2] = CLOSE
            starts[:, 2 * node + 1], starts[:, 2 * node + 2] = start + 1, middle + 2
        return Ragged(values, offsets)


class LogicalInference(ShippedTask):
    test: Interval
    draws: int
    data: str

    splits = ("train", "valid", "iid", "test")
    breakdown = "operators"
    kind = Kind.PAIRS
    marks = dict.fromkeys(("left", "right"), ENCLOSED)
    class_names = RELATIONS
    in_distribution = ("train", "valid", "iid")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return (*VOCABULARY, *(("[E]", "[B]") if self.begin_end else ()))

    def reads(self) -> tuple[tuple[str, str], ...]:
        counts = range(MOST_OPERATORS + 1) if self.data == "files" else ()
        return tuple(("logical_inference", f"{part}{count}") for part in ("train", "test") for count in counts)

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        return {"operators": (self.test if split == "test" else self.train).values()}

    def make(self, split: str, seed: int) -> Split:
        items = self._files(split) if self.data == "files" else self._generated(split, seed)
        return replace(items, inputs={name: self.enclosed(ragged) for name, ragged in items.inputs.items()})

    def _files(self, split: str) -> Split:
        """Returns the published pairs: `train` and `valid` from the train files, the others from the test files."""
        counts = self.test if split == "test" else self.train
        part = "train" if split in ("train", "valid") else "test"
        files = [
            published_files.parse_lines("logical_inference", f"{part}{count}", read)
            for count in range(counts.low, counts.high + 1)
        ]
        relations, lefts, rights = zip(*(row for rows in files for row in rows), strict=True)
        operators = np.repeat(np.arange(counts.low, counts.high + 1), [len(rows) for rows in files])
        fields = {"left": _LEXICON.encode(lefts), "right": _LEXICON.encode(rights)}
        items = Split(fields, np.asarray(relations, dtype=np.int64), groups={"operators": operators})
        if part == "test":
            return items
        held_out = np.arange(1, len(items) + 1) % _HELD_OUT == 0
        return items.select(held_out if split == "valid" else ~held_out)

    def _generated(self, split: str, seed: int) -> Split:
        counts = self.test if split == "test" else self.train
        # All splits share the same draws, so that the few short pairs are distributed over them, too.
        rng, seen, missing = RandomStream("logical inference", seed), Seen(), self.draws
        lefts, rights, relations, operators = [], [], [], []
        while missing:
            left, right = _draw(rng)
            here, there = left.worlds(), right.worlds()
            constant = (here == 0) | (~here == 0) | (there == 0) | (~there == 0)
            most = np.minimum(np.maximum(left.operators(), right.operators()), MOST_OPERATORS)
            drawn = np.flatnonzero(~constant)[:missing]
            missing -= len(drawn)
            chosen = drawn[(most[drawn] >= counts.low) & (most[drawn] <= counts.high)]
            x, y = left.select(chosen).tokens(), right.select(chosen).tokens()
            prints = combine(fingerprints(x), fingerprints(y))
            keep = in_share(prints, *SHARES[split]) & seen.fresh(prints)
            lefts.append(x.select(keep))
            rights.append(y.select(keep))
            relations.append(_relations(here[chosen[keep]], there[chosen[keep]]))
            operators.append(most[chosen[keep]])
        fields = {"left": join(lefts), "right": join(rights)}
        return Split(fields, np.concatenate(relations), groups={"operators": np.concatenate(operators)})


def _draw(rng: RandomStream) -> tuple[_Formulas, _Formulas]:
    """Draws a batch of pairs. The formulas of a pair are over the same 4 variables."""
    variables = np.argsort(rng.words((_BATCH, VARIABLES)), axis=1, kind="stable")[:, :PAIR_VARIABLES]

    def formulas() -> _Formulas:
        # A node above the bottom is an operator with probability 4/9; a node is negated with probability 1/3.
        kind, negated = rng.below(9, (_BATCH, _NODES)), rng.below(3, (_BATCH, _NODES)) == 0
        token = np.take_along_axis(variables, rng.below(PAIR_VARIABLES, (_BATCH, _NODES)), axis=1)
        token[:, :_INNER] = np.where(kind[:, :_INNER] < 4, AND + kind[:, :_INNER] % 2, token[:, :_INNER])
        real = np.ones(token.shape, dtype=np.bool_)
        for node in range(1, _NODES):
            parent = (node - 1) // 2
            real[:, node] = real[:, parent] & (token[:, parent] >= VARIABLES)
        return _Formulas(token, negated, real)

    return formulas(), formulas()


def _relations(here: Worlds, there: Worlds) -> Integers:
    """Returns the indices [N] in RELATIONS, for formulas that are neither true nor false in all worlds."""
    both, left, right = here & there != 0, here & ~there != 0, ~here & there != 0
    neither = ~(here | there) != 0
    relations = np.full(len(here), RELATIONS.index("#"))
    relations[both & ~left & ~right] = RELATIONS.index("=")
    relations[both & ~left & right] = RELATIONS.index("<")
    relations[both & left & ~right] = RELATIONS.index(">")
    relations[~both & ~neither] = RELATIONS.index("^")
    relations[~both & neither] = RELATIONS.index("|")
    relations[both & left & right & ~neither] = RELATIONS.index("v")
    return relations


def read(line: str) -> tuple[int, list[str], list[str]]:
    """Parses a line of the published files, `relation<TAB>left<TAB>right`.

    Raises:
        KeyError, ValueError: the line is malformed."""
    relation, left, right = line.split("\t")
    words = left.split(), right.split()
    if not _WORDS.issuperset(words[0]) or not _WORDS.issuperset(words[1]):
        raise ValueError(line)
    return _RELATIONS[relation], *words
