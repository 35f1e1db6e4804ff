"""Random numbers are fixed and have their distributions."""

import numpy as np
import pytest

from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.random_stream import RandomStream, _logarithm

# Bit for bit, so that no machine"s logarithm or square root can differ unnoticed.
NORMAL = ["0x1.6bafd51511479p-1", "0x1.92e95ca94b5c3p-1"]
EXPONENTIAL = ["0x1.855a598242e5cp+1", "0x1.d1165a1cbd2dbp-3"]


def test_the_stream_is_fixed() -> None:
    assert RandomStream("a task", 3).words(2).tolist() == [12485461900803927875, 3819894967639439393]
    assert RandomStream("a task", 3).below(1000, 4).tolist() == [676, 207, 188, 125]
    assert RandomStream("a task", 3).order(6).tolist() == [3, 2, 1, 4, 0, 5]
    assert RandomStream("a task", 3).real(1)[0] == 0.6768382458668306


def test_every_part_of_the_key_matters() -> None:
    keys: list[tuple[str | int, ...]] = [("a", 0), ("a", 1), ("b", 0), (0, "a"), ("a", 0, 0), ("a",)]
    assert len({RandomStream(*key).words(1)[0] for key in keys}) == len(keys)


def test_a_stream_does_not_depend_on_the_sizes_of_requests() -> None:
    at_once, in_parts = RandomStream("x"), RandomStream("x")
    assert at_once.words(10).tolist() == [*in_parts.words(3), *in_parts.words((7,))]


def test_integers_are_uniform() -> None:
    counts = np.bincount(RandomStream("even").below(10, 100_000), minlength=10)
    assert counts.sum() == 100_000
    assert np.abs(counts - 10_000).max() < 500


def test_each_number_may_have_its_own_bound() -> None:
    bounds = np.array([1, 2, 3] * 1000)
    drawn = RandomStream("bounds").below(bounds, 3000)
    assert (drawn < bounds).all()
    assert set(drawn[2::3].tolist()) == {0, 1, 2}


def test_real_numbers_fill_the_unit_interval() -> None:
    drawn = RandomStream("real").real(100_000)
    assert 0 <= drawn.min() < 0.001
    assert 0.999 < drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.005


def test_an_order_is_a_permutation() -> None:
    assert sorted(RandomStream("order").order(100).tolist()) == list(range(100))


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(TaskError, match="the seed is -1"):
        RandomStream("x", -1)


def test_normal_numbers_are_fixed_and_normal() -> None:
    assert [number.hex() for number in RandomStream("normal").normal(2)] == NORMAL
    numbers = RandomStream("normal", 1).normal(200_001)
    assert abs(numbers.mean()) < 0.01
    assert abs(numbers.std() - 1) < 0.01
    shares = [float(np.mean(numbers < bound)) for bound in (-2, -1, 0, 1, 2)]
    assert np.allclose(shares, [0.0228, 0.1587, 0.5, 0.8413, 0.9772], atol=0.003)


def test_exponential_numbers_are_fixed_and_exponential() -> None:
    assert [number.hex() for number in RandomStream("exponential").exponential(2)] == EXPONENTIAL
    numbers = RandomStream("exponential", 1).exponential((400, 500))
    assert numbers.shape == (400, 500)
    assert numbers.min() >= 0
    assert abs(numbers.mean() - 1) < 0.01
    assert abs(np.mean(numbers > 2) - np.exp(-2)) < 0.003


def test_logarithms_agree_with_the_library_up_to_rounding() -> None:
    numbers = RandomStream("logarithm").real(10_000) + 1e-300
    assert np.allclose(_logarithm(numbers), np.log(numbers), rtol=1e-14, atol=1e-15)
