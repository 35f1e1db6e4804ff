"""Jobs of SLURM, through submitit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from pathlib import Path
from typing import Any

from archlang.record import mistakes as record_mistakes
from archlang.runs import mistakes
from archlang.runs.points import Done, Point, run_point

_SECONDS_BETWEEN_LOOKS = 1.0
# Jobs at a time where it is not known how many there will be.
_AT_ONCE = 8


class Slurm:
    """Each run is a job. Options are submitit's: `slurm_partition=gpu`, `timeout_min=60`, `gpus_per_node=1`, and
    `cluster=local` to try it without SLURM. Logs are in `.jobs` beside the runs."""

    def __init__(self, workers: int | None, options: Mapping[str, str]) -> None:
        try:
            import submitit  # noqa: F401
        except ImportError:
            raise record_mistakes.engine_missing("slurm") from None
        self._workers = workers
        self._options = dict(options)
        self._cluster = self._options.pop("cluster", "slurm")

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[Done]:
        executor: Any = None  # Any: submitit's executors have no common type
        limit = self._workers or (len(points) if isinstance(points, Sized) else _AT_ONCE)
        waiting = iter(points)
        running: list[tuple[Any, Point]] = []  # Any: submitit's jobs
        while True:
            if stopping():
                for job, _ in running:
                    job.cancel()
                return
            while len(running) < limit and (point := next(waiting, None)) is not None:
                executor = executor or self._executor(point.folder.parent / ".jobs")
                running.append((executor.submit(run_point, point), point))
            if not running:
                return
            ended = [one for one in running if one[0].done()]
            running = [one for one in running if one not in ended]
            for job, point in ended:
                failure = job.exception()
                if failure is None:
                    yield job.result()
                else:
                    last = str(failure).strip().rpartition("\n")[2]
                    yield Done(point, 0.0, error=f"its job failed: {last}; see {Path(job.paths.stderr)}")
            if not ended:
                time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _executor(self, logs: Path) -> Any:
        import submitit

        try:
            executor = submitit.AutoExecutor(logs, cluster=self._cluster)
        except RuntimeError as error:
            raise mistakes.no_cluster(str(error)) from error
        parameters = {name: _value(text) for name, text in self._options.items()}
        try:
            executor.update_parameters(**{"name": "archlang", **parameters})
        except (TypeError, NameError, NotImplementedError, ValueError):
            raise mistakes.engine_option("slurm", ", ".join(parameters)) from None
        return executor


def _value(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
