"""The edits of a diagnostic correct the program of its page, and nothing else goes wrong."""

import re
from pathlib import Path

import pytest

import archlang
from archlang.errors import Diagnostic
from archlang.errors.edits import apply_edits
from archlang.plan.check import check, check_text

PAGES = Path(archlang.__file__).parent / "errors" / "pages"
SAFE = (
    "E0101", "E0102", "E0202", "E0209", "E0212", "E0214", "E0224", "E0231", "E0235", "E0301", "E0306",
    "E0434", "E0502", "E0508", "E0604", "E0617", "E0621", "E0622",
)  # fmt: skip
UNSAFE = (
    "E0103", "E0104", "E0105", "E0213", "E0217", "E0223", "E0234", "E0302", "E0311",
    "E0312", "E0401", "E0402", "E0404", "E0405", "E0406", "E0407",
    "E0420", "E0430", "E0436", "E0501", "E0504", "E0505", "E0510", "E0601", "E0602", "E0605", "E0607",
    "E0610", "E0616", "E0619", "E0620", "E0632", "E0636", "E0638", "W0201", "W0204",
)  # fmt: skip
LAYERS = "block encoder_layer[heads: int, ff: int](h: seq[n, d]) -> seq[n, d] { return attention[heads](h) * ff }\n"
USED = {"E0105": {"layers.arch": LAYERS}}


def failing_program(code: str) -> str:
    (program, *_) = re.findall(r"^```arch\n(.*?)^```", (PAGES / f"{code}.md").read_text(encoding="utf-8"), re.M | re.S)
    assert isinstance(program, str)
    return program


def corrected(file: Path, mistake: Diagnostic) -> None:
    file.write_text(apply_edits(file.read_text(encoding="utf-8"), mistake.edits), encoding="utf-8")


@pytest.mark.parametrize("code", SAFE + UNSAFE)
def test_the_edits_of_a_page_correct_its_program(code: str, tmp_path: Path) -> None:
    for name, text in USED.get(code, {}).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    file = tmp_path / f"{code}.arch"
    file.write_text(failing_program(code), encoding="utf-8")
    (mistake,) = check(file)
    assert mistake.edits
    assert mistake.is_safe == (code in SAFE)
    corrected(file, mistake)
    for other in check(file):
        # The same mistake at another place, as a type is written for an input and for the result.
        assert (other.code, code) == ("E0408", "E0408")
        corrected(file, other)
        assert check(file) == ()


CALL = "block b(h: seq[n, d]) -> seq[n, d] {{\n    return {}\n}}\n"


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        ("E0101", CALL.format("norm(h) if 1 = 1 else h"), CALL.format("norm(h) if 1 == 1 else h")),
        ("E0102", CALL.format("h ÷ norm(h)"), CALL.format("h / norm(h)")),
        ("E0103", CALL.format("norm(h)")[:-2], CALL.format("norm(h)")),
        ("E0104", CALL.format("norm(h]"), CALL.format("norm(h)")),
        (
            "E0202",
            CALL.format("gain_norm(h)"),
            "use archlang.models.block_recurrent_shared_keys\n\n" + CALL.format("gain_norm(h)"),
        ),
        ("E0201", CALL.format("norm(hh)"), CALL.format("norm(h)")),
        ("E0211", "use archlang.models.pamm\n", "use archlang.models.panm\n"),
        ("E0303", CALL.format("attention[heads = 1.0](h)"), CALL.format("attention[heads = 1](h)")),
        ("E0303", CALL.format('attention[1, position = "none"](h)'), CALL.format("attention[1, position = none](h)")),
        ("E0304", CALL.format("attention[1, position = rotari](h)"), CALL.format("attention[1, position = rotary](h)")),
        ("E0313", CALL.format("attention[1, causal = True](h)"), CALL.format("attention[1, causal = true](h)")),
    ],
)
def test_other_mistakes_of_a_code_have_edits_too(code: str, before: str, after: str) -> None:
    mistakes = [mistake for mistake in check_text(before, "b.arch") if mistake.code == code]
    assert mistakes
    assert apply_edits(before, [edit for mistake in mistakes for edit in mistake.edits]) == after


def test_a_static_that_is_set_is_not_meant_by_another_name() -> None:
    (mistake,) = check_text(CALL.format("attention[heads = 1, head = 2](h)"), "b.arch")
    assert (mistake.code, mistake.is_safe) == ("E0301", False)
    assert "heads" not in [edit.text for edit in mistake.edits]
