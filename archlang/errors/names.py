"""Parts of messages: suggestions for misspelt names, lists of names, counts, and shares in per cent."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from difflib import get_close_matches
from itertools import groupby, takewhile

from archlang.errors.diagnostic import Diagnostic, Edit
from archlang.errors.edits import name_of_setting, word_in
from archlang.errors.effort import spend

_WORD = re.compile(r"[^._]+")
# Comparison takes time quadratic in the length, so longer names get no suggestion.
_LONGEST = 80
_LIKENESS = 0.65
# If there are more names, only names that differ in case are suggested.
_MOST_COMPARED = 500
# The largest number of names that a message suggests.
_MOST_MEANT = 3
# The largest number of names that a message lists.
_MOST_LISTED = 30


def did_you_mean(name: str, possible: Iterable[str]) -> str | None:
    """Returns the likeliest of `meant_names`; None if there are none."""
    return next(iter(meant_names(name, possible)), None)


def meant_names(name: str, possible: Iterable[str]) -> tuple[str, ...]:
    """Returns the possible names that a misspelt name can mean, the likeliest first: all that differ by case, or else
    all that differ by one letter or by two letters in another order, or else the most similar one, or else that with
    which the name begins, as `seq` for `sequence`, and those of more words that begin with it. If the name is the first
    half of a few words, as `ret` of `return`, these are likelier than names with another first letter."""
    if not 1 < len(name) <= _LONGEST:
        return ()
    candidates = set(possible) - {name}
    is_compared = len(candidates) <= _MOST_COMPARED
    spend(2 * len(candidates) if is_compared else len(candidates) // 4)
    # Sorted, so that the answer is the same in every process. A different case is nearer than a different letter.
    same_letters = [candidate for candidate in candidates if candidate.lower() == name.lower()]
    if same_letters:
        return tuple(sorted(same_letters))
    near = get_close_matches(name, sorted(candidates), n=_MOST_MEANT, cutoff=_LIKENESS) if is_compared else []
    one_off = [candidate for candidate in near if _is_one_letter_off(name, candidate)]
    completions = sorted(sorted(each for each in candidates if each.startswith(name)), key=len)
    words = [
        candidate
        for candidate in completions
        if not any(candidate.startswith(f"{each}_") for each in [name, *completions])
    ]
    if 0 < len(words) <= _MOST_MEANT:
        nearer = [candidate for candidate in one_off if candidate[0] == name[0]]
        return (*nearer, *(word for word in words if word not in nearer))[:_MOST_MEANT]
    beginnings = [candidate for candidate in candidates if len(candidate) > 2 and name.startswith(candidate)]
    longest = sorted(sorted(beginnings), key=len)[-1:]
    return tuple(one_off or near[:1] or [*longest, *completions][:_MOST_MEANT])


def suggest(name: str, possible: Iterable[str], otherwise: str) -> str:
    """Returns the remedy for an unknown name: the names that can be meant, or `otherwise`."""
    meant = meant_names(name, possible)
    return _did_you_mean(meant) if meant else otherwise


def misspelt(
    diagnostic: Diagnostic, name: str, possible: Iterable[str], is_guess: bool = False, is_local: bool = False
) -> Diagnostic:
    """Returns a diagnostic about an unknown name with the names that can be meant as its remedy, and the edits that
    write them; the diagnostic as it is if no name is similar. The edit is safe after a single typing error; of a name
    that `is_local`, only after a slip of the fingers, and with `is_guess` never, because other names may be meant."""
    possible = tuple(possible)
    meant = meant_names(name, possible)
    if not meant:
        return diagnostic
    place = word_in(diagnostic.span, name) or name_of_setting(diagnostic.span, name)
    first, *others = (None if place is None else Edit(place, near) for near in meant)
    is_safe = not is_guess and is_typing_error(name, meant[0], possible) and (not is_local or _is_slip(name, meant[0]))
    diagnostic = replace(diagnostic, remedy=_did_you_mean(meant)).with_edits(first, is_safe=is_safe)
    return replace(diagnostic, alternatives=tuple(filter(None, others))) if diagnostic.edits else diagnostic


def renamed(diagnostic: Diagnostic, name: str, called: str, is_safe: bool = False) -> Diagnostic:
    """Returns a diagnostic about a name of another library or version with the name of this one, and its edit."""
    place = word_in(diagnostic.span, name)
    diagnostic = replace(diagnostic, remedy=f"here it is called `{called}`")
    return diagnostic.with_edits(None if place is None else Edit(place, called), is_safe=is_safe)


def _did_you_mean(names: Sequence[str]) -> str:
    return f"did you mean {' or '.join(f'`{name}`' for name in names)}?"


def is_short(name: str) -> bool:
    """Returns whether a name has so few letters that a name of another library or file may be meant, as `cat` is by
    those who know torch, not `act`."""
    return len(name) < 4


def is_typing_error(name: str, near: str, possible: Iterable[str]) -> bool:
    """Returns whether a name is a single typing error for `near`, and for it alone of the possible names: another case,
    two letters in another order, or one letter more, less or other, in a word of the name that is long enough that
    another name is hardly meant, as `model.d` is not by `model.k`."""
    others = set(possible) - {near, name}
    if name.lower() == near.lower():
        return all(name.lower() != candidate.lower() for candidate in others)
    left, right = _words_that_differ(name, near)
    shorter, longer = sorted((left, right), key=len)
    if len(left) == len(right) and sorted(left) != sorted(right):
        is_long_enough = len(left) > 3
    else:
        is_long_enough = len(shorter) > 2 or (len(longer) > 2 and _without_repetition(longer) == shorter)
    return (
        is_long_enough
        and _is_one_letter_off(name, near)
        and not any(_is_one_letter_off(name, candidate) for candidate in others)
    )


def _is_slip(name: str, near: str) -> bool:
    """Returns whether two letters of a word are in another order, or one is doubled or not: names that were chosen on
    purpose rarely differ so, but often by another letter, as `key` and `keys` do."""
    left, right = _words_that_differ(name, near)
    is_same = sorted(left) == sorted(right) or _without_repetition(left) == _without_repetition(right)
    return is_same and len(left) > 3


def _words_that_differ(name: str, near: str) -> tuple[str, str]:
    """Returns the words in which two names differ, as `order` and `oder` of `task.order` and `task.oder`; the names
    themselves if they differ in more than a word."""
    words, near_words = _WORD.findall(name), _WORD.findall(near)
    pairs = [pair for pair in zip(words, near_words, strict=False) if pair[0] != pair[1]]
    return pairs[0] if len(words) == len(near_words) and len(pairs) == 1 else (name, near)


def _without_repetition(name: str) -> str:
    return "".join(letter for letter, _ in groupby(name))


def _is_one_letter_off(name: str, near: str) -> bool:
    if abs(len(name) - len(near)) > 1:
        return False
    left, right = _reversed_rests(*_reversed_rests(name, near))
    if any(sign.isdigit() for sign in left + right):
        return False
    return left == right[::-1] if len(left) == 2 else len(left) <= 1 and len(right) <= 1


def _reversed_rests(left: str, right: str) -> tuple[str, str]:
    length = len([*takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))])
    return left[length:][::-1], right[length:][::-1]


def listed(names: Iterable[str]) -> str:
    """Returns the names in order, in backticks, as a list for a message."""
    ordered = sorted(names)
    shown = ", ".join(f"`{name}`" for name in ordered[:_MOST_LISTED])
    return shown if len(ordered) <= _MOST_LISTED else f"{shown} and {len(ordered) - _MOST_LISTED} more"


def plural(count: int, noun: str) -> str:
    """Returns a count with its noun, such as `1 value` or `2 values`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def share_of(percent: str) -> str:
    """Returns a number in per cent as a fraction with the same digits: `0.50` for `50`."""
    return f"{Decimal(percent).scaleb(-2):f}"


def percent_of(share: str) -> str:
    """Returns a fraction in per cent with the same digits: `98.50` for `0.9850`, `100` for `1.00`."""
    return f"{Decimal(share).scaleb(2):f}"


PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")


def rounded(number: float, gap: str = "") -> str:
    """Returns a number with three digits and, after `gap`, a prefix of SI.

    >>> rounded(640), rounded(65_925), rounded(999_999), rounded(126_222_336), rounded(3.2e15, " ")
    ('640', '65.9k', '1M', '126M', '3.2 P')"""
    power = 0
    while number >= 999.5 and power < len(PREFIXES) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.3g}{gap}{PREFIXES[power]}"
