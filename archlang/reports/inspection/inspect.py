"""Runs a trained model on one input and records its answers, attention, gates, halting, pointers and memories, as JSON
and as a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.recording import recording
from archlang.errors import ArchlangError
from archlang.errors.names import plural
from archlang.plan.from_file import plan_recipe
from archlang.reports.inspection.heatmap import Heatmap, format_number
from archlang.reports.inspection.panels import InspectedField, panels
from archlang.reports.pages import notebook_frame, render
from archlang.tasks.kit.split import Split
from archlang.train.data import Batch, DeviceSplit
from archlang.train.devices import fixed_randomness
from archlang.train.loss import answerable, forward, mean_loss
from archlang.train.record.mistakes import RunError
from archlang.train.runs.evaluation import OpenedRun
from archlang.train.runs.inputs import InputFormat, Item
from archlang.train.runs.prediction import Answer, answers_of, complete, field_texts

# Browsers are slow with more numbers. A larger page shows only the first choice of each panel.
_MOST_NUMBERS = 24_000_000
_CORRECTNESS = {True: "✓ right", False: "✗ wrong", None: ""}
_ROW_CLASSES = {True: "right", False: "wrong", None: ""}


# The longest text of the answers of a step.
_MOST_CHARACTERS = 80


@dataclass(frozen=True)
class StepAnswers:
    """What a model answers after a step of the loop whose emission it returns.

    Args:
        loss: The mean cross entropy, or that of the task's form of answers; None without targets.
        halting: The probability of halting at the step, on average over positions; None if the loop does not halt."""

    answers: tuple[Answer, ...]
    loss: float | None
    halting: float | None

    @property
    def text(self) -> str:
        """The predictions in one line."""
        text = " ".join(answer.predicted for answer in self.answers)
        return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"

    @property
    def right(self) -> str:
        """How many answers are right, as `3 of 4`; empty without targets."""
        judged = [answer.right for answer in self.answers if answer.right is not None]
        return f"{sum(judged)} of {len(judged)}" if judged else ""

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Returns the step as JSON."""
        answers = [{**vars(answer), "right": answer.right} for answer in self.answers]
        return {"answers": answers, "loss": self.loss, "halting": self.halting}


@dataclass(frozen=True, eq=False)
class Inspection:
    """One input with its answers and panels.

    Args:
        fields: The text of each position of each input field.
        mean_depth: The mean number of steps of halting loops; None if the model has none.
        steps: The answers after each step of the loop whose emission the model returns; empty if there is none."""

    title: str
    model: str
    fields: Mapping[str, tuple[str, ...]]
    answers: tuple[Answer, ...]
    panels: tuple[Heatmap, ...]
    mean_depth: float | None
    steps: tuple[StepAnswers, ...] = ()

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        return {
            "title": self.title,
            "model": self.model,
            "fields": {name: list(texts) for name, texts in self.fields.items()},
            "answers": [{**vars(answer), "right": answer.right} for answer in self.answers],
            "mean_depth": self.mean_depth,
            "steps": [step.to_json() for step in self.steps],
            "panels": [panel.to_json() for panel in self.panels],
        }

    def html(self) -> str:
        """Returns the inspection as an HTML file with the input, the predictions and all panels."""
        answers, panels = self.answers, self.panels
        is_judged = any(answer.right is not None for answer in answers)
        headers, rows = _columns(
            ("position", "predicted", "probability", "target", ""),
            [
                (answer.place, answer.predicted, _number(answer.probability), answer.target or "",
                 _CORRECTNESS[answer.right])
                for answer in answers
            ],
        )  # fmt: skip
        step_headers, steps = _columns(
            ("step", "predicted", "right", "loss", "halts here"),
            [
                (str(number), step.text, step.right, _number(step.loss), _number(step.halting))
                for number, step in enumerate(self.steps, start=1)
            ],
        )
        heads_omitted = sum(panel.numbers for panel in panels) > _MOST_NUMBERS
        if heads_omitted:
            panels = tuple(panel.first_choice() for panel in panels)
        right = sum(answer.right is True for answer in answers)
        return render(
            "inspection.html",
            title=f"{self.model}: {self.title}",
            fields=self.fields,
            mean_depth=self.mean_depth,
            summary=f"{right} of {len(answers)} right" if is_judged else plural(len(answers), "answer"),
            headers=headers,
            answers=rows,
            step_headers=step_headers,
            steps=steps,
            marks=[_ROW_CLASSES[answer.right] for answer in answers],
            heads_omitted=heads_omitted,
            panels=panels,
            data=[panel.to_json() for panel in panels],
            format_number=format_number,
        )

    def _repr_html_(self) -> str:
        return notebook_frame(self.html())


