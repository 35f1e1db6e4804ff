"""The tasks that recipes name: generators with their splits, and the cache that keeps what they made."""

from archlang.tasks.base import Kind, Ragged, Split, Task, Unit, digest
from archlang.tasks.cache import load
from archlang.tasks.mistakes import TaskError

__all__ = ["Kind", "Ragged", "Split", "Task", "TaskError", "Unit", "digest", "load"]
