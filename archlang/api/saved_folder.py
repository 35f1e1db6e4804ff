"""The folder of a saved model: plain files that no step of reading executes.

manifest.json         the format, and the size and the SHA-256 digest of every other file
model.json            the model's name, its settings, its task, and the passes that were left out
graph.txt             the typed graph, from which the module is built
vocabulary.json       the fields and the words that the model reads and answers, if they are known
weights.safetensors   the weights
program/              the program as recipe.arch, and the files that it uses
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import safetensors.torch
import torch
from pydantic import BaseModel, Field, ValidationError
from torch import Tensor, nn

from archlang.api import mistakes
from archlang.backend.architecture import Architecture
from archlang.backend.runtime.initial_weights import weights_loaded_later
from archlang.compile import add_origin, build
from archlang.diagnostics import ArchlangError
from archlang.diagnostics.machine import machine_error
from archlang.files.folder import Folder
from archlang.files.mistakes import RefusedFile
from archlang.files.os_errors import os_errors_as, os_reason
from archlang.graph.graph import Graph, Region
from archlang.graph.text import print_graph
from archlang.plugins import NO_PLUGINS, Plugins
from archlang.record.checkpoint import stored_weights
from archlang.record.reading import RECIPE, explain, parse_stored_graph
from archlang.record.schemas import VOCABULARY, Digests, ExternRecord, FileModel, Statics, json_text
from archlang.runs.inputs import InputFormat
from archlang.source import Source, package
from archlang.types.statics import StaticValue  # noqa: F401  # pydantic resolves the name that `Statics` contains

MANIFEST, MODEL, GRAPH, WEIGHTS = "manifest.json", "model.json", "graph.txt", "weights.safetensors"
PROGRAM = "program"
FORMAT = 1
_PROGRAM_FILE = re.compile(rf"{PROGRAM}(/[^/\\:\0-\x1f\x7f]+)+\.arch")
_LARGEST_TEXT = 1 << 24
# Beside the weights themselves, a file of weights names them.
_LARGEST_HEADER = 1 << 20
_HEADER_OF_TENSOR = 1 << 12

Record = TypeVar("Record", bound=BaseModel)


class FileRecord(FileModel):
    """The size in bytes and the digest of a file."""

    size: int = Field(ge=0)
    sha256: str


class ManifestRecord(FileModel):
    """`manifest.json`."""

    format: int
    archlang: str
    files: dict[str, FileRecord]


class ModelRecord(FileModel):
    """`model.json`. `settings` are every setting of a run, or those that were passed with a program. `step` is that of
    the trained weights."""

    model: str
    settings: Statics
    without_passes: tuple[str, ...] = ()
    recipe: str | None = None
    task: ExternRecord | None = None
    step: int | None = None
    plugins: Digests = Field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A saved model that was read: its module in evaluation mode on the CPU."""

    folder: Path
    record: ModelRecord
    input_format: InputFormat | None
    module: Architecture


def is_saved(folder: Path) -> bool:
    """Returns whether a folder has the files of a saved model, complete or not."""
    return os.path.lexists(folder / MANIFEST) and os.path.lexists(folder / MODEL)


# Writing


def write_saved(
    folder: Path,
    module: Architecture,
    record: ModelRecord,
    graph: Graph,
    input_format: InputFormat | None,
    program: Mapping[str, str],
) -> None:
    """Writes a saved model; one that is there already is replaced. `program` has texts by name.

    Raises:
        SavedModelError: the folder holds other files, or cannot be written. Nothing is changed then."""
    if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and (is_saved(folder) or _is_empty(folder)))):
        raise mistakes.exists(folder)
    contents = {
        MODEL: json_text(record).encode(),
        GRAPH: print_graph(_without_places(graph)).encode(),
        WEIGHTS: safetensors.torch.save(stored_weights(module)),
        **{f"{PROGRAM}/{name}": text.encode() for name, text in program.items()},
    }
    if input_format is not None:
        contents[VOCABULARY] = json_text(input_format).encode()
    files = {
        name: FileRecord(size=len(content), sha256=hashlib.sha256(content).hexdigest())
        for name, content in sorted(contents.items())
    }
    manifest = ManifestRecord(format=FORMAT, archlang=package.VERSION, files=files)
    contents[MANIFEST] = json_text(manifest).encode()
    with (
        os_errors_as(mistakes.not_written, folder),
        Folder.create(folder.absolute().parent) as parent,
        parent.new_folder(folder.name) as unfinished,
    ):
        for name, content in contents.items():
            *parents, own_name = name.split("/")
            inner = unfinished.folder("/".join(parents), create=True) if parents else nullcontext(unfinished)
            with inner as home:
                home.write(own_name, content)


def _without_places(graph: Graph) -> Graph:
    """Returns a graph without the places of the program, which would name folders of this machine."""

    def stripped(region: Region) -> Region:
        nodes = (replace(node, span=None, regions=tuple(map(stripped, node.regions))) for node in region.nodes)
        return replace(region, nodes=tuple(nodes))

    instances = {path: replace(instance, span=None) for path, instance in graph.instances.items()}
    return replace(graph, region=stripped(graph.region), instances=instances)


def _is_empty(folder: Path) -> bool:
    with Folder.open(folder) as opened:
        return not opened.names()


# Reading


