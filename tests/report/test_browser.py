"""A real browser shows the page without complaint, and asks nobody for anything. Skipped where there is none."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, FLAGS, Browser, Page
from report_specimens import EVERY_KIND, WOVEN, candidates, document, record, render_report, table, wide
from test_page_in_node import in_percent, plain

from certsynth.answers import answer
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.report.view import answer_basis

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

MECHANISMS = ("identity", "haar", "haar-hilbert", "haar-weighted", "quad-tree", "haar-noisy-total")
RESOLUTIONS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
WIDTHS = (320, 500, 768, 834, 1200)

POLICY = re.compile(r"default-src 'none';[^\"]*")

ENDS = """(() => {
const seen = [...document.querySelectorAll("text")].map(t => t.getBoundingClientRect()).filter(r => r.width);
const boxes = [...document.querySelectorAll("select, input, output, .map li")].filter(e => e.offsetParent)
  .map(e => e.getBoundingClientRect());
return [Math.min(...seen.map(r => r.left)) >= -1.5, Math.max(...seen.map(r => r.right)) <= innerWidth,
  boxes.every(r => r.left >= 0 && r.right <= innerWidth), document.documentElement.scrollWidth <= innerWidth].join();
})()"""
"""Whether texts of pictures end inside the window on the left and right, controls too, and nothing makes it scroll.

