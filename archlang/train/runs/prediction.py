"""The answers of a trained model, batch by batch, from texts or from samples of its task."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.backend import halting_loops
from archlang.backend.architecture import Architecture
from archlang.backend.decode import greedy
from archlang.backend.decode.greedy import Decoded
from archlang.backend.decode.sampling import Choose, Sampling
from archlang.tasks.kit.split import Ragged, Split, TargetForm
from archlang.tasks.kit.task import Kind, class_text, row_text
from archlang.train.data import Batch, DeviceSplit
from archlang.train.devices import explaining_out_of_memory, fixed_randomness
from archlang.train.loss import forward, predict, span_logits
from archlang.train.runs import mistakes
from archlang.train.runs.inputs import FieldFormat, InputFormat, Item, naming, word_of


@dataclass(frozen=True)
class Answer:
    """One prediction.

    Args:
        place: The position that it belongs to; empty for the class of a whole sample.
        probability: The probability that the model gives to the prediction; None for numbers.
        target: The correct answer; None if it is unknown."""

    place: str
    predicted: str
    probability: float | None
    target: str | None

    @property
    def right(self) -> bool | None:
        """Whether the prediction is the target; None if the target is unknown, and for numbers."""
        return None if self.target is None or self.probability is None else self.predicted == self.target


def answers_of(
    input_format: InputFormat, logits: Tensor, batch: Batch, fields: Mapping[str, Sequence[str]]
) -> list[Answer]:
    """Returns the predictions of a batch of one. A target of -1 is unknown, and a row of NaN.

    Args:
        fields: The text of each position of each input field."""
    predictions, targets = predict(logits, batch)[0], batch.targets[0]
    match batch.form:
        case TargetForm.SPANS:
            probabilities = span_logits(logits, batch).softmax(1)[0]
            return [
                Answer(end, str(position), float(probabilities[position, column]), _target(target, str(target)))
                for column, (end, position, target) in enumerate(
                    zip(("begins at", "ends at"), predictions.tolist(), targets.tolist(), strict=True)
                )
            ]
        case TargetForm.CLASSES:
            predicted, target = int(predictions), int(targets)
            probability = float(logits.float().softmax(-1)[0, predicted])
            names = input_format.class_names
            return [Answer("", class_text(names, predicted), probability, _target(target, class_text(names, target)))]
    assert batch.scored is not None
    positions = batch.scored[0].nonzero()[:, 0].tolist()
    texts = next((texts for texts in reversed(list(fields.values())) if len(texts) >= len(positions)), ())

    def members(values: Tensor) -> str:
        words = [input_format.words[member] for member in values.bool().nonzero()[:, 0].tolist()]
        return f"{{{','.join(words)}}}"

    def text_of(value: int) -> str:
        """Returns a position that is pointed at with its text, or a token."""
        if batch.form is TargetForm.POINTERS:
            return f"{value} {fields[input_format.points_at][value]}"
        # Only a tagging task knows the meaning of its tags.
        return word_of(input_format.class_names if input_format.kind is Kind.TAGGING else input_format.words, value)

    def answer(position: int) -> Answer:
        place = f"{position} {texts[position]}" if position < len(texts) else str(position)
        at, predicted, target = logits[0, position].float(), predictions[position], targets[position]
        match batch.form:
            case TargetForm.NUMBERS:
                target_text = None if target.isnan().any() else row_text(target.tolist())
                return Answer(place, row_text(predicted.tolist()), None, target_text)
            case TargetForm.SETS:
                # The probability is that of the least certain member.
                certainties = torch.where(predicted, at.sigmoid(), 1 - at.sigmoid())
                target_text = None if int(target.flatten()[0]) < 0 else members(target)
                return Answer(place, members(predicted), float(certainties.min()), target_text)
        probability = float(at.softmax(-1)[int(predicted)])
        return Answer(place, text_of(int(predicted)), probability, _target(int(target), text_of(int(target))))

    return list(map(answer, positions))


def _target(target: int, text: str) -> str | None:
    return None if target < 0 else text


DEFAULT_BATCH = 64
"""The inputs that are read at a time."""


@dataclass(frozen=True)
class Prediction:
    """What a model answers to one input.

    Args:
        fields: The text of each field as the model reads it, with the marks of the task.
        answer: The answer as text: a class, the words of a sequence, or the predicted word or set of each position.
        probability: The probability that the model gives to the whole answer: the product over its parts, times that of
            the end if the model has written it; None if the parts are numbers.
        parts: The prediction of each position, or that of the whole input if it has a class.
        steps: The mean number of steps of the outermost halting loops; None if the model has none.
        target: The correct answer; None if it is unknown."""

    fields: Mapping[str, str]
    answer: str
    probability: float | None
    parts: tuple[Answer, ...]
    steps: float | None
    target: str | None = None

    @property
    def right(self) -> bool | None:
        """Whether the whole answer is right; None if the target is unknown, and for numbers."""
        if self.target is None or self.probability is None:
            return None
        parts = [part.right for part in self.parts]
        # The parts of a written answer, which may be empty, have no targets. Equal words may be different spans.
        return all(parts) if parts and None not in parts else self.answer == self.target

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Returns the prediction as `archlang predict --json` prints it."""
        parts = [{"place": part.place, "predicted": part.predicted, "probability": part.probability}
                 for part in self.parts]  # fmt: skip
        correctness = {} if self.target is None else {"target": self.target, "right": self.right}
        return {
            "fields": dict(self.fields), "answer": self.answer, "probability": self.probability, **correctness,
            "steps": self.steps, "parts": parts,
        }  # fmt: skip


