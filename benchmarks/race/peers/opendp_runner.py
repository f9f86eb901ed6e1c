"""OpenDP with mbi: a contingency table by AIM, at pure ε or at ρ; add/remove. Runs in the environment of OpenDP.

OpenDP asks for cut points. Each column gets `bins` of equal width, or one for each value where there are fewer; every
label has a bin. The first and the last are the bounds alone: of the outermost bins OpenDP emits a single value. Missing
values are a number after the last, and so have a bin of their own. Two tables come out of one release: the rows as
`synthesize` emits them, and rows drawn correctly from the same model.
"""

from __future__ import annotations

import time
from pathlib import Path

import asking
import numpy as np
import opendp.prelude as dp
import polars as pl
from joint import drawn
from opendp.extras.mbi._table import _deindex

dp.enable_features("contrib")


def cuts(low: int, high: int, bins: int) -> list[int]:
    """Where bins end, that is, their largest values; the last one ends nowhere."""
    if high - low < bins:
        return list(range(low, high))
    return np.unique(np.round(np.linspace(low, high - 1, bins - 1)).astype(int)).tolist()


def main() -> None:
    asked = asking.request()
    setting = asked["setting"]
    budget = {"rho": setting["rho"]} if "rho" in setting else {"epsilon": asked["epsilon"]}
    edges = {}
    for column in asked["columns"]:
        low, high = column["low"], column["high"] + bool(column.get("missing"))
        # Labels are codes too: with a bin for each of them none is mixed with another.
        bins = high - low + 1 if column["kind"] == "category" else setting["bins"]
        edges[column["name"]] = cuts(low, high, bins)
    absent = {column["name"]: column["high"] + 1 for column in asked["columns"] if column.get("missing")}

    def work() -> dict:
        np.random.seed(asked["seed"])  # noqa: NPY002  that is what OpenDP and mbi draw rows with
        context = dp.Context.compositor(
            data=pl.scan_csv(asked["data"]).with_columns(pl.col(name).fill_null(code) for name, code in absent.items()),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(**budget),
        )
        algorithm = dp.mbi.AIM(**setting.get("options", {}))
        query = context.query(**budget).select(*edges)
        table = query.contingency_table(cuts=edges, algorithm=algorithm).release()
        made = table.synthesize()
        made.write_csv(asked["out"])
        again = time.perf_counter()
        codes = drawn(table.model, made.height, np.random.default_rng(asked["seed"]))
        joint = Path(asked["out"]).with_suffix(".joint.csv")
        columns = {name: _deindex(codes[name], table.keys[name], cuts=table.cuts.get(name)) for name in edges}
        pl.DataFrame(columns).write_csv(joint)
        return {
            "tables": {"as emitted": asked["out"], "drawn from its joint": str(joint)},
            "spent": {"epsilon": asked["epsilon"], "delta": setting.get("delta", 0.0)},
            "bins": {name: len(each) + 1 for name, each in edges.items()},
            "measured": [list(clique) for clique in table.marginals.cliques()],
            "not counted": time.perf_counter() - again,
        }

    asking.answer(asked, work, packages=("opendp", "mbi", "jax", "numpy", "polars"))


if __name__ == "__main__":
    main()
