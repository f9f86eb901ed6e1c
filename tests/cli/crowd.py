"""Runs one command many times at once, each in a process of its own; a script, for `test_cli_ledger.py`.

The processes are forked from this one, which has imported all that the command needs, so that they meet at the ledger
and not at the imports. Arguments: how many, a table, a schema, and the command. Each writes NUMBER.out and NUMBER.err;
the exit codes are printed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import NoReturn


def child(number: int, command: list[str]) -> NoReturn:
    for name, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(f"{number}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    from certsynth.cli import main

    try:
        main(command)
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(int(end.code or 0))
    os._exit(99)


def main() -> None:
    count, table, schema, *command = sys.argv[1:]
    import pandas as pd

    import certsynth.cli  # noqa: F401
    from certsynth import Schema, certify

    rows = pd.read_csv(table)
    certify(rows, rows.copy(), Schema.load(Path(schema)), epsilon=1)  # in memory: it starts no thread
    children = []
    for number in range(int(count)):
        pid = os.fork()
        if not pid:
            child(number, command)
        children.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    sys.stdout.write(json.dumps(codes))


if __name__ == "__main__":
    main()
