"""The graph of what is under the cursor."""

import pytest

from archlang.editor.document import Document
from archlang.editor.graphs import graph_at
from archlang.editor.hover import hover
from tests.editor.conftest import at_cursor

TEXT = """model m[d = 8](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> layer |> last |> linear[classes]
}
block layer(h: seq[n, d]) -> seq[n, d] {
    return h + norm(h)
}
recipe r {
    task  ctl
    model m
    train adamw[steps = 1]
}
"""


@pytest.mark.parametrize(
    ("before", "name", "graph_name"),
    [
        ("return emb", "model m", "m"),
        ("|> lay", "block layer", "layer"),
        ("h + no", "block layer", "layer"),
        ("adam", "recipe r", "m"),
    ],
)
def test_the_part_under_the_cursor_has_a_graph(before: str, name: str, graph_name: str) -> None:
    described = graph_at(*at_cursor(TEXT.replace(before, f"{before}¦", 1)))
    assert not isinstance(described, str)
    shown, graph = described
    assert (shown, graph.name) == (name, graph_name)


def test_a_composed_block_of_the_library_has_a_graph() -> None:
    text = "use archlang.models.panm\n\nblock b(h: seq[n, d]) -> seq[n, d] {\n    return pa¦nm(h)\n}\n"
    described = graph_at(*at_cursor(text))
    assert not isinstance(described, str)
    assert described[0] == "block panm"


def test_a_place_or_a_mistake_without_a_graph_says_why() -> None:
    assert graph_at(*at_cursor("¦\n")) == "There is no recipe, model or block here."
    reason = graph_at(*at_cursor(TEXT.replace("norm(h)", "nrom¦(h)")))
    assert reason == "Block layer cannot be drawn: unknown block `nrom`."


@pytest.mark.parametrize("line", ["model m[(d = 2]", "model m[= 2, d = 8]", "model m[|> d = 8]"])
def test_a_half_written_line_leaves_no_picture_of_its_recipe(line: str) -> None:
    text = f"""model m[d = 4](x: tokens[n]) -> logits[classes] {{
    return embed[d](x) |> last |> linear[classes]
}}

recipe base {{
    task  ctl
    model m
    train adamw[steps = 1]
}}

recipe r from base {{ {line} }}
"""
    document = Document("m.arch", text)
    described = graph_at(document, text.index("recipe r") + 2)
    assert isinstance(described, str)
    assert "Recipe r cannot be drawn: a line of it cannot be read." in described
    for place in ("embed", "m[d = 4]"):
        assert hover(document, text.index(place)) is not None
