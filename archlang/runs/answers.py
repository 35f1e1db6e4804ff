"""The answers of a model for one input, beside their targets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from archlang.runs.inputs import InputFormat, word_of
from archlang.tasks.kit.split import Form
from archlang.tasks.kit.task import Kind, class_text, row_text
from archlang.train.data import Batch
from archlang.train.predictions import predict, span_logits


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
        case Form.SPANS:
            probabilities = span_logits(logits, batch).softmax(1)[0]
            return [
                Answer(end, str(position), float(probabilities[position, column]), _target(target, str(target)))
                for column, (end, position, target) in enumerate(
                    zip(("begins at", "ends at"), predictions.tolist(), targets.tolist(), strict=True)
                )
            ]
        case Form.CLASSES:
            predicted, target = int(predictions), int(targets)
            probability = float(logits.float().softmax(-1)[0, predicted])
            names = input_format.class_names
            return [Answer("", class_text(names, predicted), probability, _target(target, class_text(names, target)))]
    assert batch.scored is not None
    positions = batch.scored[0].nonzero()[:, 0].tolist()
    texts = next((texts for texts in reversed(list(fields.values())) if len(texts) >= len(positions)), ())
    answers = []
    for position in positions:
        place = f"{position} {texts[position]}" if position < len(texts) else str(position)
        if batch.form is Form.POINTERS:
            texts_pointed_at = fields[input_format.points_at]
            answers.append(
                _pointer_answer(texts_pointed_at, place, logits[0, position], predictions[position], targets[position])
            )
        elif batch.form is Form.NUMBERS:
            answers.append(_number_answer(place, predictions[position], targets[position]))
        elif batch.form is Form.SETS:
            answers.append(
                _set_answer(input_format.words, place, logits[0, position], predictions[position], targets[position])
            )
        else:
            answers.append(
                _token_answer(input_format, place, logits[0, position], predictions[position], targets[position])
            )
    return answers


def _token_answer(input_format: InputFormat, place: str, logits: Tensor, predicted: Tensor, target: Tensor) -> Answer:
    # Only a tagging task knows the meaning of its tags.
    words = input_format.class_names if input_format.kind is Kind.TAGGING else input_format.words
    probability = float(logits.float().softmax(-1)[int(predicted)])
    text, target_text = (word_of(words, int(token)) for token in (predicted, target))
    return Answer(place, text, probability, _target(int(target), target_text))


def _pointer_answer(texts: Sequence[str], place: str, logits: Tensor, predicted: Tensor, target: Tensor) -> Answer:
    """Returns the answer with the position pointed at and its text."""
    probability = float(logits.float().softmax(-1)[int(predicted)])
    text, target_text = (f"{int(position)} {texts[int(position)]}" for position in (predicted, target))
    return Answer(place, text, probability, _target(int(target), target_text))


def _number_answer(place: str, predicted: Tensor, target: Tensor) -> Answer:
    target_text = None if target.isnan().any() else row_text(target.tolist())
    return Answer(place, row_text(predicted.tolist()), None, target_text)


def _set_answer(words: Sequence[str], place: str, logits: Tensor, predicted: Tensor, target: Tensor) -> Answer:
    """Returns the answer with the probability of its least certain member."""

    def text(members: Tensor) -> str:
        return "{" + ",".join(words[member] for member in members.bool().nonzero()[:, 0].tolist()) + "}"

    probabilities = logits.float().sigmoid()
    least = float(torch.where(predicted, probabilities, 1 - probabilities).min())
    return Answer(place, text(predicted), least, None if int(target.flatten()[0]) < 0 else text(target))


def _target(target: int, text: str) -> str | None:
    return None if target < 0 else text
