"""Claims about names in Python."""

from __future__ import annotations

import pytest
from torch import nn

from archlang.backend import Architecture
from archlang.backend.lower import lower
from archlang.backend.names import attribute, relative, unused
from archlang.graph.text import parse_graph


def test_no_path_hides_an_attribute_of_the_module() -> None:
    module = Architecture(lower(parse_graph("graph g input %1 x: vec[2] return %1")))
    for name in (*dir(module), *dir(nn.ModuleList())):
        assert name.startswith("__") or not hasattr(module, name) or attribute(name) != name
    assert attribute("norm") == "norm"


@pytest.mark.parametrize(
    ("path", "scope", "wanted"),
    [
        ("layer.half", "", "layer.half_"),
        ("e", "stack.*", "outer.e"),
        ("stack.*.e", "stack.*", "e"),
        ("stack.*.e", "stack.*.stack.*", "outer.e"),
        ("e", "stack.*.stack.*", "outer.outer.e"),
        ("enc.stack.*.norm", "enc.stack.*", "norm"),
        ("enc.norm", "enc.stack.*", "outer.enc.norm"),
    ],
)
def test_a_path_is_seen_from_the_module_that_runs_the_code(path: str, scope: str, wanted: str) -> None:
    assert relative(path, scope) == wanted


def test_a_taken_name_gets_a_number() -> None:
    taken = {"repeat", "repeat_2"}
    assert (unused("repeat", taken), unused("scan", taken)) == ("repeat_3", "scan")
    assert taken == {"repeat", "repeat_2", "repeat_3", "scan"}
