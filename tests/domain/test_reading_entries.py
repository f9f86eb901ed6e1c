"""Entries about texts in a schema: read, refused with a remedy, and written back."""

from __future__ import annotations

import pytest

from certsynth.domain import Schema
from certsynth.domain.reading import Reading
from certsynth.errors import SchemaError

NUMBER = 'name = "x"\nkind = "number"\nlow = 0\nhigh = 100\n'
INTEGER = 'name = "x"\nkind = "integer"\nlow = 0\nhigh = 100\nmissing = true\n'
DATE = 'name = "x"\nkind = "date"\nlow = 2000-01-01\nhigh = 2020-12-31\nmissing = true\n'
LABELS = 'name = "x"\nkind = "category"\nvalues = ["a", "B", "Ss"]\nmissing = true\n'
TREE = 'name = "x"\nkind = "tree"\nvalues = ["a/b", "a/c"]\nmissing = true\n'
TRUTHS = 'name = "x"\nkind = "boolean"\nmissing = true\n'


def reading_of(entries: str) -> Reading:
    return Schema.parse(f"[[column]]\n{entries}").columns[0].reading


def test_defaults() -> None:
    assert reading_of(NUMBER).is_plain
    assert reading_of(NUMBER + 'decimal = "."').is_plain
    assert reading_of(LABELS + 'strip = false\ncase = "exact"').is_plain
    assert "decimal" not in Schema.parse("[[column]]\n" + NUMBER + 'decimal = "."').to_toml()
    assert reading_of(INTEGER + 'missing_codes = ["N", "-9"]').missing_as == "N"
    assert reading_of(INTEGER + 'missing_codes = ["N", "-9"]\nmissing_as = "-9"').missing_as == "-9"
    assert reading_of(INTEGER + 'missing_codes = ["N", "-9"]\nmissing_as = ""').missing_as == ""
    assert reading_of(INTEGER + 'missing_codes = ["--"]').missing_as == "--"
    assert reading_of(INTEGER + 'missing_codes = ["=NA()"]\nmissing_as = ""').missing_codes == ("=NA()",)
    assert reading_of(NUMBER + 'symbol = ["$", "US$"]').symbol == ("US$", "$")


