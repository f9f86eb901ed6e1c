"""Labels of a schema, read and checked: safe texts, trees of codes and matrices of distances."""

from __future__ import annotations

import csv
import io
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from certsynth.base.arrays import Ints
from certsynth.base.files import FileTooLarge, read_small_file
from certsynth.domain.category import PATH_SEPARATOR, Category
from certsynth.errors import SchemaError

MAX_VALUES = 100_000
"""Most values of a column: more than can be measured."""

MAX_TEXT_CHARACTERS = 1_000
"""Most characters of a name or label."""

MAX_TREE_CODES = 5_000
"""Most codes of a tree, listed or above a listed one: the distances of all pairs are kept in memory."""

MAX_MATRIX_LABELS = 500
"""Most labels of a matrix: the triangle inequality is checked for all triples."""

MAX_TREE_DEPTH = 50
"""Most codes of a path."""

MAX_DISTANCE_DIGITS, EXACT_DIGITS = 17, 15
"""Most decimal digits of a distance (a computed double has 17), and those up to which it counts as exact."""

KEPT_DIGITS = 10
"""Digits, relative to the largest distance, to which distances that are not exact are rounded up."""

MAX_BYTES = 8 * 2**20

_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
MAX_DISTANCE_CHARACTERS = 40
"""Most characters of a distance as text."""


def labelled_column(entry: Mapping[str, Any], where: str, folder: Path | None, column: Category) -> Category:
    """The column with its labels, paths and distances, as read from its entry in the schema."""
    other = check_flag(entry, "other", where)
    paths: tuple[tuple[str, ...], ...] = ()
    distances: tuple[tuple[Fraction, ...], ...] = ()
    if column.kind == "metric" and "matrix" in entry:
        values, distances = _read_matrix_file(entry, where, folder)
    else:
        values = check_values(entry, where)
        if column.kind == "tree":
            values, paths = _read_paths(values, where)
        elif column.kind == "metric":
            distances = _read_distances(entry.get("distances"), where)
    if column.kind == "metric":
        distances = _restore_metric(distances)
        check_metric(values, distances, where)
    if other and Category.OTHER_LABEL in values:
        raise SchemaError(f'{where}: with other = true the label "other" is taken; rename it in the values.')
    return replace(column, values=values, other=other, paths=paths, distances=distances)


def tree_column(name: str, paths: Sequence[str], *, missing: bool = False, other: bool = False) -> Category:
    """A column of codes in a tree."""
    entry = {"values": list(paths), "other": other}
    return labelled_column(entry, f"column {name!r}", None, Category(name=name, missing=missing, kind="tree"))


