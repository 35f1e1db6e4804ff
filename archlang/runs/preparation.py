"""From a plan to what a training run is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archlang.backend.architecture import Architecture
from archlang.compile import build
from archlang.diagnostics.terminal import Terminal
from archlang.plan.plan import BoundExtern, Plan
from archlang.plan.rules import HIGHEST_SEED
from archlang.plan.trust import is_shipped
from archlang.plugins import Plugins
from archlang.runs import mistakes
from archlang.runs.model_memory import require_memory
from archlang.runs.splits import load_splits, warn_of_shared_rows
from archlang.tasks.kit.cache import ReadsUserFiles
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.metrics import WRITTEN_METRICS
from archlang.tasks.kit.task import Task
from archlang.train import mistakes as train_mistakes
from archlang.train.optimizers import make_optimizer
from archlang.train.run_functions import RunFunctions
from archlang.train.settings import Settings
from archlang.train.setup import Setup, Workload

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def make_settings(plan: Plan) -> tuple[Settings, Task, RunFunctions]:
    """Returns how a plan is trained, its task, and the functions of the user's own.

    Raises:
        PluginError: a function is in no plugin, or its file cannot be imported.
        RunError: a setting, the seed or the selecting metric is invalid.
        TaskError: the task cannot be made."""
    settings = Settings.of(plan.train.statics)
    if not 0 <= plan.seed <= HIGHEST_SEED:
        raise mistakes.seed_out_of_bounds(plan.seed, HIGHEST_SEED)
    task = make_task(plan.task.name, plan.task.python, plan.task.statics, plan.plugins)
    split, metric = settings.selecting
    if split not in task.split_names():
        has_shares = hasattr(task, f"{split}_share")
        raise mistakes.no_selecting_split(plan.task.name, split, metric, task.split_names(), has_shares)
    functions = load_functions(plan.train, plan.task.name, task, plan.plugins)
    metrics = (*task.metrics, *functions.metrics)
    if metric not in (*metrics, "loss"):
        raise mistakes.no_such_metric(plan.task.name, metric, metrics)
    return settings, task, functions


def load_functions(train: BoundExtern, task_name: str, task: Task, plugins: Plugins) -> RunFunctions:
    """Returns the functions of the user's own that a run uses.

    Raises:
        PluginError: a function is in no plugin, or its file cannot be imported.
        RunError: a setting names no function, or a metric has the name of another one."""
    functions = RunFunctions.load(Settings.of(train.statics), plugins)
    for name in functions.metrics:
        if name in (*task.metrics, *WRITTEN_METRICS, "loss"):
            raise train_mistakes.metric_twice(name, task_name)
    return functions


def load_workload(
    plan: Plan,
    settings: Settings,
    task: Task,
    functions: RunFunctions,
    fabric: Fabric,
    console: Terminal | None,
    splits: Sequence[str] = (),
) -> Workload:
    """Loads every split of the task, or these `splits`, if the model fits into memory.

    Raises:
        RunMachineError: the model does not fit into memory.
        RunError: the training split or the selecting split is empty.
        TaskError: a split cannot be generated."""
    require_memory(plan, fabric.device)
    loaded = load_splits(plan.task.name, plan.task.statics, task, splits or task.split_names(), console)
    for name in ("train", settings.selecting[0]):
        if not len(loaded[name]):
            raise mistakes.empty_split(plan.task.name, name)
    if isinstance(task, ReadsUserFiles):
        warn_of_shared_rows(loaded)
    return Workload(settings, task, loaded, fabric.device, functions)


def build_test_module(plan: Plan) -> Architecture | None:
    """Builds the module with the statics of test time; returns None if it is the one that is trained. Call it before
    `make_setup`, which sets the seed: evaluation must not change training."""
    return None if plan.at_test is plan.graph else build(plan.at_test, plan.plugins)


def make_setup(plan: Plan, fabric: Fabric, test_module: Architecture | None, precision: str) -> Setup:
    """Sets the seed, builds the module, and makes its optimizer.

    Raises:
        RunError: the module has no weights."""
    fabric.seed_everything(plan.seed, verbose=False)
    module = build(plan.graph, plan.plugins)
    optimizer = make_optimizer(plan.train, module, precision, plan.plugins)
    return Setup(fabric, module, test_module or module, optimizer, not is_shipped(plan.train))
