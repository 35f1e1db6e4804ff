"""What instances, stacks, loops and arguments are called in Python."""

from __future__ import annotations

import keyword

from torch import nn

from archlang.graph.scope import scope_of

OUTER = "outer"
"""How a step of a stack calls the module that the stack stands in."""

_TAKEN = frozenset(
    {*dir(nn.Module()), *keyword.kwlist, OUTER, "program", "ponder", "mean_depth", "sample_depth", "decode"}
)


# What an argument cannot be called: keywords, and what the code that fx writes knows by name.
RESERVED = frozenset({*keyword.kwlist, "self", "inf", "nan", "torch", "device", "NoneType", "fx_pytree", "pytree"})


def unused(wanted: str, taken: set[str]) -> str:
    """The name that is wanted, with a number if it is taken; it is taken then."""
    name, count = wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted}_{count}"
    taken.add(name)
    return name


def attribute(word: str) -> str:
    """A word of a path as an attribute: `half` would hide a method of torch's modules, so it becomes `half_`."""
    return f"{word}_" if word in _TAKEN else word


def module_path(path: str) -> str:
    """The dotted name of an instance or a stack in the module."""
    return ".".join(map(attribute, path.split(".")))


def relative(path: str, scope: str) -> str:
    """The dotted name of an instance or a stack, seen from the module that runs a scope."""
    home = scope_of(path)
    hops = scope.count("*") - home.count("*")
    own = path[len(home) :].removeprefix(".")
    return ".".join([*[OUTER] * hops, module_path(own)])
