"""The costs of a model as it is computed, counted while it runs."""

import time
import weakref
from collections.abc import Callable
from math import inf, prod
from typing import Any, TypedDict

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from archlang.backend.architecture import Architecture
from archlang.backend.attach import rematerialize_bodies
from archlang.backend.runtime.loops import drawn_loops, halting_loops
from archlang.backend.runtime.row_blocks import keep_freed_memory
from archlang.backend.runtime.stacking import answering
from archlang.types import Dim

# The steps of a scan that goes step by step take ten times as long without numbers.
_MOST_SECONDS = 6.0


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


def peak_in_training(
    make: Callable[[], Architecture],
    length: int,
    batch: int,
    numbers: torch.dtype,
    together: int,
    *,
    is_padded: bool = True,
) -> int | None:
    """Returns the bytes that a forward and backward pass of a batch holds at its peak, besides weights and their
    gradients, with matrix products of these numbers; where backward computes so many steps of loops `together` again,
    unless that is 0. Returns None if numbers decide what the model runs, or if it takes too long.

    Makes and runs the model with tensors that have a shape and no numbers, so that one of any size takes seconds
    and no memory. Loops take all their steps. As in training, samples are padded; without that, large maps take far
    fewer operations, and somewhat less memory."""
    keep_freed_memory()  # which would count as memory of the first step
    try:
        with FakeTensorMode(), answering(lambda mark: True):
            module = make().train()
            for loop in halting_loops(module):
                loop.all_steps = True
            for drawn in drawn_loops(module):
                drawn.drawn_count = drawn.count
            if together:
                rematerialize_bodies(module, module.program.code, together)
            fields = _random_batch(module, length, batch)
            lengths = {
                field.name: torch.full((batch,), value.shape[1])
                for field, value in zip(module.program.inputs, fields, strict=True)
                if field.length is not None and is_padded
            }
            live = LiveBytes(time.monotonic() + _MOST_SECONDS)
            with live:
                with torch.autocast("cpu", numbers, enabled=numbers != torch.float32):
                    result = module(*fields, lengths=lengths)
                result.float().log_softmax(-1).sum().backward()
    except Exception:  # torch has several for a number that it has not, and a block of the user's may raise any
        return None
    gradients = (weight.grad for weight in module.parameters() if weight.grad is not None)
    return max(0, live.most - sum(gradient.untyped_storage().nbytes() for gradient in gradients))


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of the tensors that operations inside have made and that are still there, and the `most` at a
    time. Raises a TimeoutError after a time of the monotonic clock."""

    def __init__(self, end: float = inf) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self._end = end
        self._sizes: dict[int, int] = {}
        self._live = self.most = 0

    def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # Any: torch's own
        # An error in an operation of another kind, such as the device of a tensor, ends the process.
        if call.namespace == "aten" and time.monotonic() > self._end:
            raise TimeoutError
        results = call(*args, **(kwargs or {}))
        for tensor in tree_leaves(results):
            if not isinstance(tensor, Tensor) or tensor.is_mkldnn:  # oneDNN's live as long as one operation
                continue
            if call._overloadpacket is torch.ops.aten.mkldnn_rnn_layer and isinstance(tensor, FakeTensor):
                raise NotImplementedError  # torch does not know what the LSTM of oneDNN keeps
            storage = tensor.untyped_storage()
            if storage._cdata not in self._sizes:
                self._sizes[storage._cdata] = storage.nbytes()
                self._live += storage.nbytes()
                weakref.finalize(storage, self._end_of, storage._cdata)
        self.most = max(self.most, self._live)
        return results

    def _end_of(self, storage: int) -> None:
        self._live -= self._sizes.pop(storage)


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
