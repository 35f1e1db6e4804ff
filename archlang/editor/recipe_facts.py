"""The statics, metrics and groups that one recipe has, or that several recipes have in common."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from archlang.editor.recipe_choices import recipes_of_rows
from archlang.editor.symbols import Item
from archlang.graph.operations import LOSSES
from archlang.plan.measures import RUN, RUN_METRICS, TRAIN, Measures
from archlang.plan.planner import Planner, joined_recipe
from archlang.resolve.resolve import ResolvedFile
from archlang.syntax.tree import Recipe, StaticParameter, Table

# The largest number of groups of a metric that are listed.
_MOST_GROUPS = 100


@dataclass(frozen=True)
class RecipeFacts:
    """What some recipes of a file have in common."""

    recipes: Sequence[Recipe]
    file: ResolvedFile

    @cached_property
    def statics(self) -> Mapping[str, StaticParameter]:
        """The statics by their dotted paths."""
        by_recipe = [planner.recipe.parameters for planner in self._planners]
        return {path: by_recipe[0][path] for path in _common_names(by_recipe)}

    @property
    def varied(self) -> tuple[str, ...]:
        """The paths of the statics that `vary` lists, without the seed."""
        paths = _common_names([static.path.text for static in planner.varied] for planner in self._planners)
        return tuple(path for path in paths if path != "seed")

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the splits and of the run."""
        of_splits = _common_names(
            [f"{split}.{metric}" for split in _splits(measures) if split != TRAIN for metric in measures.metrics]
            for measures in self._measures
        )
        return (*of_splits, *(f"{RUN}.{metric}" for metric in RUN_METRICS))

    @property
    def selecting_metrics(self) -> tuple[str, ...]:
        """The metrics that choose the weights of a run."""
        return _common_names(
            [f"{split}.{metric}" for split in _splits(measures) for metric in measures.selecting]
            for measures in self._measures
        )

    def groups(self, split: str) -> tuple[str, ...]:
        """The groups of a split, such as `test.length`."""
        return _common_names(
            [f"{split}.{group}" for group in measures.groups if split in _splits(measures)]
            for measures in self._measures
        )

    def group_numbers(self, metric: str) -> tuple[str, ...]:
        """The numbers of the groups by which a metric is broken down, such as the lengths of `test.accuracy`."""
        split = metric.partition(".")[0]
        numbers = (measures.group_values.get(split, {}).get(measures.breakdown, ()) for measures in self._measures)
        return _common_names([str(number) for number in sorted(islice(each, _MOST_GROUPS))] for each in numbers)

    @property
    def weights(self) -> tuple[str, ...]:
        """The statics of the line `train` that weigh the auxiliary losses of the models, such as `losses.balance`."""
        losses = (planner.losses(planner.first_point()) for planner in self._planners)
        return _common_names([f"{LOSSES}{name}" for name in names] for names in losses)

    def item(self, word: str) -> Item | None:
        """Returns what the first recipe names after `task`, `model` or `train`."""
        declarations = [planner.recipe.declarations.get(word) for planner in self._planners[:1]]
        return declarations[0].item if declarations and declarations[0] is not None else None

    @cached_property
    def _planners(self) -> tuple[Planner, ...]:
        # The check reports the mistakes.
        return tuple(Planner(joined_recipe(recipe, self.file, lambda _: None)) for recipe in self.recipes)

    @cached_property
    def _measures(self) -> tuple[Measures, ...]:
        measured = (planner.measures(planner.first_point()) for planner in self._planners)
        return tuple(measures for measures in measured if measures is not None)


def recipes_of(file: ResolvedFile, item: Recipe | Table | None) -> RecipeFacts:
    """Returns the facts of a recipe, or of the recipes of a table's rows; of all recipes of the file if there are
    none."""
    if isinstance(item, Recipe):
        return RecipeFacts((item,), file)
    names = () if item is None else recipes_of_rows(item)
    recipes = [file.recipes[name] for name in names if name in file.recipes]
    return RecipeFacts(recipes or tuple(file.recipes.values()), file)


def _common_names(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    sets = [dict.fromkeys(each) for each in names]
    return tuple(name for name in sets[0] if all(name in other for other in sets[1:])) if sets else ()


def _splits(measures: Measures) -> tuple[str, ...]:
    """Returns the splits of a task; only `test` if a user's file has them."""
    return measures.splits or ("test",)
