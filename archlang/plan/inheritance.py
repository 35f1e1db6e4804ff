"""A recipe `b from a` with everything that it takes from its base."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from archlang.errors import Diagnostic, Report
from archlang.errors.effort import spend
from archlang.plan import mistakes
from archlang.plan.recipe import call_of
from archlang.syntax.tree import AtTest, Choice, Claim, Missing, Recipe, Search, StaticArgument, Variation, Vary

Part = Choice | AtTest | Vary | Search | Claim | Missing
# The order in which a recipe's lines stand.
_ORDER = ("task", "model", "train", AtTest, Vary, Search, Claim, Missing)


def with_base(
    recipe: Recipe,
    recipes: Mapping[str, Recipe],
    known: dict[str, tuple[Recipe, int]],
    other_items: Mapping[str, str],
    static_names: Callable[[Choice], Sequence[str] | None],
    report: Report,
) -> tuple[Recipe, bool]:
    """Returns a recipe with the lines that it takes from its base, and without `from`, and whether its bases are known
    and without syntax mistakes; reports an unknown base, and recipes that are based on each other.

    A line `task`, `model` or `train` that names the same as the base's takes the statics that it does not set. Another
    line replaces every line of its kind, except that `vary` keeps the base's seeds if it has none. A static that a line
    sets is not taken from the base's lines `vary` and `search`. Claims belong to the recipe that makes them, and are
    not taken.

    Args:
        known: Recipes with the lines of their bases, and the steps of joining them, by name; more are added.
        other_items: What the other items of the file are, as `a model`, by their names.
        static_names: Returns the names of the statics of a line's task, model or optimizer; None if it is unknown."""
    if not recipe.name:
        return recipe, False
    chain, places = [recipe], {recipe.name: 0}
    while (name := chain[-1].base) is not None and name not in known:
        spend()
        base = recipes.get(name)
        if base is None or name in places:
            span, kind = chain[-1].base_span or chain[-1].name_span, other_items.get(name)
            if base is not None:
                report(_cycle(chain[places[name] :]))
            elif kind is not None:
                report(mistakes.not_a_recipe(span, name, kind))
            elif name:
                report(mistakes.unknown_recipe(span, name, set(recipes) - {recipe.name}, None))
            return replace(recipe, base=None), False
        places[name] = len(chain)
        chain.append(base)
    joined, steps = known[name] if name is not None else (chain.pop(), 0)
    for link in reversed(chain):
        is_whole = joined.is_whole and link.is_whole
        parts = _joined(joined, link, static_names)
        joined, steps = replace(link, parts=parts, is_whole=is_whole), steps + 1 + len(link.parts)
        if recipes.get(link.name) is link:
            known[link.name] = joined, steps
    spend(steps)
    # The joined lines keep whether each line of the bases could be read.
    return replace(recipe, base=None, parts=joined.parts), joined.is_whole


def _joined(
    base_recipe: Recipe, recipe: Recipe, static_names: Callable[[Choice], Sequence[str] | None]
) -> tuple[Part, ...]:
    own_kinds = {_kind(part) for part in recipe.parts}
    own, base = recipe.parts, base_recipe.parts
    choices = {part.word: part for part in base if isinstance(part, Choice)}
    own_paths = {path for part in own if isinstance(part, Choice) for path in _paths(part, static_names(part) or ())}
    parts: list[Part] = []
    for part in base:
        if isinstance(part, Missing) or (_kind(part) not in own_kinds and not isinstance(part, Claim)):
            parts += _without(part, own_paths)
    for part in own:
        if isinstance(part, Choice) and part.word in choices:
            part = _with_statics(choices[part.word], part, static_names(part))
        parts.append(part)
    seeds = _seeds(base)
    if Vary in own_kinds and seeds and not _seeds(own):
        parts.append(Vary(variations=seeds, span=seeds[0].span))
    return tuple(sorted(parts, key=lambda part: _ORDER.index(_kind(part))))


def _without(part: Part, paths: Set[str]) -> Iterator[Part]:
    """Yields a part without what `vary` or `search` says about some statics; nothing if it says nothing else."""
    if isinstance(part, Vary):
        varied = tuple(variation for variation in part.variations if variation.path.text not in paths)
        if varied:
            yield replace(part, variations=varied)
    elif isinstance(part, Search):
        sought = tuple(sought for sought in part.sought if sought.path.text not in paths)
        if sought:
            yield replace(part, sought=sought)
    else:
        yield part


def _paths(choice: Choice, names: Sequence[str]) -> Iterator[str]:
    return (f"{choice.word}.{static.name}" for static in _named(call_of(choice).statics, names) or ())


def _cycle(cycle: Sequence[Recipe]) -> Diagnostic:
    """The diagnostic of recipes that are based on each other: the same one from whichever recipe it is found."""
    first = min(range(len(cycle)), key=lambda place: cycle[place].name_span.start)
    rotated = [*cycle[first:], *cycle[:first]]
    last = rotated[-1]
    return mistakes.cycle_of_recipes(last.base_span or last.name_span, [link.name for link in [*rotated, rotated[0]]])


def _seeds(parts: Sequence[Part]) -> tuple[Variation, ...]:
    variations = (variation for part in parts if isinstance(part, Vary) for variation in part.variations)
    return tuple(variation for variation in variations if variation.path.text == "seed")


def _kind(part: Part) -> str | type[Part]:
    return part.word if isinstance(part, Choice) else type(part)


def _with_statics(base: Choice, own: Choice, names: Sequence[str] | None) -> Choice:
    """A line with the statics of the base's line that it does not set, if both name the same task, model or
    optimizer."""
    base_statics = call_of(base).statics
    if call_of(base).callee.text != call_of(own).callee.text or names is None or not base_statics:
        return own
    by_name = [_named(statics, names) for statics in (base_statics, call_of(own).statics)]
    if None in by_name:
        return own  # more statics than there are, which is reported
    inherited, own_statics = ([] if statics is None else statics for statics in by_name)
    own_names = {static.name for static in own_statics}
    statics = (*(static for static in inherited if static.name not in own_names), *own_statics)
    return replace(own, value=replace(call_of(own), statics=statics))


def _named(statics: Sequence[StaticArgument], names: Sequence[str]) -> list[StaticArgument] | None:
    """Statics with a name each; None if there are more without one than `names`."""
    named = []
    for index, static in enumerate(statics):
        if static.name is None and index >= len(names):
            return None
        named.append(static if static.name is not None else replace(static, name=names[index]))
    return named
