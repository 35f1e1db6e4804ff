"""Label smoothing: cross entropy with targets of less than full probability."""

from math import log

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


def smoothed_entropy(
    logits: Float[Tensor, "n k"],
    targets: Int[Tensor, " n"],
    smoothing: float,
    choices: Bool[Tensor, "n k"] | None = None,
) -> Float[Tensor, " n"]:
    """Returns the loss of each prediction among k classes, or those of `choices`, where y is the target class and s is
    `smoothing`:

        -(1 - s) log p_y - s Σ_{c != y} log p_c + (1 - s) log(1 - s) + (k - 1) s log s

    Without smoothing it is the cross entropy. Each other class has the weight s, where torch gives s / k to all
    classes, and the minimum is subtracted. So the program of The Devil is in the Detail computes it; the paper does not
    mention it."""
    entropy = F.cross_entropy(logits, targets, reduction="none")
    if not smoothing:
        return entropy
    log_probabilities = logits.log_softmax(-1)
    count: int | Tensor = logits.shape[-1]
    if choices is not None:
        log_probabilities, count = log_probabilities.masked_fill(~choices, 0), choices.sum(-1)
    other_classes = -log_probabilities.sum(-1) - entropy
    negative_minimum = (1 - smoothing) * log(1 - smoothing) + (count - 1) * smoothing * log(smoothing)
    return (1 - smoothing) * entropy + smoothing * other_classes + negative_minimum
