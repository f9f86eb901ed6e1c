"""Writes commands.md, beside this file, from the command line itself: the texts are those of `--help`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from certsynth.cli import main
from certsynth.cli.options import group_options

PAGE = Path(__file__).with_name("commands.md")

HEAD = """# Commands

All that `certsynth COMMAND --help` says, in one place. With `--json`, every command prints one JSON object on standard
output ([its keys](json.md)); messages go to standard error. `certsynth --version` prints the version. No command
overwrites an existing file.

Output is wrapped at the width of the terminal. Elsewhere, as in a pipe, lines have at most 100 characters, or as many
as the environment variable `COLUMNS` says, and a note or an error is one line. Terminals show colour unless `NO_COLOR`
is set.

"""

EXIT_CODES = """## Exit codes

| code | meaning |
|---|---|
| 0 | success |
| 1 | `check` or `verify` found something wrong, a ledger is full or was changed, or some queries have no answer |
| 2 | bad input or an internal error; nothing was written unless the line says so |
| 130 | interrupted, by Ctrl-C or a polite request to end |

A mistake gives one line on standard error. It names the file, the column or the option, and says what to do. It never
quotes a cell of a table.

## Environment variables

| variable | what it does |
|---|---|
| `CERTSYNTH_CACHE` | the folder in which plans and choices are remembered (`~/.cache/certsynth`); `off` keeps nothing |
| `CERTSYNTH_DEBUG` | `1` shows the traceback of a fault inside certsynth: it can show private values, so keep it |
| `CERTSYNTH_DATA` | the folder with survey tables that benchmarks and some slow tests read; nothing else reads it |

This page is written by `python docs/reference/make_commands.py`.
"""


def page() -> str:
    """The page as it must be."""
    return HEAD + "".join(f"{section}\n" for section in sections()) + EXIT_CODES


def sections() -> Iterator[str]:
    for name, command in main.commands.items():
        context = click.Context(command, info_name=f"certsynth {name}", **main.context_settings)
        usage = " ".join(command.collect_usage_pieces(context))
        yield f"## certsynth {name}\n\n```text\ncertsynth {name} {usage}\n```\n\n{described(command)}"


def described(command: click.Command) -> str:
    """What a command does, and all that it takes."""
    text = quoted(inspect.cleandoc(command.help or ""))
    lists = [
        f"{heading}:\n\n" + "".join(f"{item(option, click.Context(command))}\n" for option in options)
        for heading, options in group_options(command.params).items()
    ]
    return "\n".join([f"{text}\n", *lists])


def item(option: click.Option, context: click.Context) -> str:
    """One option, as a line of a list."""
    value = "" if option.is_flag else f" {option.make_metavar(context)}"
    extra = [word for word, holds in (("required", option.required), ("repeatable", option.multiple)) if holds]
    if option.show_default and option.default is not None:
        extra.append(f"by default `{option.default}`")
    told = f" ({', '.join(extra)})" if extra else ""
    return f"- `{'`, `'.join(option.opts)}{value}`{told}: {quoted(option.help or '')}"


def quoted(text: str) -> str:
    """Options in a text as code."""
    return re.sub(r"(?<![`\w-])--[a-z-]+", r"`\g<0>`", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
