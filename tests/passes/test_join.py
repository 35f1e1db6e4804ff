"""Linear maps of one value become one product."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

import archlang
from archlang.backend import Architecture
from archlang.compile import build, compile_graph
from archlang.graph.operations import Join
from archlang.graph.text import parse_graph
from archlang.passes import optimize
from archlang.passes.join import join_maps
from tests.conftest import Becomes
from tests.sampling import one_in
from tests.test_causality_probe import SHIPPED, field, small_graph

FEEDFORWARD = 'feedforward[ff = 6] axes () maps (hidden(0) = 6) "archlang.blocks.feedforward:Feedforward"'
GATE = 'gate[ff = 8] axes () maps (hidden(0) = 8) "archlang.blocks.gate:Gate"'
MAPS = "query(0) = 4, key(1) = 4, value(1) = 4"
ATTENTION = f'attention lengths (n, m) axes (n) (m) maps ({MAPS}) "archlang.blocks.attention:Attention"'

PROGRAMS = {
    "attention to oneself": "repeat 3 { h <- norm(h + attention[2](h)) }",
    "a memory": "m = norm(h) repeat 3 { h <- norm(h + attention[2](h, m) + feedforward[8](h)) }",
    "places": "repeat 3 { h <- norm(h + attention[2, position = xpos, causal = true](h)) }",
    "nearest": "repeat 3 { h <- copy_gate(gate[8](h), norm(geometric_attention[2, key_dropout = 0.1](h)), h) }",
    "distances": "repeat 3 { h <- norm(h + relative_attention[2](h) + absrel_attention[2](h)) }",
    "halting": "repeat 5 halting h as s by token_halt[0.9] { h <- norm(h + attention[2](h, s)) }",
    "halting samples": "m = norm(h) repeat 5 halting h by global_halt[0.9] {"
    " h <- norm(h + attention[2](h, m) + mlp[8, d](h)) }",
    "chunks": "m = learned[3, d, init = normal]()\n y = scan c in chunks[size = 3](h) carry m {"
    " repeat 2 { c <- norm(c + attention[2](c, m)) } m <- norm(m + attention[2](m, c)) emit c }",
    "a stack in a loop": "repeat 2 { stack 2 { h <- norm(h + attention[2](h)) } }",
    "a loop in a stack": "stack 2 { repeat 2 { h <- copy_gate(gate[8](h), feedforward[8](h), h) } }",
    "the same twice": "let f = feedforward[8, dropout = 0.3] repeat 2 { h <- norm(f(h) + f(h)) }",
}  # fmt: skip


def load(folder: Path, text: str, without: tuple[str, ...] = ()) -> Architecture:
    path = folder / "m.arch"
    head = "model m[d = 8](x: tokens[n]) -> logits[n, classes] {\n h = embed[d](x)\n "
    path.write_text(f"{head}{text}\n return linear[classes]({'y' if ' y = ' in text else 'h'})\n}}")
    torch.manual_seed(0)
    return archlang.load(path, vocab=11, classes=3, without_passes=without).double()


def answers(module: Architecture, fields: list[Tensor], lengths: Tensor | None) -> list[Tensor]:
    """Returns the logits, the ponder cost and the gradients, with the same random numbers each time."""
    torch.manual_seed(1)
    module.zero_grad()
    named = None if lengths is None else dict.fromkeys(module.program.fields, lengths)
    logits = module(*fields, lengths=named)
    (logits.square().sum() + module.ponder).backward()
    gradients = [torch.zeros_like(weight) if weight.grad is None else weight.grad for weight in module.parameters()]
    return [logits, module.ponder, *gradients]


def test_maps_of_one_value_in_a_loop_are_one_product_and_others_stay(becomes: Becomes) -> None:
    becomes(
        join_maps,
        f"""
        graph g
        instance @f: {FEEDFORWARD}
        instance @g: {GATE}
        instance @other: {FEEDFORWARD}
        instance @own: own[ff = 6] axes () "mine:Feedforward"
        input %1 x: seq[n, 4]
        %2: seq[n, 4] = repeat[count = 5](%1) {{
            input %3 h: seq[n, 4]
            %4: seq[n, 4] = call @f(%3)
            %5: seq[n, 4] = call @g(%3)
            %6: seq[n, 4] = call @own(%3)
            %7: seq[n, 4] = add(%4, %5)
            %8: seq[n, 4] = call @other(%7)
            %9: seq[n, 4] = add(%6, %8)
            return %9
        }}
        return %2
        """,
        f"""
        graph g
        instance @f: {FEEDFORWARD}
        instance @g: {GATE}
        instance @other: {FEEDFORWARD}
        instance @own: own[ff = 6] axes () "mine:Feedforward"
        input %1 x: seq[n, 4]
        %2: seq[n, 4] = repeat[count = 5](%1) {{
            input %3 h: seq[n, 4]
            %10: seq[n, 6], seq[n, 8] = join[maps = ("f.hidden", "g.hidden")](%3)
            %11: seq[n, 6] = part[index = 0](%10)
            %12: seq[n, 8] = part[index = 1](%10)
            %4: seq[n, 4] = call @f[given = ("hidden")](%3, %11)
            %5: seq[n, 4] = call @g[given = ("hidden")](%3, %12)
            %6: seq[n, 4] = call @own(%3)
            %7: seq[n, 4] = add(%4, %5)
            %8: seq[n, 4] = call @other(%7)
            %9: seq[n, 4] = add(%6, %8)
            return %9
        }}
        return %2
        """,
    )


def test_keys_and_values_of_an_invariant_are_computed_before_the_loop(becomes: Becomes) -> None:
    becomes(
        optimize,
        f"""
        graph g
        instance @a: {ATTENTION}
        input %1 x: seq[n, 4]
        input %2 m: seq[m, 4]
        %3: seq[n, 4] = repeat[count = 5](%1, %2) {{
            input %4 h: seq[n, 4]
            input %5 m: seq[m, 4]
            %6: seq[n, 4] = call @a(%4, %5)
            return %6
        }}
        return %3
        """,
        f"""
        graph g
        instance @a: {ATTENTION}
        input %1 x: seq[n, 4]
        input %2 m: seq[m, 4]
        %10: seq[m, 4], seq[m, 4] = join[maps = ("a.key", "a.value")](%2)
        %11: seq[m, 4] = part[index = 0](%10)
        %12: seq[m, 4] = part[index = 1](%10)
        %3: seq[n, 4] = repeat[count = 5](%1, %2, %11, %12) {{
            input %4 h: seq[n, 4]
            input %5 m: seq[m, 4]
            input %13: seq[m, 4]
            input %14: seq[m, 4]
            %6: seq[n, 4] = call @a[given = ("key", "value")](%4, %5, %13, %14)
            return %6
        }}
        return %3
        """,
    )


@pytest.mark.parametrize(
    "body",
    [
        '%4: seq[n, 4] = stack[count = 5, path = "s"](%1) {\n'
        "input %3: seq[n, 4]\n%5: seq[n, 4] = call @a(%3, %3)\nreturn %5 }",
        "%4: seq[n, 4] = call @a(%1, %1)",
    ],
    ids=["a stack", "no loop"],
)
def test_weights_that_are_used_once_stay_apart(body: str) -> None:
    graph = parse_graph(f"graph g\ninstance @a: {ATTENTION}\ninput %1: seq[n, 4]\n{body}\nreturn %4")
    assert join_maps(graph) == graph


@pytest.mark.parametrize("attention", ["2, position = absolute", "2, head_dim = 4, position = absolute"])
def test_attention_with_absolute_positions_stays_apart(tmp_path: Path, attention: str) -> None:
    graph = load(tmp_path, f"repeat 2 {{ h <- attention[{attention}](h) }}").program.graph
    assert not any(isinstance(node.operation, Join) for node in graph.region.walk())


def test_maps_of_unknown_width_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "m.arch"
    path.write_text("model m(h: seq[n, k]) -> logits[n, k] { repeat 2 { h <- h + attention[1](h) }\n return h }")
    graph = compile_graph(path, "m")
    assert graph.unknown_sizes == ["k"]
    assert not graph.instances["attention"].maps
    assert graph.instances["attention"].costs.parameters is None
    assert join_maps(graph) == graph


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_the_same_with_joined_and_separate_maps(tmp_path: Path, name: str) -> None:
    text = PROGRAMS[name]
    x, lengths = torch.randint(0, 11, (3, 7)), torch.tensor([7, 4, 2])
    joined_model, separate_model = load(tmp_path, text), load(tmp_path, text, ("join",))
    has_join = any(isinstance(node.operation, Join) for node in joined_model.program.graph.region.walk())
    assert has_join == (name not in ("a stack in a loop", "the same twice"))
    assert not any(isinstance(node.operation, Join) for node in separate_model.program.graph.region.walk())
    for batch_lengths in (None, lengths):
        torch.testing.assert_close(
            answers(joined_model, [x], batch_lengths),
            answers(separate_model, [x], batch_lengths),
            atol=1e-10,
            rtol=1e-10,
        )


@pytest.mark.parametrize(("file", "model"), one_in(3, SHIPPED), ids=[f"{file.stem}-{model}" for file, model in SHIPPED])
def test_a_library_model_computes_the_same_with_joined_and_separate_maps(file: Path, model: str) -> None:
    graph = small_graph(file, model)
    modules = []
    for without in ((), ("join",)):
        torch.manual_seed(0)
        modules.append(build(graph, without=without).double())
    fields = [field(value.type, 9) for value in graph.region.inputs]
    lengths = torch.tensor([9, 5, 9, 3])
    torch.testing.assert_close(
        answers(modules[0], fields, lengths), answers(modules[1], fields, lengths), atol=1e-10, rtol=1e-10
    )


def test_weights_of_a_model_without_the_pass_fit_one_with_it_and_back(tmp_path: Path) -> None:
    text, x = PROGRAMS["nearest"], torch.randint(0, 11, (3, 7))
    joined_model, separate_model = load(tmp_path, text).eval(), load(tmp_path, text, ("join",)).eval()
    for source, target in ((separate_model, joined_model), (joined_model, separate_model)):
        with torch.no_grad():
            for weight in source.parameters():
                weight.add_(torch.randn_like(weight))
        # The module must not cache the product of the last forward pass.
        assert not torch.allclose(joined_model(x), separate_model(x), atol=1e-4)
        assert list(source.state_dict()) == list(target.state_dict())
        target.load_state_dict(source.state_dict())
        torch.testing.assert_close(joined_model(x), separate_model(x), atol=1e-10, rtol=1e-10)


def test_a_second_derivative_is_that_of_separate_maps(tmp_path: Path) -> None:
    x, gradients = torch.randint(0, 11, (3, 7)), []
    for without in ((), ("join",)):
        module = load(tmp_path, PROGRAMS["distances"], without)
        weights = list(module.parameters())
        first = torch.autograd.grad(module(x).square().sum(), weights, create_graph=True)
        gradients.append(
            torch.autograd.grad(torch.stack([gradient.square().sum() for gradient in first]).sum(), weights)
        )
    torch.testing.assert_close(*gradients, atol=1e-10, rtol=1e-10)


def test_products_have_the_precision_of_the_module(tmp_path: Path) -> None:
    x, results = torch.randint(0, 11, (3, 7)), []
    for without in ((), ("join",)):
        module = load(tmp_path, PROGRAMS["nearest"], without).float().eval()
        with torch.autocast("cpu", torch.bfloat16):
            results.append(module(x))
    assert results[0].dtype == results[1].dtype
    torch.testing.assert_close(*results, atol=0.1, rtol=0.1)
