"""Claims about scans that compute many chunks at once: only the time changes."""

import pytest
import torch
from torch import Tensor, nn

from archlang.backend import Architecture
from archlang.backend.lower.text import print_torch
from archlang.backend.runtime import scans
from archlang.backend.runtime.loops import HaltingLoop, RepeatLoop, StackLoop
from archlang.backend.runtime.recording import recording
from archlang.backend.runtime.scans import ScanLoop
from tests.closeness import close
from tests.conftest import Compiled

HEAD = "model m[d = 8](x: tokens[n]) -> logits[n, classes] {\n h = embed[d](x)\n m = learned[slots = 3, d]()\n"
MEMORY = "m <- norm(m + attention[heads = 1](m, c))\n emit c"
AFTER = MEMORY.replace("c)", "a)").replace("emit c", "emit a")
# The body of the scan of each model has a head.
MODELS = {
    "in the scan itself": "k = norm(c + feedforward[8](c))\n a = k + attention[heads = 2](k, m)\n" + AFTER,
    "what stands outside": "k = attention[heads = 2](c, fixed)\n a = k + attention[heads = 2](c, m)\n" + AFTER,
    "arithmetic": "k = 2 * linear[d](c) - c / 3\n a = k + attention[heads = 2](k, m)\n" + AFTER,
    "a whole loop": "stack 2 { c <- c + attention[heads = 2](norm(c)) }\n"
    " repeat 2 { c <- c + feedforward[8](norm(c)) }\n a = c + attention[heads = 2](c, m)\n" + AFTER,
    "no memory": "emit c + attention[heads = 2](norm(c))",
}
TOKENS = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8], [3, 3, 1] + [0] * 5, [9, 8, 7, 6, 5, 0, 0, 0], [4] * 8])
LENGTHS = torch.tensor([8, 3, 5, 8])


def program(body: str, chunks: str = "chunks[size = 3]") -> str:
    fixed = " fixed = linear[d](h)\n" if "fixed" in body else ""
    carry = " carry m" if "m <- " in body else ""
    text = HEAD if carry else HEAD.replace("\n m = learned[slots = 3, d]()", "")
    return f"{text}{fixed} y = scan c in {chunks}(h){carry} {{\n {body} }}\n return linear[classes](y)\n}}"


def loops(module: Architecture) -> list[RepeatLoop | StackLoop | HaltingLoop | ScanLoop]:
    return [
        value
        for part in module.modules()
        for value in vars(part).values()
        if isinstance(value, RepeatLoop | StackLoop | HaltingLoop | ScanLoop)
    ]


def scan(module: Architecture) -> ScanLoop:
    (chunk_scan,) = (loop for loop in loops(module) if isinstance(loop, ScanLoop))
    return chunk_scan


def drawn(module: Architecture) -> None:
    """Draws all weights, also those that start at zero, as of slots."""
    torch.manual_seed(1)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)


def calls(module: Architecture, path: str) -> list[int]:
    """The batch size of each call of a block, in a call of the module."""
    sizes: list[int] = []
    part = module.get_submodule(path)
    handle = part.register_forward_hook(lambda part, inputs, result: sizes.append(len(inputs[0])))
    module(TOKENS)
    handle.remove()
    return sizes


def test_a_block_is_called_once_for_chunks_of_one_length(compiled: Compiled) -> None:
    module = compiled(program(MODELS["in the scan itself"]))
    assert calls(module, "feedforward") == [2 * 4, 4]  # two chunks of three positions, and one of two
    assert calls(module, "attention") == [4, 4, 4]


def test_memory_stays_bounded(compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    module = compiled(program(MODELS["in the scan itself"], "chunks[size = 1]"))
    monkeypatch.setattr(scans, "_MOST_POSITIONS", 3 * 4)
    assert calls(module, "feedforward") == [12, 12, 8]
    monkeypatch.setattr(scans, "_MOST_POSITIONS", 1)
    assert calls(module, "feedforward") == [4] * 8


@pytest.mark.parametrize(
    "body",
    [
        MEMORY,  # of the chunk alone, nothing is computed
        "k = c + m2\n a = k + attention[heads = 2](k, m)\n" + AFTER,
    ],
)
def test_values_that_need_the_memory_are_not_in_the_head(compiled: Compiled, body: str) -> None:
    text = program(body.replace("m2", "attention[heads = 1](c, m)"))
    assert scan(compiled(text)).split is None


def test_blocks_that_read_other_samples_are_not_in_the_head(compiled: Compiled) -> None:
    body = "p = addresses[bits = 6](c)\n a = dereference(pointer_unit[hidden = 8, scrambled = {}](p, c), c)\n" + AFTER
    assert calls(compiled(program(body.format("true"))), "pointer_unit") == [4, 4, 4]
    assert calls(compiled(program(body.format("false"))), "pointer_unit") == [2 * 4, 4]


def test_dropout_draws_for_every_chunk(compiled: Compiled) -> None:
    body = "k = dropout[0.5](1 + 0 * c)\n a = k + attention[heads = 2](c, m)\n" + AFTER.replace("emit a", "emit k")
    module = compiled(program(body))
    assert scan(module).split is not None
    dropped: list[Tensor] = []
    module.get_submodule("dropout").register_forward_hook(lambda part, inputs, result: dropped.append(result))
    module(TOKENS[:, :6])
    (drawn_at_once,) = dropped
    first, second = drawn_at_once.chunk(2)
    assert not torch.equal(first, second)


def test_moments_are_recorded_chunk_by_chunk(compiled: Compiled) -> None:
    text = program(MODELS["what stands outside"])
    shown = []
    for without in ((), ("batch_chunks",)):
        module = compiled(text, without_passes=without)
        drawn(module)
        splits = [loop.split for loop in loops(module)]
        with recording(module) as recorder, torch.no_grad():
            module(TOKENS, lengths=LENGTHS)
        assert [loop.split for loop in loops(module)] == splits
        shown.append(recorder.moments)
    assert [(moment.kind, moment.path, moment.turns) for moment in shown[0]] == [
        (moment.kind, moment.path, moment.turns) for moment in shown[1]
    ]
    for batched, plain in zip(*shown, strict=True):
        close(batched.values, plain.values)


def test_printed_python_has_a_batched_part_and_a_loop(compiled: Compiled) -> None:
    shown = print_torch(compiled(program(MODELS["in the scan itself"])))
    assert "# the head of the body of `self.scan`, called once for many steps: scan" in shown
    assert "# the rest of the body of `self.scan`" in shown


def test_an_error_in_a_head_names_its_line_of_the_program(compiled: Compiled) -> None:
    module = compiled(program(MODELS["what stands outside"]))
    module.get_submodule("attention.query").weight.data = torch.zeros(3, 5)
    with pytest.raises(Exception) as caught:
        module(TOKENS)
    notes = getattr(caught.value, "__notes__", [])
    assert any("attention[heads = 2](c, fixed)" in note for note in notes)
