"""Writes a model as one file of plain torch code, and its weights beside it."""

import ast
import copy
import hashlib
import io
import math
import re
import sys
import textwrap
import types
from collections import defaultdict
from dataclasses import replace
from itertools import chain, count
from pathlib import Path

import torch
from torch import Tensor, nn

from archlang.backend.architecture import Architecture
from archlang.backend.lower.names import OUTER, is_at
from archlang.disk.folder import write_atomically
from archlang.errors.visible import visible_lines
from archlang.export import mistakes
from archlang.export.places import definition_of, place_of_model
from archlang.export.plain.blocks import Collection, target_of
from archlang.export.plain.model_class import RESERVED, Forward, class_of, constructor, unused_name
from archlang.export.plain.sources import Import, NotPlainError, QualifiedName, global_names
from archlang.export.plain.text import WIDTH, is_text_of, print_statements
from archlang.graph.graph import Graph, Region
from archlang.graph.operations import Call
from archlang.graph.prune import without_losses
from archlang.plugins import NO_PLUGINS

_POSITIONS = 7  # of the example in the file
_TOLERANCE = 1e-9  # in double precision


def export_plain(module: Architecture, path: Path, *, runs: bool = True) -> list[Path]:
    """Writes a module as a Python file that needs only torch, and its weights as a file of the same name with the
    suffix .pt. Returns both paths. If `runs`, runs the written code and compares its numbers with the module's.

    Raises:
        ExportError: a block cannot be written as plain torch code.
        OSError: a file cannot be written."""
    text = plain_text(module)
    if runs:
        _check_equal(module, text)
    weights = path.with_suffix(".pt")
    buffer = io.BytesIO()
    torch.save({name: value.detach().cpu().contiguous() for name, value in plain_weights(module).items()}, buffer)
    write_atomically(weights, buffer.getvalue())
    write_atomically(path, text)
    return [path, weights]


def plain_text(module: Architecture) -> str:
    """Returns a model as Python that needs only torch. Its parameters have the names of the module's.

    Raises:
        ExportError: a block cannot be written as plain torch code."""
    graph = _with_modules(module)
    classes = [class_of(instance.python) for instance in graph.instances.values()]
    try:
        forward = Forward(graph)
        collection = Collection([*classes, *forward.helpers])
    except NotPlainError as error:
        raise _not_plain(module, graph, error) from error
    names = _file_names(collection, forward)
    taken = {*RESERVED, *names.values(), *(target.alias for target in collection.imports()), "Path"}
    title = _class_name(graph.name, taken)
    definitions: list[ast.stmt] = []
    for name in collection.in_order():
        definition = collection.definitions[name]
        for node in global_names(definition):
            target = target_of(node)
            if isinstance(target, QualifiedName):
                node.id = names[target]
        if isinstance(definition, ast.FunctionDef | ast.ClassDef):
            definition.name = names[name]
        definitions.append(definition)
    base = ast.parse("nn.Module", mode="eval").body
    has_outer = any(OUTER in ast.unparse(body) for body in forward.bodies)
    methods: list[ast.stmt] = [constructor(graph, names, has_outer), forward.function]
    definitions += [*forward.bodies, ast.ClassDef(title, [base], [], methods, [])]
    definitions += _main(module, title)
    docstring = ast.Expr(ast.Constant(visible_lines(_docstring(module, title))))
    parts: list[list[ast.stmt]] = [[docstring], *_imports(collection), definitions]
    text = "\n".join(map(print_statements, parts[:-1]))
    for own in definitions:
        text += ("\n" if isinstance(own, ast.Assign | ast.AnnAssign) else "\n\n") + print_statements([own])
    # The names and the texts in it may be a stranger's, and the file is run here or elsewhere.
    if not is_text_of(text, [statement for part in parts for statement in part]):
        raise mistakes.not_equal(graph.name, place_of_model(module), "it has other statements")
    return text


def plain_weights(module: Architecture) -> dict[str, Tensor]:
    """Returns the state of a module without the weights that only auxiliary losses need."""
    graph = module.program.graph
    needed = without_losses(graph).instances
    unneeded = [path for path in graph.instances if path not in needed]
    state = module.state_dict()
    return {name: value for name, value in state.items() if not any(is_at(name, path) for path in unneeded)}


# Blocks


