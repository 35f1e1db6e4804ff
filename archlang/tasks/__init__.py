"""Tasks that recipes name: generators of splits, and the cache of generated splits."""

from archlang.tasks.kit.cache import load
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import Ragged, Split, digest
from archlang.tasks.kit.task import Kind, Task, Unit

__all__ = ["Kind", "Ragged", "Split", "Task", "TaskError", "Unit", "digest", "load"]
