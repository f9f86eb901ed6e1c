"""The first rows, the files and the citation of a release, as the report shows them."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from report_specimens import EVERY_KIND, WOVEN, document, record, table, view, wide

from certsynth.domain import Category, Ordered, Schema
from certsynth.domain.naming import Naming, Publication
from certsynth.report import render_report as render_record
from certsynth.report.contents import (
    FILES,
    SAMPLE_COLUMNS,
    SAMPLE_ROWS,
    SIZED,
    citation,
    publication_text,
    size_text,
    stated_sizes,
)


def contents(schema: Schema = EVERY_KIND, rows: dict[str, Any] | None = None) -> dict[str, Any]:
    return dict(view(document(schema), schema, table(schema) if rows is None else rows)["contents"])


def test_shows_the_first_rows_as_they_are_written() -> None:
    rows, shown = table(EVERY_KIND), contents()
    assert len(shown["rows"]) == SAMPLE_ROWS
    for i, row in enumerate(shown["rows"]):
        for column, text in zip(EVERY_KIND, row, strict=True):
            value = rows[column.name][i]
            if value is np.ma.masked:
                assert text == "missing"
            elif column.name == "income":
                assert float(text.replace(",", "")) == value
            else:
                assert text == (str(value).lower() if column.name == "owner" else str(value))
    assert "first 8 of 400 synthetic rows" in shown["caption"]


def test_shows_names_of_labels_and_titles_in_place_of_codes() -> None:
    schema = Schema(
        columns=(
            Category(name="COW", values=("1", "2"), naming=Naming("worker", labels=(("1", "private company"),))),
            Category(name="DIS", kind="boolean", values=("false", "true"), naming=Naming(labels=(("true", "yes"),))),
        )
    )
    rows = {
        "COW": np.ma.masked_array(np.array(["1", "2"], dtype=object)),
        "DIS": np.ma.masked_array(np.array([True, False])),
    }
    shown = contents(schema, rows)
    assert [column["name"] for column in shown["columns"]] == ["worker", "DIS"]
    assert shown["rows"] == [["private company", "yes"], ["2", "false"]]
    assert shown["caption"].startswith("All rows.")


def test_wide_tables_are_cut_and_say_so() -> None:
    shown = contents(wide(20))
    assert {len(row) for row in shown["rows"]} == {SAMPLE_COLUMNS}
    assert "the first 12 of 20 columns" in shown["caption"]


def test_lists_all_files_of_a_folder() -> None:
    assert [(file["name"], file["size"]) for file in contents()["files"]] == [(name, "") for name in FILES]


def test_sizes_are_rounded_up_to_two_digits_and_read_back_from_the_page() -> None:
    rng = np.random.default_rng(5)
    for size in (1, 9, 10, 99, 100, 101, 990, 991, 999, 1000, 9_999, 10**6 - 1, *(10 ** rng.uniform(0, 11, 500))):
        text = size_text(int(size))
        number, unit = text.split()
        shown = float(number) * {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
        assert int(size) <= shown * (1 + 1e-12) <= 1.1 * int(size) + 1
        sizes = dict.fromkeys(SIZED, text)
        page = render_record(record(document(WOVEN)), WOVEN, table(WOVEN), sizes=sizes) if size in (1, 10) else ""
        assert not page or stated_sizes(page.encode()) == sizes
        assert stated_sizes(f'<code>schema.toml</code></th><td class="n">{text}</td>'.encode()) == {"schema.toml": text}


PUBLICATIONS = {
    "both": (
        Publication("The office", datetime.date(2026, 11, 18)),
        "Published by The office on 2026-11-18.",
        "The office (2026). A survey: ",
    ),
    "publisher": (Publication("The office"), "Published by The office.", "The office. A survey: "),
    "date": (Publication(published=datetime.date(2026, 1, 2)), "Published on 2026-01-02.", "(2026). A survey: "),
    "none": (Publication(), "", "A survey: "),
}


@pytest.mark.parametrize("case", PUBLICATIONS)
def test_names_publisher_and_date_if_they_are_given(case: str) -> None:
    stated, published, cited = PUBLICATIONS[case]
    schema = replace(EVERY_KIND, publication=stated)
    assert publication_text(schema) == published
    text = citation(record(document(schema)), schema)
    assert text.startswith(f"{cited}400 synthetic rows with a certificate (ε = 1, bound 0.02499 at 95% confidence)")


def test_a_table_of_no_rows_has_a_page() -> None:
    schema = Schema(columns=(Ordered(name="x", kind="integer", low=0, high=9), Category(name="c", values=("a",))))
    stated = document(schema)
    shown = view(stated, schema, {c.name: c.decode(np.empty(0, np.int64)) for c in schema})
    assert shown["contents"]["rows"] == []
    assert [kind["verdict"] for kind in shown["uses"]["kinds"]] == ["nothing", "nothing"]
