"""`archlang explain`: the long form of a mistake."""

from __future__ import annotations

from typing import Annotated

import typer

from archlang.cli import console


def explain(
    code: Annotated[str | None, typer.Argument(help="A code such as E0401; without one, all are listed.")] = None,
) -> None:
    """Explain a mistake by its code, with a program that has it and one that has not.

    Example: archlang explain E0401
    """
    from rich.text import Text

    from archlang.diagnostics import codes
    from archlang.diagnostics.names import did_you_mean

    known = codes.titles()
    if code is None:
        for name, title in known.items():
            console.out.print(Text.assemble((name, "bold"), f"  {title}"))
        return
    wanted = code.upper()
    if wanted not in known:
        near = did_you_mean(wanted, known)
        remedy = f"did you mean {near}?" if near else "`archlang explain` lists them all"
        console.fail(f"there is no code {code}", remedy, code=2)
    page = codes.explain(wanted)
    if console.out.is_terminal:
        from rich.markdown import Markdown

        console.out.print(Markdown(page))
    else:
        print(page, end="")