def _with_modules(module: Architecture) -> Graph:
    """The graph of a module without auxiliary losses, with the names by which the classes of plugins are imported."""
    graph, origin = module.program.graph, module.program.origin
    plugins = NO_PLUGINS if origin is None else origin.plugins
    instances = {
        path: replace(instance, python=plugins.qualified(instance.python)) for path, instance in graph.instances.items()
    }
    return without_losses(replace(graph, instances=instances, region=_without_products(graph.region)))


def _without_products(region: Region) -> Region:
    """A region in which blocks apply their own linear maps, also where these could be joined or hoisted."""
    nodes = (
        replace(node, inputs=node.arguments, operation=replace(node.operation, products=()))
        if isinstance(node.operation, Call)
        else node
        for node in region.nodes
    )
    return replace(region, nodes=tuple(node.with_bodies(_without_products) for node in nodes))


def _not_plain(module: Architecture, graph: Graph, error: NotPlainError) -> mistakes.ExportError:
    """The error for the first block whose sources cannot be plain."""
    remedy = "replace the block, or export the model to another format"
    for instance in graph.instances.values():
        try:
            Collection([class_of(instance.python)])
        except NotPlainError as own:
            return mistakes.not_exportable(instance.block, instance.span, str(own), remedy)
    return mistakes.not_exportable(graph.name, place_of_model(module), str(error), remedy)


def _file_names(collection: Collection, forward: Forward) -> dict[QualifiedName, str]:
    """The names of the definitions in the file; each is unique, and no import has it. `forward` calls the helpers by
    their own names."""
    taken = {target.alias for target in collection.imports()} | {"Tensor", "Path", "torch", "nn", "load"}
    taken |= {body.name for body in forward.bodies}
    names: dict[QualifiedName, str] = {}
    for name in (*forward.helpers, *collection.in_order()):
        if name not in names:
            candidates = chain([name.name], (f"{name.name}{number}" for number in count(2)))
            names[name] = next(candidate for candidate in candidates if candidate not in taken)
            taken.add(names[name])
    return names


def _class_name(model: str, taken: set[str]) -> str:
    name = "".join(word[:1].upper() + word[1:] for word in re.split(r"_+", model) if word)
    name = name if name.isidentifier() else f"Model{name}"
    return unused_name(f"{name}Model", taken) if name in taken else name


# Text


def _docstring(module: Architecture, title: str) -> str:
    """The docstring of the file: the documentation and the text of the model in its program."""
    name = module.program.graph.name
    origin = module.program.origin
    lines = [f"The model `{name}` in plain torch code, written by archlang.", ""]
    lines += [f"    model = load()  # {title}, with the weights of the file beside this one", ""]
    definition = definition_of(module)
    if definition is not None:
        lines += [*definition.documentation, *[""] * bool(definition.documentation)]
    settings = {} if origin is None else origin.settings
    if origin is not None and origin.recipe is not None and origin.program is not None:
        lines += [f"Its recipe is `{origin.recipe}` in {_file_name(origin.program.path)}.", ""]
    statics = [f"{key} = {value}" for key, value in settings.items() if key.startswith("model.")]
    if statics:
        lines += [*textwrap.wrap(f"Settings: {', '.join(statics)}.", WIDTH), ""]
    if definition is not None:
        lines += [f"The model in {_file_name(definition.span.source.path)}:", ""]
        program = definition.span.text.splitlines()
        indent = "" if max(map(len, program)) > WIDTH - 4 else "    "
        lines += [f"{indent}{line}".rstrip() for line in program]
    while not lines[-1]:
        lines.pop()
    return "\n".join([*lines, ""])


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _imports(collection: Collection) -> list[list[ast.stmt]]:
    """The imports of the language, of the standard library, and those of torch."""
    needed = collection.imports() | {Import("torch", "", "torch"), Import("torch", "Tensor", "Tensor")}
    needed |= {Import("torch", "nn", "nn"), Import("pathlib", "Path", "Path")}
    merged: dict[str, list[str]] = defaultdict(list)
    lines = [target.text for target in needed if not target.name]
    # As ruff sorts: constants, classes, functions.
    for target in sorted(needed, key=lambda own: (own.name[:1].islower(), not own.name.isupper(), own.name)):
        if target.name:
            merged[target.module].append(target.text.partition(" import ")[2])
    lines += [f"from {module} import {', '.join(own)}" for module, own in merged.items()]
    lines.sort(key=lambda line: (line.startswith("from"), line.split()[1]))
    of_torch = [line.split()[1].partition(".")[0] == "torch" for line in lines]
    groups = [
        [line for line, own in zip(lines, of_torch, strict=True) if own == is_torch] for is_torch in (False, True)
    ]
    return [ast.parse("\n".join(group)).body for group in (["from __future__ import annotations"], *groups)]


