"""The library's universal transformers, bottlenecks and siamese classifier: ablations, chunks and ponder."""

from typing import Any

import pytest
import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from tests.blocks.models.batches import noisy
from tests.conftest import Compiled
from tests.shipped_models import library_page, load_page

MODELS: dict[str, dict[str, Any]] = {  # Any: statics of any kind
    "transformer": {"layers": 2},
    "universal_transformer": {"depth": 4},
    "gated_universal_transformer": {"depth": 4},
    "temporal_latent_bottleneck": {"size": 3, "slots": 4},
    "gated_universal_latent_bottleneck": {"size": 3, "slots": 4, "depth": 3},
}
ABLATIONS: dict[str, dict[str, Any]] = {  # Any: statics of any kind
    "without gates": {"gated": False},
    "without transitions": {"transition": False},
    "position by position": {"global": False},
}


def built(model: str, **statics: Any) -> Architecture:  # Any: statics of any kind
    small = {"d": 16, "heads": 2, "ff": 24, "vocab": 7, "classes": 5, **MODELS.get(model, {}), **statics}
    return noisy(load_page("dynamic_halt", model, **small))


def items() -> tuple[Tensor, Tensor]:
    return torch.randint(0, 7, (3, 8)), torch.tensor([8, 5, 2])


@pytest.mark.parametrize("statics", ABLATIONS.values(), ids=ABLATIONS)
def test_an_ablation_is_another_model(statics: dict[str, Any]) -> None:
    module, (tokens, lengths) = built("gated_universal_transformer", **statics), items()
    together = module(tokens, lengths=lengths)
    complete = built("gated_universal_transformer")
    shared = {name: weight for name, weight in module.state_dict().items() if name in complete.state_dict()}
    fitting = {name: weight for name, weight in shared.items() if weight.shape == complete.state_dict()[name].shape}
    complete.load_state_dict({**complete.state_dict(), **fitting})
    assert complete(tokens, lengths=lengths).ne(together).any()


def test_balanced_chunks_depend_on_the_longest_sample_of_a_batch() -> None:
    module, (tokens, lengths) = built("temporal_latent_bottleneck", balanced=True, size=5), items()
    assert module(tokens, lengths=lengths)[1].ne(module(tokens[[1], :5])[0]).any()


@pytest.mark.parametrize("side", ["plain", "halting"])
def test_both_sides_of_a_pair_share_an_encoder_and_average_their_ponders(side: str, compiled: Compiled) -> None:
    sides = """
block plain(h: seq[n, d]) -> seq[n, d] { return transformer_layers[heads = 2, ff = 24, layers = 2](h) }

block halting(h: seq[n, d]) -> seq[n, d] {
    return universal_layers[
        heads = 2, ff = 24, depth = 4, gated = true, transition = true, global = true, length_cap = false](h)
}
"""
    text = library_page("dynamic_halt").read_text(encoding="utf-8") + sides
    module = compiled(text, model="siamese", read=side, d=16, vocab=7).double().eval()
    left, right = torch.randint(0, 7, (3, 8)), torch.randint(0, 7, (3, 6))
    module(left, right)
    costs = module.ponder.item()
    twice = []
    for field in (left, right):
        module(field, field)
        twice.append(module.ponder.item())
    assert costs == pytest.approx(sum(twice) / 2, abs=1e-12)
    assert (costs > 0) is (side == "halting")


HALTING = """
use archlang.models.dynamic_halt

model early[depth: int, threshold: float](x: seq[n, 8]) -> seq[n, 8] {
    return universal_layers[2, 12, depth, gated = true, transition = true, global = true, threshold = threshold](x)
}

model bounded[depth: int, threshold: float](x: seq[n, 8]) -> seq[n, 8] {
    return bounded_layers[2, 12, depth, threshold = threshold](x)
}
"""


@pytest.mark.parametrize("threshold", [0.5, 0.9, 0.999])
def test_a_gut_that_computes_all_steps_equals_the_one_that_stops(threshold: float, compiled: Compiled) -> None:
    early, bounded = (
        compiled(HALTING, model=name, depth=6, threshold=threshold).double().eval() for name in ("early", "bounded")
    )
    for one, other in zip(early.parameters(), bounded.parameters(), strict=True):
        one.data.add_(0.3 * torch.randn_like(one))
        other.data.copy_(one)
    x, lengths = torch.randn(5, 7, 8, dtype=torch.float64), torch.tensor([7, 1, 3, 2, 5])
    results = [(module(x, lengths=lengths), module) for module in (early, bounded)]
    torch.testing.assert_close(results[0][0], results[1][0], rtol=0, atol=1e-12)
    torch.testing.assert_close(early.ponder, bounded.losses["ponder"], rtol=0, atol=1e-12)
    gradients = [
        torch.autograd.grad(y.square().sum() + ponder, list(module.parameters()))
        for (y, module), ponder in zip(results, (early.ponder, bounded.losses["ponder"]), strict=True)
    ]
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-12)


def test_a_gut_without_halting_has_no_weights_of_halting_and_no_ponder() -> None:
    module = built("gated_universal_transformer", halting="none")
    module(torch.randint(0, 7, (2, 5)))
    assert module.ponder.item() == 0
    assert not [name for name, _ in module.named_parameters() if "halt." in name]
