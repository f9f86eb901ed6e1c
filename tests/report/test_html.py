"""The page is one inert, complete, accessible file."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_specimens import (
    DISTANCES,
    EVERY_KIND,
    candidate,
    candidates,
    document,
    record,
    render_report,
    table,
    view,
    wide,
)

import certsynth
from certsynth.domain import Category, Ordered, Schema
from certsynth.report import render_report as render_record
from certsynth.report.html import render

VOID = {"meta", "br", "rect", "line", "circle", "path"}

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "=1+1",
    "{{ 7*7 }}",
    "</style></title></svg><script>alert(2)</script>",
    "' onload='alert(3)",
    "a\u202eb\u0000c\ud800",
)


class Page(HTMLParser):
    """Tags, attributes and texts of a page; fails where a tag is closed that is not open."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page(schema: Schema = EVERY_KIND, **choices: Any) -> str:
    return render_report(document(schema, **choices), schema, table(schema))


@pytest.fixture(scope="module")
def made() -> certsynth.Release:
    """A real release, with no hand in its document."""
    schema = Schema.parse(
        """
        [[column]]
        name = "age"
        kind = "integer"
        low = 0
        high = 90
        [[column]]
        name = "region"
        kind = "category"
        values = ["north", "south"]
        missing = true
        [[column]]
        name = "score"
        kind = "number"
        low = 0.0
        high = 1.0
        """
    )
    rng = np.random.default_rng(0)
    rows = {"age": rng.integers(0, 91, 300), "region": rng.choice(["north", "south"], 300), "score": rng.random(300)}
    import polars

    return certsynth.release(polars.DataFrame(rows), schema, epsilon=1, resolution=4, mechanism="identity", seed=1)


def test_a_real_release_has_a_page(made: certsynth.Release) -> None:
    html = render_report(made.document, made.schema, made.table)
    shown = view(made.document, made.schema, made.table)
    assert shown["promise"]["bound"] == made.certificate.bound
    assert shown["promise"]["bound_text"] in Page(html).text


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"direct": None},
        {"sparsity": 1},
        {"sparsity": 3},
        {"neighbours": "add-remove"},
        {"worth_optimising": True},
        {"concentrated": True},
        {"compared": [candidate("haar", 8, 0.1, chosen=True)]},
        {"compared": candidates(resolutions=[None], best=("haar", None))},
    ],
)
def test_tags_are_balanced_and_ids_are_unique(choices: dict[str, Any]) -> None:
    parsed = Page(page(**choices))
    ids = [a["id"] for _, a in parsed.tags if "id" in a]
    assert len(ids) == len(set(ids))
    named = {i for _, a in parsed.tags for i in (a.get("aria-labelledby") or "").split()}
    assert named <= set(ids)


def test_asks_for_nothing_from_anywhere() -> None:
    html = page()
    for asking in (
        "http://",
        "https://",
        "src=",
        "srcset",
        "@import",
        "<link",
        "<iframe",
        "fetch(",
        "XMLHttp",
        "import(",
    ):
        assert asking not in html
    assert set(re.findall(r"url\((.)", html)) == set(re.findall(r'href="(.)', html)) == {"#"}


def test_the_policy_allows_what_is_in_the_page_and_nothing_else() -> None:
    html = page()
    policy = next(a for a in Page(html).all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    own = {tag: re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.S) for tag in ("style", "script")}
    assert [len(texts) for texts in own.values()] == [1, 2]
    hashes = {tag: " ".join(f"'sha256-{_sha256(text)}'" for text in texts) for tag, texts in own.items()}
    assert policy["content"] == (
        f"default-src 'none'; style-src {hashes['style']}; script-src {hashes['script']}; "
        "base-uri 'none'; form-action 'none'"
    )
    assert not re.search(r"eval|Function\(|innerHTML|outerHTML|insertAdjacent|document\.write", "".join(own["script"]))
    assert " style=" not in html


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@pytest.mark.parametrize("concentrated", [False, True])
def test_every_text_of_the_view_is_on_the_page(concentrated: bool) -> None:
    shown = view(document(EVERY_KIND, concentrated=concentrated), EVERY_KIND, table(EVERY_KIND))
    text = re.sub(r"\s+", " ", Page(render(shown)).text)
    hidden = {"role", "key", "form", "shown", "kind", "neighbours", "level"}
    del shown["calculator"]["columns"], shown["calculator"]["answers"]  # for the script
    missing = [t for key, t in _texts(shown) if key not in hidden and re.sub(r"\s+", " ", t) not in text]
    assert not missing


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, key)
    elif isinstance(value, str) and value:
        yield key, value


