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
