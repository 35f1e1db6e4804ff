"""Jobs of SLURM, through submitit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from archlang.run import mistakes
from archlang.run.points import Done, Point, run_point

_SECONDS_BETWEEN_LOOKS = 1.0


class Slurm:
    """Each run is a job. Options are submitit's: `slurm_partition=gpu`, `timeout_min=60`, `gpus_per_node=1`, and
    `cluster=local` to try it without SLURM. Logs are in `.jobs` beside the runs."""

    def __init__(self, workers: int | None, options: Mapping[str, str]) -> None:
        try:
            import submitit  # noqa: F401
        except ImportError:
            raise mistakes.engine_missing("slurm") from None
        self._workers = workers
        self._options = dict(options)
        self._cluster = self._options.pop("cluster", "slurm")

    def run(self, points: Sequence[Point], stopping: Callable[[], bool]) -> Iterator[Done]:
        import submitit

        if not points:
            return
        try:
            executor = submitit.AutoExecutor(points[0].folder.parent / ".jobs", cluster=self._cluster)
        except RuntimeError as error:
            raise mistakes.no_cluster(str(error)) from error
        parameters: dict[str, Any] = {name: _value(text) for name, text in self._options.items()}
        try:
            executor.update_parameters(**{"name": "archlang", **parameters})
        except (TypeError, NameError, NotImplementedError, ValueError):
            raise mistakes.engine_option("slurm", ", ".join(parameters)) from None
        limit = self._workers or len(points)
        waiting = list(points)
        running: list[tuple[Any, Point]] = []  # Any: submitit's jobs
        while waiting or running:
            if stopping():
                for job, _ in running:
                    job.cancel()
                return
            while waiting and len(running) < limit:
                point = waiting.pop(0)
                running.append((executor.submit(run_point, point), point))
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


def _value(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
