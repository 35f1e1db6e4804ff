"""ListOps: compute a nested list of MAX, MIN, MED and SM (the sum modulo 10) over digits.

`depth` is from the Neural Data Router (Csordás et al., ICLR 2022, section 3.3). `original` is by Nangia & Bowman
(2018), split by length as in Havrylov et al. (2019) and by the number of arguments as in Ray Chowdhury & Caragea
(2023). `lra` is by Tay et al. (2021).

>>> task = ListOps(train_size=40)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][11]), int(train.targets[11]), int(train.groups["depth"][11])
('[B] [SM 0 5 [MED 8 1 3 4 3 ] ] [E]', 8, 2)
>>> task.spell(train.inputs["x"][39]), int(train.targets[39]), int(train.groups["depth"][39])
('[B] [MIN 0 7 4 [MED 8 [SM 5 3 ] 0 ] ] [E]', 0, 1)
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from archlang.data import store
from archlang.data.mistakes import DataError
from archlang.tasks.kit import listops_trees, mistakes, published_files
from archlang.tasks.kit.drawing import Drawing, RandomStream, Seen, fingerprints, in_share
from archlang.tasks.kit.lexicon import Lexicon
from archlang.tasks.kit.split import Integers, Split
from archlang.tasks.kit.task import X_MARKS, Kind, ShippedTask
from archlang.types.statics import Interval

PUBLISHED_DEPTH_SIZES = {"train": 1_000_000, "iid": 1_000, "valid": 1_000, "test": 1_000}
PUBLISHED_TEST_SIZE = 2_000
# The lengths of the split `arguments`, without those up to `max_length`, which are in the train set.
ARGUMENT_LENGTHS = Interval(100, 1000)
DEPTH_PROBABILITY, ORIGINAL_PROBABILITY = 0.3, 0.25
ORIGINAL_HEIGHT, ARGUMENTS_HEIGHT = 19, 8
LRA_SIZES = {"train": 96_000, "valid": 2_000, "test": 2_000}
LRA_LENGTHS, LRA_ARGUMENTS, LRA_HEIGHT = Interval(501, 1_999), 10, 9
_HIGHEST, _LONGEST = 30, 4_096
_BATCH = 1 << 15
_WINDOW = 20

# The share of all items, by fingerprint, that a split may hold. For `depth`, only train and iid have the same depths.
DEPTH_SHARES = {"train": (1 / 16, 1.0), "iid": (0.0, 1 / 16), "valid": (0.0, 1.0), "test": (0.0, 1.0)}
# The published shares of `original`: of 100,000 trees 10,000 are for test and 1,000 for validation. `test` and
# `arguments` have only trees that are too long for train.
ORIGINAL_SHARES = {
    "valid": (0.0, 0.01),
    "iid": (0.01, 0.11),
    "train": (0.11, 1.0),
    "test": (0.11, 0.55),
    "arguments": (0.55, 1.0),
}
# The split `lra` has the share of `test`, whose trees have fewer arguments.
LRA_SHARE = ORIGINAL_SHARES["test"]
# Larger than the published shares, because the items of other splits are drawn in vain.
LRA_SHARES = {"valid": (0.0, 0.2), "test": (0.2, 0.4), "train": (0.4, 1.0)}


TRAIN, TEST = "train_d20s.tsv", "test_d20s.tsv"
# The data set and the test file of Long Range Arena.
ARENA = "lra", "listops-1000/basic_test.tsv"
VALID_LINES = 1_000
_LEXICON = Lexicon(listops_trees.VOCABULARY)


@dataclass(frozen=True)
class PublishedList:
    """A list without its round brackets, its value, the depth of its nesting, and the largest number of arguments of an
    operator."""

    tokens: tuple[str, ...]
    value: int
    depth: int
    arguments: int


def read(line: str) -> PublishedList:
    """Parses a line such as `3<TAB>( ( ( [MAX 2 ) 3 ) ] )`.

    Raises:
        ValueError: the line is malformed."""
    label, text = line.split("\t")
    tokens = tuple(token for token in text.split() if token not in ("(", ")"))
    # The number of arguments so far of each open operator; the first entry is for the whole list.
    counts, depth, arguments = [0], 0, 0
    for token in tokens:
        if token == listops_trees.VOCABULARY[listops_trees.CLOSE]:
            arguments = max(arguments, counts.pop())
            if not counts:
                break
            continue
        counts[-1] += 1
        if _LEXICON.ids[token] > 9:
            counts.append(0)
            depth = max(depth, len(counts) - 1)
    if counts != [1]:
        raise ValueError(f"expected one list in {text}")
    return PublishedList(tokens, int(label), depth, arguments)


def _read_of_arena(line: str) -> PublishedList:
    """Parses a line such as `( ( ( [MAX 2 ) 3 ) ] )<TAB>3`."""
    text, label = line.split("\t")
    return read(f"{label}\t{text}")


def _has_arena() -> bool:
    """Whether the test file of Long Range Arena, or its archive, is in the folder of published files."""
    try:
        return store.find(*ARENA) is not None
    except DataError:
        return False


class ListOps(ShippedTask):
    source: str
    valid: Interval
    test: Interval
    nominal_length: int
    balanced: bool
    max_length: int
    pool: int
    test_lengths: tuple[Interval, ...]
    test_arguments: tuple[int, ...]
    arguments: int
    lra: bool

    kind = Kind.CLASSIFICATION
    marks = X_MARKS
    class_names = tuple("0123456789")
    has_published_sizes = True

    def check(self) -> None:
        if self.source == "depth":
            # In the smallest tree of a depth each operator has two arguments, and an operator counts 3.
            self.check_ranges(("train", "valid", "test"), 1, min(_HIGHEST, (self.nominal_length - 1) // 4))
            self.check_overlaps(("train", "valid", "test"))
            return
        for lengths in self.test_lengths:
            if not isinstance(lengths, Interval):
                raise mistakes.not_of_kind("test_lengths", lengths, "range such as 200..300")
            if lengths.low <= self.max_length:
                raise mistakes.ranges_overlap("max_length", self.max_length, "test_lengths", lengths, self.name)
        if self.test_arguments and self.max_length >= ARGUMENT_LENGTHS.high:
            raise mistakes.outside(self.name, "max_length", self.max_length, 1, ARGUMENT_LENGTHS.high - 1)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return (*listops_trees.VOCABULARY, *(("[E]", "[B]") if self.begin_end else ()))

    groups = ("depth", "length", "arguments")

    @property
    def breakdown(self) -> str:
        return "depth" if self.source == "depth" else "length"

    @property
    def in_distribution(self) -> tuple[str, ...]:
        if self.source == "lra":
            return self.split_names()
        return ("train", "iid") if self.source == "depth" else ("train", "valid", "iid")

    def split_names(self) -> tuple[str, ...]:
        if self.source == "depth":
            return ("train", "iid", "valid", "test")
        if self.source == "lra":
            return ("train", "valid", "test")
        held_out = {"test": self.test_lengths, "arguments": self.test_arguments, "lra": self.lra}
        return ("train", "valid", "iid", *(split for split, is_made in held_out.items() if is_made))

    def reads(self) -> tuple[tuple[str, str], ...]:
        if self.source != "files":
            return ()
        own = ("listops", TRAIN), ("listops", TEST)
        # Trees are drawn in place of a missing file of Long Range Arena.
        return (*own, ARENA) if self.lra and _has_arena() else own

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        if self.source == "depth":
            return {"depth": {"valid": self.valid, "test": self.test}.get(split, self.train).values()}
        if split == "arguments":
            return {"arguments": self.test_arguments}
        is_by_length = split == "test" and self.source != "lra"
        return {"length": [lengths.low for lengths in self.test_lengths]} if is_by_length else {}

    def make(self, split: str, seed: int) -> Split:
        if self.source == "depth":
            return self._by_depth(split, seed)
        if self.source == "lra":
            return self._long(split, seed)
        held_out = {"test": self._by_length, "arguments": self._by_arguments, "lra": self._beyond}
        if split in held_out:
            return held_out[split](seed)
        if self.source == "original":
            return self._from_pool(split, seed)
        return self._published_lists(self._lists(split))

    def _split(self, trees: listops_trees.Trees, lengths: Integers, arguments: Integers) -> Split:
        groups = {"depth": trees.depths, "length": lengths, "arguments": arguments}
        return Split({"x": self.enclosed(trees.x)}, trees.values, groups=groups)

    # Source `depth`.

    def _by_depth(self, split: str, seed: int) -> Split:
        """Draws trees until each depth has its share of the split, or until there are enough trees in total."""
        rng = RandomStream("listops depth", split, seed)
        depths = {"train": self.train, "iid": self.train, "valid": self.valid, "test": self.test}[split]
        size = self.size(split) or PUBLISHED_DEPTH_SIZES[split]
        bins = depths.high - depths.low + 1
        room = np.zeros(depths.high + 2, dtype=np.int64)
        room[depths.low : depths.high + 1] = size // bins
        room[depths.low : depths.low + size % bins] += 1
        if not self.balanced:
            room[depths.low : depths.high + 1] = size
        remedy, share, parts = "raise `nominal_length`", DEPTH_SHARES[split], []
        search = Drawing(self.name, f"{split}_size", size, remedy, share=share, window=_WINDOW)
        while search.missing:
            found = 0
            for forest in self._trees_of_depths(rng, depths):
                trees = self._fitting(forest, room, search)
                trees = trees.select(np.arange(min(search.missing - found, len(trees))))
                if self.balanced:
                    room -= np.bincount(trees.depths, minlength=len(room))
                found += len(trees)
                parts.append(trees)
            search.take(found)
        trees = listops_trees.join_expressions(parts).select(rng.order(size))
        return self._split(trees, trees.x.lengths, np.full(size, self.arguments))

    def _trees_of_depths(self, rng: RandomStream, depths: Interval) -> Iterator[listops_trees.Forest]:
        """Yields batches of trees that are high enough; trees that are too low become arguments of further
        operators."""
        branching = listops_trees.Branching(
            probability=DEPTH_PROBABILITY,
            height=depths.high,
            arguments=self.arguments,
            limit=self.nominal_length,
            cost=3,
        )
        forest = listops_trees.grow(rng, _BATCH, branching)
        while len(forest):
            forest = forest.select(forest.sizes <= branching.limit)
            high = forest.heights >= depths.low
            yield forest.select(high)
            forest = listops_trees.graft(rng, forest.select(~high), branching)

    def _fitting(self, forest: listops_trees.Forest, room: Integers, search: Drawing) -> listops_trees.Trees:
        # A tree is at least as high as its dependency depth. When the low depths are full, most trees are too low.
        forest = forest.select(forest.heights >= np.flatnonzero(room)[0]) if room.any() else forest
        values, depths = listops_trees.evaluate(forest)
        has_room = room[depths] > 0
        forest, values, depths = forest.select(has_room), values[has_room], depths[has_room]
        trees = listops_trees.Trees(listops_trees.write(forest), values, depths)
        trees = trees.select(search.fresh(fingerprints(trees.x)))
        return trees.select(trees.within(room))

    # Source `original`.

    def _from_pool(self, split: str, seed: int) -> Split:
        """Returns the trees of the pool in this split. All splits share one pool of distinct trees, so that short
        trees, which run out, are equally rare in small and large splits."""
        branching = self._branching(ORIGINAL_HEIGHT, self.arguments, _LONGEST)
        rng, parts = RandomStream("listops pool", seed), []
        search = Drawing(self.name, "pool", self.pool, "allow more `arguments`", window=_WINDOW)
        while search.missing:
            forest = listops_trees.grow(rng, _BATCH, branching)
            forest = forest.select(forest.sizes <= branching.limit)
            trees = _trees(forest)
            parts.append(trees.select(search.pick(fingerprints(trees.x))))
        trees = listops_trees.join_expressions(parts)
        keep = in_share(fingerprints(trees.x), *ORIGINAL_SHARES[split])
        if split == "train":
            keep &= trees.x.lengths <= self.max_length
        trees = trees.select(keep)
        available, size = len(trees), self.size(split)
        if size > available:
            raise mistakes.too_many_items("listops", {f"{split}_size": (size, available)}, "draw a larger `pool`")
        trees = trees.select(rng.order(available)[: size or available])
        hundreds = trees.x.lengths // 100 * 100
        return self._split(trees, hundreds, np.full(len(hundreds), self.arguments))

    def _lists(self, split: str) -> list[PublishedList]:
        """Returns the published lists of a split. `iid` is the test file, `valid` is the first lines of the train file,
        as in the code of Ray Chowdhury & Caragea, and `train` is its other lines with at most `max_length` tokens."""
        lists = published_files.parse_lines("listops", TEST if split == "iid" else TRAIN, read)
        if split == "train":
            return [each for each in lists[VALID_LINES:] if len(each.tokens) <= self.max_length]
        return lists[:VALID_LINES] if split == "valid" else lists

    def _published_lists(self, lists: list[PublishedList]) -> Split:
        facts = np.asarray([(each.value, each.depth, each.arguments) for each in lists], dtype=np.int64).reshape(-1, 3)
        trees = listops_trees.Trees(_LEXICON.encode([each.tokens for each in lists]), facts[:, 0], facts[:, 1])
        return self._split(trees, trees.x.lengths // 100 * 100, facts[:, 2])

    def _by_length(self, seed: int) -> Split:
        """Draws equally many trees for each range of lengths."""
        size = self.test_size or PUBLISHED_TEST_SIZE
        longest = max(lengths.high for lengths in self.test_lengths)
        table = listops_trees.LengthTable.of(self._branching(ORIGINAL_HEIGHT, self.arguments, longest))
        seen, parts = Seen(), []
        for lengths in self.test_lengths:
            rng = RandomStream("listops lengths", lengths.low, lengths.high, seed)

            def trees(rng: RandomStream = rng, lengths: Interval = lengths) -> listops_trees.Forest:
                return listops_trees.grow_to(rng, table, table.lengths(rng, lengths.low, lengths.high, size))

            parts.append(self._until(size, trees, ORIGINAL_SHARES["test"], "test_size", seen))
        labels = np.repeat([lengths.low for lengths in self.test_lengths], size)
        return self._split(listops_trees.join_expressions(parts), labels, np.full(len(labels), self.arguments))

    def _by_arguments(self, seed: int) -> Split:
        """Draws equally many trees for each bound on the number of arguments."""
        size = self.test_size or PUBLISHED_TEST_SIZE
        shortest = max(ARGUMENT_LENGTHS.low, self.max_length + 1)
        seen, parts = Seen(), []
        for arguments in self.test_arguments:
            rng = RandomStream("listops arguments", arguments, seed)
            branching = self._branching(ARGUMENTS_HEIGHT, arguments, ARGUMENT_LENGTHS.high)

            def trees(rng: RandomStream = rng, branching: listops_trees.Branching = branching) -> listops_trees.Forest:
                forest = listops_trees.grow(rng, _BATCH, branching)
                return forest.select((forest.sizes >= shortest) & (forest.sizes <= branching.limit))

            parts.append(self._until(size, trees, ORIGINAL_SHARES["arguments"], "test_size", seen))
        labels = np.repeat(np.asarray(self.test_arguments, dtype=np.int64), size)
        joined = listops_trees.join_expressions(parts)
        return self._split(joined, joined.x.lengths // 100 * 100, labels)

    def _until(
        self, size: int, trees: Callable[[], listops_trees.Forest], share: tuple[float, float], static: str, seen: Seen
    ) -> listops_trees.Trees:
        """Draws `size` distinct trees of a share."""
        parts: list[listops_trees.Trees] = []
        search = Drawing(self.name, static, size, "allow other lengths", share=share, window=_WINDOW, seen=seen)
        while search.missing:
            batch = _trees(trees())
            parts.append(batch.select(search.pick(fingerprints(batch.x))))
        return listops_trees.join_expressions(parts)

    # Source `lra`.

    def _long(self, split: str, seed: int) -> Split:
        size = self.size(split) or LRA_SIZES[split]
        rng = RandomStream("listops lra", split, seed)
        return self._trees_of_arena(rng, size, LRA_SHARES[split], f"{split}_size", 2)

    def _beyond(self, seed: int) -> Split:
        """Returns the test trees of Long Range Arena for the other sources: its file, if the source is `files` and the
        file is present, or else drawn trees. Each of these has an operator with more arguments than the trees
        of train, valid, iid and test have, so none of them is among those."""
        if self.source == "files" and _has_arena():
            lines = store.lines(*ARENA)
            next(lines, None)  # a header
            return self._published_lists(list(published_files.parse_each(*ARENA, lines, _read_of_arena, first=2)))
        rng = RandomStream("listops lra", "beyond", seed)
        return self._trees_of_arena(
            rng, self.test_size or LRA_SIZES["test"], LRA_SHARE, "test_size", self.arguments + 1
        )

    def _trees_of_arena(
        self, rng: RandomStream, size: int, share: tuple[float, float], static: str, arguments: int
    ) -> Split:
        """Draws trees of which some operator has at least so many arguments."""
        branching = self._branching(LRA_HEIGHT, LRA_ARGUMENTS, LRA_LENGTHS.high)

        def trees() -> listops_trees.Forest:
            forest = listops_trees.grow(rng, _BATCH >> 2, branching)
            is_long = (forest.sizes >= LRA_LENGTHS.low) & (forest.sizes <= branching.limit)
            return forest.select(is_long & (forest.most_arguments() >= arguments))

        drawn = self._until(size, trees, share, static, Seen())
        return self._split(drawn, drawn.x.lengths // 100 * 100, np.full(size, LRA_ARGUMENTS))

    def _branching(self, height: int, arguments: int, limit: int) -> listops_trees.Branching:
        return listops_trees.Branching(
            probability=ORIGINAL_PROBABILITY, height=height, arguments=arguments, limit=limit
        )


def _trees(forest: listops_trees.Forest) -> listops_trees.Trees:
    return listops_trees.Trees(listops_trees.write(forest), *listops_trees.evaluate(forest))
