"""certsynth certify and evaluate: how far a table is from the private one."""

from __future__ import annotations

import numpy as np
import pytest

from certsynth import Schema, demo
from certsynth.algorithm.evaluate import Evaluation, SubsetLoss
from certsynth.cli.evaluate import lines
from certsynth.cli.options import NO_LEDGER

CERTIFY = ("certify", "people.csv", "other.csv", "--schema", "schema.toml", "--epsilon", "5", "--lattice", "16")
EVALUATE = ("evaluate", "people.csv", "other.csv", "--schema", "schema.toml", "--lattice", "16")


@pytest.fixture
def other(town):
    """Another town of the same kind, as other.csv."""
    table = demo.people(80, seed=9)
    demo.write_csv({name: table[name] for name in ("age", "region", "employed")}, town / "other.csv")
    return town


def test_certifies_in_words(other, run):
    done = run(*CERTIFY)
    assert (done.code, done.err) == (0, f"{NO_LEDGER}\n")
    assert done.out.startswith("With 95 % confidence, every share of rows over a range or a set of labels of one ")
    assert "With confidence 95 %, no statistic of at most 2 columns that is 1-Lipschitz" in done.out
    assert "privacy: this answer cost epsilon 5 under replace-one neighbours" in done.out


def test_certifies_as_json(other, run):
    done = run(*CERTIFY, "--confidence", "0.9", "--json")
    assert (done.code, done.err) == (0, f"{NO_LEDGER}\n")
    result = done.json
    assert {"bound", "lower", "confidence", "epsilon", "single_column_bound", "subsets"} <= set(result)
    assert (result["epsilon"], result["confidence"]) == (5, 0.9)
    assert isinstance(result["epsilon"], float)
    assert result["delta"] is result["rho"] is None
    assert result["lower"] <= result["bound"]
    assert result["bound"] == max(subset["bound"] for subset in result["subsets"])
    assert len(result["subsets"]) == 3


def test_certifies_with_delta_or_rho(other, run):
    assert "privacy: this answer cost epsilon 5, delta 0.000001 (rho 0.4" in run(*CERTIFY, "--delta", "1e-6").out
    result = run("certify", "people.csv", "other.csv", *CERTIFY[3:5], "--lattice", 16, "--rho", "0.02", "--json").json
    assert (result["epsilon"], result["delta"], result["rho"]) == (0.899935267751, 1e-6, 0.02)
    assert result["definition"] == "zero-concentrated differential privacy"


def test_certifies_each_subset(other, run):
    done = run(*CERTIFY, "--per-subset", "--neighbours", "add-remove")
    assert done.code == 0
    assert "The largest bounds, of 3:" in done.out
    assert "region × employed" in done.out


def test_certifies_a_workload(other, run):
    (other / "workload.toml").write_text('subsets = [["employed", "age"], ["region"]]\n')
    done = run(*CERTIFY, "--workload", "workload.toml", "--per-subset", "--json")
    assert [subset["columns"] for subset in done.json["subsets"]] == [["age", "employed"], ["region"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("subsets = [", "not valid TOML"),
        ("", "it must have the one entry subsets"),
        ('subsets = [["age"]]\nmore = 1', "it must have the one entry subsets"),
        ("subsets = []", "subsets is a list of lists of column names"),
        ("subsets = [[]]", "subsets is a list of lists of column names"),
        ('subsets = ["age"]', "subsets is a list of lists of column names"),
        ("subsets = [[1]]", "subsets is a list of lists of column names"),
        ("a" + ".a" * 50_000 + " = 1", "a dot outside of quotes"),
    ],
)
def test_explains_a_workload_that_is_none(other, run, text, message):
    (other / "workload.toml").write_text(text)
    assert run(*CERTIFY, "--workload", "workload.toml").error == (
        f'workload workload.toml: {message}; write subsets = [["age", "income"], ["region"]].'
    )


