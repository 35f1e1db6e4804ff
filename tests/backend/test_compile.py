"""torch.compile of whole modules, without graph breaks."""

from collections.abc import Iterator

import pytest
import torch

from archlang.backend.architecture import Architecture
from tests.closeness import same_gradients
from tests.conftest import Compiled
from tests.shipped_models import SHIPPED, shipped_batch, shipped_model

RECURRENT = ("recurrent", "bidirectional", "panm_bigru", "panm_lstm", "panm_seq2seq")
"""Models with torch's LSTM or GRU, which torch compiles only with `torch._dynamo.config.allow_rnn`."""


@pytest.fixture(autouse=True)
def with_recurrent_networks(unchecked: None) -> Iterator[None]:
    with torch._dynamo.config.patch(allow_rnn=True):
        yield


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in ("adaptive", "recurrent") else pytest.mark.slow) for name in SHIPPED],
)
def test_a_shipped_model_compiles_to_one_graph(name: str) -> None:
    module = shipped_model(name)
    fields, lengths = shipped_batch(module, 3, 9)
    expected = module(*fields, lengths=lengths)
    depth = module.sample_depth
    explained = torch._dynamo.explain(module)(*fields, lengths=lengths)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)
    torch.compiler.reset()
    result = torch.compile(module, fullgraph=True, backend="eager")(*fields, lengths=lengths)
    assert (result - expected).abs().max() < 2e-6
    if depth is not None:
        assert module.sample_depth is not None
        assert torch.equal(module.sample_depth, depth)


SELF_ATTENTION = """model small(x: tokens[n]) -> logits[n, classes] {
    h = embed[4](x)
    return linear[classes](h + attention[1, causal = true](h))
}"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("with_gradients", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_compiled_causal_attention_takes_further_lengths(compiled: Compiled, with_gradients: bool) -> None:
    _takes_further_lengths(compiled(SELF_ATTENTION).eval(), "aot_eager", with_gradients)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SHIPPED)
def test_a_compiled_model_takes_further_lengths(name: str) -> None:
    _takes_further_lengths(shipped_model(name), "eager", False)


def _takes_further_lengths(module: Architecture, backend: str, with_gradients: bool) -> None:
    torch.compiler.reset()
    function = torch.compile(module, fullgraph=True, backend=backend)
    for length in (9, 12):
        fields, _ = shipped_batch(module, 2, length)
        with torch.set_grad_enabled(with_gradients):
            result, expected = function(*fields), module(*fields)
        assert (result - expected).abs().max() < 2e-6
        if with_gradients:
            same_gradients(result, expected, module.parameters(), tolerance=1e-5)
