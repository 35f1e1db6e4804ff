"""Random programs have all properties, and use every construct and block."""

import os
import re
from collections.abc import Callable, Collection
from functools import cache
from random import Random

import pytest

from archlang.resolve.library import block_names
from tests.semantics.compiled import Compiled, compile_text
from tests.semantics.failures import failures
from tests.semantics.generator import program
from tests.semantics.leaky import leaky
from tests.semantics.mutations import mutated
from tests.semantics.properties import PROPERTIES
from tests.semantics.shrinker import shrink

CHUNK = 5
PROGRAMS = 300
COMPILED = 30
# The number of programs that a run checks by default and with `-m slow`, and the share of each kind: how many failures
# it finds in its time.
FEW = 12
MANY = int(os.environ.get("ARCHLANG_RANDOM_PROGRAMS", "20000"))
SHARES = {"typed": 0.4, "mutated": 0.2, "leaky": 0.4}
CONSTRUCTS = {
    "let": r"\blet ",
    "composed block": r"\bblock\d\(",
    "configured block": r"\bblock\d\[",
    "block as a static": r"f: block = ",
    "repeat": r"repeat [1-9] \{",
    "truncated repeat": r"repeat \w+ truncated ",
    "stack with an index": r"stack \S.* as \w+ \{",
    "settled repeat": r"repeat .* settled \{",
    "drawn repeat": r"repeat \w+ drawn by ",
    "before a part": r"scan \w+ after \w+\[",
    "all before a part": r"scan \w+ after \w+ in ",
    "emission of a repeat": r"= repeat ",
    "emission of a stack": r"= stack ",
    "truncated scan": r"carry .* truncated ",
    "repeat of no steps": r"repeat 0 \{",
    "stack": r"stack [1-9] \{",
    "stack of no steps": r"stack 0 \{",
    "token halting": r"halting .* by token_halt",
    "global halting": r"halting .* by global_halt",
    "adaptive computation time": r"halting .* by act",
    "named mixture": r"halting \S+ as \S+ by",
    "halting of no steps": r"repeat 0 halting",
    "scan": r"= scan ",
    "scan with memory": r"carry \S+ \{",
    "scan with two states": r"carry \S+, \S+",
    "states that grow together": r"carry .*\w and \w+ growing",
    "scan without emission": r"^ *scan ",
    "scan over a named cut": r"scan \S+ in cut\d+ ",
    "scan over positions": r"scan \S+ in (?!chunks\[)\w+[\[(]",
    "gradient of each position": r"= gradient\(sum_features",
    "gradient of a sample": r"= gradient\(mean",
    "if": r"\bif ",
    "when": r" when ",
    "pipe": r" \|> ",
    "negation": r"\(-",
    "broadcast feature": r"tanh\(linear\[1\]\(",
    "broadcast vector": r"[-+*] (first|last|mean|sum)\(",
    "infinite number": r"\(1 / 0\)",
    "number": r"^ *q\d+ = ",
    "unchanged state": r"\b(\w+) <- \1$",
    "two fields": r"y: tokens\[m\]",
    "field of vectors": r"x: seq\[n, 3\]",
    "longer sequence": r"^ *framed\d+ = ",
    "address": r"^ *address\d+ = ",
    "nasty name": r"\b(self|A|lambda|class|None|torch)\b (=|<-)",
    "result for a sample": r"-> logits\[classes\]",
}


KINDS: dict[str, Callable[[int], str]] = {
    "typed": program, "mutated": lambda seed: mutated(program(seed), Random(seed)), "leaky": leaky,
}  # fmt: skip
# Leaky programs test causality; the other properties show nothing that other programs do not.
NAMES = {"typed": PROPERTIES, "mutated": PROPERTIES, "leaky": ("causal", "decoding")}


@pytest.mark.parametrize(
    ("kind", "first"), [(kind, first) for kind, share in SHARES.items() for first in range(0, int(share * FEW), CHUNK)]
)
def test_random_programs_are_rejected_or_have_all_properties(kind: str, first: int) -> None:
    for seed in range(first, first + CHUNK):
        assert_properties(KINDS[kind](seed), seed, NAMES[kind])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "first"),
    [
        (kind, first)
        for kind, share in SHARES.items()
        for first in range(PROGRAMS, PROGRAMS + int(share * MANY), 40 * CHUNK)
    ],
)
def test_many_random_programs_are_rejected_or_have_all_properties(kind: str, first: int) -> None:
    for seed in range(first, first + 40 * CHUNK):
        assert_properties(KINDS[kind](seed), seed, NAMES[kind])


def test_many_leaky_programs_see_the_future_and_many_do_not() -> None:
    programs = [compile_text(leaky(seed)) for seed in range(COMPILED)]
    accepted = [compiled.causal for compiled in programs if isinstance(compiled, Compiled)]
    assert len(accepted) == len(programs)
    assert COMPILED // 5 < sum(accepted) < COMPILED * 3 // 4


def test_most_random_programs_are_accepted_and_many_are_causal() -> None:
    accepted = [compiled for compiled in map(compile_text, programs()[:COMPILED]) if isinstance(compiled, Compiled)]
    assert len(accepted) == COMPILED
    assert sum(compiled.causal for compiled in accepted) > COMPILED // 4


@cache
def programs() -> list[str]:
    return [program(seed) for seed in range(PROGRAMS)]


def test_random_programs_use_every_block_of_the_library() -> None:
    words = {word for text in programs() for word in re.findall(r"\w+", text)}
    # Only auxiliary losses may use `exact_match`, and random programs have no targets.
    assert block_names() - words <= {"exact_match"}


@pytest.mark.parametrize("pattern", CONSTRUCTS.values(), ids=CONSTRUCTS)
def test_random_programs_use_every_construct(pattern: str) -> None:
    assert any(re.search(pattern, text, re.MULTILINE) for text in programs())


def assert_properties(text: str, seed: int, names: Collection[str]) -> None:
    """Fails with the smallest program that violates the first property."""
    for failure in failures(text, seed, names):
        pytest.fail(f"seed {seed}: {failure}\n{shrink(text, seed, failure)}")
