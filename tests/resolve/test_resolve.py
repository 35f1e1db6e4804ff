"""Names are resolved across files."""

from pathlib import Path

import pytest

from archlang.errors import Source
from archlang.plan.check import check, check_text
from archlang.resolve import library
from archlang.syntax.parser import read

LAYER = "block layer(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n"


def codes(path: Path) -> list[str]:
    return [diagnostic.code for diagnostic in check(path)]


def test_a_used_file_has_its_own_names_or_an_alias(tmp_path: Path) -> None:
    (tmp_path / "mine.arch").write_text(LAYER)
    plain = tmp_path / "plain.arch"
    plain.write_text('use "./mine.arch"\nblock b(h: seq[n, d]) -> seq[n, d] { return layer(h) }')
    alias = tmp_path / "alias.arch"
    alias.write_text('use "./mine.arch" as mine\nblock b(h: seq[n, d]) -> seq[n, d] { return mine.layer(h) }')
    assert codes(plain) == codes(alias) == []


def test_an_alias_hides_the_bare_name(tmp_path: Path) -> None:
    (tmp_path / "mine.arch").write_text(LAYER)
    file = tmp_path / "alias.arch"
    file.write_text('use "./mine.arch" as mine\nblock b(h: seq[n, d]) -> seq[n, d] { return layer(h) }')
    assert codes(file) == ["E0202"]


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("archlang.models.pamn", "did you mean `archlang.models.panm`?"),
        ("archlang.model.panm", "did you mean `archlang.models.panm`?"),
        ("archlang.models.nothing", "write the path of your own file in quotes; blocks of the prelude need no `use`"),
    ],
)
def test_an_unknown_library_file_is_compared_by_the_end_of_its_name(path: str, remedy: str) -> None:
    (diagnostic,) = check_text(f"use {path}\n")
    assert diagnostic.remedy == remedy


@pytest.mark.parametrize("used", ['use "./a.arch"\n', 'use "./b.arch"\n'])
def test_a_cycle_of_files_is_shown_for_an_unsaved_text(tmp_path: Path, used: str) -> None:
    (tmp_path / "b.arch").write_text('use "./a.arch"\n', encoding="utf-8")
    file = tmp_path / "a.arch"
    for _ in range(2):
        mistakes = check_text(used, str(file))
        assert [mistake.code for mistake in mistakes] == ["E0209"]
        file.write_text(used, encoding="utf-8")


def test_a_cycle_of_files_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.arch").write_text('use "./b.arch"\n' + LAYER)
    Path("b.arch").write_text('use "./c.arch"\n')
    Path("c.arch").write_text('use "./a.arch"\n')
    diagnostics = [d for d in check("a.arch") if d.code == "E0209"]
    assert "a.arch -> b.arch -> c.arch -> a.arch" in diagnostics[0].message


def test_a_mistake_in_a_used_file_is_shown_there(tmp_path: Path) -> None:
    (tmp_path / "mine.arch").write_text("block layer(h: seq[n, d]) -> seq[n, d] { return nothing(h) }\n")
    file = tmp_path / "user.arch"
    file.write_text('use "./mine.arch"\nblock b(h: seq[n, d]) -> seq[n, d] { return layer(h) }')
    (diagnostic,) = check(file)
    assert diagnostic.code == "E0202"
    assert diagnostic.span.source.path.endswith("mine.arch")


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        ("absolute(h)", "did you mean `abs` or `absolute_positions`?"),  # a model of the library has this name
        ("transformer_layers[1, 8, 2](h)", "add `use archlang.models.dynamic_halt` at the beginning of the file"),
        ("answers(h, h, h)", "did you mean `answer`?"),
    ],
)
def test_an_unknown_block_is_one_of_the_file_or_names_the_use_line(call: str, remedy: str, tmp_path: Path) -> None:
    file = tmp_path / "user.arch"
    head = "(h: seq[n, d]) -> seq[n, d]"
    file.write_text(f"block answer{head} {{ return h }}\nblock b{head} {{ return {call} }}\n")
    (diagnostic,) = check(file)
    assert (diagnostic.remedy, diagnostic.is_safe) == (remedy, False)


