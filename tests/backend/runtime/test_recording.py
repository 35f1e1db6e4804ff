"""Claims about recording: it records values with their turns, and does not change the model."""

from math import sqrt

import pytest
import torch
from torch import Tensor, nn

from archlang.backend import Architecture, halting_loops
from archlang.backend.mistakes import BlockError
from archlang.backend.runtime.recording import Moment, recording
from tests.closeness import close
from tests.conftest import Compiled

X = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])

LAYERS = """model m[d = 8](x: tokens[n]) -> logits[n, classes] {
    h = embed[d](x)
    stack 2 {
        repeat 3 { h <- norm(h + attention[heads = 2](h)) }
    }
    return linear[classes](h)
}"""
GATED = """model m[d = 8](x: tokens[n]) -> logits[n, classes] {
    h = embed[d](x)
    repeat 4 { h <- copy_gate(sigmoid(linear[d](h)), norm(geometric_attention[heads = 1](h)), h) }
    return linear[classes](h)
}"""
CHUNKED = """model m[d = 8](x: tokens[n]) -> logits[n, classes] {
    h = embed[d](x)
    m = learned[slots = 2, d]()
    y = scan c in chunks[size = 3](h) carry m {
        repeat 5 halting c by token_halt[threshold = 0.9] { c <- norm(c + attention[heads = 2](c, m)) }
        m <- norm(m + attention[heads = 1](m, c))
        emit c
    }
    return linear[classes](y)
}"""
POINTED = """model m[d = 8](x: tokens[n]) -> logits[n, classes] {
    h = embed[d](x)
    w = pointer_unit[pointers = 3, hidden = 16](addresses[bits = 6](h), h)
    return linear[classes](dereference(w, h))
}"""


def record(module: Architecture, x: Tensor = X) -> tuple[list[Moment], Tensor]:
    with torch.no_grad(), recording(module) as recorder:
        logits = module(x)
    return recorder.moments, logits


def of_kind(moments: list[Moment], kind: str) -> list[Moment]:
    return [moment for moment in moments if moment.kind == kind]


def test_a_stack_with_an_index_has_the_weights_and_the_records_of_a_stack(compiled: Compiled) -> None:
    module, numbered = compiled(LAYERS), compiled(LAYERS.replace("stack 2", "stack 2 as i"))
    numbered.load_state_dict(module.state_dict())
    (moments, logits), (own, own_logits) = record(module), record(numbered)
    close(own_logits, logits)
    weights, expected = of_kind(own, "attention"), of_kind(moments, "attention")
    assert len(weights) == len(expected) == 6
    for moment, other in zip(weights, expected, strict=True):
        close(moment.values, other.values)


def test_attention_that_is_written_with_maps_is_recorded(compiled: Compiled) -> None:
    text = "model m(x: tokens[n]) -> logits[n, classes] { h = embed[8](x) repeat 2 { h <- norm(h + BODY) } return h }"
    text = text.replace("return h", "return linear[classes](h)")
    module = compiled(text.replace("BODY", "weigh[causal = true](softmax_keys(scores[2](h, linear[8](h))), h)"))
    moments, _ = record(module)
    moments = of_kind(moments, "attention")
    assert [(tuple(moment.values.shape), [turn.index for turn in moment.turns]) for moment in moments] == [
        ((1, 2, 8, 8), [0]),
        ((1, 2, 8, 8), [1]),
    ]
    assert not moments[0].values.triu(1).any()
    assert moments[0].values.tril().any()


