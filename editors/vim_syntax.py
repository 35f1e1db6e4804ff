"""Writes the patterns of `archlang.editor.highlighting` as a syntax file of Vim."""

import re
from collections.abc import Iterator

from archlang.editor.highlighting import Rule, rules

_LINKS = {
    "documentation": "SpecialComment",
    "comment": "Comment",
    "string": "String",
    "number": "Number",
    "keyword": "Keyword",
    "constant": "Boolean",
    "type": "Type",
    "definition": "Structure",
    "function": "Function",
    "name": "NONE",
    "operator": "Operator",
    "punctuation": "Delimiter",
}
# How far before a word Vim looks, in bytes.
_LOOK_BEHIND = 200
_PIECE = re.compile(
    r"(?P<group>\[(?:\\.|[^\]\\])+\])|(?P<look>\(\?[=!])|(?P<plain>\(\?:)|(?P<open>\()|(?P<close>\))|(?P<escape>\\.)"
    r"|(?P<sign>[<>=@%&~{}])|(?P<other>.)"
)


def vim_syntax() -> str:
    """Returns the text of `syntax/arch.vim`."""
    # Vim prefers what is defined last.
    matches = [line for rule in reversed(rules()) for line in _matches(rule)]
    links = [f"highlight default link {_group(kind)} {link}" for kind, link in _LINKS.items() if link != "NONE"]
    return "\n".join(
        [
            '" Written by `python -m editors` from the grammar of archlang.',
            'if exists("b:current_syntax")',
            "  finish",
            "endif",
            "",
            "syntax case match",
            *matches,
            "",
            *links,
            "",
            'let b:current_syntax = "arch"',
            "",
        ]
    )


def _group(kind: str) -> str:
    return f"arch{kind.capitalize()}"


def _matches(rule: Rule) -> Iterator[str]:
    """Yields a line for each group of a rule, which matches between the text before and after it."""
    parts = [*_parts(rule.pattern)]
    kinds = iter(rule.kinds)
    for index, (part, is_group) in enumerate(parts):
        kind = next(kinds) if is_group else "space"
        if kind == "space":
            continue
        before = "".join(part for part, _ in parts[:index])
        after = "".join(part for part, _ in parts[index + 1 :])
        if before:
            before = f"%({before if before.startswith(('^', '%([')) else _word_start(before)})@{_LOOK_BEHIND}<="
        if after:
            after = f"%({after})@="
        spelling = " contains=@Spell" if kind in ("comment", "documentation") else ""
        yield f"syntax match {_group(kind)} '\\v{before}{part}{after}'{spelling}"


def _word_start(pattern: str) -> str:
    """Returns a pattern that does not begin within a word."""
    return f"<{pattern}" if re.match(r"(?:%\()+[a-z]", pattern) else pattern


def _parts(pattern: str) -> Iterator[tuple[str, bool]]:
    """Yields the groups of a pattern and what is between them, in Vim's notation, and whether each is a group."""
    part, ends = "", [""]
    for piece in _PIECE.finditer(pattern):
        if piece["open"] and len(ends) == 1:
            if part:
                yield part, False
            part = ""
        if piece["look"]:
            ends.append(")@=" if piece[0] == "(?=" else ")@!")
        elif piece["plain"] or piece["open"]:
            ends.append(")")
        part += ends.pop() if piece["close"] else _translated(piece)
        if piece["close"] and len(ends) == 1 and _opened_at(pattern, piece.start()):
            yield part, True
            part = ""
    if part:
        yield part, False


def _opened_at(pattern: str, end: int) -> bool:
    """Returns whether the bracket that ends at a place of a pattern begins a group."""
    begins = []
    for piece in _PIECE.finditer(pattern, 0, end):
        if piece["open"] or piece["plain"] or piece["look"]:
            begins.append(bool(piece["open"]))
        elif piece["close"]:
            begins.pop()
    return begins[-1]


def _translated(piece: re.Match[str]) -> str:
    if piece["group"]:
        return piece[0].replace(r"\[", "[")
    if piece["look"] or piece["plain"] or piece["open"]:
        return "%("
    if piece["sign"]:
        return f"\\{piece[0]}"
    return ">" if piece[0] == r"\b" else piece[0]
