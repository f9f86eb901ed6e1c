"""The documents say what there is: commands, options, public names, and links that lead somewhere."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click
import pytest

import certsynth
from certsynth import Schema
from certsynth.cli import main
from certsynth.cli.options import GroupedOption

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.name != "CHANGELOG.md")

PROOFS = sorted((ROOT / "docs" / "explanation" / "proofs").glob("*.md"))
CLAIM = ("Setting", "Claim", "Proof", "Where in the code", "Checked by")
"""What every claim of a page of proofs has."""

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def options() -> list[tuple[str, str]]:
    """Every command with the flag of each option that is declared for it."""
    return [
        (name, parameter.declared.flag)
        for name, command in main.commands.items()
        for parameter in command.params
        if isinstance(parameter, GroupedOption)
    ]


def test_every_option_of_every_command_is_declared():
    for command in main.commands.values():
        found = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
        assert all(isinstance(parameter, GroupedOption) for parameter in found)
        assert [parameter.opts for parameter in found] == [[parameter.declared.flag] for parameter in found]


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_is_in_the_readme(command):
    assert f"`certsynth {command}" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("command", "option"), options())
def test_every_option_is_documented_for_its_command(command, option):
    """The page is written from the declarations, and `test_site.py` compares it with them."""
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    section = page.partition(f"## certsynth {command}\n")[2].partition("\n## ")[0]
    assert re.search(rf"^- `{option}[` ]", section, re.MULTILINE)


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_option_has_a_help_text(command):
    assert main.commands[command].help
    for parameter in main.commands[command].params:
        assert not isinstance(parameter, click.Option) or parameter.help


@pytest.mark.parametrize("name", certsynth.__all__)
def test_every_public_name_is_documented(name):
    assert re.search(rf"\b{name}\b[(.]", TEXT)
    assert getattr(certsynth, name).__doc__


@pytest.mark.parametrize("page", NAMES)
def test_every_relative_link_leads_somewhere(page):
    path = ROOT / page
    for target in _LINK.findall(_FENCED.sub("", path.read_text(encoding="utf-8"))):
        if "://" in target or target.startswith(("#", "mailto:")):
            continue
        assert (path.parent / target.partition("#")[0]).exists(), target


def anchors(page: Path) -> set[str]:
    """What a link may name on a page: its headings in small letters, without punctuation, spaces as hyphens."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", NAMES)
def test_every_link_to_a_heading_leads_to_one(page):
    path = ROOT / page
    for target in _LINK.findall(_FENCED.sub("", path.read_text(encoding="utf-8"))):
        place, _, anchor = target.partition("#")
        if anchor and "://" not in target:
            assert anchor in anchors(path.parent / place if place else path), target


def test_a_link_to_no_heading_is_seen():
    assert "how-β-is-split" in anchors(ROOT / "docs/explanation/proofs/direct.md")
    assert "how-beta-is-split" not in anchors(ROOT / "docs/explanation/proofs/direct.md")


# ------------------------------------------------------------ proofs


