"""The kinds of random programs: a seed gives the text of one of each."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from tests.semantics.daring import daring
from tests.semantics.generator import program
from tests.semantics.mutations import mutated


def _mutated(seed: int) -> str:
    return mutated(program(seed), random.Random(seed))


KINDS: Mapping[str, Callable[[int], str]] = {"typed": program, "mutated": _mutated, "daring": daring}