REFUSED = {
    "codes without missing": (NUMBER + 'missing_codes = ["N"]', "missing_codes needs missing = true"),
    "codes that are numbers": (INTEGER + "missing_codes = [-9]", 'write "-9" rather than -9'),
    "codes that are no list": (INTEGER + 'missing_codes = "N"', "missing_codes is a list of 1 to 64 texts"),
    "no codes": (INTEGER + "missing_codes = []", "missing_codes is a list of 1 to 64 texts"),
    "an empty code": (INTEGER + 'missing_codes = [""]', "an empty field is missing in any case"),
    "blanks around a code": (INTEGER + 'missing_codes = [" N"]', "without blanks around them"),
    "a control character": (INTEGER + 'missing_codes = ["a\\u0007"]', "missing_codes are texts"),
    "a code twice": (INTEGER + 'missing_codes = ["N", "N"]', "lists a code twice"),
    "a code that is a value": (INTEGER + 'missing_codes = ["9"]', "the missing code '9' is also a value of the column"),
    "a code that reads as a value": (INTEGER + 'missing_codes = ["09.0"]', "is also a value of the column"),
    "a code in an interval": (NUMBER + 'missing = true\nmissing_codes = ["9.25"]', "is also a value of the column"),
    "a code with separators": (
        NUMBER + 'missing = true\ndecimal = ","\nmissing_codes = ["9,25"]',
        "is also a value of the column",
    ),
    "a day that is a value": (DATE + 'missing_codes = ["2000-01-01"]', "is also a value of the column"),
    "a day in the format": (DATE + 'format = "%d.%m.%Y"\nmissing_codes = ["1.1.2000"]', "is also a value"),
    "a typed day": (DATE + 'format = "%d.%m.%Y"\nmissing_codes = ["2000-01-01"]', "is also a value"),
    "a code that is a label": (LABELS + 'missing_codes = ["a"]', "is also a value of the column"),
    "a code that is nearly a label": (LABELS + 'case = "ignore"\nmissing_codes = ["A"]', "is also a value"),
    "a code that is a label with blanks": (
        LABELS.replace('"a"', '" a"') + 'missing_codes = ["a"]',
        "is also a value of the column",
    ),
    "a code that is a path": (TREE + 'missing_codes = ["a/b"]', "is also a value of the column"),
    "a code that is a word": (TRUTHS + 'missing_codes = ["True"]', "is also a value of the column"),
    "a code that is a stated word": (TRUTHS + 'values = ["no", "yes"]\nmissing_codes = ["NO"]', "is also a value"),
    "missing_as without codes": (INTEGER + 'missing_as = "N"', 'missing_as must be one of missing_codes, or ""'),
    "another missing_as": (INTEGER + 'missing_codes = ["N"]\nmissing_as = "M"', "one of missing_codes"),
    "a formula": (INTEGER + 'missing_codes = ["=NA()"]', "would run as a formula"),
    "missing_as that is a number": (INTEGER + "missing_as = 9", "missing_as is a text"),
    "strip of numbers": (NUMBER + "strip = true", "a column of kind number has no entry 'strip'"),
    "strip that is a text": (LABELS + 'strip = "yes"', "strip is true or false"),
    "another case": (LABELS + 'case = "lower"', 'case is "exact" or "ignore"'),
    "labels that become equal": (
        'name = "x"\nkind = "category"\nvalues = ["Male", "male"]\ncase = "ignore"',
        "'Male' and 'male' are the same with these options",
    ),
    "other among the labels": (
        'name = "x"\nkind = "category"\nvalues = ["a", "Other"]\nother = true\ncase = "ignore"',
        "'Other' and 'other' are the same",
    ),
    "paths that become equal": (
        'name = "x"\nkind = "tree"\nvalues = ["1/b", "1/B"]\ncase = "ignore"',
        "are the same with these options",
    ),
    "decimal": (NUMBER + 'decimal = ";"', 'decimal is "." or ","'),
    "thousands": (NUMBER + 'thousands = "x"', "thousands is one of"),
    "the same sign": (NUMBER + 'thousands = "."', "decimal and thousands are the same sign"),
    "an empty symbol": (NUMBER + 'symbol = ""', "symbol must be a text without blanks"),
    "no symbol": (NUMBER + "symbol = []", "symbol is a text, or a list of 1 to 16"),
    "a symbol with digits": (NUMBER + 'symbol = "m2"', "a symbol has no digit or sign"),
    "a symbol with a sign": (NUMBER + 'symbol = "-"', "a symbol has no digit or sign"),
    "a symbol that separates": (NUMBER + 'symbol = ","', "a symbol has no digit or sign"),
    "a format of a number": (NUMBER + 'format = "%d"', "a column of kind number has no entry 'format'"),
    "no format": (DATE + 'format = "%d.%m"', "it does not state the year. Write it like"),
    "blanks around a format": (DATE + 'format = "%d.%m.%Y "', "format has blanks around it"),
    "years that %y lacks": (
        'name = "x"\nkind = "date"\nlow = 1950-01-01\nhigh = 2020-12-31\nformat = "%d.%m.%y"',
        "can state the years 1969 to 2068 only; use %Y",
    ),
    "three words": (TRUTHS + 'values = ["no", "yes", "maybe"]', "the words for false and true"),
    "one word twice": (TRUTHS + 'values = ["x", "X"]', "the same word for false and true"),
    "words in the wrong order": (TRUTHS + 'values = ["yes", "no"]', "the word for false first"),
    "true for false": (TRUTHS + 'values = ["true", "x"]', "the word for false first"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str) -> None:
    entries, says = REFUSED[case]
    with pytest.raises(SchemaError) as caught:
        reading_of(entries)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_map_of_a_boolean_does_not_take_words_of_another_meaning() -> None:
    flag = (
        '[[column]]\nname = "flag"\nkind = "boolean"\nvalues = ["1", "2"]\n[[column]]\nname = "y"\nkind = "category"\n'
    )
    labels = 'values = ["p", "q"]\nderived = { from = "flag", map = '
    Schema.parse(f'{flag}{labels}{{ "false" = "p", "true" = "q" }} }}')
    with pytest.raises(SchemaError, match="its map lists '1', which is not a value of 'flag'"):
        Schema.parse(f'{flag}{labels}{{ "0" = "p", "1" = "q" }} }}'.replace('"0"', '"false"'))
