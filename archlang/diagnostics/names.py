"""Parts of messages: suggestions for misspelt names, lists of names, and counts."""

from collections.abc import Iterable
from difflib import get_close_matches

from archlang.diagnostics.effort import spend

# Comparison takes time quadratic in the length, so longer names get no suggestion.
_LONGEST = 80
_LIKENESS = 0.65
# If there are more names, only names that differ in case are suggested.
_MOST_COMPARED = 500
# The largest number of names that a message lists.
_MOST_LISTED = 30


def did_you_mean(name: str, possible: Iterable[str]) -> str | None:
    """Returns the most similar of the possible names, or None if none is similar."""
    if not 1 < len(name) <= _LONGEST:
        return None
    candidates = set(possible) - {name}
    is_compared = len(candidates) <= _MOST_COMPARED
    spend(2 * len(candidates) if is_compared else len(candidates) // 4)
    # Sorted, so that the answer is the same in every process. A different case is nearer than a different letter.
    same_letters = [candidate for candidate in candidates if candidate.lower() == name.lower()]
    if same_letters:
        return min(same_letters)
    near = get_close_matches(name, sorted(candidates), n=1, cutoff=_LIKENESS) if is_compared else []
    return near[0] if near else None


def suggest(name: str, possible: Iterable[str], otherwise: str) -> str:
    """Returns the remedy for an unknown name: the most similar name, or `otherwise`."""
    near = did_you_mean(name, possible)
    return f"did you mean `{near}`?" if near else otherwise


def listed(names: Iterable[str]) -> str:
    """Returns the names in order, in backticks, as a list for a message."""
    ordered = sorted(names)
    shown = ", ".join(f"`{name}`" for name in ordered[:_MOST_LISTED])
    return shown if len(ordered) <= _MOST_LISTED else f"{shown} and {len(ordered) - _MOST_LISTED} more"


def plural(count: int, noun: str) -> str:
    """Returns a count with its noun, such as `1 value` or `2 values`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
