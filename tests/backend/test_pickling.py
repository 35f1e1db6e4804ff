"""Copies of modules: by copy.deepcopy, by pickle, by torch.save, in another process."""

import copy
import io
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from archlang.backend.runtime.loop_bodies import compile_bodies
from archlang.compile import build
from tests.conftest import Compiled
from tests.shipped_models import SHIPPED, shipped_batch, shipped_model

if TYPE_CHECKING:
    from archlang.backend import Architecture


def _unpickled(module: "Architecture") -> "Architecture":
    copied: Architecture = pickle.loads(pickle.dumps(module))
    return copied


def _saved(module: "Architecture") -> "Architecture":
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    copied: Architecture = torch.load(file, weights_only=False)
    return copied


@pytest.mark.parametrize("name", SHIPPED)
def test_a_copy_of_a_shipped_model_computes_exactly_what_the_model_computes(name: str) -> None:
    module = shipped_model(name)
    fields, lengths = shipped_batch(module, 3, 9)
    expected = module(*fields, lengths=lengths)
    for copied in (_unpickled(module), _saved(module), copy.deepcopy(module)):
        assert torch.equal(copied(*fields, lengths=lengths), expected)
        assert torch.equal(copied.ponder, module.ponder)


def test_a_copy_of_a_model_that_draws_its_addresses_is_exact_with_the_same_seed() -> None:
    module = shipped_model("panm_bigru", base="always")
    fields, lengths = shipped_batch(module, 3, 9)
    torch.manual_seed(1)
    expected = module(*fields, lengths=lengths)
    copied = copy.deepcopy(module)
    assert not torch.equal(module(*fields, lengths=lengths), expected)  # other addresses
    torch.manual_seed(1)
    assert torch.equal(copied(*fields, lengths=lengths), expected)


_NESTED = """model nested(x: tokens[n]) -> logits[classes] {
    h = embed[8](x)
    stack 2 { repeat 2 { h <- h + attention[2](norm(h)) } }
    return h |> last |> linear[classes]
}"""


def test_a_copy_keeps_the_choice_to_compute_chunk_by_chunk() -> None:
    origin = shipped_model("temporal_latent_bottleneck").program.origin
    assert origin is not None
    module = build(origin.graph, without={"batch_chunks"})
    assert _unpickled(module).program.context.without == {"batch_chunks"}


def test_a_copy_of_a_module_with_loop_bodies_runs_eagerly(compiled: Compiled) -> None:
    module = compiled(_NESTED).eval()
    tokens = torch.randint(0, 11, (2, 5))
    expected = module(tokens)
    compile_bodies(module, "eager")
    assert torch.equal(_unpickled(module)(tokens), expected)


def _compute(module: "Architecture", tokens: Tensor) -> list[list[float]]:
    result: list[list[float]] = module(tokens).tolist()
    return result


@pytest.mark.slow
def test_a_module_can_be_sent_to_a_spawned_process(compiled: Compiled) -> None:
    module = compiled(_NESTED).eval()
    tokens = torch.randint(0, 11, (2, 5))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        received = processes.submit(_compute, module, tokens).result(timeout=100)
    assert received == module(tokens).tolist()
