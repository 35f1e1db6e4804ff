"""Batches hold what the split holds, padded, and the order depends on the seed alone."""

import numpy as np
import torch

from archlang.run.data import Data, Sampler, Sequences
from archlang.tasks.base import Ragged, Split

CPU = torch.device("cpu")


def test_a_batch_is_padded_on_the_right() -> None:
    sequences = Sequences.of(Ragged.of([[1, 2, 3], [], [4]]), CPU)
    assert sequences.batch(torch.tensor([2, 0, 1]), 3).tolist() == [[4, 0, 0], [1, 2, 3], [0, 0, 0]]


def test_targets_of_positions_come_with_their_marks() -> None:
    rows = Ragged.of([[1, 2, 3], [4]])
    split = Split({"x": rows}, rows, Ragged.of([[0, 1, 1], [1]], dtype=np.bool_))
    batch = Data(split, CPU).batch(np.array([1, 0]))
    assert batch.targets.tolist() == [[4, 0, 0], [1, 2, 3]]
    assert batch.scored is not None
    assert batch.scored.tolist() == [[True, False, False], [False, True, True]]


def test_evaluation_sees_every_item_once() -> None:
    rows = Ragged.of([[1] * length for length in (5, 1, 3, 2, 4)])
    data = Data(Split({"x": rows}, np.arange(5)), CPU)
    seen = [batch.items.tolist() for batch in data.in_order_of_length(2)]
    assert sorted(item for items in seen for item in items) == [0, 1, 2, 3, 4]
    assert seen[0] == [1, 3]


def test_an_epoch_has_each_item_at_most_once_in_batches_of_one_size() -> None:
    sampler = Sampler(np.arange(100) % 7, batch=8, seed=3)
    items = [sampler.next() for _ in range(12)]
    assert {len(one) for one in items} == {8}
    assert len(np.unique(np.concatenate(items))) == 96
    assert sampler.epoch == 0
    sampler.next()
    assert sampler.epoch == 1


def test_the_order_goes_on_from_where_it_was() -> None:
    whole = Sampler(np.arange(50), batch=8, seed=1)
    for _ in range(9):
        whole.next()
    again = Sampler(np.arange(50), batch=8, seed=1, epoch=whole.epoch, position=whole.position)
    assert all((whole.next() == again.next()).all() for _ in range(9))


def test_fewer_items_than_a_batch_make_one_batch() -> None:
    assert sorted(Sampler(np.arange(3), batch=8, seed=0).next()) == [0, 1, 2]
