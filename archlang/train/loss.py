"""The loss of a batch, which training minimizes together with the ponder of halting loops and the charges of blocks."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.loops import StepResults
from archlang.backend.runtime.targets import judging
from archlang.graph.operations import Halting
from archlang.graph.step_results import loop_of_results
from archlang.tasks.kit.split import Form
from archlang.tasks.kit.task import LossRule
from archlang.train import mistakes
from archlang.train.data import Batch
from archlang.train.label_smoothing import NO_SMOOTHING, Smoothing
from archlang.train.predictions import answerable, exact_matches, forward, span_logits
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
    supervises_steps = settings.supervise in ("mean", "every")
    with (
        judging(module, partial(exact_matches, batch=batch)),
        module.keeping_steps() if supervises_steps else nullcontext(StepResults()) as results,
    ):
        logits = forward(model, batch)
    steps, weights = results.values, results.weights
    smoothing = Smoothing(settings.label_smoothing, settings.other_class_weight)
    loss = partial(mean_loss, batch=batch, rule=workload.rule, smoothing=smoothing, functions=workload.functions)
    if settings.supervise in ("last", "carried") or not steps:
        return loss(logits)
    loop = loop_of_results(module.program.graph)
    if not weights and loop is not None and isinstance(loop.operation, Halting):
        block = module.program.graph.instances[loop.operation.instance].block
        raise mistakes.no_halting_probabilities(settings.supervise, block)
    if settings.supervise == "mean":
        return loss(answerable(_weighted_mean(steps, weights), batch))
    steps = [answerable(step, batch) for step in steps]
    if weights:
        return torch.stack(
            [loss(step, weights=step_weights) for step, step_weights in zip(steps, weights, strict=True)]
        ).sum(0)
    return torch.stack([loss(step) for step in steps]).mean()


def _weighted_mean(
    results: Sequence[Float[Tensor, "b *classes"]], weights: Sequence[Float[Tensor, "b *n"]]
) -> Float[Tensor, "b *classes"]:
    """Returns the mean of the results of steps, weighted by the probabilities of halting at each, if there are any."""
    if not weights:
        return torch.stack([*results]).mean(0)
    return torch.stack([_beside(weight, step) * step for step, weight in zip(results, weights, strict=True)]).sum(0)


def _beside(weights: Float[Tensor, "b *n"], values: Float[Tensor, "b *k"]) -> Float[Tensor, "b *m"]:
    """Returns weights of samples or of positions in a shape that broadcasts over values."""
    return weights.reshape(*weights.shape, *[1] * (values.dim() - weights.dim()))


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
    smoothing: Smoothing = NO_SMOOTHING,
    functions: RunFunctions = NO_FUNCTIONS,
    weights: Float[Tensor, "b *n"] | None = None,
) -> Float[Tensor, ""]:
    """Returns the mean loss over samples, over the scored positions, or over the begins and ends of spans. Smoothing
    applies to classes, not to spans, sets or numbers. `functions` may have a loss in place of that of `rule`. Each loss
    is multiplied by the weight of its sample or position."""
    if batch.form is Form.SPANS:
        logits = span_logits(logits, batch).transpose(1, 2)
    losses = functions.losses(logits, batch)
    if losses is None:
        losses = _item_losses(logits, batch, rule, smoothing)
    if weights is not None:
        if batch.form is Form.SPANS and weights.dim() > 1:
            raise mistakes.positions_halt_separately()
        losses = losses * _beside(weights, losses)
    if batch.form is Form.SPANS or batch.scored is None:
        return losses.mean()
    losses, scored = losses.flatten(), batch.scored.flatten()
    return (losses * scored).sum() / scored.sum().clamp(min=1)


def _item_losses(
    logits: Float[Tensor, "..."], batch: Batch, rule: LossRule, smoothing: Smoothing
) -> Float[Tensor, "b *n"]:
    """The loss of each sample, of each position, or of the begin and the end of each span."""
    if batch.form is Form.SPANS:
        return F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), reduction="none").view_as(batch.targets)
    if batch.scored is None:
        return smoothing.losses(logits.float(), batch.targets)
    return position_losses(logits, batch, rule, smoothing)


def position_losses(
    logits: Float[Tensor, "b n k"], batch: Batch, rule: LossRule = LossRule.ENTROPY, smoothing: Smoothing = NO_SMOOTHING
) -> Float[Tensor, "b n"]:
    """Returns the loss at each position, scored or not: for sets, the mean over their possible members, and for rows of
    numbers the mean of their squared errors."""
    logits = logits.float()
    if batch.form is Form.NUMBERS:
        return (logits - batch.targets).square().mean(-1)
    if batch.form is not Form.SETS:
        choices = None if batch.choices is None else batch.choices[:, None].expand(logits.shape).flatten(0, 1)
        losses = smoothing.losses(logits.flatten(0, 1), batch.targets.flatten(), choices)
        return losses.view(batch.targets.shape)
    if rule is LossRule.SQUARES:
        return (logits.sigmoid() - batch.targets).square().mean(-1)
    return F.binary_cross_entropy_with_logits(logits, batch.targets, reduction="none").mean(-1)
