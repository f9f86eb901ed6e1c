"""OpenDP with mbi: a contingency table by AIM, at pure ε or at ρ; add/remove. Runs in the environment of OpenDP.

OpenDP asks for cut points. Each column gets `bins` of equal width, or one for each value where there are fewer; every
label has a bin. The first and the last are the bounds alone: of the outermost bins OpenDP emits a single value. Missing
values are a number after the last, and so have a bin of their own. Two tables come out of one release: the rows as
`synthesize` emits them, and rows drawn correctly from the same model. mbi 1.1 conditions a column on those that share a
measured table with it, and forgets the edges that its junction tree adds.
"""

from __future__ import annotations

import time
from pathlib import Path

import asking
import numpy as np
import opendp.prelude as dp
import polars as pl
from mbi import junction_tree, marginal_oracles
from opendp.extras.mbi._table import _deindex

dp.enable_features("contrib")


def cuts(low: int, high: int, bins: int) -> list[int]:
    """Where bins end, that is, their largest values; the last one ends nowhere."""
    if high - low < bins:
        return list(range(low, high))
    return np.unique(np.round(np.linspace(low, high - 1, bins - 1)).astype(int)).tolist()


def drawn(model, rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Rows from the joint law of the model, spread evenly over each conditional law, as mbi does it.

    Columns are drawn in the reverse of an elimination order, each given those drawn before that stand in one clique of
    the junction tree with it. Those are its neighbours in the triangulated graph, so nothing is forgotten.
    """
    tree, order = junction_tree.make_junction_tree(model.domain, [set(clique) for clique in model.cliques])
    cliques = [set(clique) for clique in tree.nodes]
    marginals = marginal_oracles.message_passing_stable(model.potentials.expand(list(tree.nodes)))
    found: dict[str, np.ndarray] = {}
    for column in order[::-1]:
        near = set().union(*(clique for clique in cliques if column in clique))
        given = tuple(name for name in found if name in near)
        table = np.asarray(marginals.project((*given, column)).datavector(flatten=False), dtype=float)
        table = table.clip(min=0).reshape(-1, table.shape[-1])
        sizes = [model.domain[name] for name in given]
        parent = np.ravel_multi_index([found[name] for name in given], sizes) if given else np.zeros(rows, dtype=int)
        total = np.cumsum(table, axis=1)
        found[column] = np.empty(rows, dtype=np.int64)
        for group in np.unique(parent):
            chosen = np.flatnonzero(parent == group)
            law = total[group] if total[group, -1] > 0 else np.arange(1.0, table.shape[1] + 1)
            evenly = (rng.permutation(len(chosen)) + rng.random(len(chosen))) / len(chosen)
            where = np.searchsorted(law, evenly * law[-1], side="right")
            found[column][chosen] = np.minimum(where, table.shape[1] - 1)
    return found


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
