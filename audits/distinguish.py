"""An end-to-end distinguishing attack: thousands of whole releases of two neighbouring tables.

    python audits/distinguish.py [--quick] [--effort X] [--processes P] [--only WORD]

For each case an event is chosen on one half of the releases and counted in the other; `evidence.py` has the bound and
its sources. Sound cases must stay below what they claim, and each broken one must be caught. The exit code says so.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from typing import Any

from evidence import ALARM, TOTAL_ALARM, Verdict, attainable, judge
from releases import Case, Sample, ideal_ratios, released, sample
from writing import say_versions, table, write

HIDDEN = {"neighbours": "add-remove", "rows": 6}
PLUG_IN = {"certificate_share": 0, "loss": "transport"}
ONE = {"sparsity": 1, "resolution": 2, "mechanism": "haar"}
PAIRS = {"sparsity": 2, "resolution": 2, "mechanism": "identity"}

SOUND = (
    Case("one column, direct certificate", 1, {**ONE, "epsilon": 2}, runs=1000),
    Case("one column, half of the budget for the certificate", 1, {**ONE, "epsilon": 2, "certificate_share": "0.5"}),
    Case("one column, hidden n", 1, {**ONE, **HIDDEN, "epsilon": 2}),
    Case("three columns one by one", 3, {**ONE, **PLUG_IN, "epsilon": 3}),
    Case("pairs, particles", 2, {**PAIRS, "epsilon": 4}),
    Case("pairs, particles, hidden n", 2, {**PAIRS, **HIDDEN, "epsilon": 4}),
    Case("one number, displacement", 1, {**ONE, **PLUG_IN, "epsilon": 2}, kind="number"),
    Case("choice among 3 tables", 2, {**PAIRS, "epsilon": 4, "loss": "transport", "candidates": 3}),
    Case("one column, Gaussian", 1, {**ONE, "epsilon": 8, "delta": "0.01"}),
    Case("pairs, Gaussian, hidden n", 2, {**PAIRS, **HIDDEN, "epsilon": 8, "delta": "0.001"}),
)
BROKEN = (
    Case("one column", 1, {**ONE, **PLUG_IN, "epsilon": "1.5"}, broken="half the noise", runs=1400),
    Case(
        "one column, Gaussian",
        1,
        {**ONE, **PLUG_IN, "epsilon": 4, "delta": "0.01"},
        broken="a third of the noise",
    ),
    Case("five columns", 5, {**ONE, **PLUG_IN, "epsilon": "1.5"}, broken="sensitivity of one marginal", runs=800),
    Case("one column", 1, {**ONE, "epsilon": 1}, broken="no noise on the direct certificate", runs=300),
    Case(
        "one column, hidden n",
        1,
        {**ONE, **HIDDEN, **PLUG_IN, "epsilon": 1},
        broken="as many rows as there are",
        runs=300,
    ),
    Case("one column", 1, {**ONE, **PLUG_IN, "epsilon": 1}, broken="seeded noise", runs=300),
)


def verdicts(case: Case, seen: Sample) -> list[Verdict]:
    """Of ε at the stated δ and, where privacy is counted in it, of ρ."""
    stated, delta, rho = (seen.privacy[key] for key in ("epsilon", "delta", "rho"))
    made = [judge(*seen.scores, claim="epsilon", stated=float(stated), delta=float(delta or 0))]
    if rho is not None:
        made.append(judge(*seen.scores, claim="rho", stated=float(rho)))
    return made


def ideal(case: Case, verdict: Verdict, delta: float) -> float:
    """What the best attack would find in as many runs against the release as it should be."""
    whole = dataclasses.replace(case, broken=None)
    ratios = ideal_ratios(whole, released(whole, whole.tables()[0]), 200_000)
    return attainable(*ratios, claim=verdict.claim, delta=delta, runs=verdict.runs, alarm=ALARM)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a fifth of the releases of sound cases")
    parser.add_argument("--effort", type=float, default=1.0, help="times as many releases of sound cases")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose name holds this word")
    asked = parser.parse_args()
    say_versions("certsynth", "opendp", "numpy", "scipy")
    rows: list[dict[str, Any]] = []
    for case in (*SOUND, *BROKEN):
        if asked.only not in f"{case.name} {case.broken}":
            continue
        effort = 0.2 if asked.quick else asked.effort
        runs = case.runs if case.broken else round(case.runs * effort)
        start = time.perf_counter()
        seen = sample(case, runs, processes=asked.processes)
        seconds = time.perf_counter() - start
        for verdict in verdicts(case, seen):
            rows.append(
                {
                    "case": case.name,
                    "broken": case.broken,
                    "what": "rho" if verdict.claim == "rho" else f"epsilon at delta {seen.privacy['delta'] or 0}",
                    "claimed": verdict.stated,
                    "found at least": verdict.found,
                    "ideal attack": ideal(case, verdict, float(seen.privacy["delta"] or 0)),
                    "by": f"{verdict.event.score}: {verdict.likely} and {verdict.unlikely} of {verdict.runs}",
                    "releases": 2 * runs,
                    "seconds": round(seconds, 1),
                    "refuted": verdict.refuted,
                }
            )
            print(table([rows[-1]], headed=len(rows) == 1), flush=True)
    caught = {(r["case"], r["broken"]) for r in rows if r["broken"] and r["refuted"]}
    missed = {(r["case"], r["broken"]) for r in rows if r["broken"]} - caught
    accused = [r for r in rows if not r["broken"] and r["refuted"]]
    for r in rows:
        r["verdict"] = ("CAUGHT" if r["broken"] else "ACCUSED") if r["refuted"] else "below the claim"
    print(f"\nEach bound is wrong with probability at most {ALARM:g}, any of them with {TOTAL_ALARM:g}.")
    sound = sum(not r["broken"] for r in rows)
    print(f"{sound - len(accused)} bounds of sound releases below the claim, {len(accused)} above.")
    print(f"{len(caught)} broken ones CAUGHT, {len(missed)} missed.")
    write("distinguish", {"alarm": ALARM, "rows": rows})
    return int(bool(accused or missed))


if __name__ == "__main__":
    sys.exit(main())
