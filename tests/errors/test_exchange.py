"""Diagnostics as JSON and SARIF."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from archlang.errors import Diagnostic, Edit, Label, Source, Span
from archlang.errors.exchange import to_json, to_sarif

SOURCE = Source("a folder/x.arch", "one\ntwo ± three\n")
MISTAKE = Diagnostic(
    "E0103", "it is wrong", Span(SOURCE, 4, 9), "here", (Label(Span(SOURCE, 0, 3), "there"),), "mend it"
)
WARNING = Diagnostic("W0201", "it is odd", Span(SOURCE, 0, 13))


def test_json_has_every_fact() -> None:
    assert json.loads(to_json([MISTAKE])) == [
        {
            "code": "E0103",
            "severity": "error",
            "message": "it is wrong",
            "file": "a folder/x.arch",
            "line": 2,
            "column": 1,
            "end_line": 2,
            "end_column": 6,
            "start": 4,
            "end": 9,
            "label": "here",
            "labels": [
                {
                    "file": "a folder/x.arch", "line": 1, "column": 1, "end_line": 1, "end_column": 4, "start": 0,
                    "end": 3, "text": "there",
                }
            ],
            "remedy": "mend it",
            "edits": [],
            "safe": False,
        }
    ]  # fmt: skip
    assert json.loads(to_json([])) == []
    assert json.loads(to_json([WARNING]))[0]["severity"] == "warning"


def test_edits_are_in_json_and_fixes_in_sarif() -> None:
    mistake = MISTAKE.with_edits(Edit(Span(SOURCE, 4, 7), "zwei"), is_safe=True)
    (shown,) = json.loads(to_json([mistake]))
    assert shown["safe"]
    (edit,) = shown["edits"]
    assert (edit["file"], edit["line"], edit["start"], edit["end"], edit["text"]) == (
        "a folder/x.arch", 2, 4, 7, "zwei",
    )  # fmt: skip
    (fix,) = run(mistake)["results"][0]["fixes"]
    assert fix["description"] == {"text": "mend it"}
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"] == {"uri": "a%20folder/x.arch"}
    (replacement,) = change["replacements"]
    assert replacement["deletedRegion"]["charOffset"] == 4
    assert replacement["insertedContent"] == {"text": "zwei"}


def test_lone_surrogates_become_json() -> None:
    source = Source("\udcff", "\udcff\0")
    for form in (to_json, to_sarif):
        text = form([Diagnostic("E0101", "\udcff", Span(source, 0, 1))])
        json.loads(text.encode("utf-8"))


def run(*mistakes: Diagnostic) -> dict[str, Any]:  # Any: JSON
    log = json.loads(to_sarif(mistakes))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run_,) = log["runs"]
    assert isinstance(run_, dict)
    return run_


def test_sarif_has_the_required_fields() -> None:
    sarif_run = run(MISTAKE, WARNING, MISTAKE)
    rules = sarif_run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["E0103", "W0201"]
    assert rules[0]["shortDescription"]["text"] == "unclosed bracket"
    assert rules[0]["help"]["text"].startswith("# E0103")
    assert sarif_run["columnKind"] == "unicodeCodePoints"
    first, second, _ = sarif_run["results"]
    assert (first["ruleId"], first["ruleIndex"], first["level"]) == ("E0103", 0, "error")
    assert (second["ruleId"], second["ruleIndex"], second["level"]) == ("W0201", 1, "warning")
    assert first["message"]["text"] == "it is wrong. mend it"
    (location,) = first["locations"]
    region = location["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"], region["endLine"], region["endColumn"]) == (2, 1, 2, 6)
    assert (region["charOffset"], region["charLength"]) == (4, 5)
    (related,) = first["relatedLocations"]
    assert (related["id"], related["message"]["text"]) == (1, "there")
    assert "relatedLocations" not in second


def test_paths_become_uris() -> None:
    def uri(path: str) -> str:
        result = run(Diagnostic("E0101", "m", Span(Source(path, "a"), 0, 1)))["results"][0]
        location = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert isinstance(location, str)
        return location

    assert uri("a folder/x#1.arch") == "a%20folder/x%231.arch"
    absolute = uri(str(Path("/tmp/ä.arch").absolute()))
    assert urlparse(absolute).scheme == "file"
    assert unquote(absolute).endswith("/ä.arch")


def test_sarif_without_mistakes_is_valid() -> None:
    assert run()["results"] == []
