"""The missing files that the tasks of plans read: published ones, which can be fetched, and the user's own."""

import os
from collections.abc import Iterable

from archlang.data.registry import OfficialFile
from archlang.data.store import absent
from archlang.plan.plan import Plan
from archlang.tasks.kit.cache import ReadsUserFiles
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.published_files import ReadsPublishedFiles


def missing_files(plans: Iterable[Plan]) -> tuple[OfficialFile, ...]:
    """Returns the files that are missing, each once."""
    reads: dict[tuple[str, str], None] = {}
    seen_tasks: set[str] = set()
    for plan in plans:
        key = repr((plan.task.name, plan.task.python, plan.task.statics))
        # The points of a table share their tasks.
        if key in seen_tasks:
            continue
        seen_tasks.add(key)
        task = make_task(plan.task.name, plan.task.python, plan.task.statics, plan.plugins)
        if isinstance(task, ReadsPublishedFiles):
            reads.update(dict.fromkeys(task.reads()))
    return absent(reads)


def missing_user_files(plan: Plan) -> tuple[str, ...]:
    """Returns the missing files of the user's own that the task of a plan names."""
    task = make_task(plan.task.name, plan.task.python, plan.task.statics, plan.plugins)
    return tuple(file for file in task.files() if not os.path.isfile(file)) if isinstance(task, ReadsUserFiles) else ()
