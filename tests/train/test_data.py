"""Batches hold the padded items of a split, in an order that depends on the seed alone."""

import cProfile
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from archlang.tasks.kit.split import Ragged, Split, TargetForm
from archlang.train import data
from archlang.train.data import DeviceSplit, Sampler, Sequences

CPU = torch.device("cpu")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(1, 9), max_size=4), min_size=1, max_size=6), st.data())
def test_a_batch_equals_rows_padded_one_by_one(rows: list[list[int]], data: st.DataObject) -> None:
    items = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=5))
    width = max(1, *(len(rows[item]) for item in items)) if len(items) > 1 else max(1, len(rows[items[0]]))
    batch = Sequences.of(Ragged.of(rows), CPU).batch(torch.tensor(items), width)
    assert batch.tolist() == [rows[item] + [0] * (width - len(rows[item])) for item in items]


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int16, np.int32, np.int64])
def test_tokens_of_every_integer_type_become_int64(kind: type) -> None:
    batch = Sequences.of(Ragged.of([[7, 200], [3]], dtype=kind), CPU).batch(torch.tensor([0, 1]), 2)
    assert batch.dtype == torch.int64
    assert batch.tolist() == [[7, 200], [3, 0]]


def test_targets_of_positions_come_with_scored_positions() -> None:
    rows = Ragged.of([[1, 2, 3], [4]])
    split = Split({"x": rows}, rows, Ragged.of([[0, 1, 1], [1]], dtype=np.bool_))
    batch = DeviceSplit(split, CPU).batch(np.array([1, 0]))
    assert batch.targets.tolist() == [[4, 0, 0], [1, 2, 3]]
    assert batch.scored is not None
    assert batch.scored.tolist() == [[True, False, False], [False, True, True]]


def test_each_field_is_padded_to_its_own_width() -> None:
    split = Split({"left": Ragged.of([[1], [2, 2]]), "right": Ragged.of([[3, 3, 3], [4]])}, np.array([0, 1]))
    left, right = DeviceSplit(split, CPU).batch(np.array([0, 1])).fields.values()
    assert (left.tolist(), right.tolist()) == ([[1, 0], [2, 2]], [[3, 3, 3], [4, 0, 0]])


def test_the_widths_of_a_batch_are_those_of_its_fields_and_scored_positions() -> None:
    x, y, marks = Ragged.of([[1], [1, 2, 3]]), Ragged.of([[1, 2], [1]]), Ragged.of([[1], [1, 1]])
    assert DeviceSplit(Split({"x": x, "y": y}, np.array([0, 1])), CPU).widths(np.array([0])) == (1, 2)
    assert DeviceSplit(Split({"x": x, "y": y}, marks), CPU).widths(np.array([0, 1])) == (3, 2, 2)


def test_batches_by_length_hold_every_item_once_short_ones_first_and_fewer_long_items_with_little_padding() -> None:
    def batches(lengths: list[int], **limits: int) -> list[list[int]]:
        data = DeviceSplit(Split({"x": Ragged.of([[1] * length for length in lengths])}, np.arange(len(lengths))), CPU)
        return [batch.items.tolist() for batch in data.batches_by_length(**limits)]

    assert batches([5, 1, 3, 2, 4], size=2) == [[1, 3], [2, 4], [0]]
    assert list(map(len, batches([2, 2, 2, 9, 9], size=100, tokens=10))) == [3, 1, 1]
    assert list(map(len, batches([100] * 50 + [109] * 5 + [300] * 3 + [310] * 2, size=100))) == [55, 5]


def test_batches_are_gathered_from_the_arrays_of_the_split_itself() -> None:
    rows = Ragged.of([[1], [2, 3]], dtype=np.int32)
    data = DeviceSplit(Split({"x": rows}, rows), CPU)
    rows.values[2] = 9  # in a mapped file, what another process would see
    assert data.batch(np.array([1])).fields["x"].tolist() == [[2, 9]]


