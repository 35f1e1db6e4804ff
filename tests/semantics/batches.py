"""Inputs for a model, and its results sample by sample."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import torch
from torch import Tensor, nn

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.halting import HaltingBlock
from archlang.backend.runtime.loops import drawn_loops, resolve
from archlang.compile import build
from archlang.graph.graph import Graph
from archlang.types import Dim, Type

# A loop with more steps would take long.
MOST_DRAWN = 6


@dataclass(frozen=True)
class Sample:
    """The fields of one sample, without padding: Int[n] or Float[n d] each."""

    fields: tuple[Tensor, ...]

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(len(field) for field in self.fields)


@dataclass(frozen=True)
class Outcome:
    """The outputs of a model for a batch: the results without padding, the ponder of the batch, the steps of each
    sample, the gradients of the weights by their names, and the auxiliary losses of the batch."""

    results: tuple[Tensor, ...]
    ponder: Tensor
    depth: Tensor | None
    gradients: Mapping[str, Tensor]
    losses: Mapping[str, Tensor]


def randomised(graph: Graph, seed: int, without: Sequence[str] = ()) -> Architecture:
    """Returns a module in float64 whose weights are not 0, and for which samples halt at different steps."""
    torch.manual_seed(seed)
    return spread_out(with_fixed_draws(build(graph, without=without)), seed)


def with_fixed_draws(module: Architecture) -> Architecture:
    """Returns the module, whose loops take the same number of steps in each training step."""
    for loop in drawn_loops(module):
        loop.drawn_count = drawn_count(resolve(loop.owner, loop.drawn.split(".")))
    return module


def drawn_count(block: nn.Module) -> int:
    """Returns the number of steps that a block draws first, always the same, and at most `MOST_DRAWN`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return min(int(block(1).item()), MOST_DRAWN)


def spread_out(module: Architecture, seed: int) -> Architecture:
    """Converts a module to float64 and draws its weights. A weight depends only on its name and the seed, so that
    modules of one model with different sets of weights agree on common weights. Weights that start as a constant stay
    near it."""
    module.double()
    halting = {
        id(weight) for part in module.modules() if isinstance(part, HaltingBlock) for weight in part.parameters()
    }
    with torch.no_grad():
        for name, weight in module.named_parameters():
            generator = torch.Generator().manual_seed(crc32(name.encode()) + seed)
            noise = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
            is_constant = weight.numel() > 0 and bool((weight == weight.flatten()[0]).all()) and weight.numel() > 1
            # Halting probabilities neither near 0 nor near 1 for states of any width.
            scale = 2.0 / max(1, weight.shape[-1]) ** 0.5 if id(weight) in halting else 0.5
            weight.copy_((weight if is_constant else 0) + scale * noise)
    return module


def samples(graph: Graph, lengths: Sequence[Sequence[int]], seed: int) -> list[Sample]:
    """Returns a sample for each tuple of lengths, which has a length for each field."""
    generator = torch.Generator().manual_seed(seed)
    return [
        Sample(
            tuple(
                _field(value.type, length, generator)
                for value, length in zip(graph.region.inputs, sample_lengths, strict=True)
            )
        )
        for sample_lengths in lengths
    ]


def _field(kind: Type, length: int, generator: torch.Generator) -> Tensor:
    size = kind.feature.constant if kind.feature is not None else None
    assert size is not None
    if kind.name == "tokens":
        return torch.randint(0, size, (length,), generator=generator)
    return torch.randn(length, size, generator=generator, dtype=torch.float64)


def ragged(graph: Graph, chance: random.Random, count: int, shortest: int = 1) -> list[tuple[int, ...]]:
    """Draws the lengths of the fields of `count` samples. Fields of one length have the same number of positions."""
    lengths = range(shortest, 10)
    samples_lengths = []
    for _ in range(count):
        by_name: dict[Dim, int] = {}
        samples_lengths.append(
            tuple(by_name.setdefault(value.type.lengths[0], chance.choice(lengths)) for value in graph.region.inputs)
        )
    return samples_lengths


