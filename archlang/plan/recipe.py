"""A recipe with the declarations of its task, model and optimizer, and with what it takes from its base."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from archlang.elaborate.static_arguments import evaluator_of, plain, static_value
from archlang.elaborate.task_pages import check_declared_page
from archlang.errors import Diagnostic, Report, Span, ignore
from archlang.graph.operations import LOSSES
from archlang.plan import mistakes
from archlang.resolve import library
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.evaluate import Evaluator
from archlang.resolve.resolve import Declaration, ResolvedFile, prelude
from archlang.resolve.values import Value
from archlang.syntax import tree
from archlang.syntax.tree import AtTest, Choice, Claim, CostBounds, Recipe, Search, StaticArgument, Variation, Vary
from archlang.types.statics import StaticValue

_EXAMPLES = {"task": "task ctl", "model": "model gut", "train": "train adamw[lr = 3e-4, steps = 1000]"}


@dataclass(frozen=True)
class RecipeParts:
    """The lines of a recipe. `choices` has the lines `task`, `model` and `train` by their first word."""

    recipe: tree.Recipe
    choices: Mapping[str, tree.Choice]
    at_test: tuple[tree.Setting, ...]
    vary: tuple[tree.Variation, ...]
    search: tuple[tree.Sought, ...]
    bounds: tuple[tree.CostBound, ...]
    claims: tuple[tree.Claim, ...]


def read_parts(recipe: tree.Recipe, report: Report) -> RecipeParts:
    """Returns the lines of a recipe; reports repeated and missing lines `task`, `model` and `train`, the latter if the
    recipe is whole."""
    choices: dict[str, tree.Choice] = {}
    repeated: set[str] = set()
    at_test: list[tree.Setting] = []
    vary: list[tree.Variation] = []
    search: list[tree.Sought] = []
    bounds: list[tree.CostBound] = []
    claims: list[tree.Claim] = []
    for part in recipe.parts:
        match part:
            case tree.Choice(word=word):
                if word in choices:
                    report(mistakes.part_twice(part.span, word, choices[word].span))
                    repeated.add(word)
                choices.setdefault(word, part)
            case tree.AtTest(settings=settings):
                at_test.extend(settings)
            case tree.Vary(variations=variations):
                vary.extend(variations)
            case tree.Search(sought=sought):
                search.extend(sought)
            case tree.CostBounds(bounds=more):
                bounds.extend(more)
            case tree.Claim():
                claims.append(part)
    for word, example in _EXAMPLES.items():
        if recipe.is_whole and word not in choices:
            report(mistakes.part_missing(recipe.name_span, recipe.name, word, example))
    # Which of two lines is meant is unknown, so neither is checked.
    choices = {word: choice for word, choice in choices.items() if word not in repeated}
    return RecipeParts(recipe, choices, tuple(at_test), tuple(vary), tuple(search), tuple(bounds), tuple(claims))


SEED = tree.StaticParameter(name="seed", kind="int", span=None)  # type: ignore[arg-type]  # no program declares it


@dataclass(frozen=True)
class ResolvedRecipe:
    """A recipe with what its names stand for. `declarations` has the task, the model and the optimizer under `task`,
    `model` and `train`; None where the recipe names none, or an unknown name."""

    file: ResolvedFile
    parts: RecipeParts
    declarations: Mapping[str, Declaration | None]
    report: Report

    @property
    def name(self) -> str:
        return self.parts.recipe.name

    @cached_property
    def parameters(self) -> Mapping[str, tree.StaticParameter]:
        """Every static of the recipe by its dotted path, such as `model.d`, and `seed`."""
        statics = {
            f"{word}.{parameter.name}": parameter
            for word, declaration in self.declarations.items()
            if declaration is not None
            for parameter in declaration.item.signature.statics
        }
        return {**statics, "seed": SEED}

    def parameter(self, path: str) -> tree.StaticParameter | None:
        """The static of a dotted path, or one of a free name, as `weight_parameter` says; None for an unknown path."""
        return self.parameters.get(path) or weight_parameter(path)

    def evaluator(self) -> Evaluator:
        """An evaluator of expressions that stand in the recipe."""
        return evaluator_of(self.file, self.report)

    def value(self, parameter: tree.StaticParameter, expression: tree.Expression) -> Value:
        """The value of an expression that the recipe gives to one of its `parameters`."""
        return static_value(parameter, expression, self.evaluator(), self.file, self.report)

    def static(self, path: str, expression: tree.Expression) -> StaticValue | None:
        """The value of an expression at a path as Python receives it; None for an unknown path, and after a mistake."""
        parameter = self.parameter(path)
        return None if parameter is None else plain(self.value(parameter, expression))

    def has_static(self, path: tree.Name, also: Iterable[str] = ()) -> bool:
        """Returns whether a path names a static of the recipe; reports an unknown one. Paths that begin with a word of
        `also`, or belong to an unknown task, model or optimizer, count as known."""
        word = path.parts[0]
        belongs_to_unknown = word in self.declarations and self.declarations[word] is None
        if self.parameter(path.text) is not None or belongs_to_unknown or word in also:
            return True
        choice, inherited = self.parts.choices.get(word), self._inherited_paths.get(path.text)
        if choice is not None and inherited is not None and self.parts.recipe.span.contains(choice.span):
            line, span = inherited
            self.report(
                mistakes.static_lost(
                    choice.value.span, self.name, path.text, line, span, word, path.text.partition(".")[2]
                )
            )
        else:
            self.report(name_mistakes.unknown_path(path.span, path.text, self.parameters))
        return False

    @cached_property
    def _inherited_paths(self) -> Mapping[str, tuple[str, Span]]:
        """The paths that lines of a base set, each with the word of the line and its place."""
        parts = self.parts
        lines = (("test", parts.at_test), ("vary", parts.vary), ("search", parts.search))
        return {
            part.path.text: (word, part.path.span)
            for word, settings in lines
            for part in settings
            if not parts.recipe.span.contains(part.span)
        }


def report_repeated(
    settings: Iterable[tree.Setting | tree.Variation | tree.Sought | tree.Name], report: Report
) -> None:
    """Reports the settings whose paths, and the paths that, occur a second time."""
    first: dict[str, Span] = {}
    for setting in settings:
        path = setting if isinstance(setting, tree.Name) else setting.path
        if first.setdefault(path.text, setting.span) is not setting.span:
            report(name_mistakes.static_set_twice(setting.span, path.text, first[path.text]))


def resolve_recipe(resolved: ResolvedFile, parts: RecipeParts, report: Report) -> ResolvedRecipe:
    """Finds the task, the model and the optimizer that a recipe names, and reports unknown ones."""
    declarations = {
        word: None if (choice := parts.choices.get(word)) is None else _find(resolved, choice, report)
        for word in ("task", "train", "model")
    }
    return ResolvedRecipe(resolved, parts, declarations, report)


def static_names(resolved: ResolvedFile, choice: tree.Choice) -> list[str] | None:
    """The names of the statics of a line's task, model or optimizer; None if it is unknown."""
    declaration = _find(resolved, choice, ignore)
    return None if declaration is None else [static.name for static in declaration.item.signature.statics]


