"""Any text yields a tree and diagnostics within seconds, and never an exception."""

import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from archlang.errors import ProgramError, Source
from archlang.errors.exchange import to_json
from archlang.errors.render import plain
from archlang.syntax.parser import parse_setting, parse_tolerantly, read
from archlang.syntax.printer import format_program

BLOCK = "block b(h: s) -> s {\n return "


def survives(text: str) -> None:
    source = Source("x.arch", text)
    program, diagnostics = parse_tolerantly(source)
    for mistake in diagnostics:
        for span in (mistake.span, *(label.span for label in mistake.labels)):
            assert 0 <= span.start <= span.end <= len(text), (text, mistake)
        assert mistake.message
        assert mistake.remedy
    if diagnostics:
        plain(diagnostics).encode("utf-8")
        to_json(diagnostics).encode("utf-8")
    else:
        printed = format_program(program)
        again, wrong = parse_tolerantly(Source("y.arch", printed))
        assert wrong == ()
        assert again == program
        assert format_program(again) == printed


STRANGE = [*"()[]{}\"#=<->|.,:;'\\ \n\t\r0aé\0\x1b\u202e\ufeff\U0001f600", "<-", "±", "+-"]


def characters(random_: random.Random, text: str) -> str:
    place = random_.randrange(len(text))
    strange = random_.choice(STRANGE)
    changed: str = random_.choice(
        [
            text[:place] + strange + text[place:],
            text[:place] + text[place + random_.randrange(1, 10) :],
            text[:place],
            text[place:],
            text[:place] + strange * random_.randrange(1, 100) + text[place:],
        ]
    )
    return changed


def tokens(random_: random.Random, text: str) -> str:
    pieces = re.findall(r"\s+|\w+|[^\w\s]", text)
    first, second = random_.randrange(len(pieces)), random_.randrange(len(pieces))
    change = random_.choice(["swap", "delete", "copy", "shuffle"])
    if change == "swap":
        pieces[first], pieces[second] = pieces[second], pieces[first]
    elif change == "delete":
        del pieces[first : first + random_.randrange(1, 4)]
    elif change == "copy":
        pieces[first:first] = pieces[second : second + 5]
    else:
        part = pieces[first : first + 20]
        random_.shuffle(part)
        pieces[first : first + 20] = part
    return "".join(pieces)


def lines(random_: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    first, second = random_.randrange(len(lines)), random_.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    del lines[random_.randrange(len(lines))]
    return "".join(lines)


@pytest.mark.parametrize("change", [characters, tokens, lines], ids=lambda change: change.__name__)
def test_changed_programs_never_break_the_parser(change: Callable[[random.Random, str], str], everything: str) -> None:
    random_ = random.Random(change.__name__)
    items = re.split(r"\n(?=block|model|extern|recipe|use|##)", everything)
    for _ in range(200):
        text = "\n".join(random_.sample(items, 2))
        for _ in range(random_.randrange(1, 4)):
            text = change(random_, text) or "x"
        survives(text)


def test_random_bytes_never_break_reading(tmp_path: Path, everything: str) -> None:
    random_ = random.Random(0)
    file = tmp_path / "x.arch"
    for _ in range(300):
        data = bytearray(everything.encode()[:400])
        for _ in range(random_.randrange(1, 6)):
            data[random_.randrange(len(data))] = random_.randrange(256)
        file.write_bytes(random_.choice([bytes(data), random_.randbytes(40)]))
        try:
            text = read(file).text
        except ProgramError as error:
            diagnostics = error.diagnostics
        else:
            survives(text)
            continue
        assert {mistake.code for mistake in diagnostics} == {"E0109"}
        to_json(diagnostics)


@pytest.mark.parametrize("prefix", range(0, 2600, 13))
def test_a_program_may_end_anywhere(everything: str, prefix: int) -> None:
    survives(everything[:prefix])


@pytest.mark.parametrize("text", ["", " ", ")", "1 2", "[" * 10_000, "-" * 10_000, '"', "\0", "a = b", "use x", "{"])
def test_settings_never_break_the_parser(text: str) -> None:
    setting, diagnostics = parse_setting("model.d", text)
    assert setting is None
    assert len(diagnostics) == 1


LARGE = {
    "ten million brackets": "[" * 10_000_000,
    "brackets": "[" * 900_000,
    "closing brackets": ")" * 500_000,
    "pairs of brackets": "{}" * 200_000,
    "wrong pairs": "([)]" * 100_000,
    "signs": BLOCK + "-" * 150_000 + "x }",
    "a sum": BLOCK + "a + " * 50_000 + "a }",
    "a pipe": BLOCK + "x |> f " * 50_000 + "}",
    "negations": BLOCK + "not " * 50_000 + "x }",
    "conditions": BLOCK + "x when y else " * 20_000 + "x }",
    "branches": "block b(h: s) -> s { " + "if a { } else " * 15_000 + "{ } }",
    "loops": "block b(h: s) -> s { " + "repeat 2 { " * 80_000,
    "a number": BLOCK + "1" * 900_000 + " }",
    "half a number": BLOCK + "1_" * 450_000 + "x }",
    "a name": BLOCK + "x" * 900_000 + " }",
    "dots": BLOCK + "." * 900_000 + " }",
    "dotted names": BLOCK + "x." * 450_000 + " }",
    "quotes": BLOCK + '"' * 900_001 + " }",
    "comments": "#\n" * 300_000,
    "signs of comments": BLOCK + "= {" + "# " * 400_000,
    "spaces": " " * 900_000,
    "items without end": "block b(\n" * 100_000,
    "mistakes": "block b(h: s) -> s { " + "a = = " * 100_000 + "}",
    "zeros": "\0" * 900_000,
    "letters": "é " * 400_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_large_texts_are_checked_in_time(name: str) -> None:
    # Seconds, far above what a slow machine needs: what takes the square of a text's length takes hours.
    start = time.monotonic()
    _, diagnostics = parse_tolerantly(Source("x.arch", LARGE[name]))
    plain(diagnostics)
    assert time.monotonic() - start < 120
    assert bool(diagnostics) == (name != "spaces")


# Below the limit of words, so that the parser sees it all, and deeper than Python may recurse.
MANY = {name: text[:20_000] for name, text in LARGE.items() if name not in ("a name", "a number", "half a number")}


@pytest.mark.parametrize("name", MANY)
def test_texts_below_the_token_limit_are_checked(name: str) -> None:
    _, diagnostics = parse_tolerantly(Source("x.arch", MANY[name]))
    plain(diagnostics)
    assert {mistake.code for mistake in diagnostics}.isdisjoint({"E0110", "E0113"})
