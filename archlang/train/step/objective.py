"""What training minimizes: the loss of the answers, and the ponder of halting loops."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from archlang.train.data import Batch
from archlang.train.loss import mean_loss
from archlang.train.predictions import forward
from archlang.train.settings import Settings
from archlang.train.setup import Workload


def batch_loss(model: Callable[..., Tensor], batch: Batch, workload: Workload) -> Float[Tensor, ""]:
    """Returns the mean loss of a batch."""
    return mean_loss(forward(model, batch), batch, workload.rule, workload.settings.label_smoothing)


def add_ponder(
    loss: Float[Tensor, "*runs"], ponder: Float[Tensor, "*runs"], settings: Settings, share: float = 1.0
) -> Float[Tensor, "*runs"]:
    """Adds the weighted ponder to the loss of a part, which has a share of its batch's samples."""
    return loss + settings.ponder * share * ponder if settings.ponder else loss
