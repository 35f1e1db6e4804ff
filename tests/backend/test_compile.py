"""torch.compile of whole modules, without graph breaks except at linear recurrences."""

from collections.abc import Callable, Iterator

import pytest
import torch

from archlang.backend.architecture import Architecture
from tests.closeness import close, same_gradients
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
    torch.compiler.reset()
    # `fullgraph` raises where a model needs more than one graph.
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


LINEAR = """
model linear_mixer[d = 4](x: tokens[n]) -> logits[n, 3] {
    h = embed[d](x)
    stack 2 {
        y = norm(h)
        h <- h + delta_rule[heads = 1](unit_norm(y), unit_norm(y), linear[d](y), sigmoid(linear[1](y)))
    }
    return linear[3](h)
}
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_linear_recurrence_divides_a_model_once_for_all_lengths(compiled: Compiled) -> None:
    module, graphs = compiled(LINEAR), list[int]()
    lengths = [torch.zeros(2, length, dtype=torch.int64) for length in (70, 130, 200)]
    expected = [module(x) for x in lengths]

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        graphs.append(len(inputs))
        return graph.forward

    torch.compiler.reset()
    function = torch.compile(module, backend=backend)
    counts = []
    for x, result in zip(lengths, expected, strict=True):
        close(function(x), result)
        counts.append(len(graphs))
    # The second length compiles the parts between recurrences once more, with symbols for the sizes.
    assert 0 < counts[0] < counts[1] < 3 * counts[0]
    assert counts[2] == counts[1]


WRITTEN = """model page(x: tokens[n]) -> logits[n, 2] {
    h = embed[8](x)
    return linear[2](weigh[causal = true](softmax_keys[causal = true](scores[2](h, h)), h))
}"""
BOTH_SIDES = WRITTEN.replace("[causal = true](softmax_keys[causal = true]", "(softmax_keys[window = 2]")


@pytest.mark.parametrize(
    ("page", "lengths", "is_fused"), [(WRITTEN, None, True), (WRITTEN, [5, 3], False), (BOTH_SIDES, None, False)]
)
def test_attention_that_a_page_writes_holds_no_map_where_torch_compiles_without_masks(
    page: str, lengths: list[int] | None, is_fused: bool, compiled: Compiled
) -> None:
    module, operations = compiled(page), set[str]()

    def note(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        operations.update(str(getattr(node.target, "__name__", "")) for node in graph.graph.nodes)
        return graph

    x = torch.randint(0, 11, (2, 5))
    close(torch.compile(module, fullgraph=True, backend=note)(x, lengths=lengths), module(x, lengths=lengths))
    assert ("scaled_dot_product_attention" in operations) == is_fused


@pytest.mark.parametrize("derivative", [torch.func.jacrev, torch.func.jacfwd, torch.func.hessian])
def test_compiled_attention_that_a_page_writes_has_the_derivatives_of_plain_forms(
    derivative: Callable[..., Callable[..., torch.Tensor]], compiled: Compiled
) -> None:
    module, x = compiled(WRITTEN), torch.randint(0, 11, (1, 4))

    def loss(table: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.func.functional_call(module, {"embed.weight": table}, (x,))
        return result.square().sum()

    table = module.state_dict()["embed.weight"]
    expected = derivative(loss)(table)
    close(torch.compile(derivative(loss), backend="eager")(table), expected)
