"""The golden arrays of stack attention against the blocks of the library."""

import pytest

from tests.goldens.golden import Golden, Program, output_close, page


def compare(golden: Golden, block: str, weights: dict[str, str], **statics: int) -> None:
    program = Program(page("stack_attention"), golden, weights, block, **statics)
    output_close(golden, program(golden["in.x"]))


@pytest.mark.goldens("modern", "stack_superposition")
def test_a_superposition_of_stacks_equals_the_authors(golden: Golden) -> None:
    weights = {"action.weight": "p.actions", "push.weight": "p.push", "out.weight": "p.out"}
    length, d = golden["in.x"].shape[1:]
    width = golden["p.push"].shape[0]
    compare(golden, "superposition_stack", weights, slots=length, width=width, d=d)


@pytest.mark.goldens("modern", "stack_nondeterministic")
def test_a_nondeterministic_stack_equals_the_authors(golden: Golden) -> None:
    own = "nondeterministic_stack"
    weights = {
        f"{own}.actions.weight": "p.actions",
        f"{own}.push.weight": "p.push",
        f"{own}.bottom": "p.bottom",
        "linear.weight": "p.out",
    }
    sizes = {name: golden.number(f"cfg.{name}") for name in ("states", "symbols")}
    width, d = golden.number("cfg.embedding"), golden["in.x"].shape[2]
    compare(golden, "nondeterministic_stack_attention", weights, width=width, d=d, **sizes)
