"""The baselines of Pointer-Augmented Neural Memory at their published sizes, and on padded batches."""

import pytest
import torch

from archlang.backend.architecture import Architecture
from archlang.compile import compile_graph
from tests.closeness import close
from tests.conftest import Compiled as Compile
from tests.semantics.compiled import Compiled
from tests.semantics.properties import equals_the_interpreter
from tests.shipped_models import library_page, load_page

# Of 12 inputs and 10 outputs. Location attention has blank inputs of 12 numbers here, of 10 in its program, and the
# program of content attention has two tables of embeddings that it never uses.
SIZES = {
    "lstm": 1_083_402,
    "location": 3_796_590 + 2 * 512,
    "content": 6_323_722 - 267_264,
    "hybrid": 6_899_310,
    "transformer": 1_060_106,
    "neural_stack": 1_177_868,
    "pointer_network": 4_733_952,
}
PROGRAM = """
use archlang.models.algorithmic_baselines

model program[e: int, v: int, system: symbol](
    x: seq[n, e], symbols: seq[n, v], blank: seq[t, e]) -> logits[t, 10] {
    return baseline_answers[10, system](x, symbols, blank)
}
"""
VISITS = """
use archlang.models.pointer_network

model program[layers: int](x: seq[n, 128]) -> logits[n, n] {
    return visited[hidden = 512, layers, both = true](x)
}
"""


def size(module: Architecture) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("system", SIZES)
def test_a_system_is_as_large_as_published(system: str, compiled: Compile) -> None:
    symbols = 10 if system == "pointer_network" else 12
    assert size(compiled(PROGRAM, e=12, v=symbols, system=system)) == SIZES[system]


def test_esbn_is_as_large_as_its_authors_with_their_encoder_of_pictures(compiled: Compile) -> None:
    assert size(compiled(PROGRAM, e=1024, v=12, system="esbn")) == 2_405_261


def test_a_pointer_network_that_visits_points_is_as_large_as_its_program(compiled: Compile) -> None:
    # The program's embedding of points in the plane has 3 * 128 parameters, and its first input is not trained.
    assert size(compiled(VISITS, layers=2)) + 3 * 128 - 128 == 4_733_312


def test_each_position_is_visited_once() -> None:
    module = load_page("pointer_network", "pointer_network", vocab=6, d=5, hidden=8).eval()
    probabilities = module(torch.randint(0, 6, (2, 7)), lengths=torch.tensor([7, 4]))[..., 0]
    for row, length in enumerate((7, 4)):
        real = probabilities[row, :length, :length]
        close(real.sum(1), torch.ones(length))
        assert real.argmax(1).sort().values.tolist() == list(range(length))
        # Once visited, a position has no more probability.
        for step, place in enumerate(real.argmax(1).tolist()):
            assert real[step + 1 :, place].eq(0).all()


@pytest.mark.parametrize("system", [*SIZES, "esbn", "ntm"])
def test_a_system_equals_the_reference_interpreter_sample_by_sample(system: str) -> None:
    path = library_page("algorithmic_baselines")
    sizes = {"hidden": 4, "slots": 6, "d": 4, "heads": 2, "ff": 5, "layers": 1}
    sizes |= {"width": 3, "key": 3, "wide": 4, "narrow": 3}
    graph = compile_graph(path, "algorithmic_baseline", {"vocab": 4, "system": system, **sizes, "p": 0.0})
    equals_the_interpreter(Compiled(path.read_text(encoding="utf-8"), graph, causal=False), seed=1)
