"""Excel workbooks, written by hand: each value as the cell that Excel would keep for it."""

from __future__ import annotations

import datetime
import math
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from certsynth.domain.cleaning import as_labels

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"

FORMATS = ("General", "yyyy\\-mm\\-dd", 'd. mmm "of" yyyy hh:mm:ss', "h:mm:ss", "[h]:mm", '0.00 "days"', "[$-409]0%")
"""Own number formats; style i has the i-th of them, and style 9 is the built-in date."""
GENERAL, DAY, TIME_OF_DAY = 0, 1, 3
BUILT_IN_DAY = len(FORMATS)
FIRST = datetime.datetime(1899, 12, 30)


def letters(column: int) -> str:
    """A, B, …, Z, AA, …"""
    text = ""
    while column >= 0:
        text, column = chr(ord("A") + column % 26) + text, column // 26 - 1
    return text


def plain(text: str) -> str:
    """A text in XML, with what XML does not have as Excel escapes it."""
    text = re.sub(r"_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", text)
    return escape(re.sub(r"[\x00-\x08\x0b-\x1f]", lambda found: f"_x{ord(found[0]):04X}_", text))


def cell(place: str, value: Any, shared: list[str] | None = None) -> str:
    """A value as a cell: numbers that a float holds, truths, days and times as such, and all else as text."""
    if isinstance(value, (bool, np.bool_)):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, datetime.datetime) and value > FIRST + datetime.timedelta(days=62):
        return f'<c r="{place}" s="2"><v>{(value - FIRST) / datetime.timedelta(days=1)!r}</v></c>'
    if isinstance(value, datetime.date) and value.year > 1900:
        return f'<c r="{place}" s="{DAY}"><v>{(value - FIRST.date()).days}</v></c>'
    if isinstance(value, datetime.time):
        seconds = datetime.datetime.combine(FIRST, value) - FIRST
        return f'<c r="{place}" s="{TIME_OF_DAY}"><v>{seconds / datetime.timedelta(days=1)!r}</v></c>'
    (text,) = as_labels(np.fromiter([value], object, 1))
    if text is None:
        return ""
    number = isinstance(value, (int, float, Decimal, np.floating)) and math.isfinite(value)
    if number and (isinstance(value, (float, np.floating)) or abs(value) < 2**53):
        return f'<c r="{place}"><v>{float(value)!r}</v></c>'
    if shared is None:
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{plain(text)}</t></is></c>'
    shared.append(text)
    return f'<c r="{place}" t="s"><v>{len(shared) - 1}</v></c>'


def sheet_of(rows: Iterable[Sequence[Any]], shared: list[str] | None = None) -> str:
    """The XML of a sheet."""
    lines = []
    for number, row in enumerate(rows, 1):
        cells = "".join(cell(f"{letters(i)}{number}", value, shared) for i, value in enumerate(row))
        lines.append(f'<row r="{number}">{cells}</row>')
    return f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(lines)}</sheetData></worksheet>'


def write_workbook(
    path: Path, sheets: Mapping[str, str], shared: Sequence[str] = (), *, about: str = "", hidden: Sequence[str] = ()
) -> Path:
    """Write sheets of XML by their names; `about` are attributes of the workbook."""
    states = {name: "hidden" if name in hidden else "visible" for name in sheets}
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{i}" r:id="r{i}" state="{states[name]}"/>'
        for i, name in enumerate(sheets, 1)
    )
    related = "".join(
        f'<Relationship Id="r{i}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in range(len(sheets), 0, -1)
    )
    formats = "".join(f'<numFmt numFmtId="{170 + i}" formatCode={quoteattr(f)}/>' for i, f in enumerate(FORMATS))
    styles = "".join(f'<xf numFmtId="{170 + i}"/>' for i in range(len(FORMATS))) + '<xf numFmtId="14"/>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><workbookPr {about}/><sheets>{listed}</sheets></workbook>',
        )
        archive.writestr("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{PACKAGE}">{related}</Relationships>')
        archive.writestr(
            "xl/styles.xml",
            f'<styleSheet xmlns="{MAIN}"><numFmts>{formats}</numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
            f"<cellXfs>{styles}</cellXfs></styleSheet>",
        )
        texts = "".join(f'<si><t xml:space="preserve">{plain(text)}</t></si>' for text in shared)
        if shared:
            archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{MAIN}">{texts}</sst>')
        for i, xml in enumerate(sheets.values(), 1):
            archive.writestr(f"xl/worksheets/sheet{i}.xml", xml)
    return path


def workbook_of(path: Path, table: Mapping[str, Sequence[Any]], *, inline: bool = False) -> Path:
    """A table as the first sheet of a workbook, with texts of their own or shared."""
    shared: list[str] = []
    rows = [list(table), *zip(*table.values(), strict=True)]
    xml = sheet_of(rows, None if inline else shared)
    return write_workbook(path, {"table": xml, "notes": sheet_of([["nothing"]])}, shared)
