"""The mistakes that building and calling a module report."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import torch

from archlang.errors import ArchlangError, ErrorWithRemedy
from archlang.errors.names import plural
from archlang.graph.graph import Instance
from archlang.types import Dim, Type

_E = TypeVar("_E", bound=Exception)


class BuildError(ArchlangError):
    """The module of a graph cannot be built."""


class ConstructionError(BuildError):
    """The class of a block cannot be constructed from its statics. The cause is the error that it raised, if any."""


class BlockError(ErrorWithRemedy):
    """A block of the user's own violates its signature in a call."""


def _row(kind: type[_E], text: str) -> Callable[..., _E]:
    return lambda *facts: kind(
        text.format(*(_dtype(fact) if isinstance(fact, torch.dtype) else fact for fact in facts))
    )


no_such_class = _row(BuildError, "{0.title} names {0.python}: {1}.")
not_initialised = _row(
    ConstructionError, "{0.title} cannot be used: the constructor of {0.python} does not call super().__init__()"
)
no_real_weight = _row(
    ConstructionError,
    "{0.title} cannot be trained: the weight `{1}` of {0.python} is of {2}, and weights are floating-point numbers; "
    "a buffer may be of any type",
)
not_halting = _row(
    BuildError, "{0.title} halts a loop, but {0.python} is not a HaltingBlock (archlang.backend.runtime.halting)."
)
wrong_lengths = _row(ValueError, "`{0}` takes {1} as one for each of {2} samples, and got the shape {3}")
no_lengths = _row(
    TypeError,
    "`{0}` takes no lengths: it reads `{1}` alone, which begins with equally many tokens in all samples; "
    "decode those with fewer by themselves",
)
field_without_positions = _row(TypeError, "`{1}` of `{0}` has no positions, and so no lengths: it is {2}")
different_devices = _row(
    ValueError, "the fields of `{0}` are on different devices: `{1}` is on {2}, and `{3}` is on {4}"
)
different_batches = _row(
    ValueError, "the fields of `{0}` have batches of different sizes: `{1}` has {2}, and `{3}` has {4}"
)
different_sizes = _row(
    ValueError, "`{2}` and `{4}` of `{0}` both have the length {1}, but `{2}` has {3} positions, and `{4}` has {5}"
)
different_lengths = _row(
    ValueError, "`{3}` and `{4}` of `{1}` both have the length {2}, but their lengths differ in a sample"
)
empty_begin = _row(ValueError, "`{0}` writes `{1}` from at least one token, and `begin` has none")
not_an_integer = _row(TypeError, "{0} is an integer, and got {1!r}")
writes_nothing = _row(
    TypeError,
    "`{0}` writes no sequence: it has no field of tokens with the length and the vocabulary of its result, "
    "or a position of the result depends on later positions of that field",
)
no_limit = _row(TypeError, "decoding has no limit: pass end=…, limit=…, or answer_lengths=…")


def wrong_result(instance: Instance, kind: Type, shape: Sequence[int | None], result: object) -> BlockError:
    sizes = ", ".join("…" if size is None else str(size) for size in shape)
    numbers = "integers" if kind.name == "tokens" else "floating-point numbers"
    actual = f"a {type(result).__name__}"
    if isinstance(result, torch.Tensor):
        actual = f"a tensor {list(result.shape)} of {_dtype(result.dtype)}"
    message = (
        f"{instance.title} ({instance.python}) returns {actual}, but its signature says "
        f"{kind}, here a tensor [{sizes}] of {numbers}"
    )
    return BlockError(message, "correct the class or the signature; `archlang test` tests all that it says")


def unknown_sizes(model: str, names: Iterable[str]) -> BuildError:
    sizes = sorted(names)
    settings = ", ".join(f"{name} = …" for name in sizes)
    return BuildError(
        f"`{model}` cannot be built: a task sets the size{'s' if len(sizes) > 1 else ''} {_list(sizes)}. "
        f"Name a recipe, or set {settings}."
    )


def not_constructed(instance: Instance, arguments: Mapping[str, object], error: BaseException) -> ConstructionError:
    """A constructor raised an error, which may be a lack of memory."""
    call = ", ".join(f"{name}={_argument(value)}" for name, value in arguments.items())
    return ConstructionError(
        f"{instance.title} cannot be constructed: {instance.python}({call}) raised {raised(error)}"
    )


