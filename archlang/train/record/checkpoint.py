"""Checkpoints: written atomically, verified by digest when read; the last two and the best one are kept."""

import hashlib
import json
import pickle
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import safetensors
import safetensors.torch
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from archlang.disk.folder import Folder, open_path
from archlang.disk.limits import LARGEST_JSON
from archlang.errors.machine import first_line, is_out_of_memory
from archlang.train.record import mistakes
from archlang.train.record.divided import Copies, Joined, divided_like
from archlang.train.record.mistakes import RunWarning, disk_errors_as
from archlang.train.record.reading import CHECKPOINTS, explain
from archlang.train.record.schemas import MANIFEST, STATE, WEIGHTS, CheckpointState, ManifestRecord, json_text

_FIRST_BYTES = b"PK\x03\x04"


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
        raise ValueError(first_line(error)) from error
    return CheckpointState.model_validate(stored)


def _check_archive(file: BinaryIO) -> None:
    """Requires an archive whose parts together are not larger than the file, as `torch.save` writes it."""
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


_KEPT = 2
# At most 18 digits, so that steps fit 64 bits.
_NAME = re.compile(r"step-([0-9]{8}|[1-9][0-9]{8,17})")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in memory: the weights by name, and the state that resuming needs, which a saved model has not."""

    step: int
    folder: Path
    weights: Mapping[str, Tensor]
    stored_state: CheckpointState | None

    @property
    def state(self) -> CheckpointState:
        """What resuming needs besides the weights."""
        if self.stored_state is None:
            raise mistakes.not_resumable(self.folder, f"it has no {STATE}")
        return self.stored_state

    def load_into(self, module: nn.Module) -> None:
        """Loads the weights into a module."""
        own, values = module.state_dict(), dict[str, Tensor]()
        for name, value in self.weights.items():
            if name in own and value.dtype != own[name].dtype:
                raise mistakes.does_not_fit(self.folder, f"{name} is of {value.dtype}, not {own[name].dtype}")
            values[name] = divided_like(value, own.get(name, value))
        try:
            module.load_state_dict(values)
        except RuntimeError as error:
            raise mistakes.does_not_fit(self.folder, str(error).partition("\n")[2].strip()) from error


def write_saved(folder: Folder, module: nn.Module, step: int) -> list[str]:
    """Writes a checkpoint without a state into the folder of a saved model. Returns the names of its files."""
    with folder.folder(CHECKPOINTS, create=True) as parent, parent.folder(_name(step), create=True) as checkpoint:
        _write(checkpoint, {"weights": module.state_dict()})
    return [f"{CHECKPOINTS}/{_name(step)}/{name}" for name in (WEIGHTS, MANIFEST)]


class Checkpoints:
    """The checkpoints of a run, in a folder of their own."""

    def __init__(self, folder: Path, group: torch.distributed.ProcessGroup | None = None) -> None:
        """
        Args:
            folder: Its parent, the run folder, must exist when a checkpoint is saved.
            group: The processes among which the model is divided."""
        self.folder = folder
        self._group = group
        self._damages: dict[int, str] = {}
        self._writing: Future[None] | None = None
        self._copies = Copies()

    def save(self, step: int, module: nn.Module, state: CheckpointState, best: int | None) -> None:
        """Copies the weights and the state of a step, and writes their checkpoint atomically in a thread, which then
        removes all but the last two and that of the step `best`. All processes of a divided model call it.

        Raises:
            RunError: The checkpoint before cannot be written; existing checkpoints are unchanged."""
        self.finish()
        values, writer = (
            self._copies.of({"weights": module.state_dict(), "state": state.stored()}),
            ThreadPoolExecutor(1),
        )
        self._writing = writer.submit(self._save, step, values, best)
        writer.shutdown(wait=False)

    def finish(self) -> None:
        """Waits until the checkpoint is written that `save` has begun.

        Raises:
            RunError: It cannot be written."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _save(self, step: int, values: Mapping[str, Any], best: int | None) -> None:  # Any: nested tensors
        with disk_errors_as(mistakes.not_written, self.folder / _name(step)):
            if self._group is not None and self._group.rank():
                name, *_ = self._gather("")
                with self._open() as folder, folder.folder(name) as unfinished:
                    self._write_rows(unfinished)
                return
            with self._open(create=True) as folder:
                with folder.new_folder(_name(step)) as unfinished:
                    self._gather(unfinished.path.name)
                    _write(unfinished, values, self._write_rows(unfinished))
                _remove_old(folder, best)

    def _write_rows(self, folder: Folder) -> tuple[str, ...]:
        """Writes the rows of this process. Returns the digests of all processes; none if the model is not divided."""
        if self._group is None:
            return ()
        written: str | OSError
        name = _rows_name(self._group.rank(), self._group.size())
        try:
            with folder.create_file(name) as file:
                write_safetensors(file, self._copies.rows)
            written = folder.sha256(name)
        except OSError as error:
            written = OSError(error.errno, error.strerror, name)
        digests = self._gather(written)
        for digest in digests:
            if isinstance(digest, OSError):
                raise digest
        return tuple(digests)

    def _gather(self, value: object) -> list[Any]:  # Any: what each process passes
        """Returns the values of all processes, in a group of their own: they train meanwhile."""
        if self._group is None:
            return [value]
        values: list[Any] = [None] * self._group.size()
        torch.distributed.all_gather_object(values, value, group=self._group)
        return values

    def join(self, step: int) -> None:
        """Writes the checkpoint of a step again, with all weights in one file, if the model was divided."""
        with disk_errors_as(mistakes.not_written, self.folder / _name(step)), self._open() as folder:
            checkpoint = self.read(step)
            with folder.new_folder(_name(step)) as unfinished:
                _write(unfinished, Copies().of({"weights": checkpoint.weights, "state": checkpoint.state.stored()}))

    def steps(self) -> list[int]:
        """Returns the steps that have a checkpoint, in order."""
        self.finish()
        with disk_errors_as(mistakes.not_read, self.folder):
            try:
                with self._open() as folder:
                    return _steps(folder)
            except FileNotFoundError:
                return []

    def latest(self) -> Checkpoint | None:
        """Returns the newest intact checkpoint; None if there is none. Warns about damaged ones."""
        return self.first_intact(reversed(self.steps()))

    def first_intact(self, steps: Iterable[int]) -> Checkpoint | None:
        """Returns the checkpoint of the first of `steps` that has an intact one; None if there is none. Warns about
        damaged ones."""
        existing = set(self.steps())
        for step in steps:
            if step not in existing:
                continue
            try:
                return self.read(step)
            except mistakes.RunMachineError:
                raise  # An older checkpoint would silently lose steps.
            except mistakes.RunError as error:
                self._damages[step] = error.message
                warnings.warn(f"{error.message}; another checkpoint is used", RunWarning, stacklevel=2)
        return None

    def none_intact(self) -> mistakes.RunError:
        """Returns the error that all checkpoints are damaged, with the damage of the newest one that was read."""
        newest = max(self._damages, default=None)
        return mistakes.no_intact_checkpoint(self.folder, "" if newest is None else f": {self._damages[newest]}")

    def read(self, step: int) -> Checkpoint:
        """Returns the checkpoint of a step, on the CPU.

        Raises:
            RunMachineError: It cannot be read, as where memory is short.
            RunError: It is damaged."""
        self.finish()
        path = self.folder / _name(step)
        with disk_errors_as(mistakes.not_read, path), self._open() as folder:
            try:
                with folder.folder(_name(step)) as opened:
                    checkpoint = Checkpoint(step, path, *_read(opened))
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
                raise mistakes.damaged(path, str(error)) from error
            except Exception as error:
                if is_out_of_memory(error):
                    raise mistakes.no_memory_to_read(path) from error
                raise
        if checkpoint.stored_state is not None and checkpoint.state.step not in (None, step):
            raise mistakes.damaged(path / STATE, f"it is the state of step {checkpoint.state.step}")
        return checkpoint

    def remove_after(self, step: int, best: int | None = None) -> None:
        """Removes the checkpoints after `step`, which a resumed run writes again, those that a killed process left
        unfinished, and those that `save` would have removed."""
        with disk_errors_as(mistakes.not_written, self.folder), suppress(FileNotFoundError), self._open() as folder:
            folder.remove_unfinished("step-*")
            for later in _steps(folder):
                if later > step:
                    folder.discard(_name(later))
            _remove_old(folder, best)

    @contextmanager
    def _open(self, *, create: bool = False) -> Iterator[Folder]:
        with Folder.open(self.folder.parent) as run, run.folder(self.folder.name, create=create) as folder:
            yield folder


