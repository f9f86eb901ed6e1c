"""certsynth schema: a draft that says what it is."""

from __future__ import annotations

from certsynth import Schema


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


def test_refuses_what_it_cannot_read_or_write(town, run):
    assert run("schema", "no.csv", "--out", "d.toml").error == "data no.csv: no such file. Check the path."
    assert run("schema", "people.csv", "--out", "no/d.toml").error == (
        "no/d.toml was not written (No such file or directory); choose another --out."
    )
    (town / "people.xls").write_text("x")
    assert run("schema", "people.xls", "--out", "d.toml").error.startswith("data people.xls: unknown suffix.")
