"""`archlang show`: a program at any stage of its way to torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console


def show(
    file: Annotated[Path, typer.Argument(help="The program.", show_default=False)],
    tree: Annotated[bool, typer.Option("--tree", help="The tree of the text.")] = False,
    graph: Annotated[bool, typer.Option("--graph", help="The typed graph (the default).")] = False,
    torch: Annotated[bool, typer.Option("--torch", help="The generated Python.")] = False,
    passes: Annotated[bool, typer.Option("--passes", help="The passes, and what each does to the graph.")] = False,
    no_passes: Annotated[bool, typer.Option("--no-passes", help="The graph before the passes.")] = False,
    without: Annotated[
        list[str] | None, typer.Option("--without", help="A pass to leave out, by its name; may be repeated.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="A model or block of the file.")] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", "-r", help="A recipe of the file.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="A static, as in `model.d=128`.")] = None,
) -> None:
    """Print a program as a tree, a typed graph, or the torch program that is made of it.

    The first recipe of the file gives the statics, or the one that is named; with `--model` the model's own do.

    Example: archlang show recipes/gutlb.arch --torch
    """
    from archlang.cli.settings import parse_sets
    from archlang.compile import named_graph

    if tree + graph + torch + passes > 1:
        console.fail("`--tree`, `--graph`, `--passes` and `--torch` are different stages", "choose one of them", code=2)
    from archlang.passes.pipeline import NAMES, PASSES, optimize

    left_out = tuple(without or ())
    for name in left_out:
        if name not in NAMES:
            console.fail(f"no pass that can be left out is called `{name}`", f"they are {', '.join(NAMES)}", code=2)
    if tree:
        from rich.pretty import pretty_repr

        from archlang.syntax.parser import parse, read

        print(pretty_repr(parse(read(file)), max_width=120))
        return
    found = named_graph(file, model, recipe, parse_sets(sets))
    if torch:
        from archlang.backend.lower.text import print_torch
        from archlang.compile import build

        print(print_torch(build(found, without=left_out)))
        return
    if passes:
        for step in PASSES:
            if step.name in left_out:
                done = "left out"
            elif step.run is None:
                done = "see `--torch`"
            else:
                before = sum(1 for _ in found.region.walk())
                found = step.run(found)
                done = f"{before} nodes to {sum(1 for _ in found.region.walk())}"
            console.out.print(f"{step.name:<12}{step.says}: {done}", markup=False, highlight=False)
        return
    from archlang.graph.text import print_graph

    if not no_passes:
        found = optimize(found, left_out)
    print(print_graph(found), end="")
