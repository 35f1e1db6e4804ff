"""Claims about the models of the library: their sizes in the papers, depth, gates, halting, addresses and gradients."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.architecture import Architecture
from archlang.blocks.embed import Embed
from archlang.blocks.feedforward import Feedforward
from archlang.blocks.positions import AbsolutePositions
from archlang.compile import compile_graph
from tests.closeness import close, same_gradients
from tests.conftest import Compiled as Compile
from tests.semantics.compiled import Compiled
from tests.semantics.properties import equals_the_interpreter
from tests.shipped_models import library_page, load_page, noisy, shipped_batch, shipped_model

# Published sizes

BASELINES = """
use archlang.models.algorithmic_baselines
model m[e: int, v: int, system: symbol](x: seq[n, e], symbols: seq[n, v], blank: seq[t, e]) -> logits[t, 10] {
    return baseline_answers[10, system](x, symbols, blank)
}
"""
ANSWERS = "use archlang.models.{}\nmodel m(x: seq[n, 12], blank: seq[t, 12]) -> seq[t, 10] {{ return {}(x, blank) }}"
VISITS = """
use archlang.models.pointer_network
model m[layers: int](x: seq[n, 128]) -> logits[n, n] { return visited[hidden = 512, layers, both = true](x) }
"""
SYSTEMS = {"lstm": 12, "location": 12, "content": 12, "hybrid": 12, "transformer": 12, "neural_stack": 12}
SYSTEMS |= {"pointer_network": 10}
# The tables of PANM: 12 inputs and 10 outputs; with the weights that only the paper's program has, or only the page.
PROGRAMS: dict[str, tuple[str, dict[str, Any], int]] = {  # Any: statics of any kind
    **{
        system: (BASELINES, {"e": 12, "v": SYSTEMS[system], "system": system}, size)
        for system, size in {
            "lstm": 1_083_402,
            "location": 3_796_590 + 2 * 512,  # blank inputs of 12 numbers, of 10 in its program
            "content": 6_323_722 - 267_264,  # two tables of embeddings that its program never uses
            "hybrid": 6_899_310,
            "transformer": 1_060_106,
            "neural_stack": 1_177_868,
            "pointer_network": 4_733_952,
        }.items()
    },
    "esbn, with its authors' encoder of pictures": (BASELINES, {"e": 1024, "v": 12, "system": "esbn"}, 2_405_261),
    # The program embeds points of the plane by 3 * 128 weights, and its first input is not trained.
    "a pointer network that visits points": (VISITS, {"layers": 2}, 4_733_312 - 3 * 128 + 128),
    # The program has norms of its heads' interfaces, 280 weights, which it never uses.
    "ntm": (ANSWERS.format("neural_turing_machine", "turing_answers[10]"), {}, 1_221_358 - 2 * (38 + 102)),
    "dnc": (ANSWERS.format("differentiable_neural_computer", "computed_answers[10, form = panm]"), {}, 1_218_002),
}
CLASSES, LISTOPS = {"vocab": 21, "classes": 8}, {"d": 512, "heads": 16, "ff": 1024, "vocab": 17, "classes": 10}
PAGES: list[tuple[str, str, dict[str, Any], int]] = [  # Any: as above
    # The program of NDR has an unused map of positions, d * d, for its relative attention.
    ("data_router", "ndr", CLASSES, 731_405 - 256 * 256),
    ("data_router", "ndr", LISTOPS, 2_918_957 - 512 * 512),
    # 34,448 weights of PANM's program belong to unused embeddings; it has ten symbols, the page twelve.
    ("panm", "panm_bigru", {"vocab": 12}, 756_010 - 34_448 + 2 * (4 * 128 + 1)),
    # The embedding of NDR's program has a row more, for its end token.
    ("differentiable_neural_computer", "dnc_classifier", {"vocab": 20, "classes": 8, "embedding": 16}, 1_303_559),
    ("differentiable_neural_computer", "dnc_classifier", {"vocab": 15, "classes": 10, "embedding": 200}, 1_453_841),
]


def size(module: Architecture) -> int:
    """Returns the number of trained weights."""
    return sum(weight.numel() for name, weight in module.named_parameters() if "fixed_state" not in name)


@pytest.mark.parametrize(("text", "statics", "published"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_is_as_large_as_published(text: str, statics: Any, published: int, compiled: Compile) -> None:
    assert size(compiled(text, **statics)) == published


@pytest.mark.parametrize(("page", "model", "statics", "published"), PAGES)
def test_a_model_is_as_large_as_published(page: str, model: str, statics: dict[str, Any], published: int) -> None:
    assert size(load_page(page, model, **statics)) == published


@pytest.mark.parametrize("system", [*SYSTEMS, "esbn", "ntm"])
def test_a_baseline_equals_the_reference_interpreter_sample_by_sample(system: str) -> None:
    path = library_page("algorithmic_baselines")
    sizes = {"hidden": 4, "slots": 6, "d": 4, "heads": 2, "ff": 5, "layers": 1}
    sizes |= {"width": 3, "key": 3, "wide": 4, "narrow": 3}
    graph = compile_graph(path, "algorithmic_baseline", {"vocab": 4, "system": system, **sizes, "p": 0.0})
    equals_the_interpreter(Compiled(path.read_text(encoding="utf-8"), graph, causal=False), seed=1)


# Depth and gates


def built(name: str, **statics: Any) -> Architecture:  # Any: as above
    torch.manual_seed(20)
    return noisy(shipped_model(name, **statics))


def run(module: Architecture) -> Tensor:
    fields, lengths = shipped_batch(module, 3, 8)
    result: Tensor = module(*fields, lengths=lengths)
    return result


def huginn(**statics: int) -> Architecture:
    sizes = {"vocab": 11, "d": 8, "heads": 2, "ff": 6, "steps": 3, "gradient_steps": 1, "core": 1}
    return load_page("recurrent_depth", "huginn", **sizes | statics).eval()


ROUTERS = ("ndr", "absolute", "relative", "geometric", "relative_gated", "absrel_gated", "adaptive")
ADAPTIVE = ("adaptive", "adaptive_relative", "adaptive_geometric")


@pytest.mark.parametrize(
    ("make", "deeper"),
    [
        *((lambda name=name, **sizes: built(name, **sizes), {"steps": 7}) for name in {*ROUTERS, *ADAPTIVE}),
        (lambda **sizes: built("seq2seq", universal=True, **sizes), {"layers": 7}),
        (huginn, {"steps": 7}),
    ],
)
def test_a_model_may_be_deeper_than_in_training(make: Callable[..., Architecture], deeper: dict[str, int]) -> None:
    shallow, deep = make(), make(**deeper)
    for name, parameter in shallow.named_parameters():
        if name.endswith("halt.bias"):
            parameter.data.fill_(-3.0)  # no column halts by itself in so few steps
    deep.load_state_dict(shallow.state_dict())
    assert not torch.allclose(run(deep), run(shallow), atol=1e-4, rtol=0)


@pytest.mark.parametrize("model", ["ndr", "relative_gated", "absrel_gated"])
def test_a_gate_that_stays_closed_leaves_only_the_embedding(model: str) -> None:
    module = built(model, column="first")
    gate = module.get_submodule("gated_layer.feedforward_2")
    assert isinstance(gate, Feedforward)
    gate.output.weight.data.zero_()
    gate.output.bias.data.fill_(-1000.0)
    (tokens,), _ = shipped_batch(module, 3, 8)
    embedded = module.get_submodule("embed")(tokens[:, :1])[:, 0]
    assert run(module).equal(module.get_submodule("readout.linear")(embedded))


@pytest.mark.parametrize("variant", ["graves", "dehghani"])
@pytest.mark.parametrize("model", ADAPTIVE)
def test_adaptive_computation_time_has_a_ponder(model: str, variant: str) -> None:
    module = built(model, variant=variant)
    run(module)
    assert module.ponder.item() > 0


# Dynamic halting


@pytest.mark.parametrize(
    "statics", [{"gated": False}, {"transition": False}, {"global": False}], ids=lambda statics: next(iter(statics))
)
def test_an_ablation_is_another_model(statics: dict[str, Any]) -> None:
    module, complete = built("gated_universal_transformer", **statics), built("gated_universal_transformer")
    weights = complete.state_dict()
    weights |= {
        name: weight
        for name, weight in module.state_dict().items()
        if name in weights and weight.shape == weights[name].shape
    }
    complete.load_state_dict(weights)
    assert run(complete).ne(run(module)).any()


def test_balanced_chunks_depend_on_the_longest_sample_of_a_batch() -> None:
    module = built("temporal_latent_bottleneck", balanced=True, size=5)
    tokens, lengths = torch.randint(0, 11, (3, 8)), torch.tensor([8, 5, 2])
    assert module(tokens, lengths=lengths)[1].ne(module(tokens[[1], :5])[0]).any()


def test_a_gut_without_halting_has_no_weights_of_halting_and_no_ponder() -> None:
    module = built("gated_universal_transformer", halting="none")
    run(module)
    assert module.ponder.item() == 0
    assert not [name for name, _ in module.named_parameters() if "halt." in name]


SIDES = """
block plain(h: seq[n, d]) -> seq[n, d] { return transformer_layers[heads = 2, ff = 24, layers = 2](h) }
block halting(h: seq[n, d]) -> seq[n, d] {
    return universal_layers[2, 24, 4, gated = true, transition = true, global = true, length_cap = false](h)
}
"""


@pytest.mark.parametrize("side", ["plain", "halting"])
def test_both_sides_of_a_pair_share_an_encoder_and_average_their_ponders(side: str, compiled: Compile) -> None:
    text = library_page("dynamic_halt").read_text(encoding="utf-8") + SIDES
    module = compiled(text, model="siamese", read=side, d=16, vocab=7).double().eval()
    pair = torch.randint(0, 7, (3, 8)), torch.randint(0, 7, (3, 6))
    costs = []
    for fields in (pair, (pair[0], pair[0]), (pair[1], pair[1])):
        module(*fields)
        costs.append(module.ponder.item())
    assert costs[0] == pytest.approx(sum(costs[1:]) / 2, abs=1e-12)
    assert (costs[0] > 0) is (side == "halting")


HALTING = """
use archlang.models.dynamic_halt
model early[depth: int, threshold: float](x: seq[n, 8]) -> seq[n, 8] {
    return universal_layers[2, 12, depth, gated = true, transition = true, global = true, threshold = threshold](x)
}
model bounded[depth: int, threshold: float](x: seq[n, 8]) -> seq[n, 8] {
    return bounded_layers[2, 12, depth, threshold = threshold](x)
}
"""


@pytest.mark.parametrize("threshold", [0.5, 0.9, 0.999])
def test_a_gut_that_computes_all_steps_equals_the_one_that_stops(threshold: float, compiled: Compile) -> None:
    early, bounded = (
        noisy(compiled(HALTING, model=name, depth=6, threshold=threshold), 0.3) for name in ("early", "bounded")
    )
    bounded.load_state_dict(dict(zip(bounded.state_dict(), early.state_dict().values(), strict=True)))
    x, lengths = torch.randn(5, 7, 8, dtype=torch.float64), torch.tensor([7, 1, 3, 2, 5])
    results = [module(x, lengths=lengths) for module in (early, bounded)]
    ponders = early.ponder, bounded.losses["ponder"]
    actual, expected = (torch.cat((y.flatten(), p[None])) for y, p in zip(results, ponders, strict=True))
    same_gradients(actual, expected, early.parameters(), bounded.parameters())


# Encoder-decoders


def test_each_layer_has_its_weights_unless_the_model_is_universal() -> None:
    assert set(built("seq2seq", layers=3).state_dict()) > set(built("seq2seq", layers=2).state_dict())


def test_the_table_of_the_target_scores_the_answer() -> None:
    module = built("seq2seq", relative=True)
    source, target = torch.randint(0, 11, (3, 6)), torch.randint(0, 10, (3, 5))  # the last token only scores
    before = module(source, target)
    module.get_parameter("table.weight").data[10] += 1.0
    after = module(source, target)
    assert after[..., :10].equal(before[..., :10])
    assert after[..., 10].ne(before[..., 10]).all()


@pytest.mark.parametrize("relative", [False, True])
def test_only_absolute_models_have_dropout_on_embeddings(relative: bool) -> None:
    parts = list(built("seq2seq", relative=relative, dropout=0.3).children())
    placed = [part.dropout for part in parts if isinstance(part, AbsolutePositions)]
    assert placed == ([] if relative else [0.3, 0.3])
    assert [part.dropout for part in parts if isinstance(part, Embed)] == [0.0, 0.0]


# Memories


PANM = """
use archlang.models.panm
model program[reads = 1](source: tokens[n], target: tokens[t]) -> logits[t, vocab] {
    y = recurrent_panm[8, 4, 2, reads, bigru, width = 6](one_hot(source), zeros[3](target))
    return linear[vocab](y)
}
"""


def test_a_decoder_without_feedback_ignores_its_target(compiled: Compile) -> None:
    module = noisy(compiled(PANM, vocab=6))
    source, target = torch.randint(0, 6, (3, 7)), torch.randint(0, 6, (3, 5))
    assert module(source, target).equal(module(source, (target + 1) % 6))


def test_addresses_are_random_in_training_and_those_of_the_program_in_evaluation_too() -> None:
    fixed, drawn = built("panm_lstm"), built("panm_bigru", base="always")
    assert run(fixed).equal(run(fixed))
    for module in (fixed.train(), drawn):
        assert run(module).ne(run(module)).any()


def test_mode_two_may_have_several_reads_or_none(compiled: Compile) -> None:
    sizes = {}
    for reads in (0, 1, 2):
        module = compiled(PANM, vocab=6, reads=reads)
        sizes[reads] = module.get_parameter("linear.weight").shape[1]
        assert any("relational_read" in name for name in module.state_dict()) is (reads > 0)
    # Two pointers and a state, each of width 8, and 8 for every read.
    assert sizes == {0: 24, 1: 32, 2: 40}


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


def sorted_allocation(usage: Tensor) -> Tensor:
    """Returns the allocation of Graves et al., 2016, Eq. 1, for usages [slots]."""
    u = [1e-6 + (1 - 1e-6) * number for number in usage]
    product, weights = torch.ones((), dtype=usage.dtype), [torch.zeros(())] * len(u)
    for cell in sorted(range(len(u)), key=lambda cell: (float(u[cell].detach()), cell)):
        weights[cell] = (1 - u[cell]) * product
        product = product * u[cell]
    return torch.stack(weights)


def test_free_cells_are_those_of_a_sorted_list(compiled: Compile) -> None:
    module = compiled(
        "use archlang.models.differentiable_neural_computer\n"
        "model m(usage: seq[6, 1]) -> seq[6, 1] {\n    return free_cells[6](usage)\n}\n"
    ).double()
    usage = torch.rand(20, 6, dtype=torch.float64)
    usage[:5] = 0.0
    usage[5:10, ::2] = usage[5:10, :1].clone()
    usage[10] = -0.2  # usages of PANM's program leave [0, 1]
    usage.requires_grad_()
    same_gradients(module(usage[..., None])[..., 0], torch.stack([sorted_allocation(row) for row in usage]), [usage])


# Gradients of loops


def gradients(module: nn.Module, result: Tensor) -> dict[str, Tensor | None]:
    weights = dict(module.named_parameters())
    of_weights = torch.autograd.grad(result.square().sum(), list(weights.values()), allow_unused=True)
    return dict(zip(weights, of_weights, strict=True))


def test_the_prelude_of_huginn_has_no_gradient_without_kept_steps() -> None:
    for gradient_steps in (0, 1):
        module = huginn(gradient_steps=gradient_steps).train()
        by_weight = gradients(module, run(module))
        prelude = [by_weight[name] for name in by_weight if name.startswith("recurrent_depth.stack.")]
        assert prelude
        assert all((gradient is None) is (gradient_steps == 0) for gradient in prelude)


@pytest.mark.parametrize("model", ["tiny_recursive_model", "hierarchical_reasoning_model"])
def test_a_turn_does_not_pass_its_gradient_to_the_turn_before(model: str) -> None:
    sizes = {"vocab": 11, "classes": 4, "d": 8, "heads": 2, "ff": 6, "layers": 1}
    module, shorter = (load_page("recursive_reasoning", model, **sizes, turns=turns).eval() for turns in (2, 1))
    with module.keeping_steps() as steps:
        run(module)
    first, second = steps.values
    shorter.load_state_dict(module.state_dict())
    close(run(shorter), first)
    # The first state is drawn once, and not trained; auxiliary losses alone train the judgement of an answer.
    assert [name for name, gradient in gradients(module, second).items() if gradient is None] == [
        name for name, _ in module.named_parameters() if "fixed_state" in name or "halt" in name or "judge." in name
    ]