def test_batches_of_a_split_that_is_too_large_for_its_device_are_sent_there(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Ragged.of([[1, 2, 3], [4]])
    split = Split(
        {"x": rows, "y": Ragged.of([[[0.5]], [[2.0]]], np.float32)}, rows, Ragged.of([[0, 1, 1], [1]], np.bool_)
    )

    def tensors(device: torch.device) -> list[torch.Tensor]:
        batch = DeviceSplit(split, device).batch(np.array([1, 0]))
        assert batch.scored is not None
        return [batch.items, *batch.fields.values(), *batch.lengths.values(), batch.targets, batch.scored]

    on_device = tensors(CPU)
    monkeypatch.setattr(data, "_room", lambda device: 0)
    assert all(map(torch.equal, tensors(CPU), on_device))
    meta = tensors(torch.device("meta"))  # a stand-in for another device, which the split itself is not on
    assert [(each.shape, each.dtype) for each in meta] == [(each.shape, each.dtype) for each in on_device]
    assert all(each.is_meta for each in meta)


SAMPLINGS = ("bucketed", "shuffled", "sequential", "replacement")


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_every_item_is_read_in_each_epoch_and_the_last_batch_is_smaller(sampling: str) -> None:
    first, second = (Sampler(np.arange(79) % 7, batch=64, seed=seed, sampling=sampling) for seed in (1, 2))
    for _ in range(3):
        batches = [first.next() for _ in range(len(first))]
        # Seeds that train together need batches of the same sizes.
        assert [len(batch) for batch in batches] == [len(second.next()) for _ in range(len(second))] == [64, 15]
        assert sorted(np.concatenate(batches)) == list(range(79)) or sampling == "replacement"


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_dropping_the_last_batch_changes_no_other_batch(sampling: str) -> None:
    lengths = np.arange(100) % 7
    every = Sampler(lengths, batch=8, seed=3, sampling=sampling)
    dropping = Sampler(lengths, batch=8, seed=3, sampling=sampling, drop_last=True)
    batches = [every.next() for _ in range(13)]
    assert all((batch == dropping.next()).all() for batch in batches[:12])
    assert (len(dropping), dropping.epoch) == (12, 0)
    dropping.next()
    assert dropping.epoch == 1


def test_items_of_all_lengths_are_dropped_alike() -> None:
    # 400 items, one batch of 256 in an epoch: the long ones are as likely in it as the short ones.
    lengths = np.repeat([1, 2, 3, 4], 100)
    sampler = Sampler(lengths, batch=256, seed=0, drop_last=True)
    seen = np.concatenate([lengths[sampler.next()] for _ in range(50)])
    assert np.bincount(seen)[1:] / len(seen) == pytest.approx(0.25, abs=0.01)


def test_batches_hold_items_of_similar_length() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 1600)
    sampler = Sampler(lengths, batch=100, seed=0)
    assert max(np.ptp(lengths[sampler.next()]) for _ in range(16)) < 20


@pytest.mark.parametrize("frequencies", [None, np.arange(50) + 1.0])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_resumed_sampler_continues_the_order(sampling: str, frequencies: np.ndarray | None) -> None:
    begin = partial(Sampler, np.arange(50), 8, 1, sampling=sampling, frequencies=frequencies)
    sampler = begin()
    for _ in range(9):
        sampler.next()
    resumed = begin(epoch=sampler.epoch, position=sampler.position)
    assert all((sampler.next() == resumed.next()).all() for _ in range(9))


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_an_epoch_has_items_as_often_as_their_frequencies_say(sampling: str) -> None:
    # 30, 60 and 10 items, whose groups have 60 %, 10 % and 30 % of the draws, and one that is never drawn.
    groups = np.repeat([0, 1, 2, 3], [30, 60, 10, 1])
    frequencies = np.array([0.6, 0.1, 0.3, 0.0])[groups] / np.array([30, 60, 10, 1])[groups]
    sampler = Sampler(groups + 1, batch=10, seed=0, sampling=sampling, frequencies=frequencies)
    seen = np.zeros(101)
    for _ in range(50):
        counts = np.bincount(np.concatenate([sampler.next() for _ in range(len(sampler))]), minlength=101)
        assert counts.sum() == 101
        if sampling != "replacement":
            assert (np.abs(counts - 101 * frequencies) < 1 + 1e-9).all()
            assert np.abs(np.bincount(groups, counts) - [60.6, 10.1, 30.3, 0]).max() < 2
        seen += counts
    assert np.bincount(groups, seen) / seen.sum() == pytest.approx([0.6, 0.1, 0.3, 0], abs=0.02)
    # All items of a group are equally likely.
    assert (np.abs(seen - seen.sum() * frequencies) <= 8 * np.sqrt(seen.sum() * frequencies)).all()


def test_seeds_and_epochs_have_different_orders() -> None:
    first, second = (Sampler(np.ones(64), batch=64, seed=seed) for seed in (1, 2))
    orders = [first.next(), second.next(), first.next()]
    assert len({tuple(order) for order in orders}) == 3


def test_shuffled_batches_hold_items_of_all_lengths() -> None:
    lengths = np.arange(1600) // 100
    sampler = Sampler(lengths, batch=100, seed=0, sampling="shuffled")
    batches = [sampler.next() for _ in range(16)]
    assert sorted(np.concatenate(batches)) == list(range(1600))
    assert min(len(np.unique(lengths[batch])) for batch in batches) > 12


def test_sequential_epochs_keep_the_order() -> None:
    sampler = Sampler(np.arange(11), batch=4, seed=0, sampling="sequential")
    assert [sampler.next().tolist() for _ in range(4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10], [0, 1, 2, 3]]


