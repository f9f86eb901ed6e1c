"""SmartNoise synth: AIM or MST on bins of equal width. Runs in the environment of SmartNoise.

A bin's rows are all emitted at its middle. Columns with no more values than bins are given as labels. Missing values
are a number after the last. Two tables come out of one release: the rows as `sample` emits them, and rows drawn
correctly from the same model.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import asking
import numpy as np
import pandas as pd
from joint import drawn
from mbi import MarkovRandomField
from snsynth import Synthesizer
from snsynth.transform import BinTransformer, LabelTransformer, TableTransformer


class Drawn:
    """A model of mbi whose rows are drawn correctly."""

    def __init__(self, model: MarkovRandomField, seed: int) -> None:
        self.model = model
        self.rng = np.random.default_rng(seed)

    def synthetic_data(self, rows: int) -> SimpleNamespace:
        codes = drawn(self.model, rows, self.rng)
        frame = pd.DataFrame({name: codes[name] for name in self.model.domain})
        return SimpleNamespace(df=frame, domain=self.model.domain)


def write(rows: list, names: list[str], path: str | Path) -> None:
    pd.DataFrame(rows, columns=names).astype(float).round().astype(int).to_csv(path, index=False)


def main() -> None:
    asked = asking.request()
    setting = asked["setting"]
    bins = setting["bins"]

    def work() -> dict:
        np.random.seed(asked["seed"])  # noqa: NPY002  that is what mbi draws rows with
        rows = pd.read_csv(asked["data"])
        transformers, used = [], {}
        for column in asked["columns"]:
            low, high = column["low"], column["high"] + bool(column.get("missing"))
            if column.get("missing"):
                rows[column["name"]] = rows[column["name"]].fillna(high).astype(int)
            if column["kind"] == "category" or high - low < bins:
                used[column["name"]] = high - low + 1
                transformers.append(LabelTransformer(nullable=False))
            else:
                used[column["name"]] = bins
                transformers.append(BinTransformer(bins=bins, lower=low, upper=high))
        table = TableTransformer(transformers)
        listed = [tuple(row) for row in rows.itertuples(index=False)]
        # Labels are learnt from every one that is possible, so that nothing is looked up in private rows.
        spans = [(c["low"], c["high"] - c["low"] + 1 + bool(c.get("missing"))) for c in asked["columns"]]
        longest = max(count for _, count in spans)
        possible = [tuple(low + step % count for low, count in spans) for step in range(longest)]
        table.fit(possible)
        model = Synthesizer.create(setting["model"].lower(), epsilon=asked["epsilon"], **setting.get("options", {}))
        model.fit(listed, transformer=table)
        names = [column["name"] for column in asked["columns"]]
        joint = Path(asked["out"]).with_suffix(".joint.csv")
        write(model.sample(len(listed)), names, asked["out"])
        again = time.perf_counter()
        model.synthesizer = Drawn(model.synthesizer, asked["seed"])
        write(model.sample(len(listed)), names, joint)
        return {
            "tables": {"as emitted": asked["out"], "drawn from its joint": str(joint)},
            "not counted": time.perf_counter() - again,
            "spent": {"epsilon": asked["epsilon"], "delta": float(model.delta)},
            "bins": used,
        }

    asking.answer(asked, work, packages=("smartnoise-synth", "mbi", "numpy", "pandas"))


if __name__ == "__main__":
    main()
