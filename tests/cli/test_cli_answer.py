"""certsynth answer: error bars from a release folder alone."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from certsynth.cli.answer import MAX_SHOWN_CHARACTERS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "answers.md"


def test_one_answer_is_a_sentence_or_an_object(folder, run):
    done = run("answer", "release", "mean(age)")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("mean(age) = ")
    assert " with confidence 95 %.\nHow: " in done.out
    found = run("answer", "release", "mean(age)", "--json").json
    assert set(found) == {
        "query",
        "estimate",
        "low",
        "high",
        "confidence",
        "unit",
        "how",
        "bound",
        "says_nothing",
        "alone",
    }
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


def test_a_difference_is_answered_like_a_statistic(folder, run):
    done = run("answer", "release", "fraction(age >= 30) - fraction(age >= 60)")
    assert done.out.startswith("fraction(age >= 30) - fraction(age >= 60) = 0.")
    found = run("answer", "release", "mean(age | employed) - mean(age | not employed)", "--json").json
    assert found["unit"] == "age"
    assert found["low"] <= found["estimate"] <= found["high"]


def test_a_table_of_shares_is_aligned_or_an_object(folder, run):
    lines = run("answer", "release", "table(region, employed)").out.splitlines()
    assert lines[0].startswith("table(region, employed): with confidence 95 %, every true share lies between")
    start = [line.split() for line in lines].index(["region", "employed", "share", "low", "high"])
    end = next(i for i, line in enumerate(lines) if line.startswith("How: for each cell "))
    assert len({len(line) for line in lines[start:end]}) == 1
    found = run("answer", "release", "histogram(age, 4)", "--json").json
    assert found["columns"] == ["age"]
    assert len(found["cells"]) == 4
    assert all(cell["low"] <= cell["estimate"] <= cell["high"] for cell in found["cells"])


def test_statistics_come_before_tables_of_shares(folder, run):
    queries = ("histogram(age)", "mean(age)", "table(employed)", "median(age)")
    lines = run("answer", "release", *queries).out.splitlines()
    assert lines[0].split() == ["query", "estimate", "low", "high"]
    starts = [line.split(":")[0] for line in lines if ": with confidence" in line]
    assert starts == ["histogram(age)", "table(employed)"]
    found = run("answer", "release", *queries, "--json").json["answers"]
    assert [each["query"] for each in found] == list(queries)


def test_an_answer_alone_says_so(folder, run):
    done = run("answer", "release", "fraction(age >= 30)", "--alone")
    assert "with confidence 95 %, valid for this question alone. How: " in done.said
    assert run("answer", "release", "fraction(age >= 30)", "--alone", "--json").json["alone"] is True
    several = run("answer", "release", "mean(age)", "fraction(age >= 30)", "--alone").said
    assert several.endswith("; this is valid for each query alone, not for all at once.")
    assert "valid for this table alone." in run("answer", "release", "histogram(age)", "--alone").said


def test_nothing_is_said_in_words(folder, run):
    query = "correlation(age, age)"
    assert run("answer", "release", query).error.endswith("the same column twice; ask for its variance.")
    path = folder / "certificate.json"
    document = json.loads(path.read_text())
    for subset in document["certificate"]["subsets"]:
        subset["bound"] = 1.0
    document["certificate"]["single_column_bound"] = 1.0
    del document["certificate"]["statistics"]
    path.write_text(json.dumps(document))
    done = run("answer", "release", "mean(age)")
    assert re.fullmatch(
        r"mean\(age\) = \d+, but the certificate says nothing about it: its bound for this column is 1, the largest "
        r"possible; more rows or a larger ε would help, and so would fewer columns or a workload\.",
        done.said,
    )
    several = run("answer", "release", "mean(age)", "variance(age)").out
    assert several.splitlines()[1].split()[-2:] == ["–", "–"]
    assert "The certificate says nothing about variance(age): its bound" in several
    assert run("answer", "release", "mean(age)", "--json").json["says_nothing"].startswith("its bound")


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
            "mean(age) + mean(age)",
            "at character 11: statistics cannot be added, only subtracted; ask for each in a query of its own, or for "
            "the mean of a sum, like mean(income + rent).",
        ),
        (
            "mean(age) - fraction(employed)",
            "at character 13: a value (age) minus a share has no unit; subtract statistics of the same kind, like "
            "mean(income | sex = 'f') - mean(income | sex = 'm').",
        ),
        (
            "table(age, region, employed)",
            "'age', 'region', 'employed' are 3 columns, and this release certifies statistics of at most 2; ask about "
            "fewer at once, or release with a larger --sparsity.",
        ),
        (
            "histogram(age, many)",
            "at character 16: no column is called 'many'; there are 'age', 'region', 'employed'.",
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
    assert run("answer", "release", query, "--json").error == f"{query}: {line}"


def test_a_bad_query_has_its_error_in_its_row_and_the_others_are_answered(folder, run):
    bad, line = (
        "mean(agee)",
        "at character 6: no column is called 'agee'; did you mean 'age'? There are 'age', 'region'",
    )
    done = run("answer", "release", "mean(age)", bad, "median(age)")
    assert (done.code, done.err) == (1, "error: 1 of 3 queries cannot be answered.\n")
    assert f" mean(agee) error: {line}" in done.said
    good = run("answer", "release", "mean(age)", "median(age)")
    for row in good.out.splitlines()[1:3]:
        query, *figures = row.split()
        assert query in done.out
        if "–" not in figures:  # noise may leave a median without an interval
            assert "{}, between {} and {}".format(*figures) in done.said
    found = run("answer", "release", "mean(age)", bad, "table(region)", "--json")
    assert found.code == 1
    first, second, third = found.json["answers"]
    assert set(second) == {"query", "error"}
    assert second["query"] == bad
    assert second["error"].startswith(line)
    assert first == run("answer", "release", "mean(age)", "--json").json
    assert third == run("answer", "release", "table(region)", "--json").json


def test_no_answer_at_all_is_a_mistake(folder, run):
    done = run("answer", "release", "mean(agee)", "mean(age) by agee")
    assert (done.code, done.err) == (2, "error: 2 of 2 queries cannot be answered.\n")
    assert done.out.count("  error: at character") == 2
    assert "With confidence" not in done.out
    assert run("answer", "release", "mean(agee)", "mean(zz)", "--json").code == 2


def test_errors_name_flags_and_stay_on_one_line(folder, run):
    three = "fraction(age > 1 and employed and region = 'hills')"
    for done in (run("answer", "release", three, "mean(age)"), run("answer", "release", three, "mean(age)", "--json")):
        assert "or release with a larger --sparsity." in done.said
    strange = "mean(" + "x\ny\x07" * 90
    done = run("answer", "release", strange, "mean(age)")
    assert "\x07" not in done.out
    assert max(map(len, done.out.splitlines())) <= MAX_SHOWN_CHARACTERS + 2


def test_only_tables_and_a_bad_query_are_shown_without_a_sentence_about_statistics(folder, run):
    done = run("answer", "release", "table(region)", "mean(zz)")
    assert done.code == 1
    assert done.out.splitlines()[0].startswith("  mean(zz)  error: at character 6: no column is called 'zz'")
    assert "table(region): with confidence 95 %" in done.out


def test_groups_are_a_table_or_an_object(folder, run):
    lines = run("answer", "release", "mean(age) by region").out.splitlines()
    assert lines[0].startswith("mean(age) by region: with confidence 95 %, every true value lies between low and high")
    assert ["region", "estimate", "low", "high"] in [line.split() for line in lines]
    assert any(line.startswith("How: for each group ") for line in lines)
    found = run("answer", "release", "mean(age) by region", "--json").json
    assert (found["columns"], found["unit"]) == (["region"], "age")
    for cell in found["cells"]:
        single = run("answer", "release", f"mean(age | region = '{cell['labels'][0]}')", "--json").json
        assert [cell[key] for key in ("estimate", "low", "high")] == [single[k] for k in ("estimate", "low", "high")]
    assert "valid for this table alone." in run("answer", "release", "mean(age) by region", "--alone").said


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
    assert len(lines) == 6
    for line in lines:
        assert run(*shlex.split(line)[1:]).code == 0
    known: dict[str, object] = {}
    for kind, text in blocks:
        if kind == "python":
            exec(text, known)  # our own page
    assert capsys.readouterr().out.startswith("mean(age) = ")
