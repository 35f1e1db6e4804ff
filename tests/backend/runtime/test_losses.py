"""An auxiliary loss is a number of each sample; tests/semantics compares its value with the interpreter's."""

import torch

from archlang.export.plain.file import plain_module, plain_text
from tests.closeness import close
from tests.conftest import Compiled

PROGRAM = """
model m(x: tokens[n]) -> logits[classes] {
    h = embed[4](x)
    _ = scan v in h {
        loss part = sum_features(v)
        emit v
    }
    stack 2 {
        loss step = sum_features(mean(h))
        h <- norm(h)
    }
    loss step = mean(linear[1](h))
    return last(h) |> linear[classes]
}
""".lstrip()


def test_an_exported_file_has_no_losses_and_no_weights_of_them(compiled: Compiled) -> None:
    module = compiled(PROGRAM, vocab=5, classes=2).double()
    x = torch.randint(5, (2, 4))
    text = plain_text(module)
    plain = plain_module(module, text)
    assert {name for name, _ in module.named_parameters()} - {name for name, _ in plain.named_parameters()} == {
        "linear.weight",
        "linear.bias",
    }
    close(plain(x), module(x))
