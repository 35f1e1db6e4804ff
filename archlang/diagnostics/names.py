"""Parts of messages: suggestions for misspelt names, lists of names, and counts."""

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches

from archlang.diagnostics.diagnostic import Diagnostic, Edit
from archlang.diagnostics.edits import name_of_setting, word_in
from archlang.diagnostics.effort import spend

# Comparison takes time quadratic in the length, so longer names get no suggestion.
_LONGEST = 80
_LIKENESS = 0.65
# If there are more names, only names that differ in case are suggested.
_MOST_COMPARED = 500
# The largest number of names that a message lists.
_MOST_LISTED = 30


def did_you_mean(name: str, possible: Iterable[str]) -> str | None:
    """Returns the most similar of the possible names, or that with which the name begins, as `seq` for `sequence`; None
    if there is neither."""
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
    beginnings = [candidate for candidate in candidates if len(candidate) > 2 and name.startswith(candidate)]
    return near[0] if near else max(sorted(beginnings), key=len, default=None)


def suggest(name: str, possible: Iterable[str], otherwise: str) -> str:
    """Returns the remedy for an unknown name: the most similar name, or `otherwise`."""
    near = did_you_mean(name, possible)
    return f"did you mean `{near}`?" if near else otherwise


def misspelt(diagnostic: Diagnostic, name: str, possible: Iterable[str], is_guess: bool = False) -> Diagnostic:
    """Returns a diagnostic about an unknown name with the most similar name as its remedy, and the edit that writes it;
    the diagnostic as it is if no name is similar. The edit is safe after a single typing error, except with `is_guess`,
    where other names may be meant."""
    possible = tuple(possible)
    near = did_you_mean(name, possible)
    if near is None:
        return diagnostic
    place = word_in(diagnostic.span, name) or name_of_setting(diagnostic.span, name)
    edit = None if place is None else Edit(place, near)
    diagnostic = replace(diagnostic, remedy=f"did you mean `{near}`?")
    return diagnostic.with_edits(edit, is_safe=not is_guess and is_typing_error(name, near, possible))


def is_typing_error(name: str, near: str, possible: Iterable[str]) -> bool:
    """Returns whether a name differs by case from `near`, or from it alone of the possible names by one letter more,
    less or other, or by two letters in another order."""
    if name.lower() == near.lower():
        return True
    return _is_one_letter_off(name, near) and not any(
        _is_one_letter_off(name, candidate) for candidate in set(possible) - {near, name}
    )


def _is_one_letter_off(name: str, near: str) -> bool:
    if abs(len(name) - len(near)) > 1:
        return False
    left, right = _without_common_beginning(name, near)
    left, right = _without_common_beginning(left[::-1], right[::-1])
    if any(sign.isdigit() for sign in left + right):
        return False
    if len(left) == 2:
        return left == right[::-1]
    return len(left) <= 1 and len(right) <= 1 and min(len(name), len(near)) > 3


def _without_common_beginning(left: str, right: str) -> tuple[str, str]:
    length = next((place for place, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), None)
    length = min(len(left), len(right)) if length is None else length
    return left[length:], right[length:]


def listed(names: Iterable[str]) -> str:
    """Returns the names in order, in backticks, as a list for a message."""
    ordered = sorted(names)
    shown = ", ".join(f"`{name}`" for name in ordered[:_MOST_LISTED])
    return shown if len(ordered) <= _MOST_LISTED else f"{shown} and {len(ordered) - _MOST_LISTED} more"


def plural(count: int, noun: str) -> str:
    """Returns a count with its noun, such as `1 value` or `2 values`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
