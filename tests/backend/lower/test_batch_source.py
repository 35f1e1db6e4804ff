"""A loop whose states are not needed still knows the size of the batch."""

import pytest
import torch

from archlang.backend.lower.regions import with_batch_sources
from archlang.graph.text import parse_graph, print_graph
from tests.conftest import Compiled

PROGRAM = """model m(x: tokens[n]) -> logits[classes] {
    memory = learned[1, 4]()
    y = LOOP 2 {
        inner = LOOP 1 {
            memory <- tanh(memory)
            emit learned[1, 4, init = normal]()
        }
        memory <- inner
        emit inner
    }
    return linear[classes](mean(y))
}"""
GRAPH = """\
graph g

instance @learned: learned[slots = 1, d = 4] "archlang.blocks.learned:Learned"

input %1 x: seq[n, 4]
%2: seq[1, 4] = repeat[count = 1, emits = true]() {
    %3: seq[1, 4] = call @learned()
    return %3
}
return %2
"""


@pytest.mark.parametrize("loop", ["stack", "repeat"])
def test_a_loop_that_emits_learned_vectors_only_runs(loop: str, compiled: Compiled) -> None:
    module = compiled(PROGRAM.replace("LOOP", loop))
    result = module(torch.zeros(3, 5, dtype=torch.long))
    assert (result[0] == result[1]).all()
    assert len(result) == 3


def test_a_body_without_a_tensor_captures_one() -> None:
    text = print_graph(with_batch_sources(parse_graph(GRAPH)))
    assert "repeat[count = 1, emits = true](%1) {" in text
