"""Draws distinct items until a split is full."""

from collections.abc import Callable

import numpy as np

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.fingerprints import Fingerprints, Patience, Seen, in_share
from archlang.tasks.kit.split import Split, join_splits

# The share of all items, by fingerprint, that a split may hold if `train` and `valid` have the same distribution and
# `test` another one.
SHARES = {"train": (0.0, 7 / 8), "valid": (7 / 8, 1.0), "test": (0.0, 1.0)}
_WINDOW = 40


def draw_distinct(
    task: str, split: str, size: int, draw: Callable[[int], tuple[Split, Fingerprints]], batch: int, remedy: str
) -> Split:
    """Returns `size` distinct items of the share of a split.

    Args:
        draw: Returns a number of random items, with the fingerprint of each. It is called at least once.
        batch: How many items are drawn at most at a time.
        remedy: What allows more items, for the error.

    Raises:
        TaskError: there are too few distinct items."""
    seen, patience, parts, missing = Seen(), Patience(size, _WINDOW), list[Split](), size
    while missing or not parts:
        items, prints = draw(min(batch, max(2 * missing, 16)))
        accepted = np.flatnonzero(in_share(prints, *SHARES[split]) & seen.fresh(prints))[:missing]
        parts.append(items.select(accepted))
        missing -= len(accepted)
        if patience.is_over(len(accepted)) and missing:
            raise mistakes.items_too_rare(task, f"{split}_size", size, size - missing, remedy)
    return join_splits(parts)
