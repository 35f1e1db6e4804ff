"""In-context regression: the answer at each x is the y that follows it in the prompt, and f is of its family."""

import numpy as np
import pytest

from archlang.tasks.in_context_regression import InContextRegression
from tests.tasks.every import answers_of, marks_of

FUNCTIONS = ("linear", "sparse_linear", "relu_network", "decision_tree")


def small(function: str = "linear", points: int = 12) -> InContextRegression:
    return InContextRegression(
        function=function, inputs=5, points=points, test=(3, 7), hidden=8, depth=3, train_size=30, valid_size=4,
        test_size=4,
    )  # fmt: skip


def pairs(task: InContextRegression, split: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the inputs [points, inputs] and answers [points] of each item."""
    items = task.generate(split, 3)
    return [
        (items.inputs["x"][index][0::2], answers_of(items)[index][marks_of(items)[index]][:, 0])
        for index in range(len(items))
    ]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_each_answer_follows_its_x_in_the_prompt(function: str, split: str) -> None:
    task = small(function)
    items = task.generate(split, 3)
    for index, points in enumerate(items.groups["points"]):
        prompt, target, scored = items.inputs["x"][index], answers_of(items)[index], marks_of(items)[index]
        assert len(prompt) == 2 * points - 1
        assert scored.tolist() == [place % 2 == 0 for place in range(len(prompt))]
        np.testing.assert_array_equal(prompt[1::2, 0], target[0:-1:2, 0])
        assert (prompt[1::2, 1:] == 0).all()
        assert (target[1::2] == 0).all()


@pytest.mark.parametrize("function", ["linear", "sparse_linear"])
def test_least_squares_finds_the_weights_from_as_many_points_as_inputs(function: str) -> None:
    for x, y in pairs(small(function), "train"):
        weights = np.linalg.lstsq(x[:8].astype(np.float64), y[:8], rcond=None)[0]
        np.testing.assert_allclose(x @ weights, y, atol=1e-3)
        assert (np.abs(weights) > 1e-3).sum() == (3 if function == "sparse_linear" else 5)


def test_a_tree_has_at_most_a_value_for_each_leaf_and_depends_on_signs_alone() -> None:
    for x, y in pairs(small("decision_tree", points=200), "train"):
        by_signs: dict[bytes, set[float]] = {}
        for row, value in zip(x > 0, y.tolist(), strict=True):
            by_signs.setdefault(row.tobytes(), set()).add(value)
        assert all(len(values) == 1 for values in by_signs.values())
        assert 2 < len(set(y.tolist())) <= 8


def test_values_have_the_variance_of_the_paper() -> None:
    task = InContextRegression(inputs=4, points=20, train_size=2_000)
    assert np.concatenate([y for _, y in pairs(task, "train")]).var() == pytest.approx(4.0, rel=0.1)
