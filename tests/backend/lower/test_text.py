"""Claims about the printed Python of a compiled model."""

from archlang.backend import print_torch
from tests.conftest import Compiled

PROGRAM = """\
model small[d = 4](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    m = h
    repeat 3 {
        a = norm(h + attention[1](h, m))
        h <- a * 0.5
    }
    return linear[classes](mean(h))
}
"""

PYTHON = """\
def forward(self, x, mask_n):
    h = self.embed(x, mask_n = mask_n)                                  # FILE:2  embed[d](x)
    key = self.attention.key(h)                                         # FILE:5  attention[1](h, m)
    value = self.attention.value(h)                                     # FILE:5  attention[1](h, m)
    h_2 = self.repeat(h, h, key, value, mask_n)                         # FILE:4  repeat 3 {
    mean = self.mean(h_2, mask_n = mask_n)                              # FILE:8  mean(h)
    linear = self.linear(mean)                                          # FILE:8  linear[classes](mean(h))
    return linear

# the body of `self.repeat`: repeat count = 3, FILE:4:5
def repeat(self, h, h_2, key, value, mask_n):
    attention = self.attention(h, h_2, mask_n = mask_n, mask_m = mask_n, products = {'key': key, 'value': value})\
  # FILE:5  attention[1](h, m)
    add = h + attention                                                 # FILE:5  h + attention[1](h, m)
    a = self.norm(add)                                                  # FILE:5  norm(h + attention[1](h, m))
    h_3 = a * 0.5                                                       # FILE:6  a * 0.5
    return (h_3,)
"""


def test_every_line_of_python_names_its_line_of_the_program(compiled: Compiled) -> None:
    module = compiled(PROGRAM)
    span = module.program.graph.region.nodes[0].span
    assert span is not None
    assert print_torch(module).replace(span.source.path, "FILE") == PYTHON
