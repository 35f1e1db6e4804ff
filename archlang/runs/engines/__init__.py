"""Where the runs of a table are made: processes of this machine, a Ray cluster, or SLURM jobs.

An engine only hands points out. Whatever a run needs to go on is in its own folder, so any engine can take up what
another has left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from archlang.runs import mistakes
from archlang.runs.points import Done, Point

ENGINES = ("local", "ray", "slurm")


class Engine(Protocol):
    """Runs points, as many at a time as it has room for."""

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[Done]:
        """How each point ended, in the order in which they end. A point whose process dies ends with an error; the
        others go on. A point is taken from `points` when there is room for it, not before. Once `stopping()` is true no
        more are begun, and those that run are asked to stop."""


def make_engine(name: str, workers: int | None = None, options: Mapping[str, str] | None = None) -> Engine:
    """The engine of a name. `options` are those of the cluster: an address of Ray, parameters of SLURM.

    Raises:
        RunError: there is none of that name, or what it needs is not installed."""
    options = dict(options or {})
    if name == "local":
        from archlang.runs.engines.local import Local

        if options:
            raise mistakes.engine_option(name, next(iter(options)))
        return Local(workers)
    if name == "ray":
        from archlang.runs.engines.on_ray import OnRay

        return OnRay(workers, options)
    if name == "slurm":
        from archlang.runs.engines.slurm import Slurm

        return Slurm(workers, options)
    raise mistakes.unknown_engine(name, ENGINES)
