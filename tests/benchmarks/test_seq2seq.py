"""Both sides of the comparison compute the same."""

import pytest
import torch
import torch.nn.functional as F

from benchmarks.handwritten_seq2seq import shift
from benchmarks.measure import Setting
from benchmarks.seq2seq import NAMES, TINY, batch, decoders, pair
from tests.benchmarks.sides import same_sides


def test_the_handwritten_module_has_the_outputs_and_gradients_of_the_page() -> None:
    modules = [module.double().eval() for module in pair(TINY)]
    source, seen, lengths, answers = batch(TINY)
    results = [module(source, seen, lengths=lengths) for module in modules]
    losses = [F.cross_entropy(logits.flatten(0, 1), answers.flatten()) for logits in results]
    same_sides(modules, [logits[answers >= 0] for logits in results], losses, NAMES)


def test_both_sides_decode_the_same_tokens() -> None:
    sides = decoders(TINY, Setting(torch.device("cpu")))
    ours, theirs = sides.ours(), sides.theirs()
    assert ours.shape == (TINY.batch, TINY.target)
    assert ours.equal(theirs)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 5), (2, 5), (4, 4)])
def test_shift_selects_the_score_of_the_distance_to_each_key(queries: int, keys: int) -> None:
    scores = torch.arange(1 - keys, keys) + 100 * torch.arange(queries)[:, None]
    places = torch.arange(keys) - torch.arange(keys - queries, keys)[:, None]
    assert shift(scores).equal(places + 100 * torch.arange(queries)[:, None])
