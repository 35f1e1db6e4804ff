"""From text to tree; every mistake of a file is found in one reading."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from archlang.diagnostics import Diagnostic, ProgramError
from archlang.source import Source, Span
from archlang.syntax import tree as t
from archlang.syntax.build import Build

_GRAMMAR = Path(__file__).with_name("arch.lark")
_COMMENT = re.compile(r'"[^"\n]*"|(#[^\n]*)')
_ITEM = re.compile(r"^(?:use|block|extern|model|recipe)\b", re.MULTILINE)


@cache
def _lark() -> Lark:
    return Lark(
        _GRAMMAR.read_text(encoding="utf-8"),
        parser="lalr",
        start=["program", "expression"],
        maybe_placeholders=True,
        propagate_positions=True,
    )


def read(path: str | Path) -> Source:
    return Source(str(path), Path(path).read_text(encoding="utf-8"))


def parse(source: Source) -> t.Program:
    program, found = parse_tolerantly(source)
    if found:
        raise ProgramError(found)
    return program


def parse_tolerantly(source: Source) -> tuple[t.Program, tuple[Diagnostic, ...]]:
    try:
        program = Build(source).transform(_lark().parse(source.text, start="program"))
    except UnexpectedInput as error:
        raise ProgramError([_wrong(error, source)]) from None
    return _documented(program, source), ()


def parse_setting(name: str, text: str) -> tuple[t.Setting | None, tuple[Diagnostic, ...]]:
    source = Source(f"--set {name}", text)
    whole = Span(source, 0, len(text))
    value = Build(source).transform(_lark().parse(text, start="expression"))
    return t.Setting(path=t.Name(parts=tuple(name.split(".")), span=whole), value=value, span=whole), ()


def _wrong(error: UnexpectedInput, source: Source) -> Diagnostic:
    start = getattr(error, "pos_in_stream", None) or 0
    return Diagnostic("E0101", f"unexpected text: {str(error).splitlines()[0]}", Span(source, start, start + 1))


def _documented(program: t.Program, source: Source) -> t.Program:
    from dataclasses import replace
    items = []
    for item in program.items:
        lines = source.text[: item.span.start].split("\n")
        lines.pop()
        docs: list[str] = []
        while lines and (lines[-1].startswith("##") or (not lines[-1].strip() and not docs)):
            line = lines.pop()
            if line.strip():
                docs.insert(0, line[2:].removeprefix(" "))
        items.append(replace(item, documentation=tuple(docs)))
    return replace(program, items=tuple(items))
