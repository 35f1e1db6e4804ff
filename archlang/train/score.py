"""The loss of a batch, and how a model does on a whole split."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from archlang.record.schemas import DepthRecord, JointRecord, SplitResult
from archlang.tasks.kit.metrics import LOWER_IS_BETTER, Tally, tally
from archlang.tasks.kit.ragged import Integers, Ragged, Reals
from archlang.tasks.kit.split import Form, Split
from archlang.tasks.kit.task import JudgedTask, LossRule, Task, loss_rule
from archlang.train.data import Batch, Data
from archlang.train.generators import always_the_same
from archlang.train.label_smoothing import smoothed_entropy

# Groups that meet in more ways than this are not kept together.
_MOST_JOINT = 500


class Interrupted(Exception):
    """A measurement was given up because the run is asked to stop."""


@dataclass(frozen=True)
class Score:
    """What was measured on a split: each metric, the loss, and each metric by each value of each group; of so many as
    were `written`, the model wrote the answers by itself. `depths` are the steps that halting loops took for each item;
    None without such loops."""

    split: str
    items: int
    loss: float
    metrics: Mapping[str, float]
    groups: Mapping[str, Mapping[int, Mapping[str, float]]]
    _tallies: Mapping[str, Tally] = field(default_factory=dict, repr=False, compare=False)
    _members: Mapping[str, Integers] = field(default_factory=dict, repr=False, compare=False)
    written: int = 0
    depths: Reals | None = field(default=None, repr=False, compare=False)

    def among(self, metric: str, groups: Mapping[str, int]) -> float | None:
        """A metric over the items that are in all of these groups; None if it was not measured of any of them."""
        if metric not in self._tallies or not groups.keys() <= self._members.keys():
            return None
        chosen = np.ones(self.items, dtype=np.bool_)
        for name, value in groups.items():
            chosen &= self._members[name] == value
        share = self._tallies[metric].among(chosen)
        return None if math.isnan(share) else share

    def extended(self, tallies: Mapping[str, Tally], written: int) -> Score:
        """The score with more metrics, which that many answers were written for."""
        groups = {
            group: {
                value: {**known, **{name: one.among(self._members[group] == value) for name, one in tallies.items()}}
                for value, known in values.items()
            }
            for group, values in self.groups.items()
        }
        metrics = {**self.metrics, **{name: one.share for name, one in tallies.items()}}
        every = {**self._tallies, **tallies}
        return replace(self, metrics=metrics, groups=groups, written=written, _tallies=every)

    def result(self) -> SplitResult:
        """Returns the score as `results.json` has it."""
        return SplitResult(
            items=self.items,
            written=self.written,
            loss=self.loss,
            metrics=dict(self.metrics),
            groups={
                name: {value: dict(metrics) for value, metrics in values.items()}
                for name, values in self.groups.items()
            },
            depth=self._depth(),
            joint=tuple(self._joint()),
        )

    def _depth(self) -> DepthRecord | None:
        """Returns the mean steps of halting loops; None without such loops."""
        depths = self.depths
        if depths is None or not self.items:
            return None
        groups = {
            name: {int(value): float(depths[values == value].mean()) for value in np.unique(values)}
            for name, values in self._members.items()
        }
        return DepthRecord(mean=float(depths.mean()), groups=groups)

    def _joint(self) -> Iterator[JointRecord]:
        """Yields the metrics of the samples that are in two or more groups at once, unless the combinations are too
        many to store."""
        for size in range(2, len(self._members) + 1):
            for names in combinations(self._members, size):
                met = np.unique(np.stack([self._members[name] for name in names], axis=1), axis=0)
                for values in met.tolist() if len(met) <= _MOST_JOINT else ():
                    groups = dict(zip(names, values, strict=True))
                    metrics = {metric: self.among(metric, groups) for metric in self._tallies}
                    yield JointRecord(of=groups, metrics=metrics)


def forward(module: Callable[..., Tensor], batch: Batch) -> Tensor:
    """The logits of a batch."""
    lengths = next(iter(batch.lengths.values())) if len(batch.lengths) == 1 else batch.lengths
    return module(*batch.fields, lengths=lengths)


# The loss


def loss(
    logits: Float[Tensor, "..."], batch: Batch, rule: LossRule = LossRule.ENTROPY, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """The mean loss over samples, or over the scored positions of the batch; of spans that of both ends. Smoothing is
    for classes, not for spans or sets."""
    if batch.form is Form.SPANS:
        return F.cross_entropy(ends(logits, batch).transpose(1, 2).flatten(0, 1), batch.targets.flatten())
    if batch.scored is None:
        return smoothed_entropy(logits.float(), batch.targets, smoothing).mean()
    each = position_losses(logits, batch, rule, smoothing).flatten()
    counted = batch.scored.flatten()
    return (each * counted).sum() / counted.sum().clamp(min=1)


def position_losses(
    logits: Float[Tensor, "b n k"], batch: Batch, rule: LossRule = LossRule.ENTROPY, smoothing: float = 0.0
) -> Float[Tensor, "b n"]:
    """The loss at each position, scored or not; of sets the mean over their possible members."""
    logits = logits.float()
    if batch.form is not Form.SETS:
        each = smoothed_entropy(logits.flatten(0, 1), batch.targets.flatten(), smoothing)
        return each.view(batch.targets.shape)
    if rule is LossRule.SQUARES:
        return (logits.sigmoid() - batch.targets).square().mean(-1)
    return F.binary_cross_entropy_with_logits(logits, batch.targets, reduction="none").mean(-1)


def ends(logits: Float[Tensor, "b n 2"], batch: Batch) -> Float[Tensor, "b n 2"]:
    """The logits of beginning and end at each position; no span has a position that is not marked."""
    assert batch.scored is not None, "a split of spans marks where they may be"
    return logits.float().masked_fill(~batch.scored[..., None], -torch.inf)


# Predictions


def predict(logits: Float[Tensor, "b *_"], batch: Batch) -> Shaped[Tensor, "b *_"]:
    """What a model answers: the likeliest class, each member of a set that is likelier than not, the likeliest span."""
    match batch.form:
        case Form.SETS:
            return logits >= 0
        case Form.SPANS:
            return best_span(ends(logits, batch))
    return logits.argmax(-1)


def best_span(logits: Float[Tensor, "b n 2"]) -> Int[Tensor, "b 2"]:
    """The pair of positions with the largest sum that does not end before it begins."""
    best, begins = logits[..., 0].cummax(1)
    last = (best + logits[..., 1]).argmax(1)
    return torch.stack([begins.gather(1, last[:, None])[:, 0], last], 1)


class Answers:
    """The predictions of a whole split, and its losses where a metric is made of them, batch after batch."""

    def __init__(self, split: Split) -> None:
        self._split = split
        targets = split.targets
        shape = targets.values.shape if isinstance(targets, Ragged) else targets.shape
        self.predictions: np.ndarray = np.zeros(shape, dtype=np.bool_ if split.form is Form.SETS else np.int64)
        self.losses: Reals = np.zeros(len(split))
        self.counts: Integers = np.zeros(len(split), dtype=np.int64)

    def put(self, items: np.ndarray, chosen: np.ndarray) -> None:
        """Takes the answers of some items: a row each, of which what stands behind the item's targets is ignored."""
        targets = self._split.targets
        if not isinstance(targets, Ragged):
            self.predictions[items] = chosen
            return
        columns = np.arange(chosen.shape[1])
        inside = columns < targets.lengths[items][:, None]
        self.predictions[(targets.offsets[items][:, None] + columns)[inside]] = chosen[inside]

    def put_losses(self, items: np.ndarray, losses: np.ndarray, counts: np.ndarray) -> None:
        """Takes the sums of the losses of some items, and of how many they are."""
        self.losses[items], self.counts[items] = losses, counts

    def tallies(self, task: Task) -> dict[str, Tally]:
        """Every metric of the task."""
        split, found = self._split, dict[str, Tally]()
        judged = task.judge(split, self.predictions) if isinstance(task, JudgedTask) else {}
        for metric in task.metrics:
            if metric in judged:
                found[metric] = Tally(judged[metric], np.ones(len(split), dtype=np.int64))
            elif metric in LOWER_IS_BETTER:
                found[metric] = Tally(self.losses, self.counts, exponential=True)
            else:
                found[metric] = tally(metric, task.unit, split, self.predictions)
        return found


