"""A block under test, and its results for samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from archlang.backend.lower.instances import add_instances, classes_of
from archlang.backend.lower.lengths import named_lengths
from archlang.backend.mistakes import BuildError, ConstructionError
from archlang.backend.runtime.halting import HaltingBlock, HaltingState
from archlang.contracts import mistakes, samples
from archlang.contracts.cases import BLOCK, DATA_COLUMNS, DATA_LENGTH, Case
from archlang.contracts.mistakes import Broken
from archlang.contracts.samples import Sample, Sizes
from archlang.graph.graph import Graph, Region
from archlang.plugins import NO_PLUGINS, Plugins

# The scale of the noise that is added to initial weights: a weight of zero would hide the values that it multiplies.
_JITTER = 0.3
# Steps of the loop of a halting block.
_STEPS = 3


@dataclass(frozen=True, eq=False)
class ResultField:
    """A part of the result for one sample, without padding. If `by_position`, its first axis indexes positions."""

    value: Tensor
    by_position: bool


Fields = Mapping[str, ResultField]


class Subject:
    """A block at one case. `seed` fixes its weights and samples, `lengths` are the lengths to test."""

    def __init__(self, case: Case, seed: int, lengths: Sequence[int], plugins: Plugins = NO_PLUGINS) -> None:
        self.case = case
        self.seed = seed
        self._lengths = tuple(lengths)
        self._plugins = plugins

    @property
    def caveats(self) -> tuple[str, ...]:
        return self.case.instance.caveats

    def sizes(self) -> list[dict[str, int]]:
        """Returns the lengths to test by name: each name has each length once, then all have the largest."""
        names, count = self.case.lengths, len(self._lengths)
        combinations = [{name: self._lengths[(i + k) % count] for k, name in enumerate(names)} for i in range(count)]
        combinations.append(dict.fromkeys(names, self._lengths[-1]))
        return [sizes for index, sizes in enumerate(combinations) if sizes not in combinations[:index]]

    def generator(self, salt: int = 0) -> torch.Generator:
        return torch.Generator().manual_seed(1000 * self.seed + salt)

    def sample(self, sizes: Sizes, salt: int = 0) -> Sample:
        return samples.draw(self.case.inputs, sizes, self.generator(salt))

    # The module

    def construct(self, seed: int) -> nn.Module:
        """Returns a module with the block, at the path `block`.

        Raises:
            Broken: the constructor raises an error."""
        instance = self.case.instance
        root = nn.Module()
        torch.manual_seed(seed)
        try:
            graph = Graph(BLOCK, Region((), (), ()), {instance.path: instance})
            add_instances(root, graph, classes_of(graph, self._plugins))
        except ConstructionError as error:
            cause = error.__cause__
            if isinstance(cause, Exception):
                raise mistakes.raises(self.case, "its constructor", cause, self.facts()) from error
            raise mistakes.not_built(self.case, error, self.facts()) from error
        except BuildError as error:
            raise mistakes.not_built(self.case, error, self.facts()) from error
        if any(map(is_lazy, (*root.parameters(), *root.buffers()))):
            raise mistakes.broken("without_shape", self.case, self.facts())
        return root

    @cached_property
    def root(self) -> nn.Module:
        """Returns the module in float64 and evaluation mode, with noise added to its initial weights."""
        return self._with_noise().eval()

    def _with_noise(self) -> nn.Module:
        root = self.construct(self.seed).double()
        generator = self.generator(99)
        with torch.no_grad():
            for weight in root.parameters():
                weight.add_(_JITTER * torch.randn(weight.shape, generator=generator, dtype=weight.dtype))
        return root

    @cached_property
    def in_training(self) -> nn.Module:
        """Returns another module with the same weights in training mode, whose statistics change nothing else."""
        return self._with_noise().train()

    @property
    def block(self) -> nn.Module:
        return self.root.get_submodule(BLOCK)

    @property
    def halts(self) -> bool:
        return isinstance(self.block, HaltingBlock)

    # Results

    def evaluate(
        self, sample: Sample, padded: Sizes | None = None, masked: bool = False, training: bool = False
    ) -> Fields:
        """Returns the result for a sample alone, without gradients."""
        return self.evaluate_all([sample], padded, masked, training)[0]

    def evaluate_all(
        self, batch: Sequence[Sample], padded: Sizes | None = None, masked: bool = False, training: bool = False
    ) -> list[Fields]:
        """Returns the result for each sample of a batch, without gradients."""
        with torch.no_grad():
            return self.run(self.in_training if training else self.root, batch, padded, masked)

    def run(
        self,
        root: nn.Module,
        batch: Sequence[Sample],
        padded: Sizes | None = None,
        masked: bool = False,
        values: Sequence[Tensor] | None = None,
        dtype: torch.dtype = torch.float64,
        join: bool = False,
    ) -> list[Fields]:
        """Returns the result of a module for each sample of a batch.

        `padded` are the padded lengths, by default those of the longest sample. Masks are passed if the batch has
        padding or if `masked`. `values` replace the inputs of the samples. `join` passes the products of linear maps.

        Raises:
            Broken: the block raises an error, or its result differs from its signature."""
        case = self.case
        least = samples.longest(batch)
        padded = {**least, **(padded or {})}
        masked = masked or any(sample.sizes[name] != padded[name] for sample in batch for name in padded)
        if values is None:
            values = samples.collate(case.inputs, batch, padded)
        values = [value.to(dtype) if value.is_floating_point() else value for value in values]
        masks = self.masks(batch, padded, masked)
        before = [value.clone() for value in values]
        torch.manual_seed(self.seed)
        block = root.get_submodule(BLOCK)
        try:
            if isinstance(block, HaltingBlock):
                halting_states = self._loop(block, values[0], next(iter(masks.values()), None))
            else:
                arguments: list[Any] = [values[index] for index in case.arguments]  # Any: as torch calls modules
                products: dict[str, Any] = {
                    linear.name: getattr(block, linear.name)(arguments[linear.input])
                    for linear in case.instance.maps
                    if join
                }
                result = block(*(arguments or [len(batch)]), **masks, **({"products": products} if join else {}))
        except Broken:
            raise
        except (Exception, SystemExit) as error:
            raise mistakes.raises(self.case, "its forward", error, self.facts(batch, padded)) from error
        for index, (value, old) in enumerate(zip(values, before, strict=True)):
            if not torch.equal(value.nan_to_num(), old.nan_to_num()):
                raise mistakes.broken("changes_input", case, self.facts(batch, padded), name=case.input_name(index))
        if isinstance(block, HaltingBlock):
            return [self._fields_of_halting(halting_states[-1], row, sample) for row, sample in enumerate(batch)]
        return self._fields(result, batch, padded)

    def masks(self, batch: Sequence[Sample], padded: Sizes, masked: bool) -> dict[str, Tensor | None]:
        """Returns the masks by the names of the parameters."""
        instance = self.case.instance
        named = named_lengths(instance, [self.case.inputs[index] for index in self.case.arguments])
        return {
            f"mask_{name}": samples.mask(named[name], batch, padded) if masked and name in named else None
            for name in instance.lengths
        }

    def facts(self, batch: Sequence[Sample] = (), padded: Sizes | None = None) -> dict[str, str]:
        """Returns the lengths of a batch and the seed, as messages show them."""
        padded = padded or {}
        real = {name: ", ".join(str(sample.sizes[name]) for sample in batch) for name in padded}
        facts = {_shown(name): text if len(batch) == 1 else f"[{text}]" for name, text in real.items()}
        if any(sample.sizes[name] != padded[name] for sample in batch for name in padded):
            facts["padded to"] = ", ".join(str(size) for size in padded.values())
        if len(batch) > 1 and not padded:
            facts["batch"] = str(len(batch))
        return {**facts, "seed": str(self.seed)}

    # Plain blocks

    def _fields(self, result: object, batch: Sequence[Sample], padded: Sizes) -> list[Fields]:
        kind, grows = self.case.result, self.case.instance.grows
        facts = self.facts(batch, padded)
        value = self._tensor(result, grows, batch, padded, facts)
        parts = (value[row][tuple(map(slice, samples.shape(kind, sample.sizes)))] for row, sample in enumerate(batch))
        return [{"result": ResultField(part, bool(kind.lengths))} for part in parts]

    def _tensor(
        self, result: object, grows: bool, batch: Sequence[Sample], padded: Sizes, facts: Mapping[str, str]
    ) -> Tensor:
        kind = self.case.result
        real: object = None
        if grows:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise self._wrong_shape("(result, mask)", _described(result), facts)
            result, real = result
        expected = (len(batch), *samples.shape(kind, padded))
        if not isinstance(result, Tensor) or tuple(result.shape) != expected:
            raise self._wrong_shape(f"a tensor {list(expected)}", _described(result), facts)
        if result.is_floating_point() is (kind.name == "tokens"):
            expected_kind = "integers" if kind.name == "tokens" else "floating-point numbers"
            raise self._wrong_shape(expected_kind, str(result.dtype), facts)
        if grows:
            self._check_mask(real, batch, padded, facts)
        return result

    def _check_mask(self, real: object, batch: Sequence[Sample], padded: Sizes, facts: Mapping[str, str]) -> None:
        size = self.case.result.lengths[0]
        expected = samples.mask(size, batch, padded)
        if expected is None:
            return
        if real is None:
            real = torch.ones_like(expected)
        if not isinstance(real, Tensor) or real.dtype is not torch.bool or real.shape != expected.shape:
            raise self._wrong_shape(f"a mask {list(expected.shape)}", _described(real), facts)
        if not torch.equal(real, expected):
            row = int((real != expected).any(1).nonzero()[0, 0])
            places = real[row].nonzero()[:, 0].tolist()
            where = f"at the positions {', '.join(map(str, places))}" if places else "nowhere"
            count = int(expected[row].sum())
            raise mistakes.broken(
                "wrong_length", self.case, facts, row=row, size=str(size), expected=count, places=where
            )

    def _wrong_shape(self, expected: str, actual: str, facts: Mapping[str, str]) -> Broken:
        return mistakes.broken("wrong_shape", self.case, facts, expected=expected, actual=actual)

    # Halting blocks

    def _loop(self, block: HaltingBlock, state: Tensor, mask: Tensor | None, steps: int = _STEPS) -> list[HaltingState]:
        """Returns the halting states of a loop whose body changes each position independently."""
        halting_states = [block.start(state, mask)]
        _check_halting(self.case, halting_states[0], state, self.facts())
        for _ in range(steps):
            halting_states.append(block.advance(halting_states[-1], self._body(halting_states[-1].state), mask))
            _check_halting(self.case, halting_states[-1], state, self.facts())
        return halting_states

    def _body(self, state: Tensor) -> Tensor:
        width = state.shape[-1]
        weight = torch.randn(width, width, generator=self.generator(7), dtype=torch.float64)
        return torch.tanh(state @ weight.to(state.dtype) + 0.5)

    def halting_states(self, batch: Sequence[Sample], steps: int) -> list[HaltingState]:
        """Returns the halting states of a loop over a padded batch, without gradients.

        Raises:
            Broken: the block raises an error, or a halting state has a wrong shape or type."""
        padded = samples.longest(batch)
        values = samples.collate(self.case.inputs, batch, padded)
        mask = next(iter(self.masks(batch, padded, True).values()), None)
        block = self.block
        assert isinstance(block, HaltingBlock)
        torch.manual_seed(self.seed)
        try:
            with torch.no_grad():
                return self._loop(block, values[0], mask, steps)
        except Broken:
            raise
        except Exception as error:
            raise mistakes.raises(self.case, "its loop", error, self.facts(batch, padded)) from error

    def _fields_of_halting(self, halting: HaltingState, row: int, sample: Sample) -> Fields:
        sizes = self.case.inputs[0].lengths[:1]
        real = samples.length(sizes[0], sample.sizes) if sizes else None
        by_position = halting.live.dim() == 2
        fields = {
            # The state of a sample may have no positions.
            "mixture": ResultField(halting.mixture[row, :real], bool(sizes)),
            "state": ResultField(halting.state[row, :real], bool(sizes)),
            "ponder": ResultField(halting.ponder[row], False),
        }
        for name, value in (("live", halting.live), ("accepted", halting.accepted), ("steps", halting.steps)):
            fields[name] = ResultField((value[row, :real] if by_position else value[row]).double(), by_position)
        return fields


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor {list(value.shape)} of {value.dtype}"
    if value is None:
        return "None"
    return f"a {type(value).__name__}"


def _shown(length: str) -> str:
    return {DATA_LENGTH: "n", DATA_COLUMNS: "m"}.get(length, length)


def _check_halting(case: Case, halting: HaltingState, state: Tensor, facts: Mapping[str, str]) -> None:
    """Compares the shapes and types of a halting state with the signature. `state` is the state of the loop."""
    deciding = list(state.shape[: 2 if case.result.lengths else 1])
    expected = {
        "state": (list(state.shape), "float"),
        "mixture": (list(state.shape), "float"),
        "live": (deciding, "bool"),
        "accepted": (deciding, "bool"),
        "ponder": (list(state.shape[:1]), "float"),
        "steps": (deciding, "int"),
    }
    if halting.remaining is not None:
        expected["remaining"] = (deciding, "float")
    for name, (size, kind) in expected.items():
        value: Tensor = getattr(halting, name)
        if list(value.shape) != size or _kind(value) != kind:
            actual = f"{_kind(value)} {list(value.shape)}"
            raise mistakes.broken("wrong_state", case, facts, name=name, expected=f"{kind} {size}", actual=actual)


def _kind(value: Tensor) -> str:
    if value.dtype is torch.bool:
        return "bool"
    return "float" if value.is_floating_point() else "int"