def _name(step: int) -> str:
    return f"step-{step:08d}"


def _remove_old(folder: Folder, best: int | None) -> None:
    for old in _steps(folder)[:-_KEPT]:
        if old != best:
            folder.discard(_name(old))


def _steps(folder: Folder) -> list[int]:
    steps = sorted(int(name.removeprefix("step-")) for name in folder.names() if _NAME.fullmatch(name))
    return [step for step in steps if folder.has_folder(_name(step))]


def _read(folder: Folder) -> tuple[Mapping[str, Tensor], CheckpointState | None]:
    with _damage_of(folder.path / MANIFEST):
        manifest = ManifestRecord.model_validate_json(folder.read(MANIFEST, LARGEST_JSON))
    state = None
    if manifest.state is not None:
        with folder.open_file(STATE) as file:
            _require_digest(folder, file, STATE, manifest.state)
            with _damage_of(folder.path / STATE):
                state = load_state(file)
    weights = _read_weights(folder, WEIGHTS, manifest.weights)
    count = len(manifest.rows)
    parts = [_read_weights(folder, _rows_name(rank, count), digest) for rank, digest in enumerate(manifest.rows)]
    if not parts or state is None:
        return weights, state
    with _damage_of(folder.path):
        return Joined(weights, parts, "/weights"), _with_rows(state, parts)


