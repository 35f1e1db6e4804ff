"""The wording of errors about saved models and the hub."""

from collections.abc import Iterable
from pathlib import Path

from archlang.record.mistakes import RunError


class SavedModelError(RunError):
    """A saved model cannot be written, read or exchanged with a hub."""


# Writing


def not_a_model(value: object) -> SavedModelError:
    message = f"a {type(value).__name__} is not a model of archlang"
    return SavedModelError(message, "give a module of `archlang.load`, or a run of `archlang.load_run`")


def exists(folder: Path) -> SavedModelError:
    return SavedModelError(f"{folder} exists and holds other files", "choose a new folder; nothing was changed")


def not_written(path: Path, reason: str) -> SavedModelError:
    message = f"{path} cannot be written: {reason}"
    return SavedModelError(message, "free space or choose another folder; nothing was changed")


# Reading


def not_saved(folder: Path) -> SavedModelError:
    message = f"{folder} is neither a saved model nor a run folder"
    return SavedModelError(message, "name a folder that `archlang.save` or `archlang train` has written")


def statics_of_folder(folder: Path, names: Iterable[str]) -> SavedModelError:
    message = f"{folder} holds a trained model, whose settings are fixed: {', '.join(names)}"
    return SavedModelError(message, "leave them out, or load its .arch file")


def samples_need_a_run() -> SavedModelError:
    return SavedModelError("a module does not know the task of these samples", "pass the run of `archlang.load_run`")


# The hub


def hub_fails(name: str, reason: str) -> SavedModelError:
    return SavedModelError(f"the hub does not exchange `{name}`: {reason}", "see `hf auth login`, and the name")