def _find(resolved: ResolvedFile, choice: tree.Choice, report: Report) -> Declaration | None:
    """What a line `task`, `model` or `train` names, of the file or shipped; None, and a report, if it is unknown."""
    name, is_task = call_of(choice).callee, choice.word == "task"
    if name.text in resolved.unparsed:
        return None
    if choice.word == "model":
        declaration = resolved.find(name.text)
        if declaration is not None and _is_model(declaration):
            return declaration
        models = [name for name, candidate in {**resolved.used, **resolved.own}.items() if _is_model(candidate)]
        report(name_mistakes.unknown_model(name.span, name.text, models, is_block=declaration is not None))
        return None
    own = resolved.tasks if is_task else resolved.optimizers
    if (item := own.get(name.text)) is not None:
        # archlang's own signatures check the statics of its tasks; a program's signature could let any value through.
        if is_task and item.python.startswith("archlang."):
            report(name_mistakes.class_of_archlang(item.name_span, item.name, item.python))
            return None
        # `check` reports an optimizer without the settings.
        is_usable = item.body is None or check_declared_page(Declaration(item, resolved), report)
        is_usable = is_usable if is_task else is_complete_optimizer(item)
        return Declaration(library.with_settings(item), resolved) if is_usable else None
    shipped = library.task(name.text) if is_task else library.optimizer(name.text)
    if shipped is None:
        names = {*own, *(library.task_names() if is_task else library.optimizer_names())}
        unknown = name_mistakes.unknown_task if is_task else name_mistakes.unknown_optimizer
        report(unknown(name.span, name.text, names))
    return None if shipped is None else prelude(shipped)


