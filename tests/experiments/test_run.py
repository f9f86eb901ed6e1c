"""The whole of the experiments, on made-up tables; and quickly on the survey's."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import data
import figures
import paper
import run
from made_up_survey import SMALL, pairs, write_tables

pytestmark = pytest.mark.slow


def go(folder, names, **asked):
    places = run.Places.apart(folder / "out")
    run.run(names, size=SMALL, places=places, pairs=pairs(), folder=folder, **asked)
    return places


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    """All points of all figures."""
    folder = write_tables(tmp_path_factory.mktemp("survey"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CERTSYNTH_CACHE", str(folder / "plans"))
        go(folder, list(figures.NEEDS))
    return folder


def test_all_figures_and_the_page_come_out_of_made_up_tables(computed):
    places = run.Places.apart(computed / "out")
    assert len(list(places.images.iterdir())) == 2 * 2 * len(figures.NEEDS)
    assert places.page.read_text(encoding="utf-8").startswith("# The paper's figures")
    for name, series in paper.SERIES.items():
        found = json.loads((places.results / f"{name}.json").read_text(encoding="utf-8"))
        assert len(found["points"]) == len(series.tasks(SMALL))
        assert "the noise has none" in found["settings"]["seeds"]
        assert found["versions"]["certsynth"]


def test_progress_goes_to_stderr_and_what_was_interrupted_goes_on(computed, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CERTSYNTH_CACHE", str(computed / "plans"))
    write_tables(tmp_path)
    lines = run.Places.apart(computed / "out").points.read_bytes().splitlines(keepends=True)
    places = run.Places.apart(tmp_path / "out")
    places.points.parent.mkdir()
    places.points.write_bytes(b"".join(lines[:1]))  # a point of the paper's is missing, and all of ours
    go(tmp_path, ["2a"])
    out, err = capsys.readouterr()
    assert out == ""
    assert "[1/1] method paper" in err
    assert "[2/2] method ours" in err
    assert places.points.read_bytes().startswith(b"".join(lines[:1]))
    go(tmp_path, ["2a"])
    assert "[1/" not in capsys.readouterr().err


def test_what_is_there_is_drawn_as_it_is(computed, tmp_path, capsys):
    places = run.Places.apart(tmp_path / "out")
    lines = run.Places.apart(computed / "out").points.read_text(encoding="utf-8").splitlines(keepends=True)
    first = [line for line in lines if '"run": 0' in line and "income-al" in line and '"public_rows": 5,' not in line]
    places.points.parent.mkdir()
    places.points.write_text("".join(first), encoding="utf-8")
    go(tmp_path, list(figures.NEEDS), compute=False)
    drawn = {f"{who}-{name}" for who in ("paper", "ours") for name in ("1a", "2a", "2b")}
    assert {path.stem for path in places.images.iterdir()} == drawn
    assert not places.page.exists()
    err = capsys.readouterr().err
    assert "paper-income-al: 1 run\n" in err
    assert "figure 1b has no results yet" in err
    assert "figure 3 has no results yet" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["4c"], "no figure 4c; choose from 1a, 1b, 2a, 2b, 3"), (["--runs", "0"], "--runs must be from 1 to 10")],
)
def test_what_cannot_be_done_is_said(arguments, said, capsys):
    with pytest.raises(SystemExit):
        run.main(arguments)
    assert said in capsys.readouterr().err


def test_without_tables_it_ends_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("CERTSYNTH_DATA", str(tmp_path))
    monkeypatch.setattr(run, "BUILD", tmp_path / "build")  # nothing was computed before
    with pytest.raises(SystemExit, match="set CERTSYNTH_DATA"):
        run.main(["1a", "--quick"])


def test_only_the_whole_run_writes_to_the_project(tmp_path, monkeypatch):
    asked = {}
    monkeypatch.setattr(run, "run", lambda names, **keywords: asked.update(keywords))
    monkeypatch.setattr(data, "fetch", lambda survey, target: None)
    for arguments, folder in ((["--quick"], "quick"), (["--full"], "full"), (["--full", "--quick"], "full-quick")):
        run.main(arguments)
        assert asked["places"] == run.Places.apart(run.BUILD / folder)
    run.main([])
    assert asked["places"] == run.Places.real()


def test_a_try_with_fewer_rows_says_so():
    series, pair = paper.SERIES["paper-income-al"], data.PAIRS["income-al"]
    assert run.settings(series, paper.QUICK, pair)["data"].endswith("Tried out on 20,000 private rows.")
    assert run.settings(series, paper.PAPER, pair)["data"] == pair.note


@pytest.mark.slow
def test_the_quick_run_works_on_the_survey(tmp_path, monkeypatch):
    absent = {
        s.file for p in data.PAIRS.values() for s in (p.private, p.public) if not (data.folder() / s.file).exists()
    }
    if absent:
        pytest.skip(f"{', '.join(sorted(absent))} not in the folder CERTSYNTH_DATA")
    monkeypatch.setattr(run, "BUILD", tmp_path)
    monkeypatch.setenv("CERTSYNTH_CACHE", str(tmp_path / "plans"))
    run.main(["--quick"])
    assert len(list((tmp_path / "quick" / "images").glob("*.svg"))) == 2 * len(figures.NEEDS)
    assert "Ours beside the paper's" in (tmp_path / "quick" / "reproduction.md").read_text(encoding="utf-8")


def test_its_help_says_how_to_run_it():
    file = data.ROOT / "experiments" / "run.py"
    done = subprocess.run([sys.executable, str(file), "--help"], capture_output=True, text=True, check=True)
    assert "--quick" in done.stdout