@torch.no_grad()
def evaluate(
    module: nn.Module,
    data: Data,
    split: Split,
    name: str,
    task: Task,
    batch: int = 1024,
    stopping: Callable[[], bool] = lambda: False,
) -> Score:
    """Every metric of the task on a split. Training notices nothing of it: the module's mode and the random numbers are
    afterwards as before.

    Raises:
        Interrupted: `stopping()` became true."""
    answers, rule = Answers(split), loss_rule(task)
    perplexed = not LOWER_IS_BETTER.isdisjoint(task.metrics)
    total = count = 0.0
    depths: Reals | None = None
    with _measuring(module, data.device):
        for part in data.in_order_of_length(batch):
            if stopping():
                raise Interrupted
            logits = forward(module, part)
            counted = part.scored if part.form is not Form.SPANS else None
            weight = float(counted.sum()) if counted is not None else float(len(part.items))
            total += float(loss(logits, part, rule)) * weight
            count += weight
            items = part.items.cpu().numpy()
            answers.put(items, predict(logits, part).cpu().numpy())
            if (depth := getattr(module, "sample_depth", None)) is not None:
                depths = np.zeros(len(split)) if depths is None else depths
                depths[items] = depth.cpu().numpy()
            if perplexed and counted is not None:
                # Summed here and not there: not every device has numbers of 64 bits.
                losses = (position_losses(logits, part, rule) * counted).cpu().numpy()
                answers.put_losses(items, losses.sum(1, dtype=np.float64), counted.sum(1).cpu().numpy())
    return replace(scored(name, split, task, answers, total / max(count, 1.0)), depths=depths)


def scored(name: str, split: Split, task: Task, answers: Answers, mean_loss: float) -> Score:
    """A split's answers as its score."""
    tallies = answers.tallies(task)
    groups = {
        group: {
            int(value): {metric: one.among(values == value) for metric, one in tallies.items()}
            for value in np.unique(values)
        }
        for group, values in split.groups.items()
    }
    measured = {metric: one.share for metric, one in tallies.items()}
    return Score(name, len(split), mean_loss, measured, groups, tallies, dict(split.groups))


@contextmanager
def _measuring(module: nn.Module, device: torch.device) -> Iterator[None]:
    """Evaluation mode and, for models that draw at test time too, always the same random numbers."""
    training = module.training
    module.eval()
    try:
        with always_the_same(device):
            yield
    finally:
        module.train(training)
