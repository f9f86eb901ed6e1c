"""SmartNoise synth: AIM or MST on bins of equal width. Runs in the environment of SmartNoise.

A bin's rows are all emitted at its middle. Columns with no more values than bins are given as labels.
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
            low, high = column["low"], column["high"]
            used[column["name"]] = min(bins, high - low + 1)
            if high - low < bins:
                transformers.append(LabelTransformer(nullable=False))
            else:
                transformers.append(BinTransformer(bins=bins, lower=low, upper=high))
        table = TableTransformer(transformers)
        listed = [tuple(row) for row in rows.itertuples(index=False)]
        # Labels are learnt from every one that is possible, so that nothing is looked up in private rows.
        longest = max(column["high"] - column["low"] + 1 for column in asked["columns"])
        possible = [
            tuple(c["low"] + step % (c["high"] - c["low"] + 1) for c in asked["columns"]) for step in range(longest)
        ]
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