def _read_weights(folder: Folder, name: str, digest: str) -> dict[str, Tensor]:
    path = folder.path / name
    with folder.open_file(name) as file:
        _require_digest(folder, file, name, digest)
        with _damage_of(path):
            return load_weights(open_path(file, path))


def _with_rows(state: CheckpointState, parts: Sequence[Mapping[str, Tensor]]) -> CheckpointState:
    stored = state.optimizer.get("state")
    if not isinstance(stored, Mapping) or not all(isinstance(kept, Mapping) for kept in stored.values()):
        raise ValueError("the state of the optimizer has no rows")
    moments = {index: Joined(kept, parts, f"/state/optimizer/state/{index}") for index, kept in stored.items()}
    trained = None if state.trained is None else Joined(state.trained, parts, "/state/trained")
    return state.model_copy(update={"optimizer": {**state.optimizer, "state": moments}, "trained": trained})


def _rows_name(rank: int, processes: int) -> str:
    return f"rows-{rank + 1}-of-{processes}.safetensors"


def _require_digest(folder: Folder, file: BinaryIO, name: str, digest: str) -> None:
    if hashlib.file_digest(file, "sha256").hexdigest() != digest:  # type: ignore[arg-type]  # a file of bytes
        raise mistakes.damaged(folder.path, f"{name} is not what was written")
    file.seek(0)


@contextmanager
def _damage_of(path: Path) -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise mistakes.damaged(path, explain(error)) from error
    except ValueError as error:
        raise mistakes.damaged(path, str(error)) from error


def write_safetensors(file: BinaryIO, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Writes tensors as a file of safetensors, without a copy of those that are contiguous and on the CPU."""
    # The library's `save` copies all tensors while it holds Python's lock, which stops the training, and its
    # `save_file` takes no open file. The order is the library's, so that each tensor is aligned.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0]))
    types = {dtype: name for name, dtype in safetensors.torch._TYPES.items()}
    header: dict[str, object] = {} if metadata is None else {"__metadata__": metadata}
    begin = 0
    for name, tensor in ordered:
        end = begin + tensor.nbytes
        header[name] = {"dtype": types[tensor.dtype], "shape": [*tensor.shape], "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for _, tensor in ordered:
        file.write(memoryview(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy()))  # type: ignore[arg-type]  # a buffer


def _write(folder: Folder, values: Mapping[str, Any], rows: tuple[str, ...] = ()) -> None:  # Any: nested tensors
    """Writes the files of a checkpoint; `rows` are the digests of those that are written already."""
    try:
        with folder.create_file(WEIGHTS) as file:
            write_safetensors(file, values["weights"])
        if "state" in values:
            with folder.create_file(STATE) as file:
                torch.save(values["state"], file)
    except RuntimeError as error:
        # torch.save raises RuntimeError for a full disk; the OSError is its context.
        if isinstance(error.__context__, OSError):
            raise error.__context__ from error
        raise
    state = folder.sha256(STATE) if "state" in values else None
    manifest = ManifestRecord(weights=folder.sha256(WEIGHTS), state=state, rows=rows)
    with folder.create_file(MANIFEST) as file:
        file.write(json_text(manifest).encode())
