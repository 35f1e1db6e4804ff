"""The inputs of a trained model: the form of its fields, and the tokens of texts that people type."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import groupby
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from archlang.backend.architecture import Architecture
from archlang.backend.decode.greedy import target_of
from archlang.errors.names import listed, plural, suggest
from archlang.tasks.kit.lexicon import BYTE_CUT, CUTS, Lexicon, TokenCut
from archlang.tasks.kit.split import Ragged, Split, TargetForm
from archlang.tasks.kit.task import (
    DecodableTask,
    Kind,
    Task,
    TaskWithVocabulary,
    class_names,
    field_vocabulary,
    group_names,
    lexicons,
    marks,
)
from archlang.tasks.kit.tokenizer import token_cut
from archlang.train.record.mistakes import RunError
from archlang.train.record.schemas import FileModel
from archlang.train.runs import mistakes

# The vocabulary of tasks whose texts are read as UTF-8.
_BYTES = tuple(f"<{byte}>" for byte in range(256))

# Any: text, words, token ids or rows of numbers, as `FieldFormat.encode` checks; or these for several fields.
FieldValue = Any
Item = Any


class FieldFormat(FileModel):
    """A field of a model: tokens with their `words`, or `size` numbers for each position. Every item of the task begins
    with `first` and ends with `last`, unless they are None. If the items are texts, `cut` and what follows are those of
    their `Lexicon`, so that a typed text is read as training has read it."""

    name: str
    words: tuple[str, ...] = ()
    size: int | None = None
    first: float | None = None
    last: float | None = None
    cut: Annotated[str, Field(pattern=f"^({'|'.join(CUTS)})?$")] = ""
    unknown: int | None = None
    known: int | None = None
    also: dict[str, str] = Field(default_factory=dict)
    tokenizer: str = ""

    @staticmethod
    def of(task: Task, name: str, ragged: Ragged) -> FieldFormat:
        """Returns the format of a field of a task, of whose items `ragged` are some."""
        is_tokens = ragged.values.ndim == 1
        words, size = (field_vocabulary(task, name), None) if is_tokens else ((), ragged.values.shape[1])
        first, last = (mark if is_tokens or mark is None else 0 for mark in marks(task, name))
        if name not in (read := lexicons(task)):
            return FieldFormat(name=name, words=words, size=size, first=first, last=last)
        lexicon = read[name]
        return FieldFormat(
            name=name, words=words, first=first, last=last, cut=lexicon.cut, unknown=lexicon.unknown,
            known=lexicon.known, also=dict(lexicon.also), tokenizer=lexicon.tokenizer,
        )  # fmt: skip

    @cached_property
    def lexicon(self) -> Lexicon:
        return Lexicon(self.words, self.unknown, self.known, self.also, self.cut, self.tokenizer)

    @cached_property
    def _token_cut(self) -> TokenCut | None:
        if self.tokenizer:
            return token_cut(self.name, self.tokenizer)
        return BYTE_CUT if self.cut == "bytes" else None

    def join(self, words: Sequence[str]) -> str:
        """Returns the text of the texts of some tokens, as `encode` reads it, with marks as they are written; for
        rows of numbers their size."""
        if self.size is not None:
            return f"{plural(len(words), 'row')} of {plural(self.size, 'number')}"
        if (cut := self._token_cut) is None:
            return ("" if " " in self.words else " ").join(words)
        runs = groupby(words, self.lexicon.ids.__contains__)
        return "".join(cut.decode(list(run)) if is_text else "".join(run) for is_text, run in runs)

    def encode(self, value: FieldValue) -> np.ndarray:
        """Returns the tokens [n] of a text, of words or of token ids; or rows of numbers [n, size], which may be a text
        of JSON.

        Texts and rows get the marks that the task declares, if they lack them; token ids are complete."""
        if self.size is not None:
            return self._with_marks(self._rows(value, self.size))
        if isinstance(value, str):
            return self._with_marks(np.asarray(self._tokens(value), dtype=np.int64))
        if isinstance(value, list | tuple) and value and all(isinstance(word, str) for word in value):
            return self._with_marks(np.asarray([self._id(word) for word in value], dtype=np.int64))
        return self._ids(value)

    def spell(self, tokens: np.ndarray) -> tuple[str, ...]:
        """Returns the text of each position."""
        if self.size is not None:
            return ("·",) * len(tokens)
        return tuple(word_of(self.words, int(token)) for token in tokens)

    def _rows(self, value: FieldValue, size: int) -> np.ndarray:
        try:
            rows = np.asarray(json.loads(value) if isinstance(value, str) else value, dtype=np.float64)
        except (TypeError, ValueError, RecursionError):
            raise mistakes.field_of_numbers(self.name, size) from None
        if rows.ndim == 1 and size == 1:
            rows = rows[:, None]
        if rows.ndim == 3:
            rows = rows.reshape(-1, rows.shape[2])  # an image is read row by row
        if rows.ndim != 2 or rows.shape[1] != size or not len(rows) or not np.isfinite(rows).all():
            raise mistakes.field_of_numbers(self.name, size)
        return rows

    def _ids(self, value: FieldValue) -> np.ndarray:
        try:
            ids = np.asarray(value)
        except (TypeError, ValueError):
            raise mistakes.not_tokens(self.name) from None
        if ids.dtype == np.bool_ or ids.dtype.kind not in "iu":
            raise mistakes.not_tokens(self.name)
        ids = ids.reshape(-1).astype(np.int64)  # a picture is read row by row
        if not len(ids):
            raise mistakes.no_tokens()
        for token in (int(ids.min()), int(ids.max())):
            if not 0 <= token < len(self.words):
                raise mistakes.not_a_token_id(token, self.name, len(self.words) - 1)
        return ids

    def _tokens(self, text: str) -> list[int]:
        """Returns the tokens of a text.

        If its task has no lexicon, words are separated by spaces, and a word that is no token is split into characters.
        If the space is a token, all characters are tokens; if tokens are bytes, so are those of the text."""
        ids = self.lexicon.ids
        tokens: list[int] = []
        if self.tokenizer and self._token_cut is not None:
            tokens = self._token_cut.encode(text).tolist()
        elif self.cut or " " in ids:
            tokens = [self._id(word) for word in CUTS[self.cut or "characters"](text)]
        else:
            for word in text.split():
                if word in ids:
                    tokens.append(ids[word])
                elif self.words == _BYTES:
                    return list(text.encode())
                elif all(character in ids for character in word):
                    tokens.extend(ids[character] for character in word)
                else:
                    tokens.append(self._id(word))
        # A text that has only a beginning may be empty.
        if not tokens and not (self.cut and self.first is not None and self.last is None):
            raise mistakes.no_tokens()
        return tokens

    def _id(self, word: str) -> int:
        ids = self.lexicon.ids
        if (token := ids.get(word, self.unknown)) is not None:
            return token
        raise RunError(
            f"`{word}` is not a token of the task",
            suggest(word, self.words, "its first tokens are " + " ".join(self.words[:12])),
        )

    def _with_marks(self, values: np.ndarray) -> np.ndarray:
        if self.first is not None and not (len(values) and np.all(values[0] == self.first)):
            values = np.insert(values, 0, self.first, axis=0)
        if self.last is not None and not np.all(values[-1] == self.last):
            values = np.append(values, np.full_like(values[:1], self.last), axis=0)
        return values


class InputFormat(FileModel):
    """What a trained model reads and answers, without the data of its task.

    `words` are the texts of the answer's tokens, `class_names` those of its classes, if the task has them, and
    `group_names` those of the values of the groups by which results are broken down. Answers
    of pointing are positions of the field `points_at`, one for each position of the field `points_from`. A `written`
    field, by its index, is one that the model may decode from `begin` until `end`, with `limit` tokens at
    most."""

    kind: Kind
    fields: tuple[FieldFormat, ...]
    words: tuple[str, ...]
    class_names: tuple[str, ...] = ()
    group_names: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    points_at: str = ""
    points_from: str = ""
    written: int | None = None
    begin: int | None = None
    end: int | None = None
    limit: Annotated[int, Field(ge=1)] = 1

    @staticmethod
    def of(task: Task, module: Architecture, splits: Mapping[str, Split]) -> InputFormat:
        """Returns the format of a task's inputs and of a module trained on it, from the items of its splits: of the
        first other than `train`, if there is one."""
        example = splits[min(splits, key=lambda name: name == "train")]
        decodable = isinstance(task, DecodableTask)
        points_from, points_at = pointing_fields(module, list(example.inputs))
        longest = int(max(ragged.lengths.max(initial=1) for ragged in example.inputs.values()))
        return InputFormat(
            kind=task.kind,
            fields=tuple(FieldFormat.of(task, name, ragged) for name, ragged in example.inputs.items()),
            words=tuple(task.vocabulary),
            class_names=class_names(task),
            group_names=group_names(task),
            points_at=points_at,
            points_from=points_from,
            written=target_of(module.program.graph) if example.form is TargetForm.POSITIONS else None,
            begin=task.begin if decodable else None,  # type: ignore[attr-defined]  # as `isinstance` has shown
            end=getattr(task, "end", None) if decodable or task.kind is Kind.LANGUAGE_MODEL else None,
            limit=2 * longest,
        )

    @property
    def form(self) -> TargetForm:
        return self.kind.form

    @cached_property
    def answer(self) -> FieldFormat:
        """The format of the answer's text: that of a field with the same tokens, if there is one."""
        own = (field for field in self.fields if field.words == self.words)
        return next(own, FieldFormat(name="", words=self.words))

    def bind(self, task: Task) -> Task:
        """Returns a task with this vocabulary, whatever its files hold by now."""
        if not isinstance(task, TaskWithVocabulary) or not self.fields:
            return task
        return task.restored(self.fields[0].lexicon, self.class_names, self.group_names)

    def typed_fields(self, length: int | None = None) -> tuple[FieldFormat, ...]:
        """Returns the fields that an input must have. The last field may be an answer that the model decodes: until its
        end, or up to `length` tokens."""
        if self.decodes(length):
            return tuple(field for index, field in enumerate(self.fields) if index != self.written)
        return self.fields

    def decodes(self, length: int | None = None) -> bool:
        """Returns whether the model decodes a field from the others."""
        return (
            self.written is not None
            and len(self.fields) > 1
            and self.begin is not None
            and (self.end is not None or length is not None)
        )

    def split(
        self, inputs: Sequence[Item], places: Sequence[str], length: int | None = None, *, takes_length: bool = False
    ) -> Split:
        """Returns inputs as items without targets. If no input has the field that the model decodes, neither do the
        items.

        Args:
            inputs: For each item a text, its token ids, or a value for each field: in order, or by name.
            places: What errors call each input; an empty text for a single one.
            takes_length: Whether the caller's user can give a length in place of a missing answer."""
        if self.form is TargetForm.SPANS:
            raise mistakes.spans_cannot_be_typed()
        rows: list[dict[str, np.ndarray]] = []
        for item, place in zip(inputs, places, strict=True):
            with naming(place):
                if takes_length and self.decodes(1) and not self.decodes(length) and self._is_source(item):
                    raise mistakes.length_missing(listed(field.name for field in self.fields))
                rows.append(self._encode(item, length))
                if rows[-1].keys() != rows[0].keys():
                    raise mistakes.some_with_answers(self.fields[-1].name)
        fields = {name: Ragged.of_rows([row[name] for row in rows]) for name in rows[0]}
        if self.form is TargetForm.CLASSES:
            return Split(fields, np.full(len(rows), -1))
        answered = fields[self.points_from] if self.points_from else list(fields.values())[-1]
        count = int(answered.offsets[-1])
        unknown = np.full((count, 1), np.nan, np.float32) if self.form is TargetForm.NUMBERS else np.full(count, -1)
        targets = Ragged(unknown, answered.offsets)
        return Split(fields, targets, points_at=self.points_at)

    def _is_source(self, item: Item) -> bool:
        sources = self.typed_fields(1)
        if isinstance(item, Mapping):
            return item.keys() == {field.name for field in sources}
        return (len(item) if self._has_value_per_field(item) else 1) == len(sources)

    def _encode(self, item: Item, length: int | None) -> dict[str, np.ndarray]:
        expected = self.typed_fields(length)
        if isinstance(item, Mapping):
            names = [field.name for field in self.fields]
            for name in item:
                if name not in names:
                    raise mistakes.no_such_field(str(name), names)
            expected = self.fields if self.fields[-1].name in item else expected
            for field in expected:
                if field.name not in item:
                    raise mistakes.field_missing(field.name, names)
            values = [item[field.name] for field in expected]
        else:
            values = list(item) if self._has_value_per_field(item) else [item]
            if len(values) == len(self.fields):
                expected = self.fields
        if len(values) != len(expected):
            raise mistakes.wrong_number_of_fields(len(expected), len(values), listed(field.name for field in expected))
        return {field.name: field.encode(value) for field, value in zip(expected, values, strict=True)}

    def _has_value_per_field(self, item: Item) -> bool:
        if not isinstance(item, list | tuple):
            return False
        holds_values = len(self.fields) > 1 and not all(isinstance(part, int | np.integer) for part in item)
        return holds_values or any(isinstance(part, str) for part in item)


def word_of(words: Sequence[str], token: int) -> str:
    """Returns the text of a token; its number if it has none."""
    return words[token] if 0 <= token < len(words) else str(token)


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Puts the place of an input before the message of an error about it."""
    try:
        yield
    except RunError as error:
        raise (RunError(f"{place}: {error.message}", error.remedy) if place else error) from None


def pointing_fields(module: Architecture, names: Sequence[str]) -> tuple[str, str]:
    """Returns, of the fields with these names, the one from whose positions the answers of a module point, and the one
    at whose positions they point; empty if its answers are no positions."""
    if module.program.result.name != "map":
        return "", ""
    owners = [(length, name) for name, field in zip(names, module.program.inputs, strict=True)
              for length in field.type.lengths]  # fmt: skip
    points_from, points_at = (
        next((name for length, name in owners if length == size), "") for size in module.program.result.lengths
    )
    return points_from or points_at, points_at
