"""Write gallery.md and the pictures of its reports: releases of public tables, and answers with their true values.

The answers are kept in gallery/results.json, and the page is written from that file.
The tables are read from the folder in the environment variable CERTSYNTH_DATA, and the pictures need Chromium. Releases
are kept in build/gallery; remove a folder there to make its release again:

    CERTSYNTH_DATA=… python docs/make_gallery.py
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from certsynth import Release, Schema, release

HERE = Path(__file__).parent
PAGE, SCHEMAS, IMAGES = HERE / "gallery.md", HERE / "gallery", HERE / "images"
RELEASES = HERE.parent / "build" / "gallery"
RESULTS = SCHEMAS / "results.json"
EPSILON = 1

WINDOW = (1000, 680)
"""Width and height of the browser window, in pixels: about the first screen of a laptop."""
COLOURS = 64
"""Colours of a picture: enough for text and charts, and a third of the bytes of a full one."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query, what it means, and how to compute its true value from the rows."""

    meaning: str
    query: str
    truth: Callable[[pd.DataFrame], Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """A public table with its questions, and what its release teaches."""

    key: str
    title: str
    about: str
    file: str
    read: Callable[[pd.DataFrame], dict[str, Any]]
    """Columns as the schema names them, from those of the file."""
    questions: tuple[Question, ...]
    learnt: str


MARITAL_STATUS = (
    "married",
    "divorced",
    "never married",
    "separated",
    "widowed",
    "spouse absent",
    "spouse in the forces",
)

ADULT = Entry(
    "adult",
    "Adult",
    "A sample of the US census of 1994: the table on which synthesisers are most often compared.",
    "adult.parquet",
    lambda rows: {
        "age": rows["age"] + 16,
        "schooling": rows["education-num"] + 1,
        "marital status": rows["marital-status"].map(dict(enumerate(MARITAL_STATUS))),
        "sex": rows["sex"].map({0: "female", 1: "male"}),
        "hours per week": rows["hours-per-week"] + 1,
        "income above 50K": rows["income>50K"] == 1,
    },
    (
        Question("mean age", "mean(age)", lambda t: t["age"].mean()),
        Question(
            "income above 50K",
            "fraction(`income above 50K`)",
            lambda t: t["income above 50K"].mean(),
        ),
        Question(
            "the same, among women",
            "fraction(`income above 50K` | sex = 'female')",
            lambda t: t.loc[t["sex"] == "female", "income above 50K"].mean(),
        ),
        Question(
            "the same, among men",
            "fraction(`income above 50K` | sex = 'male')",
            lambda t: t.loc[t["sex"] == "male", "income above 50K"].mean(),
        ),
        Question(
            "mean age, by income: the difference",
            "mean(age | `income above 50K`) - mean(age | not `income above 50K`)",
            lambda t: t.loc[t["income above 50K"], "age"].mean() - t.loc[~t["income above 50K"], "age"].mean(),
        ),
    ),
    "The gap between women and men is certain: the two intervals are far apart. Both are wider than the interval "
    "of all people, because the error of a group is the error of a share divided by the size of the group. So the "
    "difference of two groups, in the last line, is known only roughly, although the synthetic rows come close.",
)

CALIFORNIA = Entry(
    "california",
    "California",
    "The American Community Survey of 2018: people with work in California, a 40 % sample.",
    "acs_income_ca2018.parquet",
    lambda rows: {
        "age": rows["AGEP"],
        "schooling": rows["SCHL"],
        "hours per week": rows["WKHP"],
        "sex": rows["SEX"].map({1: "male", 2: "female"}),
        "marital status": rows["MAR"].map(
            dict(enumerate(("married", "widowed", "divorced", "separated", "never married"), start=1))
        ),
        "employer": rows["COW"].map(dict(enumerate(_labels("california", "employer"), start=1))),
        "income above 50K": rows["PINCP_gt50k"] == 1,
    },
    (
        Question("over 65", "fraction(age > 65)", lambda t: (t["age"] > 65).mean()),
        Question(
            "a degree and full-time work",
            "fraction(schooling >= 21 and `hours per week` >= 40)",
            lambda t: ((t["schooling"] >= 21) & (t["hours per week"] >= 40)).mean(),
        ),
        Question(
            "mean hours of people with a degree",
            "mean(`hours per week` | schooling >= 21)",
            lambda t: t.loc[t["schooling"] >= 21, "hours per week"].mean(),
        ),
        Question("median age", "median(age)", lambda t: t["age"].median()),
        Question(
            "income above 50K, at the state",
            "fraction(`income above 50K` | employer = 'state government')",
            lambda t: t.loc[t["employer"] == "state government", "income above 50K"].mean(),
        ),
    ),
    "Shares of one or two columns, means of large groups and medians are what such a release is good for. The "
    "last line shows its limit: few people work for the state, and the interval of so small a group is too wide "
    "to be of use.",
)

DIAMONDS = Entry(
    "diamonds",
    "Diamonds",
    "Prices and properties of diamonds. Carat and price depend on each other almost like functions.",
    "diamonds.parquet",
    lambda rows: {name: rows[name] for name in _columns("diamonds")},
    (
        Question("mean price", "mean(price)", lambda t: t["price"].mean()),
        Question("mean weight, in carat", "mean(carat)", lambda t: t["carat"].mean()),
        # Half a step below the value: on the value itself, rounding leaves it open on which side its rows are.
        Question("one carat or more", "fraction(carat >= 0.995)", lambda t: (t["carat"] >= 1).mean()),
        Question("ideal cut", "fraction(cut = 'Ideal')", lambda t: (t["cut"] == "Ideal").mean()),
        Question("correlation of weight and price", "correlation(carat, price)", lambda t: t["carat"].corr(t["price"])),
        Question(
            "mean price from one carat on",
            "mean(price | carat >= 0.995)",
            lambda t: t.loc[t["carat"] >= 1, "price"].mean(),
        ),
    ),
    "Say which thresholds matter. Weights come in hundredths of a carat, and people ask for one carat or more; with "
    "`step = 0.01` and `bands = [0.5, 1, 2]` in the schema, that share was certified within ± 0.8 points, and without "
    "them within ± 1.8 (one release each). Bounds matter, too: weights are declared up to 5.01 carat, but most "
    "diamonds weigh less than one. Errors are relative to the range, so the correlation has a wide interval although "
    "the synthetic rows show it.",
)

ELECTRICITY = Entry(
    "electricity",
    "Electricity",
    "Prices and demand in New South Wales, every half hour for two and a half years, scaled to 0 to 1.",
    "electricity.parquet",
    lambda rows: {
        "half hour": (rows["period"] * 47).round().astype("int64"),
        "price": rows["nswprice"],
        "demand": rows["nswdemand"],
        "demand in Victoria": rows["vicdemand"],
        "transfer": rows["transfer"],
        "price rises": rows["class"] == 1,
    },
    (
        Question("the price rises", "fraction(`price rises`)", lambda t: t["price rises"].mean()),
        Question("mean demand", "mean(demand)", lambda t: t["demand"].mean()),
        Question(
            "mean demand from 7:00 to 22:00",
            "mean(demand | 14 <= `half hour` < 44)",
            lambda t: t.loc[t["half hour"].between(14, 43), "demand"].mean(),
        ),
        Question(
            "mean demand from 0:00 to 7:00",
            "mean(demand | `half hour` < 14)",
            lambda t: t.loc[t["half hour"] < 14, "demand"].mean(),
        ),
        Question(
            "mean demand from 17:00 to 19:30",
            "mean(demand | 34 <= `half hour` < 39)",
            lambda t: t.loc[t["half hour"].between(34, 38), "demand"].mean(),
        ),
        Question(
            "the price rises, at high demand",
            "fraction(`price rises` | demand >= 0.5)",
            lambda t: t.loc[t["demand"] >= 0.5, "price rises"].mean(),
        ),
        Question("mean price", "mean(price)", lambda t: t["price"].mean()),
    ),
    "Demand by day is certainly higher than by night. For the peak in the early evening, a tenth of the rows, the "
    "interval is too wide to say how high it is: ask about larger groups. Prices lie in a small part of their "
    "range, so an error that is small for the range is not small for the price. Here [`scale = "
    '"log"`](how-to/kinds.md#skewed-numbers) would help.',
)

FIRE = Entry(
    "fire",
    "Fire",
    "Units that a fire department sent to calls; labels are codes. By far the longest table here.",
    "fire.parquet",
    lambda rows: {
        "call type": rows["Call Type"].astype(str),
        "unit type": rows["Unit Type"].astype(str),
        "battalion": rows["Battalion"].astype(str),
        "station": rows["Station Area"].astype(str),
        "life support": rows["ALS Unit"] == 1,
        "final priority": rows["Final Priority"].astype(str),
        "received": rows["Received DtTm"],
        "units sent before": rows["Unit sequence in call dispatch"],
    },
    (
        Question("advanced life support", "fraction(`life support`)", lambda t: t["life support"].mean()),
        Question("calls of type 0", "fraction(`call type` = '0')", lambda t: (t["call type"] == "0").mean()),
        Question(
            "calls of type 0 in battalion 4",
            "fraction(`call type` = '0' and battalion = '4')",
            lambda t: ((t["call type"] == "0") & (t["battalion"] == "4")).mean(),
        ),
        Question(
            "advanced life support, units of type 2",
            "fraction(`life support` | `unit type` = '2')",
            lambda t: t.loc[t["unit type"] == "2", "life support"].mean(),
        ),
        Question(
            "first unit of a call", "fraction(`units sent before` = 0)", lambda t: (t["units sent before"] == 0).mean()
        ),
    ),
    "Rows buy accuracy. The table is six times as long as Adult, and at the same ε shares of all rows are known within "
    "less than a percentage point, also where two columns of dozens of labels meet.",
)

ENTRIES = (ADULT, CALIFORNIA, DIAMONDS, ELECTRICITY, FIRE)

HEAD = """# Gallery

Five public tables, and a release of each at ε = 1 with all defaults. Since the tables are public, this page may show
what a data owner must keep private: the true values. Every interval below was computed from the release alone, and all
intervals of a release hold at once with confidence 95 %; {held}. Some of the questions, and the schema of Diamonds,
were improved after a look at an earlier release. That is free only with a public table: each release of private rows
spends budget.

Click a picture to see the first screen of the report in full size.
"""

TAIL = """
The schemas are in `docs/gallery`, and `python docs/make_gallery.py` makes the releases, the pictures and this
page again from the public tables. Noise is fresh each time, so figures change a little.
"""


def _schema(key: str) -> Schema:
    return Schema.load(SCHEMAS / f"{key}.toml")


def _columns(key: str) -> tuple[str, ...]:
    return _schema(key).names


def _labels(key: str, column: str) -> tuple[str, ...]:
    return tuple(next(each.values for each in _schema(key) if each.name == column))  # type: ignore[attr-defined]


def table_of(entry: Entry) -> pd.DataFrame:
    """The rows under the names of the schema."""
    rows = pd.read_parquet(Path(os.environ["CERTSYNTH_DATA"]) / entry.file)
    return pd.DataFrame(entry.read(rows))


def release_of(entry: Entry, table: pd.DataFrame) -> Release:
    """The release of a table, made once."""
    folder = RELEASES / entry.key
    if not folder.exists():
        RELEASES.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "table.parquet"
            table.to_parquet(file)
            release(file, _schema(entry.key), epsilon=EPSILON, out=folder)
    return Release.load(folder)


def picture(page: Path, target: Path) -> None:
    """The first screen of a page, with few colours."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("The gallery needs Chromium for its pictures.")
    with tempfile.TemporaryDirectory() as place:
        shot = Path(place) / "shot.png"
        size = ",".join(map(str, WINDOW))
        flags = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={place}/profile"]
        command = [browser, *flags, f"--window-size={size}", f"--screenshot={shot}", page.resolve().as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        out = io.BytesIO()
        Image.open(shot).convert("RGB").quantize(COLOURS).save(out, "PNG", optimize=True)
    target.write_bytes(out.getvalue())


def shown(value: float, *, share: bool, rounding: str = ROUND_HALF_EVEN) -> str:
    """A value with three significant digits, shares in percent; the ends of intervals are rounded outward.

    >>> shown(0.06123, share=True, rounding=ROUND_CEILING), shown(3932.8, share=False), shown(38.58, share=False)
    ('6.13 %', '3,933', '38.6')
    """
    exact = Decimal(repr(value)) * (100 if share else 1)
    digits = 0 if not exact else min(0, exact.adjusted() - 2)
    return f"{exact.quantize(Decimal(1).scaleb(digits), rounding):,f}" + (" %" if share else "")


def answers_of(entry: Entry, made: Release, table: pd.DataFrame) -> dict[str, Any]:
    """What the page says of a table: its size, and each answer with its true value."""
    answers = {}
    for question in entry.questions:
        found = made.answer(question.query)
        values = {"synthetic": found.estimate, "low": found.low, "high": found.high}
        answers[question.query] = values | {"true": float(question.truth(table))}
    return {"rows": len(table), "columns": len(made.schema.names), "answers": answers}


def section(entry: Entry, found: dict[str, Any]) -> str:
    image = f"images/gallery-{entry.key}.png"
    lines = [
        f"## {entry.title}",
        _wrapped(f"{entry.about} {found['rows']:,} rows, {found['columns']} columns."),
        f"[![The first screen of the report on {entry.title}]({image})]({image})",
        "| statistic | synthetic | certified: from | to | true |\n|---|---|---|---|---|",
    ]
    lines[-1] += "".join(row(question, found["answers"][question.query]) for question in entry.questions)
    return "\n\n".join([*lines, _wrapped(f"**What was learnt.** {entry.learnt}")])


def _wrapped(words: str) -> str:
    return textwrap.fill(words, 120, break_on_hyphens=False, break_long_words=False)


def row(question: Question, found: dict[str, float]) -> str:
    share = question.query.startswith("fraction")
    cells = (
        question.meaning,
        shown(found["synthetic"], share=share),
        shown(found["low"], share=share, rounding=ROUND_FLOOR),
        shown(found["high"], share=share, rounding=ROUND_CEILING),
        shown(found["true"], share=share),
    )
    return "\n| " + " | ".join(cells) + " |"


def held(parts: list[str]) -> str:
    """How many of the true values lie in their intervals, read from the tables."""
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", "\n".join(parts), re.MULTILINE)
    cells = [[cell.replace(",", "").removesuffix(" %") for cell in row] for row in rows if row[-1] != "true"]
    inside = sum(float(low) <= float(true) <= float(high) for low, high, true in cells)
    return f"here {inside} of {len(cells)} hold the true value"


def page(found: dict[str, Any]) -> str:
    parts = [section(entry, found[entry.key]) for entry in ENTRIES]
    head = "\n\n".join(_wrapped(paragraph) for paragraph in HEAD.format(held=held(parts)).strip().split("\n\n"))
    return "\n\n".join([head, *parts, TAIL.strip()]) + "\n"


def results() -> dict[str, Any]:
    """The answers that the page shows, as they were when the releases were made."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def write() -> None:
    found = {}
    for entry in ENTRIES:
        table = table_of(entry)
        made = release_of(entry, table)
        found[entry.key] = answers_of(entry, made, table)
        picture(RELEASES / entry.key / "report.html", IMAGES / f"gallery-{entry.key}.png")
    RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    write()
