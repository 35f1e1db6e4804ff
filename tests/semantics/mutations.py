"""Small random edits of well-typed programs. An edited program is rejected, or has all properties."""

import random
import re

_BOUND = re.compile(r"^ *(\w+) (?:=|<-) ", re.MULTILINE)
_LOOP = re.compile(r"\s*(?:\w+ = )?(?:repeat|stack|scan|experts)\b[^{}]*\{")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
# Small numbers, which keep programs fast.
_NUMBERS = ("0", "1", "2", "3", "5", "-1", "0.5", "n", "d", "m", "1 / 0", "n / 2", "n - 3", "vocab")
_REMOVABLE = (
    ", causal = true",
    "causal = true",
    " + 2",
    " carry ",
    "emit ",
    ", init = normal",
    "start_end",
    "[1]",
    "(h)",
)
_HEADS = (
    "repeat 2", "repeat 0", "stack 2", "stack 0", "repeat 3 halting {state} by token_halt[0.8]",
    "repeat 3 halting {state} by act", "repeat 2 halting {state} as w by global_halt[0.9, causal = true]",
    "scan w in chunks[2](h) carry {state}", "scan w after u[2] in h",
    "scan w in chunks[2](h) carry {state} growing", "if flag", "if n > 2",
)  # fmt: skip


def mutated(text: str, chance: random.Random) -> str:
    """Returns a program after one to three edits."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        edit = chance.choice(
            (_renamed, _renamed, _renumbered, _without, _duplicated, _wrapped, _enclosed, _swapped, _dropped)
        )
        text = edit(text, chance)
    return text


def _renamed(text: str, chance: random.Random) -> str:
    """Replaces one name by another name of the program."""
    names = _names(text)
    places = list(re.finditer(rf"\b(?:{'|'.join(map(re.escape, names))})\b", text))
    if not places:
        return text
    place = chance.choice(places)
    return f"{text[: place.start()]}{chance.choice(names)}{text[place.end() :]}"


def _names(text: str) -> list[str]:
    return sorted({"h", *_BOUND.findall(text)})


def _renumbered(text: str, chance: random.Random) -> str:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return text
    number = chance.choice(numbers)
    return text[: number.start()] + chance.choice(_NUMBERS) + text[number.end() :]


def _without(text: str, chance: random.Random) -> str:
    """The program without some words at one place."""
    gone = chance.choice(_REMOVABLE)
    places = [match.start() for match in re.finditer(re.escape(gone), text)]
    if not places:
        return text
    place = chance.choice(places)
    return text[:place] + text[place + len(gone) :]


def _duplicated(text: str, chance: random.Random) -> str:
    """Repeats a statement at a random place."""
    lines = text.split("\n")
    plain = _plain(lines)
    if plain:
        lines.insert(chance.choice(plain), lines[chance.choice(plain)])
    return "\n".join(lines)


def _wrapped(text: str, chance: random.Random) -> str:
    """Moves an update into a loop or an `if`."""
    lines = text.split("\n")
    moves = [index for index, line in enumerate(lines) if "<-" in line and "{" not in line]
    if not moves:
        return text
    index = chance.choice(moves)
    head = chance.choice(_HEADS).format(state=lines[index].split("<-")[0].strip())
    lines[index] = f"{head} {{\n{lines[index]}\n}}"
    return "\n".join(lines)


def _enclosed(text: str, chance: random.Random) -> str:
    """Moves a loop with its body into another loop or an `if`."""
    lines = text.split("\n")
    heads = [index for index, line in enumerate(lines) if _LOOP.match(line)]
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


def _swapped(text: str, chance: random.Random) -> str:
    """Exchanges two statements."""
    lines = text.split("\n")
    plain = _plain(lines)
    if plain:
        first, second = chance.choice(plain), chance.choice(plain)
        lines[first], lines[second] = lines[second], lines[first]
    return "\n".join(lines)


def _dropped(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    plain = _plain(lines)
    if plain:
        del lines[chance.choice(plain)]
    return "\n".join(lines)


def _plain(lines: list[str]) -> list[int]:
    """Returns the indices of the lines that are a whole statement."""
    return [index for index, line in enumerate(lines) if line.strip() and not set(line) & set("{}")]
