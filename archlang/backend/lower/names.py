"""What instances, stacks, loops and values are called in Python."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable

from torch import fx, nn

from archlang.graph.scope import scope_of

OUTER = "outer"
"""How a step of a stack calls the module that the stack stands in."""

_TAKEN = frozenset(
    {*dir(nn.Module()), *keyword.kwlist, OUTER, "program", "ponder", "mean_depth", "sample_depth", "decode", "_run"}
)
# Names that a value of generated code cannot have. The code that torch.fx writes uses some globals.
_RESERVED = frozenset({*keyword.kwlist, *dir(builtins), "self", *fx.Graph().python_code("self").globals})


class Names:
    """The names of one function or one module: each is unique, also if case is ignored, and none is reserved."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {name.lower() for name in (*_RESERVED, *taken)}
        self._counts: dict[str, int] = {}

    def take(self, name: str) -> None:
        """Excludes a name."""
        self._taken.add(name.lower())

    def unused(self, wanted: str) -> str:
        """The wanted name, with a number if it is taken or reserved; it is taken from now on."""
        name, count = wanted, self._counts.get(wanted, 1)
        while name.lower() in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._counts[wanted] = count
        self.take(name)
        return name


def attribute(word: str) -> str:
    """A word of a path as an attribute. A word that would hide a method of torch's modules gets an underscore: `half`
    becomes `half_`, and so `half_` becomes `half__`. Different words become different attributes."""
    ends = range(len(word.rstrip("_")), len(word) + 1)
    return f"{word}_" if any(word[:end] in _TAKEN for end in ends) else word


def module_path(path: str) -> str:
    """The dotted name of an instance or a stack in the module."""
    return ".".join(map(attribute, path.split(".")))


def relative(path: str, scope: str) -> str:
    """The dotted name of an instance or a stack, seen from the module that runs a scope."""
    home = scope_of(path)
    hops = scope.count("*") - home.count("*")
    own = path[len(home) :].removeprefix(".")
    return ".".join([*[OUTER] * hops, module_path(own)])