def test_refuses_workloads_of_unknown_columns_or_size(other, run):
    (other / "workload.toml").write_text('subsets = [["age", "income"]]')
    assert run(*CERTIFY, "--workload", "workload.toml").error == (
        "the workload names 'income', which is not a column of the schema: choose from age, region, employed."
    )
    (other / "workload.toml").write_text("#" * (2**20 + 1))
    assert run(*CERTIFY, "--workload", "workload.toml").error == (
        "workload workload.toml: larger than 1 MB; a workload is a short text file."
    )
    (other / "workload.toml").write_bytes(b"\xff")
    assert run(*CERTIFY, "--workload", "workload.toml").error == (
        "workload workload.toml: not a text file in UTF-8. Write it as TOML."
    )
    assert run(*CERTIFY, "--workload", "no.toml").error == (
        "workload no.toml: No such file or directory. Check the path."
    )


def test_refuses_bad_input_to_certify(other, run):
    assert run(*CERTIFY, "--lattice", 0).error == "the lattice must have between 1 and 4096 steps; got 0."
    assert run(*CERTIFY, "--sparsity", 7).error.startswith("--sparsity can be 1 or 2 or 3, since the table has 3")
    assert run(*CERTIFY, "--epsilon", "nan").error.startswith("--epsilon must be a number above 0")
    assert run(*CERTIFY, "--confidence", "0.2").error.startswith("--confidence must be at least 0.5 and below 1")
    (other / "other.csv").write_text("age,region,employed\n")
    assert run(*CERTIFY).error == "the synthetic table has no rows, so there is nothing to certify."


def test_refuses_to_certify_the_private_file_itself(other, run):
    assert run("certify", "people.csv", "./people.csv", "--schema", "schema.toml", "--epsilon", 1).error == (
        "the private data and the synthetic table are the same: `certify` compares private rows with a table that is "
        "public, or was made with a privacy budget of its own. Give that table; nothing was spent."
    )


def test_evaluates_and_says_that_it_is_not_private(other, run):
    done = run(*EVALUATE)
    assert done.code == 0
    assert done.err == (
        "note: the output of evaluate is NOT private. It is for the owner of the data and must not leave your "
        "organisation.\n"
    )
    assert done.out.startswith("The largest error of a 1-Lipschitz statistic of at most 2 columns is between ")
    assert "The worst of 3 subsets:" in done.out


def test_evaluates_as_json(other, run):
    done = run(*EVALUATE, "--json", "--quiet")
    assert "NOT private" in done.err
    result = done.json
    assert {"value", "upper", "lower", "mean_upper", "subsets"} <= set(result)
    assert all({"columns", "upper", "lower"} <= set(subset) for subset in result["subsets"])
    assert result["lower"] <= result["value"] <= result["upper"]


def test_evaluates_the_largest_loss_only(other, run):
    whole, largest = run(*EVALUATE, "--json").json, run(*EVALUATE, "--largest", "--json").json
    assert set(whole) == set(largest)
    assert largest["upper"] == pytest.approx(whole["upper"], abs=1e-6)


def test_says_how_many_subsets_were_skipped_and_does_not_rank_them():
    solved = SubsetLoss(("a", "b"), 0.1, 0.2, 0.05)
    said = "\n".join(lines(Evaluation((solved, SubsetLoss(("a", "c"), None, 0.19, 0.0)))))
    assert "Skipped, since they cannot have the largest: 1 subset of columns." in said
    assert "a × b" in said
    assert "a × c" not in said
    assert "On average" not in said
    assert "On average over the subsets of columns it is at most 0.2" in "\n".join(lines(Evaluation((solved,))))


def test_evaluates_one_column_and_one_row(other, run):
    (other / "people.csv").write_text("age,region,employed\n30,hills,true\n")
    done = run(*EVALUATE, "--columns", "age", "--json")
    ages = np.array(demo.people(80, seed=9)["age"], float)
    (column,) = Schema.load(other / "schema.toml").select(["age"])
    assert done.json["lower"] <= np.abs(ages - 30).mean() / column.reach <= done.json["upper"] < 1
    assert run(*EVALUATE, "--sparsity", 1, "--json").code == 0


def test_refuses_bad_input_to_evaluate(other, run):
    assert run(*EVALUATE, "--columns", "agee").error.startswith("column 'agee' is not in the schema")
    (other / "other.csv").unlink()
    assert run(*EVALUATE).error == "synthetic table other.csv: no such file. Check the path."
    (other / "people.csv").write_text("age,region,employed\n")
    assert run("evaluate", "people.csv", "people.csv", "--schema", "schema.toml").error == (
        "the private data has no rows, so there is nothing to compare."
    )
