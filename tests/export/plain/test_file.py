"""A model as one file of plain torch code gives the numbers of the module, where only torch can be imported."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from archlang.backend.architecture import Architecture
from archlang.compile import build, compile_named, load
from archlang.errors import ProgramError
from archlang.export.mistakes import ExportError
from archlang.export.plain.file import plain_module, plain_text
from archlang.graph.summary import summarize
from archlang.plan.from_file import recipe_names
from archlang.plugins import Plugins
from archlang.resolve.library import BLOCKS
from tests.closeness import close
from tests.conftest import Compiled
from tests.export.plain.plain_models import differences, lint, write
from tests.export.test_graphs import SELECTING
from tests.semantics.batches import randomised, samples
from tests.semantics.compiled import Compiled as CompiledProgram
from tests.semantics.compiled import compile_text
from tests.semantics.generator import program
from tests.shipped_models import SHIPPED, shipped_model

RECIPES = BLOCKS.parent / "recipes"
TOLERANCE = 1e-10

# Larger models are not built: they take gigabytes in double precision.
MOST_PARAMETERS = 300_000_000


def recipe_model(file: Path, recipe: str | None = None) -> Architecture:
    torch.manual_seed(0)
    return build(compile_named(file, None, recipe, {}))


# A model of each kind of step, of memory and of input; all models run with `-m slow`.
IN_SUITE = (
    "ndr", "absrel_gated", "adaptive_geometric", "bidirectional", "gated_universal_latent_bottleneck", "siamese",
    "panm_bigru", "panm_seq2seq",
)  # fmt: skip


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, float]]]:
    folder = tmp_path_factory.mktemp("plain")
    for name in IN_SUITE:
        write(shipped_model(name), name, folder)
    (folder / "selecting.arch").write_text(SELECTING)
    write(load(folder / "selecting.arch", vocab=5, classes=3), "selecting", folder)
    return folder, differences(folder, [*IN_SUITE, "selecting"])


@pytest.mark.parametrize(
    ("name", "order"), [("selecting", "first"), *((name, order) for name in IN_SUITE for order in ("first", "second"))]
)
def test_a_plain_file_gives_the_numbers_and_the_second_derivatives_of_the_module(
    name: str, order: str, exported: tuple[Path, dict[str, dict[str, float]]]
) -> None:
    assert exported[1][name][order] <= TOLERANCE


def test_ruff_accepts_the_plain_files(exported: tuple[Path, dict[str, dict[str, float]]]) -> None:
    assert lint(exported[0]) == ""


def test_a_plain_file_has_no_infrastructure(exported: tuple[Path, dict[str, dict[str, float]]]) -> None:
    for file in exported[0].glob("plain_*.py"):
        text = file.read_text(encoding="utf-8").partition('\n"""\n')[2]
        for word in (
            "import archlang",
            "from archlang",
            "Products",
            "mapped(",
            "jaxtyping",
            "is_compiling",
            "BlockCache",
        ):
            assert word not in text, f"{file.name}: {word}"


@pytest.mark.slow
def test_every_model_of_the_library_has_a_plain_file(tmp_path: Path) -> None:
    for name in SHIPPED:
        write(shipped_model(name), name, tmp_path)
    assert all(max(values.values()) <= TOLERANCE for values in differences(tmp_path, [*SHIPPED]).values())
    assert lint(tmp_path) == ""


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(RECIPES.rglob("*.arch")), ids=lambda file: f"{file.parent.stem}-{file.stem}")
def test_the_model_of_every_recipe_has_a_plain_file(file: Path, tmp_path: Path) -> None:
    names = []
    for recipe in recipe_names(file):
        try:
            if summarize(compile_named(file, None, recipe, {}), 1).unique > MOST_PARAMETERS:
                continue
            module = recipe_model(file, recipe)
        except ProgramError as error:
            pytest.skip(str(error))
        write(module, recipe, tmp_path)
        names.append(recipe)
    assert all(max(values.values()) <= TOLERANCE for values in differences(tmp_path, names).values())
    assert lint(tmp_path) == ""


# Among them: nested loops with results of one name, a loop without statements, and a long line.
OF_NO_PARTS = """
block scanned(h: seq[n, d]) -> seq[n, d] {
    s = first(constant[1, d]())
    y = scan v in every[2](h) carry s {
        s <- s + v * (1 / 3)
        emit tanh(s)
    }
    return hold[2](y, h)
}
block mixed(h: seq[n, d]) -> seq[n, d] {
    w = softmax(linear[2](every[2](h)))
    y = experts v in every[2](h) by w { emit linear[d](v) }
    return hold[2](y, h)
}
model m(x: tokens[n]) -> logits[n, vocab] {
    h = embed[4](x)
    return linear[vocab](scanned(h) + mixed(h))
}
"""


def test_a_plain_file_computes_loops_without_parts_and_divides_numbers(tmp_path: Path) -> None:
    (tmp_path / "m.arch").write_text(OF_NO_PARTS)
    module = load(tmp_path / "m.arch", vocab=5).double().eval()
    plain = plain_module(module, plain_text(module))
    tokens = torch.tensor([[1, 2, 3], [4, 0, 0]])
    for lengths in (None, torch.tensor([3, 1])):
        close(plain(tokens, lengths=lengths), module(tokens, lengths=lengths))
    for lengths in (None, torch.tensor([1, 1])):
        close(plain(tokens[:, :1], lengths=lengths), module(tokens[:, :1], lengths=lengths))


