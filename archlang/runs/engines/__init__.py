"""Engines that run points: processes of this machine, a Ray cluster, or SLURM jobs."""

from archlang.runs.engines.engine import ENGINES, Engine, make_engine

__all__ = ["ENGINES", "Engine", "make_engine"]
