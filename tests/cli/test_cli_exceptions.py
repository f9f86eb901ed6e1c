"""Exceptions on the command line: one sentence, one key of the JSON, and one line for a mistake."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from certsynth.cli import words
from certsynth.record.record import ExceptionsRecord
from certsynth.report.exceptions import promise

SCHEMA = "\n".join(f'[[column]]\nname = "{name}"\nkind = "integer"\nlow = 0\nhigh = 9\n' for name in "abcd")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    rng = np.random.default_rng(0)
    paths = {name: tmp_path / name for name in ("private.csv", "synthetic.csv", "schema.toml", "out")}
    for name in ("private.csv", "synthetic.csv"):
        columns = {each: rng.integers(0, 10, 3_000) for each in "abcd"}
        pl.DataFrame(columns | ({"b": columns["a"]} if name == "private.csv" else {})).write_csv(paths[name])
    paths["schema.toml"].write_text(SCHEMA)
    return paths


def certify(run, files, *more):
    return run(
        "certify", files["private.csv"], files["synthetic.csv"], "--schema", files["schema.toml"], "--epsilon", 5,
        "--quiet", *more,
    )  # fmt: skip


def test_certify_names_the_bad_pair(run, files):
    done = certify(run, files, "--exceptions", 1)
    assert done.code == 0
    (line,) = [line for line in done.out.splitlines() if line.startswith("All pairs of columns but one")]
    assert ": a × b, which is within 0." in line
    shown = certify(run, files, "--exceptions", 1, "--json").json
    assert shown["exceptions"]["subsets"] == [["a", "b"]]
    assert shown["exceptions"]["bound"] == shown["bound"] > 5 * shown["exceptions"]["bound_of_others"]
    assert shown["epsilon"] == 5
    assert "exceptions" not in certify(run, files, "--json").json


def test_certify_states_both_errors_of_pairs(run, files):
    """The sentences for people, from the numbers of the JSON: of all pairs but one, and of that one."""
    shown = certify(run, files, "--exceptions", 1, "--json").json
    apart, largest = shown["exceptions"], shown["statistics"]
    assert apart["share"] == largest["share_of_two_columns"]["bound"] > 2 * apart["share_of_others"]
    assert apart["group_total"] == largest["group_total"]["bound"] > apart["group_total_of_others"]
    text = " ".join(certify(run, files, "--exceptions", 1).out.split())
    assert "except for 1 pair of columns, which is within ± " in text
    assert "% for 1 pair of columns)" in text


def test_release_names_the_exceptions(run, files):
    done = run(
        "release", files["private.csv"], "--schema", files["schema.toml"], "--epsilon", 5, "--out", files["out"],
        "--exceptions", 2, "--quiet",
    )  # fmt: skip
    assert done.code == 0
    found = json.loads((files["out"] / "certificate.json").read_text())["certificate"]["exceptions"]
    named = ", ".join(" × ".join(each) for each in found["subsets"])
    others, own = words.upward(found["bound_of_others"]), words.upward(found["bound"])
    assert f"All pairs of columns but these two are within {others}: {named}, which are within {own}." in done.out
    checked = run("verify", files["out"])
    assert checked.code == 0
    assert "which subsets of columns were chosen as exceptions" in checked.out


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("--exceptions", "1001"), "--exceptions must be a whole number from 0 to 1000; got 1001."),
        (("--exceptions", "few"), "--exceptions"),
        (("--exceptions", "6"), "--exceptions must be below the number of subsets that the certificate covers, 6"),
        (("--exceptions", "1", "--sparsity", "3"), "--exceptions is for subsets of at most 2 columns"),
        (("--exceptions", "1", "--per-subset"), "leave --exceptions out."),
    ],
)
def test_mistakes_take_one_line(run, files, asked, message):
    assert message in certify(run, files, *asked).error


def record(number: int, bound: float = 0.55, others: float = 0.07) -> ExceptionsRecord:
    return ExceptionsRecord(tuple(("a", str(j)) for j in range(number)), bound=bound, bound_of_others=others)


def test_sentences_for_any_number_and_size():
    names = [f"a × {j}" for j in range(20)]
    texts = ("0.07", "0.55")
    assert promise(record(1), {2}, names[:1], texts) == (
        "All pairs of columns but one are within 0.07: a × 0, which is within 0.55."
    )
    assert promise(record(3), {1, 2}, names[:3], texts).startswith("All subsets but these three are within 0.07: ")
    assert promise(record(12), {1}, names[:12], texts).startswith("All columns but these twelve are within 0.07: ")
    assert promise(record(13), {2}, names[:13], texts) == (
        "All pairs of columns but 13 are within 0.07; the exceptions, listed in certificate.json, are within 0.55."
    )
    assert promise(record(20, bound=1.0), {1}, names, texts, listed="with --json") == (
        "All columns but 20 are within 0.07; the exceptions, listed with --json, have no bound that says anything."
    )
    assert promise(record(2, bound=1.0), {2}, names[:2], texts).endswith("a × 1, of which nothing is certified.")
    assert promise(record(2, others=1.0), {2}, names[:2], texts) == ""


def test_figures_are_rounded_upward():
    (line,) = words.exceptions(record(1, bound=0.54321, others=0.06781), [{"columns": ("a", "0")}])
    assert "within 0.0679: " in line
    assert line.endswith("within 0.5433.")
