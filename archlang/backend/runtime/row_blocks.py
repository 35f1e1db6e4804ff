"""Attention that is written with maps, in fused kernels or in blocks of rows: the runtime of the pass `rows`."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from math import inf, prod
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.attention.flex_attention import flex_attention

from archlang.backend.kernels.elementwise import keeping_arguments
from archlang.backend.runtime.bound import BoundModules, is_observed
from archlang.backend.runtime.graph_loops import is_exporting
from archlang.backend.runtime.loops import resolve
from archlang.backend.runtime.recomputation import recomputed
from archlang.backend.runtime.result_check import ResultCheck
from archlang.backend.runtime.stacking import is_plain, is_transformed

# The entries of a map in one block: a map of these fits into the cache of a processor's core.
_BLOCK = 2**19
_BLOCK_ON_GPU = 2**26
# Products of fewer rows take more time for each.
_LEAST_ROWS = 128
# The entries of maps that training keeps; the maps of other blocks are computed again in the backward pass.
_KEPT = 40_000_000


@dataclass(frozen=True)
class RowRange:
    """The rows of a block, from `first` to `end`, the columns that they read if those are up to the row, and the
    samples, None for all."""

    first: int
    end: int
    columns: slice
    samples: slice | None = None


@dataclass(frozen=True)
class AxisSlice:
    """The axes of the rows and of the columns of a value, of which a block takes a part; None for all."""

    rows: int | None
    columns: int | None

    def part(self, value: Any, taken: RowRange) -> Any:  # Any: a tensor, a mask or None for one, or a number
        if not isinstance(value, Tensor):
            return value
        if taken.samples is not None and value.dim() and value.shape[0] > 1:
            value = value[taken.samples]
        if self.columns is not None:
            begin, end, _ = taken.columns.indices(value.shape[self.columns])
            value = value.narrow(self.columns, begin, end - begin)
        return value if self.rows is None else value.narrow(self.rows, taken.first, taken.end - taken.first)

    def cut(self, value: Any, taken: RowRange) -> tuple[Any, Any]:  # Any: as in `part`
        """Returns the part, and the value to cut the next part from."""
        is_whole = (self.rows, self.columns, taken.samples) == (None, None, None)
        if is_whole or not isinstance(value, Tensor) or not value.requires_grad:
            return self.part(value, taken), value
        cut: tuple[Tensor, Tensor] = _Cut.apply(value, self, taken)  # type: ignore[no-untyped-call]  # torch's own
        return cut


class _Cut(torch.autograd.Function):
    """A part of a value, and the value. The derivatives of all parts are added into one tensor, while those of slices
    would each write a whole one."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, part: AxisSlice, taken: RowRange) -> tuple[Tensor, Tensor]:  # Any: torch's own
        ctx.set_materialize_grads(False)
        ctx.part, ctx.taken, ctx.shape = part, taken, value.shape
        return part.part(value, taken), value.view_as(value)

    @staticmethod
    def backward(ctx: Any, of_part: Tensor | None, rest: Tensor | None) -> tuple[Tensor | None, None, None]:
        if of_part is not None:
            if rest is None:
                rest = _zeros_in_order_of(ctx.shape, of_part)
            elif torch.is_grad_enabled():  # a second derivative needs it
                rest = rest.clone()
            ctx.part.part(rest, ctx.taken).add_(of_part)
        return rest, None, None


class Pair(NamedTuple):
    """The place of a number of a map, for `flex_attention`, and the product of its query and key."""

    product: Tensor
    sample: Tensor
    head: Tensor
    query: Tensor
    key: Tensor

    def of(self, value: Any) -> Any:  # Any: a map, perhaps of one row or column, or a number
        """Returns the number that a map has here."""
        if not isinstance(value, Tensor) or not value.dim():
            return value
        place = (self.sample, self.query, self.key, self.head)
        return value[tuple(index if size > 1 else 0 for index, size in zip(place, value.shape, strict=True))]


