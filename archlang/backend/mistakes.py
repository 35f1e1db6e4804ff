"""What can be wrong with a program when it becomes a module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from archlang.diagnostics import ArchlangError
from archlang.graph.graph import Instance
from archlang.source import Span


class BuildError(ArchlangError):
    """A graph cannot become a module."""


def unknown_sizes(model: str, names: Iterable[str]) -> BuildError:
    sizes = sorted(names)
    given = ", ".join(f"{name} = …" for name in sizes)
    return BuildError(
        f"`{model}` cannot be built: the size{'s' if len(sizes) > 1 else ''} {_list(sizes)} would come from a task. "
        f"Name a recipe, or give {given}."
    )


def foreign_python(instance: Instance) -> BuildError:
    return BuildError(
        f"{_place(instance.span)}`{instance.block}` is Python outside of archlang's blocks ({instance.python}), and "
        "loading a program must not run code that you have not looked at. If you trust it, allow it: plugins=True."
    )


def no_such_class(instance: Instance, reason: str) -> BuildError:
    return BuildError(f"{_place(instance.span)}`{instance.block}` is to be {instance.python}: {reason}.")


def not_halting(instance: Instance) -> BuildError:
    return BuildError(
        f"{_place(instance.span)}a loop halts by `{instance.block}`, but {instance.python} is no HaltingBlock "
        "(archlang.backend.halting)."
    )


def wrong_fields(model: str, fields: Sequence[str], count: int) -> TypeError:
    return TypeError(f"`{model}` takes {len(fields)} field{'s' * (len(fields) != 1)}, {_list(fields)}, and got {count}")


def lengths_of_which(model: str, fields: Sequence[str]) -> TypeError:
    given = ", ".join(f'"{name}": …' for name in fields)
    return TypeError(f"`{model}` has several fields, so their lengths need names: lengths={{{given}}}")


def lengths_of_no_field(model: str, unknown: Iterable[str], fields: Sequence[str]) -> TypeError:
    return TypeError(f"`{model}` has no field {_list(sorted(unknown))} to have lengths; it has {_list(fields)}")


def writes_nothing(model: str) -> TypeError:
    return TypeError(
        f"`{model}` writes no sequence: that takes a field of tokens with the length and the vocabulary of the result, "
        "which the result does not see ahead of where it is"
    )


def wrong_other_fields(model: str, others: Sequence[str], target: str, count: int) -> TypeError:
    wanted = f"the field{'s' * (len(others) != 1)} {_list(others)}" if others else "no field"
    return TypeError(f"`{model}` writes `{target}` from {wanted}, and got {count}")


def no_limit() -> TypeError:
    return TypeError("nothing says when to stop: give end=…, limit=…, or answer_lengths=…")


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _place(span: Span | None) -> str:
    return f"{span}: " if span is not None else ""
