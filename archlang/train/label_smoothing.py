"""Label smoothing: a class that is asked for to some degree less than surely."""

from __future__ import annotations

from math import log

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def smoothed_entropy(logits: Float[Tensor, "n k"], targets: Int[Tensor, " n"], smoothing: float) -> Float[Tensor, " n"]:
    """The loss of each answer among k classes, y being the one that is asked for and s = `smoothing`:

        -(1 - s) log p_y - s Σ_{c != y} log p_c + (1 - s) log(1 - s) + (k - 1) s log s

    Without smoothing it is the cross entropy. Each other class has the weight s, where torch's gives s / k to all, and
    what is left of it at best is taken away: so The Devil is in the Detail computes it (its program; the paper does
    without)."""
    entropy = F.cross_entropy(logits, targets, reduction="none")
    if not smoothing:
        return entropy
    others = -logits.log_softmax(-1).sum(-1) - entropy
    best = (1 - smoothing) * log(1 - smoothing) + (logits.shape[-1] - 1) * smoothing * log(smoothing)
    return (1 - smoothing) * entropy + smoothing * others + best
