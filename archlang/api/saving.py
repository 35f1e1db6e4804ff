"""`save` and `load`: a module as a folder of plain files, and back; `push` and `pull`: such folders on a hub."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path
from types import ModuleType

from archlang.api import mistakes
from archlang.api.run import Run, load_module
from archlang.api.saved_folder import MANIFEST, ModelRecord, file_names, is_saved, read_saved, write_saved
from archlang.backend.architecture import Architecture
from archlang.compile import load as compile_file
from archlang.diagnostics.machine import needs_extra
from archlang.record.reading import GRAPH_AT_TEST, RECIPE
from archlang.record.run_folder import stored_files
from archlang.record.schemas import RUN
from archlang.source.cache_folder import cache_folder


def save(model: Architecture | Run, folder: str | Path) -> None:
    """Writes a module or a run as a folder that `load` reads: the program, the settings, the graph, the vocabulary and
    the weights, with their digests. No file is Python or a pickle. A saved model that is there already is replaced.

    Only a run has a vocabulary, so that `load_run(folder).predict(…)` works without the task's data.

    Raises:
        SavedModelError: it is no model, or the folder holds other files or cannot be written."""
    module = model.module if isinstance(model, Run) else model
    if not isinstance(module, Architecture):
        raise mistakes.not_a_model(model)
    origin = module.program.origin
    assert origin is not None, "`compile.build` has recorded it"
    program = {}
    if origin.program is not None:
        program = {RECIPE: origin.program.text, **stored_files(origin.program, origin.used)}
    record = ModelRecord(
        model=module.program.graph.name,
        settings=dict(origin.settings),
        without_passes=origin.without_passes,
        recipe=model.recipe if isinstance(model, Run) else None,
        task=model.task_record if isinstance(model, Run) else None,
        step=model.step if isinstance(model, Run) else None,
        plugins=origin.plugins.digests(),
    )
    input_format = model.input_format if isinstance(model, Run) else None
    write_saved(Path(folder), module, record, origin.graph, input_format, program)


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
    if not (is_saved(folder) or (folder / RUN).exists() or (folder / GRAPH_AT_TEST).exists()):
        raise mistakes.not_saved(folder)
    return load_module(folder, plugins=plugins)


def push(
    model: Architecture | Run | str | Path, name: str, *, private: bool = False, plugins: Iterable[str | Path] = ()
) -> str:
    """Uploads a module, a run or the folder of a saved model to the repository `name`, such as `me/ndr`, which is
    created if it does not exist. Returns its address.

    Only the files that the manifest names are uploaded. `plugins` is that of `load`, for a folder whose model has
    Python of your own; its code is not uploaded.

    Raises:
        RunError: `huggingface_hub` is not installed.
        SavedModelError: the hub refuses, or the folder is no saved model."""
    hub = _hub()
    with tempfile.TemporaryDirectory() as temporary:
        if isinstance(model, str | Path):
            folder = Path(model)
            read_saved(folder, plugins)  # what is damaged is not shared
        else:
            folder = Path(temporary) / "model"
            save(model, folder)
        try:
            api = hub.HfApi()
            api.create_repo(name, private=private, exist_ok=True)
            files = [MANIFEST, *file_names(folder)]
            message = "archlang model"
            return str(api.upload_folder(
                repo_id=name, folder_path=str(folder), allow_patterns=files, commit_message=message))  # fmt: skip
        except Exception as error:  # of the network and of the service, of many kinds
            raise mistakes.hub_fails(name, _first_line(error)) from error


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
        patterns = ["*.json", "*.txt", "*.safetensors", "program/*.arch"]
        hub.snapshot_download(name, revision=revision, local_dir=str(target), allow_patterns=patterns)
    except Exception as error:  # of the network and of the service, of many kinds
        raise mistakes.hub_fails(name, _first_line(error)) from error
    file_names(target)
    return target


def _hub() -> ModuleType:
    with needs_extra("hub"):
        import huggingface_hub
    return huggingface_hub


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
