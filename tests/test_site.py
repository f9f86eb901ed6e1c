"""The site: it builds without a warning and without the net, every page is in it, and what its pages show works."""

from __future__ import annotations

import html.parser
import importlib.util
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import certsynth
from certsynth import Schema, demo
from certsynth.cli import main
from examples import ROOT, blocks, run_page, shape
from report.chromium import CHROMIUM, Browser

DOCS = ROOT / "docs"
ELSEWHERE = ("case-studies/", "explanation/proofs/")
"""Pages whose code other tests run (`test_case_studies.py`), or that have none."""

PAGES = [page.relative_to(ROOT).as_posix() for page in sorted(DOCS.rglob("*.md"))]
RUN = [page for page in PAGES if not page.removeprefix("docs/").startswith(ELSEWHERE)]
RUN = [page for page in RUN if any(block.runs for block in blocks((ROOT / page).read_text(encoding="utf-8")))]

MOST_NOT_RUN = 3
LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}
RELATIONS = ("stylesheet", "preload", "prefetch", "icon", "modulepreload", "preconnect", "dns-prefetch", "manifest")


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize("page", RUN)
def test_its_examples_run_one_after_the_other(page, tmp_path, monkeypatch):
    assert run_page((ROOT / page).read_text(encoding="utf-8"), tmp_path, monkeypatch)


def test_pages_have_examples_and_few_are_not_run():
    assert {"docs/tutorial.md", "docs/how-to/choose.md", "docs/how-to/certify.md", "docs/how-to/verify.md"} <= set(RUN)
    notes = [block.note for page in PAGES for block in blocks((ROOT / page).read_text(encoding="utf-8"))]
    left_out = [note for note in notes if note.startswith("not run")]
    assert len(left_out) <= MOST_NOT_RUN
    assert all(re.fullmatch(r"not run: .{10,}", note) for note in left_out)
    known = re.compile(r"file: [\w.-]+|output|in a new folder|not run: .*|")
    assert [note for note in notes if not known.fullmatch(note)] == []


@pytest.mark.parametrize(
    "page",
    [
        "```sh\ncertsynth verify nowhere\n```\n",
        "```sh\nfalse\n```\n",
        "```python\nassert 1 > 2\n```\n",
        "```python\nprint('it is 3')\n```\n\n<!-- output -->\n```text\nit was 4\n```\n",
        "```sh\ncertsynth schema people.csv --out d.toml  # exit code 2\n```\n",
    ],
)
def test_an_example_that_does_not_work_is_seen(page, tmp_path, monkeypatch):
    with pytest.raises(AssertionError):
        run_page(page, tmp_path, monkeypatch)


def test_numbers_may_differ_and_words_may_not():
    assert shape("off by more than 0.0110.\n") == shape("off by\nmore than 0.2.")
    assert shape("ok  files  every file") != shape("no  files  every file")


def test_what_is_made_is_a_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md", *PAGES):
        code = "".join(b.code for b in blocks((ROOT / page).read_text(encoding="utf-8")) if b.language == "sh")
        assert set(re.findall(r"^make ([a-z-]+)", code, re.MULTILINE)) <= targets, page


def test_the_page_of_commands_says_what_help_says():
    made = runpy.run_path(str(DOCS / "reference" / "make_commands.py"))["page"]()
    assert (DOCS / "reference" / "commands.md").read_text(encoding="utf-8") == made, "run make_commands.py"


def test_the_page_of_options_says_what_is_declared():
    made = runpy.run_path(str(DOCS / "reference" / "make_options.py"))["page"]()
    assert (DOCS / "reference" / "options.md").read_text(encoding="utf-8") == made, "run make_options.py"


