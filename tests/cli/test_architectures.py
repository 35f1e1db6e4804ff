"""`archlang show`, `viz`, `summary`, `card` and `diff`: every stage, picture, cost and difference of programs."""

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from markupsafe import escape
from typer.testing import CliRunner

import archlang
from archlang.cli.app import app
from archlang.graph.passes.pipeline import PASSES
from archlang.graph.text import parse_graph
from tests.cli.conftest import MODEL, Command

RECIPES = Path(archlang.__file__).parent / "recipes"
GUTLB, NDR = str(RECIPES / "gutlb.arch"), str(RECIPES / "ndr.arch")


def run(*command: str) -> str:
    done = CliRunner().invoke(app, list(command))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_tree_is_that_of_the_text(archlang: Command, folder: Path) -> None:
    result = archlang("show", "bad.arch", "--tree")
    assert result.code == 0
    assert result.out.startswith("Program(")
    assert "Return(" in result.out
    assert "Name(parts=('nrom',))" in result.out


def test_the_graph_reads_back(archlang: Command, folder: Path) -> None:
    for option in ("--graph", "--without=common"):
        result = archlang("show", "model.arch", option)
        assert result.code == 0
        assert "call @embed" in result.out
        assert parse_graph(result.out)


@pytest.mark.parametrize("stage", ["--torch", "--lowered"])
def test_the_torch_program_names_its_lines(archlang: Command, folder: Path, stage: str) -> None:
    result = archlang("show", "model.arch", stage)
    assert result.code == 0
    assert "def forward(self, x" in result.out
    assert "# model.arch:2" in result.out
    compile(result.out, "shown", "exec")


def test_the_first_recipe_gives_the_statics_unless_another_is_named(archlang: Command, folder: Path) -> None:
    assert "d = 8" in archlang("show", "model.arch").out
    assert "d = 16" in archlang("show", "model.arch", "--recipe", "wide").out
    assert "d = 32" in archlang("show", "model.arch", "--set", "model.d=32").out


def test_a_model_alone_needs_the_sizes_of_a_task(archlang: Command, folder: Path) -> None:
    result = archlang("show", "model.arch", "--model", "m", "--set", "classes=3", "--set", "vocab=5")
    assert result.code == 0
    assert "linear[out = 3" in result.out


def test_passes_are_listed_with_their_effects_and_can_be_skipped(archlang: Command, folder: Path) -> None:
    result = archlang("show", "model.arch", "--passes", "--without", "dead")
    lines = result.out.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == [step.name for step in PASSES]  # nothing of the model is fused
    assert "3 nodes to 3" in lines[0]
    assert lines[names.index("dead")].endswith("skipped")


def test_passes_name_what_they_fuse_and_what_prevents_it(archlang: Command, folder: Path) -> None:
    (folder / "own.arch").write_text(
        """block own(x: seq[n, d]) -> seq[n, d] {
    y = weigh(softmax_keys(scores[2](x, x)), x)
    z = weigh(softmax_queries(scores[2](y, y)), y)
    s = mean(constant[1, d]())
    w = scan v in z carry s {
        s <- s + v
        emit s
    }
    return w
}
"""
    )
    lines = archlang("show", "own.arch", "--model", "own", "--set", "d=4", "--passes").out.splitlines()
    assert lines[len(PASSES) :] == [
        "the scan at own.arch:5:5 runs for all positions at once, where no factor of a state is above 1",
        "the map `scores_2` is held as a whole: softmax_queries(scores[2](y, y)), own.arch:3:15, "
        "does not take it by rows",
        "the maps of `weigh(softmax_keys(scores[2](x, x)), x)` at own.arch:2:9 are computed by rows "
        "or by torch's fused attention or by flex_attention",
    ]


