"""`archlang show`: a program at any stage of compilation."""

from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console
from archlang.cli.settings import Allow, Plugin, ProgramOrInput, parse_sets
from archlang.cli.standard_input import text_or_path


def show(
    file: ProgramOrInput,
    tree: Annotated[bool, typer.Option("--tree", help="The syntax tree.")] = False,
    graph: Annotated[bool, typer.Option("--graph", help="The typed graph (the default).")] = False,
    torch: Annotated[bool, typer.Option("--torch", help="Plain torch code, as `export` writes it.")] = False,
    lowered: Annotated[bool, typer.Option("--lowered", help="The torch code that runs, after the passes.")] = False,
    passes: Annotated[bool, typer.Option("--passes", help="The passes, and how many nodes each leaves.")] = False,
    no_passes: Annotated[bool, typer.Option("--no-passes", help="The graph before the passes run.")] = False,
    without: Annotated[
        list[str] | None, typer.Option("--without", help="The name of a pass to skip; may be repeated.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="A model or block of the file.")] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", "-r", help="A recipe of the file.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="A static, such as `model.d=128`.")] = None,
    plugin: Plugin = None,
    allow: Allow = None,
) -> None:
    """Print a program as a syntax tree, a typed graph, or torch code.

    The statics are those of the first recipe, or of `--recipe`. With `--model`, they are the model's defaults.
    Only `--torch` and `--lowered` run Python of your own.

    Example: archlang show recipes/gutlb.arch --torch
    """
    from archlang.compile import compile_named
    from archlang.passes.pipeline import NAMES, PASSES, optimize
    from archlang.plugins import Plugins

    if tree + graph + torch + lowered + passes > 1:
        stages = "`--tree`, `--graph`, `--passes`, `--lowered` and `--torch`"
        console.fail(f"{stages} are different stages", "choose one of them", code=2)
    excluded = tuple(without or ())
    for name in excluded:
        if name not in NAMES:
            console.fail(f"unknown optional pass `{name}`", f"the optional passes are {', '.join(NAMES)}", code=2)
    program = text_or_path(file)
    if tree:
        from rich.pretty import pretty_repr

        from archlang.syntax.parser import parse, read

        console.out.write(pretty_repr(parse(read(program) if isinstance(program, Path) else program), max_width=120))
        return
    settings, used = parse_sets(sets), allow or ()
    if torch:
        from archlang.compile import load_named
        from archlang.export.plain.file import plain_text

        module = load_named(program, model, recipe, settings, plugins=plugin or (), allow=used, without=excluded)
        console.out.write(plain_text(module))
        return
    shown = compile_named(program, model, recipe, settings, used)
    plugins = Plugins.read(plugin or (), file.parent)
    if lowered:
        from archlang.backend.lower.text import print_torch
        from archlang.compile import build

        console.out.write(print_torch(build(shown, plugins, without=excluded)))
        return
    if passes:
        for step in PASSES:
            if step.name in excluded:
                done = "skipped"
            elif step.run is None:
                done = "see `--lowered`"
            else:
                before = sum(1 for _ in shown.region.walk())
                shown = step.run(shown)
                done = f"{before} nodes to {sum(1 for _ in shown.region.walk())}"
            console.out.print(f"{step.name:<14}{step.effect}: {done}")
        return
    from archlang.graph.text import print_graph

    if not no_passes:
        shown = optimize(shown, excluded)
    console.out.write(print_graph(shown))
