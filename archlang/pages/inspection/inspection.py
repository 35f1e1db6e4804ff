"""Runs a trained model on one input and records its answers, attention, gates, halting, pointers and memories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from archlang.backend.runtime.recording import recording
from archlang.diagnostics import ArchlangError
from archlang.pages.inspection.answers import Answer, answers_of
from archlang.pages.inspection.heatmap import Heatmap
from archlang.pages.inspection.inputs import field_words
from archlang.pages.inspection.panels import InspectedField, panels
from archlang.plan.from_file import plan_recipe
from archlang.runs.evaluation import OpenedRun
from archlang.train.data import Batch
from archlang.train.generators import fixed_randomness
from archlang.train.predictions import forward


@dataclass(frozen=True, eq=False)
class Inspection:
    """One input with its answers and panels.

    Args:
        fields: The text of each position of each input field.
        mean_depth: The mean number of steps of halting loops; None if the model has none."""

    title: str
    model: str
    fields: Mapping[str, tuple[str, ...]]
    answers: tuple[Answer, ...]
    panels: tuple[Heatmap, ...]
    mean_depth: float | None

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        return {
            "title": self.title,
            "model": self.model,
            "fields": {name: list(texts) for name, texts in self.fields.items()},
            "answers": [{**vars(answer), "right": answer.right} for answer in self.answers],
            "mean_depth": self.mean_depth,
            "panels": [panel.to_json() for panel in self.panels],
        }


def inspect(run: OpenedRun, batch: Batch, title: str) -> Inspection:
    """Runs the model on a batch of one item and records it."""
    module = run.module.eval()
    texts = {
        name: _texts(field_words(run.task, name), field, int(batch.lengths[name][0]))
        for name, field in zip(batch.lengths, batch.fields, strict=True)
    }
    graph = module.program.graph
    fields = [
        InspectedField(value.name, value.type.lengths[0], field_texts)
        for value, field_texts in zip(graph.region.inputs, texts.values(), strict=True)
        if value.type.lengths
    ]
    with torch.no_grad(), fixed_randomness(run.device), recording(module) as record:
        logits = forward(module, batch)
    depth = module.mean_depth
    return Inspection(
        title,
        graph.name,
        texts,
        tuple(answers_of(run.task, logits, batch, texts)),
        panels(record.moments, fields, _source_lines(run)),
        None if depth is None else float(depth),
    )


def _source_lines(run: OpenedRun) -> dict[str, str]:
    """Returns the line of the program of each instance, by its path. Empty if the program has errors by now, because it
    was written for another version of archlang."""
    try:
        graph = plan_recipe(run.folder / "recipe.arch", run.recipe).at_test
    except (ArchlangError, OSError):
        return {}
    return {
        path: f"{Path(instance.span.source.path).name}:{instance.span.line}: "
        f"{instance.span.text.splitlines()[0].strip()}"
        for path, instance in graph.instances.items()
        if instance.span is not None
    }


def _texts(words: Sequence[str], field: Tensor, length: int) -> tuple[str, ...]:
    """Returns the text of each position of a field of tokens [1, length] or of numbers [1, length, size]."""
    if field.dim() == 3:
        return ("·",) * length
    return tuple(words[token] if token < len(words) else str(token) for token in field[0, :length].tolist())
