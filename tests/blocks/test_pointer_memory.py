"""The parts of a memory with pointers against programs for one sample: addresses, walks, reads and the controller."""

from collections.abc import Callable
from math import sqrt
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.pointer_unit import (
    Addresses,
    CosineRead,
    CosineScore,
    Dereference,
    DotRead,
    DotScore,
    Pointer,
    PointerUnit,
    RelationalRead,
)
from archlang.blocks.recurrent import AttentiveGru
from tests.blocks.conftest import agree, attended, gru_step

REAL = torch.arange(5) < torch.tensor([[5], [3], [1]])
each_mask = pytest.mark.parametrize("mask", [None, REAL], ids=["no mask", "ragged"])


def number(bits: Tensor) -> int:
    """Returns the number with these bits, the least significant first."""
    return int(sum(int(bit) * 2**place for place, bit in enumerate(bits.tolist())))


def test_addresses_count_up_from_zero_in_evaluation() -> None:
    a = Addresses(bits=4, base="training", d=3).eval()(torch.zeros(2, 11, 3))
    assert [number(address) for address in a[1]] == list(range(11))
    assert a[0, 6].tolist() == [0, 1, 1, 0]


def test_training_draws_a_base_for_each_sample_and_wraps() -> None:
    a = Addresses(bits=4, base="training", d=3)(torch.zeros(400, 11, 3))
    numbers = [[number(address) for address in row] for row in a]
    assert {row[0] for row in numbers} == set(range(16))
    assert all(row[i + 1] == (row[i] + 1) % 16 for row in numbers for i in range(10))


@pytest.mark.parametrize(("base", "training", "moves"), [("always", False, True), ("zero", True, False)])
def test_the_base_is_drawn_always_or_never(base: str, training: bool, moves: bool) -> None:
    block = Addresses(bits=6, base=base, d=3).train(training)
    first = {number(row[0]) for row in block(torch.zeros(50, 2, 3))}
    assert (len(first) > 1) is moves
    assert moves or first == {0}


def test_the_contents_of_a_memory_do_not_change_its_addresses() -> None:
    block = Addresses(bits=6, base="zero", d=3)
    assert block(torch.randn(2, 5, 3)).equal(block(torch.randn(2, 5, 3)))


def unit(
    *, pointers: int = 2, form: str = "code", scrambled: bool = False, causal: bool = False, restart: bool = False
) -> PointerUnit:
    sizes = {"pointers": pointers, "hidden": 6, "address_hidden": 5, "bits": 4, "e": 3}
    return PointerUnit(form=form, scrambled=scrambled, causal=causal, restart=restart, **sizes).double()


def slow_score(score: DotScore | CosineScore, h: Tensor, a: Tensor) -> Tensor:
    if isinstance(score, CosineScore):
        g = score.output.weight @ (score.hidden.weight @ a + score.hidden.bias).clamp(min=0) + score.output.bias
        return (h @ g) / (h.square().sum().sqrt() * g.square().sum().sqrt())
    query = score.query.weight @ (score.state_map.weight @ h + score.state_map.bias) + score.query.bias
    key = score.key.weight @ (score.address_map.weight @ a + score.address_map.bias) + score.key.bias
    return query @ key / sqrt(len(query))


