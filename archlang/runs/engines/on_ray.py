"""A Ray cluster, or as many processes as Ray starts on this machine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from archlang.record import mistakes as record_mistakes
from archlang.runs import mistakes
from archlang.runs.points import Done, Point, run_point

_SECONDS_BETWEEN_LOOKS = 1.0


class OnRay:
    """Each run is a task of Ray. `address` joins a cluster, whose machines share the folder of the table; without it
    Ray starts on this machine. `cpus` and `gpus` are what a run needs of each."""

    def __init__(self, workers: int | None, options: Mapping[str, str]) -> None:
        try:
            import ray  # noqa: F401
        except ImportError:
            raise record_mistakes.engine_missing("ray") from None
        self._workers = workers
        unknown = options.keys() - {"address", "cpus", "gpus"}
        if unknown:
            raise mistakes.engine_option("ray", sorted(unknown)[0])
        self._address = options.get("address")
        try:
            self._cpus, self._gpus = float(options.get("cpus", "1")), float(options.get("gpus", "0"))
        except ValueError:
            raise mistakes.engine_option("ray", "cpus") from None

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[Done]:
        import ray

        begun = not ray.is_initialized()
        if begun:
            ray.init(
                address=self._address,
                num_cpus=None if self._address else self._workers,
                include_dashboard=False,
                logging_level=logging.ERROR,
                log_to_driver=False,
            )
        cores = dict(ray.cluster_resources()).get("CPU", 1)  # type: ignore[no-untyped-call]
        task = ray.remote(num_cpus=self._cpus, num_gpus=self._gpus, max_retries=0)(run_point)
        room = self._workers or max(int(cores / max(self._cpus, 1e-9)), 1)
        waiting = iter(points)
        running: dict[Any, Point] = {}  # Any: Ray's references have no types
        try:
            while True:
                if stopping():
                    for reference in running:
                        ray.cancel(reference)
                    return
                while len(running) < room and (point := next(waiting, None)) is not None:
                    running[task.remote(point)] = point
                if not running:
                    return
                ended, _ = ray.wait(list(running), num_returns=1, timeout=_SECONDS_BETWEEN_LOOKS)
                for reference in ended:
                    point = running.pop(reference)
                    try:
                        yield ray.get(reference)
                    except ray.exceptions.RayError as error:
                        yield Done(point, 0.0, error=f"Ray lost it: {str(error).strip().partition(chr(10))[0]}")
        finally:
            if begun:
                ray.shutdown()
