"""The worked notebook runs in a kernel, and its cells show what its text says."""

import os
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient", reason="the extra `test` is not installed")
nbformat = pytest.importorskip("nbformat", reason="the extra `test` is not installed")
pytest.importorskip("ipykernel", reason="the extra `test` is not installed")

NOTEBOOK = Path(__file__).parent.parent / "docs" / "notebook.ipynb"


@pytest.fixture(scope="module")
def cells() -> list[Any]:  # Any: cells of nbformat, which has no types
    """The cells of the notebook with their outputs."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    root = str(NOTEBOOK.parent.parent)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", root, prepend=os.pathsep)
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cells: list[Any], source: str) -> Any:  # Any: by type, as a notebook stores it
    """Returns what the cell that ends with a line shows."""
    (cell,) = (cell for cell in cells if cell.source.splitlines()[-1] == source)
    return cell.outputs[-1]["data"]


def test_no_cell_of_the_notebook_is_stored_with_output() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)


def test_a_cell_shows_the_picture_of_a_module(cells: list[Any]) -> None:
    assert shown(cells, "module")["text/html"].startswith('<img alt="model lookup" src="data:image/svg+xml;base64,')


def test_a_cell_shows_the_report_of_a_run(cells: list[Any]) -> None:
    pytest.importorskip("matplotlib", reason="the extra `view` is not installed")
    assert "lookup: lookup on ctl" in shown(cells, "run")["text/html"]


def test_a_cell_shows_an_inspection(cells: list[Any]) -> None:
    page = shown(cells, 'archlang.inspect(run, "10 a b")')["text/html"]
    assert page.startswith("<iframe srcdoc=")
    assert "Attention: attention" in page


def test_the_last_cell_has_saved_the_model(cells: list[Any]) -> None:
    assert "'checkpoints'" in cells[-1].outputs[-1]["data"]["text/plain"]
