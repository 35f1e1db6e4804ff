"""Claims about the functions of regions."""

import torch
from torch import fx

from archlang.backend.lower.regions import lower
from archlang.graph.text import parse_graph
from tests.closeness import close
from tests.conftest import Compiled


def test_a_region_is_a_graph_of_torch_fx_with_the_names_of_the_program() -> None:
    program = lower(
        parse_graph(
            """
            graph g
            instance @layer.f: f axes () "m:F"
            input %1 x: vec[2]
            input %2 sum: vec[2]
            %3: number = number[value = 0.5]()
            %4 half: vec[2] = multiply(%1, %3)
            %5: vec[2] = call @layer.f(%4)
            %6 x: vec[2] = subtract(%5, %2)
            %7: vec[2] = negate(%6)
            return %7
            """
        )
    )
    assert isinstance(program.code.graph, fx.Graph)
    kinds = [(node.op, node.name) for node in program.code.graph.nodes if node.op != "placeholder"]
    assert kinds == [
        ("call_function", "half"),
        ("call_module", "f"),
        ("call_function", "x_2"),
        ("call_function", "negate"),
        ("output", "output"),
    ]


def test_a_loop_of_a_shared_block_runs_the_same_weights_wherever_it_is_applied(compiled: Compiled) -> None:
    module = compiled(
        """
        block encoder[depth: int](h: seq[n, d]) -> seq[n, d] {
            let shared = linear[d]
            stack depth {
                repeat 2 { h <- h + shared(linear[d](h)) }
            }
            return h
        }
        model pair(x: tokens[n], y: tokens[k]) -> logits[4] {
            let encode = encoder[3]
            u = encode(embed[4](x))
            stack 2 { u <- encode(norm(u)) }
            return mean(u) + mean(encode(embed[4](y)))
        }
        """
    )
    at = module.get_submodule

    def encode(h: torch.Tensor) -> torch.Tensor:
        for step in range(3):
            for _ in range(2):
                h = h + at("encode.shared")(at(f"encode.stack.{step}.linear")(h))
        return h

    x, y = torch.randint(0, 11, (2, 3)), torch.randint(0, 11, (2, 5))
    u = encode(at("embed")(x))
    for step in range(2):
        u = encode(at(f"stack.{step}.norm")(u))
    close(module(x, y), u.mean(1) + encode(at("embed_2")(y)).mean(1))
    assert len([name for name in module.state_dict() if name.startswith("encode.")]) == 8


def test_learned_values_in_a_loop_are_as_many_as_the_batch(compiled: Compiled) -> None:
    module = compiled(
        """
        model m(x: tokens[n]) -> logits[n, 4] {
            h = embed[4](x)
            k = 2.0
            stack 2 { h <- h + attention[1](h, learned[3, 4, init = normal]()) * k }
            return h
        }
        """
    )
    x = torch.randint(0, 11, (3, 2))
    close(module(x)[1:2], module(x[1:2]))


def test_a_literal_can_be_the_state_of_a_loop(compiled: Compiled) -> None:
    module = compiled(
        """
        model m(x: tokens[n]) -> logits[n, 4] {
            k = 2.0
            repeat 3 { k <- k * k }
            return embed[4](x) * k
        }
        """
    )
    x = torch.randint(0, 11, (3, 2))
    close(module(x), module.get_submodule("embed")(x) * 256)


BROADCAST = """
    model m(x: seq[n, 3], v: vec[3]) -> seq[n, 3] {
        g = linear[1](x)
        k = linear[1](v)
        return (x * g - v) / (v * k + 9) + k * g + x * (g + v)
    }
    """


def test_features_of_size_1_and_vectors_broadcast_as_loops_compute_it(compiled: Compiled) -> None:
    module = compiled(BROADCAST).double()
    inputs = [torch.randn(2, 4, 3).double().requires_grad_(), torch.randn(2, 3).double().requires_grad_()]
    x, v = inputs
    rows = []
    for b in range(2):
        (k,) = module.get_submodule("linear_2")(v[b])
        for i in range(4):
            (g,) = module.get_submodule("linear")(x[b, i])
            for c in range(3):
                a, w = x[b, i, c], v[b, c]
                rows.append((a * g - w) / (w * k + 9) + k * g + a * (g + w))
    slow = torch.stack(rows).reshape(2, 4, 3)
    fast = module(x, v)
    torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-10)
    leaves = [*inputs, *module.parameters()]
    weight = torch.randn_like(slow)
    gradients = [torch.autograd.grad((result * weight).sum(), leaves) for result in (fast, slow)]
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-10)
