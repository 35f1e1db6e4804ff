"""Random generators can be restored."""

import random

import numpy as np
import torch

from archlang.train.devices import fixed_randomness, random_state, restore_random_state

CPU = torch.device("cpu")


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), torch.rand(1).item()


def test_every_generator_is_restored() -> None:
    random.gauss(0, 1)
    np.random.standard_normal()
    state = random_state(CPU)
    drawn = draw()
    restore_random_state(state, CPU)
    assert drawn == draw()


def test_fixed_randomness_is_always_the_same_and_changes_no_generator() -> None:
    state = random_state(CPU)
    expected = draw()
    restore_random_state(state, CPU)
    fixed = []
    for _ in range(2):
        with fixed_randomness(CPU):
            fixed.append(draw())
    assert fixed[0] == fixed[1]
    assert draw() == expected
