"""The model of every sequence-to-sequence recipe decodes the same with and without a cache, and with a cache it
processes each position once."""

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
from archlang.plan.from_file import plan_first_point
from archlang.plan.plan import Plan
from archlang.resolve.resolve import ResolvedFile, load_file
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.task import Kind
from tests.closeness import close
from tests.sampling import one_in
from tests.shipped_models import noisy

RECIPES = Path(archlang.__file__).parent / "recipes"
FOLDERS = (RECIPES / "papers" / "devil", RECIPES / "papers" / "panm", RECIPES / "mixed")
PAGES = [page for folder in FOLDERS for page in sorted(folder.glob("*.arch"))]
SMALL = {"d": "16", "heads": "2", "ff": "16", "layers": "2", "hidden": "8", "width": "4", "bits": "4"}
SOURCE = 9


def small(file: ResolvedFile, recipe: str) -> Plan:
    settings = plan_first_point(file, recipe, None).settings
    sizes = {f"model.{key}": size for key, size in SMALL.items() if f"model.{key}" in settings}
    return plan_first_point(file, recipe, sizes)


@cache
def plans(page: Path) -> dict[str, Plan]:
    """Returns the plans of the different sequence-to-sequence models of a page, by the names of their first recipes."""
    by_graph: dict[str, tuple[str, Plan]] = {}
    file = load_file(page)
    for recipe in file.recipes:
        plan = small(file, recipe)
        task = make_task(plan.task.name, plan.task.python, plan.task.statics)
        if task.kind is Kind.SEQ2SEQ:
            by_graph.setdefault(str(plan.graph), (recipe, plan))
    return dict(by_graph.values())


@cache
def model(page: Path, recipe: str) -> Architecture:
    torch.manual_seed(0)
    return noisy(build(plans(page)[recipe].graph), 0.3)


def inputs_of(module: Architecture) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Returns a ragged batch of all fields except the target, and their lengths."""
    torch.manual_seed(1)
    graph = module.program.graph
    inputs = [value for index, value in enumerate(graph.region.inputs) if index != target_of(graph)]
    fields = []
    for value in inputs:
        assert value.type.feature is not None
        size = value.type.feature.constant
        assert size is not None
        tokens = value.type.name == "tokens"
        shape = (4, SOURCE)
        fields.append(torch.randint(0, size, shape) if tokens else torch.rand(*shape, size, dtype=torch.float64))
    return fields, {value.name: torch.tensor([SOURCE, 1, 4, SOURCE - 1]) for value in inputs}


# The same model on other pages, whose programs of 14 modules are long.
REPEATED = {("reverse", "nram"), ("mix", "nram"), ("dynamic_recall", "nram")}
EVERY = [pytest.param(page, id=f"{page.parent.name}-{page.stem}") for page in PAGES]


def models(page: Path) -> list[Architecture]:
    return [model(page, recipe) for recipe in plans(page) if (page.stem, recipe) not in REPEATED]


def decoded(module: Architecture, begin: int | Tensor, steps: int, cached: bool) -> Decoded:
    fields, lengths = inputs_of(module)
    torch.manual_seed(2)  # for models that draw in evaluation mode
    return module.decode(*fields, lengths=lengths, begin=begin, limit=steps, cache=cached)


@pytest.mark.parametrize("page", one_in(3, EVERY))
def test_decoding_with_a_cache_equals_decoding_without(page: Path) -> None:
    begin = torch.tensor([[0, 1, 2, 3], [3, 3, 0, 1], [1, 0, 0, 2], [2, 1, 3, 0]])
    for module in models(page):
        cached_run, expected = (decoded(module, begin, 8, cached) for cached in (True, False))
        assert cached_run.choices.equal(expected.choices)
        assert cached_run.tokens.equal(expected.tokens)
        close(cached_run.logits, expected.logits)


class Products(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no types for it
    """Counts the scalar multiplications in matrix products."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # as above
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # Any: as torch
        result = function(*args, **kwargs or {})
        if function in PRODUCTS:
            self.count += result.numel() * args[-1].shape[-2]
        return result


PRODUCTS = {torch.ops.aten.mm.default, torch.ops.aten.addmm.default, torch.ops.aten.bmm.default}


def products(module: Architecture, steps: int, cached: bool) -> int:
    counter = Products()
    with counter:
        decoded(module, 0, steps, cached)
    return counter.count


@pytest.mark.slow
@pytest.mark.parametrize("page", EVERY)
def test_with_a_cache_the_cost_of_a_step_does_not_grow(page: Path) -> None:
    for module in models(page):
        first, second, third = (products(module, steps, cached=True) for steps in (8, 16, 24))
        # Without a cache the factor is 1.64. If a loop halts later, it repeats steps for earlier positions.
        halts = any(isinstance(node.operation, Halting) for node in module.program.graph.region.walk())
        assert third - second <= (1.5 if halts else 1.01) * (second - first)
        assert second <= (0.3 if halts else 0.2) * products(module, 16, cached=False)
