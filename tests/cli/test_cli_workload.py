"""--workload, which every command that reads a schema takes."""

from __future__ import annotations

import json
import os

import pytest

from certsynth.cli.options import NO_LEDGER
from certsynth.domain import Schema

SHARED = ("--schema", "schema.toml", "--workload", "workload.toml", "--quiet")
PINNED = ("--resolution", 4, "--mechanism", "identity")
RELEASE = ("release", "people.csv", *SHARED, *PINNED, "--epsilon", 50, "--out", "out")
PLAN = ("plan", "--rows", 150, *SHARED, *PINNED, "--epsilon", 50)
CERTIFY = ("certify", "people.csv", "copy.csv", *SHARED, "--epsilon", 50)
EVALUATE = ("evaluate", "people.csv", "people.csv", *SHARED)

LEFT_OUT = (
    "note: columns omitted since no subset of the workload names them: employed. "
    'Add ["employed"] to the workload to keep it.\n'
)


@pytest.fixture
def asked(town):
    """A town whose workload names two of three columns, one of them alone as well."""
    (town / "workload.toml").write_text('subsets = [["region", "age"], ["age"]]\n')
    return town


def test_releases_the_named_columns_and_says_what_is_left_out(asked, run):
    done = run(*RELEASE)
    assert (done.code, done.err) == (0, f"{LEFT_OUT}{NO_LEDGER}\n")
    assert "no statistic of the columns of one of the 2 named subsets that is 1-Lipschitz" in done.out
    assert Schema.load(asked / "out" / "schema.toml").names == ("age", "region")
    document = json.loads((asked / "out" / "certificate.json").read_text())
    assert document["release"]["workload"] == [["age", "region"], ["age"]]
    assert [subset["columns"] for subset in document["certificate"]["subsets"]] == [["age", "region"], ["age"]]
    assert "named subsets" in (asked / "out" / "report.html").read_text()
    assert "2 subsets" in (asked / "out" / "datapackage.json").read_text()
    assert run("verify", "out").code == 0


def test_plans_and_passes_the_workload_on(asked, run):
    done = run(*PLAN)
    assert (done.code, done.err) == (0, LEFT_OUT)
    assert "named subsets" in done.out.replace("\n", " ")
    assert "--workload workload.toml" in done.said.partition("next: ")[2]
    assert run(*PLAN, "--json").json["workload"] == [["age", "region"], ["age"]]


def test_names_the_rules_that_a_restriction_leaves_out(asked, run):
    rules = '\n[[rule]]\nimpossible = "age < 15 and employed"\n\n[[rule]]\nrequire = "age >= 0"\n'
    (asked / "schema.toml").write_text((asked / "schema.toml").read_text() + rules)
    said = "note: rule 1 of the schema mentions a column that was left out (employed), and was not applied.\n"
    done = run(*RELEASE)
    assert (done.code, done.err) == (0, f"{LEFT_OUT}{said}{NO_LEDGER}\n")
    assert run("verify", "out").code == 0
    assert run(*PLAN).err == LEFT_OUT + said
    other = ("--schema", "schema.toml", "--quiet", "--columns", "age,region", *PINNED, "--epsilon", 50)
    done = run("release", "people.csv", *other, "--out", "other", "--json")
    assert (done.code, done.err) == (0, f"{said}{NO_LEDGER}\n")
    assert done.json["release"]["omitted_rules"] == [{"number": 1, "columns": ["employed"]}]


def test_compares_the_named_subsets_and_claims_no_more(asked, run):
    done = run(*EVALUATE)
    assert "statistic of the columns of one of the 2 named subsets is between" in done.out
    assert [subset["columns"] for subset in run(*EVALUATE, "--json").json["subsets"]] == [["age", "region"], ["age"]]
    assert "no statistic of the columns of one of the 2 named subsets" in run(*CERTIFY).out


def test_says_nothing_where_nothing_is_left_out(asked, run):
    assert run(*PLAN, "--columns", "age,region").err == ""


@pytest.mark.parametrize("command", [RELEASE, PLAN, CERTIFY, EVALUATE], ids=lambda command: command[0])
def test_refuses_in_one_line(asked, run, command):
    assert run(*command, "--sparsity", 2).error == (
        "--sparsity and --workload exclude each other, since named subsets have sizes of their own: leave one out."
    )
    (asked / "workload.toml").write_text('subsets = [["age", "height"]]')
    assert run(*command).error == (
        "the workload names 'height', which is not a column of the schema: choose from age, region, employed."
    )
    (asked / "workload.toml").write_text('subsets = [["age", "age"]]')
    assert run(*command).error == "a subset of the workload names at least one column, and each column once."
    (asked / "workload.toml").unlink()
    assert run(*command).error == "workload workload.toml: No such file or directory. Check the path."


@pytest.mark.parametrize(("file", "says"), [("pipe", "Not a regular file"), ("/dev/zero", "Not a regular file")])
def test_a_workload_that_is_no_file_is_not_waited_for(town, run, file, says):
    os.mkfifo(town / "pipe")
    done = run("plan", "--schema", "schema.toml", "--rows", 100, "--epsilon", 1, "--workload", file)
    assert done.error == f"workload {file}: {says}. Check the path."
