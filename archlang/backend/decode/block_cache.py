"""How a block takes part in incremental decoding, and the cache that it keeps meanwhile.

During decoding, a block computes only the new positions of its inputs if it states how:

- `placeless = True`: the result at a position does not depend on its index. `forward` is called on the new positions.
- `def extend(self, cache: BlockCache, *inputs, **masks)` returns the result at the new positions. The arguments are
  those of `forward`, except that a growing input holds its new positions only.
- `forward` takes `first_row`, by default 0: the block computes by rows. Its rows are along the first length of its
  signature. Given only the rows from `first_row` of the arguments that begin with this length, and the other arguments
  whole, `forward` returns these rows of the result. Where blocks with the act `window` read maps, columns before the
  first that they read may be missing, and `first_row` is counted from the first that is given: a block that depends on
  the positions of columns, not on distances alone, says so by the act `absolute`.

For any other block, `forward` is called on all positions, which is slower and has the same result.

The result at a position must not change when positions follow. If it does, as in a block that counts all positions,
the block has a method `regime(length, *inputs)`; when its value changes, all positions are computed again."""

import inspect
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from archlang.graph.graph import Instance


def row_arguments(instance: Instance, block: type[nn.Module]) -> frozenset[int]:
    """Returns the indices of the arguments of which a block needs the rows of its result only; none for a block that
    does not compute by rows."""
    if not instance.lengths or "first_row" not in inspect.signature(block.forward).parameters:
        return frozenset()
    return frozenset(index for index, axes in enumerate(instance.axes) if axes[:1] == instance.lengths[:1])


@dataclass
class BlockCache:
    """What one call site of a block keeps of the positions before; each call site has its own."""

    grows: tuple[bool, ...] = ()
    """for each input, whether it grows; the others are the same in every call"""
    start: int = 0
    """the number of positions before the new ones"""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    """the cached tensors, by names of the block's choice"""
    _rooms: dict[str, tuple[Tensor, int]] = field(default_factory=dict)  # of appended ones; behind the end is room

    def with_last(self, count: int, new: Tensor) -> Tensor:
        """Returns the last `count` positions before the new ones [b k d], and these; zeros before the first."""
        before = self.tensors.get("last", new.new_zeros(new.shape[0], count, new.shape[2]))
        states = torch.cat((before, new), 1)
        self.tensors["last"] = states[:, new.shape[1] :]
        return states

    def append(self, name: str, new: Tensor, dim: int = 1) -> Tensor:
        """Appends a tensor to the cached one of a name, along an axis. Returns both, concatenated.

        Most calls do not copy what is cached, of which the first positions may be dropped between them: a cached tensor
        is a part of one with more room, in whose memory this axis is the first."""
        before = self.tensors.get(name)
        if before is None:
            self.tensors[name] = new
            return new
        room, end = self._rooms.get(name, (before, before.shape[dim]))
        begin, count = end - before.shape[dim], new.shape[dim]
        if end + count >= room.shape[dim] or room.dtype != new.dtype:
            known = torch.cat((before, new), dim).movedim(dim, 0)
            begin, end = 0, known.shape[0]
            room = known.new_empty(2 * end, *known.shape[1:]).movedim(0, dim)
            room.narrow(dim, 0, end).copy_(known.movedim(0, dim))
        else:
            room.narrow(dim, end, count).copy_(new)
            end += count
        self._rooms[name] = room, end
        self.tensors[name] = room.narrow(dim, begin, end - begin)
        return self.tensors[name]
