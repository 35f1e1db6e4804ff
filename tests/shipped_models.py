"""The shipped models at small sizes, with a batch for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from archlang.resolve.library import library_file

if TYPE_CHECKING:
    from torch import Tensor

    from archlang.backend import Architecture

_DATA_ROUTER = {"d": 16, "heads": 2, "steps": 4}
_DYNAMIC_HALT = {"d": 16, "heads": 2, "ff": 24}
_SIZES = {"vocab": 11, "classes": 5}
_RECURRENT = {"hidden": 8, "embedding": 6, "layers": 2}
SHIPPED: Mapping[str, tuple[str, Mapping[str, object]]] = {
    **{
        name: ("data_router", _DATA_ROUTER | {"ff": 24})
        for name in ("ndr", "absolute", "relative", "geometric", "adaptive", "adaptive_relative", "adaptive_geometric")
    },
    **dict.fromkeys(("relative_gated", "absrel_gated"), ("data_router", _DATA_ROUTER)),
    **dict.fromkeys(("recurrent", "bidirectional"), ("data_router", _RECURRENT)),
    "transformer": ("dynamic_halt", _DYNAMIC_HALT | {"layers": 2}),
    "universal_transformer": ("dynamic_halt", _DYNAMIC_HALT | {"depth": 4}),
    "gated_universal_transformer": ("dynamic_halt", _DYNAMIC_HALT | {"depth": 4}),
    "temporal_latent_bottleneck": ("dynamic_halt", _DYNAMIC_HALT | {"size": 8, "slots": 3}),
    "gated_universal_latent_bottleneck": ("dynamic_halt", _DYNAMIC_HALT | {"depth": 3, "size": 8, "slots": 3}),
    "siamese": ("dynamic_halt", {"d": 16}),
    "panm_bigru": ("panm", {"hidden": 8, "bits": 5, "base": "training"}),
    "panm_lstm": ("panm", {"hidden": 8, "bits": 5, "width": 6}),
    "panm_seq2seq": ("panm", {"d": 16, "heads": 2, "ff": 24, "layers": 2, "bits": 5, "hidden": 8}),
    "seq2seq": ("seq2seq", {"d": 16, "heads": 2, "ff": 24, "layers": 2}),
}
"""The file and the statics of each model."""


def library_page(name: str) -> Path:
    """Returns the file of a page of the library's models."""
    path = library_file(f"archlang.models.{name}")
    assert path is not None
    return path


def load_page(page: str, model: str, **statics: Any) -> Architecture:  # Any: statics of any kind
    """Returns a model of a page of the library."""
    from archlang.compile import load

    return load(library_page(page), model, **statics)


def shipped_model(name: str, **statics: object) -> Architecture:
    """Returns a shipped model in evaluation mode. `panm_bigru` draws no addresses in evaluation."""
    file, small = SHIPPED[name]
    fields = {"words": 11} if "seq2seq" in name else {}
    sizes = {key: size for key, size in _SIZES.items() if key == "vocab" or file in ("data_router", "dynamic_halt")}
    torch.manual_seed(0)
    values: dict[str, Any] = {**sizes, **fields, **small, **statics}  # Any: keywords of different types
    return load_page(file, name, **values).eval()


def noisy(module: Architecture, noise: float = 0.2) -> Architecture:
    """Returns a module in float64 for evaluation, in which no weight is a constant."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(noise * torch.randn_like(parameter))
    return module.double().eval()


def drawn_fields(module: Architecture) -> list[Tensor]:
    """Returns fields of two samples, in which every length is 6."""
    fields = []
    for field in module.program.inputs:
        shape = [2, *(size if isinstance(size, int) else 6 for size in field.sizes)]
        fields.append(torch.rand(shape) if field.vocabulary is None else torch.randint(field.vocabulary, shape))
    return fields


def shipped_batch(module: Architecture, batch: int, length: int) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Returns the fields and the lengths of a batch. A second field with its own length is two positions shorter; the
    first sample has no padding."""
    generator = torch.Generator().manual_seed(length)
    first = module.program.inputs[0]
    fields, lengths = [], {}
    for field in module.program.inputs:
        size = length if field.length == first.length else max(1, length - 2)
        fields.append(torch.randint(0, 11, (batch, size), generator=generator))
        lengths[field.name] = torch.randint(1, size + 1, (batch,), generator=generator)
        lengths[field.name][0] = size
    return fields, lengths