def wrong_weights(instance: Instance, result: object) -> BlockError:
    actual = f"a tensor {list(result.shape)}" if isinstance(result, torch.Tensor) else f"a {type(result).__name__}"
    message = f"{instance.title}: the method `weights` of {instance.python} returns {actual}, not a tensor [b, h, n, m]"
    return BlockError(message, "return the attention of each head; `archlang test` tests it")


def wrong_fields(model: str, fields: Sequence[str], count: int) -> TypeError:
    return TypeError(f"`{model}` takes {len(fields)} field{'s' * (len(fields) != 1)}, {_list(fields)}, and got {count}")


def unnamed_lengths(model: str, fields: Sequence[str]) -> TypeError:
    form = ", ".join(f'"{name}": …' for name in fields)
    return TypeError(f"`{model}` has fields of several lengths, which need names: lengths={{{form}}}")


def unknown_fields(model: str, unknown: Iterable[str], fields: Sequence[str]) -> TypeError:
    return TypeError(f"`{model}` has no field {_list(sorted(unknown))} to have lengths; it has {_list(fields)}")


def not_a_tensor(model: str, field: str, value: object) -> TypeError:
    return TypeError(f"`{model}` takes `{field}` as a tensor, and got {_type_of_value(value)}")


def wrong_dtype(model: str, field: str, kind: Type, integers: bool, dtype: torch.dtype) -> TypeError:
    expected = "integers, of the dtype int64 or int32" if integers else "floating-point numbers"
    return TypeError(f"`{model}` takes `{field}`, {kind}, as {expected}, and got {_dtype(dtype)}")


def wrong_axes(
    model: str, field: str, kind: Type, sizes: Sequence[int | str | Dim], shape: tuple[int, ...]
) -> ValueError:
    expected = ", ".join(["batch", *map(str, sizes)])
    return ValueError(f"`{model}` takes `{field}`, {kind}, as a tensor of the shape [{expected}], and got {[*shape]}")


def wrong_size(model: str, field: str, kind: Type, expected: int, size: int, is_length: bool) -> ValueError:
    noun = "position" if is_length else "feature"
    return ValueError(f"`{model}` takes `{field}`, {kind}, with {plural(expected, noun)}, and got {size}")


def not_a_token(token: object, model: str, field: str, vocabulary: int) -> ValueError:
    tokens = f"its vocabulary has the tokens 0 to {vocabulary - 1}"
    return ValueError(f"{token} is not a token of `{field}` of `{model}`: {tokens}")


def not_lengths(value: object, model: str, argument: str) -> TypeError:
    return TypeError(f"`{model}` takes {argument} as a tensor or a list of integers, and got {_type_of_value(value)}")


def wrong_length(length: object, model: str, argument: str, least: int, most: int | None) -> ValueError:
    expected = "be 0 or more" if most is None else f"lie between 0 and {most}"
    if least == most:
        expected = f"be {most}, as in every sample"
    return ValueError(f"{argument} of `{model}` contain {length}, and must {expected}")


def not_in_bounds(name: str, value: float, least: float, most: float) -> ValueError:
    bounds = f"{least} or more" if most == float("inf") else f"between {least} and {most}"
    return ValueError(f"{name} is {value}, and must be {bounds}")


def wrong_other_fields(model: str, others: Sequence[str], target: str, count: int) -> TypeError:
    expected = f"the field{'s' * (len(others) != 1)} {_list(others)}" if others else "no field"
    return TypeError(f"`{model}` writes `{target}` from {expected}, and got {count}")


def raised(error: BaseException) -> str:
    """Returns the type of an error and the first line of its message."""
    reason = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}{': ' if reason else ''}{reason}"


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _type_of_value(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of {_dtype(value.dtype)}"
    name = type(value).__name__
    if isinstance(value, list | tuple) and value:
        return f"a {name} of {', '.join(sorted({type(item).__name__ for item in value}))}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _argument(value: object) -> str:
    return type(value).__name__ if isinstance(value, torch.nn.Module) else repr(value)


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
