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
    """Reports the seeds that a recipe lists and no run can have."""
    for static in varied:
        if static.path.text == "seed":
            for value in static.values:
                check_seed(recipe, value)
