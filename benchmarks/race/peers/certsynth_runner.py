"""certsynth itself, by the call from Python. Runs in the project's own environment."""

from __future__ import annotations

from pathlib import Path

import asking

from certsynth import Schema, release


def main() -> None:
    asked = asking.request()
    options, folder = asked["setting"].get("options", {}), Path(asked["out"]).with_suffix("")
    schema = Schema.load(asked["schema"])

    def work() -> dict:
        made = release(asked["data"], schema, epsilon=str(asked["epsilon"]), seed=asked["seed"], out=folder, **options)
        return {
            "tables": {"": str(folder / "synthetic.csv")},
            "spent": {"epsilon": asked["epsilon"], "delta": float(options.get("delta", 0))},
            "certificate": made.certificate.bound,
            "statistics": made.document["certificate"].get("statistics"),
        }

    asking.answer(asked, work, packages=("certsynth", "numpy", "scipy", "opendp", "numba", "duckdb"))


if __name__ == "__main__":
    main()
