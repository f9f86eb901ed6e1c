"""certsynth from the command line: nothing is measured but how long it takes, from the start to the finished folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from certsynth.cli import main as certsynth


def main() -> None:
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    options = asked["setting"].get("options", {})
    flags = [flag for name, value in options.items() for flag in (f"--{name.replace('_', '-')}", str(value))]
    line = ["release", asked["data"], "--schema", asked["schema"], "--epsilon", str(asked["epsilon"])]
    certsynth([*line, "--out", str(Path(asked["out"]).with_suffix(".command")), "--quiet", "--json", *flags])


if __name__ == "__main__":
    main()
