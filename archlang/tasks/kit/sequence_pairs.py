"""Pairs of token sequences, and the sequence-to-sequence splits that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from archlang.tasks.kit.ragged import Integers, Ragged, append, enclose, shift
from archlang.tasks.kit.split import Split


@dataclass(frozen=True, eq=False)
class SequencePairs:
    """Rows of words with their translations, as numbers, and the groups that they belong to."""

    source: Ragged
    target: Ragged
    groups: Mapping[str, Integers] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.source)

    def select(self, chosen: np.ndarray) -> SequencePairs:
        groups = {name: values[chosen] for name, values in self.groups.items()}
        return SequencePairs(self.source.select(chosen), self.target.select(chosen), groups)

    def split(self, begin: int, end: int, source_begin: int | None = None, source_end: int | None = None) -> Split:
        """As items: `source` is `[B] words [E]`, `target` what a decoder has seen, and `words [E]` is asked for. A
        source with a vocabulary of its own has its own signs."""
        targets = append(self.target, end)
        source = enclose(
            self.source,
            begin=begin if source_begin is None else source_begin,
            end=end if source_end is None else source_end,
        )
        fields = {"source": source, "target": shift(targets, begin)}
        return Split(fields, targets, groups=dict(self.groups))
