"""Names in messages: the one that a misspelt one was probably meant to be, and lists of those there are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from archlang.diagnostics.effort import spend

# Comparing takes time that grows with the square of the length, and nobody misspells a name that long.
_LONGEST = 80
_LIKENESS = 0.65
# Among more names than this only letter case is compared.
_MOST_COMPARED = 500
# A longer list helps nobody.
_MOST_LISTED = 30


def did_you_mean(name: str, possible: Iterable[str]) -> str | None:
    """The nearest of the possible names, or None if none is near."""
    if not 1 < len(name) <= _LONGEST:
        return None
    candidates = set(possible) - {name}
    is_compared = len(candidates) <= _MOST_COMPARED
    spend(2 * len(candidates) if is_compared else len(candidates) // 4)
    # Sorted, so that sets give the same answer in every process; `Norm` is nearer to `norm` than to `Form`.
    same = [candidate for candidate in candidates if candidate.lower() == name.lower()]
    if same:
        return min(same)
    near = get_close_matches(name, sorted(candidates), n=1, cutoff=_LIKENESS) if is_compared else []
    return near[0] if near else None


def suggest(name: str, possible: Iterable[str], otherwise: str) -> str:
    """The remedy for a misspelt name: the nearest one, or what else to do."""
    near = did_you_mean(name, possible)
    return f"did you mean `{near}`?" if near else otherwise


def listed(names: Iterable[str]) -> str:
    """Names as a message lists them."""
    ordered = sorted(names)
    shown = ", ".join(f"`{name}`" for name in ordered[:_MOST_LISTED])
    return shown if len(ordered) <= _MOST_LISTED else f"{shown} and {len(ordered) - _MOST_LISTED} more"
