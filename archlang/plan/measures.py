"""What a run can measure: the splits and metrics of its task, and the user's own metrics."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from archlang.elaborate.static_arguments import plain
from archlang.errors import Diagnostic, Report, Span
from archlang.errors.names import did_you_mean
from archlang.graph.card import COSTS
from archlang.plan import mistakes
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.evaluate import Evaluator
from archlang.resolve.values import Bound
from archlang.syntax.tree import Name, Setting
from archlang.types.statics import StaticValue, Symbol

# `run.seconds` and `run.memory` are measured for the run as a whole: the seconds of its training steps, and the largest
# amount of memory in MiB. `run.flops[512]` and the other costs are those of its model, which needs no run.
RUN, RUN_METRICS = "run", ("seconds", "memory", *COSTS)

# The split whose metrics select weights, but are not measured at the end of a run.
TRAIN = "train"

# The metrics from 0 to 1 that `archlang.tasks.kit.metrics` counts, which needs numpy.
FRACTIONS = frozenset(
    ("accuracy", "token_accuracy", "sequence_accuracy", "last_accuracy", "exact_match", "oracle_match", "f1")
)


def bad_metric(metric: Name) -> Diagnostic:
    """The diagnostic of a name that is not a split and a metric; one alone may be a metric."""
    return mistakes.bad_metric(metric.span, metric.text, None if len(metric.parts) > 1 else metric.span)


def is_group(setting: Setting) -> bool:
    """Whether a setting names a group of a split, such as `test.ignore`, and not a static of the recipe."""
    return setting.path.parts[0] not in ("task", "model", "train", "seed")


def written_group(setting: Setting, evaluator: Evaluator) -> StaticValue | None:
    """Returns the value of a group as it is written. A word is the name of a value, also if it names a block, too."""
    if isinstance(setting.value, Name):
        return Symbol(setting.value.text)
    return plain(evaluator.value(setting.value, None))


def group_value(value: StaticValue, names: Sequence[str] = ()) -> int:
    """Returns the number of a group: an int itself, a share in per cent, the place of a name in `names`; -1, which no
    group has, for other statics."""
    if str(value) in names:
        return names.index(str(value))
    if isinstance(value, float):
        return round(value * 100)
    return value if isinstance(value, int) else -1


@dataclass(frozen=True)
class Measures:
    """The splits of a task, and the metrics of a run. `selecting` are the metrics that `train.select` may name; the
    others are measured only at the end of a run. `splits` is empty if they depend on a user's file. `groups` are those
    by which splits are broken down, such as length, with the
    values that the statics give them in each split in `group_values`, and `breakdown` is the first."""

    task: str
    splits: tuple[str, ...]
    metrics: tuple[str, ...]
    selecting: tuple[str, ...]
    groups: tuple[str, ...]
    breakdown: str
    group_values: Mapping[str, Mapping[str, Collection[int]]]
    answers: str
    """the name of the form of the answers, as `archlang.tasks.kit.split.Form` has it"""
    empty: Collection[str] = ()
    """the splits that have no items, as the statics of the task say"""
    taken: Collection[str] = ()
    """the names of the user's own metrics that another metric has"""

    def check_train(self, train: Mapping[str, Bound], span: Span, report: Report) -> None:
        """Reports a training split without items, settings of the loss that have no meaning for the answers of the
        task, and metrics of the user's own with the name of another one. `span` is the place of a setting without
        one."""
        if TRAIN in self.empty:
            report(mistakes.empty_split(span, self.task, TRAIN, None))
        self._check_loss(train, span, report)
        for name in self.taken:
            report(mistakes.metric_twice(train["metrics"].span or span, name))

    def _check_loss(self, train: Mapping[str, Bound], span: Span, report: Report) -> None:
        loss = train.get("loss")
        if loss is not None and loss.value == Symbol("stablemax") and self.answers in ("SETS", "NUMBERS"):
            report(mistakes.no_stablemax(loss.span or span, self.task))
        for name in ("label_smoothing", "other_class_weight") if self.answers in ("SETS", "NUMBERS", "SPANS") else ():
            if (smoothing := train.get(name)) is not None and plain(smoothing.value):
                report(mistakes.no_smoothing(smoothing.span or span, name, self.task))

    def check(self, span: Span, text: str, report: Report, *, selects: bool = False) -> None:
        """Reports a metric of a split, such as `valid.accuracy`, that a run does not measure, or cannot select by."""
        split, _, metric = text.partition(".")
        metrics = self.selecting if selects else self.metrics
        usual = metrics[min(1, len(metrics) - 1)] if metrics else ""  # after the loss, the task's first metric
        possible = tuple(name for name in self.splits if selects or name != TRAIN)
        if split == RUN and not selects:
            if metric not in RUN_METRICS:
                report(mistakes.unknown_run_metric(span, metric, RUN_METRICS))
        elif self.splits and split not in self.splits:
            written = metric or split  # without a point, the split is a metric
            known = written if written in metrics else usual or written
            splits = possible or self.splits
            example = f"{'valid' if 'valid' in splits else splits[-1]}.{known}"
            report(mistakes.unknown_split(span, self.task, split, splits, example, selects))
        elif split == TRAIN and not selects:
            report(mistakes.train_not_measured(span, possible, f"{possible[-1] if possible else 'test'}.{metric}"))
        elif split in self.empty:
            others = [f"{name}.{metric}" for name in possible if selects and name not in (*self.empty, TRAIN)]
            report(mistakes.empty_split(span, self.task, split, next(iter(others), None)))
        elif metric not in metrics:
            is_late = metric in self.metrics
            example = f"{split}.{usual}"
            report(mistakes.unknown_metric(span, self.task, metric, metrics, example, is_late, selects))

    def check_group(self, path: Name, metric: str, report: Report, statics: Collection[str] = ()) -> None:
        """Reports a path, such as `test.length`, that is no group of the split of a metric, such as `test.accuracy`.
        `statics` are the paths that could stand in its place."""
        split = metric.partition(".")[0]
        possible = [f"{split}.{group}" for group in self.groups]
        is_split_unknown = bool(self.splits) and split not in self.splits  # which is reported
        if path.text in possible or (is_split_unknown and path.parts[0] in self.splits):
            return
        is_static = did_you_mean(path.text, statics) or any(
            path.text == static.rpartition(".")[2] for static in statics
        )
        if is_static and did_you_mean(path.text, possible) is None and path.parts[0] not in self.splits:
            report(name_mistakes.unknown_path(path.span, path.text, statics))
        else:
            report(mistakes.unknown_group(path.span, self.task, path.text, metric, possible))

    def has_group(self, metric: str, group: str, value: StaticValue) -> bool:
        """Whether the split of a metric can have a group with this value."""
        values = self.group_values.get(metric.partition(".")[0], {}).get(group)
        return values is None or group_value(value) in values

    def absent_group(self, span: Span, metric: str, group: str, value: StaticValue) -> Diagnostic:
        """The diagnostic of a group that the split of a metric does not have."""
        split = metric.partition(".")[0]
        values = self.group_values[split][group]
        return mistakes.absent_group(span, self.task, split, group, values, isinstance(value, float))
