"""certsynth schema: a draft that says what it is."""

from __future__ import annotations

import duckdb
import pytest

from certsynth import Schema
from certsynth.domain import Category


def test_drafts_and_warns(town, run):
    done = run("schema", "people.csv", "--out", "draft.toml", "--name", "A town")
    assert done.code == 0
    assert done.err == (
        "note: a draft made from private rows is NOT private. Replace its bounds and labels by public knowledge, "
        "then remove the line draft = true.\n"
    )
    assert done.out.splitlines()[0] == "draft.toml: a draft for 3 columns"
    draft = Schema.load(town / "draft.toml")
    assert (draft.draft, draft.name, draft.names) == (True, "A town", ("age", "region", "employed"))
    assert "NOT private" in (town / "draft.toml").read_text().splitlines()[0]


def test_prints_one_json_object(town, run):
    done = run("schema", "people.csv", "--out", "draft.toml", "--json")
    assert done.json == {"out": "draft.toml", "columns": ["age", "region", "employed"], "draft": True}
    assert Schema.load(town / "draft.toml").name == "people"


def test_writes_to_schema_toml_and_never_overwrites(town, run):
    before = (town / "schema.toml").read_bytes()
    assert run("schema", "people.csv").error == (
        "schema.toml exists already; a schema is never overwritten. Choose another --out."
    )
    assert (town / "schema.toml").read_bytes() == before
    (town / "schema.toml").unlink()
    assert run("schema", "people.csv").code == 0
    assert (town / "schema.toml").exists()


def test_drafts_what_a_query_selects(town, run):
    with duckdb.connect(str(town / "town.duckdb")) as database:
        database.execute("CREATE TABLE people AS SELECT 34 AS age, 'north' AS region")
    query = "SELECT age FROM town.people"
    done = run("schema", query, "--sql", "--attach", f"town={town}/town.duckdb", "--out", "q.toml")
    assert done.code == 0
    assert Schema.load(town / "q.toml").names == ("age",)
    assert f"certsynth check '{query}' --sql --attach 'town=…' --schema q.toml" in done.said
    assert "town.duckdb" not in done.out + done.err  # where a database is may hold a password
    assert "Add --sql" in run("schema", query, "--out", "r.toml").error


def test_refuses_what_it_cannot_read_or_write(town, run):
    assert run("schema", "no.csv", "--out", "d.toml").error == "data no.csv: no such file. Check the path."
    assert run("schema", "people.csv", "--out", "no/d.toml").error == (
        "no/d.toml was not written (No such file or directory); choose another --out."
    )
    (town / "people.xls").write_text("x")
    assert run("schema", "people.xls", "--out", "d.toml").error == (
        "data people.xls: a spreadsheet. Save the sheet as CSV in UTF-8."
    )


JOBS = "job,age\n11,30\n2,40\n99,50\n,60\n"
CODES = "code,parent\n1,\n11,1\n12,1\n2,2\n"


@pytest.mark.parametrize(
    "codes",
    [
        CODES,
        CODES.split("\n", 1)[1],
        CODES.replace("\n", "\r\n"),
        "\ufeff" + CODES.split("\n", 1)[1].replace(",", " , "),
    ],
)
def test_drafts_a_tree_from_a_list_of_codes(town, run, codes):
    (town / "jobs.csv").write_text(JOBS)
    (town / "codes.csv").write_text(codes, encoding="utf-8", newline="")
    done = run("schema", "jobs.csv", "--out", "draft.toml", "--tree", "job=codes.csv")
    assert done.code == 0
    assert ["job", "tree"] in [line.split() for line in done.out.splitlines()]
    job, age = Schema.load(town / "draft.toml")
    paths = (("1",), ("1", "11"), ("1", "12"), ("2",))
    values = ("1", "11", "12", "2")
    assert job == Category(name="job", missing=True, kind="tree", values=values, paths=paths, other=True)
    assert age.kind == "integer"


def test_drafts_two_trees_and_prints_json(town, run):
    (town / "jobs.csv").write_text("a,b\n11,12\n")
    (town / "codes.csv").write_text(CODES)
    done = run("schema", "jobs.csv", "--out", "d.toml", "--tree", "a=codes.csv", "--tree", "b=codes.csv", "--json")
    assert done.json == {"out": "d.toml", "columns": ["a", "b"], "draft": True}
    assert [column.kind for column in Schema.load(town / "d.toml")] == ["tree", "tree"]


@pytest.mark.parametrize(
    ("codes", "says"),
    [
        ("a,b\nb,a\n", "the code 'a' has no top: its parents go round in a circle; correct one of them."),
        ("a,\nb,c\n", "the parent 'c' of 'b' is not listed; add its line."),
        ("a,\na,\n", "the code 'a' is listed twice; a code has one parent."),
        ("a,,A\n", "a list of codes has two columns, the code and its parent (empty at the top)."),
        ("a\n", "a list of codes has two columns, the code and its parent (empty at the top)."),
        ("a/b,\n", "the code 'a/b' is empty or holds a /; rename it."),
        ("code,parent\n", "no code is listed; write a line for each, the code and its parent."),
        ("", "no code is listed; write a line for each, the code and its parent."),
        ('"a,\n', "'codes.csv' is not a CSV file in UTF-8; save it as one."),
    ],
)
@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_refuses_a_list_of_codes(town, run, codes, says, as_json):
    (town / "codes.csv").write_text(codes)
    refused = run("schema", "people.csv", "--out", "draft.toml", "--tree", "region=codes.csv", *as_json)
    assert refused.error == f"codes of 'region' in codes.csv: {says}"
    assert not (town / "draft.toml").exists()


def test_refuses_what_names_no_column_or_no_list(town, run):
    (town / "codes.csv").write_text(CODES)
    (town / "formulas.csv").write_text("=1,\n")

    def refusal(*trees):
        return run("schema", "people.csv", "--out", "d.toml", *(x for tree in trees for x in ("--tree", tree))).error

    for wrong in ("region", "region=", "=codes.csv", "=", ""):
        assert refusal(wrong) == f"--tree needs COLUMN=CODES, like --tree occupation=codes.csv; got {wrong!r}."
    assert refusal("job=codes.csv") == "column 'job' is not in the data, which has: age, region, employed."
    assert refusal("region=no.csv").endswith("'no.csv': No such file or directory. Check the name.")
    assert refusal("region=.").startswith("codes of 'region' in .: ")
    assert "start with a letter" in refusal("region=formulas.csv")
    assert refusal("region=codes.csv", "region=codes.csv") == (
        "--tree names the column 'region' twice; give it one list of codes."
    )
