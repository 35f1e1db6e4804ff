"""What an engine is, and how to make one by name.

An engine only distributes points. Everything that resuming a run needs is in its folder, so any engine can resume what
another began."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from archlang.runs import mistakes
from archlang.runs.points import Point, PointResult

ENGINES = ("local", "ray", "slurm")


class Engine(Protocol):
    """Runs points, as many at a time as it has room for."""

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[PointResult]:
        """Yields how each point ended, in the order in which they end.

        If the process of a point dies, the point ends with an error and the others continue. A point is taken from
        `points` only when there is room for it. Once `stopping()` is true, no further points begin, and running ones
        are asked to stop."""


def make_engine(name: str, workers: int | None = None, options: Mapping[str, str] | None = None) -> Engine:
    """Returns the engine of a name.

    Args:
        workers: Points at a time; by default as many as the machine or the cluster has room for.
        options: An address of Ray, or parameters of SLURM.

    Raises:
        RunError: There is no engine of that name, its package is not installed, or an option is unknown."""
    options = dict(options or {})
    if name == "local":
        from archlang.runs.engines.local import LocalEngine

        if options:
            raise mistakes.engine_option(name, next(iter(options)))
        return LocalEngine(workers)
    if name == "ray":
        from archlang.runs.engines.ray_cluster import RayEngine

        return RayEngine(workers, options)
    if name == "slurm":
        from archlang.runs.engines.slurm import SlurmEngine

        return SlurmEngine(workers, options)
    raise mistakes.unknown_engine(name, ENGINES)
