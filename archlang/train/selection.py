"""Which step's weights a run selects, and what selecting by the lowest loss would have cost."""

import math
from collections.abc import Iterable, Sequence

from archlang.record.schemas import Alternative, EvaluationMetrics
from archlang.tasks.kit.metrics import rank


def ranking(history: Iterable[EvaluationMetrics], split: str, metric: str) -> list[int]:
    """Returns the steps at which a split was evaluated, the best first, and the latest first of equal ones."""
    return [step for _, step in _ranked(history, split, metric)]


def _ranked(history: Iterable[EvaluationMetrics], split: str, metric: str) -> list[tuple[float, int]]:
    """Returns the values of a metric with their steps, the best first."""
    values = [(line.value(metric), line.step) for line in history if line.split == split]
    measured = [(value, step) for value, step in values if value is not None]
    return sorted(measured, key=lambda pair: (rank(metric, pair[0]), pair[1]), reverse=True)


def evaluations_since_best(history: Iterable[EvaluationMetrics], split: str, metric: str) -> int:
    """Returns how many evaluations of a split have come since its best value was first measured; 0 before the first
    value. An evaluation whose value is NaN or infinite counts, too."""
    values = [line.value(metric) for line in history if line.split == split]
    ranks = [-math.inf if value is None else rank(metric, value) for value in values]
    best = max(ranks, default=-math.inf)
    return 0 if best == -math.inf else len(ranks) - 1 - ranks.index(best)


def alternatives(history: Sequence[EvaluationMetrics], metric: str) -> tuple[Alternative, ...]:
    """Returns, for each split that was evaluated in training, what selecting by the lowest loss would have meant."""
    lowest_loss = []
    for split in dict.fromkeys(line.split for line in history):
        by_loss, by_metric = _ranked(history, split, "loss"), _ranked(history, split, metric)
        if by_loss and by_metric:
            (_, step), (best, best_step) = by_loss[0], by_metric[0]
            value = next((value for value, measured_step in by_metric if measured_step == step), None)
            lowest_loss.append(
                Alternative(split=split, metric=metric, step=step, value=value, best_step=best_step, best=best)
            )
    return tuple(lowest_loss)