def _main(module: Architecture, title: str) -> list[ast.stmt]:
    """The function that loads the weights, and an example."""
    dtype = next((value.dtype for value in module.state_dict().values() if value.is_floating_point()), torch.float32)
    lines = [
        f'def load(weights: str | Path = Path(__file__).with_suffix(".pt")) -> {title}:',
        '    """Returns the model with its weights, in evaluation mode."""',
        f"    model = {title}(){f'.to({dtype})' if dtype != torch.float32 else ''}",
        '    model.load_state_dict(torch.load(weights, weights_only=True, map_location="cpu"))',
        "    return model.eval()",
        'if __name__ == "__main__":',
        "    with torch.no_grad():",
        f"        print(load()({', '.join(map(_literal, example(module)))}))",
    ]
    return ast.parse("\n".join(lines)).body


def _literal(value: Tensor) -> str:
    if value.is_floating_point():
        return f"torch.zeros({', '.join(map(str, value.shape))})"
    return f"torch.tensor({value.tolist()})"


def example(module: Architecture) -> list[Tensor]:
    """Returns a small input of a module, without padding: the fields for one sample."""
    sizes: dict[str, int] = {}
    values = []
    for field in module.program.inputs:
        counts = [
            size if isinstance(size, int) else sizes.setdefault(str(size), _POSITIONS - len(sizes))
            for size in field.sizes
        ]
        if field.vocabulary is not None:
            tokens = torch.arange(torch.Size(counts).numel()) * 3 + 1
            values.append((tokens % field.vocabulary).view(1, *counts))
        else:
            values.append(torch.zeros(1, *counts))
    return values


# Check


def run_text(text: str) -> types.ModuleType:
    """Runs the text of a plain file as a module."""
    name = f"plain_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    plain = types.ModuleType(name)
    plain.__dict__["__file__"] = f"{name}.py"
    sys.modules[name] = plain  # dataclasses look their module up
    try:
        exec(compile(text, f"<{name}>", "exec"), plain.__dict__)
    finally:
        del sys.modules[name]
    return plain


def plain_module(module: Architecture, text: str) -> nn.Module:
    """Returns the model of a plain file's text, with the weights and the dtype of a module.

    Raises:
        RuntimeError: it has other weights."""
    plain = run_text(text)
    (model,) = (
        value
        for value in vars(plain).values()
        if isinstance(value, type) and value.__name__ == plain.load.__annotations__["return"]
    )
    exported = model()
    assert isinstance(exported, nn.Module)
    first = next(module.parameters(), None)
    if first is not None:
        exported.to(first.dtype)  # also what is not among the weights, such as a constant
    weights = plain_weights(module)
    for name, value in module.named_parameters():
        if name in weights:
            exported.get_parameter(name).data = value.detach().clone()
    exported.load_state_dict(weights)
    return exported.train(module.training)


def _check_equal(module: Architecture, text: str) -> None:
    """Checks that the text gives the numbers of a module for the example, in double precision.

    Raises:
        ExportError: it does not."""
    name, place = module.program.graph.name, place_of_model(module)
    own = copy.deepcopy(module).double().eval()
    inputs = [value.double() if value.is_floating_point() else value for value in example(module)]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        try:
            plain = plain_module(own, text).double()
            torch.manual_seed(0)
            expected = own(*inputs)
            torch.manual_seed(0)
            result = plain(*inputs)
        except Exception as error:  # whatever the written code does
            raise mistakes.not_equal(name, place, f"it raises {type(error).__name__}: {error}") from error
    difference = float((result - expected).abs().max()) if result.shape == expected.shape else math.inf
    if not difference <= _TOLERANCE * max(1.0, float(expected.abs().max())):
        raise mistakes.not_equal(name, place, f"its results differ by {difference:.1e}")
