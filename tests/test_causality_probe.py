"""The checker and the modules agree on causality: later tokens change earlier outputs only if the checker says so."""

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
from tests.sampling import one_in

ROOT = Path(archlang.__file__).parent
SHIPPED = [
    (file, item.name)
    for file in sorted([*(ROOT / "recipes").rglob("*.arch"), *(ROOT / "blocks" / "models").rglob("*.arch")])
    for item in parse(read(file)).items
    if isinstance(item, Definition) and item.word == "model"
]
SMALL = {"d": 16, "heads": 2, "ff": 16, "layers": 2, "depth": 3, "steps": 3, "hidden": 16, "size": 8, "slots": 3}

# Bodies of models with one field, causal and not, in addition to the shipped models.
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
    "emission of token halting": "y = repeat 4 halting h by token_halt[0.9] {\n"
    "h <- h + attention[2, causal = true](h)\nemit linear[vocab](h) }\nreturn y",
    "emission of global halting": "y = repeat 4 halting h by global_halt[0.9] {\n"
    "h <- h + linear[d](h)\nemit linear[vocab](h) }\nreturn y",
    "memory before": "m = learned[3, d, init = normal]()\ny = scan c in chunks[4](h) carry m {\n"
    "a = c + attention[2](c, m)\nm <- m + attention[2](m, a)\nemit a }\nreturn linear[vocab](y)",
    "memory after": "m = learned[3, d, init = normal]()\ny = scan c in chunks[4](h) carry m {\n"
    "m <- m + attention[2](m, c)\nemit c + attention[2](c, m) }\nreturn linear[vocab](y)",
    "full in chunks": "y = scan c in chunks[4](h) { emit attention[2](c) }\nreturn linear[vocab](y)",
    "causal in chunks": "y = scan c in chunks[4](h) { emit attention[2, causal = true](c) }\nreturn linear[vocab](y)",
    "pointwise": "return linear[vocab](feedforward[8](norm(h)))",
}


def small_graph(file: Path, model: str) -> Graph:
    """Compiles a model with small statics, and any size that a task sets."""
    (definition,) = [i for i in parse(read(file)).items if isinstance(i, Definition) and i.name == model]
    statics = {p.name: SMALL[p.name] for p in definition.signature.statics if p.name in SMALL}
    statics |= {"vocab": 5, "words": 5, "classes": 3}
    graph = compile_graph(file, model, statics)
    unknown = graph.unknown_sizes
    return compile_graph(file, model, {**statics, **dict.fromkeys(unknown, 5)}) if unknown else graph


def field(kind: Type, lengths: int) -> Tensor:
    """Random tokens [4, n], or random vectors [4, n, d] in float64."""
    if kind.name == "tokens":
        return torch.randint(0, 5, (4, lengths))
    assert kind.feature is not None
    assert kind.feature.constant is not None
    return torch.randn(4, lengths, kind.feature.constant, dtype=torch.float64)


def outputs(module: Architecture, fields: list[Tensor], lengths: Any) -> Tensor:  # Any: as in Architecture.__call__
    """Returns a module's outputs. The fixed seed repeats the random numbers of modules that draw in evaluation mode."""
    torch.manual_seed(1)
    result: Tensor = module(*fields, lengths=lengths)
    return result


def sees_future(graph: Graph, lengths: int = 13) -> bool:
    """Returns whether an output changes when only later tokens of the last field change."""
    torch.manual_seed(0)
    module = build(graph).double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    fields = [field(value.type, lengths) for value in graph.region.inputs]
    full = torch.full((4,), lengths)
    by_field = {value.name: full for value in graph.region.inputs}
    field_lengths = by_field if len(by_field) > 1 else full
    before = outputs(module, fields, field_lengths)
    for position in range(lengths - 1):
        later = [field.clone() for field in fields]
        later[-1][:, position + 1 :] = (later[-1][:, position + 1 :] + 1 + position % 3) % 5
        after = outputs(module, later, field_lengths)
        past = slice(None) if before.dim() == 2 else slice(0, position + 1)
        if not torch.allclose(before[:, past], after[:, past], rtol=0, atol=1e-12):
            return True
    return False


@pytest.mark.parametrize(("file", "model"), one_in(4, SHIPPED), ids=[f"{file.stem}-{model}" for file, model in SHIPPED])
def test_the_checker_and_the_module_agree_on_every_shipped_model(file: Path, model: str) -> None:
    graph = small_graph(file, model)
    expected = horizon(graph, graph.region.inputs[-1].name).sees_future
    assert sees_future(graph) is expected


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_checker_and_the_module_agree_on_every_kind_of_loop(body: str, tmp_path: Path) -> None:
    file = tmp_path / "m.arch"
    file.write_text(f"model m[d = 8](x: tokens[n]) -> logits[n, vocab] {{\n    h = embed[d](x)\n{body}\n}}\n")
    graph = compile_graph(file, statics={"vocab": 5})
    expected = horizon(graph, "x").sees_future
    if "chunks" in body and expected:
        # The checker does not know where chunks end: it may report a read that looks ahead within its chunk only.
        assert sees_future(graph)
    else:
        assert sees_future(graph) is expected
