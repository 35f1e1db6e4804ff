"""Random numbers that are equal on every machine and with every version of numpy.

numpy guarantees the stream of a bit generator, but not the distributions of `Generator` (NEP 19). This file derives the
few distributions that tasks need from raw words."""

import json

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit import mistakes

Shape = int | tuple[int, ...]


class RandomStream:
    """A stream of random numbers, seeded by all parts of `key`: `RandomStream("ctl", "train", 3)`."""

    def __init__(self, *key: str | int) -> None:
        for part in key:
            if isinstance(part, int) and part < 0:
                raise mistakes.negative_seed(part)
        # As text: SeedSequence gives a list of numbers and the same list with a zero appended the same state.
        self._bits = np.random.PCG64(np.random.SeedSequence(int.from_bytes(json.dumps(key).encode(), "little")))

    def words(self, shape: Shape) -> npt.NDArray[np.uint64]:
        """Returns uniform words of 64 bits, of this shape."""
        size = int(np.prod(shape, dtype=np.int64))
        return np.asarray(self._bits.random_raw(size), dtype=np.uint64).reshape(shape)

    def below(self, bound: int | npt.NDArray[np.int64], shape: Shape) -> npt.NDArray[np.int64]:
        """Returns uniform integers in [0, bound). Bounds are far below 2^32, so the bias is not measurable."""
        high = self.words(shape) >> np.uint64(32)
        return np.asarray((high * np.asarray(bound, dtype=np.uint64)) >> np.uint64(32), dtype=np.int64)

    def real(self, shape: Shape) -> npt.NDArray[np.float64]:
        """Returns uniform numbers in [0, 1)."""
        return np.asarray((self.words(shape) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)

    def order(self, count: int) -> npt.NDArray[np.int64]:
        """Returns a random permutation of 0 … count - 1."""
        return np.argsort(self.words(count), kind="stable")

    def normal(self, count: int) -> npt.NDArray[np.float64]:
        """Returns numbers from the standard normal distribution, by Marsaglia's polar method.

        It uses only operations that round equally on every machine, so no logarithm of a library."""
        parts: list[npt.NDArray[np.float64]] = []
        missing = count
        while missing > 0:
            pairs = 2.0 * self.real((missing // 2 + 32, 2)) - 1.0
            squares = pairs[:, 0] * pairs[:, 0] + pairs[:, 1] * pairs[:, 1]
            inside = (squares > 0) & (squares < 1)
            pairs, squares = pairs[inside], squares[inside]
            numbers = (pairs * np.sqrt(-2.0 * _logarithm(squares) / squares)[:, None]).reshape(-1)[:missing]
            parts.append(numbers)
            missing -= len(numbers)
        return np.concatenate([np.zeros(0), *parts])

    def exponential(self, shape: Shape) -> npt.NDArray[np.float64]:
        """Returns numbers from the exponential distribution with mean 1."""
        return -_logarithm(1.0 - self.real(shape))


class ScalarStream:
    """Random numbers one at a time, for tasks that draw an item step by step."""

    def __init__(self, rng: RandomStream) -> None:
        self._rng = rng
        self._words: list[int] = []

    def word(self) -> int:
        """Returns a uniform word of 64 bits."""
        return (self._words or self._refill()).pop()

    def real(self) -> float:
        """Returns a uniform number in [0, 1)."""
        return (self.word() >> 11) * 2.0**-53

    def below(self, bound: int) -> int:
        """Returns a uniform integer in [0, bound). The bound may be as large as 10^20."""
        if bound >> 32:
            return (self.word() << 64 | self.word()) * bound >> 128
        return ((self._words or self._refill()).pop() >> 32) * bound >> 32

    def _refill(self) -> list[int]:
        self._words = self._rng.words(1 << 16).tolist()
        return self._words


def _logarithm(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """ln x = e ln 2 + 2 (t + t^3/3 + t^5/5 + …) for x = m 2^e and t = (m - 1) / (m + 1), with m near 1."""
    mantissas, exponents = np.frexp(numbers)
    low = mantissas < np.sqrt(0.5)
    mantissas, exponents = np.where(low, 2.0 * mantissas, mantissas), np.where(low, exponents - 1, exponents)
    t = (mantissas - 1.0) / (mantissas + 1.0)
    square, series = t * t, np.zeros_like(t)
    for odd in range(23, 0, -2):
        series = series * square + 1.0 / odd
    return np.asarray(exponents * 0.6931471805599453 + 2.0 * t * series)
