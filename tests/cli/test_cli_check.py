"""certsynth check: the step before a release, for the data owner only."""

from __future__ import annotations

import duckdb
import pytest

from certsynth import Schema

FIRST_LINE = "NOT private: for the eyes of the data owner. Do not publish this."
CHECK = ("check", "people.csv", "--schema", "schema.toml")

SHOP = """customer,amount,day,visits,region
1,"1.250,50 €",25/03/2020,7,north
2,"7,25 €",01/04/2020,N,south
3,"12 €",13/12/2020,-9, north
4,"3 €",02/02/2020,3,North
"""
SHOP_SCHEMA = """[table]
name = "shop"
unit = "one row is one customer"

[[column]]
name = "amount"
kind = "number"
low = 0
high = 10000

[[column]]
name = "day"
kind = "date"
low = 2020-01-01
high = 2020-12-31

[[column]]
name = "visits"
kind = "integer"
low = 0
high = 1000

[[column]]
name = "region"
kind = "category"
values = ["north", "south", "east"]
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    (tmp_path / "shop.csv").write_text(SHOP, encoding="utf-8")
    (tmp_path / "schema.toml").write_text(SHOP_SCHEMA, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_says_that_everything_fits(town, run):
    done = run(*CHECK)
    assert (done.code, done.err) == (0, "")
    first, _, second, *_ = done.out.splitlines()
    assert (first, second) == (FIRST_LINE, "people.csv: 150 rows, 3 columns: every value fits the schema.")
    assert done.out.endswith("next: certsynth release people.csv --schema schema.toml --epsilon 1 --out release\n")


EXPECTED = """\
NOT private: for the eyes of the data owner. Do not publish this.

shop.csv: 4 rows, 4 columns: 4 columns do not fit.

  column  kind      clipped  unlisted  unreadable  missing
  amount  number          –         –       100 %        –
  day     date            –         –       100 %        –
  visits  integer    25.0 %         –      25.0 %        –
  region  category        –    50.0 %           –        –

amount: 4 unreadable (100 %); 4 would be read as another value.
  likely cause: a decimal comma, a thousands separator and a currency sign or a unit
  write in its [[column]]:
    decimal = ","
    thousands = "."
    symbol = "€"

day: 4 unreadable (100 %); 4 would be read as another value.
  likely cause: dates in another format, with the day first
  write in its [[column]]:
    format = "%d/%m/%Y"

visits: 1 below low (25.0 %), 1 unreadable (25.0 %); 1 would be read as another value.
  likely cause: codes for missing values
  likely cause: values outside the bounds that often mean missing
  write in its [[column]]:
    missing = true
    missing_codes = ["N", "-9"]

region: 2 unlisted (50.0 %); 2 would be read as another value.
  likely cause: blanks around the labels, and other capitals than in the schema
  write in its [[column]]:
    strip = true
    case = "ignore"

note: not in the schema, and ignored: customer.

next: edit schema.toml, then certsynth check shop.csv --schema schema.toml
"""


def test_names_causes_and_remedies_of_a_messy_file(shop, run):
    done = run("check", "shop.csv", "--schema", "schema.toml")
    assert (done.code, done.err) == (1, "")
    assert done.out == EXPECTED
    assert sorted(path.name for path in shop.iterdir()) == ["schema.toml", "shop.csv"]


def test_fits_once_the_lines_are_written(shop, run):
    said = run("check", "shop.csv", "--schema", "schema.toml", "--json").json
    schema = SHOP_SCHEMA
    for column in said["columns"]:
        head = f'name = "{column["column"]}"\n'
        schema = schema.replace(head, head + "".join(f"{line}\n" for line in column["lines"]))
    (shop / "schema.toml").write_text(schema, encoding="utf-8")
    done = run("check", "shop.csv", "--schema", "schema.toml")
    assert done.code == 0, done.out
    assert "note: region: 1 label of the schema never occurs: east." in done.out


def test_prints_one_json_object(shop, run):
    done = run("check", "shop.csv", "--schema", "schema.toml", "--json")
    assert done.code == 1
    said = done.json
    assert list(said) == ["private", "notice", "fits", "rows", "columns", "rules", "derived", "not_in_schema"]
    assert (said["private"], said["notice"], said["fits"]) == (False, FIRST_LINE, False)
    assert said["columns"][0]["unreadable"] == {"rows": 4, "share": 1.0}


def test_quotes_rows_only_with_examples(shop, run):
    (shop / "shop.csv").write_text(SHOP.replace("north\n", "Atlantis\n"), encoding="utf-8")
    command = ("check", "shop.csv", "--schema", "schema.toml")
    assert "Atlantis" not in run(*command).out + run(*command, "--json").out
    done = run(*command, "--examples")
    assert "  for example: " in done.out
    assert "'Atlantis'" in done.out


def test_counts_rows_that_break_rules_and_derived_columns(town, run):
    rules = """
