"""Diagnostics as JSON."""

import json

from archlang.errors import Diagnostic, Edit, Label, Source, Span
from archlang.errors.exchange import to_json

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


def test_edits_are_in_json() -> None:
    mistake = MISTAKE.with_edits(Edit(Span(SOURCE, 4, 7), "zwei"), is_safe=True)
    (shown,) = json.loads(to_json([mistake]))
    assert shown["safe"]
    (edit,) = shown["edits"]
    assert (edit["file"], edit["line"], edit["start"], edit["end"], edit["text"]) == (
        "a folder/x.arch", 2, 4, 7, "zwei",
    )  # fmt: skip


def test_lone_surrogates_become_json() -> None:
    source = Source("\udcff", "\udcff\0")
    json.loads(to_json([Diagnostic("E0101", "\udcff", Span(source, 0, 1))]).encode("utf-8"))
