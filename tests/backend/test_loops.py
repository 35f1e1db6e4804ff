"""Claims about the loops at run time: each equals the loop that one would write by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend import Architecture
from archlang.backend.halting import HaltingBlock, Tally
from archlang.backend.loops import Halting

Compiled = Callable[..., Architecture]


class HaltAfter(HaltingBlock):
    """Halts where the first token's channel 0 says: after max(1, round(h[0])) steps; the mixture is the state's mean."""

    def __init__(self, *, per_position: bool, d: int) -> None:
        super().__init__()
        self.per_position = per_position
        self.scale = nn.Parameter(torch.ones(()))

    def start(self, state: Tensor, mask: Tensor | None) -> Tally:
        wanted = state[..., 0] if self.per_position else state[:, 0, 0]
        real = torch.ones(state.shape[:2], dtype=torch.bool) if mask is None else mask
        live = real if self.per_position else real.any(1)
        self.wanted = wanted.detach().round().clamp(min=1)
        return Tally(
            state=state,
            mixture=state,
            live=live,
            accepted=live,
            ponder=state.new_zeros(len(state)),
            steps=torch.zeros_like(live, dtype=torch.int64),
        )

    def advance(self, tally: Tally, state: Tensor, mask: Tensor | None) -> Tally:
        moved = tally.live[..., None] if self.per_position else tally.live[:, None, None]
        steps = tally.steps + tally.live
        new = torch.where(moved, state * self.scale, tally.state)
        return replace(
            tally,
            state=new,
            mixture=torch.where(moved, (tally.mixture + new) / 2, tally.mixture),
            live=tally.live & (steps < self.wanted),
            accepted=tally.live,
            ponder=self.scale * steps.reshape(len(state), -1).sum(1),
            steps=steps,
        )


class Count(nn.Module):
    """The number of real positions, in every channel."""

    def __init__(self, *, d: int) -> None:
        super().__init__()

    def forward(self, x: Tensor, *, mask_n: Tensor | None = None) -> Tensor:
        count = torch.full((len(x),), float(x.shape[1])) if mask_n is None else mask_n.sum(1).to(x.dtype)
        return count[:, None].expand(len(x), x.shape[2]).to(x.dtype)


class Same(nn.Module):
    """Tokens as channels: all of a position's are its token."""

    def __init__(self, *, d: int, vocab: int) -> None:
        super().__init__()
        self.d = d
        self.one = nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor, *, mask_n: Tensor | None = None) -> Tensor:
        return x[..., None] * self.one


PLUGINS = f"""
extern block halt_after[per_position: bool = false](state: seq[n, d]) -> prob[n] when per_position else prob
    python "{__name__}:HaltAfter"
extern block count(x: seq[n, d]) -> vec[d] python "{__name__}:Count"
extern block same[d: int](x: tokens[n, vocab]) -> seq[n, d] python "{__name__}:Same"
"""


# Repeat and stack


def test_repeat_is_a_loop_over_one_set_of_weights(compiled: Compiled) -> None:
    module = compiled(
        """
        model m[d = 8](x: tokens[n]) -> logits[classes] {
            h = embed[d](x)
            start = h
            repeat 3 { h <- norm(h + feedforward[16](h)) + start }
            return linear[classes](mean(h))
        }
        """
    )
    x, lengths = torch.randint(0, 11, (3, 6)), torch.tensor([6, 2, 4])
    mask = torch.arange(6) < lengths[:, None]
    parts = dict(module.named_children())
    start = h = parts["embed"](x)
    for _ in range(3):
        h = parts["norm"](h + parts["feedforward"](h)) + start
    wanted = parts["linear"]((h * mask[..., None]).sum(1) / lengths[:, None])
    torch.testing.assert_close(module(x, lengths=lengths), wanted)


