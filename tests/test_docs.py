"""The documents say what there is: commands, options, public names, and links that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import certsynth
from certsynth import Schema
from certsynth.cli import main

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.name != "CHANGELOG.md")

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def options() -> list[tuple[str, str]]:
    return [
        (name, option)
        for name, command in main.commands.items()
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
    ]


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_is_in_the_readme(command):
    assert f"`certsynth {command}" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("command", "option"), options())
def test_every_option_is_documented_for_its_command(command, option):
    """In a row of the table of options that names the command; --json is for all of them."""
    if option == "--json":
        assert "Every command takes `--json`" in TEXT
        return
    rows = [line.split("|") for line in TEXT.splitlines() if line.startswith(f"| `{option}")]
    assert any(re.search(rf"\b{command}\b", row[2]) for row in rows)


def test_the_table_of_options_has_no_option_too_many():
    known = {option for _, option in options()}
    assert set(re.findall(r"^\| `(--[a-z-]+)", TEXT, re.MULTILINE)) <= known


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


def test_the_pages_that_the_readme_promises_are_there():
    explanations = ("deviations", "noise", "direct-certificate", "transport", "projection")
    wanted = {"docs/architecture.md", *(f"docs/explanation/{name}.md" for name in explanations)}
    assert wanted <= set(_LINK.findall((ROOT / "README.md").read_text(encoding="utf-8")))


def test_contributing_is_short():
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) < 50


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/kinds.md"])
def test_every_schema_that_a_page_shows_can_be_read(page, tmp_path):
    """A square table that a page shows is the file that its schema names."""
    found = _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    for text in (text for language, text in found if language == "text" and text.startswith(",")):
        (tmp_path / "minutes.csv").write_text(text, encoding="utf-8")
    schemas = [text for language, text in found if language == "toml" and "[[column]]" in text]
    assert len(schemas) >= 2
    for schema in schemas:
        assert Schema.parse(schema, folder=tmp_path).names