def _read_paths(values: tuple[str, ...], where: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Labels and paths of a tree. A row holds the last code of a path, or the whole path if last codes repeat."""
    if len(values) > MAX_TREE_CODES:
        raise SchemaError(
            f"{where}: {len(values)} codes; a tree may have {MAX_TREE_CODES}. Leave out the lowest level."
        )
    paths = tuple(tuple(value.split(PATH_SEPARATOR)) for value in values)
    for value, path in zip(values, paths, strict=True):
        if not all(path):
            raise SchemaError(f'{where}: the path {value!r} has an empty part; write "above{PATH_SEPARATOR}code".')
        if len(path) > MAX_TREE_DEPTH:
            raise SchemaError(f"{where}: the path {value!r:.60} is more than {MAX_TREE_DEPTH} codes long; shorten it.")
    nodes = len(all_codes(paths))
    if nodes > MAX_TREE_CODES:
        raise SchemaError(
            f"{where}: {nodes} codes with those above; a tree may have {MAX_TREE_CODES}. Leave out the lowest level."
        )
    last = tuple(path[-1] for path in paths)
    for code in last:
        check_text(code, f"{where}: code")
    return (last if len(set(last)) == len(last) else values), paths


def all_codes(paths: Sequence[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """All codes of a tree, as paths: the listed ones and those above them."""
    return {path[:depth] for path in paths for depth in range(1, len(path) + 1)}


def paths_of_codes(rows: Sequence[Sequence[str]], where: str) -> tuple[str, ...]:
    """Paths of a tree from rows (code, parent); the parent of a root is empty or the code itself. A header is skipped.

    >>> paths_of_codes([["code", "parent"], ["a", ""], ["b", "a"]], "codes")
    ('a', 'a/b')
    """
    if any(len(row) != 2 for row in rows):
        raise SchemaError(f"{where}: a list of codes has two columns, the code and its parent (empty at the top).")
    pairs = [(code.strip(), parent.strip()) for code, parent in rows]
    codes = {code for code, _ in pairs}
    if pairs and pairs[0][1] not in {"", pairs[0][0]} | codes:
        pairs = pairs[1:]
    parents: dict[str, str] = {}
    for code, parent in pairs:
        if PATH_SEPARATOR in code or not code:
            raise SchemaError(f"{where}: the code {code!r:.60} is empty or holds a {PATH_SEPARATOR}; rename it.")
        if code in parents:
            raise SchemaError(f"{where}: the code {code!r:.60} is listed twice; a code has one parent.")
        parents[code] = "" if parent == code else parent
    paths = []
    for code in parents:
        path, above = [code], parents[code]
        while above:
            if above not in parents:
                raise SchemaError(f"{where}: the parent {above!r:.60} of {path[0]!r:.60} is not listed; add its line.")
            if above in path:
                raise SchemaError(
                    f"{where}: the code {code!r:.60} has no top: its parents go round in a circle; correct one of them."
                )
            if len(path) == MAX_TREE_DEPTH:
                raise SchemaError(
                    f"{where}: more than {MAX_TREE_DEPTH - 1} codes are above {code!r:.60}; leave out some of them."
                )
            path.insert(0, above)
            above = parents[above]
        paths.append(PATH_SEPARATOR.join(path))
    if not paths:
        raise SchemaError(f"{where}: no code is listed; write a line for each, the code and its parent.")
    return tuple(paths)


def _read_distances(rows: Any, where: str) -> tuple[tuple[Fraction, ...], ...]:
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise SchemaError(
            f'{where}: kind metric needs matrix = "file.csv", or values and distances = [[0, 1], [1, 0]].'
        )
    if len(rows) > MAX_MATRIX_LABELS:
        raise SchemaError(f"{where}: distances of {len(rows)} labels; at most {MAX_MATRIX_LABELS} are supported.")
    if any(len(row) != len(rows) for row in rows):
        raise SchemaError(f"{where}: distances need as many rows as columns, one for each label.")
    return tuple(tuple(_read_distance(value, where) for value in row) for row in rows)


def _read_distance(value: Any, where: str) -> Fraction:
    rule = f"{where}: distances are numbers from 0 to 10^12 with at most {MAX_DISTANCE_DIGITS} digits, like 0.5"
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise SchemaError(f"{rule}.")
    if isinstance(value, int) and not 0 <= value <= 10**12:  # one of very many digits has no text
        raise SchemaError(f"{rule}.")
    text = str(value).strip()
    if len(text) > MAX_DISTANCE_CHARACTERS or not _DECIMAL.fullmatch(text):
        raise SchemaError(f"{rule}; got {text!r:.40}.")
    distance = Decimal(text)
    if not 0 <= distance <= 10**12 or len(distance.as_tuple().digits) > MAX_DISTANCE_DIGITS:
        raise SchemaError(f"{rule}; got {text!r:.40}.")
    if distance and distance.adjusted() < -12:
        raise SchemaError(f"{rule}; got {text!r:.40}, which is too small.")
    return Fraction(distance)


def _restore_metric(distances: tuple[tuple[Fraction, ...], ...]) -> tuple[tuple[Fraction, ...], ...]:
    """Distances that make a metric even if computed ones were rounded; exact ones are returned unchanged.

    Distances are rounded up to KEPT_DIGITS of the largest and raised by one unit in the last digit, which adds one unit
    to one side of a triangle inequality and two to the other. Larger distances never lower a certificate.
    """
    if all(Fraction(f"{float(d):.{EXACT_DIGITS}g}") == d for row in distances for d in row):
        return distances
    largest = max(max(row) for row in distances)
    unit = Fraction(10) ** (math.floor(math.log10(largest)) + 1 - KEPT_DIGITS)
    raised = [[d and (math.ceil(d / unit) + 1) * unit for d in row] for row in distances]
    return tuple(
        tuple(max(d, raised[j][i]) if abs(d - raised[j][i]) <= unit else d for j, d in enumerate(row))
        for i, row in enumerate(raised)
    )


def _read_matrix_file(
    entry: Mapping[str, Any], where: str, folder: Path | None
) -> tuple[tuple[str, ...], tuple[tuple[Fraction, ...], ...]]:
    """Labels and distances from a CSV file: a header of an empty field and the labels, then a row for each label.

    Spaces around labels are removed.
    """
    name = check_text(entry["matrix"], f"{where}: matrix")
    if "distances" in entry or "values" in entry:
        raise SchemaError(f"{where}: the matrix file has labels and distances; leave values and distances out.")
    rows = read_code_file(file_next_to_schema(name, folder, f"{where}: matrix"), f"{where}: matrix")
    if len(rows) - 1 > MAX_MATRIX_LABELS:
        raise SchemaError(f"{where}: a matrix of {len(rows) - 1} labels; at most {MAX_MATRIX_LABELS} are supported.")
    header, body = ([label.strip() for label in rows[0][1:]], rows[1:]) if rows else ([], [])
    if not header or [row[0].strip() for row in body] != header or any(len(row) != len(header) + 1 for row in body):
        raise SchemaError(
            f"{where}: the matrix file must have an empty field and all labels in its first line, and after it a line "
            "for each label, in the same order: the label and its distances."
        )
    values = check_values({"values": header}, where)
    return values, tuple(tuple(_read_distance(value, where) for value in row[1:]) for row in body)


def file_next_to_schema(name: str, folder: Path | None, where: str) -> Path:
    """A file next to the schema. Other places are refused: a schema may come from anybody."""
    if folder is None:
        raise SchemaError(f"{where}: a schema without a file of its own cannot name another; write the values into it.")
    path = folder / name
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a cycle of symbolic links
        inside = False
    if Path(name).is_absolute() or ".." in Path(name).parts or not inside:
        raise SchemaError(f"{where}: {name!r} must be a file in the schema's folder, or in a folder below it.")
    return path


def read_code_file(path: Path, where: str) -> list[list[str]]:
    """Rows of a small CSV file."""
    name = path.name
    try:
        text = read_small_file(path, max_bytes=MAX_BYTES).decode("utf-8-sig")
        rows = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
        return [row for row in rows if row]
    except FileTooLarge:
        raise SchemaError(f"{where}: {name!r} is larger than {MAX_BYTES >> 20} MB; list fewer codes.") from None
    except OSError as error:
        raise SchemaError(f"{where}: {name!r}: {error.strerror or 'cannot be read'}. Check the name.") from None
    except (ValueError, csv.Error):
        raise SchemaError(f"{where}: {name!r} is not a CSV file in UTF-8; save it as one.") from None


def check_metric(values: Sequence[str], distances: Sequence[Sequence[Fraction]], where: str) -> None:
    """Refuse distances that are not a metric, naming labels that show it."""
    count = len(values)
    if len(distances) != count or any(len(row) != count for row in distances):
        raise SchemaError(f"{where}: {count} labels need a matrix of {count} × {count} distances.")
    for i, row in enumerate(distances):
        for j, distance in enumerate(row):
            if i == j and distance:
                raise SchemaError(
                    f"{where}: the distance of {values[i]!r} to itself is {plain_number(distance)}, not 0."
                )
            if i != j and not distance:
                raise SchemaError(f"{where}: {values[i]!r} and {values[j]!r} are at distance 0; make them one label.")
            if distance != distances[j][i]:
                raise SchemaError(
                    f"{where}: from {values[i]!r} to {values[j]!r} it is {plain_number(distance)}, and back "
                    f"{plain_number(distances[j][i])}; a metric has one distance for both."
                )
    triple = _broken_triangle(distances)
    if triple is not None:
        a, b, c = triple
        raise SchemaError(
            f"{where}: from {values[a]!r} to {values[c]!r} it is {plain_number(distances[a][c])}, but over "
            f"{values[b]!r} only {plain_number(distances[a][b])} + {plain_number(distances[b][c])}: not a metric. "
            "Lower the first to their sum, or raise the others."
        )


def _broken_triangle(distances: Sequence[Sequence[Fraction]]) -> tuple[int, int, int] | None:
    """Three labels (a, b, c) with d(a, c) > d(a, b) + d(b, c), compared exactly."""
    limbs = _limbs(distances)
    for b in range(len(distances)):
        excess = np.zeros((len(distances), len(distances)), dtype=np.int64)
        for limb in limbs:
            # Lower limbs change the excess by less than 2 of these units, so beyond 3 only the sign counts.
            excess = np.clip(excess, -3, 3) * _LIMB_BASE + limb - limb[:, b, None] - limb[None, b, :]
        if (excess > 0).any():
            a, c = np.argwhere(excess > 0)[0]
            return int(a), b, int(c)
    return None


_LIMB_BASE = 10**15


def _limbs(distances: Sequence[Sequence[Fraction]]) -> list[Ints]:
    """Distances as multiples of a common unit, in base `_LIMB_BASE`, most significant limb first."""
    unit = math.lcm(*{distance.denominator for row in distances for distance in row})
    rest = [[distance.numerator * (unit // distance.denominator) for distance in row] for row in distances]
    limbs: list[Ints] = []
    while not limbs or any(map(any, rest)):
        limbs.append(np.array([[number % _LIMB_BASE for number in row] for row in rest], dtype=np.int64))
        rest = [[number // _LIMB_BASE for number in row] for row in rest]
    return limbs[::-1]


def plain_number(number: Fraction) -> int | float:
    return number.numerator if number.denominator == 1 else float(number)


def check_values(entry: Mapping[str, Any], where: str) -> tuple[str, ...]:
    values = entry.get("values")
    if not isinstance(values, list) or not values:
        raise SchemaError(f'{where}: needs values = ["…", …], the labels that the code book lists.')
    if len(values) > MAX_VALUES:
        raise SchemaError(f"{where}: {len(values)} values; at most {MAX_VALUES} are supported.")
    for value in values:
        if not isinstance(value, str):
            raise SchemaError(f'{where}: values are texts; write "1" rather than 1.')
        check_text(value, f"{where}: value", empty=True)
    twice = next((value for value, times in Counter(values).items() if times > 1), None)
    if twice is not None:
        raise SchemaError(f"{where}: the value {twice!r} is listed twice; remove one.")
    return tuple(values)


def check_flag(entry: Mapping[str, Any], key: str, where: str) -> bool:
    flag = entry.get(key, False)
    if not isinstance(flag, bool):
        raise SchemaError(f"{where}: {key} is true or false.")
    return flag


def check_text(value: Any, where: str, *, empty: bool = False) -> str:
    """Return a name or label if it is safe in a CSV file, on a web page and in a terminal; refuse it otherwise."""
    if not isinstance(value, str) or not (value or empty):
        raise SchemaError(f"{where} must be a text.")
    if len(value) > MAX_TEXT_CHARACTERS:
        raise SchemaError(f"{where} is longer than {MAX_TEXT_CHARACTERS} characters; shorten it.")
    if not is_printable(value):
        raise SchemaError(f"{where} holds a control character; remove it.")
    if value.startswith(("=", "@", "+", "-")) and not _is_number(value):
        raise SchemaError(f"{where} {value!r} would run as a formula in a spreadsheet; let it start with a letter.")
    return value


def is_printable(text: str) -> bool:
    """Whether a text has no control characters (Cc) and no surrogates (Cs), which UTF-8 lacks."""
    return not any(unicodedata.category(c) in ("Cc", "Cs") for c in text)


def _is_number(text: str) -> bool:
    return text[0] in "+-" and text[1:].replace(".", "", 1).isdecimal()
