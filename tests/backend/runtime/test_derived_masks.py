"""Claims about the masks of lengths that only the result of a loop has."""

import pytest
import torch

from archlang.export.plain.file import plain_module, plain_text
from tests.conftest import Compiled

LENGTHS = torch.tensor([6, 2, 4, 1])
EMISSIONS = {
    "repeat": "y = repeat 2 { h <- norm(h)\nemit append(h, h) }",
    "stack": "y = stack 2 { h <- linear[4](h)\nemit append(learned[3, 4, init = normal](), append(h, h)) }",
    "halting": "y = repeat 3 halting h by global_halt { h <- norm(h + 1)\nemit pad[before = 1](h) }",
    "repeat in a scan": "y = scan c in chunks[4](h) {\nz = repeat 2 { c <- norm(c)\nemit append(c, c) }\n"
    "emit attention[1](c, z) }",
    "read in a loop": "y = repeat 2 { h <- norm(h)\nemit append(h, h) }\nrepeat 2 { h <- h + attention[1](h, y) }",
}


@pytest.mark.parametrize(
    "loop",
    [pytest.param(loop, marks=[] if name in ("halting", "repeat in a scan") else pytest.mark.slow)
     for name, loop in EMISSIONS.items()],
    ids=EMISSIONS,
)  # fmt: skip
def test_padding_changes_nothing_behind_a_loop_that_emits_a_longer_sequence(compiled: Compiled, loop: str) -> None:
    module = compiled(
        "model m(x: tokens[n]) -> logits[n, classes] {\n"
        f"h = embed[4](x)\n{loop}\nreturn linear[classes](attention[1](h, y) + sum(y) / (1 + sum(y) * sum(y)))\n}}"
    ).double()
    x = torch.randint(11, (4, 6))
    together = module(x, lengths=LENGTHS)
    plain = plain_module(module, plain_text(module))(x, lengths=LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = module(x[row : row + 1, :length])[0]
        torch.testing.assert_close(together[row, :length], alone, atol=1e-12, rtol=0)
        torch.testing.assert_close(plain[row, :length], alone, atol=1e-12, rtol=0)
