"""Predictions: whether an answer is right, and sizes that are refused."""

import pytest

from archlang.train.runs.prediction import Answer, Prediction


def written(answer: str, target: str) -> Prediction:
    parts = tuple(Answer(str(place), word, 0.5, None) for place, word in enumerate(answer.split()))
    return Prediction({"source": "1 2"}, answer, 0.5, parts, None, target)


@pytest.mark.parametrize(
    ("answer", "target", "right"),
    [("", "1 2", False), ("1", "1 2", False), ("1 2 3", "1 2", False), ("1 2", "1 2", True), ("", "", True)],
)
def test_a_written_answer_is_right_if_it_is_the_whole_target(answer: str, target: str, right: bool) -> None:
    prediction = written(answer, target)
    assert prediction.right is right
    assert prediction.to_json()["right"] is right


def test_spans_of_equal_words_are_compared_by_their_places() -> None:
    parts = (Answer("begins at", "1", 0.5, "4"), Answer("ends at", "1", 0.5, "4"))
    assert Prediction({"x": "a b a b b"}, "b", 0.25, parts, None, "b").right is False
