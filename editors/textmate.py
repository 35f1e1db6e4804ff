"""Writes the patterns of `archlang.editor.highlighting` as a TextMate grammar."""

import json

from archlang.editor.highlighting import Rule, rules

_SCOPES = {
    "documentation": "comment.line.documentation.arch",
    "comment": "comment.line.number-sign.arch",
    "string": "string.quoted.double.arch",
    "number": "constant.numeric.arch",
    "keyword": "keyword.control.arch",
    "constant": "constant.language.arch",
    "type": "support.type.arch",
    "definition": "entity.name.type.arch",
    "function": "entity.name.function.arch",
    "name": "variable.other.arch",
    "operator": "keyword.operator.arch",
    "punctuation": "punctuation.arch",
}


def textmate_grammar() -> str:
    """Returns the text of `syntaxes/arch.tmLanguage.json`."""
    grammar = {
        "information_for_contributors": "Written by `python -m editors` from the grammar of archlang.",
        "name": "archlang",
        "scopeName": "source.arch",
        "fileTypes": ["arch"],
        "patterns": [_pattern(rule) for rule in rules() if rule.kinds != ("space",)],
    }
    return json.dumps(grammar, indent=2, ensure_ascii=False) + "\n"


def _pattern(rule: Rule) -> dict[str, object]:
    captures = {str(number): {"name": _SCOPES[kind]} for number, kind in enumerate(rule.kinds, 1) if kind != "space"}
    return {"match": rule.pattern, "captures": captures}
