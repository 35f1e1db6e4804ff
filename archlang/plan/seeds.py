"""The seed of a run, which `vary` and the command line may set."""

from archlang.plan import mistakes
from archlang.plan.recipe import SEED, ResolvedRecipe
from archlang.plan.variations import VariedStatic
from archlang.syntax.tree import Expression
from archlang.types import Dim

HIGHEST_SEED = 2**32 - 1


def check_seed(recipe: ResolvedRecipe, value: Expression) -> int:
    """Returns a seed, 1 if it is unknown; reports one that no run can have."""
    evaluated = recipe.value(SEED, value)
    if not isinstance(evaluated, Dim) or evaluated.constant is None:
        return 1
    if not 0 <= evaluated.constant <= HIGHEST_SEED:
        recipe.report(mistakes.seed_out_of_bounds(value.span, evaluated.constant, HIGHEST_SEED))
    return evaluated.constant


def check_seeds(recipe: ResolvedRecipe, varied: tuple[VariedStatic, ...]) -> None:
    """Reports the seeds that a recipe lists or claims results of, and no run can have."""
    claimed = (setting for claim in recipe.parts.claims for setting in claim.at)
    values = [value for static in varied if static.path.text == SEED.name for value in static.values]
    for value in (*values, *(setting.value for setting in claimed if setting.path.text == SEED.name)):
        check_seed(recipe, value)
