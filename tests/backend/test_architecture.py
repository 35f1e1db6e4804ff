"""Claims about compiled modules as modules: their call, their weights, their copies."""

import copy
import io
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.architecture import Architecture
from archlang.compile import build
from tests.closeness import close
from tests.conftest import Compiled
from tests.shipped_models import SHIPPED, shipped_batch, shipped_model

EVERYTHING = """
block layer[heads: int](h: seq[n, d]) -> seq[n, d] {
    a = norm(h + attention[heads](h))
    return copy_gate(gate[8](a), a + feedforward[8](a), h)
}

model everything[d = 4](x: tokens[n]) -> logits[classes] {
    h = start_end(embed[d](x))
    m = learned[3, d, init = normal]()
    y = scan c in chunks[3](h) carry m {
        stack 2 { c <- layer[2](c) + 0.5 * norm(c) }
        repeat 3 halting c as s by token_halt[0.9, transition = true] {
            c <- c + attention[1](norm(s), norm(m))
        }
        repeat 2 { m <- m + attention[2](m, c) }
        emit c
    }
    return linear[classes](mean(y) - last(y))
}
"""
TRANSLATOR = """
model translator[d = 4](source: tokens[n], target: tokens[m]) -> logits[m, vocab] {
    let e = embed[d]
    return e(target) + attention[1](e(target), e(source)) |> unembed[e]
}
"""


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, 11, (3, 7)), torch.tensor([7, 2, 5])


@pytest.mark.usefixtures("unchecked")
def test_a_model_without_halting_compiles_as_one_graph_of_torch(compiled: Compiled) -> None:
    module = compiled(
        EVERYTHING.replace("halting c as s by token_halt[0.9, transition = true]", "").replace("(s)", "(c)")
    )
    x, lengths = batch()
    fast = torch.compile(module, backend="eager", fullgraph=True)
    close(fast(x, lengths=lengths), module(x, lengths=lengths))


# Weights


def test_weights_are_named_by_their_place_in_the_program(compiled: Compiled) -> None:
    module = compiled(EVERYTHING)
    maps = ("query", "key", "value", "output")
    layer = ["norm", *(f"attention.{name}" for name in maps), "gate.hidden", "gate.output"]
    layer += ["feedforward.hidden", "feedforward.output"]
    wanted = {"embed", "start_end", "learned", "token_halt.hidden", "token_halt.output", "norm", "norm_2", "linear"}
    wanted |= {f"{name}.{part}" for name in ("attention", "attention_2") for part in maps}
    wanted |= {f"stack.{step}.{name}" for step in (0, 1) for name in ("norm", *(f"layer.{part}" for part in layer))}
    assert {name.rpartition(".")[0] for name in module.state_dict()} == wanted


def test_a_shared_instance_is_in_the_state_dict_once(compiled: Compiled) -> None:
    module = compiled(TRANSLATOR)
    assert sorted(name for name in module.state_dict() if "attention" not in name) == ["e.weight", "unembed.bias"]
    assert "e.weight" in dict(module.named_parameters())


def test_a_copy_has_separate_weights_in_every_loop(compiled: Compiled) -> None:
    module = compiled(EVERYTHING)
    x, lengths = batch()
    before = module(x, lengths=lengths)
    twin = copy.deepcopy(module)
    torch.testing.assert_close(twin(x, lengths=lengths), before, rtol=0, atol=0)
    assert not {id(weight) for weight in module.parameters()} & {id(weight) for weight in twin.parameters()}
    with torch.no_grad():
        for weight in twin.parameters():
            weight.zero_()
    torch.testing.assert_close(module(x, lengths=lengths), before, rtol=0, atol=0)
    assert twin(x, lengths=lengths).abs().sum() == 0
    twin.load_state_dict(module.state_dict())
    torch.testing.assert_close(twin(x, lengths=lengths), before, rtol=0, atol=0)


def test_a_copy_of_a_shared_instance_is_shared_by_the_copy(compiled: Compiled) -> None:
    twin = copy.deepcopy(compiled(TRANSLATOR))
    source, target = torch.randint(0, 11, (2, 3)), torch.randint(0, 11, (2, 3))
    before = twin(source, target)
    with torch.no_grad():
        twin.get_parameter("e.weight").mul_(2)
    twin.get_parameter("e.weight").requires_grad_(False)
    assert not torch.allclose(twin(source, target), before, atol=1e-4)
    assert len(list(twin.parameters())) == 6


def test_precision_and_mode_reach_the_blocks_in_loops(compiled: Compiled) -> None:
    module = compiled(EVERYTHING.replace("gate[8]", "gate[8, dropout = 0.9]"))
    x, lengths = batch()
    assert not torch.equal(module(x, lengths=lengths), module(x, lengths=lengths))
    module.eval()
    assert torch.equal(module(x, lengths=lengths), module(x, lengths=lengths))
    assert module.double()(x, lengths=lengths).dtype == torch.float64


def test_loops_call_a_module_that_replaces_a_block(compiled: Compiled) -> None:
    class Zero(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.zeros_like(x)

    module = compiled(
        "model m(x: tokens[n]) -> logits[n, 4] { h = embed[4](x) stack 2 { repeat 2 { h <- norm(h) } } return h }"
    )
    for step in range(2):
        setattr(module.get_submodule(f"stack.{step}"), "norm", Zero())  # noqa: B010
    assert module(torch.randint(0, 11, (2, 3))).abs().sum() == 0


def _unpickled(module: Architecture) -> Architecture:
    copied: Architecture = pickle.loads(pickle.dumps(module))
    return copied


def _saved(module: Architecture) -> Architecture:
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


def _compute(module: Architecture, tokens: Tensor) -> list[list[float]]:
    result: list[list[float]] = module(tokens).tolist()
    return result


@pytest.mark.slow
def test_a_module_can_be_sent_to_a_spawned_process(compiled: Compiled) -> None:
    module = compiled(_NESTED).eval()
    tokens = torch.randint(0, 11, (2, 5))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        received = processes.submit(_compute, module, tokens).result(timeout=100)
    assert received == module(tokens).tolist()
