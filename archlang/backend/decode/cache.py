"""What a block may offer so that a sequence can grow without being computed anew, and what it keeps meanwhile.

A model that writes its answer token by token gives each block the new positions only. A block whose result at a
position is the same wherever that stands says so by `placeless = True`, and is called as it is. A block that looks back
may have a method

    def extend(self, past: Past, *inputs, **masks) -> result at the new positions

which is called as `forward` is, but that an input which grows has its new positions only. Any other block sees all
positions again, which is slower and no less right.

What a position sees must not change when others follow. Where it does, as for a block that counts all positions, it
changes with what `regime(length, *inputs)` gives: whenever that is another value than before, everything is computed
anew."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Past:
    """What one use of a block keeps of the positions that it has seen; each use has its own."""

    grows: tuple[bool, ...]
    """for each input, whether it grows; the others are the same in every call"""
    start: int = 0
    """how many positions there were before the new ones"""
    kept: dict[str, Tensor] = field(default_factory=dict)
    """what the block keeps by names of its own"""

    def append(self, name: str, new: Tensor, dim: int = 1) -> Tensor:
        """All that was appended under a name along an axis, with what is new."""
        self.kept[name] = torch.cat((self.kept[name], new), dim) if name in self.kept else new
        return self.kept[name]
