"""Claims about the loops at run time: each equals the loop written by hand."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend import halting_loops
from archlang.backend.runtime.halting import HaltingBlock, Tally
from archlang.record.mistakes import RunError
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Split
from archlang.train.data import Data
from archlang.train.loss import training_loss
from tests.closeness import close
from tests.conftest import Compiled
from tests.train.settings_of_a_run import SETTINGS


@dataclass(kw_only=True)
class Planned(Tally):
    """A tally with the number of steps to take."""

    wanted: Tensor


class HaltAfter(HaltingBlock):
    """Halts after as many steps as channel 0 says at first, of position 0 or of each; at least one."""

    def __init__(self, *, per_position: bool, d: int) -> None:
        super().__init__()
        self.per_position = per_position
        self.scale = nn.Parameter(torch.ones(()))

    def start(self, state: Tensor, mask: Tensor | None) -> Tally:
        wanted = state[..., 0] if self.per_position else state[:, 0, 0]
        real = torch.ones(state.shape[:2], dtype=torch.bool) if mask is None else mask
        live = real if self.per_position else real.any(1)
        return Planned(
            wanted=wanted.detach().round().clamp(min=1),
            state=state,
            mixture=state,
            live=live,
            accepted=live,
            ponder=state.new_zeros(len(state)),
            steps=torch.zeros_like(live, dtype=torch.int64),
        )

    def advance(self, tally: Tally, state: Tensor, mask: Tensor | None) -> Tally:
        assert isinstance(tally, Planned)
        moved = tally.live[..., None] if self.per_position else tally.live[:, None, None]
        steps = tally.steps + tally.live
        new = torch.where(moved, state * self.scale, tally.state)
        return replace(
            tally,
            state=new,
            mixture=torch.where(moved, (tally.mixture + new) / 2, tally.mixture),
            live=tally.live & (steps < tally.wanted),
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
    close(module(x, lengths=lengths), wanted)


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
    close(module(x), torch.tensor([[[5.0], [10.0]]]))


# Halting


HALTING = (
    PLUGINS
    + """
    model states[per_position: bool](x: tokens[n]) -> logits[n, 2] {
        h = same[1](x)
        k = h
        repeat 4 halting h by halt_after[per_position] {
            k <- k + h
            h <- h + 1.0
        }
        return concat(h, k)
    }

    model vector[per_position: bool](x: tokens[n]) -> logits[1] {
        h = same[1](x)
        v = count(h) * 0
        repeat 4 halting h as s by halt_after[per_position] {
            h <- h + 1.0
            v <- v + count(s)
        }
        return v + count(h)
    }
    """
)


def halts_by(x: Tensor, lengths: Tensor, per_position: bool) -> Float[Tensor, "b n"]:
    """The steps of each real position; of padded ones none."""
    first = x if per_position else x[:, :1].expand_as(x)
    real = torch.arange(x.shape[1]) < lengths[:, None]
    return first.clamp(min=1, max=4) * real


X, LENGTHS = torch.tensor([[2, 9, 3, 1], [1, 0, 2, 5], [7, 1, 1, 1]]), torch.tensor([4, 3, 1])


@pytest.mark.parametrize("per_position", [False, True])
def test_ponder_and_depth_are_means_over_the_batch(compiled: Compiled, per_position: bool) -> None:
    module = compiled(HALTING, plugins=True, model="states", per_position=per_position)
    module(X, lengths=LENGTHS)
    steps = halts_by(X, LENGTHS, per_position).float()
    wanted = steps.sum(1) if per_position else steps[:, 0]
    close(module.ponder, wanted.mean())
    close(module.mean_depth, (steps.sum(1) / LENGTHS).mean())
    assert module.ponder.requires_grad
    assert module.mean_depth is not None
    assert not module.mean_depth.requires_grad


EMITTING = (
    PLUGINS
    + """
    model m[per_position: bool, summed: bool](x: tokens[n]) -> logits[n, 1] {
        h = same[1](x)
        y = repeat 4 halting h by halt_after[per_position] {
            h <- h + 1.0
            emit count(h) * h + sum(h) when summed else h * 10
        }
        return y
    }
    """
)


def test_a_halting_block_without_probabilities_of_halting_cannot_be_supervised(compiled: Compiled) -> None:
    module = compiled(EMITTING, plugins=True, model="m", per_position=True, summed=False)
    split = Split({"x": Ragged.of([[2, 1]])}, Ragged.of([[0, 0]]))
    settings = SETTINGS.changed(supervise="every")
    with pytest.raises(RunError, match="`halt_after` has no probabilities of halting"):
        training_loss(module, Data(split, torch.device("cpu")).batch(np.array([0])), module, settings)


def test_a_halting_loop_stops_when_all_samples_have_halted(compiled: Compiled) -> None:
    module = compiled(HALTING, plugins=True, model="states", per_position=False)
    tallies: list[Tally] = []
    (loop,) = halting_loops(module)
    loop.watch = tallies.append
    module(torch.tensor([[2, 9], [1, 9]]))
    assert [tally.accepted.tolist() for tally in tallies] == [[True, True], [True, False]]


# Scan

SCAN = (
    PLUGINS
    + """
    model m[vector: bool = false](x: tokens[n]) -> logits[1] when vector else logits[n, 1] {
        h = same[1](x)
        m = count(h) * 0
        k = h
        y = scan c in chunks[2](h) carry m {
            c <- c * 2
            m <- m * 10 + count(c)
            emit c + 1.0
        }
        if vector { return m } else { return y }
    }
    """
)


def test_a_sample_without_real_positions_in_a_chunk_keeps_its_memory(compiled: Compiled) -> None:
    x = torch.arange(20).reshape(4, 5)
    module = compiled(SCAN, plugins=True, vector=True, vocab=20)
    result = module(x, lengths=torch.tensor([5, 4, 3, 1]))
    assert result.flatten().tolist() == [221, 22, 21, 1]
    assert module(x).flatten().tolist() == [221] * 4


def test_ponder_and_depth_of_a_scan_are_means_over_real_chunks(compiled: Compiled) -> None:
    module = compiled(
        PLUGINS
        + """
        model m(x: tokens[n]) -> logits[n, 1] {
            y = scan c in chunks[2](same[1](x)) {
                repeat 9 halting c by halt_after { c <- c + 1.0 }
                emit c
            }
            return y
        }
        """,
        plugins=True,
    )
    x = torch.tensor([[2, 0, 4, 0, 6], [3, 0, 5, 0, 9], [8, 0, 9, 0, 9]])
    module(x, lengths=torch.tensor([5, 3, 2]))
    close(module.ponder, torch.tensor([(2 + 4 + 6) / 3, (3 + 5) / 2, 8.0]).mean())
    close(module.mean_depth, torch.tensor([(2 + 4 + 6) / 3, (3 + 5) / 2, 8.0]).mean())
    module(x)
    close(module.ponder, torch.tensor([4.0, 17 / 3, 26 / 3]).mean())
