"""Claims about samples that leave a halting loop's batch: only the time changes."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from archlang.backend import Architecture, halting_loops
from archlang.backend.runtime.loops import Compaction, HaltingLoop
from archlang.blocks.halting import _Halt
from tests.conftest import Compiled

HEAD = "model m[d = 8](x: tokens[n]) -> logits[n, classes] {\n h = embed[d](x)\n"
TAIL = "return linear[classes]({})\n}}"
BODY = "h <- h + attention[heads = 2](norm(h)) + linear[d](h)"
GLOBAL = f"repeat 9 halting h by global_halt[0.9, transition = true] {{ {BODY} }}"
TOKENS = torch.tensor([[1, 2, 3, 4, 5, 6, 7], [3, 3, 1, 0, 0, 0, 0], [9, 8, 7, 6, 5, 0, 0], [4] * 7, [5] + [0] * 6])
LENGTHS = torch.tensor([7, 3, 5, 7, 1])


def program(text: str) -> str:
    """A model that ends with y, if there is one, or else with h."""
    return f"{HEAD}{text}\n{TAIL.format('y' if ' y = ' in text else 'h')}"


def spread_out(module: Architecture) -> None:
    """Makes samples halt at different steps."""
    torch.manual_seed(1)
    for part in module.modules():
        if isinstance(part, _Halt):
            nn.init.normal_(part.hidden.weight, std=2.0)
            nn.init.normal_(part.output.weight, std=2.0)


def rows_of_steps(loop: HaltingLoop) -> list[int]:
    """Returns a list to which each step of a loop adds the number of rows that it computes."""
    rows, body = list[int](), loop.body

    def counted(owner: nn.Module, state: Tensor, *rest: Any) -> tuple[Any, ...]:  # Any: as in `Body`
        rows.append(len(state))
        return body(owner, state, *rest)

    loop.body = counted
    return rows


def results(module: Architecture, lengths: Tensor | None, compact: bool) -> list[Tensor]:
    """All results of a call, and all gradients."""
    for loop in halting_loops(module):
        loop.compact = compact
    logits = module(TOKENS, lengths=lengths)
    torch.manual_seed(2)
    ((logits * torch.randn_like(logits)).sum() + module.ponder).backward()
    assert module.sample_depth is not None
    tensors = [logits.detach(), module.ponder.detach(), module.sample_depth]
    for parameter in module.parameters():
        tensors.append(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
        parameter.grad = None
    return tensors


@pytest.mark.parametrize("ragged", [False, True])
def test_results_and_gradients_equal_those_of_the_full_batch(compiled: Compiled, ragged: bool) -> None:
    """tests/semantics compares other loops with the interpreter's, sample by sample."""
    module = compiled(program(GLOBAL)).double()
    spread_out(module)
    alone, together = (results(module, LENGTHS if ragged else None, compact) for compact in (True, False))
    for actual, expected in zip(alone, together, strict=True):
        torch.testing.assert_close(actual, expected, atol=1e-10, rtol=0)


def test_steps_of_halted_samples_are_not_computed(compiled: Compiled) -> None:
    module = compiled(program(GLOBAL)).double()
    spread_out(module)
    (loop,) = halting_loops(module)
    rows = rows_of_steps(loop)
    results(module, None, compact=True)
    compact = rows.copy()
    rows.clear()
    results(module, None, compact=False)
    assert set(rows) == {len(TOKENS)}
    assert sum(compact) < sum(rows)


def test_a_loop_that_depends_on_the_batch_keeps_it(compiled: Compiled) -> None:
    text = (
        "repeat 5 halting h by global_halt[0.9] { a = addresses[bits = 6](h)\n"
        " h <- h + linear[d](dereference(pointer_unit[hidden = 8, scrambled = true](a, h), h)) }"
    )
    (loop,) = halting_loops(compiled(program(text)))
    assert not loop.compact


def test_watch_is_called_with_the_full_batch(compiled: Compiled) -> None:
    module = compiled(program(GLOBAL))
    spread_out(module)
    (loop,) = halting_loops(module)
    sizes: list[int] = []
    loop.watch = lambda halting: sizes.append(len(halting.state))
    module(TOKENS)
    assert set(sizes) == {5}


def test_few_halted_rows_of_many_stay_in_the_batch() -> None:
    live = torch.ones(20, dtype=torch.bool)
    live[3] = False
    rows = Compaction().split(live)
    assert rows is not None
    assert len(rows.leaving) == 0
    assert Compaction().split(torch.zeros(4, 2, dtype=torch.bool)) is None


def test_rows_are_restored_in_their_order() -> None:
    compaction, values = Compaction(), torch.arange(6.0)
    for live in ([True, False, True, True, False, True], [False, True, True, False]):
        rows = compaction.split(torch.tensor(live))
        assert rows is not None
        (values,) = compaction.remove(rows, [values], [values])
    (restored,) = compaction.restore([values])
    assert restored.tolist() == list(range(6))
