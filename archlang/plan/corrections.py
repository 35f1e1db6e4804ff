"""Corrects the mistakes of a program whose correction is safe."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from archlang.errors import Diagnostic
from archlang.errors.edits import apply_edits
from archlang.plan.check import check_text

# A correction can uncover the next mistake, as a syntax error hides an unknown name behind it.
_MOST_ROUNDS = 10


@dataclass(frozen=True)
class Correction:
    """A corrected text, the mistakes that were corrected, and those that are left, at their places in the text."""

    text: str
    corrected: tuple[Diagnostic, ...]
    left: tuple[Diagnostic, ...]


def correct(
    text: str, path: str, allow: Iterable[str | Path] = (), unsaved: Mapping[str, str] = MappingProxyType({})
) -> Correction:
    """Returns a program's text with the edits of its mistakes that are safe. Other files are not corrected.

    `allow` and `unsaved` are as for `check_text`."""
    allow = tuple(allow)
    corrected: list[Diagnostic] = []
    left = check_text(text, path, unsaved, allow)
    for _ in range(_MOST_ROUNDS):
        safe = [diagnostic for diagnostic in left if is_safe_in(diagnostic, path)]
        if not safe:
            break
        corrected += safe
        text = apply_edits(text, [edit for diagnostic in safe for edit in diagnostic.edits])
        left = check_text(text, path, unsaved, allow)
    return Correction(text, tuple(corrected), left)


def is_safe_in(diagnostic: Diagnostic, path: str) -> bool:
    """Returns whether a mistake has safe edits, all of them in one file."""
    edits = diagnostic.edits
    return diagnostic.is_safe and bool(edits) and all(edit.span.source.path == path for edit in edits)
