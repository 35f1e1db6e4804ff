"""`save` and `load`: a module as a folder of plain files, and back; `push` and `pull`: such folders on a hub."""

import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from archlang.api import mistakes
from archlang.api.run import Run, load_module, load_run
from archlang.backend.architecture import Architecture
from archlang.compile import load as compile_file
from archlang.disk import package
from archlang.disk.cache_folder import cache_folder
from archlang.disk.folder import Folder
from archlang.disk.os_errors import os_errors_as
from archlang.errors.machine import first_line, needs_extra
from archlang.graph.graph import Graph, Region
from archlang.graph.text import print_graph
from archlang.train.record import reading, schemas
from archlang.train.record.checkpoint import write_saved
from archlang.train.record.reading import read_text
from archlang.train.record.run_folder import stored_files


def save(model: Architecture | Run, folder: str | Path) -> None:
    """Writes a module or a run as a folder that `load` reads: a run folder without curves, with one checkpoint that has
    weights alone, and a manifest with the digest of every file. No file is Python or a pickle. A saved model that is
    there already is replaced.

    Only a run has a vocabulary, so that `load_run(folder).predict(…)` works without the task's data.

    Raises:
        SavedModelError: it is no model, or the folder holds other files or cannot be written."""
    module = model.module if isinstance(model, Run) else model
    if not isinstance(module, Architecture):
        raise mistakes.not_a_model(type(model).__name__)
    origin = module.program.origin
    assert origin is not None, "`compile.build` has recorded it"
    if isinstance(model, Run):
        write_model(module, Path(folder), _texts_of_run(model, origin.plugins.digests()), model.step)
        return
    record = schemas.ModelRecord(
        model=module.program.graph.name, settings=dict(origin.settings), plugins=origin.plugins.digests(),
        without_passes=origin.without_passes,
    )  # fmt: skip
    write_model(module, Path(folder), {schemas.RUN: schemas.json_text(record)})


def write_model(module: Architecture, folder: Path, texts: Mapping[str, str], step: int = 0) -> None:
    """Writes a module as a saved model, with these files besides its program, its graph and its weights.

    Raises:
        SavedModelError: the folder holds other files or cannot be written."""
    origin = module.program.origin
    assert origin is not None, "as above"
    if origin.program is not None:
        texts = {reading.RECIPE: origin.program.text, **stored_files(origin.program, origin.used), **texts}
    texts = {**texts, reading.GRAPH_AT_TEST: print_graph(without_places(origin.graph))}
    _require_replaceable(folder)
    with (
        os_errors_as(mistakes.not_written, folder),
        Folder.create(folder.absolute().parent) as parent,
        parent.new_folder(folder.name) as unfinished,
    ):
        for name, text in texts.items():
            with unfinished.holding(name, create=True) as (home, own_name):
                home.write(own_name, text)
        files = {}
        for name in sorted([*texts, *write_saved(unfinished, module, step)]):
            with unfinished.holding(name) as (home, own_name):
                files[name] = schemas.FileRecord(size=home.size(own_name), sha256=home.sha256(own_name))
        manifest = schemas.SavedRecord(format=reading.FORMAT, archlang=package.VERSION, files=files)
        unfinished.write(schemas.MANIFEST, schemas.json_text(manifest))


def _texts_of_run(run: Run, plugins: Mapping[str, str]) -> dict[str, str]:
    record = reading.read_record(run.folder, schemas.RUN, schemas.RunRecord)
    texts = {
        name: read_text(run.folder, name) for name in (schemas.DATA, schemas.RESULTS) if reading.has(run.folder, name)
    }
    if reading.has(run.folder, reading.GRAPH):
        texts[reading.GRAPH] = print_graph(without_places(reading.read_graph(run.folder, reading.GRAPH)))
    record = record.model_copy(update={"plugins": plugins})
    return {**texts, schemas.RUN: schemas.json_text(record), schemas.VOCABULARY: schemas.json_text(run.input_format)}


def without_places(graph: Graph) -> Graph:
    """Returns a graph without the places of the program, which would name folders of this machine."""

    def stripped(region: Region) -> Region:
        nodes = (replace(node, span=None, regions=tuple(map(stripped, node.regions))) for node in region.nodes)
        return replace(region, nodes=tuple(nodes))

    instances = {path: replace(instance, span=None) for path, instance in graph.instances.items()}
    return replace(graph, region=stripped(graph.region), instances=instances)


def _require_replaceable(folder: Path) -> None:
    if folder.is_symlink() or (
        folder.exists() and not (folder.is_dir() and (reading.is_saved(folder) or _is_empty(folder)))
    ):
        raise mistakes.exists(folder)


