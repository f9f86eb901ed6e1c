"""The command line: every command parses, calls one public function, and prints.

Nothing heavy is imported before a command needs it, so that `certsynth --help` is quick.
"""

from __future__ import annotations

import click

from certsynth.cli import answer, certify, demo, evaluate, ledger, plan, release, report, schema, verify
from certsynth.cli.failure import Commands

__all__ = ["main"]


@click.group("certsynth", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="certsynth")
def main() -> None:
    """Private synthetic tables with a certificate of how far they are from the real rows.

    Start with `certsynth demo`. With --json a command prints one JSON object and nothing else on standard output.
    The exit code is 0 if all is done, 1 if a check failed, 2 for bad input.
    """


for _module in (demo, schema, plan, release, verify, answer, report, certify, ledger, evaluate):
    main.add_command(_module.command)
