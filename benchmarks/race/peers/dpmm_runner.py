"""dpmm: AIM, MST or PrivBayes with its own discretisation. Runs in the environment of dpmm.

Its `epsilon` is the budget of the model, and `proc_epsilon` comes on top of it: together they are the budget of the
race. Bounds and labels are given, and missing values are left to dpmm, which gives them a column of their own. The
number of rows to draw is that of the private table.
"""

from __future__ import annotations

import asking
import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

PIPELINES = {"AIM": AIMPipeline, "MST": MSTPipeline, "PrivBayes": PrivBayesPipeline}
PROCESSING = 0.1  # share of ε for discretisation: its default where ε is 1


def main() -> None:
    asked = asking.request()
    setting = asked["setting"]
    model, labelled = setting["model"], setting.get("labels up to", 0)

    def work() -> dict:
        rows = pd.read_csv(asked["data"])
        domain = {}
        for column in asked["columns"]:
            name, low, high = column["name"], column["low"], column["high"]
            if column["kind"] == "category" or high - low < labelled:
                rows[name] = rows[name].clip(low, high).astype("category")
                domain[name] = {"categories": list(range(low, high + 1))}
            else:
                domain[name] = {"lower": low, "upper": high}
        processing = PROCESSING * asked["epsilon"]
        pipeline = PIPELINES[model](
            epsilon=asked["epsilon"] - processing,
            proc_epsilon=processing,
            **setting.get("options", {}),
        )
        pipeline.fit(rows, domain, random_state=asked["seed"])
        made = pipeline.generate(n_records=len(rows), random_state=asked["seed"])
        made.to_csv(asked["out"], index=False)
        bins = {name: int(count) for name, count in pipeline.proc.n_bins.items()}
        return {
            "tables": {"": asked["out"]},
            "spent": {"epsilon": asked["epsilon"], "delta": 1e-5, "for discretisation": processing},
            "bins": bins | {name: len(each["categories"]) for name, each in domain.items() if "categories" in each},
        }

    asking.answer(asked, work, packages=("dpmm", "numpy", "scipy", "pandas"))


if __name__ == "__main__":
    main()