@dataclass(frozen=True, eq=False)
class Pairs:
    """A group of maps as `flex_attention` takes it. `score` takes the module that runs it, a `Pair` and the arguments
    of the group, and returns one score; `blocks` are those that weigh, that multiply queries and keys, and that make
    weights of scores. `arguments` are the indices of queries, keys and values, `masks` those of masks."""

    score: Callable[..., tuple[Any]]
    blocks: tuple[str, ...]
    arguments: tuple[int, ...]
    masks: Mapping[str, int | None]

    def __call__(self, owner: nn.Module, attend: Callable[..., Tensor], values: Sequence[Any]) -> Tensor | None:
        def score(*place: Tensor) -> Any:
            return self.score(owner, Pair(*place), *values)[0]

        last, *others = (resolve(owner, path.split(".")) for path in self.blocks)
        captured = (values[index] for index in self.arguments)
        masks = {name: None if index is None else values[index] for name, index in self.masks.items()}
        result: Tensor | None = last.flexed(partial(attend, score_mod=score), *others, *captured, **masks)
        return result


@cache
def _compiled() -> Callable[..., Tensor]:
    # With `fullgraph`, too many forms are an error, where torch would hold the maps.
    return torch.compile(flex_attention, fullgraph=True)


def kernel(sample: Tensor, has_worked: bool) -> Callable[..., Tensor] | None:
    """Returns `flex_attention` where torch compiles it with derivatives: on a GPU. A capture of a graph cannot wait for
    the compiler: there only where it `has_worked` in a pass before."""
    is_ready = sample.is_cuda and (has_worked or not torch.cuda.is_current_stream_capturing())
    return _compiled() if is_ready else None


@cache
def keep_freed_memory() -> None:
    """Makes the C library keep memory for the next tensors: pages from the system cost as much as a map.

    glibc gives back what is free beyond twice the largest tensor that was, up to 32 MiB."""
    torch.empty((1 << 25) - (1 << 13), dtype=torch.uint8)


def _zeros_in_order_of(shape: torch.Size, like: Tensor) -> Tensor:
    order = sorted(range(len(shape)), key=like.stride, reverse=True)
    return like.new_zeros([shape[axis] for axis in order]).permute([order.index(axis) for axis in range(len(shape))])


def column_maxima(sums: Float[Tensor, "b n m h"]) -> Float[Tensor, " m"]:
    """Returns the largest number of each column of a map, without derivatives."""
    return sums.detach().amax((0, 1, 3)) if sums.numel() else sums.new_zeros(sums.shape[2])


