"""Pairs of token sequences, and the sequence-to-sequence splits that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from archlang.tasks.kit.ragged import Integers, Ragged, append, enclose, shift
from archlang.tasks.kit.split import Split


@dataclass(frozen=True, eq=False)
class SequencePairs:
    """N source sequences with their target sequences, as tokens, and their groups [N]."""

    source: Ragged
    target: Ragged
    groups: Mapping[str, Integers] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.source)

    def select(self, chosen: np.ndarray) -> SequencePairs:
        groups = {name: values[chosen] for name, values in self.groups.items()}
        return SequencePairs(self.source.select(chosen), self.target.select(chosen), groups)

    def split(self, begin: int, end: int, source_begin: int | None = None, source_end: int | None = None) -> Split:
        """Returns the pairs as a split: `source` is `[B] words [E]`, the decoder's input `target` is `[B] words`, and
        the targets are `words [E]`. A source with its own vocabulary has its own `[B]` and `[E]`."""
        targets = append(self.target, end)
        source = enclose(
            self.source,
            begin=begin if source_begin is None else source_begin,
            end=end if source_end is None else source_end,
        )
        fields = {"source": source, "target": shift(targets, begin)}
        return Split(fields, targets, groups=dict(self.groups))
