"""Many processes that charge one ledger, killed at random; a script, for `test_faults.py`."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

from certsynth.errors import CheckFailed
from certsynth.mechanisms import Neighbours, Unit
from certsynth.mechanisms.guarantee import Charge
from certsynth.mechanisms.ledger import Account

WORKERS = 6
ALL_SPENT = 7


def work(folder: Path, part: Fraction) -> NoReturn:
    account = Account(path=folder / "ledger", cap=Fraction(1), dataset="town")
    charge = Charge(part, Unit.EPSILON, Neighbours.REPLACE_ONE)
    with (folder / f"{os.getpid()}.drawn").open("a", buffering=1) as drawn:
        while True:
            try:
                reservation = account.reserve(charge, what="release")
            except CheckFailed:
                os._exit(ALL_SPENT)
            drawn.write(f"{reservation}\n")
            account.commit(reservation, None)


def main(folder: Path, kills: int) -> int:
    chance, killed, running, done = random.Random(), 0, set(), False
    while running or not done:
        while not done and len(running) < WORKERS:
            pid = os.fork()
            if not pid:
                work(folder, Fraction(1, 4 * kills))
            running.add(pid)
        time.sleep(chance.expovariate(400))
        victim = chance.choice(sorted(running))
        if killed < kills * 3 and not done:
            os.kill(victim, signal.SIGKILL)
            killed += 1
        for pid in list(running):
            if os.waitpid(pid, os.WNOHANG if pid != victim or done else 0)[0]:
                running.discard(pid)
                done = done or False
        if not done:
            done = _all_spent(folder)
    return killed


def _all_spent(folder: Path) -> bool:
    from certsynth import Ledger
    from certsynth.errors import InputError

    try:
        return Ledger.load(folder / "ledger").remaining == 0
    except InputError:
        return False


if __name__ == "__main__":
    sys.stdout.write(str(main(Path(sys.argv[1]), int(sys.argv[2]))))