def _count_of_zeros(maxima: Float[Tensor, " m"]) -> int:
    """Returns how many numbers have an exponential that is 0 with certainty, whatever computes it."""
    wide = maxima.to(torch.promote_types(maxima.dtype, torch.float32))
    return int(((wide + 1).exp() == 0).sum())


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """A group of maps. `body` takes the module that runs it, the position of the first row and the slices of its
    arguments, and returns the rows of the results. `fused` does the same without holding maps, unless it is None;
    `is_biased` says that it holds those that are added to scores, and `chain` has the blocks that it computes at once,
    the last one first. `modules` are those that the bodies call, with their classes if these must be as they were
    compiled, and `random` those that draw in training.
    `width` is the number of features of the widest map, `window` how many columns up to its own a row reads, 0 for all.
    `near` returns what `body` does and the `column_maxima` of a map, unless it is None: rows read nothing of columns
    before one at which the exponential of these is 0.
    `pairs` is the group for `flex_attention`, if that can compute it, and `works` says whether it did, with derivatives
    and without."""

    body: Callable[..., tuple[Tensor, ...]]
    fused: Callable[..., tuple[Tensor, ...]] | None
    chain: tuple[str, ...]
    is_biased: bool
    slices: tuple[AxisSlice, ...]
    modules: Mapping[str, type[nn.Module] | None]
    random: tuple[str, ...]
    width: int
    window: int
    near: Callable[..., tuple[Tensor, ...]] | None
    pairs: Pairs | None
    works: dict[bool, bool] = field(default_factory=dict)

    def function(self, name: str) -> Callable[..., tuple[Tensor, ...]]:
        """Returns the function of this name that torch.fx can call."""

        def rows(owner: nn.Module | BoundModules, *values: Any) -> tuple[Tensor, ...]:  # Any: tensors, None, numbers
            return self(owner.__self__ if isinstance(owner, BoundModules) else owner, 0, values)

        rows.__name__ = rows.__qualname__ = name
        rows.__module__ = "archlang"
        return rows

    def __call__(self, owner: nn.Module, seen: int, values: Sequence[Any]) -> tuple[Tensor, ...]:
        """Returns the results at the rows from `seen` on. The values have these rows, and all columns."""
        is_compiled = torch.compiler.is_compiling() and not is_exporting() and not (self.window or self.is_biased)
        if is_compiled and not is_transformed() and not self._takes_all_rows(owner):
            return self._form(owner)(owner, seen, *values)  # the fused form holds no map
        if not is_plain():
            return self.body(owner, seen, *values)
        if self._takes_all_rows(owner):
            with keeping_arguments():
                return self.body(owner, seen, *values)
        n, columns, entries = self._sizes(values)
        body = self._form(owner)
        block = _BLOCK_ON_GPU if self._sample(values).is_cuda else _BLOCK
        is_limited, window = any(part.columns is not None for part in self.slices), self.window
        holds_no_map = body is self.fused and not window and not self.is_biased
        if holds_no_map and not any(isinstance(value, Tensor) and value.dtype == torch.bool for value in values):
            return body(owner, seen, *values)
        # Maps that are kept gain by blocks only if these read fewer columns: between blocks, memory is left unused.
        is_kept_whole = not is_limited and torch.is_grad_enabled() and entries <= _KEPT
        if (entries <= block or is_kept_whole) and not (window and seen):
            return body(owner, seen, *values)
        if self.pairs is not None and not seen and (body is self.body or self.is_biased):
            results = self._by_pairs(self.pairs, owner, values)
            if results is not None:
                return results
        keep_freed_memory()
        # Of one sample, the keys of all heads lie so that products of matrices need no copy.
        batch = self._sample(values).shape[0]
        near = self.near if self._sample(values).is_cpu else None
        size = min(n, _LEAST_ROWS if near else max(_LEAST_ROWS, block * n * batch // entries))
        samples = max(1, block * n * batch // (entries * size))
        holds_maps = torch.is_grad_enabled() and not (window and body is self.fused)
        left, reach = _KEPT if holds_maps else inf, window
        parts: list[Sequence[Tensor]] = []
        for sample in range(0, batch, samples):
            rows = []
            # The last rows first: the memory of long rows serves for shorter ones, while growing ones leave holes.
            for first in reversed(range(0, n, size)):
                end = min(n, first + size)
                nearest = max(0, min(seen + first + 1 - reach, columns - 1)) if reach else 0
                for begin in (nearest, 0):
                    taken = RowRange(first, end, slice(begin, seen + end), slice(sample, sample + samples))
                    cuts = [part.cut(value, taken) for part, value in zip(self.slices, values, strict=True)]
                    sliced, rest = zip(*cuts, strict=True)
                    read = min(seen + end, columns) - begin if is_limited else columns
                    left -= samples * (end - first) * read * self.width
                    run = partial(near or body, owner)
                    run = run if left >= 0 else partial(recomputed, run)
                    computed: Sequence[Tensor] = run(seen + first - begin, *sliced)
                    if near is None:
                        break
                    *computed, maxima = computed
                    faded = _count_of_zeros(maxima)
                    # The next rows may read as many columns, and some more.
                    reach = (seen + first + 1 - begin - faded) * 5 // 4 + 1 if faded else 0
                    if faded or not begin:
                        break
                    near = None
                values = rest
                rows.append(computed)
            parts.append(tuple(torch.cat(blocks[::-1], 1) for blocks in zip(*rows, strict=True)))
        return tuple(torch.cat(blocks) for blocks in zip(*parts, strict=True))

    def bound(self, owner: nn.Module) -> Callable[[int, Sequence[Any]], tuple[Tensor, ...]]:
        """Returns the group in a module, without gradients: for one row, it looks up nothing anew."""
        if self._takes_all_rows(owner):
            return partial(self, owner)
        computed, window = self._form(owner), self.window
        body = partial(computed, BoundModules(owner, calls=computed is self.body))

        def run(seen: int, values: Sequence[Any]) -> tuple[Tensor, ...]:  # Any: tensors, None, numbers
            if self._sample(values).shape[1] != 1 or not is_plain():
                return self(owner, seen, values)
            begin = max(0, min(seen + 1 - window, self._sizes(values)[1] - 1)) if window else 0
            if begin:
                near = RowRange(0, 1, slice(begin, seen + 1))
                values = [part.part(value, near) for part, value in zip(self.slices, values, strict=True)]
            return body(seen - begin, *values)

        return run

    def _by_pairs(self, pairs: Pairs, owner: nn.Module, values: Sequence[Any]) -> tuple[Tensor, ...] | None:
        """Returns the results by `flex_attention`; None where it does not run, or has refused the group before."""
        has_gradient = torch.is_grad_enabled()
        attend = kernel(self._sample(values), self.works.get(has_gradient, False))
        if attend is None or not self.works.get(has_gradient, True):
            return None
        try:
            result = pairs(owner, attend, values)
            sources = [value for value in values if isinstance(value, Tensor) and value.requires_grad]
            if result is not None and sources and has_gradient not in self.works:  # derivatives may be refused too
                torch.autograd.grad(result.sum(), sources, retain_graph=True, allow_unused=True)
        except Exception as error:  # those of the compilers have no common class
            message = f"attention is computed in blocks of rows, because flex_attention fails: {error}"
            warnings.warn(message, stacklevel=2)
            result = None
        self.works[has_gradient] = result is not None
        return None if result is None else (result,)

    def _form(self, owner: nn.Module) -> Callable[..., tuple[Tensor, ...]]:
        if self.fused is None:
            return self.body
        last, *others = (resolve(owner, path.split(".")) for path in self.chain)
        return self.fused if last.is_fused(*others) else self.body

    def _sample(self, values: Sequence[Any]) -> Tensor:
        sample: Tensor = next(
            value for value, part in zip(values, self.slices, strict=True) if part.rows and isinstance(value, Tensor)
        )
        return sample

    def _sizes(self, values: Sequence[Any]) -> tuple[int, int, int]:
        """Returns the numbers of rows and of columns, and the entries of a map."""
        rows = self._sample(values)
        columns = 1
        for value, part in zip(values, self.slices, strict=True):
            if not isinstance(value, Tensor):
                continue
            if part.rows is None and value.dim() > 1:
                columns = max(columns, value.shape[1])
            elif part.rows and value.dim() == 4:
                columns = max(columns, value.shape[2])
        return rows.shape[1], columns, prod((rows.shape[0], rows.shape[1], columns, self.width))

    def _takes_all_rows(self, owner: nn.Module) -> bool:
        """Whether all rows are to be taken at once: anything observes or replaces a module, or one draws numbers."""
        modules = {path: resolve(owner, path.split(".")) for path in self.modules}
        is_random = any(modules[path].training for path in self.random)
        kinds = zip(modules.values(), self.modules.values(), strict=True)
        return is_random or any(is_observed(module, kind, ResultCheck) for module, kind in kinds)
