"""What can be wrong with a program when it becomes a module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch

from archlang.diagnostics import ArchlangError
from archlang.diagnostics.names import plural
from archlang.graph.graph import Instance
from archlang.source import Span
from archlang.types import Dim, Type


class BuildError(ArchlangError):
    """A graph cannot become a module."""


class ConstructionError(BuildError):
    """A class does not make a module of the statics of a block. Its cause is what the class raised, if it did."""


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


def not_imported(instance: Instance, module: str, error: Exception) -> BuildError:
    return BuildError(
        f"{_place(instance.span)}`{instance.block}` is {instance.python}, and importing {module} raised "
        f"{_raised(error)}"
    )


def not_constructed(instance: Instance, arguments: Mapping[str, object], error: Exception) -> ConstructionError:
    """A class that raises when it is called with the statics, also as they need more memory than there is."""
    given = ", ".join(f"{name}={_argument(value)}" for name, value in arguments.items())
    return ConstructionError(
        f"{_place(instance.span)}`{instance.block}` cannot be constructed: {instance.python}({given}) raised "
        f"{_raised(error)}"
    )


def not_initialised(instance: Instance) -> ConstructionError:
    return ConstructionError(
        f"{_place(instance.span)}`{instance.block}` cannot be used: the constructor of {instance.python} does not call "
        "super().__init__()"
    )


def not_halting(instance: Instance) -> BuildError:
    return BuildError(
        f"{_place(instance.span)}a loop halts by `{instance.block}`, but {instance.python} is no HaltingBlock "
        "(archlang.backend.runtime.halting)."
    )


def wrong_fields(model: str, fields: Sequence[str], count: int) -> TypeError:
    return TypeError(f"`{model}` takes {len(fields)} field{'s' * (len(fields) != 1)}, {_list(fields)}, and got {count}")


def lengths_of_which(model: str, fields: Sequence[str]) -> TypeError:
    given = ", ".join(f'"{name}": …' for name in fields)
    return TypeError(f"`{model}` has several fields, so their lengths need names: lengths={{{given}}}")


def lengths_of_no_field(model: str, unknown: Iterable[str], fields: Sequence[str]) -> TypeError:
    return TypeError(f"`{model}` has no field {_list(sorted(unknown))} to have lengths; it has {_list(fields)}")


def no_tensor(model: str, field: str, value: object) -> TypeError:
    return TypeError(f"`{model}` takes `{field}` as a tensor, and got {_kind(value)}")


def wrong_dtype(model: str, field: str, kind: Type, integers: bool, dtype: torch.dtype) -> TypeError:
    wanted = "integers, of the dtype int64 or int32" if integers else "floating-point numbers"
    return TypeError(f"`{model}` takes `{field}`, {kind}, as {wanted}, and got {_dtype(dtype)}")


def wrong_axes(
    model: str, field: str, kind: Type, sizes: Sequence[int | str | Dim], shape: tuple[int, ...]
) -> ValueError:
    wanted = ", ".join(["batch", *map(str, sizes)])
    return ValueError(f"`{model}` takes `{field}`, {kind}, as a tensor of the shape [{wanted}], and got {[*shape]}")


def wrong_size(model: str, field: str, kind: Type, wanted: int, size: int, counted: bool) -> ValueError:
    what = "position" if counted else "feature"
    return ValueError(f"`{model}` takes `{field}`, {kind}, with {plural(wanted, what)}, and got {size}")


def other_batch(model: str, first: str, batch: int, field: str, size: int) -> ValueError:
    return ValueError(
        f"the fields of `{model}` have batches of different sizes: `{first}` has {plural(batch, 'sample')}, and "
        f"`{field}` has {size}"
    )


def other_device(model: str, first: str, device: torch.device, field: str, other: torch.device) -> ValueError:
    return ValueError(
        f"the fields of `{model}` are on different devices: `{first}` is on {device}, and `{field}` is on {other}"
    )


def other_length(model: str, length: str, first: str, known: int, field: str, size: int) -> ValueError:
    return ValueError(
        f"`{first}` and `{field}` of `{model}` both have the length {length}, but `{first}` has "
        f"{plural(known, 'position')}, and `{field}` has {size}"
    )


def no_token(token: object, model: str, field: str, vocabulary: int) -> ValueError:
    return ValueError(
        f"{token} is not a token of `{field}` of `{model}`: its vocabulary has the tokens 0 to {vocabulary - 1}"
    )


def no_lengths(value: object, model: str, field: str) -> TypeError:
    return TypeError(
        f"`{model}` takes the lengths of `{field}` as a tensor or a list of integers, and got {_kind(value)}"
    )


def lengths_of_no_positions(model: str, field: str, kind: Type) -> TypeError:
    return TypeError(f"`{field}` of `{model}` has no positions, and so no lengths: it is {kind}")


def wrong_lengths(model: str, field: str, batch: int, shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"`{model}` takes a length for each of {plural(batch, 'sample')} of `{field}`, and got lengths of the shape "
        f"{[*shape]}"
    )


def wrong_length(length: object, model: str, field: str, least: int, padded: int) -> ValueError:
    wanted = f"be {padded}, which it is in every sample" if least == padded > 0 else f"lie between 0 and {padded}"
    return ValueError(f"{length} is not a length of `{field}` of `{model}`: it must {wanted}")


def other_lengths(_: object, model: str, length: str, first: str, field: str) -> ValueError:
    return ValueError(
        f"`{first}` and `{field}` of `{model}` both have the length {length}, but their lengths differ in a sample"
    )


def no_answer_lengths(value: object, model: str) -> TypeError:
    return TypeError(f"`{model}` takes answer_lengths as a tensor or a list of integers, and got {_kind(value)}")


def wrong_answer_lengths(model: str, batch: int, shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"`{model}` takes an answer length for each of {plural(batch, 'sample')}, and got the shape {[*shape]}"
    )


def negative_answer(length: object, model: str) -> ValueError:
    return ValueError(f"{length} is not a length of an answer of `{model}`: it must be 0 or more")


def nothing_to_begin_with(model: str, field: str) -> ValueError:
    return ValueError(f"`{model}` writes `{field}` from at least one token, and `begin` has none")


def no_integer(argument: str, value: object) -> TypeError:
    return TypeError(f"{argument} is an integer, and got {value!r}")


def negative_limit(limit: int) -> ValueError:
    return ValueError(f"limit is {limit}, and must be 0 or more")


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


def _kind(value: object) -> str:
    """What a wrong value is, for a person."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of {_dtype(value.dtype)}"
    name = type(value).__name__
    if isinstance(value, list | tuple) and value:
        return f"a {name} of {', '.join(sorted({type(one).__name__ for one in value}))}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _raised(error: Exception) -> str:
    """An error with the first line of its message."""
    name, text = type(error).__name__, str(error).strip().split("\n")[0]
    return f"{name}: {text}" if text else name


def _argument(value: object) -> str:
    return type(value).__name__ if isinstance(value, torch.nn.Module) else repr(value)


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