@pytest.mark.parametrize("seed", [0, 9, 123, 223, 327])
def test_the_plain_file_of_a_random_program_gives_the_numbers_of_the_module(seed: int) -> None:
    compiled = compile_text(program(seed))
    assert isinstance(compiled, CompiledProgram)
    module = randomised(compiled.graph, seed).eval()
    plain = plain_module(module, plain_text(module))
    batch = samples(compiled.graph, [(5,) * len(module.program.inputs)] * 2, seed)
    fields = [torch.stack(values) for values in zip(*(sample.fields for sample in batch), strict=True)]
    torch.manual_seed(0)
    expected = module(*fields)
    torch.manual_seed(0)
    assert (plain(*fields) - expected).abs().max() < TOLERANCE


PLUGIN = """
import {package}
import torch
from torch import nn


class Double(nn.Module):
    def __init__(self, *, d: int) -> None:
        super().__init__()

    def forward(self, x, *, mask_n=None):
        return {expression}
"""
PROGRAM = """extern block double(x: seq[n, d]) -> seq[n, d]
    python "doubling:Double"

model m[d = 4](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> double |> last |> linear[classes]
}
"""


def plugin_model(folder: Path, package: str, expression: str) -> Architecture:
    (folder / "doubling.py").write_text(PLUGIN.format(package=package, expression=expression))
    (folder / "m.arch").write_text(PROGRAM)
    graph = compile_named(folder / "m.arch", "m", None, {"model.vocab": "5", "model.classes": "3"})
    return build(graph, Plugins.read([folder / "doubling.py"]))


def test_a_block_of_your_own_is_copied(tmp_path: Path) -> None:
    text = plain_text(plugin_model(tmp_path, "math", "x * math.e"))
    assert "class Double(nn.Module):" in text
    assert "import math" in text


def test_a_block_that_needs_another_package_is_refused_at_its_line(tmp_path: Path) -> None:
    module = plugin_model(tmp_path, "numpy", "x * float(numpy.float64(2))")
    with pytest.raises(ExportError, match=r"m\.arch:5:27: `double` cannot be exported: it needs numpy"):
        plain_text(module)


NAMED = """model {model}(first: tokens[n]) -> logits[n, vocab] {{
    let {map} = linear[4]
    {value} = embed[4](first)
    repeat 2 {{ {value} <- {value} + {map}({value}) }}
    return linear[vocab]({value})
}}"""


@pytest.mark.parametrize(
    ("role", "name", "renamed"),
    [
        ("model", "f", "FModel"), ("model", "none", "NoneModel"), ("model", "True", "TrueModel"),
        ("model", "False", "FalseModel"), ("model", "_", "Model"), ("model", "_1", "Model1"),
        ("model", "path", "PathModel"), ("model", "real_positions", "RealPositions"),
        ("first", "class", "class_"), ("first", "lambda", "lambda_"), ("first", "from", "from_"),
        ("first", "None", "None_"), ("first", "lengths", "lengths_"), ("first", "_", "value_"), ("first", "__x", "x_"),
        ("first", "real_positions", "real_positions_2"), ("first", "load", "load"), ("value", "_", "value_"),
        ("value", "class", "class_"), ("value", "torch", "torch_"), ("map", "__x", "_modules['__x']"),
        ("map", "def", "self.def_"),
    ],
)  # fmt: skip
def test_any_name_of_a_program_has_a_name_in_python(role: str, name: str, renamed: str, tmp_path: Path) -> None:
    names = {"model": "m", "first": "x", "value": "h", "map": "f"} | {role: name}
    (tmp_path / "m.arch").write_text(NAMED.replace("first", names["first"]).format(**names))
    module = load(tmp_path / "m.arch", vocab=5).eval()
    text, x, lengths = plain_text(module), torch.randint(5, (2, 3)), torch.tensor([3, 2])
    assert renamed in text.partition('\n"""\n')[2]
    first = renamed if role == "first" else "x"
    assert torch.equal(plain_module(module, text)(**{first: x}, lengths=lengths), module(x, lengths=lengths))


def test_a_plain_file_takes_lengths_also_where_nothing_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "m.arch"
    file.write_text("model m(x: tokens[n]) -> logits[classes] { return first(linear[classes](constant[1, 4, 2.0]())) }")
    module = load(file, classes=3, vocab=5).eval()
    x, lengths = torch.randint(5, (2, 3)), torch.tensor([2, 3])
    assert torch.equal(plain_module(module, plain_text(module))(x, lengths=lengths), module(x, lengths=lengths))


def test_fields_of_one_length_take_one_tensor_of_lengths(compiled: Compiled) -> None:
    module = compiled(
        "model m[d = 4](x: tokens[n], v: vec[4], y: tokens[n]) -> logits[classes] {\n"
        "    return linear[classes](v + mean(embed[d](x) + attention[1](embed[d](y))))\n}"
    ).double()
    fields = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.ones(2, 4, dtype=torch.float64), torch.tensor([[3, 2, 1]] * 2)
    plain = plain_module(module, plain_text(module))
    expected = module(*fields, lengths={"x": torch.tensor([3, 1])})
    for lengths in (torch.tensor([3, 1]), {"x": torch.tensor([3, 1])}):
        assert (plain(*fields, lengths=lengths) - expected).abs().max() < TOLERANCE
        assert torch.equal(module(*fields, lengths=lengths), expected)
