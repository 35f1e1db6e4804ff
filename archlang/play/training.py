"""Trains the recipe of the playground for a few hundred steps, in processes of their own.

The commands are those of the command line, without plugins: no Python of a program runs, and nothing is downloaded."""

import re
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from archlang.disk.readable import read_named
from archlang.play.mistakes import already_trains, no_training

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]

_SECONDS = 0.5
"""between two looks at a run"""
_PATIENCE = 20.0
"""seconds for a process to exit on its own"""
_LARGEST_PAGE = 64 << 20  # bytes
_PROGRAM, _RUN, _INSPECTION = "program.arch", "run", "inspection.html"
_ERROR = re.compile(r"^error: ", re.MULTILINE)


class PlaygroundTrainer:
    """Trains one recipe at a time. `close` ends its processes and removes its files."""

    def __init__(self) -> None:
        self._run: _Run | None = None

    def start(self, text: str, recipe: str, steps: int) -> None:
        """Trains a recipe of a program.

        Raises:
            RequestError: another one is being trained."""
        if self._run is not None and self._run.state == "running":
            raise already_trains()
        self.close()
        self._run = _Run(text, recipe, steps)

    @property
    def is_started(self) -> bool:
        """Whether a recipe is being trained, or was."""
        return self._run is not None

    def progress(self, after: int) -> Mapping[str, Json]:
        """Returns the state of the run, its curve from the step after `after` on, and its evaluations.

        Raises:
            RequestError: nothing has been trained."""
        if self._run is None:
            raise no_training()
        return self._run.progress(after)

    def stop(self) -> None:
        """Asks the run to stop after its current step."""
        if self._run is not None:
            self._run.stop()

    def inspection(self, name: str) -> bytes | None:
        """Returns the page of what the model does with an item, by the name that `progress` has given; None if there
        is no longer such a page."""
        return None if self._run is None else self._run.inspections.get(name)

    def close(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None


class _Run:
    """A process that trains, and a thread that waits for it and inspects each of its checkpoints."""

    def __init__(self, text: str, recipe: str, steps: int) -> None:
        self.recipe, self.steps = recipe, steps
        self.state, self.message = "running", ""
        # By its name, which nobody else can guess, the latest page.
        self.inspections: dict[str, bytes] = {}
        self._inspected = ""
        self._is_stopping = False
        self._removed = tempfile.TemporaryDirectory(prefix="archlang-")
        self.folder = Path(self._removed.name)
        (self.folder / _PROGRAM).write_text(text, encoding="utf-8")
        arguments = ["train", _PROGRAM, recipe, "--steps", str(steps), "--out", _RUN, "--json"]
        self._processes = [self._command(arguments)]
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _command(self, arguments: Sequence[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "archlang", *arguments],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            encoding="utf-8",
        )  # fmt: skip

    def _watch(self) -> None:
        (process,) = self._processes
        while True:
            try:
                _, errors = process.communicate(timeout=_SECONDS)
                break
            except subprocess.TimeoutExpired:
                self._inspect()
        self._inspect()
        if self._is_stopping:
            self.state = "stopped"
        elif process.returncode:
            self.state, self.message = "failed", _first_error(errors)
        else:
            self.state = "done"

    def _inspect(self) -> None:
        names = [path.name for path in (self.folder / _RUN / "checkpoints").glob("step-*")]
        newest = max(names, default="")
        if newest == self._inspected or self._is_stopping:
            return
        self._inspected = newest
        process = self._command(["inspect", _RUN, "--out", _INSPECTION])
        self._processes.append(process)
        process.communicate()
        self._processes.remove(process)
        if process.returncode == 0:
            self.inspections = {secrets.token_urlsafe(32): read_named(self.folder / _INSPECTION, _LARGEST_PAGE)}

    def progress(self, after: int) -> dict[str, Json]:
        # Imported for trainings only: the schemas need pydantic.
        from archlang.train.record.mistakes import RunError
        from archlang.train.record.reading import read_metrics, read_results
        from archlang.train.record.schemas import EvaluationMetrics, StepMetrics

        state, folder = self.state, self.folder / _RUN
        try:
            lines = read_metrics(folder) if folder.is_dir() else ()
            results = read_results(folder) if state == "done" else None
        except RunError:  # the folder is being made
            lines, results = (), None
        steps = [line for line in lines if isinstance(line, StepMetrics)]
        latest = {line.split: line for line in lines if isinstance(line, EvaluationMetrics)}
        evaluations: list[Json] = [
            {"step": each.step, "split": each.split, "metrics": dict(each.metrics)} for each in latest.values()
        ]
        if results is not None:
            evaluations = [
                {"step": results.best_step or self.steps, "split": split, "metrics": dict(result.metrics)}
                for split, result in results.splits.items()
            ]
        return {
            "state": state,
            "message": self.message,
            "recipe": self.recipe,
            "steps": self.steps,
            "step": steps[-1].step if steps else 0,
            "curve": [[each.step, each.loss] for each in steps if each.step > after and each.loss is not None],
            "evaluations": evaluations,
            "inspection": next(iter(self.inspections), ""),
        }

    def stop(self) -> None:
        self._is_stopping = True
        for process in self._processes:
            process.terminate()

    def close(self) -> None:
        """Ends the processes, and removes the folder."""
        self.stop()
        self._watcher.join(_PATIENCE)
        for process in self._processes:
            process.kill()
        self._watcher.join()
        self._removed.cleanup()


def _first_error(text: str) -> str:
    begin = _ERROR.search(text)
    shown = text[begin.end() if begin else 0 :].strip()
    return shown or "the training ended without a message"
