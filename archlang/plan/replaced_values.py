"""Checks values of a recipe that no plan reads: those that `vary` replaces, and those that only a claim names."""

from collections.abc import Mapping

from archlang.diagnostics import Diagnostic
from archlang.elaborate.static_arguments import plain
from archlang.names.compared_symbols import listed_symbols
from archlang.names.static_mistakes import symbol_not_listed
from archlang.plan import mistakes
from archlang.plan.recipe import ResolvedRecipe
from archlang.plan.statics import given_statics
from archlang.plan.variations import VariedStatic
from archlang.source import Span
from archlang.syntax.tree import Expression, Name
from archlang.types.statics import StaticValue, Symbol


def check_replaced_values(
    recipe: ResolvedRecipe, varied: tuple[VariedStatic, ...], values: Mapping[str, tuple[StaticValue, ...]]
) -> None:
    """Reports symbols that the signature does not allow, where `vary` replaces them, and in claims about the model.
    Warns of a claim at a value that `vary` does not list. `values` are the known ones of each static."""
    lists = {static.path.text: static for static in varied}
    for word in recipe.declarations:
        for name, bound in given_statics(recipe, word, {}).items():
            path = f"{word}.{name}"
            if path not in lists or not isinstance(bound.value, Symbol) or bound.span is None:
                continue
            mistake = _symbol_not_listed(recipe, path, str(bound.value), bound.span)
            if mistake is not None:
                recipe.report(mistake)
    for claim in recipe.parts.claims:
        for setting in claim.at:
            path = setting.path.text
            value = setting.value
            mistake = _symbol_not_listed(recipe, path, value.text, value.span) if isinstance(value, Name) else None
            if mistake is not None and path.startswith("model."):
                recipe.report(mistake)
            elif mistake is None and path in lists:
                _check_is_varied(recipe, lists[path], values[path], value)


def _symbol_not_listed(recipe: ResolvedRecipe, path: str, symbol: str, span: Span) -> Diagnostic | None:
    """Returns the mistake of a symbol that a static cannot be; None if it can."""
    word, _, name = path.partition(".")
    declaration = recipe.declarations.get(word)
    allowed = None if declaration is None else listed_symbols(declaration.item.signature).get(name)
    if declaration is None or allowed is None or symbol in allowed:
        return None
    return symbol_not_listed(span, symbol, name, declaration.name, allowed)


def _check_is_varied(
    recipe: ResolvedRecipe, static: VariedStatic, values: tuple[StaticValue, ...], value: Expression
) -> None:
    parameter = recipe.parameter(static.path.text)
    assert parameter is not None, "unknown paths are left out"
    claimed = plain(recipe.value(parameter, value))
    if claimed is not None and len(values) == len(static.values) and claimed not in values:
        recipe.report(mistakes.claim_at_other_value(value.span, static.path.text, static.path.span))