def run(
    module: Architecture, batch: Sequence[Sample], extra: int = 0, masked: bool = True, content: float = 7.0
) -> list[Tensor]:
    """Returns the result of each sample of a batch, without padding. The batch has `extra` more positions than its
    longest sample; padded vectors hold `content`. Without `masked`, the module receives no lengths, and all samples
    must have the same."""
    graph = module.program.graph
    names = [value.name for value in graph.region.inputs]
    fields, lengths = [], {}
    for index, name in enumerate(names):
        values = [sample.fields[index] for sample in batch]
        longest = max(map(len, values)) + extra
        fields.append(torch.stack([_padded(value, longest, content) for value in values]))
        lengths[name] = torch.tensor([len(value) for value in values])
    result = module(*fields, lengths=lengths if masked else None)
    return [result[row, : result_length(graph, sample)] for row, sample in enumerate(batch)]


def result_length(graph: Graph, sample: Sample) -> int | None:
    """Returns the number of positions of the result of a sample; None if its type has no positions."""
    kinds = {value.id: value.type for value in graph.region.inputs}
    kinds |= {node.id: node.type for node in graph.region.nodes if len(node.types) == 1}
    lengths = kinds[graph.region.results[0]].lengths
    if not lengths:
        return None
    sizes = {
        name: Dim.of(length)
        for value, length in zip(graph.region.inputs, sample.lengths, strict=True)
        for name in value.type.lengths[0].names
    }
    return lengths[0].substitute(sizes).constant


def _padded(value: Tensor, longest: int, content: float) -> Tensor:
    """Returns a field with padding of an arbitrary token, or of a number."""
    rest = (longest - len(value), *value.shape[1:])
    padding = torch.full(rest, 3) if value.dtype == torch.int64 else torch.full(rest, content, dtype=value.dtype)
    return torch.cat((value, padding))


def outcome(
    module: Architecture,
    batch: Sequence[Sample],
    *,
    extra: int = 0,
    masked: bool = True,
    with_ponder: bool = True,
    content: float = 7.0,
) -> Outcome:
    """Runs forward and backward. The loss is a fixed weighted sum of all results plus the auxiliary losses and the
    ponder of all samples."""
    module.zero_grad()
    results = run(module, batch, extra, masked, content)
    ponder = module.ponder
    loss = sum((weighted(result) for result in results), torch.zeros((), dtype=torch.float64))
    loss = loss + sum_of(losses_of(module)) * len(batch)
    backward(loss + ponder.double() * len(batch) if with_ponder else loss)
    return Outcome(
        tuple(result.detach() for result in results), ponder.detach(), module.sample_depth, gradients(module),
        {name: loss.detach() for name, loss in module.losses.items()},
    )  # fmt: skip


def losses_of(module: Architecture) -> list[Tensor]:
    return [loss.double() for loss in module.losses.values()]


def sum_of(values: Sequence[Tensor]) -> Tensor:
    return sum(values, torch.zeros((), dtype=torch.float64))


def weighted(result: Tensor) -> Tensor:
    """Returns a sum in which each number has a different weight."""
    weights = torch.cos(1.7 * torch.arange(result.numel(), dtype=torch.float64) + 1).reshape(result.shape)
    return (result.double() * weights).sum()


def backward(loss: Tensor) -> None:
    """Runs backward if the loss requires a gradient: a result may depend on no weight."""
    if loss.requires_grad:
        torch.autograd.backward(loss)


def gradients(module: nn.Module) -> dict[str, Tensor]:
    """Returns the gradients of all weights; zeros for a weight without one."""
    return {
        name: torch.zeros_like(weight) if weight.grad is None else weight.grad.clone()
        for name, weight in module.named_parameters()
    }
