"""Claims about the construction of the modules of instances."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from archlang.backend import BuildError
from archlang.plugins import PluginError
from archlang.types.statics import Interval
from tests.closeness import close
from tests.conftest import Compiled


class Keeper(nn.Module):
    """Stores the arguments of its constructor."""

    def __init__(self, **arguments: object) -> None:
        super().__init__()
        self.arguments = arguments

    def forward(self, x: Tensor) -> Tensor:
        return x


class Tied(nn.Module):
    """Uses the weights of another instance, which it holds deep inside."""

    def __init__(self, *, of: nn.Module, d: int) -> None:
        super().__init__()
        self.inner: Any = nn.Module()  # Any: a module of any attributes
        self.inner.held = of
        self.own = nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.inner.held(x)
        return y * self.own


class Touchy(nn.Module):
    def __init__(self, *, d: int) -> None:
        raise RuntimeError("no")


class Complex(nn.Module):
    def __init__(self, *, d: int) -> None:
        super().__init__()
        self.turn = nn.Parameter(torch.zeros(d, dtype=torch.complex64))


class Forgetful(nn.Module):
    def __init__(self, *, d: int) -> None:
        self.d = d

    def forward(self, x: Tensor) -> Tensor:
        return x


def extern(name: str, statics: str = "") -> str:
    statics = f"[{statics}]" if statics else ""
    return f'extern block {name.lower()}{statics}(x: data[d]) -> data[d] python "{__name__}:{name}"\n'


def test_statics_arrive_as_plain_python_and_feature_sizes_by_name(compiled: Compiled) -> None:
    module = compiled(
        extern("Keeper", "a: int, b: float, c: bool, s: symbol, r: range, l: list, t: list")
        + """
        model m(x: tokens[n]) -> logits[n, 4] {
            return keeper[3, 0.5, true, xpos, 1..5, [1, 2], [[xpos, 1..2], []]](embed[4](x))
        }
        """,
        plugins=True,
    )
    keeper = module.get_submodule("keeper")
    assert isinstance(keeper, Keeper)
    assert keeper.arguments == {
        "a": 3,
        "b": 0.5,
        "c": True,
        "s": "xpos",
        "r": Interval(1, 5),
        "l": (1, 2),
        "t": (("xpos", Interval(1, 2)), ()),
        "d": 4,
    }
    assert type(keeper.arguments["s"]) is str


def test_an_instance_that_is_held_by_another_keeps_its_own_place(compiled: Compiled) -> None:
    module = compiled(
        extern("Tied", "of: block")
        + """
        model m(x: tokens[n]) -> logits[n, 4] {
            h = embed[4](x)
            stack 2 {
                let f = linear[4]
                h <- f(h) + tied[f](h)
            }
            return h
        }
        """,
        plugins=True,
    )
    assert list(module.state_dict()) == [
        "embed.weight",
        *("stack.0.f.weight", "stack.0.f.bias", "stack.0.tied.own"),
        *("stack.1.f.weight", "stack.1.f.bias", "stack.1.tied.own"),
    ]
    x = torch.tensor([[1, 2]])
    h = module.get_submodule("embed")(x)
    for step in range(2):
        h = module.get_submodule(f"stack.{step}.f")(h) * 2
    close(module(x), h)


def test_names_of_torch_or_python_get_an_underscore(compiled: Compiled) -> None:
    module = compiled(
        """
        model m(self: tokens[n], lambda: tokens[n]) -> logits[n, 4] {
            let half = linear[4]
            let class = linear[4]
            let program = linear[4]
            h = embed[4](self) + embed[4](lambda)
            forward = h
            repeat 2 { forward <- half(class(program(forward))) + h }
            return forward
        }
        """
    )
    assert {name.partition(".")[0] for name in module.state_dict()} == {
        *("embed", "embed_2"),
        *("half_", "class_", "program_"),
    }
    assert module(torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, 1, dtype=torch.int64)).shape == (1, 1, 4)


def test_python_outside_of_the_library_is_not_imported_unless_allowed(compiled: Compiled) -> None:
    text = """
    extern block evil(x: data[d]) -> data[d] python "this:Zen"
    model m(x: tokens[n]) -> logits[n, 4] { return evil(embed[4](x)) }
    """
    with pytest.raises(PluginError, match=r"program.arch:3:\d+: `evil` is Python of its own, .* `--plugin .*this\.py`"):
        compiled(text)
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    ("python", "complaint"),
    [
        ("archlang.blocks.no_such:Block", "No module named"),
        ("archlang.blocks.features:Nothing", "has no attribute"),
        ("archlang.blocks.features:nn", "it is not a torch module"),
    ],
)
def test_the_error_names_a_missing_class(compiled: Compiled, python: str, complaint: str) -> None:
    text = f"""
    extern block odd(x: data[d]) -> data[d] python "{python}"
    model m(x: tokens[n]) -> logits[n, 4] {{ return odd(embed[4](x)) }}
    """
    with pytest.raises(BuildError, match=complaint):
        compiled(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            extern("Touchy") + "model m(x: tokens[n]) -> logits[n, 4] {\n    return touchy(embed[4](x))\n}",
            r"program.arch:3:12: `touchy` cannot be constructed: .*Touchy\(d=4\) raised RuntimeError: no$",
        ),
        (
            extern("Touchy", "by: list")
            + "model m(x: tokens[n]) -> logits[n, 4] { return touchy[[xpos, 1]](embed[4](x)) }",
            r"Touchy\(by=\('xpos', 1\), d=4\) raised TypeError: .*unexpected keyword argument 'by'$",
        ),
        (
            extern("Forgetful") + "model m(x: tokens[n]) -> logits[n, 4] { return forgetful(embed[4](x)) }",
            r"program.arch:2:\d+: `forgetful` cannot be used: the constructor of .* does not call super\(\)",
        ),
        (
            extern("Complex") + "model m(x: tokens[n]) -> logits[n, 4] { return complex(embed[4](x)) }",
            r"program.arch:2:\d+: `complex` cannot be trained: the weight `turn` of .*Complex is of complex64",
        ),
    ],
)
def test_the_error_of_a_constructor_has_place_and_reason(compiled: Compiled, text: str, complaint: str) -> None:
    with pytest.raises(BuildError, match=complaint):
        compiled(text, plugins=True)


def test_too_little_memory_is_no_mistake_of_the_program(compiled: Compiled) -> None:
    text = "model m(x: tokens[n]) -> logits[n, 4] { return linear[4](linear[60000](linear[16000000](embed[4](x)))) }"
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        compiled(text)


def test_the_error_of_an_import_has_place_and_reason(compiled: Compiled, tmp_path: Path) -> None:
    plugin = tmp_path / "breaks_when_imported.py"
    plugin.write_text("\n1 / 0\n")
    text = """
    extern block odd(x: data[d]) -> data[d] python "breaks_when_imported:Odd"
    model m(x: tokens[n]) -> logits[n, 4] { return odd(embed[4](x)) }
    """
    with pytest.raises(PluginError, match=r"breaks_when_imported\.py:2 fails: ZeroDivisionError: division by zero"):
        compiled(text, plugins=[plugin])


def test_the_error_names_sizes_that_only_a_task_sets(compiled: Compiled) -> None:
    text = "model m(x: tokens[n]) -> logits[classes] { return embed[4](x) |> mean |> linear[classes] }"
    with pytest.raises(BuildError, match=r"sizes `classes`, `vocab`\. .* set classes = …, vocab = …"):
        compiled(text, vocab=None, classes=None)


def test_a_loop_halts_only_by_a_halting_block(compiled: Compiled) -> None:
    text = f"""
    extern block stop(state: seq[n, d]) -> prob python "{__name__}:Keeper"
    model m(x: tokens[n]) -> logits[n, 4] {{
        h = embed[4](x)
        repeat 2 halting h by stop {{ h <- norm(h) }}
        return h
    }}
    """
    with pytest.raises(BuildError, match="`stop` halts a loop, but .*Keeper is not a HaltingBlock"):
        compiled(text, plugins=True)


def test_a_weight_that_no_result_needs_is_not_constructed(compiled: Compiled) -> None:
    module = compiled("model m(x: tokens[n]) -> logits[n, 4] { h = embed[4](x) k = linear[9](h) return norm(h) }")
    assert [name for name, _ in module.named_children()] == ["embed", "norm"]
