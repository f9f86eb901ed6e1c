"""An auditor that knows nothing of certsynth: it sees two piles of numbers, and what is claimed about them.

    python audits/judge.py SAMPLES.npz CLAIMS.json VERDICTS.json

Runs in an environment of its own (`requirements.txt`) where certsynth is not installed; `auditor.py` starts it.
scikit-learn learns to tell the piles apart from a quarter of each, as in Bichsel, Steffen, Bogunovic and Vechev,
"DP-Sniper" (2021): a mechanism is attacked by thresholds on a classifier's probability. Another quarter picks
classifier and threshold, and the other half is counted. What the counts mean is left to Microsoft's privacy-estimates:
lower bounds on ε by Clopper and Pearson, on which the verdict rests, and by Jeffreys' intervals at 95 %, to see what
it costs to be so sure. (Its joint Bayesian intervals take ten seconds each, and their integrals are not exact enough
for so small a probability of error.)
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
from privacy_estimates import AttackResults, compute_eps_lo
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

MILD = 1e-3  # for picking a threshold, of which nothing is concluded
MOST_THRESHOLDS = 60


def classifiers() -> dict[str, Any]:
    return {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "boosted trees": HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=12, random_state=0),
    }


def counted(first: np.ndarray, second: np.ndarray, threshold: float) -> AttackResults:
    """Guesses that it was the second table, at or above a threshold."""
    fp, tp = int((first >= threshold).sum()), int((second >= threshold).sum())
    return AttackResults(FN=len(second) - tp, FP=fp, TN=len(first) - fp, TP=tp)


def lower(count: AttackResults, delta: float, alarm: float) -> float:
    return float(compute_eps_lo(count=count, delta=delta, alpha=alarm, method="beta"))


def audit(first: np.ndarray, second: np.ndarray, *, delta: float, alarm: float) -> dict[str, Any]:
    quarter, half = len(first) // 4, len(first) // 2
    labels = np.repeat([0, 1], quarter)
    best: tuple[float, str, float, Any] = (-1.0, "", 0.0, None)
    for name, model in classifiers().items():
        model.fit(np.concatenate([first[:quarter], second[:quarter]]), labels)
        ones, others = (model.predict_proba(x[quarter:half])[:, 1] for x in (first, second))
        values = np.unique(np.quantile(np.concatenate([ones, others]), np.linspace(0.001, 0.999, MOST_THRESHOLDS)))
        for threshold in values:
            found = lower(counted(ones, others, threshold), delta, MILD)
            if found > best[0]:
                best = (found, name, float(threshold), model)
    _, name, threshold, model = best
    count = counted(*(model.predict_proba(x[half:])[:, 1] for x in (first, second)), threshold)
    found = lower(count, delta, alarm)
    likely = compute_eps_lo(count=count, delta=delta, alpha=0.05, method="jeffreys")
    return {
        "found at least": found,
        "at 95 %": float(likely),
        "by": f"{name}: {count.TP} and {count.FP} of {len(first) - half}",
    }


def main() -> None:
    samples, claims, verdicts = map(Path, sys.argv[1:])
    asked = json.loads(claims.read_text(encoding="utf-8"))
    packages = ("privacy-estimates", "scikit-learn", "statsmodels", "numpy", "scipy")
    rows = []
    with np.load(samples, allow_pickle=False) as arrays:
        for number, claim in enumerate(asked["claims"]):
            pair = (arrays[f"first-{number}"], arrays[f"second-{number}"])
            rows.append(claim | audit(*pair, delta=claim["delta"], alarm=asked["alarm"]))
    about = {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in packages}}
    verdicts.write_text(json.dumps({"judge": about, "rows": rows}), encoding="utf-8")


if __name__ == "__main__":
    main()
