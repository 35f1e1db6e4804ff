"""The content of a checkpoint's files, which a stranger may have written: nothing in it is run or trusted."""

import pickle
import zipfile
from pathlib import Path
from typing import BinaryIO

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from archlang.diagnostics.machine import is_out_of_memory
from archlang.record.schemas import CheckpointState

_FIRST_BYTES = b"PK\x03\x04"


def stored_weights(module: nn.Module) -> dict[str, Tensor]:
    """Returns the weights of a module as a file of safetensors holds them. Those that share memory, as tied layers in a
    block of the user's own, are copied: the format has no other way to say so."""
    weights: dict[str, Tensor] = {}
    memory: set[int] = set()
    for name, value in module.state_dict().items():
        weight = value.detach().cpu().contiguous()
        place = weight.untyped_storage().data_ptr()
        weights[name] = weight.clone() if place in memory else weight
        memory.add(place)
    return weights


def load_weights(path: str | Path) -> dict[str, Tensor]:
    """Returns the weights of a file.

    Raises:
        ValueError: it is not the file of safetensors that its header describes."""
    try:
        return safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, KeyError, TypeError) as error:
        if is_out_of_memory(error):
            raise
        raise ValueError(str(error)) from error


def load_state(file: BinaryIO) -> CheckpointState:
    """Returns the state of an open file. Its pickle may hold tensors and builtins alone.

    Raises:
        ValueError: it holds something else, or is damaged."""
    _check_archive(file)
    try:
        stored = torch.load(file, weights_only=True, map_location="cpu")
    except pickle.UnpicklingError as error:
        # torch's own message advises to run the file.
        raise ValueError("it holds more than tensors, numbers and text") from error
    except (EOFError, KeyError, TypeError, AttributeError, IndexError, RuntimeError, RecursionError) as error:
        if is_out_of_memory(error):
            raise
        raise ValueError(_first_line(error)) from error
    return CheckpointState.model_validate(stored)


def _check_archive(file: BinaryIO) -> None:
    """Requires an archive whose parts together are not larger than the file, as `torch.save` writes it.

    Raises:
        OSError: it cannot be read.
        ValueError: it is another file, or its parts unpack to more."""
    # zipfile ignores what is before the archive, but torch.load would take it for one of its older formats.
    if file.read(len(_FIRST_BYTES)) != _FIRST_BYTES:
        raise ValueError("torch.save has not written it")
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError) as error:
        if isinstance(error.__context__, OSError):  # which zipfile takes for a damage
            raise error.__context__ from None
        raise ValueError("torch.save has not written it") from error
    size = file.seek(0, 2)
    file.seek(0)
    if any(part.compress_type != zipfile.ZIP_STORED for part in parts) or sum(part.file_size for part in parts) > size:
        raise ValueError("it unpacks to more than its size")


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0]
