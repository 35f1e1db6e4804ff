"""An engine that runs points as tasks of a Ray cluster, or of Ray on this machine."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from archlang.diagnostics.machine import needs_extra
from archlang.runs import mistakes
from archlang.runs.points import Point, PointResult, run_point
from archlang.train.stop import keeping_handlers

_SECONDS_BETWEEN_CHECKS = 1.0


class RayEngine:
    """Each point is a task of Ray."""

    def __init__(self, workers: int | None, options: Mapping[str, str]) -> None:
        """
        Args:
            options: `address` of a cluster whose machines share the folder of the table; without it Ray starts on this
                machine. `cpus` and `gpus` that a run needs.

        Raises:
            MachineError: Ray is not installed.
            RunError: an option is unknown or not a number."""
        with needs_extra("ray"):
            import ray  # noqa: F401
        self._workers = workers
        unknown = options.keys() - {"address", "cpus", "gpus"}
        if unknown:
            raise mistakes.engine_option("ray", sorted(unknown)[0])
        self._address = options.get("address")
        try:
            self._cpus, self._gpus = float(options.get("cpus", "1")), float(options.get("gpus", "0"))
        except ValueError:
            raise mistakes.engine_option("ray", "cpus") from None

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[PointResult]:
        import ray

        is_own = not ray.is_initialized()
        if is_own:
            with keeping_handlers():  # Ray's own would abort this process
                ray.init(
                    address=self._address,
                    num_cpus=None if self._address else self._workers,
                    include_dashboard=False,
                    logging_level=logging.ERROR,
                    log_to_driver=False,
                )
        cores = dict(ray.cluster_resources()).get("CPU", 1)  # type: ignore[no-untyped-call]
        task = ray.remote(num_cpus=self._cpus, num_gpus=self._gpus, max_retries=0)(run_point)
        limit = self._workers or max(int(cores / max(self._cpus, 1e-9)), 1)
        waiting = iter(points)
        running: dict[Any, Point] = {}  # Any: Ray's references are not typed
        try:
            while True:
                if stopping():
                    for reference in running:
                        ray.cancel(reference)
                    return
                while len(running) < limit and (point := next(waiting, None)) is not None:
                    running[task.remote(point)] = point
                if not running:
                    return
                ended, _ = ray.wait(list(running), num_returns=1, timeout=_SECONDS_BETWEEN_CHECKS)
                for reference in ended:
                    point = running.pop(reference)
                    try:
                        yield ray.get(reference)
                    except ray.exceptions.RayError as error:
                        first_line = str(error).strip().partition("\n")[0]
                        yield PointResult(point, 0.0, error=f"Ray lost it: {first_line}")
        finally:
            if is_own:
                ray.shutdown()
