"""A charge is a number of each sample; tests/semantics compares its value with the interpreter's."""

import torch

from archlang.export.plain.file import plain_module, plain_text
from archlang.source import Source
from archlang.syntax.parser import parse
from archlang.syntax.printer import format_program
from tests.closeness import close
from tests.conftest import Compiled

PROGRAM = """
model m(x: tokens[n]) -> logits[classes] {
    h = embed[4](x)
    _ = scan v in h {
        charge part = sum_features(v)
        emit v
    }
    stack 2 {
        charge step = sum_features(mean(h))
        h <- norm(h)
    }
    charge step = mean(linear[1](h))
    return last(h) |> linear[classes]
}
""".lstrip()


def test_charges_of_a_name_add_up_over_steps_and_are_means_over_parts(compiled: Compiled) -> None:
    module = compiled(PROGRAM, vocab=5, classes=2).double()
    x, lengths = torch.randint(5, (2, 4)), torch.tensor([4, 3])
    module(x, lengths=lengths)
    part, step = [], []
    for sample, length in zip(x, lengths.tolist(), strict=True):
        h = module.get_submodule("embed")(sample[None, :length])
        part.append(h.sum(-1).mean())
        first = module.get_submodule("stack.0.norm")(h)
        second = module.get_submodule("stack.1.norm")(first)
        step.append((h + first).mean(1).sum() + module.get_submodule("linear")(second).mean())
    close(module.charges["part"], torch.stack(part).mean())
    close(module.charges["step"], torch.stack(step).mean())


def test_an_exported_file_has_no_charges_and_no_weights_of_them(compiled: Compiled) -> None:
    module = compiled(PROGRAM, vocab=5, classes=2).double()
    x = torch.randint(5, (2, 4))
    text = plain_text(module)
    plain = plain_module(module, text)
    assert {name for name, _ in module.named_parameters()} - {name for name, _ in plain.named_parameters()} == {
        "linear.weight",
        "linear.bias",
    }
    close(plain(x), module(x))


def test_a_charge_is_formatted_as_a_statement() -> None:
    assert format_program(parse(Source("m.arch", PROGRAM))) == PROGRAM
    one_line = "block b(h: seq[n, d]) -> seq[n, d] {\n    repeat 2 { charge a = mean(h) }\n    return h\n}\n"
    assert format_program(parse(Source("m.arch", one_line))) == one_line
