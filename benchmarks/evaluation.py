"""Evaluations of recipes as CUDA graphs, against the same evaluations one operation at a time."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from archlang.compile import build
from archlang.plan.from_file import plan_recipe
from archlang.tasks.kit import cache
from archlang.tasks.kit.make_task import make_task
from archlang.train.cuda_graph import CudaGraphEvaluation, make_capture
from archlang.train.data import DeviceSplit
from archlang.train.score import evaluate
from benchmarks.measure import Case, Group, Setting, Sides

_PAPERS = Path(__file__).parent.parent / "recipes" / "papers" / "ndr"
# The file and the recipe of each case.
_RECIPES = {
    "NDR, table lookup": ("table1.arch", "ndr"),
    "adaptive computation time, table lookup": ("act.arch", "adaptive_geom"),
}
_SMALL = {"model.d": "16", "model.heads": "2", "model.ff": "16", "task.test_size": "40"}


def _sides(name: str, setting: Setting) -> Sides:
    file, recipe = _RECIPES[name]
    plan = plan_recipe(_PAPERS / file, recipe, sets=_SMALL if setting.tiny else {})
    task = make_task(plan.task.name, plan.task.python, plan.task.statics)
    split = cache.load(plan.task.name, plan.task.statics, task, "test", cache.DATA_SEED)
    module, data = build(plan.graph).to(setting.device).eval(), DeviceSplit(split, setting.device)
    run = partial(evaluate, module, data, split, "test", task)
    if setting.device.type != "cuda":
        return Sides(run, run)
    graphs = CudaGraphEvaluation(module, make_capture(setting.device))
    return Sides(partial(run, compute=graphs), run)


def _cases(setting: Setting) -> Iterator[Case]:
    for name in _RECIPES:
        yield Case(f"{name}, an evaluation", "one operation at a time", partial(_sides, name, setting))


GROUP = Group("evaluation", "The test split of a recipe, with new weights: loss and metrics.", _cases)
