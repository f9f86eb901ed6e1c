"""SmartNoise synth: AIM or MST on bins of equal width. Runs in the environment of SmartNoise.

A bin's rows are all emitted at its middle. Columns with no more values than bins are given as labels. Missing values
are a number after the last.
"""

from __future__ import annotations

import asking
import numpy as np
import pandas as pd
from snsynth import Synthesizer
from snsynth.transform import BinTransformer, LabelTransformer, TableTransformer


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
        made = pd.DataFrame(model.sample(len(listed)), columns=[c["name"] for c in asked["columns"]])
        made.astype(float).round().astype(int).to_csv(asked["out"], index=False)
        return {
            "tables": {"": asked["out"]},
            "spent": {"epsilon": asked["epsilon"], "delta": float(model.delta)},
            "bins": used,
        }

    asking.answer(asked, work, packages=("smartnoise-synth", "mbi", "numpy", "pandas"))


if __name__ == "__main__":
    main()