def test_headings_tables_and_pictures_can_be_heard() -> None:
    parsed = Page(page())
    levels = [int(tag[1]) for tag, _ in parsed.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    tables = len(parsed.all("table"))
    assert tables == len(parsed.all("caption")) >= 5
    assert all(th.get("scope") in ("row", "col") for th in parsed.all("th"))
    pictures = [svg for svg in parsed.all("svg") if svg.get("aria-hidden") != "true"]
    boxes = [box for box in parsed.all("div") if box.get("role") == "img"]
    assert all(each.get("role") == "img" and each.get("aria-labelledby") for each in pictures + boxes)
    assert len(parsed.all("desc")) == len(pictures)
    ids = {each.get("id") for _, each in parsed.tags}
    assert all(box.get("aria-describedby") in ids for box in boxes)
    assert len(pictures) + len(boxes) >= 3 + len(EVERY_KIND)


def test_themes_and_print() -> None:
    html = page()
    for rule in ("screen and (prefers-color-scheme: dark)", "@media print", "color-scheme: light dark"):
        assert rule in html


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_labels_are_inert(label: str) -> None:
    schema = Schema(
        name=label,
        unit=label,
        columns=(
            Category(name=label, values=(label, "b"), missing=True),
            Category(name="tree", kind="tree", values=(label, "b"), paths=(("a", label), ("b",))),
            Category(name="metric", kind="metric", values=("b", label), distances=DISTANCES),
            Ordered(name="grade", kind="ordinal", low=0, high=20, values=(*map(str, range(20)), label)),
            Ordered(name=label + "2", kind="integer", low=0, high=9),
        ),
    )
    parsed = Page(page(schema, rows=400))
    assert not {tag for tag, _ in parsed.tags} & {"img", "iframe", "link", "object"}
    assert not [name for _, a in parsed.tags for name in a if name.startswith("on") or name == "src"]
    assert all(str(a["href"]).startswith("#") for a in parsed.all("a"))
    assert (
        len(parsed.all("style")) == len(parsed.all("title")) - len(parsed.all("desc")) == len(parsed.all("form")) == 1
    )
    assert len(parsed.all("script")) == 3
    parsed.text.encode()
    cleaned = label.translate({0x202E: "\ufffd", 0: "\ufffd", 0xD800: "\ufffd"})
    assert parsed.text.count(cleaned) >= 7


def test_hostile_documents_are_inert() -> None:
    """The reader refuses such values; the page is safe without it."""
    stated, hostile = record(document(EVERY_KIND)), "<script>alert(1)</script>"
    first, *others = stated.privacy.spent
    privacy: Any = {"definition": hostile, "neighbours": hostile, "spent": (replace(first, on=hostile), *others)}
    texts: Any = {"certsynth": hostile, "format": hostile, "privacy": replace(stated.privacy, **privacy)}
    how: Any = {"mechanism": hostile, "projection": hostile}
    made = replace(stated, release=replace(stated.release, **how), **texts)
    html = render_record(made, EVERY_KIND, table(EVERY_KIND))
    assert html.count("<script") == 3
    assert "<script>alert" not in html
    assert escape("<script>alert(1)</script>") in html


def test_hostile_candidates_are_inert() -> None:
    stated = record(document(EVERY_KIND, compared=candidates(mechanisms=["haar", "identity"], best=("haar", 8))))
    hostile: Any = {"mechanism": "<b onclick=x>"}
    named = [replace(c, **hostile) if c.mechanism == "haar" else c for c in stated.compared]
    for compared in (named, named[:1] + [c for c in named if c.chosen], [c for c in named if c.chosen]):
        html = render_record(replace(stated, compared=tuple(compared)), EVERY_KIND, table(EVERY_KIND))
        assert "<b" not in html.replace("<body>", "").replace("<bdi>", "").replace("<br>", "")
        assert escape("<b onclick=x>") in html


def test_no_page_with_a_delta_claims_what_only_epsilon_gives() -> None:
    for neighbours in ("replace-one", "add-remove"):
        text = Page(page(concentrated=True, neighbours=neighbours)).text
        for claim in (
            "pure",
            "odds",
            "What ε was spent on",
            "ε in all",
            "twice the ε",
            "m times the ε",
            "The ε on this",
        ):
            assert claim not in text
        for said in ("What ρ was spent on", "ρ in all", "(1, 0.000001)", "m² times the ρ", "The ρ on this page"):
            assert said in text
    assert "four times the ρ" in text
    assert "ρ" not in (pure := Page(page()).text)
    assert "δ" not in pure
    assert "odds" in pure


def test_the_bar_of_the_budget_is_cut_by_shares() -> None:
    for concentrated in (False, True):
        widths = re.findall(
            r'<rect class="part\d" x="[\d.%]+" y="0" width="([\d.]+)%"', page(concentrated=concentrated)
        )
        assert widths == ["92", "8"]
    assert ">ρ 0.02241<" in page(concentrated=True)  # 0.92 × 0.024355…, rounded up


@pytest.mark.parametrize(
    "compared",
    [None, candidates(resolutions=(4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)), candidates(["haar"], best=("haar", 16))],
)
def test_the_chosen_candidate_is_marked_once(compared: list[dict[str, Any]] | None) -> None:
    html = page(compared=compared)
    parsed = Page(html)
    assert html.count('<circle class="chosen"') == 1
    assert parsed.text.count("chosen: ") == parsed.text.count("(chosen)") == 1
    assert "candidates, and what the mechanisms do" in parsed.text


def test_without_anything_to_draw_a_sentence_is_enough() -> None:
    alone = page(compared=[candidate("haar", 8, 0.1, chosen=True)])
    assert "the only candidate" in alone
    assert "what the mechanisms do" not in alone
    detailed = page(compared=candidates(resolutions=[None], best=("haar", None)))
    assert "haar at full detail was chosen out of 3 candidates" in Page(detailed).text
    assert detailed.count("(chosen)") == 1
    for html in (alone, detailed):
        assert 'class="lines"' not in html
        assert '<circle class="chosen"' not in html


def test_no_text_escapes_escaping() -> None:
    templates = list((Path(certsynth.__file__).parent / "report").glob("*.j2"))
    assert len(templates) >= 3
    for template in templates:
        assert not re.search(r"\|\s*safe|autoescape|Markup", template.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_stays_small_with_fifty_columns() -> None:
    html = page(wide(50))
    assert "1,225 pairs" in html
    assert len(html.encode()) < 1_000_000
    Page(html)


def test_stays_small_with_sixty_columns_of_all_values_and_bounds() -> None:
    """As many places and labels as a page carries, and pairs with bounds of their own."""
    schema = wide(60)
    rows = table(schema, rows=20_000)
    html = render_report(document(schema, direct=None, rows=20_000), schema, rows)
    assert len(html.encode()) < 1_000_000


@pytest.mark.slow
def test_stays_small_with_thousands_of_labels() -> None:
    long = tuple(f"a label of about forty characters {i:06d}" for i in range(3000))
    schema = Schema(columns=tuple(Category(name=f"c{i}", values=long) for i in range(4)))
    assert len(page(Schema(columns=schema.columns[:2])).encode()) < 1_000_000
    html = page(schema)
    assert len(html.encode()) < 1_000_000
    data = json.loads(re.findall(r'id="numbers">(.*?)</script>', html)[0])
    kept = [len(column["labels"]) for column in data["columns"]]
    assert all(0 < number < 3000 for number in kept)
    assert all(len(column["labels"]) + column["left"] == 3000 for column in data["columns"])


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("letter", ["x", "列", "🧪"])
def test_stays_small_with_thousands_of_labels_in_every_column(letter: str) -> None:
    long = tuple(f"{letter * 34} {i:05d}" for i in range(2000))
    labelled = [Category(name=f"c{i}", values=long) for i in range(30)]
    ordered = [Ordered(name=f"o{i}", kind="ordinal", low=0, high=1999, values=long) for i in range(30)]
    assert len(page(Schema(columns=(*labelled, *ordered)), direct=None).encode()) < 1_000_000


@pytest.mark.slow
def test_stays_small_whatever_the_width() -> None:
    schema = wide(300)
    html = page(schema, subsets=[schema.names[i : i + 2] for i in range(299)])
    assert len(html.encode()) < 1_000_000


def test_is_the_same_byte_for_byte_in_another_process() -> None:
    here = Path(__file__).parent
    code = (
        f"import sys; sys.path.insert(0, {str(here)!r})\n"
        "from report_specimens import *\n"
        "sys.stdout.buffer.write(render_report(document(EVERY_KIND), EVERY_KIND, table(EVERY_KIND)).encode())"
    )
    again = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": "7"}
    )
    assert again.stdout == page().encode()
