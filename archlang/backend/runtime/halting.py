"""The protocol of halting blocks: the halting state of a halting loop, and the class that advances it."""

from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(kw_only=True)
class HaltingState:
    """The tensors of a halting loop after some of its steps; a block may add its own in a subclass.

    A loop decides per position (`live` is [b, n]) or per sample (`live` is [b])."""

    state: Tensor
    """[b, n, d]: the current states; a halted state does not change"""
    mixture: Tensor
    """[b, n, d]: the halting-weighted mean of the states so far; after the loop, the loop's result"""
    live: Tensor
    """bool: what takes the next step"""
    accepted: Tensor
    """bool, as `live`: what took this step, out of what was live before it; the other states of the loop change only
    there"""
    ponder: Tensor
    """float [b]: what the loop adds to the loss for each sample"""
    steps: Tensor
    """int, as `live`: the number of steps taken"""
    remaining: Tensor | None = None
    """float, as `live`: the probability of not halting before the last accepted step, so that the probability of
    halting at a step is the difference to that of the next one; None if the block has no such probabilities, and then a
    recipe cannot supervise every step"""


class HaltingBlock(nn.Module):
    """Decides where a loop halts, and how its states mix.

    The loop runs

        halting = block.start(h, mask)
        while step <= limit and halting.live.any():
            halting = block.advance(halting, body(halting.state), mask)

    and its result is `halting.mixture`. `mask` is [b, n], True at real positions, or None if all positions are real.

    Samples are independent of each other. A sample without a live position may leave the batch: its mixture, ponder
    and steps must not change, whatever `advance` computes for others. Each field of a halting state has a row for
    each sample, or is no tensor. `archlang test` checks this."""

    def start(self, state: Tensor, mask: Tensor | None) -> HaltingState:
        """Returns the halting state before the first step, of the states [b, n, d]."""
        raise NotImplementedError

    def advance(self, halting: HaltingState, state: Tensor, mask: Tensor | None) -> HaltingState:
        """Returns the halting state after a step, whose body computed `state`, [b, n, d], from `halting.state`."""
        raise NotImplementedError
