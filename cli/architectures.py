"""`archlang show`, `viz`, `summary`, `card` and `diff`: what an architecture is, looks like, costs, can do, and differs
in."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import arguments, console
from archlang.cli.arguments import flag, output, parse_sets, program_argument, remat_of, text_or_path

if TYPE_CHECKING:
    from archlang.backend.measured_costs import MeasuredCosts
    from archlang.graph.graph import Graph

_FLOAT_BYTES = 4
_DEFAULT_LENGTH = 64  # positions


def show(
    file: Annotated[Path | None, program_argument("The program; `-` for standard input.", may_be_input=True)] = None,
    tree: Annotated[bool, flag("--tree", "The syntax tree.")] = False,
    graph: Annotated[bool, flag("--graph", "The typed graph (the default).")] = False,
    torch: Annotated[bool, flag("--torch", "Plain torch code, as `export` writes it.")] = False,
    lowered: Annotated[bool, flag("--lowered", "The torch code that runs, after the passes.")] = False,
    passes: Annotated[
        bool, flag("--passes", "The passes, how many nodes each leaves, and how scans and maps run.")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--grammar",
            metavar="gbnf|lark",
            help="No program, but the grammar for constrained decoding.",
            callback=arguments.matching("gbnf|lark", "one of gbnf, lark"),
        ),
    ] = None,
    without: Annotated[list[str] | None, typer.Option(help="The name of a pass to skip; may be repeated.")] = None,
    model: arguments.Model = None,
    recipe: arguments.Recipe = None,
    sets: arguments.Sets = None,
    plugin: arguments.Plugin = None,
    allow: arguments.Allow = None,
) -> None:
    """Print a program as a syntax tree, a typed graph, or torch code.

    The statics are those of the first recipe, or of `--recipe`. With `--model`, they are the model's defaults.
    Only `--torch` and `--lowered` run Python of your own.

    Example: archlang show recipes/gutlb.arch --torch
    """
    from archlang.compile import build, compile_named, load_named
    from archlang.graph.passes.pipeline import NAMES, optimize
    from archlang.plugins import Plugins

    if form is not None and file is None:
        from archlang.syntax.decoding_grammar import decoding_grammar

        console.out.write(decoding_grammar(form))
        return
    if form is not None or file is None:
        console.fail("`show` prints a program, or with `--grammar` a grammar", "name a file or a form of it", code=2)
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
        from archlang.export.plain.file import plain_text

        module = load_named(program, model, recipe, settings, plugins=plugin or (), allow=used, without=excluded)
        console.out.write(plain_text(module))
        return
    shown = compile_named(program, model, recipe, settings, used)
    if passes:
        _print_passes(shown, excluded)
    if lowered or passes:
        from archlang.backend.lower.text import map_forms, print_torch, scan_forms

        module = build(shown, Plugins.read(plugin or (), file.parent), without=excluded)
        code = module.program.code
        for text in [print_torch(module)] if lowered else (*scan_forms(code), *map_forms(code)):
            console.out.write(text)
    else:
        from archlang.graph.text import print_graph

        console.out.write(print_graph(optimize(shown, excluded)))


def _print_passes(graph: Graph, excluded: tuple[str, ...]) -> None:
    from archlang.graph.passes.pipeline import PASSES

    for step in PASSES:
        done = ": skipped" if step.name in excluded else ""
        if step.run is not None and not done:
            before = sum(1 for _ in graph.region.walk())
            graph = step.run(graph)
            done = f": {before} nodes to {sum(1 for _ in graph.region.walk())}"
        console.out.print(f"{step.name:<16}{step.effect}{done}")


def viz(
    file: arguments.ProgramOrInput,
    out: Annotated[Path | None, output("The picture: .html, .svg, .png or .mmd.")] = None,
    model: arguments.Model = None,
    recipe: arguments.Recipe = None,
    sets: arguments.Sets = None,
    plugin: arguments.Plugin = None,
    allow: arguments.Allow = None,
    compact: Annotated[
        bool, flag("--compact", "Names alone, as a figure of one column needs: no types, statics and costs.")
    ] = False,
    fold: Annotated[
        list[str] | None, typer.Option(help="A block or loop to draw without its content; may be repeated.")
    ] = None,
) -> None:
    """Draw an architecture: blocks show their content, a loop is one box, a badge marks shared weights.

    Without `--out`, print a tree. An .html page also has the card, as `archlang card` prints it.

    Example: archlang viz recipes/gutlb.arch -o gutlb.html
    """
    from archlang.compile import compile_named
    from archlang.errors.names import listed, suggest
    from archlang.graph.card import card
    from archlang.plugins import Plugins
    from archlang.reports.pictures.formats import FORMATS, print_tree, write_picture
    from archlang.reports.pictures.picture import draw

    console.require_suffix(out, FORMATS, "a picture")
    Plugins.read(plugin or ())  # no Python is needed to draw
    graph = compile_named(text_or_path(file), model, recipe, parse_sets(sets), allow or ())
    picture = draw(graph)
    titles = {box.title for box in picture.walk() if box.boxes and box is not picture}
    if unknown := [title for title in fold or () if title not in titles]:
        others = f"what can fold is {listed(titles)}" if titles else "no box of it has content"
        console.fail(f"the picture has no box `{unknown[0]}` with content", suggest(unknown[0], titles, others), code=2)
    picture = picture.folded(fold or ())
    picture = picture.compact() if compact else picture
    if out is None:
        console.out.write(print_tree(picture))
        return
    write_picture(picture, out, lambda: card(graph).text())
    console.out.write(str(out))


def summary(
    file: arguments.ProgramOrInput,
    batch: Annotated[int, typer.Option("--batch", "-b", min=1, help="Samples per batch.")] = 1,
    length: Annotated[list[int] | None, typer.Option("--length", "-n", min=1, help="Positions per sample.")] = None,
    depth: Annotated[list[int] | None, typer.Option(min=0, help="Steps of loops that share weights.")] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Also run a random batch, and count what it costs.")
    ] = False,
    devices: Annotated[int, typer.Option(min=1, help="Devices that train the recipe.")] = 1,
    remat: arguments.Remat = None,
    model: arguments.Model = None,
    recipe: arguments.Recipe = None,
    sets: arguments.Sets = None,
    plugin: arguments.Plugin = None,
    allow: arguments.Allow = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Count the parameters of an architecture, and the FLOPs and activations of a batch.

    Loops run to their limits, or `--depth` steps if that is less. Of experts, only those count whose weights may differ
    from 0. FLOPs are those of matrix products, two for each multiplication. Activations are about as many float32
    numbers as training keeps until backward. For a recipe, a line says how many bytes its training needs on each of
    `--devices`, with its own batches. If tokens can be decoded, a line says what the next one needs of those before:
    keys, values and states; other lines say how each state of a recurrence moves. `--measure` counts what the compiled
    model runs, where the estimate counts the page as it is written: they differ by fused operations, scans over all
    positions at once, and maps by rows. It also says what training needs as it runs, which scans are computed at once,
    and what prevents others.

    Example: archlang summary recipes/gutlb.arch --length 64 --length 1024
    """
    from archlang.compile import compile_named, plan_named
    from archlang.graph.decoding import decoding_state
    from archlang.graph.summary import summarize
    from archlang.graph.transitions import describe, transitions
    from archlang.plugins import Plugins
    from archlang.train.memory import memory_by_devices
    from archlang.train.refusals import refusal

    plugins = Plugins.read(plugin or ())  # no Python is needed to count, but to run
    named = text_or_path(file), model, recipe, parse_sets(sets), allow or ()
    plan = plan_named(*named)
    if plan is not None and (error := refusal(plan, count=devices)):
        raise error
    graph = compile_named(*named) if plan is None else plan.graph
    state = decoding_state(graph)
    depths: list[int | None] = [*depth] if depth else [None]
    summaries = [
        (steps, summarize(graph, positions, steps)) for positions in length or [_DEFAULT_LENGTH] for steps in depths
    ]
    moves = describe(transitions(graph))
    measured: dict[int, MeasuredCosts] = {}
    scans: list[str] = []
    if measure:
        from archlang.backend.lower.text import scan_forms
        from archlang.backend.measured_costs import measure_costs
        from archlang.compile import build
        from archlang.train.runs.cost import measured_activations

        module = build(graph, plugins)
        measured = {costs.length: measure_costs(module, costs.length, batch) for _, costs in summaries}
        scans = [*scan_forms(module.program.code)]
    together, needs = remat_of(remat), []
    for positions in length or [_DEFAULT_LENGTH]:
        activations = measured_activations(plan, positions, remat=together) if measure and plan is not None else None
        need = {} if plan is None else memory_by_devices(plan, positions, devices, remat=together, measure=activations)
        needs.append(need)
    if as_json:
        facts = [
            {
                "model": costs.model, "length": costs.length, "depth": steps, "batch": batch, "unique": costs.unique,
                "executed": costs.executed, "flops": costs.flops * batch,
                "idle_flops": costs.idle_flops * batch, "activation_bytes": _FLOAT_BYTES * costs.activations * batch,
                "unknown": costs.unknown, "uncounted": costs.uncounted, "unmeasured": costs.unmeasured,
                "state": state and str(state),
                "recurrences": moves,
                "measured": measured.get(costs.length),
                "scans": scans,
                "training_bytes": {name: asdict(memory) | {"total": memory.total} for name, memory in need.items()},
            }
            for (steps, costs), need in zip(summaries, (need for need in needs for _ in depths), strict=True)
        ]  # fmt: skip
        console.out.write_json(facts)
        return
    first = summaries[0][1]
    console.out.write(
        f"{first.model}: {first.unique:,} parameters, {first.executed:,} executed at length {first.length}"
    )
    for steps, costs in summaries:
        at_depth = "" if steps is None else f", depth {steps}"
        megabytes = _FLOAT_BYTES * costs.activations * batch / 1e6
        console.out.write(
            f"length {costs.length}{at_depth}, batch {batch}: {costs.flops * batch:,} FLOPs, "
            f"{megabytes:,.1f} MB of activations"
        )
        if costs.idle_flops:
            total = (costs.flops + costs.idle_flops) * batch
            console.out.write(f"  all experts, also those with a weight of 0: {total:,} FLOPs")
    for positions, run in measured.items():
        console.out.write(
            f"measured at length {positions}, batch {batch}: {run['flops']:,} FLOPs, "
            f"{run['activation_bytes'] / 1e6:,.1f} MB of activations"
        )
    for positions, need in zip(length or [_DEFAULT_LENGTH], needs, strict=True):
        for name, memory in need.items():
            console.out.write(f"training at length {positions} on {name}: {memory}")
    if state is not None:
        console.out.write(f"the next token needs {state} numbers of the positions before it")
    for line in [*moves, *scans]:
        console.out.write(line)
    missing = {"parameters": first.unknown, "FLOPs": first.uncounted, "activations": first.unmeasured}
    for what, blocks in missing.items():
        if blocks:
            reason = "a size is unknown, or the signature does not state them"
            console.out.write(f"The sums do not include the {what} of {', '.join(blocks)}: {reason}.")
    if first.unknown and recipe is None and graph.unknown_sizes:
        console.out.write(_remedy(graph))


