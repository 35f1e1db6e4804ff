"""Both sides of the comparison load the same items."""

import itertools

import pytest
import torch

from benchmarks.loading import SMALL, ours, split_of, theirs


@pytest.mark.parametrize("name", SMALL)
def test_both_sides_yield_every_item_once_per_epoch(name: str) -> None:
    task, _ = SMALL[name]
    split = split_of(task)
    size = next(size for size in range(2, len(split) + 1) if len(split) % size == 0)
    items = []
    for batches in (ours, theirs):
        rows = []
        for *fields, targets in itertools.islice(batches(split, size, torch.device("cpu")), len(split) // size):
            tokens, lengths = fields[0], fields[len(fields) // 2]
            for row, length, target in zip(tokens.tolist(), lengths.tolist(), targets.tolist(), strict=True):
                assert not any(row[length:])
                rows.append(
                    (row[:length], [token for token in target if token] if isinstance(target, list) else target)
                )
        items.append(sorted(rows, key=repr))
    assert items[0] == items[1]
    assert len(items[0]) == len(split)
