"""What a halting loop asks of the block that it halts by."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(kw_only=True)
class Tally:
    """The tensors of one halting loop after some of its steps; a block that needs more of them adds its own.

    A loop decides per position (`live` is [b, n]) or per sample (`live` is [b])."""

    state: Tensor
    """[b, n, d]: the current states; those that have halted stay as they were"""
    mixture: Tensor
    """[b, n, d]: the halting-weighted mean of the states so far; after the loop, the loop's result"""
    live: Tensor
    """bool: what runs on after this step"""
    accepted: Tensor
    """bool, as `live`: what took this step, of what was live before it; the other states of the loop move only there"""
    ponder: Tensor
    """float [b]: what the loop adds to the loss for each sample"""
    steps: Tensor
    """int, as `live`: how many steps were taken"""


class HaltingBlock(nn.Module):
    """Decides where a loop goes on, and how its states mix.

    The loop runs

        tally = block.start(h, mask)
        while step <= limit and tally.live.any():
            tally = block.advance(tally, body(tally.state), mask)

    and its result is `tally.mixture`. `mask` is [b, n], True at real positions, or None where all are.

    A sample decides by itself. One that has no live position may leave the batch: its mixture, ponder and steps must
    stay as they are, whatever `advance` computes for others. Each field of a tally has a row for each sample, or is no
    tensor. `archlang test` holds a block to this."""

    def start(self, state: Tensor, mask: Tensor | None) -> Tally:
        """The tally before the first step."""
        raise NotImplementedError

    def advance(self, tally: Tally, state: Tensor, mask: Tensor | None) -> Tally:
        """The tally after a step whose body made `state` of `tally.state`."""
        raise NotImplementedError
