"""The notebook runs from top to bottom, and what is stored in it is what its cells show, up to numbers."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from examples import ROOT, Session, shape

FOLDER = ROOT / "docs" / "notebooks"
TOOLS = runpy.run_path(str(FOLDER / "execute.py"))


def shown(cell: dict[str, Any]) -> str:
    """All that a cell shows as text; the values of a frame depend on noise, so only its kind is compared."""
    texts = []
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            texts.append("".join(output["text"]))
        else:
            texts.append(" and ".join(sorted(output["data"])))
    return shape("\n".join(texts)).replace("-#", "#")  # the sign of a difference depends on noise as well


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_its_cells_run_one_after_the_other_and_show_what_is_stored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored = TOOLS["load"]()
    session = Session(tmp_path, [], monkeypatch)  # a small town, and pinned designs
    for file in session.folder.iterdir():
        file.unlink()
    done = TOOLS["execute"](stored)
    assert [shown(cell) for cell in code_cells(done)] == [shown(cell) for cell in code_cells(stored)]
    assert len(code_cells(stored)) > 8
    assert (tmp_path / "release" / "report.html").is_file()


def test_a_cell_that_fails_is_seen():
    cell = {"cell_type": "code", "source": ["1 / 0"], "outputs": []}
    with pytest.raises(ZeroDivisionError):
        TOOLS["execute"]({"cells": [cell]})