def _columns(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """The headers and the rows of the predictions and of the columns that are not empty."""
    shown = [index for index, name in enumerate(headers) if name == "predicted" or any(row[index] for row in rows)]
    return [headers[index] for index in shown], [[row[index] for index in shown] for row in rows]


def _number(value: float | None) -> str:
    return "" if value is None else format_number(value)


def inspect(
    module: Architecture,
    input_format: InputFormat,
    batch: Batch,
    title: str,
    source_lines: Mapping[str, str] | None = None,
) -> Inspection:
    """Runs the model on a batch of one item and records it.

    Args:
        source_lines: The line of the program of each instance, by its path."""
    module.eval()
    texts = field_texts(input_format, batch)
    graph = module.program.graph
    fields = [
        InspectedField(value.name, value.type.lengths[0], field_texts)
        for value, field_texts in zip(graph.region.inputs, texts.values(), strict=True)
        if value.type.lengths
    ]
    with (
        torch.no_grad(),
        fixed_randomness(batch.items.device),
        recording(module) as record,
        module.keeping_steps() as results,
    ):
        logits = forward(module, batch)
    depth = module.mean_depth
    steps = []
    for index, result in enumerate(results.values):
        step_logits = answerable(result, batch)
        answers = tuple(answers_of(input_format, step_logits, batch, texts))
        has_targets = bool(answers) and all(answer.target is not None for answer in answers)
        loss = float(mean_loss(step_logits, batch)) if has_targets else None
        steps.append(
            StepAnswers(answers, loss, _mean_weight(results.weights[index], batch) if results.weights else None)
        )
    return Inspection(
        title,
        graph.name,
        texts,
        tuple(answers_of(input_format, logits, batch, texts)),
        panels(record.moments, fields, source_lines),
        None if depth is None else float(depth),
        tuple(steps),
    )


def _mean_weight(weights: Tensor, batch: Batch) -> float:
    """The probability of halting at a step; the mean over the scored positions if each has its own."""
    if weights.dim() == 1 or batch.scored is None or batch.scored.shape != weights.shape:
        return float(weights.mean())
    return float(weights[batch.scored].mean())


def source_lines(program: Path, recipe: str) -> dict[str, str]:
    """Returns the line of the program of each instance, by its path. Empty if the program has errors by now, because it
    was written for another version of archlang."""
    try:
        graph = plan_recipe(program, recipe).at_test
    except (ArchlangError, OSError):
        return {}
    return {
        path: f"{Path(instance.span.source.path).name}:{instance.span.line}: "
        f"{instance.span.text.splitlines()[0].strip()}"
        for path, instance in graph.instances.items()
        if instance.span is not None
    }


def split_item(run: OpenedRun, split: str, index: int) -> Batch:
    """Returns an item of a split as a batch of one.

    Raises:
        RunError: The task has no such split, or the split has fewer items."""
    items = run.load([split])[split]
    if not 0 <= index < len(items):
        raise RunError(f"the split `{split}` has no item {index}", f"its items are 0 to {len(items) - 1}")
    return item_batch(run.module, items, index)


def item_batch(module: Architecture, items: Split, index: int) -> Batch:
    """Returns an item of a split as a batch of one."""
    return DeviceSplit(items.select([index]), next(module.parameters()).device).batch(np.asarray([0]))


def typed_input(module: Architecture, input_format: InputFormat, item: Item | Sequence[str]) -> Batch:
    """Returns an input as a batch of one, without a target.

    Marks that the task declares, such as `[B]`, are added if they are missing. If the last field is an answer with an
    end token, it may be omitted: the model decodes it.

    Raises:
        RunError: The input does not fit the model."""
    split = input_format.split([item], [""])
    batch = replace(item_batch(module, split, 0), form=input_format.form)
    if len(split.inputs) < len(input_format.fields):
        batch, _ = complete(module, input_format, batch)
    return batch