def _is_empty(folder: Path) -> bool:
    with Folder.open(folder) as opened:
        return not opened.names()


def load(
    path: str | Path,
    model: str | None = None,
    recipe: str | None = None,
    *,
    plugins: Iterable[str | Path] = (),
    without_passes: Collection[str] = (),
    allow: Iterable[str | Path] = (),
    **statics: object,
) -> Architecture:
    """Returns the module of a program, of a saved model, or of a run folder.

    Of a program, it is the model that `recipe` trains; else the one called `model`; else the one that the file's first
    recipe trains; else the file's first. `statics` are the model's own (`d=128`, `attend="attention"`), and without a
    recipe the sizes that a task would give (`vocab=21, classes=10`). `without_passes` leaves out passes by the names
    that `archlang show --passes` prints. A program may use files of its own folder and below, of the library, and of
    the folders of `allow`.

        module = load("gut.arch", "gut", vocab=21, classes=10, depth=6)
        logits = module(tokens, lengths=lengths)

    Of a folder, it is the trained module, in evaluation mode on the CPU; a run folder has its selected weights, and
    `load_run` gives more of it. `plugins` are Python files with blocks of the user's own, which are then run.

    Raises:
        ProgramError: the program has mistakes.
        BuildError: a size is unknown, or a block's class is missing or its constructor raises.
        PluginError: a block's class is in no plugin, or its plugin cannot be imported.
        SavedModelError, RunError: the folder is damaged, or is neither a saved model nor a run folder."""
    folder = Path(path)
    if not folder.is_dir():
        return compile_file(path, model, recipe, plugins=plugins, without_passes=without_passes, allow=allow, **statics)
    given = [name for name, value in (("model", model), ("recipe", recipe)) if value is not None]
    given += ["without_passes"] * bool(without_passes) + list(statics)
    if given:
        raise mistakes.statics_of_folder(folder, given)
    _require_model(folder)
    return load_module(folder, plugins=plugins)


def push(
    model: Architecture | Run | str | Path, name: str, *, private: bool = False, plugins: Iterable[str | Path] = ()
) -> str:
    """Uploads a module, a run or the folder of a run or a saved model to the repository `name`, such as `me/ndr`, which
    is created if it does not exist. Returns its address.

    Only the files that `save` writes are uploaded. `plugins` is that of `load`, for a folder whose model has
    Python of your own; its code is not uploaded.

    Raises:
        RunError: `huggingface_hub` is not installed.
        SavedModelError: the hub refuses, or the folder has no model."""
    hub = _hub()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        if isinstance(model, str | Path):
            _require_model(Path(model))
            is_run = reading.read_record(Path(model), schemas.RUN, schemas.ModelRecord).task is not None
            model = load_run(model, plugins=plugins) if is_run else load(model, plugins=plugins)
        save(model, folder)
        try:
            api = hub.HfApi()
            api.create_repo(name, private=private, exist_ok=True)
            files = [schemas.MANIFEST, *reading.require_intact(folder)]
            message = "archlang model"
            return str(api.upload_folder(
                repo_id=name, folder_path=str(folder), allow_patterns=files, commit_message=message))  # fmt: skip
        except Exception as error:  # of the network and of the service, of many kinds
            raise mistakes.hub_fails(name, first_line(error)) from error


def pull(name: str, *, revision: str | None = None, folder: str | Path | None = None) -> Path:
    """Downloads the saved model of a repository, and returns its folder, which `load` and `load_run` open.

        module = archlang.load(archlang.pull("me/ndr"))

    Args:
        revision: A branch, a tag or a commit.
        folder: Where to. By default a folder of the cache, which is updated.

    Raises:
        RunError: `huggingface_hub` is not installed.
        SavedModelError: the hub has no such repository, or it is no saved model."""
    hub = _hub()
    target = Path(folder) if folder is not None else cache_folder() / "hub" / name.replace("/", "--")
    try:
        # `local_dir` has files where the hub's own cache has links, which `load` does not follow.
        patterns = ["*.json", "*.txt", "*.safetensors", "*.arch"]
        hub.snapshot_download(name, revision=revision, local_dir=str(target), allow_patterns=patterns)
    except Exception as error:  # of the network and of the service, of many kinds
        raise mistakes.hub_fails(name, first_line(error)) from error
    _require_model(target)
    return target


def _require_model(folder: Path) -> None:
    if not (reading.is_saved(folder) or (folder / schemas.RUN).exists() or (folder / reading.GRAPH_AT_TEST).exists()):
        raise mistakes.not_saved(folder)


def _hub() -> ModuleType:
    with needs_extra("hub"):
        import huggingface_hub
    return huggingface_hub
