"""From the logits of a batch to predictions, and to the loss that training minimizes.

It is minimized together with the ponder of halting loops and the auxiliary losses of blocks."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from math import log

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.block import judging
from archlang.backend.runtime.loops import StepResults
from archlang.graph.graph import loop_of_results
from archlang.graph.operations import LOSSES, Halting
from archlang.tasks.kit.split import TargetForm
from archlang.tasks.kit.task import LossRule
from archlang.train import mistakes
from archlang.train.data import Batch
from archlang.train.settings import NO_SETTINGS, Settings


def forward(module: Callable[..., Tensor], batch: Batch) -> Float[Tensor, "b *_"]:
    """Returns the logits of a batch; those of padding that an answer cannot point at are the lowest number."""
    lengths = next(iter(batch.lengths.values())) if len(batch.lengths) == 1 else batch.lengths
    return answerable(module(*batch.fields.values(), lengths=lengths), batch)


def answerable(logits: Float[Tensor, "b *_"], batch: Batch) -> Float[Tensor, "b *_"]:
    """Returns the result of a model as logits of the answers of a batch, as `forward` does."""
    choices = batch.choices
    if choices is None:
        return logits
    # Finite, because an item without positions would become NaN.
    logits = logits.squeeze(-1).float()
    return logits.masked_fill(~choices[:, None], torch.finfo(logits.dtype).min)


def span_logits(logits: Float[Tensor, "b n 2"], batch: Batch) -> Float[Tensor, "b n 2"]:
    """Masks the logits of begin and end at the positions that a span cannot have."""
    assert batch.scored is not None, "a split of spans marks the positions that a span can have"
    return logits.float().masked_fill(~batch.scored[..., None], -torch.inf)


def predict(logits: Float[Tensor, "b *_"], batch: Batch) -> Shaped[Tensor, "b *_"]:
    """Returns the most likely class, position or span, the members of a set with a probability of at least 0.5, or the
    numbers themselves."""
    match batch.form:
        case TargetForm.NUMBERS:
            return logits.float()
        case TargetForm.SETS:
            return logits >= 0
        case TargetForm.SPANS:
            return best_span(span_logits(logits, batch))
    return logits.argmax(-1)


def exact_matches(logits: Float[Tensor, "b *_"], batch: Batch) -> Bool[Tensor, " b"]:
    """Returns whether the predictions of a model's `logits` are the targets in all scored positions of a sample."""
    matches = predict(answerable(logits, batch), batch) == batch.targets
    if batch.form is TargetForm.SPANS or batch.scored is None:
        return matches.flatten(1).all(1) if matches.dim() > 1 else matches
    matches = matches.all(-1) if batch.form in (TargetForm.SETS, TargetForm.NUMBERS) else matches
    return (matches | ~batch.scored).all(1)


def best_span(logits: Float[Tensor, "b n 2"]) -> Int[Tensor, "b 2"]:
    """Returns the pair of positions with the largest sum of logits whose end is not before its begin."""
    best_begin_logit, best_begin = logits[..., 0].cummax(1)
    end = (best_begin_logit + logits[..., 1]).argmax(1)
    return torch.stack([best_begin.gather(1, end[:, None])[:, 0], end], 1)


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


def training_loss(
    model: Callable[..., Tensor],
    batch: Batch,
    module: Architecture,
    settings: Settings,
    rule: LossRule = LossRule.ENTROPY,
) -> Float[Tensor, ""]:
    """Returns the mean loss of a model on a batch, with the rule of the task and the smoothing of the recipe, or with
    the recipe's own loss. `module` is the module that `model` calls; it has the results of the steps that the recipe
    supervises."""
    with (
        judging(module, partial(exact_matches, batch=batch)),
        module.keeping_steps() if settings.supervise == "every" else nullcontext(StepResults()) as results,
    ):
        logits = forward(model, batch)
    steps, weights = results.values, results.weights
    smoothing = Smoothing(settings.label_smoothing, settings.other_class_weight)
    loss = partial(mean_loss, batch=batch, rule=rule, smoothing=smoothing, settings=settings)
    if not steps:
        return loss(logits)
    loop = loop_of_results(module.program.graph)
    if not weights and loop is not None and isinstance(loop.operation, Halting):
        block = module.program.graph.instances[loop.operation.instance].block
        raise mistakes.no_halting_probabilities(block)
    steps = [answerable(step, batch) for step in steps]
    if weights:
        return torch.stack(
            [loss(step, weights=step_weights) for step, step_weights in zip(steps, weights, strict=True)]
        ).sum(0)
    return torch.stack([loss(step) for step in steps]).mean()


def add_costs(
    loss: Float[Tensor, "*runs"],
    ponder: Float[Tensor, "*runs"],
    auxiliary: Mapping[str, Float[Tensor, "*runs"]],
    settings: Settings,
    share: float = 1.0,
) -> Float[Tensor, "*runs"]:
    """Adds the weighted ponder and auxiliary losses to the loss of a part, which has a share of its batch's samples."""
    if settings.ponder:
        loss = loss + settings.ponder * share * ponder
    for name, value in auxiliary.items():
        loss = loss + getattr(settings, f"{LOSSES}{name}", 1.0) * share * value
    return loss


def mean_loss(
    logits: Float[Tensor, "..."],
    batch: Batch,
    rule: LossRule = LossRule.ENTROPY,
    smoothing: Smoothing = NO_SMOOTHING,
    settings: Settings = NO_SETTINGS,
    weights: Float[Tensor, "b *n"] | None = None,
) -> Float[Tensor, ""]:
    """Returns the mean loss over samples, over the scored positions, or over the begins and ends of spans. Smoothing
    applies to classes, not to spans, sets or numbers. `settings` may have a loss in place of that of `rule`. Each loss
    is multiplied by the weight of its sample or position."""
    if batch.form is TargetForm.SPANS:
        logits = span_logits(logits, batch).transpose(1, 2)
    losses = settings.own_losses(logits, batch.targets, batch.form)
    if losses is None:
        losses = _item_losses(logits, batch, rule, smoothing)
    if weights is not None:
        if batch.form is TargetForm.SPANS and weights.dim() > 1:
            raise mistakes.positions_halt_separately()
        losses = losses * weights.reshape(*weights.shape, *[1] * (losses.dim() - weights.dim()))
    if batch.form is TargetForm.SPANS or batch.scored is None:
        return losses.mean()
    losses, scored = losses.flatten(), batch.scored.flatten()
    return (losses * scored).sum() / scored.sum().clamp(min=1)


def _item_losses(
    logits: Float[Tensor, "..."], batch: Batch, rule: LossRule, smoothing: Smoothing
) -> Float[Tensor, "b *n"]:
    if batch.form is TargetForm.SPANS:
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
    if batch.form is TargetForm.NUMBERS:
        return (logits - batch.targets).square().mean(-1)
    if batch.form is not TargetForm.SETS:
        choices = None if batch.choices is None else batch.choices[:, None].expand(logits.shape).flatten(0, 1)
        losses = smoothing.losses(logits.flatten(0, 1), batch.targets.flatten(), choices)
        return losses.view(batch.targets.shape)
    if rule is LossRule.SQUARES:
        return (logits.sigmoid() - batch.targets).square().mean(-1)
    return F.binary_cross_entropy_with_logits(logits, batch.targets, reduction="none").mean(-1)
