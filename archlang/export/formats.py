"""The formats of exports, by the suffixes of their files; in those of torch.export and of ONNX, loops are loops."""

import importlib.util
import io
import logging
import operator
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, suppress
from pathlib import Path

import torch
from torch import Tensor, fx, nn
from torch.export import Dim, ExportedProgram

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.inputs import InputField
from archlang.backend.runtime.loops import DEPTH
from archlang.backend.runtime.masks import code_inputs
from archlang.disk.os_errors import os_errors_as
from archlang.export import mistakes
from archlang.export.places import first_node, place_of, place_of_field, reason_of, refused_node, restriction_stacks
from archlang.export.plain.file import export_plain
from archlang.graph.operations import Gradient

# Sizes of the traced batch. They differ, so that torch takes none for another.
_BATCH = 3
_LENGTHS = (7, 5, 11, 13)


class _Model(nn.Module):
    """A module that takes the fields, then the lengths of some of them, and returns the result, and for a model that
    halts the steps of each sample."""

    def __init__(self, module: Architecture) -> None:
        super().__init__()
        self.model = module

    def forward(self, *values: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        module = self.model
        program = module.program
        fields, lengths = values[: len(program.inputs)], values[len(program.inputs) :]
        names = (field.name for field in fields_with_lengths(module))
        inputs = code_inputs(program, fields, dict(zip(names, lengths, strict=True)))
        results = program.code.function(module, *inputs)
        if not program.code.extras:
            result: Tensor = results
            return result
        result, *extras = results
        return (result, extras[program.code.extras.index(DEPTH)]) if DEPTH in program.code.extras else result


def fields_with_lengths(module: Architecture) -> list[InputField]:
    """Returns the fields whose lengths an exported model takes: the first of each length."""
    first: dict[object, InputField] = {}
    for field in module.program.inputs:
        if field.length is not None:
            first.setdefault(field.length, field)
    return list(first.values())


def input_names(module: Architecture) -> list[str]:
    """Returns the names of the inputs of an exported model: its fields, then the lengths."""
    lengths = [f"{field.name}_lengths" for field in fields_with_lengths(module)]
    return [*module.program.fields, *lengths]


def axis_names(module: Architecture) -> list[dict[int, str]]:
    """Returns the names of the axes of any size, for each input of an exported model: those of the program, and
    `batch`."""
    symbols = [{axis: s for axis, s in enumerate(f.sizes, 1) if isinstance(s, str)} for f in module.program.inputs]
    batch = "batch_" if any("batch" in names.values() for names in symbols) else "batch"
    return [{0: batch, **names} for names in (*symbols, *({} for _ in fields_with_lengths(module)))]


def output_names(module: Architecture) -> list[str]:
    """Returns the names of the outputs of an exported model."""
    return ["result", "steps"] if DEPTH in module.program.code.extras else ["result"]


def trace(module: Architecture) -> ExportedProgram:
    """Returns the program of a module in evaluation mode. The batch can have any size, and each length 2 or more:
    torch compiles a length of 1 as a constant.

    Raises:
        ExportError: torch cannot export the model."""
    model = module.program.graph.name
    for gradient in module.program.graph.region.walk():
        if isinstance(gradient.operation, Gradient):
            raise mistakes.not_traced(
                *place_of(module, gradient), "torch.export writes no gradients that a model computes"
            )
    symbols = sorted({str(size) for field in module.program.inputs for size in field.sizes if isinstance(size, str)})
    sizes = dict(zip(symbols, _LENGTHS, strict=False))
    for field in module.program.inputs:
        if not field.is_tensor or any(size not in sizes and not isinstance(size, int) for size in field.sizes):
            raise mistakes.field_not_exportable(place_of_field(module, field.name), model, field.name, str(field.type))
    names = axis_names(module)
    dims = {symbol: Dim(f"length_{symbol}", min=2) for symbol in symbols} | {names[0][0]: Dim("batch", min=1)}
    shapes = tuple({axis: dims[name] for axis, name in each.items()} for each in names)
    values = []
    for field in module.program.inputs:
        shape = [_BATCH, *(sizes[size] if isinstance(size, str) else int(str(size)) for size in field.sizes)]
        values.append(torch.zeros(shape, dtype=torch.int64) if field.type.name == "tokens" else torch.randn(shape))
    for field in fields_with_lengths(module):
        size = field.sizes[0]
        values.append(torch.full((_BATCH,), sizes[size] if isinstance(size, str) else int(str(size))))

    def exported() -> ExportedProgram:
        # torch prints what it has traced when it fails.
        with torch.no_grad(), warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            return torch.export.export(_Model(module.eval()), tuple(values), dynamic_shapes=(shapes,), strict=False)

    is_training = module.training
    try:
        return exported()
    except Exception as error:  # whatever torch raises
        node = refused_node(module, error)
        if node is None:
            with restriction_stacks() as stacks, suppress(Exception):
                exported()
            node = first_node(module, stacks)
        raise mistakes.not_traced(*place_of(module, node), reason_of(error)) from error
    finally:
        module.train(is_training)


def export_pt2(module: Architecture, path: Path) -> list[Path]:
    """Writes a module as a program of torch.export. Returns the files that it wrote.

        program = torch.export.load("model.pt2").module()
        with torch.no_grad():
            logits = program(tokens, lengths)

    The program takes the fields, then the lengths of each, Int64[b]; a model that halts also returns the steps of each
    sample, [b].

    Raises:
        ExportError: torch cannot export the model."""
    program = trace(module)
    _write_sums_of_lengths_by_two(program.graph_module)
    torch.export.save(program, path)
    return [path]


def _write_sums_of_lengths_by_two(traced: nn.Module) -> None:
    """Adds lengths two by two, as torch does not serialize its sum of several."""
    for part in (each for each in traced.modules() if isinstance(each, fx.GraphModule)):
        for node in part.graph.find_nodes(op="call_function", target=torch.sym_sum):
            first, *others = node.args[0]
            with part.graph.inserting_before(node):
                for other in others:
                    values = [each.meta["val"] if isinstance(each, fx.Node) else each for each in (first, other)]
                    first = part.graph.call_function(operator.add, (first, other))
                    first.meta["val"] = values[0] + values[1]
            node.replace_all_uses_with(first)
            part.graph.erase_node(node)


def export_onnx(module: Architecture, path: Path) -> list[Path]:
    """Writes a module as a graph of ONNX. Returns the files that it wrote.

        session = onnxruntime.InferenceSession("model.onnx")
        (logits,) = session.run(["result"], {"x": tokens, "x_lengths": lengths})

    Its inputs are the fields and their lengths, its outputs `result`, and `steps` for a model that halts.

    Raises:
        ExportError: the packages of the extra `export` are missing, or torch cannot export the model."""
    if missing := [name for name in ("onnx", "onnxscript") if importlib.util.find_spec(name) is None]:
        raise mistakes.packages_missing(missing)
    program = trace(module)
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    try:
        logger.setLevel(logging.ERROR)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = torch.onnx.export(
                program, dynamo=True, verbose=False, input_names=input_names(module), output_names=output_names(module),
                dynamic_shapes=(tuple(axis_names(module)),),
            )  # fmt: skip
    except Exception as error:  # whatever torch raises
        place = place_of(module, refused_node(module, error))
        raise mistakes.not_translated(*place, reason_of(error)) from error
    finally:
        logger.setLevel(level)
    assert graph is not None
    graph.save(path, external_data=False)
    return [path]


# Each writes a module to a path, and returns the files that it wrote.
FORMATS: Mapping[str, Callable[[Architecture, Path], list[Path]]] = {
    ".pt2": export_pt2, ".onnx": export_onnx, ".py": export_plain,
}  # fmt: skip
_BESIDE: Mapping[str, tuple[str, ...]] = {".py": (".pt",)}
"""the suffixes of further files that a format writes beside its own"""
_IMPORTED = sys.stdlib_module_names | {"torch", "numpy"}
"""the modules that an exported Python file of the same name would hide from itself and from its neighbours"""


def export(module: Architecture, path: Path, *, overwrite: bool = False, is_stored: bool = False) -> list[Path]:
    """Writes a module in the format of the path's suffix. Returns the files that it wrote. Python that is written for
    a stored graph, which may be a stranger's, is not run.

    Raises:
        ExportError: no format has this suffix, a file exists and `overwrite` is false, the model has a block that the
            format cannot express, or a file cannot be written."""
    check_target(path, overwrite=overwrite)
    with os_errors_as(mistakes.not_written, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".py":
            return export_plain(module, path, runs=not is_stored)
        return FORMATS[path.suffix](module, path)


def check_target(path: Path, *, overwrite: bool) -> None:
    """Checks the path of an export before the model is built.

    Raises:
        ExportError: no format has its suffix, a Python file has the name of a module that torch imports, or a file
            exists and `overwrite` is false."""
    if path.suffix not in FORMATS:
        raise mistakes.unknown_format(path, FORMATS)
    if path.suffix == ".py" and path.stem in _IMPORTED:
        raise mistakes.hides_a_module(path)
    for file in (path, *(path.with_suffix(suffix) for suffix in _BESIDE.get(path.suffix, ()))):
        if file.is_dir() or (file.exists() and not overwrite):
            raise mistakes.file_exists(file)
