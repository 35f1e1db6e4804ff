"""An engine that runs points as SLURM jobs, through submitit."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from pathlib import Path
from typing import Any

from archlang.diagnostics.machine import needs_extra
from archlang.runs import mistakes
from archlang.runs.points import JOBS, Point, PointResult, run_point

_SECONDS_BETWEEN_CHECKS = 1.0
# Jobs at a time if the number of points is unknown, as in a search.
_DEFAULT_JOBS = 8


class SlurmEngine:
    """Each point is a job. Logs are in the folder `JOBS` beside the run folders."""

    def __init__(self, workers: int | None, options: Mapping[str, str]) -> None:
        """
        Args:
            options: submitit's: `slurm_partition=gpu`, `timeout_min=60`, `gpus_per_node=1`; `cluster=local` runs jobs
                without SLURM.

        Raises:
            MachineError: submitit is not installed."""
        with needs_extra("slurm"):
            import submitit  # noqa: F401
        self._workers = workers
        self._options = dict(options)
        self._cluster = self._options.pop("cluster", "slurm")

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[PointResult]:
        executor: Any = None  # Any: submitit's executors have no common type
        limit = self._workers or (len(points) if isinstance(points, Sized) else _DEFAULT_JOBS)
        waiting = iter(points)
        running: list[tuple[Any, Point]] = []  # Any: submitit's jobs
        while True:
            if stopping():
                for job, _ in running:
                    job.cancel()
                return
            while len(running) < limit and (point := next(waiting, None)) is not None:
                executor = executor or self._executor(point.folder.parent / JOBS)
                running.append((executor.submit(run_point, point), point))
            if not running:
                return
            ended = [entry for entry in running if entry[0].done()]
            running = [entry for entry in running if entry not in ended]
            for job, point in ended:
                failure = job.exception()
                if failure is None:
                    yield job.result()
                else:
                    last_line = str(failure).strip().rpartition("\n")[2]
                    yield PointResult(point, 0.0, error=f"its job failed: {last_line}; see {Path(job.paths.stderr)}")
            if not ended:
                time.sleep(_SECONDS_BETWEEN_CHECKS)

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
