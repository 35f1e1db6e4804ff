"""A line that is cut anywhere costs only itself: a mistake in another line of a shipped file is still reported."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from archlang.plan.check import check_text

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "recipes").rglob("*.arch"), *(ROOT / "archlang" / "blocks").rglob("*.arch")])
# What is replaced by an unknown name: blocks, values, statics, paths, metrics, recipes and models.
_NAMES = re.compile(
    r"""
      (?<=[=(][ ]) (?: norm | linear | feedforward | attention | embed ) (?=[\[(])
    | (?<=[(]) (?: h | x | a | q | y | u ) (?=[,)])
    | (?<=[a-z]\[) \w+ (?=[ ]=)
    | (?<=^[ ]{4}(?:vary|test)[ ]{2}(?:model|train)\.) \w+
    | (?<=[ ]test\.) \w+
    | (?<="[ ]) \w+ (?=[ ]claims)
    | (?<=^[ ]{4}model[ ]) \w+ (?=\n|\[)
    """,
    re.MULTILINE | re.VERBOSE,
)
_BRACKET = re.compile(r'"[^"\n]*"|#[^\n]*|(?P<bracket>[()\[\]{}])')
_ITEM = re.compile(r"^(?:use|block|model|extern|recipe|table)\b", re.MULTILINE)
# What is unknown if a line that defines a name is cut, or one that names a task, a model or an optimizer, or varies.
_UNKNOWN = {"E0202", "E0214", "E0604", "E0605", "E0612", "E0635"}
# What a model without one of its lines returns is unknown: whether its recipes may score each step, too.
_UNKNOWN_RESULT = {"E0619"}
# A name in the statics of an unknown block may be a symbol.
_UNKNOWN_STATICS = {"E0301", "E0302", "E0304", "E0312", "E0313", "E0605", "E0635"}
# Lines that begin with an operator.
_CONTINUES = re.compile(r"(?:\n[ ]+(?:[-+*/]|\|>)[^\n]*)+")
# Lines that hide a block of the prelude, or bind names on one line.
_MAY_HIDE = re.compile(r"\s*(?:let\b|if\b.*\}|\} else\b.*\})|recipe\b.*\}")
_BOUND = re.compile(r"\w+(?= =(?!=))")
_CHOICE = re.compile(r"\s+(?:task|model|train|vary|search)\b")
_LET = re.compile(r"\s+let\b")

Place = tuple[str, int, int, str, str]


@dataclass(frozen=True)
class Cut:
    """A text with a mistake, and the same text with another line (`number`, from 1) cut at a place. `construct` are the
    lines of the brackets that the cut leaves unclosed, or whose beginning it removes; `lost` are the names that the
    line bound, in a `let` or in the body of an `if`."""

    path: Path
    text: str
    cut: str
    number: int
    construct: frozenset[int]
    lost: frozenset[str]


def places(text: str, path: Path) -> list[Place]:
    """Returns the code, the place and the message of each error."""
    errors = [each for each in check_text(text, str(path)) if each.is_error]
    return [(each.code, each.span.line, each.span.column, each.span.text, each.message) for each in errors]


def pairs(text: str) -> Iterator[tuple[int, int]]:
    """Yields the places of each pair of brackets."""
    openers: list[int] = []
    for piece in _BRACKET.finditer(text):
        if piece["bracket"] and piece["bracket"] in "([{":
            openers.append(piece.start())
        elif piece["bracket"] and openers:
            yield openers.pop(), piece.start()


def construct(text: str, place: int) -> Iterator[int]:
    """Yields the lines of the brackets that a cut at a place, up to the end of its line, leaves unclosed, and of those
    whose beginning it removes; in the header of an item, all lines of the item."""
    line_end, of_pairs = text.index("\n", place), list(pairs(text))
    item = max((match.start() for match in _ITEM.finditer(text, 0, line_end)), default=0)
    bodies = [
        pair
        for pair in of_pairs
        if text[pair[0]] == "{" and item < pair[0] and text.rfind("\n", 0, pair[1]) + 1 == pair[1]
    ]
    following = _ITEM.search(text, item + 1)
    item_end = following.start() if following else len(text)
    is_extern = text.startswith("extern", item)
    signature_end = next((end for opener, end in sorted(of_pairs) if text[opener] == "(" and opener > item), item)
    header_end = min((opener for opener, _ in bodies), default=0)
    if place <= header_end < item_end:
        yield from lines_of(text, item, min(bodies)[1])
    if is_extern and (text.rfind("\n", 0, place) < item or place <= signature_end):  # clauses name its inputs
        yield from lines_of(text, item, item_end)
    continuing = _CONTINUES.match(text, line_end)
    if continuing or _CONTINUES.match(text, text.rfind("\n", 0, place)):
        yield from lines_of(text, place, continuing.end() if continuing else place)
    for opener, closer in of_pairs:
        is_cut = opener < place <= closer
        if (is_cut and text[opener] != "{") or place <= opener < line_end < closer:
            yield from lines_of(text, opener, closer)
        elif is_cut and closer < line_end:  # a body of one line
            yield from lines_of(
                text, opener, min((end for begin, end in of_pairs if begin < opener and end > closer), default=closer)
            )


def lines_of(text: str, start: int, end: int) -> range:
    return range(text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 2)


def cuts(seed: int) -> Iterator[Cut]:
    """Yields cuts of random files with a random mistake."""
    generator = random.Random(seed)
    while True:
        path = generator.choice(FILES)
        text = path.read_text("utf-8")
        names = [match.span() for match in _NAMES.finditer(text)]
        if not names:
            continue
        start, end = generator.choice(names)
        text = f"{text[:start]}nowhere{text[end:]}"
        lines = text.split("\n")
        number = generator.randrange(len(lines))
        code = lines[number].partition("#")[0].rstrip()
        if number == text.count("\n", 0, start) or len(code.strip()) < 2:
            continue
        column = generator.randrange(len(code) - len(code.lstrip()) + 1, len(code))
        place = len("\n".join(lines[:number])) + (number > 0) + column
        cut = "\n".join([*lines[:number], code[:column], *lines[number + 1 :]])
        lost = frozenset(_BOUND.findall(code[column:])) if _MAY_HIDE.match(code) else frozenset()
        yield Cut(path, text, cut, number + 1, frozenset(construct(text, place)), lost)


def check_sound_cuts(seed: int, count: int) -> None:
    """Asserts that a cut in a file without mistakes is no reason for mistakes in other lines, but for those of brackets
    that the cut leaves open, and those that a new name would have too."""
    generator = random.Random(seed)
    while count:
        path = generator.choice(FILES)
        lines = path.read_text("utf-8").split("\n")
        number = generator.randrange(len(lines))
        code = lines[number].partition("#")[0].rstrip()
        if len(code.strip()) < 2 or _MAY_HIDE.match(code):
            continue
        cut = code[: generator.randrange(len(code) - len(code.lstrip()) + 1, len(code))]
        after = places("\n".join([*lines[:number], cut, *lines[number + 1 :]]), path)
        if any(place[0].startswith("E01") for place in after):
            count -= 1
            elsewhere = [place for place in after if place[1] != number + 1 and not place[0].startswith("E01")]
            assert elsewhere == [], f"{path}:{number + 1}: {cut}"


def check_cuts(seed: int, count: int) -> None:
    """Asserts that in some cuts each mistake outside of the cut construct is that of the uncut text. A cut that leaves
    a program without syntax mistakes is another program."""
    cases = cuts(seed)
    while count:
        case = next(cases)
        after = places(case.cut, case.path)
        if not any(code.startswith("E01") for code, *_ in after):
            continue
        count -= 1
        own = case.construct | {case.number}
        lines = case.text.split("\n")
        # In a header, also one of several lines, the construct begins with the line of its item.
        is_item = any(_ITEM.match(lines[number - 1]) for number in own)
        unknown = _UNKNOWN_RESULT | (_UNKNOWN if is_item else set())
        if is_item or any(_CHOICE.match(lines[number - 1]) for number in own):
            unknown = unknown | _UNKNOWN_STATICS
        complete = [place for place in places(case.text, case.path) if place[1] not in own and place[0] not in unknown]
        missing = [place for place in complete if place not in after and not may_be_bound(case, place)]
        elsewhere = [place for place in after if place[1] not in own and place[0] not in unknown]
        new = (place for place in elsewhere if place not in complete)
        false = [place for place in new if place[3].partition("(")[0] not in case.lost]
        assert (missing, false) == ([], []), f"{case.path}:{case.number}: {case.cut.split(chr(10))[case.number - 1]}"


def may_be_bound(case: Cut, mistake: Place) -> bool:
    """Whether a mistake is an unknown block after a cut `let` of its item, which may bind the name of the block."""
    code, line, *_ = mistake
    lines = case.text.split("\n")
    between = lines[case.number : line]
    is_let = _LET.match(lines[case.number - 1]) is not None
    return is_let and code == "E0202" and line > case.number and not any(map(_ITEM.match, between))


def test_a_line_that_is_cut_costs_only_itself() -> None:
    check_cuts(seed=1, count=18)


def test_a_line_that_is_cut_is_no_mistake_elsewhere() -> None:
    check_sound_cuts(seed=1, count=40)


def cut_once(path: str, line: str, cut: str) -> list[tuple[str, int]]:
    """Returns the errors of a shipped file, by their distance to a line that is cut."""
    text = (ROOT / path).read_text("utf-8")
    number = text[: text.index(f"\n{line}")].count("\n") + 2
    lines = text.split("\n")
    after = places("\n".join([*lines[: number - 1], cut, *lines[number:]]), ROOT / path)
    return [(place[0], place[1] - number) for place in after]


BLOCKS = "archlang/blocks"
CHUNKS = "extern block chunks[size: int = 0, balanced: bool = false, count: int = 0]"


@pytest.mark.parametrize(
    ("path", "line", "cut"),
    [
        (f"{BLOCKS}/models/neural_turing_machine.arch", "    y = scan v in x carry state", "    y = s"),
        (f"{BLOCKS}/models/dynamic_halt.arch", "    ponder: symbol = code,", "    ponder: symbol"),
        ("recipes/papers/panm/squad.arch", "model panm_on_bert", "model panm_on_bert[d = 768, heads"),
        (f"{BLOCKS}/models/panm.arch", "    } else if encoder == lstm {", "    } else if encoder == lst"),
        (f"{BLOCKS}/models/moeut.arch", "    where layers % group == 0 {", "    wh"),
        (f"{BLOCKS}/models/pondernet.arch", "    prior: float = 0.2,", "    prior: float ="),
        (f"{BLOCKS}/models/algorithmic_baselines.arch", "    if system == pointer_network {", "    if system =="),
        (f"{BLOCKS}/absrel_attention.arch", "    sizes width", "    sizes gate = heads when gates == per_head"),
        (f"{BLOCKS}/dereference.arch", "    python", '    python "archlang.blocks'),
        (f"{BLOCKS}/chunks.arch", "extern block chunks", f"{CHUNKS}(x: seq[n, d]) -> chunks[n, d, s"),
        (f"{BLOCKS}/embed.arch", "    d: int,", "    d: int"),
        (f"{BLOCKS}/models/panm.arch", "use ", "use"),
        (f"{BLOCKS}/models/neural_random_access_machine.arch", "    cells: int,", "    cel"),
        (f"{BLOCKS}/models/block_recurrent_shared_keys.arch", "    y = scan c", "    y = scan c in chunks[window](e[d"),
        ("archlang/tasks/parity.arch", "extern task parity[", "extern task p"),
        ("archlang/tasks/multi30k.arch", "extern task multi30k[", "extern task"),
        ("recipes/papers/panm/dyck.arch", "recipe srnn_3", "recipe srnn_3 from srnn_2 { task dyck[pairs ="),
        ("recipes/field/growing_memory.arch", "        memory <-", "        memo"),
    ],
)  # fmt: skip
def test_a_cut_line_of_a_shipped_file_is_one_mistake(path: str, line: str, cut: str) -> None:
    ((code, distance),) = set(cut_once(path, line, cut))
    assert (code[:3], distance) == ("E01", 0)


def test_a_cut_list_of_statics_in_a_header_is_one_mistake() -> None:
    line = "model sorter[d = 64, layers = 3, mix: block = sinkhorn_attention[heads = 4, buckets = 5, size = 4, noise"
    assert cut_once("recipes/field/sinkhorn.arch", line, line) == [("E0101", 0)]


@pytest.mark.parametrize(("cut", "distance"), [("        + ", 1), ("        + attention", 1)])
def test_a_lost_bracket_of_statics_in_several_lines_is_one_syntax_mistake(cut: str, distance: int) -> None:
    after = cut_once(f"{BLOCKS}/models/dynamic_halt.arch", "        + attention[", cut)
    assert [place for place in after if place[0].startswith("E01")] == [("E0101", distance)]


def test_a_cut_line_of_inputs_is_a_mistake_of_their_bracket_alone() -> None:
    line = "    source: tokens[n], target: tokens"
    assert cut_once("recipes/mixed/halting_decoder.arch", line, line) == [("E0103", -1)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_each_of_many_lines_that_are_cut_is_no_mistake_elsewhere(seed: int) -> None:
    check_sound_cuts(seed, 500)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_each_of_many_cuts_costs_only_its_line(seed: int) -> None:
    check_cuts(seed, 200)