def predict_inputs(
    module: Architecture,
    input_format: InputFormat,
    inputs: Sequence[Item] | Split,
    device: torch.device,
    *,
    batch: int = DEFAULT_BATCH,
    length: int | None = None,
    places: Sequence[str] | None = None,
    sampling: Sampling | None = None,
    samples: int = 1,
    first: int = 0,
    stop: str = "",
) -> list[Prediction]:
    """Returns the prediction of each input, in order; with `samples`, so many for each input, one after the other. The
    module is in evaluation mode afterwards.

    Args:
        inputs: Items of a split, or for each input a text, its token ids, or a value for each field.
        batch: How many inputs are read at a time.
        length: The number of tokens to write, for answers without an end and to continue the input of a language model.
        places: What errors call each input. By default they are counted from 0.
        sampling: How the tokens of an answer are drawn; the likeliest if it is None.
        first: The index of the first input among all inputs, which decides what is drawn.
        stop: A written answer is cut before this text.

    Raises:
        RunError: an input does not fit the model, and the message names it; a number is less than 1; or the answers of
            the model are not written token by token, and cannot be drawn."""
    for name, size in (("batch", batch), ("length", length), ("samples", samples)):
        if size is not None and size < 1:
            raise mistakes.less_than_one(name, size)
    if isinstance(inputs, str):
        inputs = [inputs]
    if not isinstance(inputs, Split) and not isinstance(inputs, list | tuple):
        raise mistakes.not_an_input_list(type(inputs).__name__)
    if places is None:
        places = [f"input {index}" if len(inputs) > 1 else "" for index in range(len(inputs))]
    if not len(inputs):
        return []
    module.eval()
    split = inputs if isinstance(inputs, Split) else input_format.split(inputs, places, length, takes_length=True)
    reader = _ItemReader(module, input_format, split, device, length, sampling, first, stop)
    if sampling is not None and not reader.writes:
        would_continue = length is None and input_format.written is not None and len(input_format.fields) == 1
        or_else = ", or give the number of tokens to write, `length=N` (`--length N` in the shell)"
        raise mistakes.draws_nothing(or_else if would_continue else "")
    predictions: dict[tuple[int, int], Prediction] = {}
    with torch.no_grad(), fixed_randomness(device), explaining_out_of_memory(device, batch):
        for items in reader.batches(batch):
            for number in range(samples):
                reader.number = number
                keys = ((item, number) for item in items.tolist())
                predictions.update(zip(keys, _read(reader, items, places), strict=True))
    return [predictions[key] for key in sorted(predictions)]


def language_field(input_format: InputFormat) -> FieldFormat:
    """Returns the field whose next tokens a model predicts.

    Raises:
        RunError: the model continues no texts."""
    if input_format.kind is not Kind.LANGUAGE_MODEL or len(input_format.fields) != 1:
        raise mistakes.continues_nothing()
    return input_format.fields[0]


