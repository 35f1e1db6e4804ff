"""Claims about the functions of regions."""

from torch import fx

from archlang.backend.lower.regions import lower
from archlang.graph.text import parse_graph


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
