"""The step that the lowest loss would have selected."""

from archlang.train.record.schemas import EvaluationMetrics
from archlang.train.trainer import alternatives


def line(step: int, split: str, loss: float, accuracy: float) -> EvaluationMetrics:
    return EvaluationMetrics.of(step, split, loss, {"accuracy": accuracy})


def test_the_lowest_loss_of_each_split_is_compared_with_its_best_accuracy() -> None:
    history = [
        line(10, "valid", 0.5, 0.6), line(10, "iid", 0.4, 0.7),
        line(20, "valid", 0.7, 0.8), line(20, "iid", 0.3, 0.9),
        line(30, "valid", 0.9, 0.9), line(30, "iid", 0.2, 1.0),
    ]  # fmt: skip
    valid, iid = alternatives(history, "accuracy")
    assert (valid.split, valid.step, valid.value, valid.best_step, valid.best) == ("valid", 10, 0.6, 30, 0.9)
    assert (iid.step, iid.value, iid.best_step, iid.best) == (30, 1.0, 30, 1.0)


def test_a_run_without_evaluations_has_no_alternatives() -> None:
    assert alternatives([], "accuracy") == ()
    assert alternatives([line(1, "valid", float("nan"), 0.5)], "accuracy") == ()


def test_an_alternative_without_a_finite_metric_costs_nothing() -> None:
    (alternative,) = alternatives([line(1, "valid", 0.1, float("nan")), line(2, "valid", 0.2, 0.5)], "accuracy")
    assert (alternative.step, alternative.value, alternative.best_step) == (1, None, 2)
    assert not alternative.is_worse
