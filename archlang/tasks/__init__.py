"""The tasks that recipes name: generators with their splits, and the cache that keeps what they made."""

from archlang.tasks.kit.base import Kind, Ragged, Split, Task, Unit, digest
from archlang.tasks.kit.cache import load
from archlang.tasks.kit.mistakes import TaskError

__all__ = ["Kind", "Ragged", "Split", "Task", "TaskError", "Unit", "digest", "load"]
