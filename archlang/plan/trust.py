"""Requires the Python files of a user's own that a plan runs, before any run begins."""

from collections.abc import Iterable, Iterator

from archlang.plan.plan import BoundExtern, Plan
from archlang.resolve import library
from archlang.syntax.tree import PAGE
from archlang.types.statics import StaticValue, Symbol


def require_trust(plans: Iterable[Plan]) -> None:
    """Compares the Python that each plan runs with the files that the user has named. Runs nothing.

    Raises:
        PluginError: a plan runs Python whose file is not among its plugins."""
    for plan in plans:
        for user, python in dict.fromkeys(_own_python(plan)):
            plan.plugins.require(python, user)


def is_shipped(train: BoundExtern) -> bool:
    """Returns whether an optimizer is one of archlang's, and not of the user's own."""
    declared = library.optimizer(train.name)
    return declared is not None and declared.python == train.python


def _own_python(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yields what names Python outside of archlang, as messages show it, with `module:Class`."""
    if is_users_own(plan.task.python):
        yield f"`{plan.task.name}`", plan.task.python
    for graph in (plan.graph, plan.at_test):
        for instance in graph.instances.values():
            if is_users_own(instance.python):
                yield instance.title, instance.python
    if not is_shipped(plan.train):
        yield f"the optimizer `{plan.train.name}`", plan.train.python
    for setting in ("rate", "loss", "metrics"):
        for name in _names(plan.train.statics.get(setting)):
            module, _, attribute = name.rpartition(".")
            if module:
                yield f"`{setting} = {name}`", f"{module}:{attribute}"


def _names(value: StaticValue | None) -> list[str]:
    values = value if isinstance(value, tuple) else (value,)
    return [item.text for item in values if isinstance(item, Symbol)]


def is_users_own(python: str) -> bool:
    """Returns whether a `module:Class` is the user's own; the page of a task runs none."""
    return not python.startswith(("archlang.", PAGE))
