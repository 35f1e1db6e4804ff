"""From text to tree; every mistake of a file is found in one reading."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from archlang.diagnostics import Diagnostic, ProgramError
from archlang.source import Source, Span
from archlang.syntax.build import Build
from archlang.syntax.comments import Comments
from archlang.syntax.grammar import grammar
from archlang.syntax.tree import Name, Program, Setting

_COMMENT = re.compile(r'"[^"\n]*"|(#[^\r\n]*)')


def read(path: str | Path) -> Source:
    return Source(str(path), Path(path).read_text(encoding="utf-8"))


def parse(source: Source) -> Program:
    program, found = parse_tolerantly(source)
    if found:
        raise ProgramError(found)
    return program


def _run(source: Source, start: str) -> tuple[Any, Build, tuple[Diagnostic, ...]]:
    from lark import UnexpectedInput

    comments = Comments(source.text)
    for m in _COMMENT.finditer(source.text):
        if m.group(1):
            comments.add(m.start(), m.group())
    build = Build(source, comments)
    lark = grammar()
    run = lark.parse_interactive(source.text, start=start)
    run.parser_state.parse_conf.callbacks = lark._parse_tree_builder.create_callback(build)
    try:
        return run.resume_parse(), build, ()
    except UnexpectedInput as error:
        place = getattr(error, "pos_in_stream", None) or 0
        return None, build, (Diagnostic("E0101", f"unexpected text: {str(error).splitlines()[0]}", Span(source, place, place + 1)),)


def parse_tolerantly(source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
    items, build, found = _run(source, "start")
    return build.program(items or ()), found + tuple(build.mistakes)


def parse_setting(name: str, text: str) -> tuple[Setting | None, tuple[Diagnostic, ...]]:
    source = Source(f"--set {name}", text)
    value, build, found = _run(source, "expression")
    whole = Span(source, 0, len(text))
    if found:
        return None, found
    return Setting(path=Name(parts=tuple(name.split(".")), span=whole), value=value, span=whole), ()
