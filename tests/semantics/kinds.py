"""The kinds of random programs, each a function from a seed to a text."""

import random
from collections.abc import Callable, Mapping

from tests.semantics.generator import program
from tests.semantics.leaky import leaky
from tests.semantics.mutations import mutated


def _mutated(seed: int) -> str:
    return mutated(program(seed), random.Random(seed))


KINDS: Mapping[str, Callable[[int], str]] = {"typed": program, "mutated": _mutated, "leaky": leaky}