def is_complete_optimizer(item: tree.Extern) -> bool:
    """Whether an optimizer of a program includes the training settings, has a learning rate and names a class outside
    archlang."""
    has_rate = any((static.name, static.kind) == ("lr", "float") for static in item.signature.statics)
    includes = [name.text for name in item.includes]
    return includes == ["training"] and has_rate and not item.python.startswith("archlang.")


def _is_model(declaration: Declaration) -> bool:
    return isinstance(declaration.item, tree.Definition) and declaration.item.word == "model"


def call_of(choice: tree.Choice) -> tree.CallExpression:
    """What a line `task`, `model` or `train` names, with its statics."""
    return tree.as_call(choice.value)


RATES = "rates."
"""What the statics begin with that give instances learning rates of their own."""


def weight_parameter(path: str) -> tree.StaticParameter | None:
    """Returns the static of a path such as `train.losses.balance` or `train.rates.embed`; None for another path."""
    name = path.removeprefix("train.")
    if name == path or not (is_weight(name) or (name.startswith(RATES) and name.removeprefix(RATES).isidentifier())):
        return None
    return tree.StaticParameter(name=name, kind="float", span=None)  # type: ignore[arg-type]  # no program declares it


def is_weight(name: str) -> bool:
    """Whether a static of the line `train` has the name of an auxiliary loss's weight."""
    return name.startswith(LOSSES) and name.removeprefix(LOSSES).isidentifier()


Part = Choice | AtTest | Vary | Search | CostBounds | Claim
# The order in which a recipe's lines stand.
_ORDER = ("task", "model", "train", AtTest, Vary, Search, CostBounds, Claim)


def with_base(
    recipe: Recipe,
    recipes: Mapping[str, Recipe],
    joined_recipes: dict[str, Recipe],
    other_items: Mapping[str, str],
    static_names: Callable[[Choice], Sequence[str] | None],
    report: Report,
) -> Recipe:
    """Returns a recipe with the lines that it takes from its base, and without `from`, which is whole if its bases are;
    reports an unknown base, and recipes that are based on each other.

    A line `task`, `model` or `train` that names the same as the base's takes the statics that it does not set. Another
    line replaces every line of its kind, except that `vary` keeps the base's seeds if it has none. A static that a line
    sets is not taken from the base's lines `vary` and `search`. Claims belong to the recipe that makes them, and are
    not taken.

    Args:
        joined_recipes: Recipes with the lines of their bases by name; more are added.
        other_items: What the other items of the file are, as `a model`, by their names.
        static_names: Returns the names of the statics of a line's task, model or optimizer; None if it is unknown."""
    chain, places = [recipe], {recipe.name: 0}
    while (name := chain[-1].base) is not None and name not in joined_recipes:
        base = recipes.get(name)
        if base is None or name in places:
            span, kind = chain[-1].base_span or chain[-1].name_span, other_items.get(name)
            if base is not None:
                report(_cycle(chain[places[name] :]))
            elif kind is not None:
                report(mistakes.not_a_recipe(span, name, kind))
            elif name:
                report(mistakes.unknown_recipe(span, name, set(recipes) - {recipe.name}, None))
            return replace(recipe, base=None, is_whole=False)
        places[name] = len(chain)
        chain.append(base)
    joined = joined_recipes[name] if name is not None else chain.pop()
    for link in reversed(chain):
        parts = _joined(joined, link, static_names)
        joined = replace(link, parts=parts, is_whole=joined.is_whole and link.is_whole)
        if recipes.get(link.name) is link:
            joined_recipes[link.name] = joined
    return replace(joined, base=None)


def _joined(
    base_recipe: Recipe, recipe: Recipe, static_names: Callable[[Choice], Sequence[str] | None]
) -> tuple[Part, ...]:
    own_kinds = {_kind(part) for part in recipe.parts}
    own, base = recipe.parts, base_recipe.parts
    choices = {part.word: part for part in base if isinstance(part, Choice)}
    own_paths = {path for part in own if isinstance(part, Choice) for path in _paths(part, static_names(part) or ())}
    parts: list[Part] = []
    for part in base:
        if _kind(part) not in own_kinds and not isinstance(part, Claim):
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
