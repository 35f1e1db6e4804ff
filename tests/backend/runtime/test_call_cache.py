"""Claims about the cache of a call of a model."""

import threading
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor

from archlang.backend.runtime.call_cache import cached_in_call, call_scope
from archlang.backend.runtime.masks import code_inputs
from archlang.blocks import attention
from tests.closeness import same_gradients
from tests.conftest import Compiled


class Counted:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Tensor:
        self.calls += 1
        return torch.ones(2, requires_grad=True) * 2


def test_a_value_is_computed_once_in_a_call_and_every_time_outside() -> None:
    compute = Counted()
    with call_scope():
        first = cached_in_call("a", compute)
        assert cached_in_call("a", compute) is first
        assert compute.calls == 1
        cached_in_call("b", compute)
        assert compute.calls == 2
    cached_in_call("a", compute)
    cached_in_call("a", compute)
    assert compute.calls == 4
    with call_scope():
        assert cached_in_call("a", compute) is not first
    with pytest.raises(ZeroDivisionError), call_scope():  # drops its cache too
        cached_in_call("b", lambda: 1 / 0)
    cached_in_call("a", compute)
    cached_in_call("a", compute)
    assert compute.calls == 7


def test_a_value_without_gradients_is_not_returned_when_gradients_are_enabled() -> None:
    compute = Counted()
    with call_scope():
        with torch.no_grad():
            assert not cached_in_call("a", compute).requires_grad
        assert cached_in_call("a", compute).requires_grad


def test_a_value_of_another_source_replaces_that_of_the_first() -> None:
    compute = Counted()
    source, later_source = torch.ones(1), torch.ones(1)
    with call_scope():
        first = cached_in_call("a", compute, source)
        assert cached_in_call("a", compute, source) is first
        assert cached_in_call("a", compute, later_source) is not first
        assert cached_in_call("a", compute, source) is not first
        assert compute.calls == 3


def test_nested_calls_and_threads_have_their_own_caches() -> None:
    of_thread: list[Tensor] = []
    compute = Counted()
    with call_scope():
        first = cached_in_call("a", compute)
        with call_scope():
            assert cached_in_call("a", compute) is not first
        assert cached_in_call("a", compute) is first
        thread = threading.Thread(target=lambda: of_thread.append(cached_in_call("a", compute)))
        thread.start()
        thread.join()
    assert of_thread[0] is not first


LOOP = """model m[d = 8](x: tokens[n]) -> logits[n, classes] {
    h = embed[d](x)
    LOOP 3 { h <- norm(h + relative_attention[heads = 2](h)) }
    return linear[classes](h)
}"""


@pytest.mark.parametrize(("loop", "times"), [("repeat", 1), ("stack", 3)])
def test_positions_are_projected_once_for_weights_that_are_shared(compiled: Compiled, loop: str, times: int) -> None:
    module = compiled(LOOP.replace("LOOP", loop)).double()
    sizes: list[int] = []
    for name, part in module.named_modules():
        if name.endswith("relative_attention.position"):
            part.register_forward_hook(lambda part, inputs, result: sizes.append(inputs[0].shape[1]))
    x = torch.randint(0, 11, (2, 5))
    results = []
    for cached in (True, False):
        sizes.clear()
        results.append(module(x) if cached else module.program.code.function(module, x, None))
        assert len(sizes) == (times if cached else 3)
    same_gradients(results[0], results[1], module.parameters())


PADDED = """model m[d = 8](x: tokens[n]) -> logits[n, classes] {
    h = embed[d](x)
    stack 3 { h <- norm(h + attention[STATICS](h)) }
    return linear[classes](h)
}"""


@pytest.mark.parametrize("statics", ["2", "2, causal = true", "2, causal = true, position = alibi"])
def test_the_masks_of_attention_are_computed_once_for_all_layers(
    compiled: Compiled, statics: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    visible = Mock(side_effect=attention.visible)
    monkeypatch.setattr(attention, "visible", visible)
    module = compiled(PADDED.replace("STATICS", statics)).double()
    x, lengths = torch.randint(0, 11, (3, 5)), torch.tensor([5, 2, 0])
    logits = module(x, lengths=lengths)
    visible.assert_called_once()
    uncached = module.program.code.function(module, *code_inputs(module.program, (x,), {"x": lengths}))
    torch.testing.assert_close(logits, uncached, atol=1e-10, rtol=1e-10)


TWO_LENGTHS = """model m[d = 8](x: tokens[n], y: tokens[m]) -> logits[classes] {
    a = attention[2](embed[d](x))
    b = attention[2](embed[d](y))
    return linear[classes](concat(sum(a), sum(b)))
}"""


def test_masks_of_equal_shapes_are_told_apart(compiled: Compiled) -> None:
    module = compiled(TWO_LENGTHS).double()
    x, y = torch.randint(0, 11, (2, 2, 5))
    lengths = {"x": torch.tensor([5, 3]), "y": torch.tensor([2, 5])}
    masks = [torch.arange(5) < length[:, None] for length in lengths.values()]
    uncached = module.program.code.function(module, x, y, *masks)
    torch.testing.assert_close(module(x, y, lengths=lengths), uncached, atol=1e-10, rtol=1e-10)