def read_saved(folder: Path, plugins: Iterable[str | Path] = ()) -> SavedModel:
    """Reads a saved model, and verifies every file before it is used. `plugins` are the Python files of the model's
    own blocks, which are then imported.

    Raises:
        SavedModelError: a file is missing, damaged, too large, a link, or not what the manifest says.
        PluginError: a plugin cannot be imported, or the model was saved with others."""
    if not is_saved(folder):
        raise mistakes.not_saved(folder)
    manifest = _parsed(folder, MANIFEST, _read(folder, MANIFEST, _LARGEST_TEXT), ManifestRecord)
    if manifest.format > FORMAT:
        raise mistakes.newer_format(folder, manifest.format)
    for name in manifest.files:
        if name not in (MODEL, GRAPH, VOCABULARY, WEIGHTS) and not _is_program_file(name):
            raise mistakes.damaged(folder / MANIFEST, f"a saved model has no file {name!r}")
    for name in (MODEL, GRAPH, WEIGHTS):
        if name not in manifest.files:
            raise mistakes.damaged(folder / MANIFEST, f"it does not name {name}")
    contents = {name: _verified(folder, name, file) for name, file in manifest.files.items() if name != WEIGHTS}
    record = _parsed(folder, MODEL, contents[MODEL], ModelRecord)
    input_format = _parsed(folder, VOCABULARY, contents[VOCABULARY], InputFormat) if VOCABULARY in contents else None
    graph = _graph(folder, contents[GRAPH])
    trusted = Plugins.read(plugins, folder)
    if graph.has_own_python:
        trusted.require_recorded(record.plugins, folder)
    if not trusted.files:
        # On torch's device without memory: the weights must fit before anything as large as they are is allocated.
        with torch.device("meta"):
            sizes = _built(folder, graph, record, NO_PLUGINS).state_dict()
        _check_size(folder, manifest.files[WEIGHTS].size, sizes)
    module = _built(folder, graph, record, trusted)
    _load_weights(folder, module, _verified(folder, WEIGHTS, manifest.files[WEIGHTS]))
    sources = [Source(str(folder / name), content.decode(errors="replace")) for name, content in contents.items()
               if _is_program_file(name)]  # fmt: skip
    main = next((source for source in sources if source.path == str(folder / PROGRAM / RECIPE)), None)
    if main is not None:
        add_origin(module, main, [source for source in sources if source is not main], record.settings, record.recipe)
    return SavedModel(folder, record, input_format, module.eval())


def file_names(folder: Path) -> tuple[str, ...]:
    """Returns the names of the files of a saved model, for exchange with a hub.

    Raises:
        SavedModelError: the folder is no saved model."""
    if not is_saved(folder):
        raise mistakes.not_saved(folder)
    return tuple(_parsed(folder, MANIFEST, _read(folder, MANIFEST, _LARGEST_TEXT), ManifestRecord).files)


def _is_program_file(name: str) -> bool:
    return _PROGRAM_FILE.fullmatch(name) is not None and not {"..", "."} & set(name.split("/"))


def _read(folder: Path, name: str, limit: int) -> bytes:
    """Returns the content of a file that is no link and is in no linked folder."""
    *parents, own_name = name.split("/")
    try:
        with (
            Folder.open(folder) as opened,
            opened.folder("/".join(parents)) if parents else nullcontext(opened) as inner,
        ):
            return inner.read(own_name, limit)
    except RefusedFile as error:
        raise mistakes.SavedModelError(error.message, error.remedy) from error
    except FileNotFoundError:
        raise mistakes.file_missing(folder, name) from None
    except (NotADirectoryError, IsADirectoryError) as error:
        raise mistakes.damaged(folder / name, os_reason(error)) from error
    except OSError as error:
        raise mistakes.not_read(folder / name, os_reason(error)) from error


def _verified(folder: Path, name: str, file: FileRecord) -> bytes:
    if name != WEIGHTS and file.size > _LARGEST_TEXT:
        raise mistakes.too_large(folder / name, file.size, _LARGEST_TEXT)
    content = _read(folder, name, file.size)
    if len(content) != file.size or hashlib.sha256(content).hexdigest() != file.sha256:
        raise mistakes.damaged(folder / name, f"it is not the file that {MANIFEST} describes")
    return content


def _parsed(folder: Path, name: str, content: bytes, model: type[Record]) -> Record:
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        raise mistakes.damaged(folder / name, explain(error)) from error


def _graph(folder: Path, content: bytes) -> Graph:
    try:
        return parse_stored_graph(content.decode())
    except ValueError as error:
        raise mistakes.damaged(folder / GRAPH, str(error).partition("\n")[0]) from error


def _built(folder: Path, graph: Graph, record: ModelRecord, plugins: Plugins) -> Architecture:
    try:
        with weights_loaded_later():
            return build(graph, plugins, without=record.without_passes)
    except ArchlangError:
        raise
    except Exception as error:  # a graph that no program has can break any rule of any later step
        if machine_error(error) is not None:
            raise
        reason = f"no module can be built: {type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise mistakes.damaged(folder / GRAPH, reason) from error


def _check_size(folder: Path, size: int, weights: Mapping[str, Tensor]) -> None:
    # Twice, as the weights may have been converted to float64.
    limit = _LARGEST_HEADER + sum(2 * value.numel() * value.element_size() for value in weights.values())
    limit += _HEADER_OF_TENSOR * len(weights)
    if size > limit:
        raise mistakes.too_large(folder / WEIGHTS, size, limit)
    least = sum(value.numel() for value in weights.values())  # of a byte or more each
    if size < least:
        raise mistakes.wrong_weights(folder / WEIGHTS, f"it has {size:,} bytes for {least:,} numbers")


def _load_weights(folder: Path, module: nn.Module, content: bytes) -> None:
    try:
        weights = safetensors.torch.load(content)
    except Exception as error:  # safetensors has its own error, of a module without types
        if machine_error(error) is not None:
            raise
        raise mistakes.damaged(folder / WEIGHTS, str(error)) from error
    types = {value.dtype for value in weights.values() if value.is_floating_point()}
    if len(types) == 1:
        module.to(types.pop())
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).partition("\n")[2].split())
        raise mistakes.wrong_weights(folder / WEIGHTS, reason) from error