def card(
    file: arguments.ProgramOrInput,
    model: arguments.Model = None,
    recipe: arguments.Recipe = None,
    sets: arguments.Sets = None,
    allow: arguments.Allow = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Print the costs of an architecture, its memory, and the theorems that apply to models like it.

    Costs are polynomials in the length n of a sample. Bounds of transitions hold for all weights and inputs, and may be
    wider than what a model reaches. Each statement has its conditions and its source.

    Example: archlang card recipes/s3.arch
    """
    from archlang.compile import compile_named
    from archlang.graph.card import card as card_of

    graph = compile_named(text_or_path(file), model, recipe, parse_sets(sets), allow or ())
    made = card_of(graph)
    if as_json:
        console.out.write_json(made.facts())
        return
    console.out.print(made.text(), markup=False, highlight=False)
    if made.uncounted and graph.unknown_sizes:
        console.out.write(_remedy(graph))


def _remedy(graph: Graph) -> str:
    """Returns how to give a graph its unknown sizes, which a task sets for a model, and the inputs for a block."""
    from archlang.elaborate.binding import TASK_SIZES

    settings = " ".join(f"--set {size}={10 if size in TASK_SIZES else 16}" for size in graph.unknown_sizes)
    if graph.word == "model":
        return f"`--recipe NAME` or `{settings}` sets sizes that a task sets."
    return f"`{settings}` sets sizes that the inputs have."


def diff(
    before: arguments.ProgramOrInput,
    after: Annotated[Path, program_argument("The program to compare it with, or `-`.", may_be_input=True)],
    model: arguments.Model = None,
    model_before: Annotated[str | None, typer.Option(help="A model or block of the first program.")] = None,
    recipe: arguments.Recipe = None,
    sets: arguments.Sets = None,
    allow: arguments.Allow = None,
    out: Annotated[Path | None, output("A picture of both: .html, .svg, .png or .mmd.")] = None,
) -> None:
    """Print what changed between two architectures. With `--out`, also draw both side by side.

    The models are those of the first recipes. `--model`, `--recipe` and `--set` apply to the second program.

    Example: archlang diff recipes/ndr.arch recipes/ndr.arch --recipe baseline -o diff.html
    """
    if before == after == arguments.STANDARD_INPUT:
        console.fail("both programs are `-`", "name a file for one of them", code=2)
    from archlang.compile import compile_named
    from archlang.reports.pictures.changes import describe_changes
    from archlang.reports.pictures.formats import FORMATS, write_picture

    console.require_suffix(out, FORMATS, "a picture")
    old = compile_named(text_or_path(before), model_before, None, {}, allow or ())
    new = compile_named(text_or_path(after), model, recipe, parse_sets(sets), allow or ())
    changes = describe_changes(old, new) or ("nothing changed",)
    console.out.write("\n".join(changes))
    if out is not None:
        from archlang.reports.pictures.changes import side_by_side
        from archlang.reports.pictures.picture import draw

        write_picture(side_by_side(draw(old), draw(new), changes), out)
        console.out.write(str(out))
