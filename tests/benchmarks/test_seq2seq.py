"""Both sides of the comparison compute the same."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from benchmarks.comparison import hand_name
from benchmarks.handwritten_seq2seq import shift
from benchmarks.measure import Setting
from benchmarks.seq2seq import NAMES, TINY, batch, decoders, pair


def test_the_handwritten_module_has_the_outputs_and_gradients_of_the_page() -> None:
    modules = [module.double().eval() for module in pair(TINY)]
    source, seen, lengths, answers = batch(TINY)
    results, gradients = [], []
    for module in modules:
        logits = module(source, seen, lengths=lengths)
        results.append(logits[answers >= 0])
        loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        gradients.append({name: parameter.grad for name, parameter in module.named_parameters()})
    assert_close(*results, rtol=1e-10, atol=1e-10)
    for own, gradient in gradients[0].items():
        hand = gradients[1].pop(hand_name(own, NAMES))
        assert gradient is not None
        assert hand is not None
        assert_close(gradient, hand.view_as(gradient), rtol=1e-8, atol=1e-10, msg=partial("{}: {}".format, own))
    assert not gradients[1]


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
