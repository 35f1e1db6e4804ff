"""`picture` and `inspect`: what a notebook shows of a module."""

from __future__ import annotations

import base64
from typing import Any

from archlang.api import mistakes
from archlang.api.run import Run
from archlang.backend.architecture import Architecture
from archlang.pages.inspection.inspect import inspect as inspect_batch
from archlang.pages.inspection.inspect import typed_input
from archlang.pages.inspection.inspection import Inspection
from archlang.pages.pictures.formats import print_svg
from archlang.pages.pictures.picture import draw
from archlang.runs.inputs import FieldFormat, InputFormat, pointing_fields
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind


def picture(model: Architecture | Run) -> str:
    """Returns the picture of a module, or of a run's module, as HTML: an image of the boxes of its program, which a
    notebook shows for a cell that ends with the module. `archlang viz` draws pictures of programs that fold.

    Raises:
        SavedModelError: it is no model."""
    module = model.module if isinstance(model, Run) else model
    if not isinstance(module, Architecture):
        raise mistakes.not_a_model(module)
    origin = module.program.origin
    svg = print_svg(draw(module.program.graph if origin is None else origin.graph))
    data = base64.b64encode(str(svg).encode()).decode()
    return f'<img alt="model {module.program.graph.name}" src="data:image/svg+xml;base64,{data}">'


def inspect(model: Architecture | Run, item: Any) -> Inspection:  # Any: an input, as `Run.predict` takes it
    """Returns what a model does with one input: its answers, and a panel for each of its attention maps, gates, halting
    probabilities, pointers and memories.

    A notebook shows the page of `archlang inspect`; `html()` returns it, and `panels` are the numbers.

    Args:
        model: A run, whose inputs may be texts; or a module, whose inputs are token ids and numbers.
        item: The input, or samples of the task, of which the first is shown.

    Raises:
        RunError: the input does not fit the model."""
    if isinstance(model, Run):
        return model.inspect(item)
    if not isinstance(model, Architecture):
        raise mistakes.not_a_model(model)
    if isinstance(item, Split):
        raise mistakes.samples_need_a_run()
    input_format = _format_of(model)
    return inspect_batch(model, input_format, typed_input(model, input_format, item), "input")


def _format_of(module: Architecture) -> InputFormat:
    """Returns the format of a module whose task is unknown: the text of a token is its number."""
    fields = tuple(
        FieldFormat(name=field.name, words=tuple(map(str, range(field.vocabulary))))
        if field.vocabulary is not None
        else FieldFormat(name=field.name, size=0 if field.type.feature is None else field.type.feature.constant)
        for field in module.program.inputs
    )
    points_from, points_at = pointing_fields(module, [field.name for field in fields])
    kind = Kind.POINTING if points_at else Kind.TAGGING if module.program.result.lengths else Kind.CLASSIFICATION
    return InputFormat(kind=kind, fields=fields, words=(), points_at=points_at, points_from=points_from)
