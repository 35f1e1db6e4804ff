"""The curves of a run in TensorBoard, in Weights & Biases, MLflow and trackio, and in functions of a plugin."""

import importlib
import secrets
import socket
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from io import BufferedWriter
from pathlib import Path
from typing import Any

from archlang.disk.folder import Folder
from archlang.errors.machine import needs_extra
from archlang.errors.names import listed
from archlang.plan.plan import Plan
from archlang.plugins.plugins import PluginFunction
from archlang.train.record import mistakes
from archlang.train.record.mistakes import RunWarning

_VERSION = "brain.Event:2"


@dataclass
class Tracker:
    """A tracker of one run. Its errors do not end the run, as `metrics.jsonl` has the same points: it warns once, and
    stops."""

    name: str
    log: Callable[[Mapping[str, float], int], Any]
    finish: Callable[[], Any]
    _failed: bool = False

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Adds a point to the curve of each name."""
        if not self._failed:
            self._try(lambda: self.log(values, step))

    def close(self) -> None:
        self._try(self.finish)

    def _try(self, call: Callable[[], Any]) -> None:
        try:
            call()
        except Exception as error:  # each service has its own errors
            if not self._failed:
                reason = getattr(error, "strerror", None) or error
                warnings.warn(f"{self.name} gets no further points: {reason}", RunWarning, stacklevel=4)
            self._failed = True


class Curves(Tracker):
    """A folder of TensorBoard events; without the extra `tensorboard` there is none.

    TensorBoard's own writer is not used: its thread prints a traceback when the disk is full."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder), self._log, self._finish, _failed=find_spec("tensorboard") is None)
        self._folder = folder
        # TensorBoard discards points of an earlier process from this step on.
        self.purge_step: int | None = None
        self._file: BufferedWriter | None = None

    def _log(self, values: Mapping[str, float], step: int) -> None:
        if self._file is None:
            self._file = self._begin()
        summary = {"value": [{"tag": name, "simple_value": float(value)} for name, value in values.items()]}
        self._write(self._file, step=step, summary=summary)
        self._file.flush()

    def _begin(self) -> BufferedWriter:
        with Folder.open(self._folder.parent) as parent, parent.folder(self._folder.name, create=True) as folder:
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

    def _finish(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


TRACKERS = ("wandb", "mlflow", "trackio")


def open_trackers(names: Sequence[str], plan: Plan, folder: Path) -> list[Tracker]:
    """Returns the trackers of these names, with the run's settings. A resumed run folder resumes its run there."""
    return [_open(name, plan, folder) for name in names]


def load_tracker(name: str, plan: Plan) -> Any:  # Any: the packages are extras
    """Returns the function or the package of a tracker.

    Raises:
        MachineError: the package is not installed.
        PluginError: the function cannot be loaded.
        RunError: there is no such tracker."""
    module, _, attribute = name.rpartition(".")
    if module:
        return PluginFunction.load(plan.plugins, f"{module}:{attribute}", f"the tracker `{name}`")
    if name not in TRACKERS:
        raise mistakes.unknown_tracker(name, listed(TRACKERS))
    with needs_extra(name):
        return importlib.import_module(name)


def _open(name: str, plan: Plan, folder: Path) -> Tracker:
    service = load_tracker(name, plan)
    if isinstance(service, PluginFunction):
        return Tracker(name, lambda values, step: service(step, dict(values)), lambda: None)
    config = {path: str(value) for path, value in plan.settings.items()}
    try:
        if name == "mlflow":
            service.set_experiment(plan.recipe)
            place = str(folder.absolute())
            known = service.search_runs(filter_string=f"tags.`archlang.folder` = '{place}'", output_format="list")
            service.start_run(run_id=known[0].info.run_id if known else None, run_name=folder.name)
            service.set_tag("archlang.folder", place)
            service.log_params(config)
            return Tracker(name, lambda values, step: service.log_metrics(dict(values), step=step), service.end_run)
        of_wandb = {"id": folder.name, "dir": str(folder)} if name == "wandb" else {}
        service.init(project="archlang", name=folder.name, config=config, resume="allow", **of_wandb)
    except Exception as error:
        raise mistakes.tracker_fails(name, str(error)) from error
    return Tracker(name, lambda values, step: service.log(dict(values), step=step), service.finish)
