"""The costs of a model as it is computed, counted while it runs."""

from math import prod
from typing import Any, TypedDict

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from archlang.backend.architecture import Architecture
from archlang.types import Dim


class MeasuredCosts(TypedDict):
    """FLOPs of the forward pass of a batch, and the bytes that training keeps of it until backward, besides weights."""

    flops: int
    activation_bytes: int


def measure_costs(module: Architecture, length: int, batch: int) -> MeasuredCosts:
    """Runs a random batch without padding. Loops that halt stop where the module's weights decide."""
    weights = {weight.untyped_storage().data_ptr() for weight in module.parameters()}
    kept: dict[int, Tensor] = {}  # by storage; a reference keeps the address from being used again

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    # torch does not count its attention on a CPU.
    uncounted: dict[Any, Any] = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention_flops}
    counter = FlopCounterMode(display=False, custom_mapping=uncounted)
    with torch.random.fork_rng(devices=()), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        torch.manual_seed(0)
        with counter:
            module.train()(*_random_batch(module, length, batch))
    sizes = (tensor.untyped_storage().nbytes() for storage, tensor in kept.items() if storage not in weights)
    return MeasuredCosts(flops=counter.get_total_flops(), activation_bytes=sum(sizes))


def _random_batch(module: Architecture, length: int, batch: int) -> list[Tensor]:
    values = []
    for field in module.program.inputs:
        sizes = [size if isinstance(size, Dim) else Dim.of(size) for size in field.sizes]
        shape = [batch, *(size.substitute(dict.fromkeys(size.names, Dim.of(length))).constant or 0 for size in sizes)]
        values.append(torch.rand(shape) if field.vocabulary is None else torch.randint(field.vocabulary, shape))
    return values


def _attention_flops(query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...], *_: Any, **__: Any) -> int:
    return 2 * prod(query[:3]) * key[2] * (query[3] + value[3])
