"""The checker and the modules agree on causality: the future is perturbed and the past watched, in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import archlang
from archlang.backend.architecture import Architecture
from archlang.compile import build, compile_graph
from archlang.graph.causality import horizon
from archlang.graph.graph import Graph
from archlang.syntax.parser import parse, read
from archlang.syntax.tree import Definition
from archlang.types import Type

ROOT = Path(archlang.__file__).parent
SHIPPED = [
    (file, item.name)
    for file in sorted([*(ROOT / "recipes").rglob("*.arch"), *(ROOT / "blocks" / "models").rglob("*.arch")])
    for item in parse(read(file)).items
    if isinstance(item, Definition) and item.word == "model"
]
SMALL = {"d": 16, "heads": 2, "ff": 16, "layers": 2, "depth": 3, "steps": 3, "hidden": 16, "size": 4, "slots": 3}

# Bodies of models of one field, causal and not, beside those that are shipped.
BODIES = {
    "xpos both ways": "return linear[vocab](attention[2, position = xpos](h))",
    "xpos causal": "return linear[vocab](attention[2, position = xpos, causal = true](h))",
    "geometric": "return linear[vocab](geometric_attention[2](h))",
    "geometric causal": "return linear[vocab](geometric_attention[2, causal = true](h))",
    "global halting": "repeat 4 halting h by global_halt[0.9] { h <- h + linear[d](h) }\nreturn linear[vocab](h)",
    "global halting, causal": "repeat 4 halting h by global_halt[0.9, causal = true] { h <- h + linear[d](h) }\n"
    "return linear[vocab](h)",
    "token halting": "repeat 4 halting h as s by token_halt[0.9] { h <- h + attention[2, causal = true](h, s) }\n"
    "return linear[vocab](h)",
    "memory before": "m = learned[3, d, init = normal]()\ny = scan c in chunks[4](h) carry m {\n"
    "a = c + attention[2](c, m)\nm <- m + attention[2](m, a)\nemit a }\nreturn linear[vocab](y)",
    "memory after": "m = learned[3, d, init = normal]()\ny = scan c in chunks[4](h) carry m {\n"
    "m <- m + attention[2](m, c)\nemit c + attention[2](c, m) }\nreturn linear[vocab](y)",
    "full in chunks": "y = scan c in chunks[4](h) { emit attention[2](c) }\nreturn linear[vocab](y)",
    "causal in chunks": "y = scan c in chunks[4](h) { emit attention[2, causal = true](c) }\nreturn linear[vocab](y)",
    "pointwise": "return linear[vocab](feedforward[8](norm(h)))",
}


def field(kind: Type, lengths: int) -> Tensor:
    """Tokens, or vectors of real numbers."""
    if kind.name == "tokens":
        return torch.randint(0, 5, (4, lengths))
    assert kind.feature is not None
    assert kind.feature.constant is not None
    return torch.randn(4, lengths, kind.feature.constant, dtype=torch.float64)


def answer(module: Architecture, fields: list[Tensor], lengths: Any) -> Tensor:  # Any: as modules take them
    """What a module says; one that draws at test time too draws the same numbers."""
    torch.manual_seed(1)
    result: Tensor = module(*fields, lengths=lengths)
    return result


def sees_future(found: Graph, lengths: int = 13) -> bool:
    """Whether any output changes when only later tokens of the last field do."""
    torch.manual_seed(0)
    module = build(found).double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    fields = [field(value.type, lengths) for value in found.region.inputs]
    whole = torch.full((4,), lengths)
    real = {value.name: whole for value in found.region.inputs}
    given = real if len(real) > 1 else whole
    before = answer(module, fields, given)
    for position in range(lengths - 1):
        later = [field.clone() for field in fields]
        later[-1][:, position + 1 :] = (later[-1][:, position + 1 :] + 1 + position % 3) % 5
        after = answer(module, later, given)
        past = slice(None) if before.dim() == 2 else slice(0, position + 1)
        if not torch.allclose(before[:, past], after[:, past], rtol=0, atol=1e-12):
            return True
    return False


@pytest.mark.parametrize(("file", "model"), SHIPPED, ids=[f"{file.stem}-{model}" for file, model in SHIPPED])
def test_the_checker_and_the_module_agree_on_every_shipped_model(file: Path, model: str) -> None:
    (definition,) = [i for i in parse(read(file)).items if isinstance(i, Definition) and i.name == model]
    statics = {p.name: SMALL[p.name] for p in definition.signature.statics if p.name in SMALL}
    sizes = {"k": 5} if "k]" in definition.span.text.partition("{")[0] else {}
    found = compile_graph(file, model, {**statics, "vocab": 5, "words": 5, "classes": 3, **sizes})
    said = horizon(found, found.region.inputs[-1].name).sees_future
    assert sees_future(found) is said


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_checker_and_the_module_agree_on_every_kind_of_loop(body: str, tmp_path: Path) -> None:
    file = tmp_path / "m.arch"
    file.write_text(f"model m[d = 8](x: tokens[n]) -> logits[n, vocab] {{\n    h = embed[d](x)\n{body}\n}}\n")
    found = compile_graph(file, statics={"vocab": 5})
    said = horizon(found, "x").sees_future
    if "chunks" in body and said:
        # The checker does not know where chunks end: it may refuse what only looks ahead within one.
        assert sees_future(found)
    else:
        assert sees_future(found) is said