def test_without_out_it_prints_a_tree_with_types() -> None:
    text = run("viz", GUTLB)
    assert "repeat ≤ 4" in text
    assert "halting c by global_halt" in text
    assert "→ h: seq[n, 64]" in text


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pictures of a recipe, in a folder that was missing."""
    folder = tmp_path_factory.mktemp("pictures") / "a" / "b"
    for kind in ("svg", "html", "mmd"):
        run("viz", GUTLB, "-o", str(folder / f"gutlb.{kind}"))
    return folder


def test_svg_is_well_formed_shows_the_lines_and_names_files_by_their_path_in_the_package(pictures: Path) -> None:
    text = (pictures / "gutlb.svg").read_text()
    ElementTree.fromstring(text)
    assert "h = embed[d](x)" in text
    assert "archlang/recipes/gutlb.arch:" in text
    assert str(Path(archlang.__file__).parent) not in text


def test_the_page_is_small_and_needs_no_network(pictures: Path) -> None:
    text = (pictures / "gutlb.html").read_text()
    assert len(text.encode()) < 500_000
    assert not re.findall(r"(?:src|href)=|@import|fetch\(|https?://(?!www\.w3\.org/)", text)


def test_the_page_has_the_card_that_the_terminal_prints(pictures: Path) -> None:
    assert f"<pre>{escape(run('card', GUTLB).rstrip())}</pre>" in (pictures / "gutlb.html").read_text()


def test_mermaid_is_balanced_and_names_every_block(pictures: Path) -> None:
    text = (pictures / "gutlb.mmd").read_text()
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert len(re.findall(r"^ *subgraph", bare, re.M)) == len(re.findall(r"^ *end$", bare, re.M)) > 1
    assert '"' not in bare
    for block in ("embed", "attention", "norm", "feedforward", "copy_gate", "global_halt", "linear"):
        assert block in text


def test_markup_in_a_program_is_text(tmp_path: Path) -> None:
    file = tmp_path / "evil.arch"
    file.write_text(
        "model evil(x: tokens[n]) -> logits[n, vocab] {\n"
        "    return linear[vocab](embed[8](x))  # </script><script>alert(1)</script><img onerror='a'>\n}\n"
    )
    for kind in ("html", "svg", "mmd"):
        out = tmp_path / f"evil.{kind}"
        run("viz", str(file), "-o", str(out), "--set", "vocab=5")
        assert "<script>alert" not in out.read_text()
        assert "<img" not in out.read_text()


def test_a_picture_may_be_a_png(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="resvg-py is not installed")
    run("viz", GUTLB, "-o", str(tmp_path / "gutlb.png"))
    assert (tmp_path / "gutlb.png").read_bytes().startswith(b"\x89PNG")


def test_a_card_says_what_is_proved_with_conditions_and_source() -> None:
    card, facts = run("card", str(RECIPES / "s3.arch")), json.loads(run("card", str(RECIPES / "s3.arch"), "--json"))
    assert "memory moves by a diagonal plus rank 2, with eigenvalues in [-1, 1]" in card
    for claim in facts["claims"]:
        sentence, conditions, source, _ = claim.values()
        assert f"layer {sentence}.\n    if: {conditions}\n    by: {source}\n" in card
    assert facts["flops"] == {"coefficients": [0.0, 21376.0], "is_exact": True, "text": "21,376 n"}
    assert facts["transitions"][0]["rank"] == 2


def test_a_card_without_a_theorem_says_so(archlang: Command, folder: Path) -> None:
    (folder / "own.arch").write_text(
        'extern block own(h: seq[n, d]) -> seq[n, d] python "own:Own"\n'
        "model m(x: tokens[n]) -> logits[n, vocab] { return linear[vocab](own(embed[8](x))) }\n"
    )
    result = archlang("card", "own.arch")
    assert "No theorem that archlang knows applies to such a model." in result.out
    assert "--set vocab=10" in result.out


def test_a_summary_grows_with_the_batch() -> None:
    (single,) = json.loads(run("summary", GUTLB, "--json", "--length", "64"))
    (batch,) = json.loads(run("summary", GUTLB, "--json", "--length", "64", "--batch", "4"))
    assert batch["flops"] == 4 * single["flops"]
    assert single["unique"] == 125_446
    # The training has the batch of the recipe.
    assert single["training_bytes"] == batch["training_bytes"]
    assert single["training_bytes"]["1 device"]["weights"] == 4 * 125_446


def test_a_summary_says_how_each_recurrence_moves_and_each_scan_runs(archlang: Command, folder: Path) -> None:
    (folder / "own.arch").write_text(
        """block own(x: seq[n, d]) -> seq[n, d] {
    s = mean(constant[1, d]())
    t = s
    u = s
    c = s
    y = scan v in x carry s {
        s <- sigmoid(v) * s + v
        emit s
    }
    z = scan v in y carry t {
        t <- tanh(v + t)
        emit t
    }
    w = scan v in z carry u, c {
        c <- sigmoid(linear[d](concat(v, u))) * c + sigmoid(linear[d](concat(v, u))) * tanh(linear[d](concat(v, u)))
        u <- sigmoid(linear[d](concat(v, u))) * tanh(c)
        emit u
    }
    return w
}
"""
    )
    sentences = ["s moves by a diagonal in [0, 1], which depends on the input", "t moves by what is not linear"]
    sentences += ["u moves by what is not linear", "c moves by what is not linear"]
    forms = ["runs for all positions at once, where no factor of a state is above 1"]
    forms.append("runs step by step, with a backward pass of its own: `tanh(v + t)` has no parallel form in `t`")
    forms.append("runs as one operation of torch, an LSTM")
    scans = [f"the scan at own.arch:{line}:5 {form}" for line, form in zip((6, 10, 14), forms, strict=True)]
    command = ["summary", "own.arch", "--model", "own", "--set", "d=4"]
    assert archlang(*command).out.splitlines()[-4:] == sentences
    assert archlang(*command, "--measure").out.splitlines()[-7:] == sentences + scans
    (facts,) = json.loads(archlang(*command, "--measure", "--json").out)
    assert (facts["recurrences"], facts["scans"]) == (sentences, scans)


BLOCKS = """block loops(h: seq[n, d]) -> seq[n, d] {
    repeat 3 { h <- norm(h) }
    return h
}
block other(h: seq[n, d]) -> seq[n, d] { return loops(h) }
"""


@pytest.fixture
def programs(folder: Path) -> None:
    Path("blocks.arch").write_text(BLOCKS, encoding="utf-8")
    Path("both.arch").write_text(MODEL + BLOCKS, encoding="utf-8")


def test_a_block_is_drawn_by_its_name_and_called_a_block(programs: None) -> None:
    assert run("viz", "blocks.arch", "--model", "loops").startswith("block loops")
    assert run("viz", "model.arch").startswith("model m")


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("show model.arch --tree --torch", 2, "different stages"),
        ("show model.arch --model other", 1, "unknown model or block `other`"),
        ("show model.arch --recipe other", 1, "unknown recipe `other`"),
        ("show model.arch --set model.width=3", 1, "`model.width`"),
        ("show model.arch --set model.d", 2, "path=value"),
        ("show model.arch --without inline", 2, "unknown optional pass `inline`"),
        ("show model.arch --without speed", 2, "unknown optional pass `speed`"),
        ("show broken.arch --tree", 1, "E0101"),
        ("show bad.arch", 1, "E02"),
        ("summary gutlb --devices 4096", 1, "cannot be shared by 4096 processes"),
        ("show nothing.arch", 1, "no such file"),
        ("show .", 1, "it is a folder"),
        ("viz model.arch -o model.gif", 2, ".svg"),
        ("viz model.arch --fold x", 2, "the picture has no box `x` with content"),
        ("diff model.arch model.arch -o model.gif", 2, ".svg"),
        ("report model.arch -o model.gif", 2, ".html"),
        ("viz blocks.arch", 1, "this file has no model"),
        ("viz blocks.arch", 1, "a block by `--model`; the blocks are `loops`, `other`"),
        ("viz blocks.arch -m x", 1, "help: the blocks are `loops`, `other`"),
        ("viz blocks.arch -m otter", 1, "help: did you mean `other`?"),
        ("viz model.arch -m x", 1, "help: the models are `m`"),
        ("viz both.arch -m x", 1, "help: the models are `m`; the blocks are `loops`, `other`"),
        ("diff model.arch model.arch --model nope", 1, "the models are `m`"),
        ("diff model.arch model.arch --model-before nope", 1, "the models are `m`"),
    ],
)
def test_an_impossible_request_is_an_error(
    command: str, code: int, words: str, archlang: Command, programs: None
) -> None:
    result = archlang(*command.split())
    assert (result.code, result.out) == (code, "")
    assert words in result.err


PROGRAM = """block mixer(h: seq[n, d], g: seq[n, e]) -> seq[n, d] { return h + linear[d](concat(h, g)) }
model m(x: tokens[n]) -> logits[classes] { return embed[8](x) |> last |> linear[classes] }
"""


@pytest.mark.parametrize(
    ("name", "sets", "reason"),
    [
        ("mixer", "--set d=16 --set e=16", "sets sizes that the inputs have"),
        ("m", "--set classes=10 --set vocab=10", "sets sizes that a task sets"),
    ],
)
def test_the_remedy_sets_every_unknown_size(
    name: str, sets: str, reason: str, archlang: Command, tmp_path: Path
) -> None:
    file = tmp_path / "p.arch"
    file.write_text(PROGRAM, encoding="utf-8")
    shown = archlang("summary", str(file), "--model", name).out
    assert f"`{sets}` {reason}." in shown
    assert "The sums do not include" not in archlang("summary", str(file), "--model", name, *sets.split()).out


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ((), "nothing changed"),
        (("--model", "transformer"), "copy gate removed"),
        (("--model-before", "transformer"), "copy gate added"),
        (("--model-before", "transformer", "--model", "transformer"), "nothing changed"),
        (("--recipe", "baseline"), "copy gate removed"),
    ],
)
def test_the_models_of_the_first_recipes_or_named_ones_are_compared(options: tuple[str, ...], change: str) -> None:
    assert change in run("diff", NDR, NDR, *options)
