"""Exports diagnostics as JSON, and as SARIF for services that show findings next to code."""

from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from archlang.errors import codes
from archlang.errors.diagnostic import Diagnostic
from archlang.errors.source import Span
from archlang.errors.visible import json_text

_Json = dict[str, Any]  # Any: JSON


def to_json(diagnostics: Iterable[Diagnostic]) -> str:
    """Returns a JSON list with an object for each diagnostic. Its `edits` correct the mistake together: each replaces a
    place by a text. `check --fix` makes those that are `safe`.

    Lines and columns count from 1, offsets from 0. All count characters, and ends are excluded."""
    return json_text(
        [
            {
                "code": diagnostic.code,
                "severity": diagnostic.severity,
                "message": diagnostic.message,
                **_place(diagnostic.span),
                "label": diagnostic.label,
                "labels": [{**_place(label.span), "text": label.text} for label in diagnostic.labels],
                "remedy": diagnostic.remedy,
                "edits": [{**_place(edit.span), "text": edit.text} for edit in diagnostic.edits],
                "safe": diagnostic.is_safe,
            }
            for diagnostic in diagnostics
        ]
    )


def to_sarif(diagnostics: Iterable[Diagnostic]) -> str:
    """Returns a SARIF 2.1.0 log with one run; the help of each rule is the page of its code."""
    results = list(diagnostics)
    rules = sorted({diagnostic.code for diagnostic in results})
    run = {
        "tool": {"driver": {"name": "archlang", "rules": [_rule(code) for code in rules]}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(diagnostic, rules.index(diagnostic.code)) for diagnostic in results],
    }
    return json_text({"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]})


def _place(span: Span) -> _Json:
    end_line, end_column = span.source.position(span.end)
    return {
        "file": span.source.path,
        "line": span.line,
        "column": span.column,
        "end_line": end_line,
        "end_column": end_column,
        "start": span.start,
        "end": span.end,
    }


def _rule(code: str) -> _Json:
    if code not in codes.titles():
        return {"id": code}
    return {
        "id": code,
        "shortDescription": {"text": codes.titles()[code]},
        "help": {"text": codes.explain(code), "markdown": codes.explain(code)},
    }


def _result(diagnostic: Diagnostic, rule: int) -> _Json:
    text = ". ".join(part for part in (diagnostic.message, diagnostic.remedy) if part)
    result: _Json = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": diagnostic.severity,
        "message": {"text": text},
        "locations": [_location(diagnostic.span, diagnostic.label)],
    }
    if diagnostic.labels:
        result["relatedLocations"] = [
            {"id": index, **_location(label.span, label.text)} for index, label in enumerate(diagnostic.labels, 1)
        ]
    if diagnostic.edits:
        result["fixes"] = [_fix(diagnostic)]
    return result


def _fix(diagnostic: Diagnostic) -> _Json:
    changes: dict[str, list[_Json]] = {}
    for edit in diagnostic.edits:
        replacement = {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}}
        changes.setdefault(_uri(edit.span.source.path), []).append(replacement)
    fix: _Json = {
        "artifactChanges": [
            {"artifactLocation": {"uri": uri}, "replacements": replacements} for uri, replacements in changes.items()
        ]
    }
    return {"description": {"text": diagnostic.remedy}, **fix} if diagnostic.remedy else fix


def _location(span: Span, text: str) -> _Json:
    location: _Json = {
        "physicalLocation": {"artifactLocation": {"uri": _uri(span.source.path)}, "region": _region(span)}
    }
    if text:
        location["message"] = {"text": text}
    return location


def _region(span: Span) -> _Json:
    end_line, end_column = span.source.position(span.end)
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": end_line,
        "endColumn": end_column,
        "charOffset": span.start,
        "charLength": span.end - span.start,
    }


def _uri(path: str) -> str:
    path = path.encode("utf-8", "replace").decode("utf-8")
    absolute = PurePath(path).is_absolute()
    return Path(path).as_uri() if absolute else quote(PurePath(path).as_posix())
