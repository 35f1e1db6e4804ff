"""The library's Neural Data Router and its baselines: shared weights and closed gates."""

from typing import Any

import pytest
import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.blocks.feedforward import Feedforward
from tests.blocks.models.batches import noisy
from tests.shipped_models import load_page

MODELS: dict[str, dict[str, Any]] = {  # Any: statics of any kind
    "ndr": {"ff": 24},
    "absolute": {"ff": 24},
    "relative": {"ff": 24},
    "geometric": {"ff": 24},
    "relative_gated": {},
    "absrel_gated": {},
    "adaptive": {"ff": 24},
    "adaptive_relative": {"ff": 24},
    "adaptive_geometric": {"ff": 24},
}
models = pytest.mark.parametrize("model", MODELS)


def built(model: str, **statics: Any) -> Architecture:  # Any: statics of any kind
    small = {"d": 16, "heads": 2, "steps": 3, "vocab": 7, "classes": 5, **MODELS[model], **statics}
    return noisy(load_page("data_router", model, **small))


def items() -> tuple[Tensor, Tensor]:
    return torch.randint(0, 7, (3, 6)), torch.tensor([6, 3, 1])


@models
def test_a_model_may_be_deeper_than_in_training(model: str) -> None:
    shallow, deep = built(model), built(model, steps=6)
    for name, parameter in shallow.named_parameters():
        if name.endswith("halt.bias"):
            parameter.data.fill_(-3.0)  # no column halts by itself in so few steps
    deep.load_state_dict(shallow.state_dict())
    tokens, lengths = items()
    assert deep(tokens, lengths=lengths).ne(shallow(tokens, lengths=lengths)).any()


@pytest.mark.parametrize("model", ["ndr", "relative_gated", "absrel_gated"])
def test_a_gate_that_stays_closed_leaves_only_the_embedding(model: str) -> None:
    module, (tokens, lengths) = built(model, column="first"), items()
    gate = module.get_submodule("gated_layer.feedforward_2")
    assert isinstance(gate, Feedforward)
    gate.output.weight.data.zero_()
    gate.output.bias.data.fill_(-1000.0)
    embedded = module.get_submodule("embed")(tokens[:, :1])[:, 0]
    answer = module.get_submodule("readout.linear")(embedded)
    assert module(tokens, lengths=lengths).equal(answer)


@pytest.mark.parametrize("variant", ["graves", "dehghani"])
@pytest.mark.parametrize("model", ["adaptive", "adaptive_relative", "adaptive_geometric"])
def test_adaptive_computation_time_has_a_ponder(model: str, variant: str) -> None:
    module, (tokens, lengths) = built(model, variant=variant), items()
    module(tokens, lengths=lengths)
    assert module.ponder.item() > 0


LISTOPS: dict[str, Any] = {"d": 512, "heads": 16, "ff": 1024, "vocab": 17, "classes": 10}  # Any: statics of any kind
CTL: dict[str, Any] = {"vocab": 21, "classes": 8}  # Any: statics of any kind


@pytest.mark.parametrize(
    ("statics", "published"), [(CTL, 731_405), (LISTOPS, 2_918_957)], ids=["table lookup", "listops"]
)
def test_ndr_has_the_published_size_except_for_an_unused_map(statics: dict[str, Any], published: int) -> None:
    d = statics.get("d", 256)
    # The program has an unused map of positions, d * d, for its relative attention.
    assert (
        sum(parameter.numel() for parameter in load_page("data_router", "ndr", **statics).parameters())
        == published - d * d
    )
