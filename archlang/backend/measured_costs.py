"""The costs of a model as it is computed, counted while it runs."""

from math import prod
from typing import Any, TypedDict

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

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

    counter = _FlopCounter()  # type: ignore[no-untyped-call]  # torch's own
    with torch.random.fork_rng(devices=()), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        torch.manual_seed(0)
        with counter:
            module.train()(*_random_batch(module, length, batch))
    sizes = (tensor.untyped_storage().nbytes() for storage, tensor in kept.items() if storage not in weights)
    return MeasuredCosts(flops=counter.flops, activation_bytes=sum(sizes))


def _random_batch(module: Architecture, length: int, batch: int) -> list[Tensor]:
    values = []
    for field in module.program.inputs:
        sizes = [size if isinstance(size, Dim) else Dim.of(size) for size in field.sizes]
        shape = [batch, *(size.substitute(dict.fromkeys(size.names, Dim.of(length))).constant or 0 for size in sizes)]
        values.append(torch.rand(shape) if field.vocabulary is None else torch.randint(field.vocabulary, shape))
    return values


class _FlopCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Counts as torch's `FlopCounterMode`, which hooks all modules: then the compiled model runs other forms."""

    flops = 0

    def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # Any: torch's own
        result = call(*args, **(kwargs or {}))
        # torch counts neither its attention nor its LSTM on a CPU.
        if call._overloadpacket is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu:
            query, key, value = (tensor.shape for tensor in args[:3])
            self.flops += 2 * prod(query[:3]) * key[2] * (query[3] + value[3])
        elif call._overloadpacket is torch.ops.aten.mkldnn_rnn_layer:
            x, *weights = (tensor.shape for tensor in args[:3])
            self.flops += 2 * prod(x[:2]) * sum(map(prod, weights))
        elif (count := flop_registry.get(call._overloadpacket)) is not None:
            self.flops += count(*args, **(kwargs or {}), out_val=result)
        return result
