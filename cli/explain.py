"""`archlang explain`: the documentation of an error or warning."""

from typing import Annotated

import typer

from archlang.cli import completion, console


def explain(
    code: Annotated[
        str | None,
        typer.Argument(help="A code such as E0401. Without a code, list all.", autocompletion=completion.codes),
    ] = None,
) -> None:
    """Explain an error or warning by its code, with a failing and a corrected program.

    Example: archlang explain E0401
    """
    from rich.text import Text

    from archlang.diagnostics import codes
    from archlang.diagnostics.names import did_you_mean

    titles = codes.titles()
    if code is None:
        for name, title in titles.items():
            console.out.print(Text.assemble((name, "bold"), f"  {title}"))
        return
    code_upper = code.upper()
    if code_upper not in titles:
        near = did_you_mean(code_upper, titles)
        remedy = f"did you mean {near}?" if near else "`archlang explain` lists all codes"
        console.fail(f"there is no code {code}", remedy, code=2)
    page = codes.explain(code_upper)
    if console.out.is_terminal:
        from rich.markdown import Markdown

        console.out.print(Markdown(page))
    else:
        console.out.write(page)