class Likelihood(NamedTuple):
    """How likely a model finds a text: the logarithm of its probability, the number of its tokens, and whether each of
    them is the likeliest."""

    logarithm: float
    tokens: int
    is_likeliest: bool


def likelihoods(
    module: Architecture,
    input_format: InputFormat,
    texts: Sequence[tuple[Item, Item]],
    device: torch.device,
    batch: int = DEFAULT_BATCH,
) -> list[Likelihood]:
    """Returns for each prompt with its continuation, texts or lists of token ids, how likely it is. The module is in
    evaluation mode afterwards.

    Raises:
        RunError: the model continues no texts, or one has an unknown token or no continuation."""
    if batch < 1:
        raise mistakes.less_than_one("batch", batch)
    field = language_field(input_format)
    rows, known = list[np.ndarray](), list[int]()
    for number, (prompt, continuation) in enumerate(texts):
        with naming(f"text {number}"):
            rows.append(field.encode(prompt + continuation))
            known.append(len(field.encode(prompt)))
            if known[-1] >= len(rows[-1]):
                raise mistakes.no_tokens()
    if not rows:
        return []
    split = input_format.split([row[:-1] for row in rows], [""] * len(rows))
    marks = [np.arange(1, len(row)) >= first for row, first in zip(rows, known, strict=True)]
    targets, scored = Ragged.of_rows([row[1:] for row in rows]), Ragged.of_rows(marks)
    data = DeviceSplit(replace(split, targets=targets, scored=scored), device)
    results: dict[int, Likelihood] = {}
    module.eval()
    with torch.no_grad(), fixed_randomness(device), explaining_out_of_memory(device, batch):
        for items in data.items_by_length(batch):
            read = data.batch(items)
            assert read.scored is not None
            logits = forward(module, read).float()
            losses = F.cross_entropy(logits.transpose(1, 2), read.targets, reduction="none")
            is_likeliest = (logits.argmax(-1) == read.targets) | ~read.scored
            sums = (-losses * read.scored).sum(1), read.scored.sum(1), is_likeliest.all(1)
            results |= zip(items.tolist(), map(Likelihood, *(each.tolist() for each in sums)), strict=True)
    return [results[item] for item in range(len(rows))]


def stream(
    module: Architecture,
    input_format: InputFormat,
    prompt: Item,
    device: torch.device,
    *,
    length: int | None = None,
    sampling: Sampling | None = None,
    stop: str = "",
) -> Iterator[str]:
    """Yields the text with which a language model continues a prompt, as soon as it is written: that which
    `predict_inputs` answers to this input alone, unless the model draws random numbers itself. Without a `length`, it
    ends with the model's end, or after as many tokens as the format allows.

    Raises:
        RunError: the model continues no texts, the prompt has an unknown token, or the length is less than 1."""
    if length is not None and length < 1:
        raise mistakes.less_than_one("length", length)
    tokens = torch.as_tensor(language_field(input_format).encode(prompt), device=device)[None]
    choose = None if sampling is None else sampling.of_items([0])
    limit = input_format.limit if length is None else length
    written, shown = [], 0
    for token in greedy.stream(module, module.program, tokens, input_format.end, limit, choose):
        if token == input_format.end:
            break
        written.append(word_of(input_format.words, token))
        text = input_format.answer.join(written)
        if stop and stop in text:
            yield text.partition(stop)[0][shown:]
            return
        # The next tokens may complete a character, or the text to stop at.
        ready = len(text.rstrip("\N{REPLACEMENT CHARACTER}")) - max(0, len(stop) - 1)
        if ready > shown:
            yield text[shown:ready]
            shown = ready
    yield input_format.answer.join(written)[shown:]


def _read(reader: _ItemReader, items: np.ndarray, places: Sequence[str]) -> list[Prediction]:
    """Returns the predictions of a batch. If the model refuses it, the error names the first item that it refuses
    alone."""
    try:
        return reader.read(items)
    except ValueError as error:
        for item in items:
            try:
                reader.read(np.asarray([item]))
            except ValueError as own:
                with naming(places[item]):
                    raise mistakes.cannot_be_read(str(own)) from error
        raise


