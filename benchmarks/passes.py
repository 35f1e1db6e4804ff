"""Models of the papers' recipes with a compiler pass, or with archlang's dropout, against the same without it."""

import copy
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch
from torch import Tensor

from archlang.backend import Architecture
from archlang.backend.attach import rematerialize_bodies
from archlang.backend.kernels import dropout as kernel
from archlang.compile import build
from archlang.elaborate.signature_check import load_file
from archlang.plan.from_file import plan_first_point
from benchmarks.comparison import ModelPair, cases_of, train
from benchmarks.measure import Case, Group, Setting, Sides

_PAPERS = Path(__file__).parent.parent / "recipes" / "papers"


@dataclass(frozen=True)
class Recipe:
    """A recipe, and the sizes of a batch of its paper. `tiny` are settings for tests."""

    file: str
    name: str
    batch: int
    length: int
    sets: Mapping[str, str] = field(default_factory=dict)
    tiny: Mapping[str, str] = field(default_factory=dict)


_SMALL = {"model.d": "16"}
_NDR = Recipe("ndr/table1.arch", "absrel_gate", 512, 12, tiny=_SMALL)
_ROUTED = Recipe("ndr/listops.arch", "absrel_gate", 64, 40, tiny=_SMALL)
_GUT = Recipe("dynamic_halt/listops.arch", "gut", 32, 100, tiny=_SMALL)
_GUTLB = Recipe("dynamic_halt/listops.arch", "gutlb", 32, 100, tiny=_SMALL)
_TLB = Recipe("dynamic_halt/listops.arch", "tlb", 32, 100, tiny=_SMALL)
_SCAN = Recipe("devil/scan_length.arch", "universal_relative", 256, 20, tiny=_SMALL)
_PONDERNET = Recipe("field/pondernet.arch", "pondernet", 128, 64, tiny={"model.width": "8", "model.steps": "2"})
_DNC = Recipe("ndr/table1.arch", "dnc", 256, 12)
_NTM = Recipe("panm/copy.arch", "baseline", 128, 10, {"model.system": "ntm"})
# Keys: the pass that the baseline omits.
MODELS: Mapping[str, Mapping[str, Recipe]] = {
    "invariants": {"GUTLB, ListOps": _GUTLB, "PonderNet": _PONDERNET},
    "common": {"DNC, table lookup": _DNC, "GUT, ListOps": _GUT},
    "batch_chunks": {"NTM, copy": _NTM, "DNC, table lookup": _DNC, "TLB, ListOps": _TLB},
}
REMATERIALIZED = {"GUT, ListOps": _GUT, "NDR, table lookup": _NDR}
DROPPING = {"NDR, table lookup": _NDR, "NDR, ListOps": _ROUTED, "GUT, ListOps": _GUT, "SCAN": _SCAN}


def model_pair(recipe: Recipe, without: str, setting: Setting) -> ModelPair:
    """Returns the model of a recipe with and without a pass, with equal weights, and a loss on random tokens."""
    sets = {**recipe.sets, **(recipe.tiny if setting.tiny else {})}
    graph = plan_first_point(load_file(_PAPERS / recipe.file), recipe.name, sets).graph
    torch.manual_seed(0)
    ours = build(graph)
    torch.manual_seed(0)
    theirs = build(graph, without=(without,))
    batch, length = (3, 25) if setting.tiny else (recipe.batch, recipe.length)
    torch.manual_seed(1)
    inputs = ours.program.inputs
    fields = [torch.randint(0, each.vocabulary or 1, (batch, length), device=setting.device) for each in inputs]

    def loss(module: torch.nn.Module) -> Tensor:
        result: Tensor = module(*fields)
        ponder = module.ponder
        assert isinstance(ponder, Tensor)
        return result.square().mean() + 0.1 * ponder

    return ModelPair(ours, theirs, loss)


def _dropout_sides(recipe: Recipe, setting: Setting) -> Sides:
    """Returns training steps with archlang's dropout and with torch's."""
    trial = model_pair(recipe, "common", setting)
    step = partial(train, trial.ours.to(setting.device).train(), trial.loss)
    return Sides(step, partial(_with_torch_dropout, step))


def _remat_sides(recipe: Recipe, setting: Setting) -> Sides:
    """Returns training steps that keep only the states of a loop's steps, and that keep all."""
    trial = model_pair(recipe, "common", setting)
    again = copy.deepcopy(trial.ours)
    assert isinstance(again, Architecture)
    rematerialize_bodies(again, again.program.code)
    return Sides(*(partial(train, model.to(setting.device).train(), trial.loss) for model in (again, trial.ours)))


def _with_torch_dropout(step: Callable[[], None]) -> None:
    with patch.object(kernel, "LEAST", sys.maxsize):
        step()


def _cases(setting: Setting) -> Iterator[Case]:
    for model, recipe in DROPPING.items():
        yield Case(f"dropout, {model}, training step", "torch's own dropout", partial(_dropout_sides, recipe, setting))
    for model, recipe in REMATERIALIZED.items():
        beside = "steps that keep what they compute"
        yield Case(f"remat, {model}, training step", beside, partial(_remat_sides, recipe, setting))
    for name, recipes in MODELS.items():
        trials = {f"{name}, {model}": partial(model_pair, recipe, name) for model, recipe in recipes.items()}
        yield from cases_of(trials, setting, f"the model without the pass `{name}`")


GROUP = Group("passes", "Models of the papers' recipes, on random tokens of one length.", _cases)
