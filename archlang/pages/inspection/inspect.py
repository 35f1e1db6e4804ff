"""Runs a trained model on one input and records its answers, attention, gates, halting, pointers and memories."""

from collections.abc import Mapping
from pathlib import Path

import torch

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.recording import recording
from archlang.diagnostics import ArchlangError
from archlang.pages.inspection.inspection import Inspection
from archlang.pages.inspection.panels import InspectedField, panels
from archlang.plan.from_file import plan_recipe
from archlang.runs.answers import answers_of
from archlang.runs.inputs import InputFormat
from archlang.runs.prediction import field_texts
from archlang.train.data import Batch
from archlang.train.generators import fixed_randomness
from archlang.train.predictions import forward


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
    with torch.no_grad(), fixed_randomness(batch.items.device), recording(module) as record:
        logits = forward(module, batch)
    depth = module.mean_depth
    return Inspection(
        title,
        graph.name,
        texts,
        tuple(answers_of(input_format, logits, batch, texts)),
        panels(record.moments, fields, source_lines),
        None if depth is None else float(depth),
    )


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