def test_stack_has_its_own_weights_in_each_step_and_sees_what_is_around_it(compiled: Compiled) -> None:
    module = compiled(
        """
        model m[d = 8](x: tokens[n]) -> logits[classes] {
            let shared = linear[d]
            h = embed[d](x)
            k = h
            stack 2 {
                h <- feedforward[16](h) + shared(k)
                stack 3 {
                    k <- relu(linear[d](k)) + shared(h)
                }
            }
            return linear[classes](mean(h + k))
        }
        """
    )
    x = torch.randint(0, 11, (3, 6))
    at = module.get_submodule
    h = k = at("embed")(x)
    for step in range(2):
        h = at(f"stack.{step}.feedforward")(h) + at("shared")(k)
        for inner in range(3):
            k = torch.relu(at(f"stack.{step}.stack.{inner}.linear")(k)) + at("shared")(h)
    torch.testing.assert_close(module(x), at("linear")((h + k).mean(1)))


def test_states_of_a_loop_move_in_order(compiled: Compiled) -> None:
    module = compiled(
        PLUGINS
        + """
        model m[d = 1](x: tokens[n]) -> logits[n, 1] {
            a = same[d](x)
            b = a * 0
            repeat 4 {
                t = a + b
                b <- a
                a <- t
            }
            return a
        }
        """,
        plugins=True,
    )
    x = torch.tensor([[1, 2]])
    torch.testing.assert_close(module(x), torch.tensor([[[5.0], [10.0]]]))


# Halting


def by_hand(x: Tensor, lengths: Tensor, limit: int, per_position: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """h <- h + 1, k <- k + h, v <- v + (count of real positions), each position and sample in a loop of its own."""
    h, k = x.double()[..., None], x.double()[..., None]
    mixture, v = h.clone(), torch.zeros(len(x), 1).double()
    steps = torch.zeros(x.shape)
    for b in range(len(x)):
        wanted = [max(1, int(x[b, i if per_position else 0])) for i in range(x.shape[1])]
        moves = 0
        for i in range(x.shape[1] if not per_position else int(lengths[b])):
            for _ in range(min(limit, wanted[i])):
                k[b, i] += h[b, i]
                h[b, i] += 1
                mixture[b, i] = (mixture[b, i] + h[b, i]) / 2
                steps[b, i] += 1
            moves = max(moves, min(limit, wanted[i]))
        v[b] = moves * lengths[b]
    return mixture, k, v, steps


@pytest.mark.parametrize("per_position", [False, True])
def test_halting_stops_each_sample_or_position_by_itself(compiled: Compiled, per_position: bool) -> None:
    module = compiled(
        PLUGINS
        + """
        model m[d = 1, per_position = false](x: tokens[n]) -> logits[n, 3] {
            h = same[d](x)
            k = h
            v = count(h) * 0
            start = h
            repeat 4 halting h by halt_after[per_position] {
                k <- k + h
                v <- v + count(start)
                h <- h + 1.0
            }
            return concat(h, k, spread(v, start))
        }
        """.replace("spread(v, start)", "h * 0")
        + f"""
        model both[d = 1, per_position = false](x: tokens[n]) -> logits[d] {{
            h = same[d](x)
            v = count(h) * 0
            start = h
            repeat 4 halting h by halt_after[per_position] {{
                v <- v + count(start)
                h <- h + 1.0
            }}
            return v + count(h) * 0
        }}
        """,
        plugins=True,
        per_position=per_position,
    ).double()
    x, lengths = torch.tensor([[2, 9, 3, 1], [1, 0, 2, 5], [7, 1, 1, 1]]), torch.tensor([4, 3, 1])
    mixture, k, _, steps = by_hand(x, lengths, 4, per_position)
    made = module(x, lengths=lengths)
    real = torch.arange(4) < lengths[:, None]
    torch.testing.assert_close(made[..., :1][real], mixture[real])
    torch.testing.assert_close(made[..., 1:2][real], k[real])
    wanted = (steps * real).sum(1) if per_position else steps[:, 0]
    torch.testing.assert_close(module.ponder, wanted.mean().double())
    mean_steps = wanted / lengths if per_position else wanted
    torch.testing.assert_close(module.mean_depth, mean_steps.mean())