Letters may hang over by a pixel."""


def page(schema: Schema = EVERY_KIND, **choices: Any) -> str:
    return render_report(document(schema, **choices), schema, table(schema))


def eleven() -> Schema:
    columns: list[Column] = [Ordered(name=f"measurement {i}", kind="integer", low=0, high=1000 + i) for i in range(6)]
    columns += [Category(name=f"a long category name {i}", values=("yes", "no")) for i in range(5)]
    return Schema(columns=tuple(columns), name="Eleven columns")


ODD = (
    "x" * 300,
    "Ein sehr langer Name mit vielen Wörtern, die alle hintereinander stehen und nicht enden wollen",
    "שם העמודה באורך בינוני מאוד",
    "اسم العمود الطويل جدا هنا",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇪🇺 emoji 🧪",
    "数据列的名称很长很长很长很长很长很长很长很长很长很长",
    "a\u0301\u0302\u0303\u0304 zalgo",
    '"><script>alert(1)</script>',
)

PAGES = {
    "every kind": lambda: page(concentrated=True, compared=candidates(MECHANISMS, RESOLUTIONS)),
    "eleven columns": lambda: page(eleven(), direct=None),
    "thirty columns": lambda: page(wide(30), direct=None),
    "odd names": lambda: page(
        Schema(
            name=ODD[0],
            unit=ODD[2],
            columns=tuple(
                [Category(name=name, values=(*ODD[:i], *ODD[i + 1 :]), missing=True) for i, name in enumerate(ODD)]
                + [Ordered(name=name + "2", kind="ordinal", low=0, high=7, values=ODD) for name in ODD[:3]]
            ),
        ),
        direct=None,
    ),
    "weights and trees": lambda: page(WOVEN, neighbours="add-remove"),
    "one column": lambda: page(Schema(columns=(Ordered(name="x", kind="number", low=-1e300, high=1e300),)), sparsity=1),
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture
def opened(browser: Browser) -> Iterator[Page]:
    shown = browser.open(page(), width=1200)
    yield shown
    assert not shown.complaints
    assert not shown.requests
    shown.close()


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_fits_every_window_in_both_themes(browser: Browser, name: str, dark: bool) -> None:
    shown = browser.open(PAGES[name](), width=1200, dark=dark)
    assert "What is certified" in shown.run("document.querySelector('main').innerText")
    assert shown.run("getComputedStyle(document.body).backgroundColor") == (
        "rgb(18, 23, 29)" if dark else "rgb(255, 255, 255)"
    )
    for width in WIDTHS:
        shown.resize(width)
        assert shown.run(ENDS) == "true,true,true,true", width
    assert not shown.complaints
    assert not shown.requests
    shown.close()


def test_a_text_that_sticks_out_would_be_seen(browser: Browser) -> None:
    html = page(compared=candidates(["haar-noisy-total", "haar"], RESOLUTIONS, best=("haar", 8)))
    shown = browser.open(html.replace("haar-noisy-total", "m" * 360), width=1000)
    assert shown.run(ENDS).split(",")[1] == "false"
    shown.close()


def test_every_statistic_gives_an_answer(opened: Page) -> None:
    """Every choice of statistic, first column and second column has a number, a sentence and an explanation."""
    seen = opened.run(
        """(() => {
        const what = document.getElementById("calc-what"), rows = [];
        const fire = e => e.dispatchEvent(new Event("input", { bubbles: true }));
        const each = (select, then) =>
          [...select.options].forEach((o, i) => { select.selectedIndex = i; fire(select); then(); });
        const said = key => document.getElementById("calc-" + key).textContent;
        const read = () => rows.push([what.value, said("head"), said("says"), said("how")]);
        each(what, () => each(document.getElementById("calc-first"), () => {
          const second = document.getElementById("calc-second");
          if (second) each(second, read); else read();
        }));
        return rows;
        })()"""
    )
    assert len({row[0] for row in seen}) == 10
    assert len(seen) > 60
    for row in seen:
        assert all(row), row
        assert not re.search(r"NaN|undefined|null|Infinity|\[object|e\+", " ".join(row)), row
        assert "95% confidence" in row[2]
        assert re.match(r"± [\d,.]+( days²?| places| percentage points)?$|.+ to .+$", row[1]), row


def answers(shown: Page) -> list[list[str]]:
    """The key of every statistic, with what is said of it for the first columns that it can be of."""
    return list(
        shown.run(
            """[...document.getElementById("calc-what").options].map(o => {
            const what = document.getElementById("calc-what"); what.value = o.value;
            what.dispatchEvent(new Event("input", { bubbles: true }));
            return [o.value, document.getElementById("calc-result").innerText] })"""
        )
    )


def test_a_bound_that_says_nothing_says_so(browser: Browser) -> None:
    stated = document(EVERY_KIND)
    nothing = dict.fromkeys(stated["certificate"]["statistics"], 1.0)
    stated["certificate"] |= {"bound": 1.0, "single_column_bound": 1.0, "statistics": nothing}
    for subset in stated["certificate"]["subsets"]:
        subset["bound"] = 1.0
    shown = browser.open(render_report(stated, EVERY_KIND, table(EVERY_KIND)))
    said = answers(shown)
    assert len(said) == 10
    assert all("too wide to say anything" in text for key, text in said if key != "upto"), said
    shown.close()


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize(
    "column",
    [
        Ordered(name="x", kind="number", low=-1e300, high=1e300),
        Ordered(name="x", kind="number", low=0.0, high=1e-9, missing=True),
        Ordered(name="x", kind="integer", low=5, high=6),
        Ordered(name="x", kind="integer", low=-(2**50), high=2**50),
        Ordered(name="x", kind="date", low=-719_162, high=2_932_896),
        Ordered(name="x", kind="datetime", low=10**9, high=10**9 + 80_000, missing=True),
        Ordered(name="x", kind="datetime", low=-62_135_596_800, high=253_402_300_799),
        Ordered(name="x", kind="ordinal", low=0, high=0, values=("only",)),
        Ordered(name="x", kind="ordinal", low=0, high=5999, values=tuple(f"{'long ' * 7}{i}" for i in range(6000))),
        Category(name="x", values=("only",)),
        Category(name="x", values=tuple(f"{'long ' * 7}{i}" for i in range(6000))),
    ],
)
def test_odd_columns_have_answers(browser: Browser, column: Column) -> None:
    shown = browser.open(page(Schema(columns=(column, Category(name="y", values=("a", "b"))))))
    said = answers(shown)
    assert len(said) >= 3
    for _, text in said:
        assert not re.search(r"NaN|undefined|null|Infinity|\[object", text), text
    assert not shown.complaints
    shown.close()


def result(shown: Page) -> str:
    return str(shown.run("document.getElementById('calc-result').innerText"))


def focus(shown: Page, name: str) -> None:
    shown.run(f"document.getElementById('{name}').focus()")
    assert shown.run("document.activeElement.id") == name


def overwrite(shown: Page, name: str, text: str) -> None:
    focus(shown, name)
    shown.run(f"document.getElementById('{name}').select()")
    shown.type(text)


def test_the_calculator_works_from_the_keyboard(opened: Page) -> None:
    """Keys as a keyboard sends them: tabs, arrows and letters."""
    first = result(opened)
    assert "the mean of “age”" in first
    focus(opened, "calc-what")
    opened.press("ArrowDown", 40)
    assert "up to" in result(opened)
    assert result(opened) != first
    opened.press("Tab", 9)
    assert opened.run("document.activeElement.id") == "calc-first"
    opened.press("Tab", 9)
    assert opened.run("document.activeElement.id") == "calc-to"
    overwrite(opened, "calc-to", "40")
    assert "“age” up to 40." in result(opened)
    assert opened.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    overwrite(opened, "calc-to", "400")
    assert "from 18 to 100" in result(opened)
    assert opened.run("document.activeElement.hasAttribute('aria-invalid')")
    overwrite(opened, "calc-to", "")
    opened.press("Delete", 46)
    assert "Type a value" in result(opened)
    overwrite(opened, "calc-to", "100")
    assert "100% of all rows" in result(opened)
    assert "between 100% and 100%" in result(opened)


def test_return_does_not_send_the_form_anywhere(opened: Page) -> None:
    opened.run("document.getElementById('calc-what').value = 'quantile'")
    opened.run("document.getElementById('calc-what').dispatchEvent(new Event('input', { bubbles: true }))")
    overwrite(opened, "calc-percent", "25")
    opened.press("Enter", 13, "\r")
    assert "at least 25% of the values" in result(opened)
    overwrite(opened, "calc-percent", "100")
    assert "between 0 and 100" in result(opened)


def test_the_calculator_agrees_with_the_rest_of_the_page(opened: Page) -> None:
    """The range of the mean is that of the card, but for the rounding of either, and so are the ends of the median."""
    card = opened.run("document.querySelector('.card dl').innerText")
    mean, off = re.findall(r"([\d.]+) ± ([\d.]+)", card)[0]
    low, high = map(float, re.findall(r"([\d.]+) to ([\d.]+)", result(opened))[0])
    plus = max(high - float(mean), float(mean) - low)
    assert 0.8 * plus <= float(off) <= 1.2 * plus
    opened.run("document.getElementById('calc-what').value = 'quantile'")
    opened.run("document.getElementById('calc-what').dispatchEvent(new Event('input', { bubbles: true }))")
    low, high = re.findall(r"between (\d+) and (\d+)", result(opened))[0]
    assert f"{low} and {high}" in card


def test_only_covered_pairs_can_be_chosen(browser: Browser) -> None:
    shown = browser.open(page(subsets=[["age", "income"], ["age", "region"], ["school", "grade"], ["region", "job"]]))
    choose = """(what => { const w = document.getElementById("calc-what"); w.value = what;
        w.dispatchEvent(new Event("input", { bubbles: true }));
        return ["calc-first", "calc-second"].map(id => [...document.getElementById(id).options].map(o => o.text)) })"""
    every = ["age", "income", "school", "grade", "region", "job"]
    assert shown.run(f"{choose}('both')") == [every, ["income", "region"]]
    assert shown.run(f"{choose}('meanWithin')") == [every[:5], ["income"]]
    offered = shown.run("[...document.getElementById('calc-what').options].map(o => o.value)")
    assert "covariance" not in offered  # school may be missing
    shown.close()
    alone = browser.open(page(sparsity=1))
    assert "Two columns" not in alone.run("document.getElementById('calc-what').innerHTML")
    alone.close()


ASK_MANY = """(seed => { const said = [], set = (id, pick) => { const s = document.getElementById(id); if (!s) return;
    s.selectedIndex = pick % s.options.length; s.dispatchEvent(new Event("input", { bubbles: true })); };
    let x = seed; const next = () => (x = (x * 48271) % 2147483647);
    for (const what of ["both", "meanWithin"]) for (let k = 0; k < 40; k++) {
        document.getElementById("calc-what").value = what;
        document.getElementById("calc-what").dispatchEvent(new Event("input", { bubbles: true }));
        for (const id of ["first", "second", "part", "part-to", "other", "other-to"]) set(`calc-${id}`, next());
        said.push(["calc-head", "calc-note"].map(id => document.getElementById(id).textContent)); }
    return said; })(7)"""


def test_two_columns_have_the_digits_of_answer(opened: Page) -> None:
    """Labels and ranges are chosen in real controls. The page names its question; `answer` gives the same digits."""
    values = table(EVERY_KIND)
    basis = answer_basis(
        record(document(EVERY_KIND)), EVERY_KIND, values, [c.encode(values[c.name]) for c in EVERY_KIND]
    )
    asked = [(head, note.partition(": ")[2]) for head, note in opened.run(ASK_MANY) if note.startswith("As a question")]
    assert len(asked) > 25
    for head, query in asked:
        found = answer(basis, query)
        low, high = (in_percent(end) if found.unit == "share" else end for end in found.shown()[1:])
        assert plain(head) == f"{low} to {high}", query


def test_labels_in_the_calculator_are_texts(browser: Browser) -> None:
    hostile = "<img src=x onerror=alert(1)></script><script>document.title = 'ran'</script>"
    schema = Schema(columns=(Category(name=hostile, values=(hostile, "b")), Category(name="c", values=("a", hostile))))
    shown = browser.open(page(schema))
    assert shown.run("document.title") != "ran"
    assert "<img src=x" in result(shown)
    assert shown.run("document.querySelectorAll('img').length") == 0
    assert not shown.complaints
    shown.close()


def test_without_scripts_all_but_the_calculator_is_there(browser: Browser) -> None:
    shown = browser.open(page(), scripts=False)
    text = shown.run("document.querySelector('main').innerText")
    assert "The calculator needs scripts" in text
    assert "Rules of thumb" in text
    assert shown.run("document.getElementById('calculator-form').offsetParent === null")
    shown.close()


def test_every_control_and_picture_has_a_name(opened: Page) -> None:
    opened.run("document.getElementById('calc-what').value = 'range'")
    opened.run("document.getElementById('calc-what').dispatchEvent(new Event('input', { bubbles: true }))")
    nodes = opened.call("Accessibility.getFullAXTree")["nodes"]
    roles = (
        "combobox",
        "spinbutton",
        "textbox",
        "image",
        "img",
        "link",
        "table",
        "region",
        "form",
        "navigation",
        "Date",
    )
    named = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"]]
    found = [(role, name) for role, name in named if role in roles]
    assert len(found) > 30
    assert all(name.strip() for _, name in found), [role for role, name in found if not name.strip()]
    landmarks = {role for role, _ in named}
    assert {"banner", "main", "navigation", "contentinfo", "heading"} <= landmarks
    assert opened.run("document.getElementById('calc-result').getAttribute('aria-live')") == "polite"
    assert opened.run("document.documentElement.lang") == "en"


@pytest.mark.parametrize("name", ["every kind", "eleven columns", "thirty columns"])
def test_prints_on_white_and_cuts_no_picture(browser: Browser, name: str) -> None:
    shown = browser.open(PAGES[name](), width=680, dark=True, media="print")
    assert shown.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert shown.run(ENDS).split(",")[:2] == ["true", "true"]
    assert shown.run("getComputedStyle(document.getElementById('calculator-form')).display") == "none"
    kept = shown.run("[...document.querySelectorAll('figure, .card, .map')].map(e => getComputedStyle(e).breakInside)")
    assert set(kept) == {"avoid"}
    tallest = shown.run(
        "Math.max(...[...document.querySelectorAll('figure')].map(e => e.getBoundingClientRect().height))"
    )
    assert tallest < 980  # of an A4 page with margins, in CSS pixels
    made = shown.pdf()
    assert made.startswith(b"%PDF")
    assert 3 < len(re.findall(rb"/Type\s*/Page\b", made)) < 40
    assert not shown.requests
    shown.close()


def browse(html: str, folder: Path) -> list[str]:
    """The hosts that a browser asks for, seen from outside: by a proxy that it is told to use."""
    file = folder / "report.html"
    file.write_text(html, encoding="utf-8")
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_note_requests, args=(server, asked), daemon=True).start()
        assert CHROMIUM is not None
        own = [f"--user-data-dir={folder / 'profile'}", f"--proxy-server=127.0.0.1:{server.getsockname()[1]}"]
        ran = subprocess.run(
            [CHROMIUM, *FLAGS, "--dump-dom", *own, file.as_uri()],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert "What is certified" in ran.stdout
    errands = ("google.com", "googleapis.com", "gvt1.com", "gstatic.com")  # the browser's own
    return [host for host in asked if not host.split(":")[0].endswith(errands)]


def _note_requests(server: socket.socket, asked: list[str]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection, contextlib.suppress(OSError):  # connections that come to nothing
            connection.settimeout(2)
            head = connection.recv(4096).decode("latin-1")
            asked += re.findall(r"^\w+ (?:http://)?([^/ ]+)", head)
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


LEAK = """<img src="http://leak.example/x"><script>document.title = "ran"; console.error("seen")</script>
<style>body { display: none }</style></main>"""


def test_nothing_leaves_the_browser(tmp_path: Path) -> None:
    assert not browse(page(), tmp_path)


def test_what_leaves_would_be_seen(browser: Browser, tmp_path: Path) -> None:
    leaky = POLICY.sub("default-src * 'unsafe-inline'", page()).replace("</main>", LEAK)
    assert "leak.example" in browse(leaky, tmp_path)
    shown = browser.open(leaky)
    assert any("seen" in line for line in shown.complaints)
    assert any("leak.example" in url for url in shown.requests)
    assert shown.run("document.title") == "ran"
    shown.close()


def test_the_policy_stops_what_escaping_would_let_through(browser: Browser, tmp_path: Path) -> None:
    leaky = page().replace("</main>", LEAK)
    assert "leak.example" not in browse(leaky, tmp_path)
    shown = browser.open(leaky)
    assert shown.run("document.title") != "ran"
    assert shown.run("getComputedStyle(document.body).display") == "block"
    assert shown.complaints
    shown.close()
