"""Parameters, FLOPs and activations of models."""

import re
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import archlang
from archlang.compile import build, compile_graph
from archlang.contracts import library_blocks
from archlang.contracts.cases import cases
from archlang.graph.graph import Graph
from archlang.graph.summary import summarize
from archlang.plan.from_file import plan_recipe, recipe_names
from tests.sampling import one_in

ROOT = Path(archlang.__file__).parent
RECIPES = sorted((ROOT / "recipes").rglob("*.arch"))
MODELS = [
    (file, model)
    for file in sorted((ROOT / "blocks" / "models").glob("*.arch"))
    for model in re.findall(r"^model (\w+)", file.read_text(), re.M)
]


@pytest.mark.slow
def test_the_cost_of_every_block_is_known() -> None:
    blocks = library_blocks()
    assert blocks
    for declaration in blocks:
        for case in cases(declaration):
            costs = case.instance.costs
            assert costs.parameters is not None, case.instance
            assert costs.flops is not None, case.instance
            assert costs.activations is not None, case.instance


def graph_of(text: str, folder: Path, **sizes: int) -> Graph:
    file = folder / "m.arch"
    file.write_text(text, encoding="utf-8")
    return compile_graph(file, None, sizes or {"vocab": 7})


def count_of_weights(graph: Graph) -> int:
    """Returns the number of weights of a graph's module, which is built without their memory."""
    with torch.device("meta"):
        return sum(weight.numel() for weight in build(graph).parameters())


@pytest.mark.parametrize("file", one_in(3, RECIPES), ids=lambda file: file.stem)
def test_parameters_are_those_of_the_module(file: Path) -> None:
    for recipe in recipe_names(file):
        plan = plan_recipe(file, recipe)
        if "model.folder" in plan.settings:  # of weights that a user downloads
            plan = plan_recipe(file, recipe, {"model.folder": '""'})
        summary = summarize(plan.graph, 16)
        assert not summary.unknown
        assert not summary.uncounted
        assert summary.unique == count_of_weights(plan.graph)


@pytest.mark.parametrize(("file", "model"), MODELS, ids=[model for _, model in MODELS])
def test_parameters_of_every_model_of_the_library_are_those_of_the_module(file: Path, model: str) -> None:
    sizes = {"vocab": 11, "words": 13, "classes": 3}
    graph = compile_graph(file, model, sizes)
    if unknown := graph.unknown_sizes:  # other sizes that a task sets
        graph = compile_graph(file, model, {**sizes, **dict.fromkeys(unknown, 5)})
    summary = summarize(graph, 16)
    assert not summary.unknown
    assert not summary.uncounted
    assert summary.unique == count_of_weights(graph)


PROGRAM = """
model small[d = 16](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    stack 2 { h <- h + attention[heads = 2](norm(h)) }
    repeat 3 { h <- feedforward[24](h) + gate[8](h) }
    return linear[vocab](h)
}
"""


@pytest.mark.parametrize("length", [1, 5, 12])
def test_flops_are_those_that_torch_counts(tmp_path: Path, length: int) -> None:
    graph = graph_of(PROGRAM, tmp_path)
    # torch does not count its CPU kernel of attention, but it counts the products of the plain form.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        build(graph)(torch.zeros(3, length, dtype=torch.int64))
    assert 3 * summarize(graph, length).flops == counter.get_total_flops()


def test_weights_of_a_repeat_count_once_and_those_of_a_stack_each_step(tmp_path: Path) -> None:
    summary = summarize(graph_of(PROGRAM, tmp_path), 4)
    feeding = 16 * 24 + 24 + 24 * 16 + 16 + 16 * 8 + 8 + 8 * 16 + 16
    assert summary.executed - summary.unique == 2 * feeding


def test_weights_of_a_module_that_each_step_of_a_stack_calls_count_once(tmp_path: Path) -> None:
    graph = graph_of(
        """
        block turned[g: block](h: seq[n, d]) -> seq[n, d] {
            let own = g
            stack 3 { h <- own(mlp[d, 5](h)) }
            return h
        }
        model m(x: seq[n, 8]) -> seq[n, 8] {
            let shared = linear[8]
            h = turned[linear[8, bias = false]](x)
            repeat 2 { stack 3 { stack 2 { h <- shared(norm(h)) } } }
            return h
        }
        """,
        tmp_path,
    )
    assert summarize(graph, 4).unique == count_of_weights(graph)


