"""Random numbers that are the same on every machine, in every process and with every numpy.

numpy promises the stream of a bit generator, but not what `Generator` makes of it (NEP 19), so the few distributions
that tasks need are made from raw words here."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt

from archlang.tasks import mistakes

Shape = int | tuple[int, ...]


class Chance:
    """A stream of random numbers. Every word of `key` matters: `Chance("ctl", "train", 3)`."""

    def __init__(self, *key: str | int) -> None:
        for part in key:
            if isinstance(part, int) and part < 0:
                raise mistakes.negative_seed(part)
        # As text, since a row of numbers and the same row with a zero behind it seed alike.
        self._bits = np.random.PCG64(np.random.SeedSequence(int.from_bytes(json.dumps(key).encode(), "little")))

    def words(self, shape: Shape) -> npt.NDArray[np.uint64]:
        """Uniform words of 64 bits."""
        size = int(np.prod(shape, dtype=np.int64))
        return np.asarray(self._bits.random_raw(size), dtype=np.uint64).reshape(shape)

    def below(self, bound: int | npt.NDArray[np.int64], shape: Shape) -> npt.NDArray[np.int64]:
        """Whole numbers 0 … bound - 1. No bound of a task nears 2^32, so the bias is below what can be measured."""
        high = self.words(shape) >> np.uint64(32)
        return np.asarray((high * np.asarray(bound, dtype=np.uint64)) >> np.uint64(32), dtype=np.int64)

    def real(self, shape: Shape) -> npt.NDArray[np.float64]:
        """Numbers in [0, 1)."""
        return np.asarray((self.words(shape) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)

    def order(self, count: int) -> npt.NDArray[np.int64]:
        """A permutation of 0 … count - 1."""
        return np.argsort(self.words(count), kind="stable")
