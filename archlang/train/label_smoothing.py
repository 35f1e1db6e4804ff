"""Label smoothing: cross entropy with targets of less than full probability."""

from dataclasses import dataclass
from math import log

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Smoothing:
    """How the target classes of a loss are smoothed: the settings of these names."""

    label_smoothing: float = 0.0
    other_class_weight: float = 0.0

    def losses(
        self, logits: Float[Tensor, "n k"], targets: Int[Tensor, " n"], choices: Bool[Tensor, "n k"] | None = None
    ) -> Float[Tensor, " n"]:
        """Returns the loss of each prediction among k classes, or those of `choices`, where y is the target class. With
        s = `label_smoothing` it is torch's:

            -(1 - s) log p_y - s / k Σ_c log p_c

        With w = `other_class_weight` each other class has the weight w, and the minimum is subtracted:

            -(1 - w) log p_y - w Σ_{c != y} log p_c + (1 - w) log(1 - w) + (k - 1) w log w

        So the program of The Devil is in the Detail smooths; all its published results have w = 0."""
        entropy = F.cross_entropy(logits, targets, reduction="none")
        if not self.label_smoothing and not self.other_class_weight:
            return entropy
        log_probabilities = logits.log_softmax(-1)
        count: int | Tensor = logits.shape[-1]
        if choices is not None:
            log_probabilities, count = log_probabilities.masked_fill(~choices, 0), choices.sum(-1)
        all_classes = -log_probabilities.sum(-1)
        if self.label_smoothing:
            return (1 - self.label_smoothing) * entropy + self.label_smoothing / count * all_classes
        weight = self.other_class_weight
        negative_minimum = (1 - weight) * log(1 - weight) + (count - 1) * weight * log(weight)
        return (1 - weight) * entropy + weight * (all_classes - entropy) + negative_minimum


NO_SMOOTHING = Smoothing()