BODIES = {
    "geometric": "h = geometric_attention[heads = 2](x)",
    "relative": "h = relative_attention[heads = 2](x)",
    "absolute and relative": "h = absrel_attention[heads = 2](x)",
    "memory": "m = learned[slots = 3, d]()\n h = attention[heads = 2](x, m)",
    "chunks": "m = learned[slots = 3, d]()\n h = scan c in chunks[size = 4](x) carry m {"
    " m <- m + attention[heads = 2](m, c)\n emit attention[heads = 2](c, m) }",
    "network": "h = mlp[5, 7](x)",
    "growing": "m = constant[0, d]()\n h = scan c in chunks[size = 4](x) carry m growing {"
    " m <- append(m, learned[3, d]())\n emit attention[heads = 2](c, m) }",
    "growing in each position": "m = constant[1, d]()\n h = scan v in x carry m growing {"
    " r = linear[d](mean(m)) * last(attention[1](m))\n m <- append(m, expand(v))\n emit r }",
    "growing by the chunk": "m = constant[0, d]()\n h = scan c in chunks[size = 4](x) carry m growing {"
    " r = attention[1](c, m)\n m <- append(m, linear[d](c))\n emit r }",
    "before": "h = scan c after b[3] in chunks[size = 2](x) { emit attention[1](c, b) }",
    "all before": "h = scan c after b in chunks[size = 3](x) { emit attention[1](c, b) }",
    "positions": "m = constant[2, d]()\n h = scan v in x carry m { m <- linear[d](m)\n emit v + linear[d](mean(m)) }",
    "halting": "h = x\n repeat 3 halting h by token_halt { h <- h + linear[d](h) }",
    "emission": "s = x\n h = repeat 3 { s <- linear[d](s)\n emit feedforward[5](s) }",
    "truncated": "h = x\n repeat 4 truncated 2 { h <- linear[d](h) }",
    "nested": "h = x\n stack 2 { repeat 3 { y = scan c in chunks[size = 4](h) { emit attention[1](c) }\n h <- y } }",
    "maps": "h = weigh(softmax_keys(scores[heads = 2](linear[d](x), x)), x)",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_flops_of_a_sample_are_those_that_torch_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    # The counter runs the plain forms: it does not know all operations of the fast ones.
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    text = f"model m[d = 8](x: seq[n, d]) -> seq[n, k] {{ {body}\n return h }}"
    graph = graph_of(text, tmp_path, k=7 if "mlp" in body else 8)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        build(graph)(torch.randn(1, 10, 8))
    assert summarize(graph, 10).flops == counter.get_total_flops()


def test_flops_grow_with_the_depth(tmp_path: Path) -> None:
    graph = graph_of(PROGRAM, tmp_path)
    no_steps, one_step, three_steps, all_steps = (summarize(graph, 5, depth).flops for depth in (0, 1, 3, None))
    assert three_steps - no_steps == 3 * (one_step - no_steps) > 0
    assert three_steps == all_steps


def test_activations_are_the_results_of_blocks_and_arithmetic(tmp_path: Path) -> None:
    text = (
        "model m[d = 8](x: tokens[n]) -> logits[classes] {\n"
        " h = embed[d](x)\n repeat 3 { h <- norm(h + feedforward[4](h)) }\n return linear[classes](last(h))\n}"
    )
    graph = graph_of(text, tmp_path, vocab=7, classes=2)
    assert summarize(graph, 5).values == 5 * 8 + 3 * 3 * 5 * 8 + 8 + 2


@pytest.mark.parametrize("name", ["ndr", "gut", "gutlb", "tlb"])
@pytest.mark.parametrize("length", [16, 64])
def test_autograd_keeps_from_half_again_to_three_and_a_half_times_the_activations(name: str, length: int) -> None:
    graph = plan_recipe(ROOT / "recipes" / f"{name}.arch").graph
    torch.manual_seed(0)  # the weights decide when a loop halts
    module = build(graph)
    weights = {weight.untyped_storage().data_ptr() for weight in module.parameters()}
    saved_tensors: dict[int, torch.Tensor] = {}  # by storage; kept alive so that its address is not reused

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.untyped_storage().data_ptr() not in weights:
            saved_tensors[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = module(torch.zeros(8, length, dtype=torch.int64))
    assert result.requires_grad
    saved = sum(tensor.untyped_storage().nbytes() for tensor in saved_tensors.values()) / 4 / 8
    summary = summarize(graph, length)
    assert 1.5 < saved / summary.values < 3.5
    assert not summary.unmeasured
    assert 0.6 < saved / summary.activations < 1.25  # less where a loop halts before its limit


def test_the_costs_of_nodes_add_up_to_those_of_the_model(tmp_path: Path) -> None:
    graph = graph_of(PROGRAM, tmp_path)
    summary = summarize(graph, 5)
    loops = {node.id for node in graph.region.walk() if node.regions}
    assert sum(cost.flops for id, cost in summary.nodes.items() if id not in loops) == summary.flops


BRANCHES = """
model branches[d = 8, gated = false](x: tokens[n]) -> seq[n, d] {
    h = embed[d](x)
    a = attention[2](h)
    if gated { b = a } else { b = h }
    repeat 2 {
        b <- norm(b)
        a <- feedforward[16](a)
    }
    return b
}
"""


@pytest.mark.parametrize(("gated", "parameters"), [("false", 56 + 16), ("true", 56 + 16 + 4 * 64)])
def test_what_no_result_needs_costs_nothing(gated: str, parameters: int, tmp_path: Path) -> None:
    summary = summarize(graph_of(BRANCHES.replace("gated = false", f"gated = {gated}"), tmp_path), 5)
    assert (summary.unique, summary.executed) == (parameters, parameters + 16)
    assert (summary.flops > 0) == (gated == "true")


ROUTED = """
model routed[d = 8, k = 2](x: seq[n, d]) -> seq[n, d] {
    s = sigmoid(linear[6](x))
    y = experts v in x by WEIGHTS { emit linear[d, bias = false](relu(linear[5, bias = false](v))) }
    return y
}
"""


@pytest.mark.parametrize(
    ("weights", "running"), [("s * top_k[k](s)", 2), ("top_k[3](s)", 3), ("s", 6), ("s + top_k[k](s)", 6)]
)
def test_experts_count_that_have_a_weight(weights: str, running: int, tmp_path: Path) -> None:
    graph = graph_of(ROUTED.replace("WEIGHTS", weights), tmp_path)
    torch.manual_seed(0)  # with which every expert has an element; one without runs for one all the same
    with FlopCounterMode(display=False) as counter:
        build(graph)(torch.randn(2, 10, 8))
    summary = summarize(graph, 10)
    assert 2 * summary.flops == counter.get_total_flops()
    one_expert = 10 * 2 * 2 * 8 * 5
    assert summary.flops == 10 * 2 * 8 * 6 + running * one_expert
    assert summary.idle_flops == (6 - running) * one_expert


def test_a_growing_state_counts_with_its_mean_length(tmp_path: Path) -> None:
    def flops(memory: str, carry: str = "", update: str = "") -> int:
        text = (
            f"model m(x: tokens[n]) -> logits[n, vocab] {{\nh = embed[4](x)\nm = constant[{memory}, 4]()\n"
            f"y = scan c in chunks[2](h){carry} {{ a = c + attention[1](c, m)\n{update}\nemit a }}\n"
            "return linear[vocab](y) }"
        )
        return summarize(graph_of(text, tmp_path), 8).flops

    for piece in ("a", "slice[0, 2](a)"):
        assert flops("0", " carry m growing", f"m <- append(m, {piece})") == flops("3")
    mean = (flops("6") + flops("7")) // 2
    assert flops("2", " carry m growing", "m <- append(m, append(expand(mean(a)), a))") == mean


def test_a_gradient_costs_three_times_its_loss(tmp_path: Path) -> None:
    text = "model m(h: seq[n, 4]) -> seq[n, 4] {{ return h + {} }}"
    of_loss, of_gradient = (
        summarize(graph_of(text.format(value), tmp_path), 10)
        for value in ("sum_features(linear[5](h))", "gradient(sum_features(linear[5](h)), h)")
    )
    assert (of_gradient.flops, of_gradient.unique) == (3 * of_loss.flops, of_loss.unique)
