"""certsynth answer: error bars from a release folder alone."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "answers.md"


def test_one_answer_is_a_sentence_or_an_object(folder, run):
    done = run("answer", "release", "mean(age)")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("mean(age) = ")
    assert " with confidence 95 %.\nHow: " in done.out
    found = run("answer", "release", "mean(age)", "--json").json
    assert set(found) == {"query", "estimate", "low", "high", "confidence", "unit", "how", "bound"}
    assert found["query"] == "mean(age)"
    assert found["low"] <= found["estimate"] <= found["high"]


def test_several_answers_are_a_table_or_a_list(folder, run):
    queries = ("mean(age)", "fraction(employed and age > 40)", "median(age)")
    lines = run("answer", "release", *queries).out.splitlines()
    assert lines[0].split() == ["query", "estimate", "low", "high"]
    assert [line.strip().split("  ")[0] for line in lines[1:4]] == list(queries)
    assert lines[-1].startswith("With confidence 95 %, every true value lies between low and high")
    found = run("answer", "release", *queries, "--json").json
    assert [each["query"] for each in found["answers"]] == list(queries)


@pytest.mark.parametrize(
    ("query", "line"),
    [
        (
            "mean(agee)",
            "at character 6: no column is called 'agee'; did you mean 'age'? There are 'age', 'region', 'employed'.",
        ),
        ("mean(region)", "at character 6: 'region' has labels; ask for fraction(region = …)."),
        (
            "fraction(age > 1 and employed and region = 'hills')",
            "'age', 'region', 'employed' are 3 columns, and this release certifies statistics of at most 2; ask about "
            "fewer at once, or release with a larger --sparsity.",
        ),
        (
            "mean(age | age > 100)",
            "no synthetic row satisfies the condition, so nothing can be said about the rows that do; ask for "
            "fraction(…) of it to see how rare they may be.",
        ),
    ],
)
def test_a_mistake_is_one_line(folder, run, query, line):
    assert run("answer", "release", query).error == f"{query}: {line}"
    assert run("answer", "release", "mean(age)", query, "--json").error == f"{query}: {line}"


def test_a_query_must_be_there(folder, run):
    assert run("answer", "release").error.startswith("missing argument 'QUERY…'")
    assert run("answer", "elsewhere", "mean(age)").error.startswith("elsewhere is not a release folder")


@pytest.mark.parametrize("bad", [-1, 2, "x", None, float("inf")])
def test_a_certificate_that_makes_no_sense_is_refused(folder, run, bad):
    path = folder / "certificate.json"
    document = json.loads(path.read_text())
    document["certificate"]["subsets"][0]["bound"] = bad
    path.write_text(json.dumps(document))
    assert run("answer", "release", "mean(age)").error


def test_what_the_page_tells_people_to_type_works(folder, run, capsys):
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    lines = [line for kind, text in blocks if kind == "sh" for line in text.splitlines()]
    assert len(lines) == 2
    for line in lines:
        assert run(*shlex.split(line)[1:]).code == 0
    known: dict[str, object] = {}
    for kind, text in blocks:
        if kind == "python":
            exec(text, known)  # our own page
    assert capsys.readouterr().out.startswith("mean(age) = ")
