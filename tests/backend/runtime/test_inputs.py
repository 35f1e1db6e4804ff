"""Errors for wrong tensors say what was found and what the model expects."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from tests.closeness import close
from tests.conftest import Compiled

pytestmark = pytest.mark.usefixtures("unchecked")

ONE = "model m[d = 4](x: tokens[n]) -> logits[classes] { return embed[d](x) |> mean |> linear[classes] }"
PAIR = """
model m[d = 4](x: tokens[n], y: tokens[n]) -> logits[n, classes] {
    return linear[classes](embed[d](x) + attention[1](embed[d](y)))
}
"""
FEATURES = "model m(s: seq[n, 3]) -> logits[classes] { return mean(s) |> linear[classes] }"
FIXED = "model m(s: seq[4, 3]) -> logits[classes] { return mean(s) |> linear[classes] }"
VECTOR = "model m(v: vec[3]) -> logits[classes] { return linear[classes](v) }"
MIXED = """
model m(v: vec[3], x: tokens[n], z: seq[n + 2, 3]) -> logits[classes] {
    return linear[classes](v + linear[3](embed[3](x) |> mean) + mean(z))
}
"""
SOURCE = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])


def ids(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.int64)


WRONG: list[tuple[str, tuple[Any, ...], type[Exception], str]] = [  # Any: also what is no tensor
    (ONE, ([[1, 2]],), TypeError, "`m` takes `x` as a tensor, and got a list of list"),
    (ONE, (None,), TypeError, "`m` takes `x` as a tensor, and got a NoneType"),
    (ONE, (torch.zeros(2, 4),), TypeError, r"takes `x`, tokens\[n, 11\], as integers.* and got float32"),
    (ONE, (torch.zeros(2, 4, dtype=torch.bool),), TypeError, "and got bool"),
    (ONE, (ids(4),), ValueError, r"as a tensor of the shape \[batch, n\], and got \[4\]"),
    (ONE, (ids(2, 4, 1),), ValueError, r"and got \[2, 4, 1\]"),
    (
        ONE,
        (torch.tensor([[0, 11]]),),
        ValueError,
        "11 is not a token of `x` of `m`: its vocabulary has the tokens 0 to 10",
    ),
    (ONE, (torch.tensor([[0, -1]]),), ValueError, "-1 is not a token of `x`"),
    (PAIR, (ids(2, 4),), TypeError, "takes 2 fields, `x`, `y`, and got 1"),
    (PAIR, (ids(2, 4), ids(3, 4)), ValueError, "different sizes: `x` has 2, and `y` has 3"),
    (PAIR, (ids(2, 4), ids(2, 1)), ValueError, "both have the length n, but `x` has 4 positions, and `y` has 1"),
    (FEATURES, (torch.zeros(2, 4, 5),), ValueError, r"takes `s`, seq\[n, 3\], with 3 features, and got 5"),
    (FEATURES, (torch.zeros(2, 3),), ValueError, r"of the shape \[batch, n, 3\], and got \[2, 3\]"),
    (FEATURES, (ids(2, 4, 3),), TypeError, "as floating-point numbers, and got int64"),
    (FIXED, (torch.zeros(2, 5, 3),), ValueError, r"takes `s`, seq\[4, 3\], with 4 positions, and got 5"),
    (VECTOR, (torch.zeros(2, 4),), ValueError, "with 3 features, and got 4"),
    (MIXED, (torch.zeros(2, 3), ids(2, 4), torch.zeros(2, 4, 3)), ValueError, "with 6 positions, and got 4"),
    (MIXED, (torch.zeros(1, 3), ids(2, 4), torch.zeros(2, 6, 3)), ValueError, "`v` has 1, and `x` has 2"),
]


@pytest.mark.parametrize(("text", "fields", "kind", "complaint"), WRONG)
def test_a_wrong_field_is_refused(
    compiled: Compiled, text: str, fields: tuple[Any, ...], kind: type[Exception], complaint: str
) -> None:
    with pytest.raises(kind, match=complaint):
        compiled(text)(*fields)


@pytest.mark.parametrize(
    ("lengths", "kind", "complaint"),
    [
        ([100, 1], ValueError, "the lengths of `x` of `m` contain 100, and must lie between 0 and 4"),
        ([-1, 1], ValueError, "the lengths of `x` of `m` contain -1"),
        (torch.tensor([1, 5]), ValueError, "the lengths of `x` of `m` contain 5"),
        ([1], ValueError, r"the lengths of `x` as one for each of 2 samples, and got the shape \[1\]"),
        (torch.tensor([[1], [2]]), ValueError, r"got the shape \[2, 1\]"),
        (torch.tensor(3), ValueError, r"got the shape \[\]"),
        ([1.0, 2.0], TypeError, "the lengths of `x` as a tensor or a list of integers, and got a list of float"),
        (torch.ones(2), TypeError, "and got a tensor of float32"),
        (torch.ones(2, dtype=torch.bool), TypeError, "and got a tensor of bool"),
        ([1, 1 << 70], TypeError, "and got a list of int"),
        (4, TypeError, "and got an int"),
        ("12", TypeError, "and got a str"),
        ({"y": [1, 1]}, TypeError, "no field `y` to have lengths; it has `x`"),
    ],
)
def test_wrong_lengths_are_refused(compiled: Compiled, lengths: Any, kind: type[Exception], complaint: str) -> None:
    with pytest.raises(kind, match=complaint):
        compiled(ONE)(SOURCE, lengths=lengths)


def test_lengths_of_a_field_without_positions_are_refused(compiled: Compiled) -> None:
    with pytest.raises(TypeError, match=r"`v` of `m` has no positions, and so no lengths: it is vec\[3\]"):
        compiled(VECTOR)(torch.zeros(2, 3), lengths=[1, 1])


def test_fields_of_several_lengths_need_names(compiled: Compiled) -> None:
    fields = torch.zeros(2, 3), SOURCE, torch.zeros(2, 6, 3)
    with pytest.raises(TypeError, match=r'`m` has fields of several lengths.* lengths=\{"x": …, "z": …\}'):
        compiled(MIXED)(*fields, lengths=[4, 2])


def test_a_field_of_a_fixed_length_has_that_length_in_every_sample(compiled: Compiled) -> None:
    module = compiled(FIXED)
    fields = torch.randn(2, 4, 3)
    assert torch.equal(module(fields, lengths=[4, 4]), module(fields))
    with pytest.raises(ValueError, match="the lengths of `s` of `m` contain 3, and must be 4, as in every sample"):
        module(fields, lengths=[4, 3])


def test_fields_with_one_length_have_the_same_lengths(compiled: Compiled) -> None:
    module = compiled(PAIR)
    same = module(SOURCE, SOURCE, lengths={"x": [4, 2], "y": [4, 2]})
    assert torch.equal(same, module(SOURCE, SOURCE, lengths={"y": [4, 2]}))
    assert torch.equal(same, module(SOURCE, SOURCE, lengths=[4, 2]))
    with pytest.raises(ValueError, match="`x` and `y` of `m` both have the length n, but their lengths differ"):
        module(SOURCE, SOURCE, lengths={"x": [4, 2], "y": [4, 1]})


@pytest.mark.parametrize("lengths", [[4, 2], (4, 2), torch.tensor([4, 2], dtype=torch.int32), {"x": [4, 2]}])
def test_lengths_may_be_a_list(compiled: Compiled, lengths: Any) -> None:
    module = compiled(ONE)
    assert torch.equal(module(SOURCE, lengths=lengths), module(SOURCE, lengths=torch.tensor([4, 2])))


def test_a_batch_without_samples_has_a_result_without_samples(compiled: Compiled) -> None:
    assert compiled(ONE)(ids(0, 3), lengths=[]).shape == (0, 5)


def test_each_sample_can_have_its_own_gradient(compiled: Compiled) -> None:
    """Values under vmap cannot be read, so they are not checked."""
    module = compiled(ONE)
    weights = {name: weight.detach() for name, weight in module.named_parameters()}

    def loss(weights: dict[str, Tensor], x: Tensor, length: Tensor) -> Tensor:
        result: Tensor = functional_call(module, weights, (x[None],), {"lengths": length[None]})
        return result.square().sum()

    lengths = torch.tensor([4, 2])
    together = vmap(grad(loss), in_dims=(None, 0, 0))(weights, SOURCE, lengths)
    for sample in range(2):
        for name, value in grad(loss)(weights, SOURCE[sample], lengths[sample]).items():
            close(together[name][sample], value)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_call_does_not_wait_for_a_gpu(compiled: Compiled) -> None:
    module = compiled(ONE).cuda()
    fields, lengths = SOURCE.cuda(), torch.tensor([4, 2]).cuda()
    module(fields, lengths=lengths)
    torch.cuda.set_sync_debug_mode("error")
    try:
        module(fields, lengths=lengths)
    finally:
        torch.cuda.set_sync_debug_mode("default")


WRITER = """
model m[d = 4](source: tokens[n], target: tokens[k]) -> logits[k, vocab] {
    t = embed[d](target)
    return linear[vocab](t + attention[1, causal = true](t) + attention[1](t, embed[d](source)))
}
"""


@pytest.mark.parametrize(
    ("arguments", "kind", "complaint"),
    [
        ({"begin": 11}, ValueError, "11 is not a token of `target` of `m`"),
        ({"begin": [0, 1]}, TypeError, "takes `target` as a tensor, and got a list of int"),
        ({"begin": ids(3, 1)}, ValueError, "`source` has 2, and `target` has 3"),
        ({"begin": ids(2, 0)}, ValueError, "`m` writes `target` from at least one token, and `begin` has none"),
        ({"begin": ids(2)}, ValueError, r"takes `target`, .* of the shape \[batch, k\], and got \[2\]"),
        ({"begin": torch.zeros(2, 1)}, TypeError, "takes `target`, .* as integers"),
        ({"end": -1}, ValueError, "-1 is not a token of `target` of `m`"),
        ({"limit": -1}, ValueError, "limit is -1, and must be 0 or more"),
        ({"lengths": [5, 1]}, ValueError, "the lengths of `source` of `m` contain 5"),
        ({"lengths": {"target": [1, 1]}}, TypeError, "no field `target` to have lengths; it has `source`"),
        ({"answer_lengths": [1]}, ValueError, r"answer_lengths as one for each of 2 samples, and got the shape \[1\]"),
        ({"answer_lengths": [1, -2]}, ValueError, "answer_lengths of `m` contain -2, and must be 0 or more"),
        ({"answer_lengths": [1.0, 2.0]}, TypeError, "answer_lengths as a tensor or a list of integers"),
    ],
)
def test_a_wrong_argument_of_decode_is_refused(
    compiled: Compiled, arguments: dict[str, Any], kind: type[Exception], complaint: str
) -> None:
    with pytest.raises(kind, match=complaint):
        compiled(WRITER).decode(SOURCE, **{"begin": 0, "limit": 2, **arguments})


def test_a_wrong_source_of_decode_is_refused(compiled: Compiled) -> None:
    with pytest.raises(ValueError, match="11 is not a token of `source`"):
        compiled(WRITER).decode(torch.tensor([[11]]), begin=0, limit=2)


def test_lengths_of_answers_may_be_a_list(compiled: Compiled) -> None:
    module = compiled(WRITER)
    listed = module.decode(SOURCE, lengths=[4, 2], begin=0, end=1, answer_lengths=[3, 0])
    tensors = module.decode(SOURCE, lengths=torch.tensor([4, 2]), begin=0, end=1, answer_lengths=torch.tensor([3, 0]))
    assert torch.equal(listed.tokens, tensors.tokens)
    assert listed.lengths.tolist() == [3, 0]