def test_items_drawn_with_replacement_repeat_and_are_equally_likely() -> None:
    sampler = Sampler(np.ones(20), batch=10, seed=0, sampling="replacement")
    assert len(sampler) == 2
    items = [sampler.next() for _ in range(4000)]
    assert {len(batch) for batch in items} == {10}
    # Of 10 draws from 20 items, all differ with the probability 0.065.
    distinct = np.mean([len(np.unique(batch)) == 10 for batch in items])
    assert distinct == pytest.approx(0.065, abs=0.015)
    assert np.bincount(np.concatenate(items)) / 40_000 == pytest.approx(np.full(20, 0.05), abs=0.005)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_fewer_items_than_a_batch_make_one_batch(sampling: str) -> None:
    items = Sampler(np.arange(3), batch=8, seed=0, sampling=sampling).next()
    assert len(items) == 3
    assert sorted(items) == [0, 1, 2] or sampling == "replacement"


def test_features_and_sets_are_padded_with_rows_of_zeros() -> None:
    x = Ragged.of([[1], [2, 2], [3]])
    features = Ragged.of([[[0.5, 1.0]], [[2.0, 0.0], [0.0, 3.0]], [[4.0, 4.0]]], dtype=np.float32)
    sets = Ragged(np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=np.bool_), x.offsets)
    batch = DeviceSplit(Split({"x": x, "features": features}, sets), CPU).batch(np.array([0, 1]))
    assert batch.form is TargetForm.SETS
    assert list(batch.fields.values())[1].dtype == torch.float32
    assert list(batch.fields.values())[1].tolist() == [[[0.5, 1.0], [0.0, 0.0]], [[2.0, 0.0], [0.0, 3.0]]]
    assert batch.targets.tolist() == [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]]]
    assert batch.scored is not None
    assert batch.scored.tolist() == [[True, False], [True, True]]


def test_features_of_one_length_are_not_padded() -> None:
    features = Ragged.of([[[0.5], [1.0]], [[2.0], [0.0]]], dtype=np.float64)
    batch = DeviceSplit(Split({"features": features}, np.array([0, 1])), CPU).batch(np.array([1, 0]))
    assert next(iter(batch.fields.values())).tolist() == [[[2.0], [0.0]], [[0.5], [1.0]]]


def test_spans_come_with_the_positions_that_they_can_have() -> None:
    x = Ragged.of([[1, 1, 1], [2, 2]])
    split = Split({"x": x}, np.array([[1, 2], [0, 0]]), Ragged.of([[0, 1, 1], [1, 0]], dtype=np.bool_))
    batch = DeviceSplit(split, CPU).batch(np.array([1, 0]))
    assert batch.form is TargetForm.SPANS
    assert batch.targets.tolist() == [[0, 0], [1, 2]]
    assert batch.scored is not None
    assert batch.scored.tolist() == [[True, False, False], [False, True, True]]


def test_a_batch_takes_no_python_call_per_item() -> None:
    rows = Ragged.of([[1] * (1 + item % 10) for item in range(2_000)])
    data = DeviceSplit(Split({"x": rows, "y": rows}, rows), CPU)

    def calls(items: int) -> int:
        profile = cProfile.Profile()
        profile.runcall(data.batch, np.arange(items))
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(1_000) == calls(10)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_batches_of_tokens_are_never_larger_and_hold_every_item_once(sampling: str) -> None:
    lengths = np.random.default_rng(0).integers(1, 30, size=500)
    sampler = Sampler(lengths, batch=64, seed=0, tokens=True, sampling=sampling)
    batches = [sampler.next() for _ in range(len(sampler))]
    assert sampler.epoch == 0
    items = np.concatenate(batches)
    assert len(items) == 500
    assert sorted(items) == list(range(500)) or sampling == "replacement"
    assert all(len(items) * lengths[items].max() <= 64 for items in batches)
    assert any(len(items) > 1 for items in batches)


def test_an_item_with_more_tokens_than_a_batch_is_a_separate_batch() -> None:
    sampler = Sampler(np.array([3, 50, 3]), batch=10, seed=0, tokens=True)
    assert [1] in [list(sampler.next()) for _ in range(len(sampler))]


def test_losses_are_counted_by_items_or_scored_positions() -> None:
    rows = Ragged.of([[1, 2, 3], [4]])
    marks = Ragged(np.array([True, False, True, True]), rows.offsets)
    items = np.array([0, 1])
    assert DeviceSplit(Split({"x": rows}, np.array([0, 1])), CPU).loss_count(items) == 2
    assert DeviceSplit(Split({"x": rows}, rows), CPU).loss_count(items) == 4
    assert DeviceSplit(Split({"x": rows}, rows, scored=marks), CPU).loss_count(items) == 3
