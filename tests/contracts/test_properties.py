"""Each property has blocks that break it and nothing else; they are named at the clause that promises it."""

import pytest

from archlang.contracts import Verdict
from tests.contracts.conftest import Held

SEQUENCE = 'extern block toy(x: seq[n, d]) -> seq[n, d] reads x {manner} {clauses} python "toys:{name}"\n'
VECTOR = 'extern block toy(x: seq[n, d]) -> vec[d] reads x {manner} {clauses} python "toys:{name}"\n'
LONGER = 'extern block toy(x: seq[n, d]) -> seq[n + 1, d] reads x {manner} {clauses} python "toys:{name}"\n'
HALTING = 'extern block toy(state: seq[n, d]) -> prob[n] reads state {manner} {clauses} python "toys:{name}"\n'


def program(name: str, manner: str = "full", clauses: str = "", signature: str = SEQUENCE) -> str:
    return signature.format(name=name, manner=manner, clauses=clauses)


def broken(verdicts: dict[str, Verdict]) -> dict[str, str]:
    """The codes of what is broken, by property."""
    return {name: one.mistake.code for name, one in verdicts.items() if one.mistake is not None}


READS = {
    "Nothing": {"length", "first", "pointwise", "causal", "mirrored", "full"},
    "Own": {"pointwise", "causal", "full"},
    "Opening": {"first", "causal", "full"},
    "Earlier": {"causal", "full"},
    "Mirror": {"mirrored", "full"},
    "Total": {"full"},
}


@pytest.mark.parametrize("manner", ["length", "first", "pointwise", "causal", "mirrored", "full"])
@pytest.mark.parametrize("name", READS)
def test_a_block_may_be_read_in_the_manners_that_cover_what_it_does(name: str, manner: str, held: Held) -> None:
    assert broken(held(program(name, manner))) == ({} if manner in READS[name] else {"reads": "E0703"})


def test_of_a_result_without_positions_only_first_and_length_say_something(held: Held) -> None:
    for manner in ("pointwise", "causal", "mirrored", "full"):
        assert broken(held(program("TotalVector", manner, signature=VECTOR))) == {}
    assert broken(held(program("TotalVector", "first", signature=VECTOR))) == {"reads": "E0703"}
    assert broken(held(program("OpeningVector", "first", signature=VECTOR))) == {}
    assert broken(held(program("OpeningVector", "length", signature=VECTOR))) == {"reads": "E0703"}


def test_what_a_signature_does_not_say_is_read_fully(held: Held) -> None:
    verdicts = held('extern block toy(x: seq[n, d]) -> seq[n, d] python "toys:Total"\n')
    assert broken(verdicts) == {}
    assert verdicts["reads"].skipped == "every input is read fully"


@pytest.mark.parametrize(
    ("name", "property_", "code"),
    [
        ("Raises", "result", "E0701"),
        ("RaisesAtOnce", "result", "E0701"),
        ("Narrow", "result", "E0702"),
        ("Whole", "result", "E0702"),
        ("ReadsPadding", "padding", "E0704"),
        ("CountsPadding", "padding", "E0704"),
        ("MindsMask", "padding", "E0704"),
        ("Mixes", "batch", "E0705"),
        ("WrongBackward", "gradients", "E0707"),
        ("Detaches", "gradients", "E0707"),
        ("DetachesWeight", "gradients", "E0707"),
        ("DrawsInTraining", "random", "E0709"),
        ("DrawsAlways", "random", "E0709"),
        ("DrawsFromNumpy", "random", "E0709"),
        ("StartsByNumpy", "seeds", "E0710"),
        ("StartsByPython", "seeds", "E0710"),
        ("SeedsItself", "seeds", "E0710"),
        ("Hides", "saving", "E0711"),
        ("RefusesCopies", "saving", "E0711"),
        ("Overflows", "numbers", "E0712"),
    ],
)
def test_a_block_that_breaks_one_property_is_named_for_it_alone(
    name: str, property_: str, code: str, held: Held
) -> None:
    assert broken(held(program(name))) == {property_: code}


def test_a_vector_of_no_positions_is_finite_and_so_are_its_gradients(held: Held) -> None:
    assert broken(held(program("Divides", signature=VECTOR))) == {"batch": "E0712"}
    assert broken(held(program("RootOfNothing", signature=VECTOR))) == {"gradients": "E0707"}


@pytest.mark.parametrize(
    ("name", "codes"),
    [("Grows", {}), ("GrowsTooLittle", {"result": "E0708"}), ("GrowsWithoutMask", {"result": "E0702"})],
)
def test_a_length_of_its_own_is_the_one_that_the_type_says(name: str, codes: dict[str, str], held: Held) -> None:
    assert broken(held(program(name, signature=LONGER))) == codes


@pytest.mark.parametrize("name", ["Buffered", "TrainsOtherwise", "DetachesWeight"])
def test_a_pure_block_saves_nothing_and_trains_as_it_evaluates(name: str, held: Held) -> None:
    assert broken(held(program(name, clauses="pure")))["pure"] == "E0706"
    assert "pure" not in broken(held(program(name)))


def test_a_block_that_remembers_its_calls_is_named(held: Held) -> None:
    assert broken(held(program("Remembers")))["random"] == "E0709"


@pytest.mark.parametrize(
    ("name", "clause", "skipped"),
    [
        ("ReadsPadding", "depends on padding", {"padding"}),
        ("Mixes", "depends on batch", {"batch"}),
        ("Detaches", "stops gradients", {"gradients"}),
        ("DrawsInTraining", "random in training", set()),
        ("DrawsAlways", "random", {"padding", "batch"}),
    ],
)
def test_a_clause_exempts_a_block_from_what_it_admits(name: str, clause: str, skipped: set[str], held: Held) -> None:
    verdicts = held(program(name, clauses=clause))
    assert broken(verdicts) == {}
    assert {title for title, one in verdicts.items() if clause in one.skipped} == skipped


def test_a_clause_admits_nothing_but_what_it_says(held: Held) -> None:
    assert broken(held(program("DrawsAlways", clauses="random in training"))) == {"random": "E0709"}
    assert broken(held(program("DrawsFromNumpy", clauses="random"))) == {"random": "E0709"}
    assert broken(held(program("Mixes", clauses="depends on padding"))) == {"batch": "E0705"}


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("TwoSteps", {}),
        ("PonderOfPositions", {"result": "E0713"}),
        ("CountsInFloats", {"result": "E0713"}),
        ("AcceptsAll", {"halting": "E0714"}),
        ("Revives", {"halting": "E0714"}),
        ("LooksAside", {"reads": "E0703"}),
        ("PaysForever", {"halting": "E0715"}),
        ("PondersPadding", {"padding": "E0704"}),
    ],
)
def test_a_halting_block_is_held_to_what_a_tally_promises(name: str, codes: dict[str, str], held: Held) -> None:
    assert broken(held(program(name, "pointwise", signature=HALTING))) == codes


def test_a_mistake_stands_at_its_clause_with_the_input_that_shows_it(held: Held) -> None:
    mistake = held(program("Mirror", "causal"))["reads"].mistake
    assert mistake is not None
    assert mistake.span.text == "x causal"
    assert mistake.label.startswith("position 0 of the result changes by ")
    assert mistake.label.endswith("with position 1 of `x`")
    assert mistake.labels[0].text == "seen with d = 4, n = 2, seed = 0"


def test_nothing_else_is_tested_of_a_block_whose_result_is_wrong(held: Held) -> None:
    verdicts = held(program("Narrow"))
    assert {one.skipped for name, one in verdicts.items() if name != "result"} == {"the result is wrong already"}
