"""The TensorBoard curves of a run."""

import secrets
import socket
import time
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from io import BufferedWriter
from pathlib import Path
from typing import Any

from archlang.files.folder import Folder

_VERSION = "brain.Event:2"


class CurvesWarning(UserWarning):
    """The curves cannot be written; the run continues."""


class Curves:
    """A folder of TensorBoard events. `metrics.jsonl` has the same points, so an error here does not end the run, and
    without the extra `tensorboard` there is no folder.

    TensorBoard's own writer is not used: its thread prints a traceback when the disk is full."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # TensorBoard discards points of an earlier process from this step on.
        self.purge_step: int | None = None
        self._file: BufferedWriter | None = None
        self._failed = find_spec("tensorboard") is None

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Adds a point to the curve of each name. Warns once if the folder cannot be written."""
        if self._failed:
            return
        try:
            if self._file is None:
                self._file = self._begin()
            summary = {"value": [{"tag": name, "simple_value": float(value)} for name, value in values.items()]}
            self._write(self._file, step=step, summary=summary)
            self._file.flush()
        except OSError as error:
            self._fail(error)

    def _begin(self) -> BufferedWriter:
        """Creates the file of this process."""
        with Folder.open(self.folder.parent) as parent, parent.folder(self.folder.name, create=True) as folder:
            name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{secrets.token_hex(4)}"
            file = folder.create_file(name)
        self._write(file, file_version=_VERSION)
        if self.purge_step is not None:
            from tensorboard.compat.proto.event_pb2 import SessionLog

            self._write(file, step=self.purge_step, file_version=_VERSION)
            self._write(file, step=self.purge_step, session_log={"status": SessionLog.START})
        return file

    def _write(self, file: BufferedWriter, **fields: Any) -> None:
        """Writes an event. Any: the fields of protobuf's messages are not typed."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.record_writer import RecordWriter

        RecordWriter(file).write(Event(wall_time=time.time(), **fields).SerializeToString())

    def close(self) -> None:
        """Closes the file of this process."""
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._fail(error)
        self._file = None

    def _fail(self, error: OSError) -> None:
        if not self._failed:
            self._failed = True
            warnings.warn(f"{self.folder} gets no further curves: {error.strerror}", CurvesWarning, stacklevel=3)
