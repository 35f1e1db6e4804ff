"""The cross entropy of stablemax, a softmax whose exponential is replaced."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from archlang.tasks.kit.split import Form
from archlang.train import mistakes
from archlang.train.data import Batch


def stablemax_entropy(logits: Float[Tensor, "*b k"], targets: Int[Tensor, " *b"]) -> Float[Tensor, " *b"]:
    """Returns the loss of each prediction, computed in 64 bits where the device has them:

        -log(s(x_y) / Σ_c s(x_c)),    s(x) = x + 1 if x >= 0, else 1 / (1 - x)

    Prieto et al., "Grokking at the edge of numerical stability", 2025; the programs of HRM and TRM."""
    wide = logits if logits.device.type == "mps" else logits.double()
    s = torch.where(wide >= 0, wide.clamp(min=0) + 1, 1 / (1 - wide.clamp(max=0)))
    p = s.gather(-1, targets[..., None])[..., 0] / s.sum(-1)
    return -p.log().to(logits.dtype)


def stablemax_losses(logits: Float[Tensor, "b *n k"], batch: Batch) -> Float[Tensor, "b *n"]:
    """Returns the loss of each sample, [b], of each position, [b n], or of the begin and the end of each span, [b 2].

    Raises:
        RunError: the answers are sets or numbers, which stablemax has no probabilities for."""
    if batch.form in (Form.SETS, Form.NUMBERS):
        raise mistakes.no_stablemax()
    return stablemax_entropy(logits, batch.targets)
