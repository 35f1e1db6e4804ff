"""Predict the next token of a user's own texts, in windows of long documents.

>>> path = getfixture("tmp_path") / "poem.txt"
>>> _ = path.write_text("so much")
>>> task = Text(path=str(path), length=5)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), task.spell(train.targets[0])
('[B] s o   m', 's o   m u')
>>> task.spell(train.inputs["x"][1]), task.spell(train.targets[1])
('u c h', 'c h [E]')
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from archlang.elaborate.binding import Binding
from archlang.tasks.file_language_model import FileLanguageModel
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.cache import Facts, entry
from archlang.tasks.kit.lexicon import BYTE_CUT, CUTS, Cut, Lexicon, TokenCut, most_frequent
from archlang.tasks.kit.split import Integers, Ragged, Split, Truths, join_splits, ranges
from archlang.tasks.kit.streams import Stream, open_stream
from archlang.tasks.kit.tokenizer import load_tokenizer, token_cut, trained_tokenizer
from archlang.tasks.kit.user_files import SPLITS, Corpus, Rows, UserFiles

# The bytes of text on which a tokenizer is trained.
_TRAINED_ON = 1 << 26


class Text(FileLanguageModel):
    weights: tuple[float, ...]
    length: int
    stride: int
    packed: bool
    stream: int
    tokenizer: str
    begin_token: int
    end_token: int

    version = 2
    header, group = True, "none"
    documents = True
    own_groups = ("window",)
    metrics: ClassVar[tuple[str, ...]] = ("bits_per_byte", "perplexity", "accuracy")
    # The paths by static, and the task of each corpus of a mixture.
    named: Mapping[str, tuple[str, ...]] = {}
    parts: "tuple[Text, ...]" = ()
    # How often each window of train is an item.
    copies = 1

    def _bind(self, statics: Mapping[str, object]) -> Binding:
        binding = super()._bind(statics)
        written = {static: getattr(self, static) for static in ("path", "valid", "test")}
        self._name({static: paths if isinstance(paths, tuple) else (paths,) for static, paths in written.items()})
        if isinstance(written["path"], tuple):
            self.parts = tuple(copy(self) for _ in written["path"])
            for index, part in enumerate(self.parts):
                part._name({static: paths[index : index + 1] for static, paths in self.named.items()})
        return binding

    def _name(self, named: Mapping[str, tuple[str, ...]]) -> None:
        self.named = {static: tuple(filter(None, paths)) for static, paths in named.items()}
        self.path, self.valid, self.test = (next(iter(paths), "") for paths in self.named.values())

    def check(self) -> None:
        super().check()
        count = len(self.parts) or 1
        if not all(part.path for part in self.parts or (self,)):
            raise mistakes.no_paths("path", self.name)
        for static, values in {"weights": self.weights, **self.named}.items():
            if values and len(values) != count:
                raise mistakes.lists_differ("path", self.name, count, static, len(values))
        for weight in self.weights:
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
                raise mistakes.not_of_kind("weights", weight, "number of 0 or more")
        if self.weights and not any(self.weights):
            raise mistakes.no_weight("weights", self.name)
        if repeated := [path for path, times in Counter(self.named["path"]).items() if times > 1]:
            raise mistakes.repeated_value("path", repeated[0])
        if self.parts and self.stream:
            raise mistakes.stream_of_mixture(self.name)

    def _paths(self) -> tuple[str, ...]:
        return tuple(chain.from_iterable(self.named.values()))

    def files(self) -> tuple[str, ...]:
        return (*super().files(), *([self.tokenizer] if self.tokenizer else []))

    @property
    def streamed_splits(self) -> tuple[str, ...]:  # type: ignore[override]  # other tasks have none
        return SPLITS[:1] if self.stream else ()

    @cached_property
    def _tokenizer(self) -> str:
        """The tokenizer in JSON, if one cuts the texts."""
        if self.tokenizer:
            return str(load_tokenizer(self.name, self.tokenizer).to_str())
        if self.by != "bpe":
            return ""
        corpora = self._by_bytes.parts or (self._by_bytes,)
        key = [[task._source(task.path).key() for task in corpora], self.words, self._shares]
        texts = chain.from_iterable(task._texts(_TRAINED_ON // len(corpora)) for task in corpora)
        return str(entry("bpe", key, list, lambda _: {"json": trained_tokenizer(texts, self.words)}).facts["json"])

    @cached_property
    def _by_bytes(self) -> Self:
        task = copy(self)
        task.by, task.parts = "bytes", tuple(part._by_bytes for part in self.parts)
        return task

    def _texts(self, most: int) -> Iterator[str]:
        """Yields documents of train, of about so many bytes. Their tokens must be bytes."""
        corpus, chosen = self._corpus_and_rows("train")
        documents = corpus.columns[0]
        starts, lengths = documents.offsets[:-1][chosen], documents.lengths[chosen]
        if corpus.source.is_one_text:
            end = int((1 - sum(self._shares.values())) * documents.offsets[-1])
            lengths = np.clip(end - starts, 0, lengths)
        every = 1 + int(lengths.sum()) // most
        for start, length in zip(starts[::every], lengths[::every], strict=True):
            yield documents.values[start : start + length].tobytes().decode(errors="replace")

    @cached_property
    def _own_splits(self) -> tuple[str, ...]:
        # To name the splits, no tokenizer is trained.
        return () if self.stream else self._by_bytes._own_splits if self.by == "bpe" else super()._own_splits

    @cached_property
    def _cut(self) -> Cut:
        if self._tokenizer:
            return token_cut(self.name, self._tokenizer, is_own=not self.tokenizer)
        return BYTE_CUT if self.by == "bytes" else CUTS[self.by]

    def own_columns(self) -> Mapping[str, Cut]:
        return {self.text: self._cut}

    @cached_property
    def lexicon(self) -> Lexicon:
        if not isinstance(self._cut, TokenCut):
            return self._lexicon(self._facts["words"])
        if len(self._cut.texts) > self.words:
            raise mistakes.vocabulary_too_small("words", self.words, self.name, len(self._cut.texts))
        return self._lexicon(self._cut.texts)

    def _lexicon(self, words: Sequence[str]) -> Lexicon:
        lexicon = super()._lexicon(words)
        if not self._tokenizer:
            return lexicon
        texts = lexicon.texts if self.end_token < 0 else lexicon.texts[: self.words]
        return replace(lexicon, texts=texts, cut="words", unknown=None, tokenizer=self._tokenizer)

    def _ends(self) -> tuple[int, int]:
        return (
            super()._ends()
            if self.end_token < 0
            else (self.end_token if self.begin_token < 0 else self.begin_token, self.end_token)
        )

    @property
    def marks(self) -> dict[str, tuple[str, str | None]]:  # type: ignore[override]  # a ClassVar of other tasks
        return {"x": (self.vocabulary[self._ends()[0]], None)}

    def restored(self, lexicon: Lexicon, classes: Sequence[str], groups: Mapping[str, Sequence[str]]) -> Self:
        task = copy(self)
        task.__dict__["_tokenizer"] = lexicon.tokenizer
        return super(Text, task).restored(lexicon, classes, groups)

    # A mixture

    def split_names(self) -> tuple[str, ...]:
        present = {split for part in self.parts for split in part.split_names()}
        return tuple(split for split in SPLITS if split in present) if self.parts else super().split_names()

    @property
    def breakdown(self) -> str:
        return "corpus" if self.parts else "window"

    @property
    def group_names(self) -> dict[str, tuple[str, ...]]:
        return {"window": ("first", "later"), **({"corpus": self._corpus_names} if self.parts else {})}

    @property
    def _corpus_names(self) -> tuple[str, ...]:
        """The last parts of the paths, as many as tell them apart."""
        paths = [Path(path).parts for path in self.named["path"]]
        names = (tuple("/".join(path[-count:]) for path in paths) for count in range(1, max(map(len, paths)) + 1))
        return next((each for each in names if len({*each}) == len(each)), self.named["path"])

    @cached_property
    def _facts(self) -> Facts:
        if not self.parts:
            return super()._facts
        key = [[[part._source(path).key() for path in part._paths()] for part in self.parts], self.words, self._shares]
        return entry(self.name, key, list, lambda _: self._find_facts()).facts

    def _find_facts(self) -> Facts:
        if not self.parts:
            return super()._find_facts()
        words = Counter[str]()
        for part in self.parts:
            corpus, chosen = part._corpus_and_rows("train")
            counts = corpus.counts((0,), chosen)
            words.update({corpus.text(word): int(counts[word]) for word in np.flatnonzero(counts)})
        return {"words": most_frequent(words, self.words)}

    def _mixed(self, split: str, seed: int) -> Iterator[Split]:
        shared = {"lexicon": self.lexicon, "_tokenizer": self._tokenizer}
        for number, part in enumerate(map(copy, self.parts)):
            if split not in part.split_names():
                continue
            part.__dict__.update(shared)
            is_drawn = self.weights and split == "train"
            count = sum(map(len, part.pieces(split, seed))) if is_drawn else 0
            for items in part.pieces(split, seed):
                yield replace(
                    items, groups={**items.groups, "corpus": np.full(len(items), number)},
                    frequencies=np.full(len(items), self.weights[number] / count) if is_drawn else None,
                )  # fmt: skip

    # The documents of a split

    def _drawn(self, corpus: Corpus, split: str) -> Truths:
        if corpus.places is None or corpus.source.is_one_text:
            return np.ones(len(corpus.splits), dtype=np.bool_)
        # By ranks, so that a few documents have a split of each kind; equal ones have the same.
        ranks = np.searchsorted(np.sort(corpus.places), corpus.places)
        first, last = self._bounds_of_split(split, len(ranks))
        return np.asarray((ranks >= first) & (ranks < last))

    def _bounds_of_split(self, split: str, count: int) -> tuple[int, int]:
        valid, test = (max(round(share * count), int(share > 0)) for share in self._shares.values())
        ends = [0, count - valid - test, count - test, count]
        return ends[SPLITS.index(split)], ends[SPLITS.index(split) + 1]

    def pieces(self, split: str, seed: int) -> Iterator[Split]:
        if self.parts:
            yield from self._mixed(split, seed)
            return
        first = 0
        for windows in self._windows_of(split, seed):
            for number in range(self.copies if split == "train" else 1):
                yield self.items(windows, first, number)
            first += len(windows)

    def items(self, windows: Split, first: int, number: int) -> Split:
        """Returns windows, the first of which has the number `first` in its split, as items of the copy `number`."""
        return windows

    def _windows_of(self, split: str, seed: int) -> Iterator[Split]:
        source = self._source(self.path)
        own_file: str = getattr(self, split, "")
        if own_file or not source.is_one_text:
            yield from super().pieces(split, seed)
            return
        first, last = self._bounds_of_split(split, int(self._windows(source.read().columns[0].lengths + 1).sum()))
        for items in super().pieces(split, seed):
            yield items.select(np.arange(max(first, 0), max(min(last, len(items)), 0)))
            first, last = first - len(items), last - len(items)

    # A stream

    def make(self, split: str, seed: int) -> Split:
        return self._stream.part() if split in self.streamed_splits else super().make(split, seed)

    @cached_property
    def _stream(self) -> Stream:
        return open_stream(self.name, self.path, self.text, self._encode_texts, self.stream)

    def _encode_texts(self, texts: Sequence[str]) -> Split:
        tokens = [np.asarray(self._cut(text), self.lexicon.dtype) for text in texts]
        documents = Ragged.of_rows(tokens)
        sizes = np.array([len(text.encode(errors="surrogatepass")) for text in texts])
        source = UserFiles(self.name, (), (), documents=True)
        corpus = Corpus(source, (documents,), np.zeros(len(texts), np.int64), None, None, sizes, Ragged.of([]))
        windows = self.encode(Rows(corpus, np.arange(len(texts)), (documents,)), documents)
        return join_splits([self.items(windows, 0, number) for number in range(self.copies)])

    # Windows

    def _windows(self, lengths: Integers) -> Integers:
        """Returns the numbers of windows of documents with so many positions [N]."""
        rest = np.maximum(lengths - self.length, 0)
        return 1 - -rest // (self.stride or self.length)

    def encode(self, rows: Rows, *columns: Ragged) -> Split:
        items = super().encode(rows, *columns)
        targets, stride = items.targets, self.stride or self.length
        assert isinstance(targets, Ragged)
        sizes = rows.corpus.sizes[rows.indices]
        if self.packed and len(targets) and not rows.corpus.source.is_one_text:
            targets, sizes = Ragged(targets.values, targets.offsets[[0, -1]]), sizes.sum(keepdims=True)
        counts = self._windows(targets.lengths)
        document, number = np.repeat(np.arange(len(targets)), counts), ranges(counts)
        starts, positions = number * stride, targets.lengths[document]
        stops = np.minimum(starts + self.length, positions)
        # Where the window before has stopped.
        known = np.where(number > 0, starts + self.length - stride, 0)
        # The bytes of a document are shared by its positions.
        sizes = stops * sizes[document] // positions - known * sizes[document] // positions
        x, targets = (
            each.slices(targets.offsets[document] + starts, stops - starts) for each in (items.inputs["x"], targets)
        )
        counts_twice = stride < self.length
        scored = Ragged(ranges(targets.lengths) >= np.repeat(known - starts, targets.lengths), targets.offsets)
        return Split(
            {"x": x}, targets, scored if counts_twice else None, {"window": np.asarray(number > 0, dtype=np.int64)},
            {"bytes": Ragged.table(sizes[:, None])},
        )  # fmt: skip
