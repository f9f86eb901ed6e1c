"""Many processes that charge one ledger after the other, killed at random; a script, for `test_faults.py`."""

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
CHARGE = Charge(Fraction(1, 40), Unit.EPSILON, Neighbours.REPLACE_ONE)


def work(folder: Path) -> NoReturn:
    """Spend what is left of each ledger in turn. What is noted as drawn stands for the noise of a release."""
    (folder / "drawn").mkdir(exist_ok=True)
    with (folder / "drawn" / str(os.getpid())).open("a", buffering=1) as drawn:
        number = 0
        while True:
            account = Account(path=folder / f"{number}.ledger", cap=Fraction(1), dataset="town")
            try:
                reservation = account.reserve(CHARGE, what="release")
            except CheckFailed:
                number += 1
                continue
            drawn.write(f"{reservation}\n")
            account.commit(reservation, None)


def main(folder: Path, kills: int) -> None:
    chance, running = random.Random(), set()
    for killed in range(kills + WORKERS - 1):
        while killed < kills and len(running) < WORKERS:
            pid = os.fork()
            if not pid:
                work(folder)
            running.add(pid)
        time.sleep(chance.expovariate(50))
        victim = chance.choice(sorted(running))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        running.discard(victim)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
