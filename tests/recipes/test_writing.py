"""Every recipe whose answers are sequences: its model writes with a cache what it writes without, and looks at each
position once."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import archlang
from archlang.backend.architecture import Architecture
from archlang.backend.decode.greedy import Decoded, target_of
from archlang.compile import build
from archlang.graph.operations import Halting
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.syntax import parse
from archlang.syntax.parser import read
from archlang.syntax.tree import Recipe
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.task import Kind

RECIPES = Path(archlang.__file__).parent / "recipes"
FOLDERS = (RECIPES / "papers" / "devil", RECIPES / "papers" / "panm", RECIPES / "mixed")
PAGES = [page for folder in FOLDERS for page in sorted(folder.glob("*.arch"))]
SMALL = {"d": "16", "heads": "2", "ff": "16", "layers": "2", "hidden": "8", "width": "4", "bits": "4"}
SOURCE = 9


def name(page: Path) -> str:
    return f"{page.parent.name}-{page.stem}"


def small(page: Path, recipe: str) -> Plan:
    settings = plan_recipe(page, recipe).settings
    return plan_recipe(
        page, recipe, {f"model.{key}": size for key, size in SMALL.items() if f"model.{key}" in settings}
    )


@cache
def models(page: Path) -> dict[str, Architecture]:
    """The different models of a page's recipes whose answers are sequences, by one of the recipes of each."""
    found: dict[str, tuple[str, Plan]] = {}
    for item in parse(read(page)).items:
        if isinstance(item, Recipe):
            one = small(page, item.name)
            task = make_task(one.task.name, one.task.python, one.task.statics)
            if task.kind is Kind.SEQ2SEQ:
                found.setdefault(str(one.graph), (item.name, one))
    return {recipe: moved(build(one.graph)) for recipe, one in found.values()}


def moved(module: Architecture) -> Architecture:
    """Weights far from where they start, so that answers are not all alike."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module.double().eval()


def given(module: Architecture) -> tuple[list[Tensor], dict[str, Tensor]]:
    """A ragged batch for all fields but the one that is written."""
    torch.manual_seed(1)
    graph = module.program.graph
    others = [value for index, value in enumerate(graph.region.inputs) if index != target_of(graph)]
    fields = []
    for value in others:
        assert value.type.feature is not None
        size = value.type.feature.constant
        assert size is not None
        tokens = value.type.name == "tokens"
        shape = (4, SOURCE)
        fields.append(torch.randint(0, size, shape) if tokens else torch.rand(*shape, size, dtype=torch.float64))
    return fields, {value.name: torch.tensor([SOURCE, 1, 4, SOURCE - 1]) for value in others}


EVERY = [pytest.param(page, recipe, id=f"{name(page)}-{recipe}") for page in PAGES for recipe in models(page)]


def written(module: Architecture, begin: int | Tensor, steps: int, cached: bool) -> Decoded:
    fields, lengths = given(module)
    torch.manual_seed(2)  # for the models that draw at test time too
    return module.decode(*fields, lengths=lengths, begin=begin, limit=steps, cache=cached)


@pytest.mark.parametrize(("page", "recipe"), EVERY)
def test_with_a_cache_a_model_writes_what_it_writes_without(page: Path, recipe: str) -> None:
    module = models(page)[recipe]
    begin = torch.tensor([[0, 1, 2, 3], [3, 3, 0, 1], [1, 0, 0, 2], [2, 1, 3, 0]])
    found, expected = (written(module, begin, 8, cached) for cached in (True, False))
    assert found.choices.equal(expected.choices)
    assert found.tokens.equal(expected.tokens)
    torch.testing.assert_close(found.logits, expected.logits, rtol=1e-10, atol=1e-10)


class Products(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no types for it
    """Counts the multiplications of matrix products."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # as above
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # Any: as torch
        found = function(*args, **kwargs or {})
        if function in PRODUCTS:
            self.count += found.numel() * args[-1].shape[-2]
        return found


PRODUCTS = {torch.ops.aten.mm.default, torch.ops.aten.addmm.default, torch.ops.aten.bmm.default}


def products(module: Architecture, steps: int, cached: bool) -> int:
    counted = Products()
    with counted:
        written(module, 0, steps, cached)
    return counted.count


@pytest.mark.parametrize(("page", "recipe"), EVERY)
def test_with_a_cache_each_step_costs_about_as_much_as_the_one_before(page: Path, recipe: str) -> None:
    module = models(page)[recipe]
    first, second, third = (products(module, steps, cached=True) for steps in (8, 16, 24))
    # Without a cache it is 1.64. A loop that halts later than ever before does more steps for what it has read, too.
    halts = any(isinstance(node.operation, Halting) for node in module.program.graph.region.walk())
    assert third - second <= (1.5 if halts else 1.01) * (second - first)
    assert second <= (0.3 if halts else 0.2) * products(module, 16, cached=False)
