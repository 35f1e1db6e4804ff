"""The names of instances, stacks, loops and values in Python."""

import builtins
import keyword
from collections.abc import Iterable

from torch import fx, nn

from archlang.graph.graph import scope_of

OUTER = "outer"
"""The attribute of a step that holds the module around its stack."""

_TAKEN = frozenset(
    {
        *dir(nn.Module()),
        *keyword.kwlist,
        OUTER,
        "program",
        "ponder",
        "losses",
        "keeping_steps",
        "sample_losses",
        "loop_of_results",
        "mean_depth",
        "sample_depth",
        "decode",
        "_run",
        "_repr_html_",
    }
)
# Names that a value of generated code cannot have; the globals are those of code that torch.fx writes.
_RESERVED = frozenset({*keyword.kwlist, *dir(builtins), "self", *fx.Graph().python_code("self").globals})


class Names:
    """The names of one function or one module: each is unique, even if case is ignored, and none is reserved."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.lower() for name in (*_RESERVED, *taken)}
        self._counts: dict[str, int] = {}

    def take(self, name: str) -> None:
        """Excludes a name."""
        self._taken.add(name.lower())

    def unused(self, preferred: str) -> str:
        """Takes and returns the preferred name, with a number if it is taken or reserved."""
        name, count = preferred, self._counts.get(preferred, 1)
        while name.lower() in self._taken:
            count += 1
            name = f"{preferred}_{count}"
        self._counts[preferred] = count
        self.take(name)
        return name


def attribute_name(word: str) -> str:
    """Returns the attribute of a word of a path. A word that would hide a method of torch's modules gets an underscore:
    `half` becomes `half_`, and so `half_` becomes `half__`. Different words have different attributes."""
    ends = range(len(word.rstrip("_")), len(word) + 1)
    return f"{word}_" if any(word[:end] in _TAKEN for end in ends) else word


def module_path(path: str) -> str:
    """Returns the dotted name of an instance or a stack in its module."""
    return ".".join(map(attribute_name, path.split(".")))


def is_at(name: str, path: str) -> bool:
    """Returns whether the dotted name of a module or a weight begins with that of an instance, in any step of the
    stacks around it."""
    words, own = name.split("."), module_path(path).split(".")
    return len(words) >= len(own) and all(step in (word, "*") for word, step in zip(words, own, strict=False))


def relative_path(path: str, scope: str) -> str:
    """Returns the dotted name of an instance or a stack, relative to the module that runs a scope."""
    home = scope_of(path)
    hops = scope.count("*") - home.count("*")
    own = path[len(home) :].removeprefix(".")
    return ".".join([*[OUTER] * hops, module_path(own)])
