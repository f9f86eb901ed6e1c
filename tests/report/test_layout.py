"""What a reader sees first, on a screen, on a phone and on paper: one page, looked at by a real browser."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from chromium import CHROMIUM, Browser, Page
from report_specimens import EVERY_KIND, document, record, render_record, render_report, table, wide

from certsynth.domain import Category, Ordered, Schema
from certsynth.domain.naming import Naming, Publication

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

LABELS = (("1", "private company"), ("2", "state"), ("3", "a rather long name of a label of a worker"))

NAMED = Schema(
    name="Workers",
    publication=Publication("The office", datetime.date(2026, 11, 18)),
    columns=(
        Ordered(name="AGEP", kind="integer", low=17, high=99, naming=Naming("age", "years")),
        Ordered(name="PINCP", kind="number", low=0.0, high=150_000.0, missing=True, naming=Naming("income", "dollars")),
        Ordered(name="since", kind="date", low=7305, high=19722),
        Category(name="COW", values=("1", "2", "3"), missing=True, naming=Naming("class of worker", labels=LABELS)),
        Category(name="DIS", kind="boolean", values=("false", "true"), naming=Naming(labels=(("true", "disabled"),))),
    ),
)
"""Columns and labels with names for readers."""


SIZES = {"synthetic.csv": "1.2 MB", "certificate.json": "78 kB"}


def named_page(*, direct: float | None = 0.02491) -> str:
    return render_record(record(document(NAMED, direct=direct)), NAMED, table(NAMED), sizes=SIZES)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture(scope="module")
def screen(browser: Browser) -> Iterator[Page]:
    shown = browser.open(named_page(), width=1280)
    yield shown
    assert not shown.complaints
    shown.close()


def seen(shown: Page, selector: str) -> list[str]:
    """The texts of the elements that lie wholly on the first screen."""
    script = f"""[...document.querySelectorAll("{selector}")].filter(e => {{
        const r = e.getBoundingClientRect(); return r.width > 0 && r.top >= 0 && r.bottom <= innerHeight; }})
        .map(e => e.innerText.replace(/\\s+/g, " ").trim())"""
    return list(shown.run(script))


def test_the_first_screen_has_epsilon_and_margins_in_own_units(screen: Page) -> None:
    margins = seen(screen, ".margins li")
    assert [re.sub(r"^± [\d.,]+ ", "± ", text) for text in margins] == [
        "± points share of rows, by one column",
        "± points share of rows, by two columns",
        "± years mean age",
        "± dollars mean income",
    ]
    terms = " ".join(seen(screen, ".terms div"))
    for text in ("confidence 95%", "privacy budget ε = 1", "protected one row", "the bound 0.02491"):
        assert text in terms
    (statement,) = seen(screen, ".statement")
    assert "every share of rows over a range or a set of labels of one column is right within" in statement
    paragraphs = seen(screen, ".promise p")
    (smooth,) = [text for text in paragraphs if "1-Lipschitz differs by more than 0.02491 between" in text]
    assert paragraphs.index(statement) < paragraphs.index(smooth)
    assert seen(screen, ".published") == ["Published by The office on 2026-11-18."]


def test_the_raw_bound_is_smaller_than_what_it_means(screen: Page) -> None:
    sizes = [
        screen.run(f"parseFloat(getComputedStyle(document.querySelector('{s}')).fontSize)")
        for s in (".margins .number", ".terms dd", ".terms .raw dd")
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 2 * sizes[2]


def test_sections_come_in_the_order_of_use(screen: Page) -> None:
    order = screen.run("[...document.querySelectorAll('main > section')].map(e => e.getAttribute('aria-labelledby'))")
    assert [section for section in order if section != "pairs"] == [
        "promise",
        "calculator",
        "uses",
        "columns",
        "subsets",
        "contents",
        "privacy",
        "verify",
        "limits",
        "specialists",
    ]
    assert screen.run("document.getElementById('calculator-form').getBoundingClientRect().top") < 1_800
    linked = screen.run("[...document.querySelectorAll('nav a')].every(a => document.querySelector(a.hash))")
    assert linked


def test_specialists_unfold_their_part(screen: Page) -> None:
    folded = "[...document.querySelectorAll('.fold .part')].map(e => e.checkVisibility())"
    assert screen.run("[...document.querySelectorAll('details')].every(e => !e.open)")
    assert screen.run(folded) == [False, False, False]
    screen.run("document.querySelector('.fold').open = true")
    assert screen.run(folded) == [True, True, True]
    screen.run("document.querySelector('.fold').open = false")


def test_names_stand_in_place_of_codes(screen: Page) -> None:
    headings = screen.run("[...document.querySelectorAll('[aria-labelledby=columns] .card h3')].map(e => e.innerText)")
    assert headings == ["age", "income", "since", "class of worker", "DIS"]
    cards = screen.run(
        "[...document.querySelectorAll('[aria-labelledby=columns] .card')]"
        ".map(e => e.textContent.replace(/\\s+/g, ' '))"
    )
    assert "AGEP, whole number, 17 to 99 years" in cards[0]
    assert re.search(r"± [\d.]+ years", cards[0])
    assert "private company" in cards[3]
    assert "share of disabled" in cards[4]
    sample = screen.run("document.querySelector('.sample').innerText")
    assert "private company" in sample
    assert "COW" not in sample


def test_sample_rows_files_and_citation_are_there(screen: Page) -> None:
    rows = screen.run("[...document.querySelectorAll('.sample tbody tr')].map(e => e.children.length)")
    assert rows == [5] * 8
    files = screen.run("document.querySelector('section[aria-labelledby=contents]').innerText")
    assert re.search(r"synthetic\.csv\s+1\.2 MB\s+the synthetic rows, for any program", files)
    assert re.search(r"certificate\.json\s+78 kB\s+all bounds", files)
    assert re.search(r"report\.html\s+this page", files)
    assert "The office (2026). Workers: 400 synthetic rows with a certificate (ε = 1, bound 0.02491 at 95%" in files


def test_charts_have_ticks_on_both_axes_and_one_scale_for_shares(screen: Page) -> None:
    ticks = screen.run(
        """[...document.querySelectorAll("figure.histogram")].map(f => {
        const texts = [...f.querySelectorAll("text")];
        return [texts.filter(t => t.getAttribute("text-anchor") === "end" && t.getAttribute("x") === "-6").length,
          texts.filter(t => t.getAttribute("x").endsWith("%") && !/missing/.test(t.textContent)).length]; })"""
    )
    assert len(ticks) == 3
    for upright, along in ticks:
        assert upright >= 3 + 2  # three levels of the band, and at least two shares
        assert along >= 2
    scales = screen.run(
        """[...document.querySelectorAll("figure.bars")].map(f => [...f.querySelectorAll("text[text-anchor=middle]")]
        .map(t => [t.getAttribute("x"), t.textContent].join()).join(" "))"""
    )
    assert len(scales) == 2
    assert len(set(scales)) == 1
    assert scales[0].startswith("37%,0%")


def test_nothing_is_drawn_over_the_mark_of_a_mean(screen: Page) -> None:
    """Also where values may be missing, and where all values lie at an end of the range."""
    assert on_top(screen) == [True, True, True]
    assert "the fullest" not in screen.run("document.body.textContent")


def on_top(shown: Page) -> list[bool]:
    return list(
        shown.run(
            """[...document.querySelectorAll("figure.histogram g.mean circle")].map(c => {
            c.scrollIntoView({ block: "center" }); const r = c.getBoundingClientRect();
            const on = document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2);
            scrollTo(0, 0); return on === c; })"""
        )
    )


def test_the_mark_is_on_top_at_the_ends_of_a_range(browser: Browser) -> None:
    schema = Schema(columns=tuple(Ordered(name=name, kind="integer", low=0, high=200) for name in ("low", "high")))
    rows = table(schema)
    rows["low"][:], rows["high"][:] = 0, 200
    shown = browser.open(render_report(document(schema), schema, rows), width=1280)
    assert on_top(shown) == [True, True]
    shown.close()


def test_a_phone_shows_everything_or_a_cue(screen: Page) -> None:
    screen.resize(390)
    assert screen.run("document.documentElement.scrollWidth") <= 390
    cues = screen.run(
        """[...document.querySelectorAll(".scroll")].filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth)
        .map(e => getComputedStyle(e).backgroundAttachment + " " + getComputedStyle(e).overflowX)"""
    )
    assert cues
    assert set(cues) == {"local, local, scroll, scroll auto"}
    stacked = screen.run("[...document.querySelectorAll('.stacks')].every(e => e.scrollWidth <= e.clientWidth)")
    assert stacked
    screen.resize(1280)


def test_a_map_has_names_on_its_diagonal(browser: Browser) -> None:
    shown = browser.open(named_page(direct=None), width=390)
    texts = shown.run("[...document.querySelectorAll('.map text')].map(e => e.textContent)")
    assert texts[-6:] == ["age", "income", "since", "class of", "worker", "DIS"]
    assert shown.run("document.documentElement.scrollWidth") <= 390
    assert shown.run("[...document.querySelectorAll('.map text')].every(e => e.getBoundingClientRect().right <= 390)")
    shown.close()


SENTENCE = "Employee of a private not-for-profit, tax-exempt or charitable organisation, or of a city, county or state"
LONG_LABELS = (SENTENCE, "W" * 110, "a label of some forty characters, or so", "short")
LONG = Schema(
    name="Long names",
    columns=(
        Category(name="kind of employer", values=LONG_LABELS, missing=True),
        Ordered(name="grade", kind="ordinal", low=0, high=3, values=LONG_LABELS),
        Ordered(name="level", kind="ordinal", low=0, high=29, values=tuple(f"{i} {SENTENCE}" for i in range(30))),
        Category(name="unbreakable" * 9, values=("yes", "no")),
    ),
)

CUT = """[...document.querySelectorAll("*")]
  .filter(e => e.checkVisibility() && !e.closest("svg, select, script, style, .stacks thead, .unseen"))
  .filter(e => getComputedStyle(e).overflowX === "hidden" && e.scrollWidth > e.clientWidth + 1
    || e.children.length === 0 && e.textContent.includes("…")).map(e => e.outerHTML.slice(0, 200))"""

OUTSIDE = """[...document.querySelectorAll(".card")].flatMap(card => {
  const [left, right] = [card.getBoundingClientRect().left - 1, card.getBoundingClientRect().right + 1];
  return [...card.querySelectorAll(".label, .ends span, h3, dd, dt, text")].map(e => e.getBoundingClientRect())
    .filter(r => r.width && (r.left < left || r.right > right)); }).length"""

OVER_BARS = """[...document.querySelectorAll(".row")].filter(row => {
  const [label, bar] = [".label", "rect"].map(name => row.querySelector(name).getBoundingClientRect());
  return label.right > bar.left && label.bottom > bar.top; }).length"""


@pytest.mark.parametrize("direct", [0.02491, None], ids=["one bound", "a map of bounds"])
@pytest.mark.parametrize(("width", "media"), [(1280, "screen"), (390, "screen"), (680, "print")])
def test_no_label_is_cut_at_any_width_or_on_paper(
    browser: Browser, width: int, media: str, direct: float | None
) -> None:
    shown = browser.open(
        render_report(document(LONG, direct=direct), LONG, table(LONG)), width=width, media=media, height=1000
    )
    assert shown.run(CUT) == []
    assert (shown.run(OUTSIDE), shown.run(OVER_BARS)) == (0, 0)
    assert shown.run("document.documentElement.scrollWidth") <= width
    labels = shown.run("[...document.querySelectorAll('.row .label')].map(e => e.textContent)")
    assert labels == [*LONG_LABELS, "missing", *LONG_LABELS, "yes", "no"]
    ends = shown.run("[...document.querySelectorAll('figure > .ends span')].map(e => e.textContent)")
    assert ends == [f"{i} {SENTENCE}" for i in (0, 29)]
    if direct is None:
        names = shown.run("[...document.querySelectorAll('.names bdi')].map(e => e.textContent)")
        assert names == list(LONG.names)
    shown.close()


def test_a_label_that_is_cut_would_be_seen(browser: Browser) -> None:
    html = render_report(document(LONG), LONG, table(LONG))
    assert html.count("a label of some forty characters, or so</bdi>") > 1
    shown = browser.open(html.replace("forty characters, or so</bdi>", "forty…</bdi>", 1), width=1280)
    assert len(shown.run(CUT)) == 1
    shown.run("document.querySelector('.row .label').style = 'overflow: hidden; white-space: nowrap'")
    assert len(shown.run(CUT)) == 2
    shown.close()


@pytest.mark.parametrize("columns", [8, 20])
def test_paper_has_at_most_six_pages_and_no_form(browser: Browser, columns: int) -> None:
    schema = wide(columns) if columns > 8 else EVERY_KIND
    html = render_report(document(replace(schema, name="x" * 60)), schema, table(schema))
    shown = browser.open(html, width=680, media="print")
    assert shown.run("[...document.querySelectorAll('form, select, input, nav')].every(e => !e.checkVisibility())")
    assert len(re.findall(rb"/Type\s*/Page\b", shown.pdf())) <= 6
    shown.close()
