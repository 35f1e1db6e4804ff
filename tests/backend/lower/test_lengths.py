"""Claims about masks: each block receives the masks of its own arguments."""

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.lower.lengths import needed_lengths
from archlang.graph.text import parse_graph
from archlang.types import Dim
from tests.conftest import Compiled


class Ends(nn.Module):
    """Puts a zero before and after, so that there are two positions more."""

    def __init__(self, *, d: int) -> None:
        super().__init__()

    def forward(self, x: Tensor, *, mask_n: Tensor | None) -> tuple[Tensor, Tensor | None]:
        mask = None if mask_n is None else torch.nn.functional.pad(mask_n, (2, 0), value=True)
        return torch.nn.functional.pad(x, (0, 0, 1, 1)), mask


class Counts(nn.Module):
    """The numbers of real positions of the two arguments; -1 without a mask."""

    def __init__(self, *, d: int, e: int) -> None:
        super().__init__()

    def forward(self, x: Tensor, y: Tensor, *, mask_n: Tensor | None, mask_m: Tensor | None) -> Tensor:
        counts = [x.new_full((len(x),), -1) if mask is None else mask.sum(1).to(x) for mask in (mask_n, mask_m)]
        return torch.stack(counts, 1)


EXTERNS = f"""
extern block ends(x: seq[n, d]) -> seq[n + 2, d] python "{__name__}:Ends"
extern block counts(x: seq[n, d], y: seq[m, e] = x) -> vec[2] python "{__name__}:Counts"
"""


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("counts(h)", [[5, 5], [3, 3]]),
        ("counts(h, k)", [[5, 2], [3, 4]]),
        ("counts(k, h)", [[2, 5], [4, 3]]),
        ("counts(ends(h), h)", [[7, 5], [5, 3]]),
        ("counts(ends(ends(k)), ends(h))", [[6, 7], [8, 5]]),
        ("counts(learned[3, 4](), k)", [[-1, 2], [-1, 4]]),
    ],
)
def test_each_argument_has_its_own_mask(compiled: Compiled, expression: str, wanted: list[list[int]]) -> None:
    text = f"""
    model m(x: tokens[n], y: tokens[k]) -> logits[2] {{
        h = embed[4](x)
        k = embed[3](y)
        return {expression}
    }}
    """
    module = compiled(EXTERNS + text, plugins=True)
    x, y = torch.zeros(2, 5, dtype=torch.int64), torch.zeros(2, 4, dtype=torch.int64)
    assert module(x, y, lengths={"x": torch.tensor([5, 3]), "y": torch.tensor([2, 4])}).tolist() == wanted
    assert set(module(x, y).flatten().tolist()) == {-1}


def test_masks_reach_the_blocks_in_loops_in_loops(compiled: Compiled) -> None:
    text = """
    model m(x: tokens[n], y: tokens[k]) -> logits[2] {
        h = ends(embed[4](x))
        k = embed[4](y)
        v = counts(h, k)
        repeat 1 {
            stack 2 {
                g = ends(h)
                v <- v + counts(g, k)
            }
        }
        return v
    }
    """
    module = compiled(EXTERNS + text, plugins=True)
    x, y = torch.zeros(2, 5, dtype=torch.int64), torch.zeros(2, 4, dtype=torch.int64)
    result = module(x, y, lengths={"x": torch.tensor([5, 3]), "y": torch.tensor([2, 4])})
    assert result.tolist() == [[7 + 2 * 9, 2 * 3], [5 + 2 * 7, 4 * 3]]


def test_a_region_needs_the_masks_that_it_does_not_compute() -> None:
    graph = parse_graph(
        """
        graph g
        instance @ends: ends(d = 4) lengths (n) axes (n) grows "m:Ends"
        instance @mean: mean(d = 4) lengths (n) axes (n) "m:Mean"
        instance @chunks: chunks(d = 4) lengths (n) axes (n) "m:Chunks"
        input %1 x: seq[n, 4]
        input %2 y: seq[m, 4]
        input %3 z: seq[3, 4]
        %4: seq[n + 2, 4] = call @ends(%1)
        %5: vec[4] = call @mean(%4)
        %6: vec[4] = call @mean(%3)
        %7: chunks[n, 4] = call @chunks(%1)
        %8: vec[4] = scan[carried = 1, emits = false](%7, %5, %2) {
            input %9 c: seq[c.length, 4]
            input %10 v: vec[4]
            input %11: seq[m, 4]
            %12: vec[4] = call @mean(%9)
            %13: vec[4] = call @mean(%11)
            %14: vec[4] = add(%12, %13)
            return %14
        }
        return %8
        """
    )
    assert needed_lengths(graph.region, graph.instances) == (Dim.of("n"), Dim.of("m"))