[[column]]
name = "old"
kind = "boolean"
derived = { expression = "age > 50" }

[[rule]]
impossible = "employed = true and age < 18"
"""
    (town / "schema.toml").write_text(Schema.load(town / "schema.toml").to_toml() + rules)
    (town / "people.csv").write_text("age,region,employed,old\n17,hills,true,false\n60,hills,true,false\n")
    done = run(*CHECK)
    assert done.code == 1
    assert "people.csv: 2 rows, 4 columns: 1 rule and 1 derived column do not fit." in done.out
    assert 'rule 1 (impossible = "employed = true and age < 18"): 1 row (50.0 %) contradicts it.' in " ".join(
        done.out.split()
    )
    assert "old, derived from 'age': 1 row (50.0 %) contradicts it." in done.out


def test_mistakes_are_one_line(town, run):
    assert run("check", "no.csv", "--schema", "schema.toml").error == "data no.csv: no such file. Check the path."
    assert run("check", "people.csv").error.startswith("missing option '--schema'. Draft one with")
    (town / "people.csv").write_text("Age,region,employed\n1,hills,true\n")
    assert run(*CHECK).error == (
        "data people.csv: no column 'age'; it has 'Age', 'region', 'employed'. Correct the name in the schema or in "
        "the data. Did you mean 'Age'?"
    )
    (town / "people.csv").write_text("age,region,employed\n1,hills\n")
    assert "line 2 has more or fewer fields" in run(*CHECK).error


def test_checks_a_draft_and_what_a_query_selects(town, run):
    assert run("schema", "people.csv", "--out", "draft.toml").code == 0
    assert run("check", "people.csv", "--schema", "draft.toml").code == 0
    with duckdb.connect(str(town / "town.duckdb")) as database:
        database.execute("CREATE TABLE people AS SELECT 34 AS age, 'north' AS region, true AS employed")
    asked = ("SELECT * FROM town.people", "--sql", "--attach", f"town={town}/town.duckdb")
    done = run("check", *asked, "--schema", "schema.toml")
    assert done.code == 0
    assert (
        "next: certsynth release 'SELECT * FROM town.people' --sql --attach 'town=…' --schema schema.toml" in done.out
    )
    assert "town.duckdb" not in done.out


def test_lines_stay_within_80_columns_and_print_no_control_characters(town, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"a column with a very long name, number {i}" for i in range(40)]
    (town / "wide.csv").write_text(",".join(f'"{name}"' for name in [*names, "a\x1bb"]) + "\n" + "7," * 40 + "7\n")
    tables = [f'[[column]]\nname = "{name}"\nkind = "integer"\nlow = 0\nhigh = 5\n' for name in names[:30]]
    (town / "wide.toml").write_text("\n".join(tables))
    done = run("check", "wide.csv", "--schema", "wide.toml")
    assert done.code == 1
    assert max(map(len, done.out.splitlines())) <= 80
    assert "\x1b" not in done.out
    assert "a?b" in done.out


def test_a_release_writes_nothing_of_it(town, run):
    (town / "people.csv").write_text("age,region,employed\n" + "30,Atlantis,true\n" * 20)
    made = run("release", "people.csv", "--schema", "schema.toml", "--epsilon", 1, "--out", "out", "--resolution", 4)
    assert made.code == 0
    for path in (town / "out").iterdir():
        assert b"Atlantis" not in path.read_bytes()
        assert b"unlisted" not in path.read_bytes()
