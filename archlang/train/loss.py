"""The loss of a batch, which training minimizes together with the ponder of halting loops and the charges of blocks."""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.tasks.kit.split import Form
from archlang.tasks.kit.task import LossRule
from archlang.train.data import Batch
from archlang.train.label_smoothing import smoothed_entropy
from archlang.train.predictions import forward, span_logits
from archlang.train.run_functions import NO_FUNCTIONS, RunFunctions
from archlang.train.settings import Settings
from archlang.train.setup import Workload


def training_loss(
    model: Callable[..., Tensor], batch: Batch, workload: Workload, module: Architecture
) -> Float[Tensor, ""]:
    """Returns the mean loss of a model on a batch, with the rule of the task and the smoothing of the recipe, or with
    the recipe's own loss. `module` is the module that `model` calls; it has the results of the steps that the recipe
    supervises."""
    settings = workload.settings
    module.keeps_steps = settings.supervise != "last"
    try:
        logits = forward(model, batch)
        steps = module.step_results or [logits]
    finally:
        # Later calls keep no steps, and the results belong to the graph of this one.
        module.keeps_steps, module.step_results = False, ()
    if settings.supervise == "mean":
        steps = [torch.stack([*steps]).mean(0)]
    elif settings.supervise == "last":
        steps = [logits]
    losses = [mean_loss(step, batch, workload.rule, settings.label_smoothing, workload.functions) for step in steps]
    return losses[0] if len(losses) == 1 else torch.stack(losses).mean()


def add_costs(
    loss: Float[Tensor, "*runs"],
    ponder: Float[Tensor, "*runs"],
    charges: Mapping[str, Float[Tensor, "*runs"]],
    settings: Settings,
    share: float = 1.0,
) -> Float[Tensor, "*runs"]:
    """Adds the weighted ponder and charges to the loss of a part, which has a share of its batch's samples."""
    if settings.ponder:
        loss = loss + settings.ponder * share * ponder
    for name, charge in charges.items():
        loss = loss + settings.charges.get(name, 1.0) * share * charge
    return loss


def mean_loss(
    logits: Float[Tensor, "..."],
    batch: Batch,
    rule: LossRule = LossRule.ENTROPY,
    smoothing: float = 0.0,
    functions: RunFunctions = NO_FUNCTIONS,
) -> Float[Tensor, ""]:
    """Returns the mean loss over samples, over the scored positions, or over the begins and ends of spans. Smoothing
    applies to classes, not to spans, sets or numbers. `functions` may have a loss in place of that of `rule`."""
    if batch.form is Form.SPANS:
        logits = span_logits(logits, batch).transpose(1, 2)
    losses = functions.losses(logits, batch)
    if batch.form is Form.SPANS:
        return F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten()) if losses is None else losses.mean()
    if batch.scored is None:
        return (smoothed_entropy(logits.float(), batch.targets, smoothing) if losses is None else losses).mean()
    losses = (position_losses(logits, batch, rule, smoothing) if losses is None else losses).flatten()
    scored = batch.scored.flatten()
    return (losses * scored).sum() / scored.sum().clamp(min=1)


def position_losses(
    logits: Float[Tensor, "b n k"], batch: Batch, rule: LossRule = LossRule.ENTROPY, smoothing: float = 0.0
) -> Float[Tensor, "b n"]:
    """Returns the loss at each position, scored or not: for sets, the mean over their possible members, and for rows of
    numbers the mean of their squared errors."""
    logits = logits.float()
    if batch.form is Form.NUMBERS:
        return (logits - batch.targets).square().mean(-1)
    if batch.form is not Form.SETS:
        choices = None if batch.choices is None else batch.choices[:, None].expand(logits.shape).flatten(0, 1)
        losses = smoothed_entropy(logits.flatten(0, 1), batch.targets.flatten(), smoothing, choices)
        return losses.view(batch.targets.shape)
    if rule is LossRule.SQUARES:
        return (logits.sigmoid() - batch.targets).square().mean(-1)
    return F.binary_cross_entropy_with_logits(logits, batch.targets, reduction="none").mean(-1)