def test_the_page_on_json_has_every_key(tmp_path, monkeypatch):
    """At the top of what commands print, and in the lists within; `demo` prints what others do."""
    rows = re.findall(
        r"^\| `(\w+)` \| (.*) \|$", (DOCS / "reference/json.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    told = {command: set(re.findall(r"`(\w+)`", text)) for command, text in rows}
    assert set(told) == set(main.commands)
    town = {name: values for name, values in demo.people(300).items() if name in ("age", "employed")}
    monkeypatch.chdir(tmp_path)
    demo.write_csv(town, Path("people.csv"))
    Path("schema.toml").write_text(Schema.parse(demo.SCHEMA).select(list(town)).to_toml(), encoding="utf-8")
    schema, pinned, ledger = "--schema schema.toml", "--resolution 4 --mechanism identity", "--ledger ledger --cap 2"
    for line in (
        "schema people.csv --out draft.toml",
        f"plan {schema} --rows 300 --epsilon 1 {pinned}",
        f"release people.csv {schema} --epsilon 1 --out release {pinned} {ledger}",
        "verify release",
        "report release --out page.html",
        "answer release mean(age)",
        "answer release mean(age) median(age)",
        f"certify people.csv release/synthetic.csv {schema} --epsilon 1 {ledger}",
        "ledger ledger",
        f"evaluate people.csv people.csv {schema}",
    ):
        done = CliRunner().invoke(main, [*line.split(), "--json"])
        assert done.exit_code == 0, (line, done.stderr)
        printed, known = json.loads(done.stdout), told[line.split()[0]]
        within = {
            key for value in printed.values() if isinstance(value, list) for each in value[:1] for key in keys(each)
        }
        # The amount of an entry stands under its unit, and candidates of a plan have a paragraph of their own.
        assert set(printed) <= known, line
        assert line.startswith("plan") or within <= known | {"epsilon"}, line


def keys(value: object) -> set[str]:
    return set(value) if isinstance(value, dict) else set()


class Loads(html.parser.HTMLParser):
    """What a page loads by itself: links to follow are not among it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and not set((given.get("rel") or "").split()) & set(RELATIONS):
            return
        if tag in LOADING and (address := given.get(LOADING[tag])):
            self.found.append(address)


def loads(page: str) -> list[str]:
    parser = Loads()
    parser.feed(page)
    return parser.found


def is_outside(address: str) -> bool:
    return re.match(r"(?:[a-z]+:)?//", address) is not None


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site as `make docs` builds it."""
    for module in ("sphinx", "myst_parser", "furo"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: `make setup` installs the group docs")
    out = tmp_path_factory.mktemp("site")
    options = ["-W", "--keep-going", "-n", "-q", "-b", "html", "-d", str(out / "trees")]
    command = [sys.executable, "-m", "sphinx", *options, str(DOCS), str(out / "html")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return out / "html"


def test_every_page_is_on_the_site_and_can_be_reached(site):
    """A page outside of every table of contents is a warning, and so no site at all."""
    for page in PAGES:
        assert (site / page.removeprefix("docs/")).with_suffix(".html").is_file(), page
    index = (site / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{name}"' in index for name in ("tutorial.html", "how-to/index.html", "reference/index.html"))
    python = (site / "reference" / "python.html").read_text(encoding="utf-8")
    for name in (*certsynth.__all__, "Schema.load", "Release.verify", "Ledger.remaining"):
        assert f'id="certsynth.{name}"' in python, name


def test_no_page_loads_anything_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert loads(text), page
        assert [address for address in loads(text) if is_outside(address)] == [], page.name
        assert "mathjax" not in text.lower(), page.name
    for style in site.rglob("*.css"):
        found = re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")\s]+)", style.read_text(encoding="utf-8"))
        assert [address for address in found if is_outside(address)] == [], style.name


def test_what_is_loaded_from_elsewhere_is_seen():
    page = (
        '<script src="https://x.org/a.js"></script><link rel="stylesheet" href="//x.org/a.css"><a href="https://y.org">'
    )
    assert [address for address in loads(page) if is_outside(address)] == ["https://x.org/a.js", "//x.org/a.css"]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [1280, 390])
def test_no_code_box_or_page_is_cut_off(site, tmp_path, width):
    """Neither on a laptop nor on a phone: no box holds more than it shows, and no page scrolls sideways."""
    clipped = "[...document.querySelectorAll('pre')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    with Browser(tmp_path) as browser:
        for name in ("tutorial", "benchmarks", "how-to/answers", "how-to/verify", "reference/schema"):
            place = site / f"{name}.html"
            text = place.read_text(encoding="utf-8").replace("<head>", f'<head><base href="{place.as_uri()}">', 1)
            page = browser.open(text, width=width)
            assert page.run("document.querySelectorAll('pre').length") or name == "benchmarks"
            assert (name, page.run(clipped), page.run(wider)) == (name, 0, 0)
            page.close()
