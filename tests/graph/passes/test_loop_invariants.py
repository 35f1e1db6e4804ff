"""Values that are the same in every step leave loops."""

from pathlib import Path

import pytest

from archlang.compile import compile_graph
from archlang.graph.operations import Product
from archlang.graph.passes import optimize
from archlang.graph.passes.loop_invariants import hoist_invariants
from archlang.graph.text import parse_graph
from tests.conftest import Becomes, Compiled


def test_invariants_are_computed_before_the_loop(becomes: Becomes) -> None:
    becomes(
        hoist_invariants,
        """
        graph g
        instance @norm: norm axes () "archlang.blocks.features:Norm"
        instance @linear: linear axes () "archlang.blocks.feedforward:Linear"
        input %1 x: vec[4]
        input %2 m: vec[4]
      + %11: vec[4] = call @norm(%2)
      + %12: number = number[value = 2]()
      + %13: vec[4] = multiply(%11, %12)
      - %3: vec[4] = repeat[count = 5](%1, %2) {
      + %3: vec[4] = repeat[count = 5](%1, %2, %13) {
            input %4 h: vec[4]
            input %5 m: vec[4]
      -     %6: vec[4] = call @norm(%5)
      +     input %14: vec[4]
            %7: number = number[value = 2]()
      -     %8: vec[4] = multiply(%6, %7)
            %9: vec[4] = call @linear(%4)
      -     %10: vec[4] = add(%9, %8)
      +     %10: vec[4] = add(%9, %14)
            return %10
        }
        return %3
        """,
    )


@pytest.mark.parametrize(
    "instance",
    [
        'instance @drop: feedforward[dropout = 0.1] axes () caveats (training) "m:Feedforward"',
        'instance @drop: dropout[rate = 0.1] axes () caveats (training) "archlang.blocks.noise:Dropout"',
        'instance @drop: own axes () caveats (random) "mine:Own"',
    ],
)
def test_random_blocks_stay_in_the_loop(instance: str) -> None:
    graph = parse_graph(
        f"""
        graph g
        {instance}
        input %1 x: vec[4]
        input %2 m: vec[4]
        %3: vec[4] = repeat[count = 5](%1, %2) {{
            input %4 h: vec[4]
            input %5 m: vec[4]
            %6: vec[4] = call @drop(%5)
            %7: vec[4] = add(%4, %6)
            return %7
        }}
        return %3
        """
    )
    assert hoist_invariants(graph) == graph


MAPS = "query(0) = 4, key(1) = 4, value(1) = 4"
ATTENTION = f'attention lengths (n, m) axes (n) (m) maps ({MAPS}) "archlang.blocks.attention:Attention"'


def test_keys_and_values_of_an_invariant_are_computed_before_the_loop(becomes: Becomes) -> None:
    becomes(
        optimize,
        f"""
        graph g
        instance @a: {ATTENTION}
        input %1 x: seq[n, 4]
        input %2 m: seq[m, 4]
      + %8: seq[m, 4] = product @a[name = "key"](%2)
      + %10: seq[m, 4] = product @a[name = "value"](%2)
      - %3: seq[n, 4] = repeat[count = 5](%1, %2) {{
      + %3: seq[n, 4] = repeat[count = 5](%1, %2, %8, %10) {{
            input %4 h: seq[n, 4]
            input %5 m: seq[m, 4]
      -     %6: seq[n, 4] = call @a(%4, %5)
      +     input %7: seq[m, 4]
      +     input %9: seq[m, 4]
      +     %6: seq[n, 4] = call @a[given = ("key", "value")](%4, %5, %7, %9)
            return %6
        }}
        return %3
        """,
    )


@pytest.mark.parametrize("attention", ["2, position = absolute", "2, head_dim = 4, position = absolute"])
def test_attention_with_absolute_positions_keeps_its_maps(compiled: Compiled, attention: str) -> None:
    body = f"h = embed[8](x) k = norm(h) repeat 2 {{ h <- attention[{attention}](h, k) }} return h"
    graph = compiled(f"model m(x: tokens[n]) -> seq[n, 8] {{ {body} }}").program.graph
    assert not any(isinstance(node.operation, Product) for node in graph.region.walk())


def test_maps_of_unknown_width_stay_in_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "m.arch"
    path.write_text(
        "model m(h: seq[n, k]) -> logits[n, k] { m = h repeat 2 { h <- h + attention[1](h, m) }\n return h }"
    )
    graph = compile_graph(path, "m")
    assert graph.unknown_sizes == ["k"]
    assert not graph.instances["attention"].maps
    assert graph.instances["attention"].costs.parameters is None
