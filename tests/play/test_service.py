"""The playground's answers: mistakes, pictures, costs and changes of a text, and nothing of the machine's files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from archlang.play.service import BrowserDocument, Service

GOOD = "model m[d = 8](x: tokens[n]) -> logits[classes] {\n    return embed[d](x) |> last |> linear[classes]\n}\n"
READS_A_FILE = 'recipe r { task file[path = "../words.tsv"] model m train adamw[steps = 1] }\n' + GOOD
BAD = GOOD.replace("embed", "embd")


@pytest.fixture(scope="module")
def service() -> Service:
    return Service("/nowhere")


def ask(service: Service, method: str, **fields: object) -> Any:  # Any: JSON
    """Returns the result of a request, as the page gets it."""
    answer = json.loads(json.dumps(service.answer({"method": method, **fields})))
    assert answer.keys() == {"result"}, answer
    return answer["result"]


def test_every_shipped_recipe_and_model_is_offered(service: Service) -> None:
    programs = {program["name"]: program for program in ask(service, "start")["programs"]}
    assert {"gutlb", "papers/ndr/table1", "models/panm"} <= programs.keys()
    assert programs["gutlb"]["summary"].startswith("Gated Universal Transformer Latent Bottleneck")
    assert programs["gutlb"]["items"] == "models gutlb, transformer; recipes gutlb, baseline; table lengths"
    text = ask(service, "program", name="gutlb")["text"]
    assert ask(service, "check", text=text)["diagnostics"] == []


def test_a_program_that_uses_files_beside_it_names_them(service: Service) -> None:
    program = ask(service, "program", name="papers/panm/table1")
    assert ask(service, "check", **program)["diagnostics"] == []


def test_a_mistake_has_its_place_its_code_and_its_remedy(service: Service) -> None:
    (mistake,) = ask(service, "check", text=BAD)["diagnostics"]
    assert (BAD[mistake["from"] : mistake["to"]], mistake["line"]) == ("embd", 2)
    assert (mistake["code"], mistake["severity"]) == ("E0202", "error")
    assert mistake["remedy"] == "did you mean `embed`?"
    (edit,) = mistake["edits"]
    assert edit["title"] == "Replace `embd` by `embed`"
    assert edit["changes"] == [{"from": mistake["from"], "to": mistake["to"], "text": "embed"}]
    assert "unknown block" in ask(service, "explain", code=mistake["code"])["text"]
    assert ask(service, "explain", code="E9999")["text"] == ""


def test_offsets_count_units_of_utf_16(service: Service) -> None:
    text = "# 🙂\n" + BAD
    (mistake,) = ask(service, "check", text=text)["diagnostics"]
    units = text.encode("utf-16-le")
    assert units[2 * mistake["from"] : 2 * mistake["to"]].decode("utf-16-le") == "embd"
    text = "# 🙂\n" + GOOD
    hover = ask(service, "hover", text=text, offset=text.index("embed") + 2)
    assert "embed" in hover["text"]
    assert hover["from"] == text.index("embed") + 1


def test_half_of_a_character_is_an_unknown_character(service: Service) -> None:
    (mistake,) = ask(service, "check", text=GOOD + "\ud83d")["diagnostics"]
    assert mistake["code"] == "E0102"


def test_a_model_has_a_picture_and_its_costs_by_length(service: Service) -> None:
    drawn = ask(service, "draw", text=GOOD, lengths=[4, 8])
    assert drawn["choices"] == ["model m"]
    assert drawn["svg"].startswith("<svg")
    assert "<style" not in drawn["svg"]
    assert drawn["costs"]["parameters"] == 32 * 8 + 8 * 10 + 10
    note = drawn["costs"]["note"]
    assert note.startswith(
        "With vocab = 32 and classes = 10. Reads: its own position. m computes functions in uniform TC⁰ only"
    )
    assert note.endswith("`archlang card` has the conditions.")
    assert [each["length"] for each in drawn["costs"]["lengths"]] == [4, 8]


def test_the_changes_since_an_earlier_text_are_named_and_drawn(service: Service) -> None:
    drawn = ask(service, "draw", text=GOOD.replace("d = 8", "d = 16"), lengths=[], before=GOOD, together=True)
    assert "embed: d 8 → 16" in drawn["changes"]
    assert drawn["svg"].count("model m") >= 2


def test_a_program_that_cannot_be_drawn_says_why(service: Service) -> None:
    assert ask(service, "draw", text="", lengths=[])["reason"] == "The program has no model and no block yet."
    reason = ask(service, "draw", text=BAD, lengths=[])["reason"]
    assert reason == "Model m cannot be drawn: unknown block `embd`."


def test_a_picture_names_the_lines_of_the_program_and_no_file(service: Service) -> None:
    svg = ask(service, "draw", text=GOOD, lengths=[])["svg"]
    assert "line 2" in svg
    assert "/nowhere" not in svg


def test_the_first_part_that_can_be_drawn_is_shown(service: Service) -> None:
    with_choice = "block b[k: symbol](x: seq[n, d]) -> seq[n, d] {\n    return residual[k](x)\n}\n"
    assert "svg" not in ask(service, "draw", text=with_choice, lengths=[])
    drawn = ask(service, "draw", text=with_choice + GOOD.replace("model m", "block g"), lengths=[])
    assert drawn["shown"] == "block g"
    assert "svg" in drawn


def test_completion_and_formatting_answer(service: Service) -> None:
    at = GOOD.index("embed") + 3
    assert "embed" in [option["word"] for option in ask(service, "complete", text=GOOD, offset=at)["options"]]
    assert ask(service, "format", text=GOOD.replace("    ", ""))["text"] == GOOD
    assert ask(service, "format", text="model {")["text"] is None


def test_sure_corrections_are_made_at_once(service: Service) -> None:
    assert ask(service, "correct", text=BAD.replace("linear", "linaer"))["text"] == GOOD
    assert ask(service, "correct", text=GOOD)["text"] is None


def test_a_program_reads_no_file_beside_it_or_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "secret.arch").write_text("this is secret")
    (tmp_path / "empty").mkdir()
    service = Service(str(tmp_path / "empty"))
    for used in ("../secret.arch", str(tmp_path / "secret.arch")):
        answer = ask(service, "check", text=f'use "{used}"\n')
        assert answer["diagnostics"][0]["code"] in ("E0208", "E0233")
        assert "this is secret" not in json.dumps(answer)


def test_a_text_that_is_too_large_is_named_with_the_limit(service: Service) -> None:
    error: Any = service.answer({"method": "check", "text": "x" * 1_000_001})["error"]
    assert error["message"] == "the text has 1_000_001 characters; at most 1_000_000 are checked"
    assert "split" in error["remedy"]


def test_a_file_outside_of_the_page_has_a_remedy_within_the_page(service: Service) -> None:
    for text, code, remedy in (
        ('use "../mine.arch"\n', "E0233", "paste its blocks into the program"),
        ('use "./mine.arch"\n', "E0208", "paste its blocks into the program"),
        (READS_A_FILE, "E0316", "check the program as a file with `archlang check`"),
    ):
        mistakes = {each["code"]: each for each in ask(service, "check", text=text)["diagnostics"]}
        assert mistakes[code]["remedy"].startswith(remedy)


def test_an_offset_of_the_browser_within_a_character_is_its_end(service: Service) -> None:
    program = BrowserDocument("a🙂b", "/nowhere/program.arch")
    assert [program.into(offset) for offset in (0, 1, 2, 3, 4, 99)] == [0, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"method": 3}, {"method": "check"}, {"method": "check", "text": None}, {"method": "explode"},
        {"method": "program", "name": "../../etc/passwd"}, {"method": "check", "text": "", "beside": "/etc/passwd"},
        {"method": "hover", "text": GOOD, "offset": -1}, {"method": "hover", "text": GOOD, "offset": True},
        {"method": "draw", "text": GOOD, "lengths": [0]}, {"method": "draw", "text": GOOD, "lengths": [1] * 99},
    ],
    ids=repr,
)  # fmt: skip
def test_a_request_that_means_nothing_is_an_error_with_a_remedy(service: Service, fields: Mapping[str, object]) -> None:
    error: Any = service.answer(fields)["error"]
    assert error["message"]
    assert error["remedy"]


def test_an_offset_behind_the_end_is_the_end(service: Service) -> None:
    assert ask(service, "hover", text=GOOD, offset=10**9) == {}


def test_markup_in_a_program_is_text_in_its_picture(service: Service) -> None:
    text = GOOD.replace("\n}", "  # <script>alert(1)</script>\n}")
    assert "<script" not in ask(service, "draw", text=text, lengths=[])["svg"]