def claims(page: Path) -> list[str]:
    """The sections of a page that make a claim."""
    sections = re.split(r"^#{2,3} ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [section for section in sections if re.search(r"^\*\*Claim\b", section, re.MULTILINE)]


def named(section: str, part: str) -> list[str]:
    """What stands in code quotes in one part of a claim, which ends at an empty line."""
    (found,) = re.findall(rf"^\*\*{part}\.\*\*\s(.*?)(?:\n\n|\Z)", section, re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`]+)`", found)


def is_code(name: str) -> bool:
    """Whether a dotted name is that of a module of ours, or of something in one."""
    pieces = ["certsynth", *name.split(".")]
    for length in range(len(pieces), 0, -1):
        try:
            found = importlib.import_module(".".join(pieces[:length]))
        except ModuleNotFoundError:
            continue
        for piece in pieces[length:]:
            if not hasattr(found, piece):
                return False
            found = getattr(found, piece)
        return True
    return False


def is_test(name: str) -> bool:
    """Whether there is such a test, named like pytest names it."""
    place, _, function = name.partition("::")
    file = ROOT / "tests" / place
    return file.is_file() and f"def {function}(" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PROOFS, ids=lambda page: page.name)
def test_every_claim_has_all_its_parts_and_names_code_and_tests_that_exist(page):
    for section in claims(page):
        title = section.partition("\n")[0]
        assert [part for part in CLAIM if f"**{part}" not in section] == [], title
        code, tests = named(section, "Where in the code"), named(section, "Checked by")
        assert code, title
        assert tests, title
        assert [name for name in code if not is_code(name)] == [], title
        assert [name for name in tests if not is_test(name)] == [], title


def test_the_pages_of_proofs_make_claims():
    assert {page.name for page in PROOFS if not claims(page)} == {"README.md"}
    assert sum(len(claims(page)) for page in PROOFS) > 40


def test_names_that_do_not_exist_are_seen():
    assert is_code("mechanisms.haar.Haar.sensitivity")
    assert not is_code("mechanisms.haar.Haar.sensitivities")
    assert not is_code("mechanism.haar.Haar")
    assert is_test("test_docs.py::test_names_that_do_not_exist_are_seen")
    assert not is_test("test_docs.py::test_names")
    assert not is_test("test_doc.py::test_names_that_do_not_exist_are_seen")


def test_every_page_of_proofs_is_in_their_index_and_proofs_are_nowhere_else():
    index = (ROOT / "docs/explanation/proofs/README.md").read_text(encoding="utf-8")
    assert {page.name for page in PROOFS} - {"README.md"} <= set(_LINK.findall(index))
    for page in (ROOT / "docs" / "explanation").glob("*.md"):
        assert "∎" not in page.read_text(encoding="utf-8"), page.name


def test_every_promise_names_tests_that_exist_and_a_figure():
    page = (ROOT / "docs/promises.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (P\d+) \| (.+?) \| (.+?) \| (.*?) ?\|$", page, re.MULTILINE)
    assert [name for name, *_ in rows] == [f"P{i}" for i in range(1, 27)]
    for name, _, tests, figure in rows:
        files = re.findall(r"`([a-z_/]+(?:\.py|/))`", tests)
        assert files, name
        for file in files:
            assert (ROOT / "tests" / file).exists(), (name, file)
        assert figure, name


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md", "docs/promises.md"])
def test_what_is_not_promised_is_linked(page):
    links = _LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert any(link.endswith("explanation/limits.md") for link in links)


def linked(page: Path) -> set[Path]:
    """The pages to which a page leads: by its links, or by a table of contents, in which `*` stands for its folder."""
    text = page.read_text(encoding="utf-8")
    found = {(page.parent / target.partition("#")[0]).resolve() for target in _LINK.findall(_FENCED.sub("", text))}
    for contents in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        names = [line.strip() for line in contents.splitlines() if line.strip() and not line.startswith(":")]
        found |= {path.resolve() for name in names for path in page.parent.glob(f"{name}.md")}
    return {path for path in found if path.suffix == ".md" and path.is_file()}


def test_every_page_can_be_reached_from_the_readme_in_three_steps():
    reached = {ROOT / "README.md"}
    for _ in range(3):
        reached |= {target for page in reached for target in linked(page)}
    assert {page for page in PAGES if page not in reached} == set()


def test_contributing_is_short():
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) < 50


@pytest.mark.parametrize("page", ["docs/reference/schema.md", "docs/how-to/kinds.md"])
def test_every_schema_that_a_page_shows_can_be_read(page, tmp_path):
    """A square table or a map that a page shows is the file that its schema names."""
    found = _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    for start, name in ((",", "minutes.csv"), ("industry,sector", "sectors.csv")):
        for text in (text for language, text in found if language == "text" and text.startswith(start)):
            (tmp_path / name).write_text(text, encoding="utf-8")
    schemas = [text for language, text in found if language == "toml" and "[[column]]" in text]
    assert len(schemas) >= 2
    for schema in schemas:
        assert Schema.parse(schema, folder=tmp_path).names


def test_the_schema_of_the_reference_has_every_simple_kind():
    found = _BLOCK.findall((ROOT / "docs/reference/schema.md").read_text(encoding="utf-8"))
    schema = Schema.parse(next(text for language, text in found if language == "toml"))
    kinds = {getattr(column, "kind", None) for column in schema}
    assert kinds == {"integer", "number", "date", "ordinal", "category", "boolean"}
