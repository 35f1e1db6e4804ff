"""Runs a trained model on one input and records its answers, attention, gates, halting, pointers and memories."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.recording import recording
from archlang.errors import ArchlangError
from archlang.plan.from_file import plan_recipe
from archlang.reports.inspection.inspection import Inspection, StepAnswers
from archlang.reports.inspection.panels import InspectedField, panels
from archlang.tasks.kit.split import Split
from archlang.train.data import Batch, Data
from archlang.train.devices import fixed_randomness
from archlang.train.loss import answerable, forward, mean_loss
from archlang.train.record.mistakes import RunError
from archlang.train.runs.evaluation import OpenedRun
from archlang.train.runs.inputs import InputFormat, Item
from archlang.train.runs.prediction import answers_of, complete, field_texts


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
    items = run.load([split], None)[split]
    if not 0 <= index < len(items):
        raise RunError(f"the split `{split}` has no item {index}", f"its items are 0 to {len(items) - 1}")
    return item_batch(run.module, items, index)


def item_batch(module: Architecture, items: Split, index: int) -> Batch:
    """Returns an item of a split as a batch of one."""
    return Data(items.select([index]), next(module.parameters()).device).batch(np.asarray([0]))


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
