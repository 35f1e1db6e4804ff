"""Exceptions of Python and torch whose cause is the machine: memory, disk, permissions, threads, missing packages."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from archlang.disk.mistakes import RefusedFile
from archlang.disk.os_errors import NO_MEMORY, is_current_folder_deleted, machine_remedy
from archlang.errors.diagnostic import MachineError

# Words of torch, of its libraries, of the dynamic loader and of CPython where an allocation fails.
_NO_MEMORY_WORDS = (
    "can't allocate memory", "cannot allocate memory", "out of memory", "bad_alloc", "failed to map segment",
    "storage size calculation overflowed", "unable to allocate", "could not create a primitive",
    "error return without exception set", "returned null without setting an exception", "couldn't parse file content",
    "allocation failed",
)  # fmt: skip
_NO_THREAD = "can't start new thread"
_CLOSE_PROCESSES = "close other programs, or raise the limit on threads and processes: `ulimit -u`"
_CLOSE_PROGRAMS = "close other programs, or raise the limits on memory; nothing that was written before is damaged"


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether an error means that the host or the device is out of memory."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno == NO_MEMORY
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":  # torch's, for a device
        return True
    if not (
        isinstance(error, OSError | RuntimeError | ImportError | SystemError | TypeError)
        or type(error).__name__ == "SafetensorError"
    ):
        return False
    message = str(error).lower()
    return any(words in message for words in _NO_MEMORY_WORDS)


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's message, or its class if it has no message."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


@contextmanager
def needs_extra(name: str) -> Iterator[None]:
    """For an import of the packages of an extra: says how to install them.

    Raises:
        MachineError: the import fails."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").startswith("archlang"):
            raise
        message = f"the packages of the extra `{name}` are not installed"
        raise MachineError(message, f"run `pip install 'archlang[{name}]'`") from error


def machine_error(error: BaseException) -> MachineError | None:
    """Returns an error of the machine in place of an exception that has it as its cause; None for other exceptions."""
    if isinstance(error, MachineError):
        return error
    if any(map(is_out_of_memory, _with_causes(error))):
        return MachineError("there is not enough memory", _CLOSE_PROGRAMS)
    if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
        return MachineError("the system does not start another thread", _CLOSE_PROCESSES)
    if isinstance(error, BlockingIOError) and error.filename is None:
        return MachineError("the system does not start another process", _CLOSE_PROCESSES)
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("archlang"):
        package = error.name.partition(".")[0]
        return MachineError(
            f"the Python package `{package}` is missing or incomplete: {error}", "install archlang again, with pip"
        )
    if isinstance(error, FileNotFoundError) and _is_relative(error.filename) and is_current_folder_deleted():
        return MachineError("the current folder has been deleted", "change to another folder with `cd`")
    # torch.save raises a RuntimeError for a full disk; the OSError is its context.
    os_error: BaseException | None = error.__context__ if isinstance(error, RuntimeError) else error
    if isinstance(os_error, RefusedFile):
        return None
    if isinstance(os_error, OSError) and (change := machine_remedy(os_error)) is not None:
        place = os_error.filename if isinstance(os_error.filename, str) else "standard output, or another open file"
        return MachineError(f"{place}: {os_error.strerror}", change)
    return None


def _is_relative(name: object) -> bool:
    return name is None or (isinstance(name, str) and not os.path.isabs(name))


def is_caused_by_machine(error: BaseException) -> bool:
    """Returns whether an error, or the exception that it was raised from, has the machine as its cause."""
    return any(machine_error(cause) is not None for cause in _with_causes(error))


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__
