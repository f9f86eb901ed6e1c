"""Derived columns in a schema: what they compute, what is refused, and that the text of a schema holds them whole."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsynth import Schema
from certsynth.artefact.table import with_derived
from certsynth.domain.derivation import read_derivation
from certsynth.errors import SchemaError

INDUSTRY = """
[[column]]
name = "industry"
kind = "category"
values = ["farm", "mine", "shop"]
"""
GROUP = """
[[column]]
name = "group"
kind = "category"
values = ["goods", "services"]
"""
HOURS = """
[[column]]
name = "hours"
kind = "integer"
low = 0
high = 99
"""
MAPPED = 'derived = { from = "industry", map = { farm = "goods", mine = "goods", shop = "services" } }\n'


def year(expression: str, kind: str = "integer", more: str = "low = 0\nhigh = 4000\n") -> str:
    return f'[[column]]\nname = "year"\nkind = "{kind}"\n{more}derived = {{ expression = "{expression}" }}\n'


def derive(schema: Schema, **columns: list[object]) -> dict[str, list[object]]:
    """The derived columns of a few rows, with None for missing values."""
    table = {}
    for column in schema.measured:
        clean = column.clean(np.array(columns[column.name], dtype=object))
        table[column.name] = column.decode(clean)
    made = with_derived(schema, table)
    assert list(made) == list(schema.names)
    return {name: made[name].tolist() for name in schema.names if name in schema.derived}


# ---------------------------------------------------------------------------------------------------- what it computes


def test_a_map_gives_each_label_its_value():
    schema = Schema.parse(INDUSTRY + GROUP + MAPPED)
    assert schema.derived == {"group"}
    assert schema.measured.names == ("industry",)
    assert derive(schema, industry=["shop", "farm", "mine"]) == {"group": ["services", "goods", "goods"]}


def test_the_order_of_columns_is_that_of_the_schema():
    schema = Schema.parse(GROUP + MAPPED + INDUSTRY)
    assert derive(schema, industry=["mine"]) == {"group": ["goods"]}


def test_a_missing_source_makes_a_missing_value_or_what_the_map_says():
    schema = Schema.parse(INDUSTRY + "missing = true\n" + GROUP + "missing = true\n" + MAPPED)
    assert derive(schema, industry=[None, "shop"]) == {"group": [None, "services"]}
    told = MAPPED.replace('farm = "goods"', '"" = "services", farm = "goods"')
    schema = Schema.parse(INDUSTRY + "missing = true\n" + GROUP + told)
    assert derive(schema, industry=[None, "farm"]) == {"group": ["services", "goods"]}
    dropped = MAPPED.replace('shop = "services"', 'shop = ""')
    schema = Schema.parse(INDUSTRY + GROUP + "missing = true\n" + dropped)
    assert derive(schema, industry=["shop", "farm"]) == {"group": [None, "goods"]}


def test_labels_that_are_not_listed_are_mapped_as_other():
    mapped = MAPPED.replace("farm =", 'other = "services", farm =')
    schema = Schema.parse(INDUSTRY + "other = true\n" + GROUP + mapped)
    assert derive(schema, industry=["bank", "farm"]) == {"group": ["services", "goods"]}


@pytest.mark.parametrize(
    ("source", "target", "pairs", "given", "expected"),
    [
        (
            'kind = "integer"\nlow = 1\nhigh = 3',
            'kind = "ordinal"\nvalues = ["s", "m", "l"]',
            '1="s",2="m",3="l"',
            3,
            "l",
        ),
        ('kind = "ordinal"\nvalues = ["s", "l"]', 'kind = "integer"\nlow = 1\nhigh = 9', "s=2,l=9", "l", 9),
        ('kind = "boolean"', 'kind = "number"\nlow = 0\nhigh = 1', "true=0.1,no=0.25", True, 0.1),
        ('kind = "boolean"', 'kind = "boolean"', "true=false,false=true", True, False),
        (
            'kind = "date"\nlow = 2024-01-01\nhigh = 2024-01-02',
            'kind = "date"\nlow = 2023-01-01\nhigh = 2024-01-02',
            '"2024-01-01"=2023-01-01,"2024-01-02"="2024-01-02"',
            "2024-01-01",
            datetime.date(2023, 1, 1),
        ),
        (
            'kind = "tree"\nvalues = ["a/b", "a/c"]',
            'kind = "tree"\nvalues = ["x/y", "x"]',
            '"a/b"="x/y",c="x"',
            "b",
            "y",
        ),
    ],
)
def test_maps_between_columns_of_every_kind(source, target, pairs, given, expected):
    text = f'[[column]]\nname = "a"\n{source}\n[[column]]\nname = "b"\n{target}\n'
    schema = Schema.parse(text + f'derived = {{ from = "a", map = {{ {pairs} }} }}')
    assert derive(schema, a=[given]) == {"b": [expected]}
    assert Schema.parse(schema.to_toml()) == schema


def test_an_expression_is_rounded_and_clipped_as_private_values_are():
    assert derive(Schema.parse(HOURS + year("hours * 52")), hours=[0, 40, 99]) == {"year": [0, 2080, 4000]}
    assert derive(Schema.parse(HOURS + year("0.5 * hours")), hours=[1, 2, 3]) == {"year": [1, 1, 2]}
    number = year("0.25 * hours - 1", "number", "low = 0\nhigh = 50\n")
    assert derive(Schema.parse(HOURS + number), hours=[1, 5]) == {"year": [0.0, 0.25]}


def test_an_expression_gives_the_nearest_step():
    tens = year("1.3 * hours", "integer", "low = 0\nhigh = 100\nstep = 10\n")
    assert derive(Schema.parse(HOURS + tens), hours=[0, 3, 4, 99]) == {"year": [0, 0, 10, 100]}
    cents = year("0.123 * hours", "number", "low = 0\nhigh = 10\nstep = 0.05\n")
    assert derive(Schema.parse(HOURS + cents), hours=[1, 2, 3, 99]) == {"year": [0.1, 0.25, 0.35, 10.0]}


def test_a_map_lists_steps():
    steps = HOURS.replace("high = 99", "high = 20\nstep = 10")
    entry = 'derived = {{ from = "hours", map = {{ 0 = "goods", 10 = "goods", {} = "services" }} }}\n'
    schema = Schema.parse(steps + GROUP + entry.format(20))
    assert derive(schema, hours=[0, 20]) == {"group": ["goods", "services"]}
    with pytest.raises(SchemaError, match="'15', which is not a value of 'hours'"):
        Schema.parse(steps + GROUP + entry.format(15))


def test_an_expression_of_several_columns_is_missing_where_one_is():
    more = HOURS.replace('"hours"', '"more"') + "missing = true\n"
    schema = Schema.parse(HOURS + more + year("hours + more", more="low = 0\nhigh = 198\nmissing = true\n"))
    assert derive(schema, hours=[1, 2], more=[3, None]) == {"year": [4, None]}


def test_dates_and_conditions_are_derived_by_expressions():
    born = '[[column]]\nname = "born"\nkind = "date"\nlow = 1900-01-01\nhigh = 2024-12-31\nmissing = true\n'
    due = year("born + 10", "date", "low = 1900-01-01\nhigh = 2025-12-31\nmissing = true\n")
    assert derive(Schema.parse(born + due), born=["2024-12-31", None]) == {"year": [datetime.date(2025, 1, 10), None]}
    days = year("born - '1900-01-01'", "integer", "low = 0\nhigh = 50000\nmissing = true\n")
    assert derive(Schema.parse(born + days), born=["1900-01-31"]) == {"year": [30]}
    adult = year("born <= '2006-12-31'", "boolean", "missing = true\n")
    found = derive(Schema.parse(born + adult), born=["2000-01-01", "2010-01-01", None])
    assert found == {"year": [True, False, None]}


def test_chains_are_computed_whatever_their_order():
    big = '[[column]]\nname = "big"\nkind = "boolean"\nderived = { expression = "year > 2000" }\n'
    for text in (HOURS + year("hours * 52") + big, big + year("hours * 52") + HOURS):
        schema = Schema.parse(text)
        assert schema.measured.names == ("hours",)
        assert derive(schema, hours=[10, 40]) == {"year": [520, 2080], "big": [False, True]}


# ---------------------------------------------------------------------------------------------------------------- text


def test_a_map_file_is_read_beside_the_schema_and_kept_in_its_text(tmp_path: Path):
    text = INDUSTRY + GROUP + 'derived = { from = "industry", map = "groups.csv" }\n'
    (tmp_path / "schema.toml").write_text(text)
    (tmp_path / "groups.csv").write_text("industry,group\nfarm, goods\nmine,goods\n\nshop,services\n")
    schema = Schema.load(tmp_path / "schema.toml")
    assert schema == Schema.parse(INDUSTRY + GROUP + MAPPED)
    again = Schema.parse(schema.to_toml())  # names no file
    assert again == schema
    assert hash(again) == hash(schema)
    assert again.to_toml() == schema.to_toml()
    assert 'derived = { from = "industry", map = { farm = "goods"' in schema.to_toml()
    (tmp_path / "groups.csv").write_text("farm,goods\nmine,goods\nshop,services\n")  # without a header
    assert Schema.load(tmp_path / "schema.toml") == schema


def test_labels_of_all_sorts_come_back_from_the_text():
    odd = ["a b", 'q"q', "1.5", "é", "x=y", "", "a.b.c", "[z]", "tab\\t"]
    listed = ", ".join(repr(label) if '"' not in label else f"'{label}'" for label in odd).replace("\\\\", "\\")
    pairs = ", ".join(f"'{label}' = '{label}'" for label in odd)
    text = f'[[column]]\nname = "a"\nkind = "category"\nvalues = [{listed}]\n'
    copy = text.replace('"a"\n', '"b"\n') + f'derived = {{ from = "a", map = {{ {pairs} }} }}\n'
    schema = Schema.parse(text + copy)
    assert Schema.parse(schema.to_toml()) == schema
    assert derive(schema, a=odd) == {"b": odd}


def test_another_map_is_another_schema():
    first = Schema.parse(INDUSTRY + GROUP + MAPPED)
    second = Schema.parse(INDUSTRY + GROUP + MAPPED.replace('mine = "goods"', 'mine = "services"'))
    assert first != second
    assert first.to_toml() != second.to_toml()


def test_selected_columns_stay_derived_only_with_their_sources():
    schema = Schema.parse(INDUSTRY + GROUP + MAPPED + HOURS)
    assert schema.select(["group", "industry"]).derived == {"group"}
    assert schema.select(["group", "hours"]).derived == frozenset()
    assert schema.select(["industry"]).derivations == ()


# ------------------------------------------------------------------------------------------------------------ refusals

REFUSED = {
    "not a table": (
        INDUSTRY + GROUP + 'derived = "industry"',
        "column 'group': derived has the entries from and map, or expression alone: write derived = { from = "
        '"industry", map = "groups.csv" } or derived = { expression = "hours * 52" }.',
    ),
    "no map": (
        INDUSTRY + GROUP + 'derived = { from = "industry" }',
        "column 'group': derived has the entries from and map, or expression alone",
    ),
    "both": (
        INDUSTRY + GROUP + 'derived = { from = "industry", map = {}, expression = "hours" }',
        "column 'group': derived has the entries from and map, or expression alone",
    ),
    "map is a number": (
        INDUSTRY + GROUP + 'derived = { from = "industry", map = 3 }',
        'column \'group\': derived: map is a CSV file or a table of values, like { "a" = "x", "b" = "y" }.',
    ),
    "map of lists": (
        INDUSTRY + GROUP + 'derived = { from = "industry", map = { farm = [1] } }',
        "column 'group': derived: the values of a map are texts, numbers, dates, times, true or false.",
    ),
    "empty map": (
        INDUSTRY + GROUP + 'derived = { from = "industry", map = {} }',
        "column 'group': derived: the map is empty; list every value of 'industry' with the value that it becomes.",
    ),
    "file without a folder": (
        INDUSTRY + GROUP + 'derived = { from = "industry", map = "groups.csv" }',
        "column 'group': derived: map: a schema without a file of its own cannot name another; write "
        "the values into it.",
    ),
    "unknown source": (
        INDUSTRY + GROUP + MAPPED.replace('"industry"', '"industri"'),
        "column 'group' is derived from 'industri', which is not a column of the schema: name one that "
        "is. Did you mean "
        "'industry'?",
    ),
    "itself": (
        INDUSTRY + GROUP + 'derived = { from = "group", map = { goods = "goods", services = "goods" } }',
        "column 'group' is derived from itself: name another column.",
    ),
    "itself by an expression": (
        HOURS + year("year + hours"),
        "column 'year' is derived from itself: name another column.",
    ),
    "a circle": (
        HOURS + year("half + 1") + year("year - 1").replace('"year"', '"half"'),
        "the columns 'year', 'half' are derived from each other in a circle: remove the entry derived "
        "from one of them.",
    ),
    "a label that the map lacks": (
        INDUSTRY + GROUP + MAPPED.replace('mine = "goods", ', ""),
        "column 'group': its map lacks the value 'mine' of 'industry': add a line for it.",
    ),
    "other labels that the map lacks": (
        INDUSTRY + "other = true\n" + GROUP + MAPPED,
        "column 'group': its map lacks the value 'other' of 'industry': add a line for it.",
    ),
    "a number that the map lacks": (
        HOURS + GROUP + 'derived = { from = "hours", map = { 0 = "goods" } }',
        "column 'group': its map lacks the value '1' of 'hours': add a line for it.",
    ),
    "a label that the source lacks": (
        INDUSTRY + GROUP + MAPPED.replace("farm", "form"),
        "column 'group': its map lists 'form', which is not a value of 'industry': remove that line, or "
        "add the value to "
        "'industry'.",
    ),
    "a value that the column lacks": (
        INDUSTRY + GROUP + MAPPED.replace('"services"', '"trade"'),
        "column 'group': its map sends 'shop' to 'trade', which is not a value of the column: correct "
        "the line, or let the "
        "column allow the value.",
    ),
    "a number out of bounds": (
        INDUSTRY + HOURS + 'derived = { from = "industry", map = { farm = 1, mine = 2, shop = 100 } }',
        "column 'hours': its map sends 'shop' to '100', which is not a value of the column: correct the line",
    ),
    "a fraction among integers": (
        INDUSTRY + HOURS + 'derived = { from = "industry", map = { farm = 1, mine = 2, shop = 1.5 } }',
        "column 'hours': its map sends 'shop' to '1.5', which is not a value of the column",
    ),
    "a missing value that the column lacks": (
        INDUSTRY + GROUP + MAPPED.replace('"services"', '""'),
        "column 'group': its map sends 'shop' to '', which is not a value of the column: set missing = true.",
    ),
    "twice": (
        '[[column]]\nname = "a"\nkind = "tree"\nvalues = ["x/y", "x/z"]\n'
        + GROUP
        + 'derived = { from = "a", map = { "x/y" = "goods", y = "services", z = "goods" } }',
        "column 'group': its map lists 'y' twice; remove one of the lines.",
    ),
    "a source that may be missing": (
        INDUSTRY + "missing = true\n" + GROUP + MAPPED,
        "column 'group' is derived from 'industry', which may be missing: set missing = true, or list "
        'the empty value "" '
        "in the map.",
    ),
    "a summand that may be missing": (
        HOURS + "missing = true\n" + year("hours * 52"),
        "column 'year' is derived from 'hours', which may be missing: set missing = true.",
    ),
    "too many values": (
        '[[column]]\nname = "x"\nkind = "number"\nlow = 0\nhigh = 1\n'
        + GROUP
        + 'derived = { from = "x", map = { 0 = "goods" } }',
        "column 'group' is derived by a map from 'x', which has too many values to list: write an expression.",
    ),
    "an expression that is a number": (
        HOURS + year("hours * 52").replace('"hours * 52"', "52"),
        "column 'year': derived: expression is a text; write it in quotes.",
    ),
    "a broken expression": (
        HOURS + year("hours *"),
        "column 'year', derived, expression, at character 8: a column, a number or a text in quotes was "
        "expected, not the "
        "end.",
    ),
    "an unknown column": (
        HOURS + year("52 * ours"),
        "column 'year', derived, expression, at character 6: no column is called 'ours'; there are 'hours', 'year'",
    ),
    "a constant": (
        HOURS + year("52"),
        "column 'year', derived, expression, at character 1: this is a constant; name a column.",
    ),
    "a condition for a number": (
        HOURS + year("hours > 2"),
        "column 'year', derived, expression, at character 1: expected a value",
    ),
    "a value for a boolean": (
        HOURS + year("hours * 2", "boolean", ""),
        "column 'year', derived, expression, at character 1: this is a value, not a condition",
    ),
    "labels in a sum": (
        INDUSTRY + year("industry + 1"),
        "column 'year', derived, expression, at character 1: 'industry' has labels; only numbers and "
        "dates can be added.",
    ),
    "a number for labels": (
        HOURS + GROUP + 'derived = { expression = "hours * 2" }',
        "column 'group': its expression gives a number, for a column of kind integer or number: change "
        "its kind, or write "
        "a map.",
    ),
    "a number for a date": (
        HOURS + year("hours * 2", "date", "low = 2020-01-01\nhigh = 2020-12-31\n"),
        "column 'year': its expression gives a number, for a column of kind integer or number: change its kind",
    ),
    "a negative date": (
        '[[column]]\nname = "d"\nkind = "date"\nlow = 2020-01-01\nhigh = 2020-12-31\n' + year("5 - d"),
        "column 'year', derived, expression, at character 1: a date cannot be negative; date - date is "
        "a number of days.",
    ),
    "too large": (
        HOURS + year("1e299 * hours"),
        "column 'year': its expression can exceed 1e300; use smaller factors or narrower bounds.",
    ),
    "a rule on a derived column": (
        HOURS + year("hours * 52") + '[[rule]]\nimpossible = "year > 2000"\n',
        "rule 1 mentions 'year', which is derived: write the rule for 'hours' instead.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str):
    text, expected = REFUSED[case]
    with pytest.raises(SchemaError) as caught:
        Schema.parse(text)
    message = str(caught.value)
    assert message.startswith(expected)
    assert "\n" not in message


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("farm,goods,1\n", "the map file has two columns, a value of 'industry' and the value it becomes."),
        ("farm,goods\nfarm,services\n", "the map lists 'farm' twice; remove one of the lines."),
        ("", "the map is empty; list every value of 'industry' with the value that it becomes."),
        ('"farm,goods', "map: 'groups.csv' is not a CSV file in UTF-8; save it as one."),
        (None, "map: 'groups.csv': No such file or directory. Check the name."),
    ],
)
def test_refuses_map_files(tmp_path: Path, lines: str | None, expected: str):
    (tmp_path / "schema.toml").write_text(INDUSTRY + GROUP + 'derived = { from = "industry", map = "groups.csv" }\n')
    if lines is not None:
        (tmp_path / "groups.csv").write_text(lines)
    with pytest.raises(SchemaError) as caught:
        Schema.load(tmp_path / "schema.toml")
    assert str(caught.value) == f"column 'group': derived: {expected}"


def test_a_header_with_other_names_is_taken_for_a_line(tmp_path: Path):
    (tmp_path / "schema.toml").write_text(INDUSTRY + GROUP + 'derived = { from = "industry", map = "groups.csv" }\n')
    (tmp_path / "groups.csv").write_text("code,class\nfarm,goods\nmine,goods\nshop,services\n")
    with pytest.raises(SchemaError, match=r"its map lists 'code', which is not a value of 'industry'"):
        Schema.load(tmp_path / "schema.toml")


def test_maps_outside_the_schemas_folder_are_refused(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "groups.csv").write_text("farm,goods\nmine,goods\nshop,services\n")
    (tmp_path / "in" / "schema.toml").write_text(
        INDUSTRY + GROUP + 'derived = { from = "industry", map = "../groups.csv" }\n'
    )
    with pytest.raises(SchemaError, match="must be a file in the schema's folder"):
        Schema.load(tmp_path / "in" / "schema.toml")


def test_rules_on_measured_columns_stay_with_them():
    schema = Schema.parse(HOURS + year("hours * 52") + '[[rule]]\nimpossible = "hours > 80"\n')
    assert len(schema.measured.constraints) == 1


TEXTS = st.sampled_from(
    ["farm", "mine", "shop", "goods", "services", "", "hours", "group", "industry", "1", "nan", "\x00"]
)
VALUES = st.one_of(
    TEXTS, st.text(max_size=5), st.integers(), st.floats(), st.booleans(), st.dates(), st.none(), st.lists(TEXTS)
)
ENTRIES = st.one_of(
    VALUES,
    st.fixed_dictionaries({"from": VALUES, "map": st.one_of(VALUES, st.dictionaries(TEXTS, VALUES, max_size=5))}),
    st.fixed_dictionaries(
        {"from": st.just("industry"), "map": st.fixed_dictionaries(dict.fromkeys(("farm", "mine", "shop"), TEXTS))}
    ),
    st.fixed_dictionaries(
        {"expression": st.one_of(VALUES, st.sampled_from(["hours", "hours * 2", "group", "hours > 3"]))}
    ),
)


@given(entry=ENTRIES, column=st.sampled_from(["industry", "group", "hours"]))
def test_whatever_is_written_is_refused_in_one_line_or_kept(entry: object, column: str):
    plain = Schema.parse(INDUSTRY + GROUP + HOURS)
    try:
        schema = replace(plain, derivations=(read_derivation(entry, column, None),))
    except SchemaError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert "\n" not in message
        return
    assert Schema.parse(schema.to_toml()) == schema
    assert len(derive(schema, industry=["shop"], group=["goods"], hours=[7])[column]) == 1
