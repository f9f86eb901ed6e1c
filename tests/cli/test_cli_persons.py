"""Commands on a table in which a person has several rows: who is protected, and which rows the certificate is about."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from certsynth.cli import main
from small import VISITS

SCHEMA = f'[table]\nname = "visits"\nunit = "one row is one visit"\n{VISITS}'

PERSONS = 60
FAST = ("--resolution", "4", "--mechanism", "identity", "--quiet")
PERSON = ("--person", "patient", "--rows-per-person", "3")
KEPT = "the rows that were kept: at most 3 of each person"
RELEASES = {
    "rows": ("--epsilon", "20"),
    "persons": ("--epsilon", "20", "--weigh", "persons", "--missing-person", "separate"),
    "hidden": ("--rho", "10", "--neighbours", "add-remove", "--measure-dropped"),
}
COUNTS_ONE = ", and each person counts 1"
"""What is added to the rows that were kept if persons weigh alike."""


@pytest.fixture(scope="module", autouse=True)
def _long_lines() -> Iterator[None]:
    """Sentences stay on one line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "1000")
        yield


def write_visits(folder: Path) -> None:
    """Persons with 1 to 8 rows, and five rows of nobody."""
    rng = random.Random(1)
    lines = ["patient,age,ward"]
    for person in range(PERSONS):
        lines += [f"P{person},{rng.randint(0, 9)},{rng.choice(['north', 'south'])}" for _ in range(1 + person % 8)]
    (folder / "visits.csv").write_text("\n".join([*lines, *[",1,north"] * 5]) + "\n", encoding="utf-8")
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the table, its schema, and three releases: not to be changed."""
    folder = tmp_path_factory.mktemp("visits")
    write_visits(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, options in RELEASES.items():
            typed = ["release", "visits.csv", "--schema", "schema.toml", *PERSON, *options, "--out", name, *FAST]
            done = CliRunner().invoke(main, typed)
            assert done.exit_code == 0, done.output
            (folder / f"{name}.txt").write_text(done.stdout, encoding="utf-8")
    return folder


@pytest.fixture
def inside(visits, monkeypatch):
    monkeypatch.chdir(visits)
    return visits


def kept(name: str) -> str:
    return KEPT + COUNTS_ONE * (name == "persons")


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_says_who_is_protected_and_which_number_is_public(inside, name):
    said = (inside / f"{name}.txt").read_text(encoding="utf-8")
    line = f"persons: one person protected, with all their rows (column patient); the certificate is about {kept(name)}"
    assert line in said.splitlines()
    public = "that the table has 65 persons is public" if name == "persons" else "how many rows and persons the table"
    assert public in said
    measured = re.search(r"^Between \S+% and \S+% of persons have more than 3 rows, and between", said, re.MULTILINE)
    assert (measured is not None) == (name == "hidden")


@pytest.mark.parametrize("name", RELEASES)
def test_the_folder_records_the_options_in_the_schema_and_in_the_certificate(inside, name):
    record = json.loads((inside / name / "certificate.json").read_text(encoding="utf-8"))
    assert record["table"]["persons"] == {
        "column": "patient",
        "rows_per_person": 3,
        "weigh": "persons" if name == "persons" else "rows",
        "missing_person": "separate" if name == "persons" else "drop",
        "certified_rows": kept(name),
    }
    assert 'person = "patient"\nrows_per_person = 3\n' in (inside / name / "schema.toml").read_text(encoding="utf-8")
    assert record["privacy"]["rows"] is None
    assert record["privacy"].get("persons") == (PERSONS + 5 if name == "persons" else None)
    unit = "rho" if name == "hidden" else "epsilon"
    errors = next(step for step in record["privacy"]["spent"] if step["on"] == "errors of the rows")
    assert float(record["certificate"]["direct"][unit]) == pytest.approx(_number(errors[unit]))


def _number(text: str) -> float:
    above, _, below = text.partition("/")
    return int(above) / int(below or 1)


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_verifies_and_names_what_cannot_be_checked(inside, run, name):
    done = run("verify", name)
    assert done.code == 0, done.out
    line = "that the column 'patient' says whose row it is, and that at most 3 rows of each person were kept"
    assert f"- {line}" in done.out.splitlines()


@pytest.mark.parametrize("name", RELEASES)
def test_answers_are_about_the_rows_that_were_kept(inside, run, name):
    one = run("answer", name, "mean(age)")
    assert f" with confidence 95 %, of {kept(name)}.\n" in one.out
    assert run("answer", name, "mean(age)", "--json").json["about"] == kept(name)
    several = run("answer", name, "mean(age)", "fraction(ward = 'north')").out
    assert several.endswith(f"True values are those of {kept(name)}.\n")
    assert f", of {kept(name)}." in run("answer", name, "table(ward)").out
    assert run("answer", name, "table(ward)", "--json").json["about"] == kept(name)


def test_persons_are_counted_where_their_number_is_public(inside, run):
    found = run("answer", "persons", "count(age < 10)", "--json").json
    assert (found["unit"], found["estimate"]) == ("persons", PERSONS + 5)
    assert found["how"].startswith("the number of persons times ")
    part = run("answer", "persons", "count(age < 4)", "--json").json
    assert isinstance(part["low"], float)  # a row counts a part of a person
    assert run("answer", "rows", "count(age < 4)").error == (
        "count(age < 4): the number of rows that were kept is hidden, so there is no count; ask for fraction(…)."
    )


def test_evaluate_and_certify_compare_with_the_rows_that_are_kept(inside, run):
    typed = ("visits.csv", inside / "rows" / "synthetic.csv", "--schema", "schema.toml", *PERSON)
    done = run("evaluate", *typed)
    assert f"The rows compared are {KEPT}." in done.out.splitlines()
    found = run("evaluate", *typed, "--json", "--weigh", "persons").json
    assert found["persons"]["certified_rows"] == KEPT + COUNTS_ONE
    assert found["lower"] <= found["upper"]
    done = run("certify", *typed, "--epsilon", "20", "--weigh", "persons")
    assert done.out.splitlines()[-1] == (
        f"persons: one person protected, with all their rows (column patient); the certificate is about {KEPT}"
        + COUNTS_ONE
    )
    found = run("certify", *typed, "--epsilon", "20", "--json").json
    assert found["persons"]["rows_per_person"] == 3
    assert found["epsilon"] == 20


def test_outputs_for_single_rows_say_nothing_of_persons(inside, run):
    typed = ("visits.csv", inside / "rows" / "synthetic.csv", "--schema", "schema.toml")
    assert "person" not in run("certify", *typed, "--epsilon", "20").out
    assert "persons" not in run("evaluate", *typed, "--json").json


@pytest.mark.parametrize("name", RELEASES)
def test_the_report_and_the_descriptions_say_it(inside, name):
    page = " ".join((inside / name / "report.html").read_text(encoding="utf-8").split())
    for sentence in (
        "The real rows on this page are those that were kept: at most 3 of each person, chosen by a hash of that "
        "person’s own rows.",
        "one person, with all their rows, by the column “patient”; one row is one visit",
        f"The certificate is about {kept(name)}. They are chosen by a hash",
        "Somebody with m such values is protected at ",
        "n = 65 is the number of persons in the real table." if name == "persons" else "is private: it was measured",
        "taken for a person of their own" if name == "persons" else "whose they are were left out",
        "about a single person" if name != "hidden" else "A single person makes no outcome",
    ):
        assert sentence in page, sentence
    assert ("Each person counts 1, evenly divided among their rows." in page) == (name == "persons")
    assert ("of all rows were dropped for that reason" in page) == (name == "hidden")
    for sentence in ("A row is not a person", "about a single row", "that the table has"):
        assert sentence not in page
    for file in ("datapackage.json", "croissant.json"):
        description = json.loads((inside / name / file).read_text(encoding="utf-8"))["description"]
        assert "one person with all their rows protected" in description
        assert description.endswith(f" The certificate is about {kept(name)}.")


MISTAKES = {
    ("--rows-per-person", "3"): "--rows-per-person is about persons, and the schema names none: give --person, the "
    "column that says whose row it is, or leave --rows-per-person out.",
    ("--weigh", "persons"): "--weigh is about persons, and the schema names none: give --person, the column that says "
    "whose row it is, or leave --weigh out.",
    ("--person", "patient"): "--person needs --rows-per-person as well: the most rows of one person that are kept.",
    ("--person", "patient", "--rows-per-person", "0"): "--rows-per-person must be a whole number from 1 to 1,000: the "
    "most rows of one person that are kept.",
    ("--person", "patient", "--rows-per-person", "1001"): "--rows-per-person must be a whole number from 1 to 1,000: "
    "the most rows of one person that are kept.",
    (*PERSON[:3], "13", "--weigh", "persons"): "--rows-per-person can be at most 12 if persons weigh alike, since rows "
    "are then counted in exact fractions: lower it, or let --weigh be 'rows'.",
    ("--person", "ward", "--rows-per-person", "3"): "column 'ward' names persons and is never released: remove its "
    "[[column]].",
    (*PERSON, "--columns", "age,patient"): "column 'patient' names persons and is never released: leave it out of "
    "--columns.",
    ("--measure-dropped",): "--measure-dropped is about rows of persons: name the column that says whose row it is "
    "with --person.",
}


@pytest.mark.parametrize("typed", MISTAKES)
def test_a_mistake_is_one_line_and_nothing_is_spent(inside, run, typed):
    done = run("release", "visits.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "none", *typed)
    assert done.error == MISTAKES[typed]
    assert not (inside / "none").exists()


@pytest.mark.parametrize("command", ["plan", "check", "evaluate", "certify"])
def test_all_commands_that_take_persons_refuse_the_same(inside, run, command):
    tables = {"plan": (), "check": ("visits.csv",)}.get(command, ("visits.csv", "visits.csv"))
    more = {"plan": ("--rows", "100", "--epsilon", "1"), "certify": ("--epsilon", "1")}.get(command, ())
    done = run(command, *tables, "--schema", "schema.toml", *more, "--person", "patient", "--rows-per-person", "0")
    assert done.error.startswith("--rows-per-person must be a whole number from 1 to 1,000")


def test_a_column_that_names_persons_may_be_in_the_schema_if_it_is_left_out(inside, run):
    done = run("plan", "--schema", "schema.toml", "--rows", "100", "--epsilon", "1", "--person", "ward",
               "--rows-per-person", "2", "--columns", "age", "--json")  # fmt: skip
    assert done.code == 0, done.err


LEDGER = ("--ledger", "ledger", "--cap", "20", "--epsilon", "1")


def test_a_ledger_is_for_one_unit(tmp_path, monkeypatch, run):
    write_visits(tmp_path)
    monkeypatch.chdir(tmp_path)
    typed = ("certify", "visits.csv", "other.csv", "--schema", "schema.toml", *LEDGER)
    (tmp_path / "other.csv").write_text("age,ward\n1,north\n", encoding="utf-8")
    assert run(*typed, *PERSON).code == 0
    assert run(*typed, "--person", "patient", "--rows-per-person", "1", "--weigh", "persons").code == 0  # adds up
    told = run("ledger", "ledger")
    assert "epsilon under replace-one neighbours, to protect the persons of column 'patient'" in told.out
    assert run("ledger", "ledger", "--json").json["person"] == "patient"
    assert run("ledger", "ledger", "--json").json["spent"] == 2
    assert run(*typed).error == (
        "ledger counts what was spent to protect the persons of column 'patient', and amounts spent to protect single "
        "rows do not add to it: ask with --person patient, or choose another --ledger."
    )
    assert "to protect the persons of column 'family' do not add to it: ask with --person patient" in run(
        *typed, "--person", "family", "--rows-per-person", "3"
    ).error  # fmt: skip
    rows = [*typed[:-5], "rows", *typed[-4:]]
    assert run(*rows).code == 0
    assert run("ledger", "rows", "--json").json["person"] is None
    assert "neighbours\n" in run("ledger", "rows").out
    assert "leave --person out, and the entry person = 'patient' of the schema" in run(*rows, *PERSON).error


def test_check_proposes_a_release_that_protects_the_same_persons(inside, run):
    done = run("check", "visits.csv", "--schema", "schema.toml", *PERSON, "--weigh", "persons")
    assert done.out.splitlines()[-1] == (
        "next: certsynth release visits.csv --schema schema.toml --person patient --rows-per-person 3 --weigh persons "
        "--epsilon 1 --out release"
    )


def test_plan_proposes_a_release_that_protects_the_same_persons(inside, run):
    asked = ("--schema", "schema.toml", "--epsilon", "9", *PERSON, "--measure-dropped")
    *_, last = run("plan", "--rows", "100", *asked).out.splitlines()
    words = last.removeprefix("next: certsynth release DATA ").removesuffix(" --out release").split()
    assert sorted(words) == sorted(asked)
