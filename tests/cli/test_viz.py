"""`archlang viz` and `archlang summary`."""

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from typer.testing import CliRunner

import archlang
from archlang.cli.app import app
from tests.cli.conftest import MODEL, Command

GUTLB = str(Path(archlang.__file__).parent / "recipes" / "gutlb.arch")


def run(*command: str) -> str:
    done = CliRunner().invoke(app, list(command))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_without_out_it_prints_a_tree_with_types() -> None:
    text = run("viz", GUTLB)
    assert "repeat ≤ 4" in text
    assert "halting c by global_halt" in text
    assert "→ h: seq[n, 64]" in text


def test_svg_is_well_formed_and_shows_the_line_of_every_block(tmp_path: Path) -> None:
    out = tmp_path / "gutlb.svg"
    run("viz", GUTLB, "-o", str(out))
    ElementTree.fromstring(out.read_text())
    assert "h = embed[d](x)" in out.read_text()


def test_a_picture_names_files_of_the_library_by_their_path_in_the_package(tmp_path: Path) -> None:
    out = tmp_path / "gutlb.svg"
    run("viz", GUTLB, "-o", str(out))
    assert "archlang/recipes/gutlb.arch:" in out.read_text()
    assert str(Path(archlang.__file__).parent) not in out.read_text()


def test_the_page_is_small_and_needs_no_network(tmp_path: Path) -> None:
    out = tmp_path / "gutlb.html"
    run("viz", GUTLB, "-o", str(out))
    text = out.read_text()
    assert len(text.encode()) < 500_000
    assert not re.findall(r"(?:src|href)=|@import|fetch\(|https?://(?!www\.w3\.org/)", text)


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


def test_missing_folders_of_a_picture_are_created(tmp_path: Path) -> None:
    run("viz", GUTLB, "-o", str(tmp_path / "a" / "b" / "gutlb.svg"))
    assert (tmp_path / "a" / "b" / "gutlb.svg").is_file()


def test_a_pdf_is_one_page_with_the_picture_at_384_dots_an_inch(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="resvg-py is not installed")
    for kind in ("pdf", "svg"):
        run("viz", GUTLB, "--compact", "-o", str(tmp_path / f"gutlb.{kind}"))
    pdf = (tmp_path / "gutlb.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-")
    width, height = (float(size) * 96 / 72 for size in re.findall(rb"MediaBox \[ 0 0 ([\d.]+) ([\d.]+)", pdf)[0])
    svg = ElementTree.fromstring((tmp_path / "gutlb.svg").read_text())
    assert (width, height) == pytest.approx((int(svg.attrib["width"]), int(svg.attrib["height"])), abs=1)


def test_an_unknown_suffix_is_an_error() -> None:
    done = CliRunner().invoke(app, ["viz", GUTLB, "-o", "gutlb.gif"])
    assert done.exit_code == 2
    assert ".svg" in done.output


def test_dot_and_mermaid_are_balanced_and_name_every_block(tmp_path: Path) -> None:
    for kind in ("dot", "mmd"):
        out = tmp_path / f"gutlb.{kind}"
        run("viz", GUTLB, "-o", str(out))
        text = out.read_text()
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
        if kind == "dot":
            assert bare.count("{") == bare.count("}") > 1
        else:
            assert len(re.findall(r"^ *subgraph", text, re.M)) == len(re.findall(r"^ *end$", text, re.M)) > 1
        assert '"' not in bare
        for block in ("embed", "attention", "norm", "feedforward", "copy_gate", "global_halt", "linear"):
            assert block in text


def test_png(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="the extra `view` is not installed")
    out = tmp_path / "gutlb.png"
    run("viz", GUTLB, "-o", str(out))
    assert out.read_bytes().startswith(b"\x89PNG")


def test_a_summary_grows_with_the_batch() -> None:
    (single,) = json.loads(run("summary", GUTLB, "--json", "--length", "64"))
    (batch,) = json.loads(run("summary", GUTLB, "--json", "--length", "64", "--batch", "4"))
    assert batch["flops"] == 4 * single["flops"]
    assert single["unique"] == 125_446


BLOCKS = """block loops(h: seq[n, d]) -> seq[n, d] {
    repeat 3 { h <- norm(h) }
    return h
}
block other(h: seq[n, d]) -> seq[n, d] { return loops(h) }
"""


def test_a_block_is_drawn_by_its_name_and_called_a_block(folder: Path) -> None:
    Path("blocks.arch").write_text(BLOCKS, encoding="utf-8")
    assert run("viz", "blocks.arch", "--model", "loops").startswith("block loops")
    assert run("viz", "model.arch").startswith("model m")


@pytest.mark.parametrize(
    ("arguments", "message", "remedy"),
    [
        (["blocks.arch"], "this file has no model", "`--model loops`; the blocks are `loops`, `other`"),
        (["blocks.arch", "-m", "x"], "unknown model or block `x`", "help: the blocks are `loops`, `other`"),
        (["blocks.arch", "-m", "otter"], "unknown model or block `otter`", "did you mean `other`?"),
        (["model.arch", "-m", "x"], "unknown model or block `x`", "help: the models are `m`"),
        (["both.arch", "-m", "x"], "unknown model or block `x`", "the models are `m`; the blocks are `loops`, `other`"),
    ],
)
def test_what_can_be_drawn_is_named(
    archlang: Command, folder: Path, arguments: list[str], message: str, remedy: str
) -> None:
    Path("blocks.arch").write_text(BLOCKS, encoding="utf-8")
    Path("both.arch").write_text(MODEL + BLOCKS, encoding="utf-8")
    result = archlang("viz", *arguments)
    assert result.code == 1
    assert message in result.err
    assert remedy in result.err
