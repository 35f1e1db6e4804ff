"""Checking any text returns diagnostics instead of raising: thousands of mutated programs, the same in every run."""

import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import archlang
from archlang.diagnostics.render import plain
from archlang.plan.check import check_text

ROOT = Path(archlang.__file__).parent
TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
# In seconds, far above the time on a slow machine: a hang takes hours.
SLOWEST = 60.0


def programs() -> list[str]:
    files = [*sorted((ROOT / "recipes").rglob("*.arch")), *sorted((ROOT / "blocks" / "models").glob("*.arch"))]
    pages = sorted((ROOT / "diagnostics" / "pages").glob("*.md"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    for page in pages:
        texts += re.findall(r"^```arch\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return texts


def mutated(count: int, seed: int) -> Iterator[str]:
    """Programs with one to four changes. Replacing a word by a word mostly parses and reaches the checker; the other
    changes replace, delete, insert or swap arbitrary tokens."""
    chance = random.Random(seed)
    tokens = [TOKEN.findall(text) for text in programs()]
    words = sorted({token for text in tokens for token in text if re.match(r"\w", token)})
    everything = [
        *sorted({token for text in tokens for token in text}),
        "999999999999999999999",
        "1e400",
        "\x00",
        "é",
        '"',
    ]
    for _ in range(count):
        text = list(chance.choice(tokens))
        for _ in range(chance.choice([1, 1, 2, 4])):
            place = chance.randrange(len(text))
            match chance.randrange(6):
                case 0 | 1:
                    places = [index for index, token in enumerate(text) if re.match(r"\w", token)] or [place]
                    text[chance.choice(places)] = chance.choice(words)
                case 2:
                    text[place] = chance.choice(everything)
                case 3:
                    text[place] = ""
                case 4:
                    text[place] += f" {chance.choice(everything)} "
                case 5:
                    second = chance.randrange(len(text))
                    text[place], text[second] = text[second], text[place]
        yield "".join(text)


def check_mutated(count: int, seed: int) -> None:
    for text in mutated(count, seed):
        start = time.perf_counter()
        diagnostics = check_text(text)
        assert time.perf_counter() - start < SLOWEST, text
        assert plain(diagnostics) or not diagnostics


def test_checking_a_hundred_mutated_programs_returns_diagnostics() -> None:
    check_mutated(100, seed=0)


@pytest.mark.slow
def test_checking_ten_thousand_mutated_programs_returns_diagnostics() -> None:
    check_mutated(10_000, seed=1)


@pytest.mark.parametrize(
    "text",
    [
        "block b(h: seq[n, d]) -> seq[n, d] { " + "repeat 2 { " * 60 + "h <- norm(h)" + " }" * 60 + " return h }",
        "block b(h: seq[n, d]) -> seq[n, d] { return " + "norm(" * 90 + "h" + ")" * 90 + " }",
        "block b(h: seq[n, d]) -> seq[n, d] { return h" + " + h" * 3_000 + " }",
        "block b(h: seq[n, d]) -> seq[n, d] { return h" + " |> norm" * 3_000 + " }",
        "block b(h: seq[n, d]) -> seq[n, d] { return linear[" + "9" * 5_000 + "](h) }",
        "block b(h: seq[n, d]) -> seq[n, d] { return linear[" + "d * " * 500 + "d](h) }",
        "block a0(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n"
        + "".join(f"block a{i + 1}(h: seq[n, d]) -> seq[n, d] {{ return a{i}(a{i}(h)) }}\n" for i in range(30)),
    ],
    ids=["deep loops", "deep calls", "long sums", "long pipes", "large numbers", "high powers", "doubling blocks"],
)
def test_large_programs_are_checked_in_time(text: str) -> None:
    start = time.perf_counter()
    check_text(text)
    assert time.perf_counter() - start < SLOWEST