def complete(
    module: Architecture,
    input_format: InputFormat,
    batch: Batch,
    length: int | None = None,
    choose: Choose | None = None,
) -> tuple[Batch, Decoded]:
    """Returns a batch with the field that the model decodes from the other fields, and what it has decoded. The lengths
    of answers without an end are `length`, or those of the batch's targets."""
    begin, end, written = input_format.begin, input_format.end, input_format.written
    assert begin is not None
    assert written is not None
    limits: dict[str, Any] = {"limit": input_format.limit if length is None else length}  # Any: of two types
    if end is None and length is None:
        assert batch.scored is not None
        limits = {"answer_lengths": batch.scored.sum(1)}
    decoded = module.decode(
        *batch.fields.values(), lengths=batch.lengths, begin=begin, end=end, choose=choose, **limits
    )
    tokens, device = decoded.tokens, decoded.tokens.device
    # The decoder has read the beginning and all tokens except the last; an ended answer, all tokens.
    field = torch.cat([torch.full((len(tokens), 1), begin, device=device), tokens], 1)
    field_lengths = decoded.lengths + int(end is not None)
    field = field[:, : int(field_lengths.max())]
    names = [field.name for field in input_format.fields]
    fields = {**batch.fields, names[written]: field}
    lengths = {**batch.lengths, names[written]: field_lengths}
    scored = torch.arange(field.shape[1], device=device) < field_lengths[:, None]
    completed = replace(
        batch, fields={name: fields[name] for name in names}, lengths={name: lengths[name] for name in names},
        targets=torch.full(field.shape, -1, device=device), scored=scored,
    )  # fmt: skip
    return completed, decoded


