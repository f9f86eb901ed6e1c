"""All benchmarks of scale, one after the other, and the page about them.

    PYTHONPATH=benchmarks python -m scale [--quick]

Each part also runs by itself (`python -m scale.rows`, …), and goes on where it was interrupted. `--quick` tries
everything out in minutes, on small tables, and keeps nothing.
"""

from __future__ import annotations

import subprocess
import sys

from scale import page

PARTS = ("rows", "columns", "workers", "engines")


def main() -> None:
    given = sys.argv[1:]
    for part in PARTS:
        print(f"\n=== {part}", flush=True)
        # A process for each: what one has loaded must not count against another.
        subprocess.run([sys.executable, "-m", f"scale.{part}", *given], check=True)
    if "--quick" not in given:
        page.PAGE.write_text(page.page(), encoding="utf-8")
        print(page.PAGE.relative_to(page.ROOT))


if __name__ == "__main__":
    main()
