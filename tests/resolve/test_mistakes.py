"""Words of other languages in the place of a static are told what this language writes."""

import pytest

from archlang.errors.edits import apply_edits
from archlang.plan.check import check_text

BLOCK = "block b(h: seq[n, d]) -> seq[n, d] {{\n    return {}\n}}\n"
RECIPE = """model m[d = 8](x: tokens[n]) -> logits[classes] {{ return embed[d](x) |> last |> linear[classes] }}
recipe r {{
    task  ctl
    model m{}
    train adamw[steps = 10{}]
}}
"""


IF = """block b[{}](h: seq[n, d]) -> seq[n, d] {{
    if {} {{ y = norm(h) }} else {{ y = h }}
    return y
}}
"""


@pytest.mark.parametrize(
    ("half", "whole"),
    [
        (BLOCK.format("attention[1, causal = yes](h)"), BLOCK.format("attention[1, causal = true](h)")),
        (BLOCK.format("attention[1, causal = Off](h)"), BLOCK.format("attention[1, causal = false](h)")),
        (
            BLOCK.format("relu(h) when g == yes else h").replace("b(", "b[g = true]("),
            BLOCK.format("relu(h) when g == true else h").replace("b(", "b[g = true]("),
        ),
    ],
)
def test_the_edit_writes_what_is_meant(half: str, whole: str) -> None:
    (mistake,) = check_text(half)
    assert apply_edits(half, mistake.edits) == whole
    assert check_text(whole) == ()


@pytest.mark.parametrize(
    ("text", "code", "remedy"),
    [
        (BLOCK.format("relu(h) when d == many else h"), "E0313", "declare it as a static"),
        (BLOCK.format("relu(h) when d in [1, many] else h"), "E0313", "declare it as a static"),
        (RECIPE.format("", ", clip = None"), "E0313", "write a number such as `0.1`, or leave the static out"),
        (RECIPE.format("", ", dropout = 0.1"), "E0301", "`adamw` has"),
        (RECIPE.format("", ", select = valid.accuracy[6]"), "E0307", "write `valid.accuracy`"),
        (IF.format("g = true", 'g == "true"'), "E0303", "write `true` or `false`"),
        (IF.format("g = true", "g == relu"), "E0303", "write `true` or `false`"),
        (IF.format("g: bool", "g != relu"), "E0303", "write `true` or `false`"),
        (IF.format("g = 8", 'g == "8"'), "E0303", "write `8`"),
        (IF.format("g: int", 'g in [1, "8"]'), "E0303", "write `8`"),
        (IF.format("g: block = attention[1]", "g == attention"), "E0303", "declare a symbol"),
        (IF.format("g: block = norm", "g == norm"), "E0303", "declare a symbol"),
        (IF.format("g: block = norm", "g == 1"), "E0303", "name a block"),
        (RECIPE.replace("[d = 8]", "[d: int]").format("", ""), "E0302", "write `m[d = …]`"),
        (RECIPE.format("", ", device = cuda"), "E0301", "choose the device in the command"),
        (RECIPE.format("", ", accumulate = 4"), "E0301", "write `micro = 16`"),
        (RECIPE.format("", ", ponder_weight = 4"), "E0301", "did you mean `ponder`?"),
        (RECIPE.format("", ", supervise = all"), "E0304", "change one of these values"),
        (RECIPE.format("", ", every = null"), "E0313", "write an integer such as `4`, or leave the static out"),
        (RECIPE.format("", ", seed = 1"), "E0301", "write a line `vary seed in 1..3`"),
        (BLOCK.format("attention[1, head_dim](h)"), "E0313", "write `head_dim = …`"),
        (RECIPE.format("[d = d]", ""), "E0313", "write an integer such as `4`"),
        (BLOCK.format("h").replace("h: seq", "h: Tensor"), "E0407", "write `vec[d]` for a vector or `seq[n, d]`"),
        (BLOCK.format("linear[h.shape[0]](h)"), "E0202", "the type of `h` names its sizes"),
        (BLOCK.format("relu(h) when sum(h) > 0 else h"), "E0307", "use statics and sizes here"),
    ],
)
def test_the_remedy_says_what_is_meant(text: str, code: str, remedy: str) -> None:
    (mistake,) = check_text(text)
    assert mistake.code == code
    assert mistake.remedy.startswith(remedy)
