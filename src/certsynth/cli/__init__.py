"""The command line: each command parses its options, calls one public function, and prints the result.

Heavy modules are imported only by the commands that need them, so that `certsynth --help` stays fast.
"""

from __future__ import annotations

import click

from certsynth.cli import answer, certify, check, demo, evaluate, ledger, plan, release, report, schema, verify
from certsynth.cli.failure import Commands

__all__ = ["main"]


@click.group("certsynth", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="certsynth")
def main() -> None:
    """Private synthetic tables with a certificate of their distance from the real rows.

    Start with `certsynth demo`. With --json a command prints one JSON object and nothing else on standard output.
    The exit code is 0 for success, 1 if a check failed, and 2 for bad input.
    """


for _module in (demo, schema, check, plan, release, verify, answer, report, certify, ledger, evaluate):
    main.add_command(_module.command)
