"""`push` and `pull`: saved models on the Hugging Face hub. The package is the extra `hub`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from archlang.api import mistakes
from archlang.api.run import Run
from archlang.api.saved_folder import MANIFEST, file_names, read_saved
from archlang.api.saving import save
from archlang.backend.architecture import Architecture
from archlang.diagnostics.machine import needs_extra
from archlang.source.cache_folder import cache_folder


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
