"""Toy blocks that violate one property each, reported at the clause that declares it.

The blocks of the pages of errors (`test_pages`) are not repeated here."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from archlang.contracts import Verdict, hold, program_blocks
from archlang.plugins import Plugins

Judge = Callable[[str], dict[str, Verdict]]
TOYS = Path(__file__).with_name("toys.py")
SEQUENCE = 'extern block toy(x: seq[n, d]) -> seq[n, d] reads x {manner} {clauses} python "toys:{name}"\n'
VECTOR = 'extern block toy(x: seq[n, d]) -> vec[d] reads x {manner} {clauses} python "toys:{name}"\n'
LONGER = 'extern block toy(x: seq[n, d]) -> seq[n + 1, d] reads x {manner} {clauses} python "toys:{name}"\n'
HALTING = 'extern block toy(state: seq[n, d]) -> prob[n] reads state {manner} {clauses} python "toys:{name}"\n'


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Returns the verdicts of the only block of a program, by property; its class is in toys.py."""

    def judge(text: str) -> dict[str, Verdict]:
        file = tmp_path / "toy.arch"
        file.write_text(text, encoding="utf-8")
        (block,) = program_blocks(file)
        return {verdict.property: verdict for verdict in hold(block, plugins=Plugins.read([TOYS]))}

    return judge


def program(name: str, manner: str = "full", clauses: str = "", signature: str = SEQUENCE) -> str:
    return signature.format(name=name, manner=manner, clauses=clauses)


def broken(verdicts: dict[str, Verdict]) -> dict[str, str]:
    """Returns the code of each mistake by property."""
    return {name: verdict.mistake.code for name, verdict in verdicts.items() if verdict.mistake is not None}


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
def test_reads_rejects_manners_that_the_block_exceeds(name: str, manner: str, judge: Judge) -> None:
    assert broken(judge(program(name, manner))) == ({} if manner in READS[name] else {"reads": "E0703"})


def test_only_first_and_length_restrict_a_result_without_positions(judge: Judge) -> None:
    for manner in ("pointwise", "causal", "mirrored", "full"):
        assert broken(judge(program("TotalVector", manner, signature=VECTOR))) == {}
    assert broken(judge(program("TotalVector", "first", signature=VECTOR))) == {"reads": "E0703"}
    assert broken(judge(program("OpeningVector", "first", signature=VECTOR))) == {}
    assert broken(judge(program("OpeningVector", "length", signature=VECTOR))) == {"reads": "E0703"}


def test_an_input_without_a_manner_is_read_fully(judge: Judge) -> None:
    verdicts = judge('extern block toy(x: seq[n, d]) -> seq[n, d] python "toys:Total"\n')
    assert broken(verdicts) == {}
    assert verdicts["reads"].skipped == "every input is read fully"


@pytest.mark.parametrize(
    ("name", "property_", "code"),
    [
        ("Raises", "result", "E0701"),
        ("RaisesAtOnce", "result", "E0701"),
        ("Integers", "result", "E0702"),
        ("FirstFour", "result", "E0702"),
        ("Doubles", "numbers", "E0702"),
        ("CountsPadding", "padding", "E0704"),
        ("MindsMask", "padding", "E0704"),
        ("NormalizesBatch", "batch", "E0705"),
        ("WithoutShape", "result", "E0701"),
        ("WrongBackward", "gradients", "E0707"),
        ("Detaches", "gradients", "E0707"),
        ("DetachesWeight", "gradients", "E0707"),
        ("DrawsAlways", "random", "E0709"),
        ("AddsNoise", "random", "E0709"),
        ("Remembers", "random", "E0709"),
        ("DrawsFromNumpy", "random", "E0709"),
        ("StartsByNumpy", "seeds", "E0710"),
        ("SeedsItself", "seeds", "E0710"),
        ("RefusesCopies", "saving", "E0711"),
        ("Overflows", "numbers", "E0712"),
    ],
)
def test_a_block_that_violates_one_property_is_reported_for_it_only(
    name: str, property_: str, code: str, judge: Judge
) -> None:
    assert broken(judge(program(name))) == {property_: code}


