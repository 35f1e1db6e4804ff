"""Small random edits of well-typed programs: each makes one that is refused, or one with all properties."""

from __future__ import annotations

import random
import re

_BOUND = re.compile(r"^ *(\w+) (?:=|<-) ", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
# Numbers that make no program slow.
_NUMBERS = ("0", "1", "2", "3", "5", "-1", "0.5", "n", "d", "m", "1 / 0", "n / 2", "n - 3", "vocab")
_TAKEN_AWAY = (
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
    "scan w in chunks[2](h) carry {state}", "if flag", "if n > 2",
)  # fmt: skip


def mutated(text: str, chance: random.Random) -> str:
    """A program after one to three edits."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        edit = chance.choice((_renamed, _renamed, _renumbered, _without, _duplicated, _wrapped, _swapped, _dropped))
        text = edit(text, chance)
    return text


def _renamed(text: str, chance: random.Random) -> str:
    """Another name of the program in the place of one."""
    names = sorted({"h", *_BOUND.findall(text)})
    places = list(re.finditer(rf"\b(?:{'|'.join(map(re.escape, names))})\b", text))
    if not places:
        return text
    place = chance.choice(places)
    return f"{text[: place.start()]}{chance.choice(names)}{text[place.end() :]}"


def _renumbered(text: str, chance: random.Random) -> str:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return text
    number = chance.choice(numbers)
    return text[: number.start()] + chance.choice(_NUMBERS) + text[number.end() :]


def _without(text: str, chance: random.Random) -> str:
    """The program without some words at one place."""
    gone = chance.choice(_TAKEN_AWAY)
    places = [match.start() for match in re.finditer(re.escape(gone), text)]
    if not places:
        return text
    place = chance.choice(places)
    return text[:place] + text[place + len(gone) :]


def _duplicated(text: str, chance: random.Random) -> str:
    """A statement once more, at the place of any other."""
    lines = text.split("\n")
    plain = _plain(lines)
    if plain:
        lines.insert(chance.choice(plain), lines[chance.choice(plain)])
    return "\n".join(lines)


def _wrapped(text: str, chance: random.Random) -> str:
    """A move inside of a loop, or of an `if`."""
    lines = text.split("\n")
    moves = [index for index, line in enumerate(lines) if "<-" in line and "{" not in line]
    if not moves:
        return text
    index = chance.choice(moves)
    head = chance.choice(_HEADS).format(state=lines[index].split("<-")[0].strip())
    lines[index] = f"{head} {{\n{lines[index]}\n}}"
    return "\n".join(lines)


def _swapped(text: str, chance: random.Random) -> str:
    """Two statements in each other's place."""
    lines = text.split("\n")
    plain = _plain(lines)
    if plain:
        one, other = chance.choice(plain), chance.choice(plain)
        lines[one], lines[other] = lines[other], lines[one]
    return "\n".join(lines)


def _dropped(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    plain = _plain(lines)
    if plain:
        del lines[chance.choice(plain)]
    return "\n".join(lines)


def _plain(lines: list[str]) -> list[int]:
    """The lines that are a statement each."""
    return [index for index, line in enumerate(lines) if line.strip() and not set(line) & set("{}")]
