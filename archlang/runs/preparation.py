"""From a plan to what a training run is made of."""

from lightning_fabric import Fabric

from archlang.backend.architecture import Architecture
from archlang.compile import build
from archlang.diagnostics.terminal import Terminal
from archlang.plan.plan import Plan
from archlang.runs import mistakes
from archlang.runs.model_memory import require_memory
from archlang.runs.splits import load_splits
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.task import Task
from archlang.train.optimizers import make_optimizer
from archlang.train.settings import Settings
from archlang.train.setup import Setup, Workload

_HIGHEST_SEED = 2**32 - 1


def make_settings(plan: Plan) -> tuple[Settings, Task]:
    """Returns how a plan is trained, and its task.

    Raises:
        RunError: a setting, the seed or the selecting metric is invalid.
        TaskError: the task cannot be made."""
    settings = Settings.of(plan.train.statics)
    if not 0 <= plan.seed <= _HIGHEST_SEED:
        raise mistakes.seed_out_of_bounds(plan.seed, _HIGHEST_SEED)
    task = make_task(plan.task.name, plan.task.python, plan.task.statics, plan.plugins)
    split, metric = settings.selecting
    if split not in task.split_names():
        raise mistakes.no_selecting_split(plan.task.name, split, task.split_names())
    if metric not in (*task.metrics, "loss"):
        raise mistakes.no_such_metric(plan.task.name, metric, task.metrics)
    return settings, task


def load_workload(plan: Plan, settings: Settings, task: Task, fabric: Fabric, console: Terminal | None) -> Workload:
    """Loads every split of the task, if the model fits into memory.

    Raises:
        RunMachineError: the model does not fit into memory.
        RunError: the training split or the selecting split is empty.
        TaskError: a split cannot be generated."""
    require_memory(plan, fabric.device)
    splits = load_splits(plan.task.name, plan.task.statics, task, task.split_names(), console)
    for name in ("train", settings.selecting[0]):
        if not len(splits[name]):
            raise mistakes.empty_split(plan.task.name, name)
    return Workload(settings, task, splits, fabric.device)


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
    return Setup(fabric, module, test_module or module, make_optimizer(plan.train, module, precision))
