"""Small random edits of well-typed programs. An edited program is rejected, or has all properties."""

import random
import re

_BOUND = re.compile(r"^ *(\w+) (?:=|<-) ", re.MULTILINE)
_LOOP = re.compile(r"\s*(?:\w+ = )?(?:repeat|stack|scan|experts)\b[^{}]*\{")
# Small numbers, which keep programs fast.
_NUMBERS = ("0", "1", "2", "3", "5", "-1", "0.5", "n", "d", "m", "1 / 0", "n / 2", "n - 3", "vocab")
_REMOVABLE = (
    ", causal = true", "causal = true", " + 2", " carry ", "emit ", ", init = normal", "start_end", "[1]", "(h)",
)  # fmt: skip
_HEADS = (
    "repeat 2", "repeat 0", "stack 2", "stack 0", "repeat 3 halting {state} by token_halt[0.8]",
    "repeat 3 halting {state} by act", "repeat 2 halting {state} as w by global_halt[0.9, causal = true]",
    "scan w in chunks[2](h) carry {state}", "scan w after u[2] in h", "scan w in h, u in h carry {state}",
    "scan w in chunks[2](h) carry {state} growing", "if flag", "if n > 2",
)  # fmt: skip


def mutated(text: str, chance: random.Random) -> str:
    """Returns a program after one to three edits."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        edit = chance.choice(
            (_renamed, _renamed, _renumbered, _without, _enclosed, _enclosed, _rearranged, _rearranged, _rearranged)
        )
        text = edit(text, chance)
    return text


def _renamed(text: str, chance: random.Random) -> str:
    """Replaces one name by another name of the program."""
    names = _names(text)
    return _replaced(text, rf"\b(?:{'|'.join(map(re.escape, names))})\b", chance.choice(names), chance)


def _names(text: str) -> list[str]:
    return sorted({"h", *_BOUND.findall(text)})


def _renumbered(text: str, chance: random.Random) -> str:
    return _replaced(text, r"(?<![\w.])\d+(?![\w.])", chance.choice(_NUMBERS), chance)


def _without(text: str, chance: random.Random) -> str:
    """The program without some words at one place."""
    return _replaced(text, re.escape(chance.choice(_REMOVABLE)), "", chance)


def _replaced(text: str, pattern: str, replacement: str, chance: random.Random) -> str:
    """Replaces one match of a pattern."""
    places = list(re.finditer(pattern, text))
    if not places:
        return text
    place = chance.choice(places)
    return f"{text[: place.start()]}{replacement}{text[place.end() :]}"


def _enclosed(text: str, chance: random.Random) -> str:
    """Moves an update, or a loop with its body, into a loop or an `if`."""
    lines = text.split("\n")
    heads = [index for index, line in enumerate(lines) if _LOOP.match(line) or ("<-" in line and "{" not in line)]
    if not heads:
        return text
    first = last = chance.choice(heads)
    depth = lines[first].count("{") - lines[first].count("}")
    while depth > 0 and last + 1 < len(lines):
        last += 1
        depth += lines[last].count("{") - lines[last].count("}")
    states = sorted(
        {line.split("<-")[0].strip() for line in lines[first : last + 1] if "<-" in line} & set(_names(text))
    )
    head = chance.choice(_HEADS).format(state=chance.choice(states or ["h"]))
    lines[first : last + 1] = [f"{head} {{", *lines[first : last + 1], "}"]
    return "\n".join(lines)


def _rearranged(text: str, chance: random.Random) -> str:
    """Repeats, exchanges or removes statements of one line."""
    lines = text.split("\n")
    plain = [index for index, line in enumerate(lines) if line.strip() and not set(line) & set("{}")]
    if plain:
        first, second = chance.choice(plain), chance.choice(plain)
        match chance.randrange(3):
            case 0:
                lines.insert(first, lines[second])
            case 1:
                lines[first], lines[second] = lines[second], lines[first]
            case _:
                del lines[first]
    return "\n".join(lines)
