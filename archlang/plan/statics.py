"""The statics of a recipe's task, model and optimizer: given, checked, and with defaults filled in."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from archlang.elaborate.binding import TASK_SIZES, Binding
from archlang.elaborate.static_arguments import configured, parameter_kind, plain, static_value
from archlang.elaborate.task_pages import check_page
from archlang.errors import Diagnostic, Edit, Source, Span, ignore
from archlang.errors.edits import apply_edits
from archlang.plan.plan import BoundExtern
from archlang.plan.recipe import ResolvedRecipe, call_of, weight_parameter
from archlang.resolve.resolve import Declaration
from archlang.resolve.values import BlockValue, Bound, Unknown
from archlang.syntax import parse
from archlang.syntax.printer import format_program, unparse
from archlang.syntax.tokens import tokens
from archlang.syntax.tree import PAGE, Extern, Setting
from archlang.types import Dim
from archlang.types.statics import StaticValue


def given_statics(recipe: ResolvedRecipe, word: str, settings: Mapping[str, Setting]) -> dict[str, Bound]:
    """The statics that the line `task`, `model` or `train` gives by name; `settings` replace them by their paths."""
    choice, declaration = recipe.parts.choices.get(word), _declaration(recipe, word, settings)
    if choice is None or declaration is None:
        return {}
    bounds = dict(configured(recipe.evaluator(), call_of(choice).statics, declaration).settled)
    for parameter in declaration.item.signature.statics:
        if (setting := settings.get(f"{word}.{parameter.name}")) is not None:
            value = static_value(parameter, setting.value, recipe.evaluator(), declaration.file, recipe.report)
            bounds[parameter.name] = Bound(value, setting.value.span)
    return bounds


def _declaration(recipe: ResolvedRecipe, word: str, settings: Mapping[str, Setting]) -> Declaration | None:
    """What a line names. An optimizer also has statics for weights of losses and rates of instances."""
    declaration, choice = recipe.declarations[word], recipe.parts.choices.get(word)
    if declaration is None or choice is None or word != "train":
        return declaration
    paths = dict.fromkeys((*(f"train.{argument.name}" for argument in call_of(choice).statics), *settings))
    weights = tuple(filter(None, map(weight_parameter, paths)))
    signature = declaration.item.signature
    extended = replace(signature, statics=(*signature.statics, *weights))
    return replace(declaration, item=replace(declaration.item, signature=extended)) if weights else declaration


def bind(recipe: ResolvedRecipe, word: str, settings: Mapping[str, Setting]) -> Binding | None:
    """Binds every static of the line `task` or `train` and checks each `where`, and the page of a task; None if the
    line has no declaration, or the page a mistake."""
    declaration, choice = _declaration(recipe, word, settings), recipe.parts.choices.get(word)
    if declaration is None or choice is None:
        return None
    bounds = given_statics(recipe, word, settings)
    binding = Binding(declaration, choice.value.span, bounds, recipe.report)
    binding.finish()
    item, reported = declaration.item, list[Diagnostic]()
    if isinstance(item, Extern) and item.body is not None and binding.report is recipe.report:
        check_page(binding, reported.append)
    for mistake in reported:
        recipe.report(mistake)
    return None if reported else binding


def bound_extern(binding: Binding) -> BoundExtern:
    """The task or optimizer of a finished binding, with its statics in the order of the signature."""
    item = binding.declaration.item
    assert isinstance(item, Extern)
    bounds = {each.name: binding.statics[each.name] for each in item.signature.statics}
    statics = {name: value for name, bound in bounds.items() if (value := plain(bound.value)) is not None}
    is_own_page = item.body is not None and item.python.startswith(PAGE)
    return BoundExtern(item.name, _bare(item.python) if is_own_page else item.python, statics)


@lru_cache
def _bare(page: str) -> str:
    """The text of a page without comments and as `fmt` writes it, so that neither makes another run of it."""
    source = Source("", page)
    code = apply_edits(
        page, [Edit(Span(source, each.start_pos or 0, each.end_pos or 0), "") for each in tokens(source)[1]]
    )
    lines = format_program(parse(Source("", code))).splitlines()
    return "\n".join(filter(None, lines))


def model_sizes(sizes: Mapping[str, int]) -> dict[str, Bound]:
    """The sizes of a task as its models read them; an unknown one is a symbol. `words` is the vocabulary of a source,
    which equals `vocab` unless the task has two vocabularies."""
    by_name = {"words": sizes["vocab"], **sizes} if "vocab" in sizes else sizes
    return {name: Bound(Dim.of(by_name.get(name, name)), None) for name in TASK_SIZES}


def model_statics(model: Declaration, bounds: Mapping[str, Bound], sizes: Mapping[str, int]) -> dict[str, StaticValue]:
    """Every static of a model by name, defaults filled in; a block is the text that names it, with its statics."""
    binding = Binding(model, model.span, dict(bounds), ignore, ambient=model_sizes(sizes))
    statics: dict[str, StaticValue] = {}
    for parameter in model.item.signature.statics:
        bound = binding.lookup(parameter.name)
        value = bound.value if isinstance(bound, Bound) else None
        if isinstance(value, BlockValue) or parameter_kind(parameter, model.file) == "block":
            written = bound.span if isinstance(bound, Bound) else None
            default = "" if parameter.default is None else unparse(parameter.default)
            text = default if written is None else " ".join(written.text.split())
            statics[parameter.name] = text.removeprefix(f"{parameter.name} = ")
        elif value is not None and not isinstance(value, Unknown) and parameter_kind(parameter, model.file):
            static = plain(value)
            if static is not None:
                statics[parameter.name] = static
    return statics
