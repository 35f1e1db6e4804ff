"""Networks with a memory of cells compute what the reference interpreter computes, for samples of any length."""

import pytest

from tests.semantics.compiled import Compiled, compile_text
from tests.semantics.properties import PROPERTIES

MODELS = {
    "a neural Turing machine": ("neural_turing_machine", "turing_answers[vocab, 3, 4, 2, 2](x, blank)"),
    "a DNC": ("differentiable_neural_computer", "computed_answers[vocab, 3, 4, 2, 2](x, blank)"),
    "the DNC of PANM": (
        "differentiable_neural_computer",
        "computed_answers[vocab, 3, 4, 2, 2, form = panm, start = 0.0](x, blank)",
    ),
    "the DNC of NDR": (
        "differentiable_neural_computer",
        "answers(deallocating_computer_from_zero[vocab, 3, 2](append(x, blank)), x, blank)",
    ),
    "a neural random-access machine": (
        "neural_random_access_machine",
        "linear[vocab](gather(random_access_machine[6, 2, 2, 3, lstm](memory, registers), indices(blank)))",
    ),
}
MEMORY = """\
    memory = slice[0, 6](softmax(linear[6](x)))
    registers = slice[0, 2](softmax(linear[6](x)))
"""


@pytest.mark.parametrize(
    "name", [name if name == "interpreter" else pytest.param(name, marks=pytest.mark.slow) for name in PROPERTIES]
)
@pytest.mark.parametrize("model", MODELS)
def test_a_machine_has_the_properties_of_random_programs(model: str, name: str) -> None:
    page, result = MODELS[model]
    program = compile_text(
        f"use archlang.models.{page}\nuse archlang.models.cells\n\n"
        "model m(source: tokens[n], target: tokens[t]) -> logits[t, vocab] {\n"
        "    x = embed[3](source)\n    blank = zeros[3](target)\n"
        f"{MEMORY if 'memory' in result else ''}    return {result}\n}}\n"
    )
    assert isinstance(program, Compiled)
    assert program.causal
    PROPERTIES[name](program, 1)