def test_an_error_of_the_class_is_at_its_line(judge: Judge) -> None:
    mistake = judge(program("Raises"))["result"].mistake
    assert mistake is not None
    line = next(i for i, text in enumerate(TOYS.read_text().splitlines(), 1) if 'raise ValueError("' in text)
    assert re.search(rf"raises ValueError: .*, at \S*toys\.py:{line}$", mistake.message)


def test_recorded_attention_takes_the_mask_of_its_keys(judge: Judge) -> None:
    verdicts = judge(program("ShowsNoMask", clauses="records attention"))
    assert broken(verdicts) == {"records": "E0718"}
    mistake = verdicts["records"].mistake
    assert mistake is not None
    assert "`mask_n`" in mistake.remedy


def test_gradients_without_positions_must_be_finite(judge: Judge) -> None:
    assert broken(judge(program("RootOfNothing", signature=VECTOR))) == {"gradients": "E0707"}


@pytest.mark.parametrize(
    ("name", "codes"),
    [("Grows", {}), ("GrowsTooLittle", {"result": "E0708"}), ("GrowsWithoutMask", {"result": "E0702"})],
)
def test_a_new_length_must_equal_the_type(name: str, codes: dict[str, str], judge: Judge) -> None:
    assert broken(judge(program(name, signature=LONGER))) == codes


@pytest.mark.parametrize("name", ["Buffered", "TrainsOtherwise"])
def test_a_pure_block_has_no_state_and_no_training_mode(name: str, judge: Judge) -> None:
    assert broken(judge(program(name, clauses="pure")))["pure"] == "E0706"
    assert "pure" not in broken(judge(program(name)))


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
def test_a_clause_exempts_a_block_from_its_property(name: str, clause: str, skipped: set[str], judge: Judge) -> None:
    verdicts = judge(program(name, clauses=clause))
    assert broken(verdicts) == {}
    assert {title for title, verdict in verdicts.items() if clause in verdict.skipped} == skipped


def test_a_clause_exempts_from_no_other_property(judge: Judge) -> None:
    assert broken(judge(program("DrawsAlways", clauses="random in training"))) == {"random": "E0709"}
    assert broken(judge(program("DrawsFromNumpy", clauses="random"))) == {"random": "E0709"}
    assert broken(judge(program("Mixes", clauses="depends on padding"))) == {"batch": "E0705"}


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("TwoSteps", {}),
        ("CountsInFloats", {"result": "E0713"}),
        ("Revives", {"halting": "E0714"}),
        ("LooksAside", {"reads": "E0703"}),
        ("RemainsOfSamples", {"result": "E0713"}),
        ("KeepsHalving", {"halting": "E0715"}),
        ("PondersPadding", {"padding": "E0704"}),
    ],
)
def test_a_halting_block_must_return_consistent_states(name: str, codes: dict[str, str], judge: Judge) -> None:
    assert broken(judge(program(name, "pointwise", signature=HALTING))) == codes


def test_a_mistake_points_at_its_clause_and_shows_the_failing_input(judge: Judge) -> None:
    mistake = judge(program("Mirror", "causal"))["reads"].mistake
    assert mistake is not None
    assert mistake.span.text == "x causal"
    assert mistake.label.startswith("position 0 of the result changes by ")
    assert mistake.label.endswith("with position 1 of `x`")
    assert mistake.labels[0].text == "seen with d = 4, n = 2, seed = 0"


def test_a_class_that_cannot_be_constructed_is_named_once(judge: Judge) -> None:
    mistake = judge(program("IsNotStarted"))["result"].mistake
    assert mistake is not None
    assert mistake.message == (
        "`toy`: cannot be used: the constructor of toys:IsNotStarted does not call super().__init__()"
    )


def test_a_comparison_that_undeclared_noise_breaks_says_so(judge: Judge) -> None:
    assert judge(program("AddsNoise"))["batch"].skipped == "the property `random` is broken"


def test_a_wrong_result_skips_all_other_properties(judge: Judge) -> None:
    verdicts = judge(program("Narrow"))
    assert {verdict.skipped for name, verdict in verdicts.items() if name != "result"} == {
        "the property `result` is broken"
    }


def test_more_nonzero_features_than_stated_are_reported(judge: Judge) -> None:
    assert broken(judge(program("Own", clauses="costs nonzero = 4"))) == {"costs": "E0716"}
    assert broken(judge(program("Own", clauses="costs nonzero = d"))) == {}