@dataclass
class _ItemReader:
    """Reads the items of a split. The model decodes the field that it writes, if the items are without it or are
    samples of the task."""

    _module: Architecture
    _format: InputFormat
    split: InitVar[Split]
    device: InitVar[torch.device]
    _length: int | None
    _sampling: Sampling | None
    _first: int
    _stop: str
    number: int = 0
    """of the sample of each item"""

    def __post_init__(self, split: Split, device: torch.device) -> None:
        fields, written = self._format.fields, self._format.written
        self._has_steps = bool(list(halting_loops(self._module)))
        self._continues = self._length is not None and written is not None and len(fields) == 1
        name = "" if written is None else fields[written].name
        targets = split.targets
        self._sampled = name in split.inputs and isinstance(targets, Ragged) and bool((targets.values >= 0).any())
        can_decode = len(fields) > 1 and written is not None and self._format.begin is not None
        self._decodes = can_decode and (name not in split.inputs or self._sampled)
        if self._decodes:
            sources = {field: ragged for field, ragged in split.inputs.items() if field != name}
            split = replace(split, inputs=sources)
        self._data = DeviceSplit(split, device)

    @property
    def writes(self) -> bool:
        """Whether the model writes its answers token by token."""
        return self._continues or self._decodes

    def batches(self, size: int) -> Iterator[np.ndarray]:
        """Yields the items of each batch, short ones first; of one length each, if the model continues them."""
        return self._data.items_by_length(size, math.inf, equal=self._continues)

    def read(self, items: np.ndarray) -> list[Prediction]:
        """Returns the predictions of a batch.

        Raises:
            ValueError: the model refuses an item."""
        batch = replace(self._data.batch(items), form=self._format.form)
        sampling = self._sampling
        choose = None if sampling is None else sampling.of_items((self._first + items).tolist(), self.number)
        if self._continues:
            return self._continued(batch, choose)
        if self._decodes:
            completed, decoded = complete(self._module, self._format, batch, self._length, choose)
            steps = self._steps(completed)
            return [self._written_prediction(batch, decoded, row, steps[row]) for row in range(len(items))]
        logits = forward(self._module, batch)
        depths = self._depths(len(items))
        return [self._answered(batch, logits, row, depths[row]) for row in range(len(items))]

    # Steps

    def _steps(self, batch: Batch) -> Sequence[float | None]:
        if self._has_steps:
            forward(self._module, batch)
        return self._depths(len(batch.items))

    def _depths(self, count: int) -> Sequence[float | None]:
        depths = self._module.sample_depth
        return [None] * count if depths is None or not self._has_steps else depths.tolist()

    # Answers

    def _answered(self, batch: Batch, logits: Tensor, row: int, steps: float | None) -> Prediction:
        own = _row(batch, row)
        texts = field_texts(self._format, own)
        parts = tuple(answers_of(self._format, logits[row : row + 1], own, texts))
        predicted, targets = [part.predicted for part in parts], [part.target for part in parts]
        given_targets = [target for target in targets if target is not None]
        target = self._answer_text(given_targets, texts) if len(given_targets) == len(targets) else None
        probabilities = [part.probability for part in parts if part.probability is not None]
        probability = None if self._format.form is TargetForm.NUMBERS else math.prod(probabilities)
        return Prediction(self._spelled(texts), self._answer_text(predicted, texts), probability, parts, steps, target)

    def _answer_text(self, predicted: Sequence[str], texts: Mapping[str, Sequence[str]]) -> str:
        if self._format.form is TargetForm.SPANS:
            first, last = map(int, predicted)
            return " ".join(next(iter(texts.values()))[first : last + 1])
        if self._format.form is TargetForm.POINTERS:
            return " ".join(text.partition(" ")[2] for text in predicted)
        if self._format.kind is Kind.LANGUAGE_MODEL or self._format.kind is Kind.SEQ2SEQ:
            return self._format.answer.join(predicted)
        return " ".join(predicted)

    def _written_prediction(self, batch: Batch, decoded: Decoded, row: int, steps: float | None) -> Prediction:
        words, end = self._format.words, self._format.end
        length = int(decoded.lengths[row])
        probabilities = decoded.logits[row].float().softmax(-1)
        ended = end is not None and length < len(probabilities)
        tokens = [int(token) for token in decoded.tokens[row, :length]]
        if self._stop:
            texts = [word_of(words, token) for token in tokens]
            # The first tokens in whose text it is, or all of them.
            count = bisect_left(range(length), True, key=lambda count: self._is_stopped(texts[:count]))
            ended, tokens = ended and not self._is_stopped(texts), tokens[:count]
        chances = [float(probabilities[place, token]) for place, token in enumerate(tokens)]
        parts = tuple(
            Answer(str(place), word_of(words, token), chance, None)
            for place, (token, chance) in enumerate(zip(tokens, chances, strict=True))
        )
        probability = math.prod(chances)
        if ended:
            probability *= float(probabilities[length, end])
        target = None
        if self._sampled:
            assert batch.scored is not None
            right = [int(token) for token in batch.targets[row][batch.scored[row]]]
            target = self._format.answer.join([word_of(words, token) for token in right if token != end])
        answer = self._format.answer.join([part.predicted for part in parts])
        if self._stop:
            answer = answer.partition(self._stop)[0]
        return Prediction(
            self._spelled(field_texts(self._format, _row(batch, row))), answer, probability, parts, steps, target
        )

    def _is_stopped(self, texts: Sequence[str]) -> bool:
        return self._stop in self._format.answer.join(texts)

    def _continued(self, batch: Batch, choose: Choose | None) -> list[Prediction]:
        ((name, prompt),) = batch.fields.items()
        decoded = self._module.decode(begin=prompt, end=self._format.end, limit=self._length, choose=choose)
        read = torch.cat([prompt, decoded.choices], 1)[:, :-1]
        steps = self._steps(
            replace(batch, fields={name: read}, lengths={name: torch.full((len(read),), read.shape[1])})
        )
        predictions = [self._written_prediction(batch, decoded, row, steps[row]) for row in range(len(prompt))]
        return [replace(prediction, target=None) for prediction in predictions]

    def _spelled(self, texts: Mapping[str, Sequence[str]]) -> dict[str, str]:
        formats = {field.name: field for field in self._format.fields}
        return {name: formats[name].join(field) for name, field in texts.items()}


def field_texts(input_format: InputFormat, batch: Batch) -> dict[str, tuple[str, ...]]:
    """Returns the text of each position of each field of a batch of one."""
    formats = {field.name: field for field in input_format.fields}
    return {
        name: formats[name].spell(field[0, : int(batch.lengths[name][0])].cpu().numpy())
        for name, field in batch.fields.items()
    }


def _row(batch: Batch, row: int) -> Batch:
    one = slice(row, row + 1)
    return Batch(
        batch.items[one], {name: field[one] for name, field in batch.fields.items()},
        {name: lengths[one] for name, lengths in batch.lengths.items()}, batch.targets[one],
        None if batch.scored is None else batch.scored[one], batch.form, batch.points_at,
    )  # fmt: skip