@pytest.mark.parametrize("text", [LAYERS, GATED, CHUNKED, POINTED])
def test_recording_changes_neither_the_result_nor_the_module(compiled: Compiled, text: str) -> None:
    module = compiled(text).eval()
    runners = {name: dict(vars(part)) for name, part in module.named_modules()}
    bodies = [loop.body for loop in halting_loops(module)]
    with torch.no_grad():
        torch.manual_seed(1)
        expected = module(X)
        torch.manual_seed(1)
        assert torch.equal(record(module)[1], expected)
    for name, part in module.named_modules():
        assert not part._forward_hooks, name
        for key, value in vars(part).items():
            if key not in ("sample_depth", "mean_depth", "ponder", "losses", "sample_losses"):
                assert value is runners[name][key], f"{name}.{key}"
    assert [loop.body for loop in halting_loops(module)] == bodies
    assert all(loop.watch is None for loop in halting_loops(module))


def test_recording_restores_a_module_that_raises(compiled: Compiled) -> None:
    module = compiled(CHUNKED).eval()
    module.get_submodule("embed").register_forward_hook(lambda *_: 1 / 0)
    before = dict(vars(module))
    with pytest.raises(ZeroDivisionError), recording(module):
        module(torch.tensor([[1]]))
    assert {name: value for name, value in vars(module).items() if name != "ponder"} == {
        name: value for name, value in before.items() if name != "ponder"
    }


def test_a_moment_in_nested_loops_has_the_turns_of_both(compiled: Compiled) -> None:
    attention = of_kind(record(compiled(LAYERS).eval())[0], "attention")
    turns = [tuple((turn.unit, turn.index) for turn in moment.turns) for moment in attention]
    assert turns == [(("layer", i), ("step", j)) for i in range(2) for j in range(3)]
    assert {moment.path for moment in attention} == {"stack.*.attention"}


def test_recorded_attention_is_the_softmax_of_queries_and_keys(compiled: Compiled) -> None:
    module = compiled(LAYERS.replace("stack 2", "stack 1").replace("repeat 3", "repeat 1")).eval()
    (moment,) = of_kind(record(module)[0], "attention")
    weights = dict(module.named_parameters())
    h = weights[next(name for name in weights if "embed" in name)][X[0]].detach()
    q, k = (h @ weights[f"stack.0.attention.{name}.weight"].detach().T for name in ("query", "key"))
    for head in range(2):
        part = slice(4 * head, 4 * head + 4)
        expected = (q[:, part] @ k[:, part].T / sqrt(4)).softmax(-1)
        torch.testing.assert_close(moment.values[0, head], expected, atol=1e-6, rtol=0)


class Attentive(nn.Module):
    """Returns its input; `result` are the weights that it records."""

    result: object = None

    def __init__(self, *, d: int) -> None:
        super().__init__()

    def forward(self, x: Tensor, mask_n: Tensor | None = None) -> Tensor:
        return x

    def weights(self, x: Tensor, mask_n: Tensor | None = None) -> object:
        return self.result


@pytest.mark.parametrize(
    ("result", "message"),
    [(torch.zeros(3), r"returns a tensor \[3\], not a tensor \[b, h, n, m\]"), (None, "returns a NoneType")],
)
def test_weights_of_ones_own_block_that_cannot_be_recorded_name_the_block(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch, result: object, message: str
) -> None:
    text = f"""
    extern block look(x: seq[n, d]) -> seq[n, d] reads x pointwise records attention python "{__name__}:Attentive"
    model m(x: tokens[n]) -> logits[n, 4] {{ return look(embed[4](x)) }}
    """
    module = compiled(text, plugins=True)
    monkeypatch.setattr(Attentive, "result", result)
    with pytest.raises(BlockError, match=message):
        record(module)


def test_recorded_gates_are_those_that_move_the_state(compiled: Compiled) -> None:
    moments, _ = record(compiled(GATED).eval())
    gates, attention = of_kind(moments, "gate"), of_kind(moments, "attention")
    assert [moment.turns[0].index for moment in gates] == [0, 1, 2, 3]
    assert all(0 < float(moment.values.min()) <= float(moment.values.max()) < 1 for moment in gates)
    assert all(float(moment.values.sum(-1).max()) <= 1 + 1e-6 for moment in attention)


