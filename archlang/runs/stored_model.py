"""Errors of a model that is built from the files of a folder, which another program may have changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from archlang.backend.mistakes import BuildError
from archlang.diagnostics import ArchlangError
from archlang.diagnostics.machine import machine_error
from archlang.runs import mistakes


@contextmanager
def explaining_stored_model(path: Path) -> Iterator[None]:
    """Raises a RunError that names `path`, a file of the model, in place of an error of the model's code: only some
    mistakes of a graph or a vocabulary are found when they are read."""
    try:
        yield
    except BuildError as error:
        raise mistakes.stored_model_fails(path, str(error)) from error
    except (ArchlangError, OSError, MemoryError, Warning):
        raise
    except Exception as error:  # whatever the model's code does
        if machine_error(error) is not None:
            raise
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise mistakes.stored_model_fails(path, reason) from error
