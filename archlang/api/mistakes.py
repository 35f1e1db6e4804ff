"""The wording of errors about saved models and the hub."""

from collections.abc import Iterable
from pathlib import Path

from archlang.diagnostics import ErrorWithRemedy

_ANOTHER_COPY = "get the folder again from where it was saved"


class SavedModelError(ErrorWithRemedy):
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


def file_missing(folder: Path, name: str) -> SavedModelError:
    return SavedModelError(f"{folder} has no {name}", _ANOTHER_COPY)


def damaged(path: Path, reason: str) -> SavedModelError:
    return SavedModelError(f"{path} is damaged: {reason}", _ANOTHER_COPY)


def not_read(path: Path, reason: str) -> SavedModelError:
    message = f"{path} cannot be read: {reason}"
    return SavedModelError(message, "check its owner, its permissions and the disk; nothing says that it is damaged")


def too_large(path: Path, size: int, limit: int) -> SavedModelError:
    message = f"{path} has {size:,} bytes, and a saved model has {limit:,} at most there"
    return SavedModelError(message, _ANOTHER_COPY)


def newer_format(folder: Path, version: int) -> SavedModelError:
    message = f"{folder} has the format {version} of a newer archlang"
    return SavedModelError(message, "update archlang")


def wrong_weights(path: Path, reason: str) -> SavedModelError:
    message = f"the weights in {path} do not fit the model: {reason}"
    return SavedModelError(message, f"load it with the version of archlang in its manifest.json, or {_ANOTHER_COPY}")


def statics_of_folder(folder: Path, names: Iterable[str]) -> SavedModelError:
    message = f"{folder} holds a trained model, whose settings are fixed: {', '.join(names)}"
    return SavedModelError(message, "leave them out, or load its .arch file")


def has_no(folder: Path, thing: str) -> SavedModelError:
    message = f"{folder} is a saved model and has no {thing}"
    return SavedModelError(message, "open the run folder")


def one_set_of_weights(folder: Path, checkpoint: str | int) -> SavedModelError:
    message = f"{folder} has one set of weights, and no checkpoint `{checkpoint}`"
    return SavedModelError(message, "leave out the checkpoint, or open the run folder")


def no_input_format(folder: Path) -> SavedModelError:
    message = f"{folder} was saved from a module, which knows neither its task nor the words of its tokens"
    return SavedModelError(message, "save the run (`archlang.save(archlang.load_run(…), …)`), or call the module")


def samples_need_a_run() -> SavedModelError:
    return SavedModelError("a module does not know the task of these samples", "pass the run of `archlang.load_run`")


# The hub


def hub_fails(name: str, reason: str) -> SavedModelError:
    return SavedModelError(f"the hub does not exchange `{name}`: {reason}", "see `hf auth login`, and the name")