def test_a_closed_gate_is_recorded_as_no_change(compiled: Compiled) -> None:
    module = compiled(GATED).eval()
    for name, parameter in module.named_parameters():
        if name.startswith("linear.") and "bias" in name:
            nn.init.constant_(parameter, -1e4)
    moments, _ = record(module)
    assert all(float(moment.values.max()) == 0 for moment in of_kind(moments, "gate"))
    assert all(float(moment.values.max()) == 0 for moment in of_kind(moments, "change"))


def test_chunks_record_their_first_position_and_their_own_steps(compiled: Compiled) -> None:
    moments, _ = record(compiled(CHUNKED).eval())
    memory = of_kind(moments, "memory")
    assert [moment.turns[0].first for moment in memory] == [0, 3, 6]
    assert [tuple(moment.values.shape) for moment in memory] == [(1, 2, 8)] * 3
    halting = of_kind(moments, "halting")
    assert {moment.turns[0].index for moment in halting} == {0, 1, 2}
    for chunk in range(3):
        steps = [moment.turns[1].index for moment in halting if moment.turns[0].index == chunk]
        assert steps == list(range(len(steps)))


def test_the_halting_mass_of_a_position_never_exceeds_one_and_running_steps_are_its_depth(compiled: Compiled) -> None:
    module = compiled(CHUNKED.replace("scan c in chunks[size = 3](h)", "scan c in chunks[size = 8](h)")).eval()
    moments, _ = record(module)
    mass = torch.stack([moment.values for moment in of_kind(moments, "halting")]).sum(0)
    assert float(mass.max()) <= 1 + 1e-6
    taken = torch.stack([moment.values for moment in of_kind(moments, "running")]).sum(0)
    assert module.sample_depth is not None
    close(taken.float().mean(1), module.sample_depth)


def test_pointers_are_recorded_as_a_weight_for_each_slot(compiled: Compiled) -> None:
    (moment,) = of_kind(record(compiled(POINTED).eval())[0], "pointer")
    assert moment.values.shape == (1, 8, 3, 8)
    close(moment.values.sum(-1), torch.ones(1, 8, 3))


def test_each_call_is_recorded_from_its_first_turn(compiled: Compiled) -> None:
    module = compiled(CHUNKED).eval()
    with torch.no_grad(), recording(module) as recorder:
        module(X)
        per_call = len(recorder.moments)
        module(X)
    assert len(recorder.moments) == 2 * per_call
    second_call = recorder.moments[per_call:]
    assert [moment.turns for moment in second_call] == [moment.turns for moment in recorder.moments[:per_call]]
    for first, second in zip(recorder.moments, second_call, strict=False):
        close(first.values, second.values)


def test_a_recording_has_the_states_behind_what_is_before_a_part(compiled: Compiled) -> None:
    module = compiled(
        "model m[d = 2](x: tokens[n]) -> logits[n, vocab] {\n"
        "    s = learned[3, d, init = normal]()\n"
        "    y = scan c after b[2] in chunks[2](embed[d](x)) carry s {\n"
        "        s <- 2 * s\n"
        "        emit c + mean(s) + mean(b)\n"
        "    }\n"
        "    return linear[vocab](y)\n"
        "}",
        vocab=5,
    )
    with recording(module) as record:
        module(torch.randint(5, (2, 6)))
    memories = [moment.values for moment in record.moments if moment.kind == "memory"]
    start = module.get_submodule("learned")(2)
    assert len(memories) == 3
    for turn, memory in enumerate(memories, 1):
        close(memory, 2**turn * start.detach())


def test_a_recording_leaves_out_states_that_grow(compiled: Compiled) -> None:
    text = "model m(x: tokens[n]) -> seq[n, 4] { m = constant[1, 4]() y = scan v in embed[4](x) carry m growing {"
    module = compiled(f"{text} m <- append(m, expand(v)) emit v + mean(m) }} return y }}", vocab=5)
    with recording(module) as record:
        module(torch.randint(5, (2, 4)))
    assert not of_kind(record.moments, "memory")
