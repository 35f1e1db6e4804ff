"""The counts of metrics."""

import numpy as np
import pytest

from archlang.tasks.kit.metrics import LOWER_IS_BETTER, MEANINGS, Tally, rank, tally
from archlang.tasks.kit.split import Ragged, Split
from archlang.tasks.kit.task import Unit

CLASSES = Split({"x": Ragged.of([[1], [2], [3]])}, np.array([4, 5, 6], dtype=np.int64))
# Three sequences of which only some positions are scored; the last one has none.
TARGETS = Ragged.of([[1, 2, 3], [4, 5], [6]])
POSITIONS = Split({"x": TARGETS}, TARGETS, Ragged(np.array([True, False, True, True, True, False]), TARGETS.offsets))
PREDICTIONS = np.array([1, 0, 0, 4, 5, 0])


def test_accuracy_of_classes_counts_samples() -> None:
    counted = tally("accuracy", Unit.SAMPLE, CLASSES, np.array([4, 0, 6]))
    assert counted.hits.tolist() == [1, 0, 1]
    assert counted.share == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("metric", "hits", "counts"), [("accuracy", [1, 2, 0], [2, 2, 0]), ("last_accuracy", [0, 1, 0], [1, 1, 0])]
)
def test_accuracies_count_scored_positions_or_the_last_one(metric: str, hits: list[int], counts: list[int]) -> None:
    counted = tally(metric, Unit.POSITION, POSITIONS, PREDICTIONS)
    assert (counted.hits.tolist(), counted.counts.tolist()) == (hits, counts)


def test_accuracy_of_sequences_requires_every_scored_position() -> None:
    counted = tally("accuracy", Unit.SEQUENCE, POSITIONS, PREDICTIONS)
    assert counted.hits.tolist() == [0, 1, 0]
    assert counted.counts.tolist() == [1, 1, 0]
    assert tally("sequence_accuracy", Unit.POSITION, POSITIONS, PREDICTIONS).share == 0.5
    assert tally("token_accuracy", Unit.SEQUENCE, POSITIONS, PREDICTIONS).share == 0.75


def test_without_marks_every_position_is_scored() -> None:
    split = Split({"x": TARGETS}, TARGETS)
    assert tally("accuracy", Unit.POSITION, split, PREDICTIONS).counts.tolist() == [3, 2, 1]


def test_the_metric_of_no_answers_is_nan() -> None:
    empty = Split({"x": Ragged.of([])}, np.zeros(0, dtype=np.int64))
    assert np.isnan(tally("accuracy", Unit.SAMPLE, empty, np.zeros(0)).share)


def test_the_error_for_an_unknown_metric_names_the_metrics() -> None:
    with pytest.raises(ValueError, match=", ".join(MEANINGS)):
        tally("precision", Unit.SAMPLE, CLASSES, np.zeros(3))


def test_a_set_is_correct_only_as_a_whole() -> None:
    x = Ragged.of([[1, 2], [3]])
    asked = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0]], dtype=np.bool_)
    sets = Split({"x": x}, Ragged(asked, x.offsets))
    answers = asked.copy()
    answers[0, 1] = True
    assert tally("token_accuracy", Unit.SEQUENCE, sets, answers).hits.tolist() == [1, 1]
    assert tally("accuracy", Unit.SEQUENCE, sets, answers).hits.tolist() == [0, 1]
    assert tally("accuracy", Unit.SEQUENCE, sets, asked).share == 1.0


def test_spans_match_exactly_or_by_overlap() -> None:
    x = Ragged.of([[1] * 6] * 4)
    spans = Split({"x": x}, np.array([[1, 3], [2, 2], [0, 1], [4, 5]], dtype=np.int64))
    answers = np.array([[1, 3], [1, 3], [2, 4], [3, 4]])
    assert tally("exact_match", Unit.SAMPLE, spans, answers).hits.tolist() == [1, 0, 0, 0]
    # 2 · precision · recall / (precision + recall): of 3 and 1 positions 1 in common, none, of 2 and 2 one.
    assert tally("f1", Unit.SAMPLE, spans, answers).hits.tolist() == [1.0, 0.5, 0.0, 0.5]


def test_squared_errors_are_means_over_scored_rows_and_over_last_scored_rows() -> None:
    targets = Ragged(np.array([[1, 2], [3, 4], [0, 0], [5, 5]], dtype=np.float32), np.array([0, 2, 3, 4]))
    marks = Ragged(np.array([True, True, False, True]), targets.offsets)
    numbers = Split({"x": targets}, targets, marks)
    answers = np.array([[1, 2], [4, 6], [9, 9], [5, 4]], dtype=np.float32)  # the errors are 0, 5/2, unscored, 1/2
    counted = tally("squared_error", Unit.POSITION, numbers, answers)
    assert (counted.hits.tolist(), counted.counts.tolist()) == ([2.5, 0.0, 0.5], [2, 0, 1])
    assert counted.share == 1.0
    last = tally("last_squared_error", Unit.POSITION, numbers, answers)
    assert (last.hits.tolist(), last.counts.tolist()) == ([2.5, 0.0, 0.5], [1, 0, 1])


def test_perplexity_is_the_exponential_of_the_mean_loss() -> None:
    counted = Tally(np.array([2.0, 1.0, 0.0]), np.array([2, 1, 0]), exponential=True)
    assert counted.share == pytest.approx(np.e)
    assert counted.among(np.array([True, False, False])) == pytest.approx(np.e)
    assert np.isnan(counted.among(np.array([False, False, True])))


def test_only_lower_perplexity_loss_squared_errors_and_costs_are_better() -> None:
    costs = {"seconds", "memory", "parameters", "flops", "activations", "state"}
    lower_is_better = {metric for metric in (*MEANINGS, "loss", *costs) if rank(metric, 2.0) < rank(metric, 1.0)}
    losses = {"perplexity", "bits_per_byte", "loss", "squared_error", "last_squared_error"}
    assert lower_is_better == LOWER_IS_BETTER == costs | losses
