"""A walk visits each node once, in the order of the text."""

from archlang.errors import Source
from archlang.syntax.parser import parse
from archlang.syntax.tree import Definition, Name, walk


def definition(text: str) -> Definition:
    (item,) = parse(Source("x.arch", text)).items
    assert isinstance(item, Definition)
    return item


def test_nodes_are_in_the_order_of_the_text() -> None:
    block = definition("block b(h: seq[n, d]) -> seq[n, d] { a = f(h, g[s](h)) if s == w { return a } return h }")
    names = [node.text for node in walk(block.body) if isinstance(node, Name)]
    assert names == ["f", "h", "g", "s", "h", "s", "w", "a", "h"]


def test_each_node_is_visited_once() -> None:
    block = definition(f"block b(h: s) -> s {{ return {'norm(' * 30}h{')' * 30} }}")
    nodes = [id(node) for node in walk(block)]
    assert len(nodes) == len(set(nodes))
