"""The metrics of a model on a whole split, with the answers that it writes without teacher forcing."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations, islice

import numpy as np
import torch
from torch import Tensor, nn

from archlang.backend.architecture import Architecture
from archlang.backend.decode.greedy import decode, target_of
from archlang.tasks.kit.metrics import Tally, tally
from archlang.tasks.kit.split import Integers, Ragged, Reals, Split, TargetForm
from archlang.tasks.kit.task import DecodableTask, JudgedTask, Kind, Task, loss_rule
from archlang.train.data import Batch, DeviceSplit
from archlang.train.devices import fixed_randomness
from archlang.train.loss import forward, mean_loss, position_losses, predict
from archlang.train.record.schemas import DepthRecord, JointRecord, Metrics, SplitResult
from archlang.train.settings import NO_SETTINGS, Settings
from archlang.train.sharding import gathered, resharded

# Joint metrics of groups with more combinations of values than this are not stored.
_MOST_JOINT = 500


class Interrupted(Exception):
    """An evaluation ended early because a stop was requested."""


@dataclass(frozen=True, eq=False)
class Score:
    """The evaluation of a split: its loss, the tally of each metric, and the values of its groups by item.

    `written` is the number of answers that the model wrote without teacher forcing. `depths` are the steps that halting
    loops took for each item; None without such loops. `contexts` are for a language model the mean losses of the tokens
    that are predicted from 1, 2 to 3, 4 to 7, … tokens, by the least number of each."""

    split: str
    loss: float
    tallies: Mapping[str, Tally]
    groups: Mapping[str, Integers]
    items: int
    depths: Reals | None = None
    written: int = 0
    contexts: Mapping[int, float] = field(default_factory=dict)

    @property
    def metrics(self) -> dict[str, float]:
        return {metric: tally.share for metric, tally in self.tallies.items()}

    def result(self) -> SplitResult:
        """Returns the score as `results.json` has it: each metric also by each value of each group."""
        groups = {
            group: {int(value): self._among(values == value) for value in np.unique(values)}
            for group, values in self.groups.items()
        }
        return SplitResult(
            items=self.items, written=self.written, loss=self.loss, metrics={**self.metrics}, groups=groups,
            depth=self._depth(), joint=tuple(self._joint()), contexts=dict(self.contexts),
        )  # fmt: skip

    def _among(self, chosen: np.ndarray) -> Metrics:
        return {metric: tally.among(chosen) for metric, tally in self.tallies.items()}

    def _depth(self) -> DepthRecord | None:
        depths = self.depths
        if depths is None or not self.items:
            return None
        groups = {
            name: {int(value): float(depths[values == value].mean()) for value in np.unique(values)}
            for name, values in self.groups.items()
        }
        return DepthRecord(mean=float(depths.mean()), groups=groups)

    def _joint(self) -> Iterator[JointRecord]:
        """Yields each metric by the values of two or more groups, unless there are too many combinations to store."""
        for size in range(2, len(self.groups) + 1):
            for names in combinations(self.groups, size):
                table = np.stack([self.groups[name] for name in names], axis=1)
                rows = np.unique(table, axis=0)
                for values in rows if len(rows) <= _MOST_JOINT else ():
                    metrics = self._among((table == values).all(axis=1))
                    yield JointRecord(of=dict(zip(names, values.tolist(), strict=True)), metrics=metrics)


class Answers:
    """The predictions for a whole split, and the losses that metrics are made of, collected batch by batch."""

    def __init__(self, split: Split) -> None:
        self._split = split
        targets = split.targets
        shape = targets.values.shape if isinstance(targets, Ragged) else targets.shape
        dtypes = {TargetForm.SETS: np.bool_, TargetForm.NUMBERS: np.float32}
        self.predictions: np.ndarray = np.zeros(shape, dtype=dtypes.get(split.form, np.int64))
        self.losses: Reals = np.zeros(len(split))
        self.counts: Integers = np.zeros(len(split), dtype=np.int64)

    def put(self, items: np.ndarray, predictions: np.ndarray) -> None:
        """Stores the predictions for some items, a row each; columns behind an item's targets are ignored."""
        targets = self._split.targets
        if not isinstance(targets, Ragged):
            self.predictions[items] = predictions
            return
        columns = np.arange(predictions.shape[1])
        starts = targets.offsets[items][:, None]
        inside = columns < targets.offsets[items + 1][:, None] - starts
        self.predictions[(starts + columns)[inside]] = predictions[inside]

    def tallies(self, task: Task, settings: Settings = NO_SETTINGS) -> dict[str, Tally]:
        """Counts every metric of the task, and those of `settings`."""
        split, tallies = self._split, dict[str, Tally]()
        judged = task.judge(split, self.predictions) if isinstance(task, JudgedTask) else {}
        for metric in task.metrics:
            if metric in judged:
                tallies[metric] = Tally(judged[metric], np.ones(len(split), dtype=np.int64))
            elif metric == "perplexity":
                tallies[metric] = Tally(self.losses, self.counts, exponential=True)
            elif metric == "bits_per_byte":
                tallies[metric] = Tally(self.losses / math.log(2), split.notes["bytes"].values)
            else:
                tallies[metric] = tally(metric, task.unit, split, self.predictions)
        for metric, scores in settings.own_scores(split, self.predictions).items():
            tallies[metric] = Tally(scores, np.ones(len(split), dtype=np.int64))
        return tallies