def test_a_cycle_of_blocks_is_shown_with_every_use(tmp_path: Path) -> None:
    file = tmp_path / "cycle.arch"
    file.write_text(
        "block a(h: seq[n, d]) -> seq[n, d] { return b(h) }\n"
        "block b(h: seq[n, d]) -> seq[n, d] { return c(h) }\n"
        "block c(h: seq[n, d]) -> seq[n, d] { return a(h) }\n"
    )
    (diagnostic,) = check(file)
    assert diagnostic.code == "E0210"
    assert "a -> b -> c -> a" in diagnostic.message
    assert len(diagnostic.labels) == 2


@pytest.mark.parametrize("block", ["memory(h: seq[n, d]) -> seq[n, d] { memory = norm(h)\nreturn memory }",
                                   "m(h: seq[m, d]) -> seq[m, d] { return norm(h) }",
                                   "rotary(h: seq[n, d]) -> seq[n, d] { return attention[2, rotary](h) }",
                                   "twice[by: symbol = twice](h: seq[n, d]) -> seq[n, d] {\n"
                                   "return 2 * h when by == twice else h }"])  # fmt: skip
def test_a_value_size_or_symbol_with_the_name_of_a_block_makes_no_cycle(block: str, tmp_path: Path) -> None:
    file = tmp_path / "names.arch"
    file.write_text(f"block {block}")
    assert codes(file) == []


def test_a_library_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def noted(path: str) -> Source:
        seen.append(path)
        return read(path)

    monkeypatch.setattr("archlang.resolve.resolve._shipped", {})
    monkeypatch.setattr("archlang.resolve.resolve.read", noted)
    for name in ("one.arch", "another.arch"):
        (tmp_path / name).write_text("use archlang.models.data_router  # readout\n" + LAYER)
        assert codes(tmp_path / name) == []
    assert sorted(Path(path).name for path in seen) == ["another.arch", "data_router.arch", "one.arch"]


def test_a_mistake_in_a_library_file_is_reported_for_every_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.arch"
    broken.write_text("block b(h: seq[n, d]) -> seq[n, d] { return h } }")
    monkeypatch.setattr("archlang.resolve.library.library_file", lambda dotted: broken)
    for name in ("one.arch", "another.arch"):
        (tmp_path / name).write_text("use archlang.models.broken\n" + LAYER)
        assert codes(tmp_path / name) == codes(broken) != []


def test_a_circular_link_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "loop.arch").symlink_to(tmp_path / "loop.arch")
    assert codes(tmp_path / "loop.arch") == ["E0108"]


def test_a_model_that_could_not_be_read_is_not_reported_as_missing(tmp_path: Path) -> None:
    file = tmp_path / "program.arch"
    file.write_text(
        "model m[d = 8](x: tokens[n]) -> logits[n, vocab] {\n    h = embed[d](x)\n    h <- scan c in h\n"
        "    return linear[vocab](h)\n}\nrecipe r { task flipflop model m train adamw[steps = 10] }\n"
    )
    assert set(codes(file)) == {"E0101"}


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("layer_norm", "here it is called `norm`"),
        ("LayerNorm", "here it is called `norm`"),
        ("cat", "here it is called `concat`"),
        ("einsum", "`archlang blocks` lists the library; `use` brings in the blocks of another file"),
        ("pow", "write a product, as `h * h`; `exp(p * log(h))` is the power p of a positive `h`"),
        ("nrom", "did you mean `norm`?"),
    ],
)
def test_a_name_of_another_library_is_that_of_its_block_and_not_of_a_similar_one(name: str, remedy: str) -> None:
    (diagnostic,) = check_text(f"block b(h: seq[n, d]) -> seq[n, d] {{ return {name}(h) }}", "b.arch")
    assert (diagnostic.code, diagnostic.remedy) == ("E0202", remedy)
    assert [edit.text for edit in diagnostic.edits] == ([] if name in ("einsum", "pow") else [remedy.split("`")[1]])


def test_names_of_other_libraries_are_no_names_of_blocks_and_mean_blocks() -> None:
    others = library._other_names()
    names = library.block_names()
    assert {block for block in others.values() if block} <= names
    assert not others.keys() & {name.replace("_", "") for name in names}
