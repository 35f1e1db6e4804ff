"""The golden arrays of stack attention against the blocks of the library."""

from pathlib import Path

import pytest

from tests.goldens.golden import Golden, Program, close, gradients_close, page

TOLERANCE = 2e-5


def compare(golden: Golden, folder: Path, block: str, weights: dict[str, str], **statics: int) -> None:
    program = Program(page("stack_attention"), golden, weights, folder, block, **statics)
    result = program(golden["in.x"])
    close(golden, result, "out.o", TOLERANCE)
    gradients_close(golden, (result * golden["obj.r_o"]).sum())


@pytest.mark.goldens("modern", "stack_superposition")
def test_a_superposition_of_stacks_equals_the_authors(golden: Golden, folder: Path) -> None:
    weights = {"action.weight": "p.actions", "push.weight": "p.push", "out.weight": "p.out"}
    length, d = golden["in.x"].shape[1:]
    width = golden["p.push"].shape[0]
    compare(golden, folder, "superposition_stack", weights, slots=length, width=width, d=d)


@pytest.mark.goldens("modern", "stack_nondeterministic")
def test_a_nondeterministic_stack_equals_the_authors(golden: Golden, folder: Path) -> None:
    own = "nondeterministic_stack"
    weights = {
        f"{own}.actions.weight": "p.actions",
        f"{own}.push.weight": "p.push",
        f"{own}.bottom": "p.bottom",
        "linear.weight": "p.out",
    }
    sizes = {name: golden.number(f"cfg.{name}") for name in ("states", "symbols")}
    width, d = golden.number("cfg.embedding"), golden["in.x"].shape[2]
    compare(golden, folder, "nondeterministic_stack_attention", weights, width=width, d=d, **sizes)