# What the device computes of a batch.
Tensors = tuple[Tensor | None, ...]
Compute = Callable[[DeviceSplit, np.ndarray, Callable[[Batch], Tensors]], Tensors]


def compute_eagerly(data: DeviceSplit, items: np.ndarray, function: Callable[[Batch], Tensors]) -> Tensors:
    """Returns what a function computes of the batch of some items, one operation at a time."""
    return function(data.batch(items))


@torch.no_grad()
def evaluate(
    module: nn.Module,
    data: DeviceSplit,
    split: Split,
    name: str,
    task: Task,
    batch: int = 1024,
    stopping: Callable[[], bool] = lambda: False,
    settings: Settings = NO_SETTINGS,
    processes: int = 1,
    compute: Compute = compute_eagerly,
) -> Score:
    """Evaluates every metric of the task and of `settings` on a split, at most `batch` items at a time. Each of several
    processes evaluates some batches, and all return the score of one; of a divided module, all compute equally many
    batches. The module's mode and the random generators are restored afterwards.

    Raises:
        Interrupted: `stopping()` became true."""
    answers, rule = Answers(split), loss_rule(task)
    needs_losses = not {"perplexity", "bits_per_byte"}.isdisjoint(task.metrics)
    batches = list(data.items_by_length(batch))
    losses, weights = np.zeros(len(batches)), np.zeros(len(batches))
    depths, has_depths = np.zeros(len(split)), np.zeros(1)
    contexts = np.zeros((len(batches), 2, 64))  # sums and counts of losses by the logarithm of the context

    def results(part: Batch) -> Tensors:
        """On the device: the loss, the predictions, the depths, which positions count, and their losses."""
        logits = forward(module, part)
        loss, depth = mean_loss(logits, part, rule, settings=settings), getattr(module, "sample_depth", None)
        scored = part.scored if part.form is not TargetForm.SPANS else None
        item_losses = position_losses(logits, part, rule) * scored if needs_losses and scored is not None else None
        return loss, predict(logits, part), depth, scored, item_losses

    def outputs(items: np.ndarray) -> list[np.ndarray | None]:
        if stopping():
            raise Interrupted
        computed = compute(data, items, results)
        return [None if tensor is None else tensor.cpu().numpy() for tensor in computed]

    def measure(number: int, items: np.ndarray) -> None:
        loss, predictions, depth, scored, item_losses = outputs(items)
        assert loss is not None
        assert predictions is not None
        weights[number] = len(items) if scored is None else scored.sum()
        losses[number] = loss * weights[number]
        answers.put(items, predictions)
        if depth is not None:
            has_depths[0], depths[items] = 1, depth
        if item_losses is not None and scored is not None:
            # Summed on the host, as not every device has 64-bit floats.
            answers.losses[items] = item_losses.sum(1, dtype=np.float64)
            answers.counts[items] = scored.sum(1)
            places = np.log2(np.arange(1, item_losses.shape[1] + 1)).astype(np.int64)
            np.add.at(contexts[number, 0], places, item_losses.sum(0, dtype=np.float64))
            np.add.at(contexts[number, 1], places, scored.sum(0))

    with _evaluation_mode(module, data.device), resharded(module) as units:
        measured = (losses, weights, depths, has_depths, answers.predictions, answers.losses, answers.counts, contexts)
        _compute_in_shares(measure, batches, measured, data.device, processes, outputs if units else None)
    # In the order of the batches, so that the sum does not depend on the number of processes.
    total = float(np.cumsum(losses)[-1]) if batches else 0.0
    tallies = answers.tallies(task, settings)
    mean = total / max(weights.sum(), 1.0)
    sums, counts = contexts.sum(0)
    # What a tag is predicted from is on both sides of it.
    counts *= task.kind is not Kind.TAGGING
    by_context = {2**place: float(sums[place] / counts[place]) for place in np.flatnonzero(counts).tolist()}
    steps = depths if has_depths[0] else None
    return Score(name, mean, tallies, split.groups, len(split), steps, contexts=by_context)


def _compute_in_shares(
    compute: Callable[[int, np.ndarray], None],
    batches: Sequence[np.ndarray],
    results: Sequence[np.ndarray],
    device: torch.device,
    processes: int,
    keep_step: Callable[[np.ndarray], object] | None = None,
) -> None:
    """Calls `compute` with the number and the items of each batch, in one of the processes, which draws the same random
    numbers for a batch as any other. `results` are what it writes: all zeros before, and the same in all processes
    afterwards. A process without a last batch calls `keep_step` with the items of another one."""
    interrupted = np.zeros(1)
    rank = torch.distributed.get_rank() if processes > 1 else 0
    try:
        for number, items in islice(enumerate(batches), rank, None, processes):
            torch.manual_seed(number)
            compute(number, items)
        if keep_step is not None and 0 < len(batches) % processes <= rank:
            keep_step(batches[0])
    except Interrupted:
        interrupted[0] = 1
    for values in (interrupted, *results) if processes > 1 else ():
        # Each value is written by one process, so the sum is that value.
        numbers = torch.from_numpy(values.view(np.uint8) if values.dtype == np.bool_ else values)
        total = numbers.to(device)
        torch.distributed.all_reduce(total)
        numbers.copy_(total)
    if interrupted[0]:
        raise Interrupted


