"""certsynth demo: the whole journey, on a hamlet."""

from __future__ import annotations

import pytest
from tests.cli.terminal import show

from certsynth import Release, Schema, demo
from certsynth.cli import demo as command


@pytest.fixture
def hamlet(tmp_path, monkeypatch):
    """The demo without its slowest columns."""
    monkeypatch.chdir(tmp_path)
    people, schema = demo.people, Schema.parse(demo.SCHEMA).select(("age", "employed"))
    monkeypatch.setattr(demo, "people", lambda rows: {name: people(rows)[name] for name in schema.names})
    monkeypatch.setattr(demo, "SCHEMA", schema.to_toml())
    monkeypatch.setattr(command, "QUESTIONS", ("mean(age)", "fraction(employed = true)", "median(age)"))
    return tmp_path


def test_goes_the_whole_way_and_explains_it_to_a_terminal(hamlet, run):
    done = show(80, "demo", "--rows", 300, "--quiet")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.lines)) <= 80
    said = " ".join(done.words)
    for name in ("schema", "plan", "release", "verify", "answer", "certify", "ledger", "evaluate", "report"):
        assert f"$ certsynth {name} " in said
    assert "draft = true" in said
    assert "'mean(age)' 'fraction(employed = true)'" in said
    assert done.lines[-1] == "The file to open: demo/release/report.html"
    assert {path.name for path in (hamlet / "demo").iterdir()} == {
        "people.csv",
        "draft.toml",
        "schema.toml",
        "shuffled.csv",
        "release",
        "ledger.jsonl",
    }
    assert run("verify", "demo/release").code == 0
    predicted_and_released = Release.load("demo/release").record.release
    assert "--rows 300 --epsilon 1 Expect " in said
    assert f"release would use {predicted_and_released.mechanism} at " in said
    assert "--resolution" not in said


def test_prints_one_json_object(hamlet, run):
    done = run("demo", "--rows", 300, "--out", "elsewhere", "--json")
    assert (done.code, done.err) == (0, "")
    result = done.json
    assert result["out"] == "elsewhere"
    assert result["verify"]["ok"]
    assert {"release", "certify", "evaluate", "report"} <= set(result)
    assert result["ledger"]["spent"] == 1.5
    assert [answer["query"] for answer in result["answers"]] == [
        "mean(age)",
        "fraction(employed = true)",
        "median(age)",
    ]
    chosen = {key: result["release"]["release"][key] for key in ("mechanism", "resolution")}
    assert {key: result["plan"][key] for key in chosen} == chosen


def test_overwrites_nothing(hamlet, run):
    (hamlet / "demo").mkdir()
    assert run("demo").error == (
        "demo exists already; the demo overwrites nothing. Remove it, or choose another --out."
    )
    assert run("demo", "--out", "no/demo").error == (
        "no/demo cannot be created (No such file or directory); choose another --out."
    )
    assert run("demo", "--rows", 0).error.startswith("invalid value for '--rows': 0 is not in the range")


def test_leaves_nothing_behind_when_it_fails(hamlet, run, monkeypatch):
    def fail(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "journey", fail)
    done = run("demo")
    assert (done.code, done.err) == (130, "interrupted: nothing was written.\n")
    assert list(hamlet.iterdir()) == []


def test_the_town_is_the_same_for_everybody_and_fits_its_schema():
    town, schema = demo.people(400), Schema.parse(demo.SCHEMA)
    assert town == demo.people(400)
    assert tuple(town) == schema.names
    assert {len(values) for values in town.values()} == {400}
    assert "" in town["income"]
    for column, values in zip(schema, town.values(), strict=True):
        labels = getattr(column, "labels", None) or getattr(column, "values", None)
        if labels and column.kind != "boolean":
            assert set(values) <= set(labels)


def test_shuffling_keeps_every_histogram():
    town = demo.people(200)
    mixed = demo.shuffled(town)
    assert mixed != town
    assert {name: sorted(values) for name, values in mixed.items()} == {
        name: sorted(values) for name, values in town.items()
    }
