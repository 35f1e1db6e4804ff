"""The boxes of a picture: what they say, and what is said on hover."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from archlang.compile import compile_named
from archlang.errors import Source
from archlang.graph.summary import summarize
from archlang.reports.pictures.box import Box
from archlang.reports.pictures.formats import legend_of, print_mermaid, print_svg, print_tree
from archlang.reports.pictures.picture import draw
from archlang.reports.pictures.placement import place_boxes

PROGRAM = """
block layer[heads = 2, ff = 16](h: seq[n, d]) -> seq[n, d] {
    return feedforward[ff](attention[heads, causal = true](h))
}

model m[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    a = layer[heads = 4](h)
    b = layer[heads = 4](a)
    c = layer(b)
    repeat 2 { c <- norm(c) }
    return linear[vocab](c)
}
"""


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Box:
    file = tmp_path_factory.mktemp("picture") / "m.arch"
    file.write_text(PROGRAM, encoding="utf-8")
    return draw(compile_named(file, None, None, {"vocab": "5"}))


def test_the_font_of_pictures_has_every_sign_of_theirs(picture: Box) -> None:
    data = pytest.importorskip("matplotlib", reason="the extra `view` is not installed").get_data_path()
    from matplotlib.ft2font import FT2Font

    font = FT2Font(f"{data}/fonts/ttf/DejaVuSansMono.ttf")
    # A line with a sign of another font is drawn in that font.
    signs = set(print_svg(replace(picture, badge=1)))
    assert sorted(sign for sign in signs if ord(sign) > 127 and not font.get_char_index(ord(sign))) == []


def boxes(picture: Box, title: str) -> list[Box]:
    return [box for box in picture.walk() if box.title == title]


def test_a_box_shows_the_statics_that_were_written_and_its_defaults_on_hover(picture: Box) -> None:
    attention = boxes(picture, "attention")[0]
    assert attention.notes[0] == "heads = 4, causal = true"
    assert any(line.startswith("written: heads = 4") for line in attention.details)
    assert any(line.startswith("defaults: ") and "position = none" in line for line in attention.details)
    layers = boxes(picture, "layer")
    assert [layer.notes[:-1] for layer in layers] == [("heads = 4",), ("heads = 4",), ()]
    assert "defaults: heads = 2, ff = 16" in layers[2].details


@pytest.mark.parametrize(("written", "shown"), [("1 - x", "1 −"), ("x - 1", "− 1"), ("2 / x", "2 ÷"), ("2 * x", "× 2")])
def test_a_number_stands_before_or_behind_the_sign_as_in_the_program(tmp_path: Path, written: str, shown: str) -> None:
    (tmp_path / "m.arch").write_text(f"block m(x: seq[n, 8]) -> seq[n, 8] {{\n    return {written}\n}}\n")
    titles = [box.title for box in draw(compile_named(tmp_path / "m.arch", "m", None, {})).boxes]
    assert shown in titles


def test_a_box_names_what_it_computes(picture: Box) -> None:
    assert [layer.output for layer in boxes(picture, "layer")] == [f"{name}: seq[n, 8]" for name in "abc"]


def test_costs_are_rounded_in_a_box_and_exact_on_hover(picture: Box) -> None:
    linear = boxes(picture, "linear")[0]
    assert "45 parameters, 5.12k FLOPs" in linear.notes
    assert "5,120 FLOPs" in linear.details


CONTAINERS = """
block layer(h: seq[n, d]) -> seq[n, d] { return feedforward[16](attention[2](h)) }

model m[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    repeat 3 halting h by global_halt[0.9] { h <- layer(h) + linear[d](h) }
    stack 2 { repeat 4 { h <- norm(layer(h)) } }
    m = learned[2, d]()
    y = scan c in chunks[8](h) carry m { m <- m + attention[2](m, c) emit attention[2](c, m) }
    z = experts v in y by top_k[1](linear[3](y)) { emit feedforward[16](v) }
    return linear[vocab](z)
}
"""


def test_a_box_costs_at_least_what_is_inside_it(tmp_path: Path) -> None:
    file = tmp_path / "m.arch"
    file.write_text(CONTAINERS, encoding="utf-8")
    graph = compile_named(file, None, None, {"vocab": "5"})
    model = draw(graph)

    def cost(box: Box) -> tuple[int, int]:
        text = " ".join(box.notes if box is model else box.details).replace(",", "")
        counts = [re.search(rf"(\d+) {noun}", text) for noun in ("parameters", "FLOPs")]
        parameters, flops = (int(count[1]) if count else 0 for count in counts)
        return parameters, flops

    containers = [box for box in model.walk() if box.boxes]
    assert len(containers) == 8
    for box in containers:
        inside = [cost(inner) for inner in box.boxes]
        assert cost(box) >= (1, 1)
        assert all(whole >= sum(parts) for whole, parts in zip(cost(box), zip(*inside, strict=True), strict=True)), box
    summary = summarize(graph, 64)
    assert cost(model) == (summary.unique, summary.flops)


def test_a_block_that_is_applied_again_with_the_same_statics_is_folded(picture: Box) -> None:
    assert [layer.repeats for layer in boxes(picture, "layer")] == [False, True, False]
    assert str(print_svg(picture)).count(">attention<") == 2
    assert str(print_svg(picture, foldable=True)).count(">attention<") == 3
    for text in (print_svg(picture), print_tree(picture), print_mermaid(picture)):
        assert "contains what the first layer contains" in text


def test_the_legend_explains_only_what_occurs(picture: Box) -> None:
    legend = legend_of(place_boxes(picture))
    assert [sample.classes for sample in legend.samples] == ["loop", "state", "back"]
    assert all(sample.x + len(sample.text) <= legend.width for sample in legend.samples)


def test_a_compact_picture_has_names_alone_and_joins_operations_in_a_row(picture: Box) -> None:
    drawn = picture.compact()
    assert [box.title for box in drawn.boxes] == ["x", "embed", "layer", "layer", "layer", "repeat × 2", "linear"]
    layer = drawn.boxes[2]
    assert [box.title for box in layer.boxes] == ["h", "attention, feedforward", "result"]
    assert [(edge.source, edge.target) for edge in layer.edges] == [
        (layer.boxes[0].id, layer.boxes[1].id),
        (layer.boxes[1].id, layer.boxes[2].id),
    ]
    assert not any(box.notes or box.output for box in drawn.walk())
    assert place_boxes(drawn).height < place_boxes(picture).height / 1.5


def test_a_folded_box_has_no_content(picture: Box) -> None:
    drawn = picture.folded(["layer"])
    assert all(not box.boxes for box in boxes(drawn, "layer"))
    assert boxes(drawn, "repeat × 2")[0].boxes
    assert "contains what" not in print_svg(drawn)


def test_a_block_that_only_a_folded_box_shows_is_drawn_elsewhere() -> None:
    text = """
    block inner(h: seq[n, d]) -> seq[n, d] { return norm(relu(h)) }
    block outer(h: seq[n, d]) -> seq[n, d] { return inner(h) }
    model m(x: tokens[n]) -> logits[n, vocab] { return linear[vocab](inner(inner(outer(embed[8](x))))) }
    """
    picture = draw(compile_named(Source("m.arch", text), None, None, {"vocab": "5"}))
    assert [box.repeats for box in boxes(picture, "inner")] == [False, True, True]
    assert [box.repeats for box in boxes(picture.folded(["outer"]), "inner")] == [False, True]
