"""The reference has every block, task and optimizer."""

import re

from archlang.resolve import library
from website.reference import reference


def sections(address: str) -> list[str]:
    return re.findall(r"^## (.+)$", reference()[address], re.MULTILINE)


def test_every_block_task_and_optimizer_has_a_section() -> None:
    assert sections("docs/reference/blocks.md") == sorted(library.block_names())
    assert sections("docs/reference/tasks.md") == sorted(library.task_names())
    assert sections("docs/reference/optimizers.md") == sorted(library.optimizer_names())
    modules = {name.rpartition(".")[0] for name in library.blocks() if "." in name}
    assert {f"docs/reference/{module.replace('.', '/')}.md" for module in modules} < set(reference())
    assert "panm" in sections("docs/reference/models/panm.md")


def test_a_section_has_equations_an_example_and_the_signature_as_code() -> None:
    section = reference()["docs/reference/blocks.md"].partition("## geometric_attention\n")[2].partition("\n## ")[0]
    assert "```text\nP_ij = " in section
    assert "Example:\n\n```arch\nblock example(" in section
    assert "```{ .arch }\nblock geometric_attention[\n" in section
    assert section.endswith("\n- File: `archlang/blocks/geometric_attention.arch`\n")


def test_a_task_has_its_kind_its_splits_and_its_metrics() -> None:
    section = reference()["docs/reference/tasks.md"].partition("## ctl\n")[2].partition("\n## ")[0]
    assert "\n- Kind: classification\n- Splits: train, iid, valid, test\n" in section
    assert "\n- Metrics: accuracy\n" in section