def slow_unit(block: PointerUnit, middle: bool, causal: bool = False) -> Callable[..., Tensor]:
    def slow(a: Tensor, inputs: Tensor, mask_n: Tensor | None, mask_t: Tensor | None) -> Tensor:
        samples = []
        for b in range(len(a)):
            bank = [a[b, n] for n in range(a.shape[1]) if mask_n is None or mask_n[b, n]]
            pointers = []
            for index, pointer in enumerate(block.pointers):
                assert isinstance(pointer, Pointer)
                begin = bank[:1] if causal else bank
                starts = [begin[0], begin[-1], begin[len(begin) // 2]] if middle else [begin[0], begin[-1]]
                p, h = starts[index % len(starts)], torch.zeros(block.hidden, dtype=torch.float64)
                walk = []
                for step in range(inputs.shape[1]):
                    seen = bank[: step + 1] if causal else bank
                    restarts = block.restart and index % len(starts) == 1
                    h = gru_step(pointer.cell, seen[-1] if restarts else p, h)
                    powers = [torch.exp(slow_score(pointer.score, h, slot)) for slot in seen]
                    total = sum(powers, torch.zeros(()))
                    weights = [power / total for power in powers]
                    p = sum((w * slot for w, slot in zip(weights, seen, strict=True)), torch.zeros(4))
                    walk.append(torch.stack(weights + [weights[0] * 0] * (a.shape[1] - len(seen))))
                pointers.append(torch.stack(walk))
            samples.append(torch.stack(pointers, dim=1))
        return torch.stack(samples)

    return slow


@pytest.mark.parametrize("form", ["code", "paper"])
@pytest.mark.parametrize(
    ("steps", "options"),
    [
        (4, {"pointers": 1}), (4, {"pointers": 3}), (5, {"pointers": 3, "causal": True}),
        (5, {"pointers": 3, "causal": True, "restart": True}),
    ],
)  # fmt: skip
@each_mask
def test_pointers_walk_over_the_addresses_of_their_sample_or_what_was_written(
    form: str, steps: int, options: dict[str, Any], mask: Tensor | None
) -> None:
    block = unit(form=form, **options)
    a = torch.rand(3, 5, 4, dtype=torch.float64).round() + 0.1
    inputs = torch.randn(3, steps, 3, dtype=torch.float64)
    slow = slow_unit(block, form == "paper", causal=options.get("causal", False))
    agree(block, slow, a, inputs, mask_n=mask, mask_t=None)


def test_only_a_scrambled_walk_depends_on_the_other_samples() -> None:
    a, steps = torch.rand(3, 5, 4).double(), torch.zeros(3, 4, 3).double()
    for scrambled in (False, True):
        block = unit(scrambled=scrambled)
        alone = torch.cat([block(a[b : b + 1], steps[:1]) for b in range(3)])
        assert block(a, steps)[:, 1:].allclose(alone[:, 1:], atol=1e-10) is not scrambled


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("form", ["code", "paper"])
def test_each_pointer_reads_the_weighted_sum_of_slots(form: str, causal: bool) -> None:
    block = Dereference(form=form, causal=causal, k=2, d=4).double()
    for parameter in block.parameters():
        parameter.data.normal_()

    def slow(w: Tensor, memory: Tensor, mask_t: Tensor | None, mask_n: Tensor | None) -> Tensor:
        samples = []
        for b in range(len(w)):
            steps = []
            for t in range(w.shape[1]):
                parts = []
                for k in range(2):
                    content = memory[b]
                    if form == "code":
                        value = block.value[k]
                        assert isinstance(value, nn.Linear)
                        content = torch.stack([value.weight @ m + value.bias for m in memory[b]])
                    read = sum((w[b, t, k, n] * content[n] for n in range(t + 1 if causal else 6)), torch.zeros(4))
                    if form == "code":
                        output = block.output[k]
                        assert isinstance(output, nn.Linear)
                        read = output.weight @ read + output.bias
                    parts.append(read)
                steps.append(torch.cat(parts))
            samples.append(torch.stack(steps))
        return torch.stack(samples)

    w = torch.rand(3, 5, 2, 6, dtype=torch.float64).softmax(-1)
    agree(block, slow, w, torch.randn(3, 6, 4, dtype=torch.float64), mask_t=None, mask_n=None)


def relational(*, reads: int = 2, form: str = "code", dropout: float = 0.0, causal: bool = False) -> RelationalRead:
    return RelationalRead(reads=reads, hidden=5, form=form, dropout=dropout, causal=causal, k=7, d=4).double()


def slow_read(read: DotRead | CosineRead, r: int, p: Tensor, memory: Tensor, real: list[int]) -> Tensor:
    if isinstance(read, DotRead):
        part = slice(4 * r, 4 * r + 4)
        query = read.query.weight @ (read.pointed.weight[part] @ p + read.pointed.bias[part]) + read.query.bias
        scores = [query @ (read.key.weight @ memory[n] + read.key.bias) / 2 for n in real]
        values = [read.value.weight @ memory[n] + read.value.bias for n in real]
    else:
        hidden, output = read.hidden[r], read.output[r]
        assert isinstance(hidden, nn.Linear)
        assert isinstance(output, nn.Linear)
        query = output.weight @ (hidden.weight @ p + hidden.bias).clamp(min=0) + output.bias
        scores = [query @ memory[n] / (query.norm() * memory[n].norm()) for n in real]
        values = [memory[n] for n in real]
    y = attended(scores, values, 4)
    return read.output.weight @ y + read.output.bias if isinstance(read, DotRead) else y


@pytest.mark.parametrize("form", ["code", "paper"])
@each_mask
@pytest.mark.parametrize("causal", [False, True])
def test_each_read_is_attention_to_the_real_slots(form: str, mask: Tensor | None, causal: bool) -> None:
    block = relational(form=form, causal=causal)

    def slow(p: Tensor, memory: Tensor, mask_t: Tensor | None, mask_n: Tensor | None) -> Tensor:
        samples = []
        for b in range(len(p)):
            real = [n for n in range(5) if mask_n is None or mask_n[b, n]]
            steps = []
            for step, row in enumerate(p[b]):
                seen = [n for n in real if n <= step or not causal]
                steps.append(torch.cat([slow_read(block.read, r, row, memory[b], seen) for r in range(2)]))
            samples.append(torch.stack(steps))
        return torch.stack(samples)

    p, memory = torch.randn(3, 5, 7, dtype=torch.float64), torch.randn(3, 5, 4, dtype=torch.float64)
    agree(block, slow, p, memory, mask_t=None, mask_n=mask)


def test_dropout_is_on_the_weights_in_training() -> None:
    block = relational(dropout=0.5)
    p, memory = torch.randn(3, 5, 7).double(), torch.randn(3, 5, 4).double()
    assert block(p, memory).ne(block(p, memory)).any()
    assert block.eval()(p, memory).equal(block(p, memory))


@each_mask
def test_each_step_attends_by_the_state_before_it(mask: Tensor | None) -> None:
    block = AttentiveGru(hidden=5, e=3, d=4, s=5)

    def slow(x: Tensor, memory: Tensor, start: Tensor, mask_t: Tensor | None, mask_n: Tensor | None) -> Tensor:
        samples = []
        for b in range(len(x)):
            h, steps = start[b], []
            slots = [memory[b, n] for n in range(5) if mask_n is None or mask_n[b, n]]
            for row in x[b]:
                hidden = [
                    (block.attention.weight @ torch.cat((h, m)) + block.attention.bias).clamp(min=0) for m in slots
                ]
                context = attended([block.score @ features for features in hidden], slots, 4)
                h = gru_step(block.cell, torch.cat((row, context)), h)
                steps.append(block.output.weight @ torch.cat((h, context)) + block.output.bias)
            samples.append(torch.stack(steps))
        return torch.stack(samples)

    inputs = (torch.randn(3, *shape, dtype=torch.float64) for shape in ((2, 3), (5, 4), (5,)))
    agree(block, slow, *inputs, mask_t=None, mask_n=mask)
