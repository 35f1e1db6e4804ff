"""Random numbers go on from where they were."""

import random

import numpy as np
import torch

from archlang.train.generators import fixed_randomness, random_state, restore_random_state

CPU = torch.device("cpu")


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), torch.rand(1).item()


def test_every_generator_goes_on_from_where_it_was() -> None:
    random.gauss(0, 1)
    np.random.standard_normal()
    state = random_state(CPU)
    drawn = draw()
    restore_random_state(state, CPU)
    assert drawn == draw()


def test_what_is_drawn_apart_is_the_same_and_not_noticed() -> None:
    state = random_state(CPU)
    expected = draw()
    restore_random_state(state, CPU)
    apart = []
    for _ in range(2):
        with fixed_randomness(CPU):
            apart.append(draw())
    assert apart[0] == apart[1]
    assert draw() == expected