@contextmanager
def _evaluation_mode(module: nn.Module, device: torch.device) -> Iterator[None]:
    """Evaluation mode, with the same random numbers each time for models that draw at test time too."""
    was_training = module.training
    module.eval()
    try:
        with fixed_randomness(device):
            yield
    finally:
        module.train(was_training)


DEFAULT_ANSWERS = 1_000
"""The answers of a split that are written by default; more would hardly change the metrics."""

_BATCH = 256
"""The answers that are written at a time."""

# The longest answer that a CUDA graph writes, which has the operations of all its tokens.
_MOST_AT_ONCE = 128


@torch.no_grad()
def add_written(
    score: Score,
    module: nn.Module,
    split: Split,
    task: Task,
    device: torch.device,
    most: int = DEFAULT_ANSWERS,
    stopping: Callable[[], bool] = lambda: False,
    processes: int = 1,
    compute: Compute = compute_eagerly,
) -> Score:
    """Returns the score with `exact_match` and `oracle_match`, or unchanged if the task has no answers to write.
    Several processes share the work as in `evaluate`.

    If a split has more items than `most`, so many of them are chosen at even distances. A greedy run over the length of
    the batch's longest answer and one step yields both metrics. An answer is an exact match if the run chose each of
    its tokens and its end. It is an oracle match, with its length known, if each of its tokens is the most likely token
    other than the end. The model continues from the tokens that it chose, including an end. Without an end token the
    length is always known. An answer without an end in this run is wrong.

    Source: the program of Csordás et al., "The Devil is in the Detail", 2021.

    Raises:
        Interrupted: `stopping()` became true."""
    field = _written_field(module, split, task)
    if field is None or not most:
        return score
    assert isinstance(module, Architecture)
    assert isinstance(task, DecodableTask)
    items = np.unique(np.linspace(0, len(split) - 1, min(most, len(split))).astype(np.int64))
    sample = split.select(items)
    names = ("exact_match",) if task.end is None else ("exact_match", "oracle_match")
    hits = {name: np.zeros(len(split), dtype=np.int64) for name in names}

    def watch(share: float) -> None:  # after each token
        if stopping():
            raise Interrupted

    data = DeviceSplit(sample, device)

    def write(number: int, chosen: np.ndarray) -> None:
        run = compute if data.lengths[chosen].max() <= _MOST_AT_ONCE else compute_eagerly
        matches = run(data, chosen, lambda batch: _matches(module, batch, field, task, watch))
        for name, matched in zip(names, matches, strict=False):
            assert matched is not None
            hits[name][items[chosen]] = matched.cpu().numpy()

    # The lengths of answers differ, and so do the calls of the processes.
    with fixed_randomness(device), gathered(module):
        _compute_in_shares(write, list(data.items_by_length(_BATCH)), list(hits.values()), device, processes)
    counts = np.zeros(len(split), dtype=np.int64)
    counts[items] = 1
    tallies = {name: Tally(metric_hits, counts) for name, metric_hits in hits.items()}
    return replace(score, tallies={**score.tallies, **tallies}, written=len(items))


def _written_field(module: nn.Module, split: Split, task: Task) -> int | None:
    if (
        not isinstance(task, DecodableTask)
        or not isinstance(module, Architecture)
        or split.form is not TargetForm.POSITIONS
    ):
        return None
    assert isinstance(split.targets, Ragged)
    field = target_of(module.program.graph)
    if field is None or not len(split):
        return None
    answers = list(split.inputs.values())[field]
    return field if np.array_equal(answers.lengths, split.targets.lengths) else None


def _matches(
    module: Architecture, batch: Batch, field: int, task: DecodableTask, watch: Callable[[float], None]
) -> Tensors:
    answer = list(batch.fields)[field]
    sources = {name: source for name, source in batch.fields.items() if name != answer}
    source_lengths = {name: batch.lengths[name] for name in sources}
    answer_lengths = batch.lengths[answer] - int(task.end is not None)
    begin = task.begin if sources else batch.fields[answer][:, :1]
    written = decode(
        module,
        module.program,
        list(sources.values()),
        source_lengths,
        begin,
        task.end,
        limit=None,
        answer_lengths=answer_lengths,
        cache=True,
        watch=watch,
        steps=batch.fields[answer].shape[1],
    )
    assert batch.scored is not None
    targets = batch.targets[:, : written.choices.shape[1]]
    ignored = ~batch.scored[:, : targets.shape[1]]
    exact = ((written.choices == targets) | ignored).all(1)
    behind_answer = torch.arange(targets.shape[1], device=targets.device) >= answer_lengths[:, None]
    oracle = ((written.tokens == targets) | ignored | behind_answer).all(1)
    return exact, oracle
