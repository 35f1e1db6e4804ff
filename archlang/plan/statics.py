"""The statics of a recipe's task, model and optimizer: given, checked, and with defaults filled in."""

from collections.abc import Mapping

from archlang.diagnostics import ignore
from archlang.elaborate.binding import TASK_SIZES, Binding
from archlang.elaborate.static_arguments import parameter_kind, plain, settle, static_value
from archlang.names.mistakes import static_set_twice
from archlang.names.resolve import Declaration
from archlang.names.values import BlockValue, Bound, Unknown
from archlang.plan.plan import BoundExtern
from archlang.plan.recipe import ResolvedRecipe, is_weight, weight_parameter
from archlang.syntax.expression_text import expression_text
from archlang.syntax.tree import Call, Expression, Extern, Setting
from archlang.types import Dim
from archlang.types.statics import StaticValue


def given_statics(recipe: ResolvedRecipe, word: str, settings: Mapping[str, Setting]) -> dict[str, Bound]:
    """The statics that the line `task`, `model` or `train` gives by name; `settings` replace them by their paths."""
    choice, declaration = recipe.parts.choices.get(word), recipe.declarations[word]
    if choice is None or declaration is None:
        return {}
    arguments = choice.value.statics if isinstance(choice.value, Call) else ()
    weights = [argument for argument in arguments if word == "train" and is_weight(argument.name or "")]
    others = [argument for argument in arguments if argument not in weights]
    bounds = settle(declaration, {}, others, recipe.evaluator(), recipe.report)
    for parameter in declaration.item.signature.statics:
        setting = settings.get(f"{word}.{parameter.name}")
        if setting is not None:
            bounds[parameter.name] = Bound(
                static_value(parameter, setting.value, recipe.evaluator(), declaration.file, recipe.report),
                setting.value.span,
            )
    return bounds


def given_weights(recipe: ResolvedRecipe, settings: Mapping[str, Setting]) -> dict[str, Bound]:
    """The weights of charges that the line `train` gives, by names such as `charges.balance`; `settings` replace them
    by their paths."""
    choice = recipe.parts.choices.get("train")
    arguments = choice.value.statics if choice is not None and isinstance(choice.value, Call) else ()
    values: dict[str, Expression] = {}
    for argument in arguments:
        if argument.name is not None and is_weight(argument.name):
            if argument.name in values:
                recipe.report(static_set_twice(argument.span, argument.name, values[argument.name].span))
            values[argument.name] = argument.value
    values |= {
        path.removeprefix("train."): setting.value for path, setting in settings.items() if weight_parameter(path)
    }
    bounds = {}
    for name, value in values.items():
        parameter = weight_parameter(f"train.{name}")
        assert parameter is not None, "it has the name of a weight"
        bounds[name] = Bound(recipe.value(parameter, value), value.span)
    return bounds


def bind(recipe: ResolvedRecipe, word: str, settings: Mapping[str, Setting]) -> Binding | None:
    """Binds every static of the line `task` or `train` and checks each `where`; None if the line has no declaration."""
    declaration, choice = recipe.declarations[word], recipe.parts.choices.get(word)
    if declaration is None or choice is None:
        return None
    bounds = given_statics(recipe, word, settings)
    binding = Binding(declaration, choice.value.span, bounds, recipe.report)
    binding.finish()
    return binding


def bound_extern(binding: Binding, weights: Mapping[str, Bound] | None = None) -> BoundExtern:
    """The task or optimizer of a finished binding, with its statics in the order of the signature, then the weights of
    charges."""
    item = binding.declaration.item
    assert isinstance(item, Extern)
    statics = {name: value for name, bound in binding.statics.items() if (value := plain(bound.value)) is not None}
    ordered = {p.name: statics[p.name] for p in item.signature.statics if p.name in statics}
    ordered |= {name: value for name, bound in (weights or {}).items() if (value := plain(bound.value)) is not None}
    return BoundExtern(item.name, item.python, ordered)


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
            default = "" if parameter.default is None else expression_text(parameter.default)
            text = default if written is None else " ".join(written.text.split())
            statics[parameter.name] = text.removeprefix(f"{parameter.name} = ")
        elif value is not None and not isinstance(value, Unknown) and parameter_kind(parameter, model.file):
            static = plain(value)
            if static is not None:
                statics[parameter.name] = static
    return statics
