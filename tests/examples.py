"""The examples of a page, run one after the other in a folder of their own.

A comment before a block says what is special about it:

- `<!-- file: NAME -->`: the block is written to this file;
- `<!-- output -->`: the block is part of what the last example printed, up to its numbers; `…` stands for anything;
- `<!-- in a new folder -->`: what follows begins anew;
- `<!-- not run: WHY -->`: the block is for reading.

The end `# exit code 2` of a line says how the command must end. Every folder has a table `people.csv`, another one
`other.csv`, a schema for both, and the release that a page takes for granted. All are small, and mechanism and
resolution are fixed, so that nothing takes long.
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import certsynth.algorithm.plan
import certsynth.algorithm.release
from certsynth import Schema, demo
from certsynth.cli import main

ROOT = Path(__file__).parents[1]
ROWS = 3_000  # of fewer, noise could leave a vacuous certificate, and other words on the page
QUICK = ("age", "sex", "region", "employed")  # columns with few values, so that nothing takes long
PINNED = ("--resolution", "4", "--mechanism", "identity")

_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```", re.DOTALL | re.MULTILINE
)
_NUMBER = re.compile(r"[0-9](?:[0-9.,:+T-]*[0-9])?")
_TAKEN = re.compile(r"""(?<!certsynth)(?<!--out) release\b(?!-)|\brelease/|"release[/"]|^cd release""", re.MULTILINE)
_NEW_FOLDER = "<!-- in a new folder -->"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    code: str
    note: str

    @property
    def runs(self) -> bool:
        return self.language in ("sh", "python") and not self.note.startswith("not run")

    def takes_a_release(self) -> bool:
        return self.runs and _TAKEN.search(self.code) is not None

    def makes_a_release(self) -> bool:
        return self.runs and re.search(r"""--out release\b|out="release\"""", self.code) is not None


def blocks(text: str) -> list[Block]:
    return [Block(found["language"], found["code"], found["note"] or "") for found in _BLOCK.finditer(text)]


def run_page(text: str, folder: Path, patch: pytest.MonkeyPatch) -> int:
    """Run all examples of a page; how many blocks ran."""
    ran = 0
    for i, part in enumerate(text.split(_NEW_FOLDER)):
        here = folder / str(i)
        here.mkdir()
        ran += Session(here, blocks(part), patch).run()
    return ran


class Session:
    """A person who types what a page says."""

    def __init__(self, folder: Path, page: list[Block], patch: pytest.MonkeyPatch) -> None:
        self.folder, self.page, self.patch = folder, page, patch
        self.names: dict[str, Any] = {"__name__": "page"}
        self.printed = ""
        patch.chdir(folder)
        self._make_quick()
        self._lay_out()

    def run(self) -> int:
        for block in self.page:
            if block.note.startswith("file: "):
                (self.folder / block.note.removeprefix("file: ")).write_text(block.code, encoding="utf-8")
            elif block.note == "output":
                self._compare(block.code)
            elif block.runs and block.language == "sh":
                self.printed = "".join(self._shell(block.code))
            elif block.runs:
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(block.code, "page", "exec"), self.names)
                self.printed = out.getvalue()
        return sum(block.runs for block in self.page)

    def _make_quick(self) -> None:
        people, plan, release = demo.people, certsynth.algorithm.plan.plan, certsynth.algorithm.release.release
        if not isinstance(plan, functools.partial):  # nor again in the next folder
            pinned = {"resolution": 4, "mechanism": "identity"}
            self.patch.setattr(demo, "people", lambda rows, **options: people(min(rows, ROWS), **options))
            self.patch.setattr(certsynth.algorithm.plan, "plan", functools.partial(plan, **pinned))
            self.patch.setattr(certsynth.algorithm.release, "release", functools.partial(release, **pinned))

    def _lay_out(self) -> None:
        """What a page takes for granted."""
        town = {**demo.people(ROWS), "job": ["nurse", "baker", ""] * (ROWS // 3)}
        if not any("demo.write_csv" in block.code for block in self.page):
            demo.write_csv(town, Path("people.csv"))
        demo.write_csv(demo.shuffled(town), Path("other.csv"))
        self._edit(Path("schema.toml"))
        if any(block.takes_a_release() for block in self.page) and not any(b.makes_a_release() for b in self.page):
            list(self._shell("openssl genpkey -algorithm ed25519 -out key.pem"))
            list(self._shell("openssl pkey -in key.pem -pubout -out publisher.pem"))
            command = "certsynth release people.csv --schema schema.toml --epsilon 1 --out release --sign key.pem"
            list(self._shell(command))

    def _edit(self, schema: Path) -> None:
        """What a person does with a draft: public knowledge in place of the rows' own, and no draft any more."""
        said = "".join(block.code for block in self.page if block.runs or block.note)
        town = Schema.parse(demo.SCHEMA)
        columns = [name for name in town.names if name in QUICK or f'"{name}"' in said]
        schema.write_text(town.select(columns).to_toml(), encoding="utf-8")

    def _shell(self, code: str) -> Iterator[str]:
        lines = [line for line in code.splitlines() if line.strip() and not line.startswith(("make ", ". "))]
        if not any(line.startswith("certsynth ") for line in lines):
            yield self._foreign("\n".join(lines))
            return
        for line in lines:
            command = shlex.split(line, comments=True)
            yield self._certsynth(command[1:], line) if command[0] == "certsynth" else self._foreign(line)

    @staticmethod
    def _foreign(code: str) -> str:
        done = subprocess.run(["sh", "-e", "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, (code, done.stderr)
        return done.stdout

    def _certsynth(self, arguments: list[str], line: str) -> str:
        drafted = Path("schema.toml")
        if arguments[0] == "schema" and ("--out" not in arguments or "--out schema.toml" in line):
            drafted.unlink(missing_ok=True)  # a draft never overwrites a schema
        if arguments[0] == "plan":
            arguments = [str(ROWS) if word.isdigit() and int(word) > ROWS else word for word in arguments]
        if arguments[0] in ("plan", "release") and "--resolution" not in arguments:
            arguments = [*arguments, *PINNED]
        done = CliRunner().invoke(main, arguments)
        wanted = re.search(r"# exit code (\d)$", line)
        assert done.exit_code == (int(wanted[1]) if wanted else 0), (line, done.output, done.stderr)
        if arguments[0] == "schema" and drafted.exists() and Schema.load(drafted).draft:
            self._edit(drafted)
        return done.stdout

    def _compare(self, shown: str) -> None:
        """What is shown was printed, if numbers and the breaks of lines are left aside."""
        printed = shape(self.printed)
        for piece in shown.split("…"):
            assert shape(piece) in printed, (piece, self.printed)


def shape(text: str) -> str:
    """A text without its numbers and breaks.

    >>> shape("off by  0.0110.\\n") == shape("off by 0.2\\n.")
    True
    """
    return re.sub(r"\s+\.", ".", " ".join(_NUMBER.sub("# ", text).split()))
