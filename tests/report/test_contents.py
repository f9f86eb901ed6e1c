"""The first rows, the files and the citation of a release, as the report shows them."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_specimens import EVERY_KIND, document, record, table, view, wide

from certsynth.artefact.table import write_table
from certsynth.domain import Category, Ordered, Schema
from certsynth.domain.naming import Naming, Publication
from certsynth.report.contents import FILES, SAMPLE_COLUMNS, SAMPLE_ROWS, citation, publication_text


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


def test_lists_all_files_of_a_folder_with_a_rough_size_of_the_rows(tmp_path: Path) -> None:
    listed = contents()["files"]
    assert [file["name"] for file in listed] == list(FILES)
    (said,) = [file["what"] for file in listed if file["name"] == "synthetic.csv"]
    parquet, csv = tmp_path / "rows.parquet", tmp_path / "rows.csv"
    write_table(table(EVERY_KIND), parquet=parquet, csv=csv, schema=EVERY_KIND)
    (thousands,) = re.findall(r"\(about ([\d.]+) kB\)", said)
    assert abs(1_000 * float(thousands) / csv.stat().st_size - 1) < 0.1


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
