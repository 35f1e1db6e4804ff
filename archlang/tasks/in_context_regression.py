"""In-context regression: learn a function from pairs in the prompt, and predict its value at the next input.

Garg, Tsipras, Liang and Valiant (2022) and Yang, Lee, Nowak and Papailiopoulos (2024). Both draw new items for every
step; here an epoch has `train_size` items.

>>> task = InContextRegression(inputs=2, points=3, test=(3,), train_size=10)
>>> train = task.generate("train", seed=0)
>>> [f"{first:.2f} {second:.2f}" for first, second in train.inputs["x"][0]]
['1.01 -0.85', '1.35 0.00', '-0.68 0.88', '-1.45 0.00', '-0.14 -0.48']
>>> [f"{y:.2f}" for y in train.targets[0][train.scored[0], 0]]
['1.35', '-1.45', '0.89']
"""

from collections.abc import Callable, Collection, Mapping

import numpy as np

from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.split import Ragged, Reals, Split, join_splits, offsets_of
from archlang.tasks.kit.task import Kind, ShippedTask

# Items are drawn in parts, so that hidden units need little memory.
_PART = 1 << 10


class InContextRegression(ShippedTask):
    function: str
    inputs: int
    points: int
    test: tuple[int, ...]
    nonzero: int
    hidden: int
    depth: int

    disjoint = ("test",)
    kind = Kind.REGRESSION
    vocabulary = ()
    breakdown = "points"
    metrics = ("squared_error", "last_squared_error")

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        return {"points": self.test if split == "test" else (self.points,)}

    def make(self, split: str, seed: int) -> Split:
        size = self.size(split)
        counts = self.test if split == "test" else (self.points,)
        parts = []
        for points in counts:
            rng = RandomStream(self.name, self.function, split, points, seed)
            parts += [self._items(rng, min(_PART, size - start), points) for start in range(0, size, _PART)]
        return join_splits(parts or [self._items(RandomStream(self.name), 0, self.points)])

    def _items(self, rng: RandomStream, size: int, points: int) -> Split:
        x = _normal(rng, size, points, self.inputs)
        y = _FUNCTIONS[self.function](self, rng, x)
        prompts = np.zeros((size, 2 * points, self.inputs), dtype=np.float32)
        prompts[:, 0::2] = x
        prompts[:, 1::2, 0] = y
        targets = np.zeros((size, 2 * points, 1), dtype=np.float32)
        targets[:, 0::2, 0] = y
        length = 2 * points - 1  # the last x is the question
        offsets = offsets_of(np.full(size, length, dtype=np.int64))
        is_x = np.arange(length) % 2 == 0
        return Split(
            {"x": Ragged(prompts[:, :length].reshape(-1, self.inputs), offsets)},
            Ragged(targets[:, :length].reshape(-1, 1), offsets),
            scored=Ragged(np.tile(is_x, size), offsets),
            groups={"points": np.full(size, points, dtype=np.int64)},
        )


def _normal(rng: RandomStream, *shape: int) -> Reals:
    return np.asarray(rng.normal(int(np.prod(shape))).reshape(shape), dtype=np.float64)


# The values [N, points] of one random function for each of N items at its inputs x [N, points, inputs]. Sums run in a
# fixed order, because a matrix product rounds differently on other machines.


def _linear(task: InContextRegression, rng: RandomStream, x: Reals) -> Reals:
    return _products(x, _normal(rng, len(x), task.inputs))


def _sparse_linear(task: InContextRegression, rng: RandomStream, x: Reals) -> Reals:
    weights = _normal(rng, len(x), task.inputs)
    rank = np.argsort(np.argsort(rng.words(weights.shape), axis=1, kind="stable"), axis=1, kind="stable")
    return _products(x, np.where(rank < task.nonzero, weights, 0.0))


def _relu_network(task: InContextRegression, rng: RandomStream, x: Reals) -> Reals:
    into, out = _normal(rng, task.hidden, len(x), task.inputs), _normal(rng, task.hidden, len(x))
    y = np.zeros(x.shape[:2])
    for weights, factors in zip(into, out, strict=True):
        y += factors[:, None] * np.maximum(_products(x, weights), 0.0)
    return np.asarray(y * np.sqrt(2.0 / task.hidden), dtype=np.float64)


def _decision_tree(task: InContextRegression, rng: RandomStream, x: Reals) -> Reals:
    items, positions = np.arange(len(x))[:, None], np.arange(x.shape[1])
    features = rng.below(task.inputs, (len(x), 2**task.depth - 1))
    leaves = _normal(rng, len(x), 2**task.depth)
    node = np.zeros(x.shape[:2], dtype=np.int64)  # the children of node i are 2 i + 1 and 2 i + 2
    for _ in range(task.depth):
        node = 2 * node + 1 + (x[items, positions, features[items, node]] > 0)
    return np.asarray(leaves[items, node - (2**task.depth - 1)])


def _products(x: Reals, weights: Reals) -> Reals:
    """Returns x [N, points, inputs] times weights [N, inputs], summed over the inputs."""
    y = np.zeros(x.shape[:2])
    for column in range(x.shape[2]):
        y += x[:, :, column] * weights[:, None, column]
    return y


_FUNCTIONS: dict[str, Callable[[InContextRegression, RandomStream, Reals], Reals]] = {
    "linear": _linear,
    "sparse_linear": _sparse_linear,
    "relu_network": _relu_network,
    "decision_tree": _decision_tree,
}
