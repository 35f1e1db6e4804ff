"""The checker and the modules agree: later tokens change earlier outputs only if it says so, and padding none."""

import re
from pathlib import Path
from random import Random

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
from tests.graph.test_causality import CAUSAL, LEAKING
from tests.sampling import one_in
from tests.semantics.batches import Sample, ragged, run, samples
from tests.shipped_models import noisy

ROOT = Path(archlang.__file__).parent
SHIPPED = [
    (file, name)
    for file in sorted([*(ROOT / "recipes").rglob("*.arch"), *(ROOT / "blocks" / "models").rglob("*.arch")])
    for name in re.findall(r"^model (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
]
SMALL = {"d": 16, "heads": 2, "ff": 16, "layers": 2, "depth": 3, "steps": 3, "hidden": 16, "size": 8, "slots": 3,
         "columns": 4, "patch": 2}  # fmt: skip

# Leaks that no change of a token shows: their samples do not halt, or what they read is zero.
UNSEEN = {
    "a state of another length in a halting loop", "a memory that moves in a halting loop",
    "a growing state after the last position", "a map that weighs all keys", "patches that are split",
}  # fmt: skip


def small_graph(file: Path, model: str) -> Graph:
    """Compiles a model with small statics, and any size that a task sets."""
    (definition,) = [i for i in parse(read(file)).items if isinstance(i, Definition) and i.name == model]
    statics = {p.name: SMALL[p.name] for p in definition.signature.statics if p.name in SMALL}
    statics |= {"vocab": 5, "words": 5, "classes": 3}
    graph = compile_graph(file, model, statics)
    unknown = graph.unknown_sizes
    return compile_graph(file, model, {**statics, **dict.fromkeys(unknown, 5)}) if unknown else graph


def perturbed(graph: Graph, noise: float = 0.3) -> Architecture:
    torch.manual_seed(0)
    return noisy(build(graph), noise)


def sees_future(graph: Graph, length: int = 13) -> bool:
    """Returns whether an output changes when only later tokens of the last field change."""
    module = perturbed(graph)
    batch = samples(graph, [[length] * len(graph.region.inputs)] * 4, 0)

    def results(batch: list[Sample]) -> Tensor:
        torch.manual_seed(1)  # for models that draw in evaluation mode
        return torch.stack(run(module, batch))

    before = results(batch)
    for position in range(length - 1):
        later = [Sample((*sample.fields[:-1], sample.fields[-1].clone())) for sample in batch]
        for sample in later:
            sample.fields[-1][position + 1 :] = (sample.fields[-1][position + 1 :] + 1 + position % 3) % 5
        past = slice(None) if before.dim() == 2 else slice(0, position + 1)
        if not torch.allclose(before[:, past], results(later)[:, past], rtol=0, atol=1e-12):
            return True
    return False


@pytest.mark.parametrize(("file", "model"), one_in(4, SHIPPED), ids=[f"{file.stem}-{model}" for file, model in SHIPPED])
def test_the_checker_and_the_module_agree_on_every_shipped_model(file: Path, model: str) -> None:
    graph = small_graph(file, model)
    expected = horizon(graph, graph.region.inputs[-1].name).sees_future
    assert sees_future(graph, 17) is expected  # four times four pixels, and one more


@pytest.mark.parametrize(("file", "model"), one_in(4, SHIPPED), ids=[f"{file.stem}-{model}" for file, model in SHIPPED])
def test_a_sample_has_the_same_result_alone_and_padded_beside_others(file: Path, model: str) -> None:
    graph = small_graph(file, model)
    # With larger weights, deep recursions are chaotic: rounding changes their results.
    module, batch = perturbed(graph, noise=0.02), samples(graph, ragged(graph, Random(1), 3), 1)
    caveats = {caveat for instance in graph.instances.values() for caveat in instance.caveats}
    if caveats & {"padding", "batch", "random"}:
        return
    with torch.no_grad():
        for sample, result in zip(batch, run(module, batch, extra=2), strict=True):
            (alone,) = run(module, [sample], masked=False)
            columns = result[:, : alone.shape[1]] if alone.dim() == 3 else result  # a map has padded columns too
            torch.testing.assert_close(columns, alone, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", one_in(3, (name for name in (*CAUSAL, *LEAKING) if name not in UNSEEN)))
def test_what_the_checker_says_of_a_construct_can_be_seen(name: str, tmp_path: Path) -> None:
    body = CAUSAL[name] if name in CAUSAL else LEAKING[name][0]
    file = tmp_path / "m.arch"
    file.write_text(f"model m[d = 8](x: tokens[n]) -> logits[n, vocab] {{\n    h = embed[d](x)\n{body}\n}}\n")
    assert sees_future(compile_graph(file, statics={"vocab": 5})) is (name in LEAKING)
