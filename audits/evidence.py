"""What counts as evidence against a privacy claim: lower bounds on ε and ρ from how often an event was seen.

An attack is an event E: "this score of a release is at least t". If the release is (ε, δ)-differentially private, then
for neighbouring tables, in both directions and for the complement of E as well,

    P(E | one) ≤ e^ε P(E | other) + δ

(Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", 2015, theorem 2.1). So with a lower
bound p on the first probability and an upper bound q on the second, ε is at least ln((p − δ)/q) and at least
ln((1 − q − δ)/(1 − p)). If it is ρ-zero-concentrated (Bun and Steinke, 2016), then Rényi divergences of all orders α
are at most αρ, and what is computed from a release has none larger: ρ is at least D_α(Bern(p) ‖ Bern(q))/α.

p and q are those of Clopper and Pearson ("The use of confidence or fiducial limits", 1934), each wrong with
probability at most half of `alarm`. The event is chosen by other runs than those that are counted, so that nothing is
to be paid for having tried many.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

TOTAL_ALARM = 1e-6
"""The probability that a run of an audit accuses a sound mechanism, of whatever."""

MOST_BOUNDS = 20
"""How many bounds an audit may compute of mechanisms that should be sound: each gets an equal part of TOTAL_ALARM."""

ALARM = TOTAL_ALARM / MOST_BOUNDS

_ORDERS = 1 + np.geomspace(1e-4, 50, 120)
_THRESHOLDS = 200
MILD = 0.01
"""The alarm by which an event is chosen: nothing is concluded from it. With thousands of runs a smaller one is better,
since events that are rare look better than they are."""

Scores = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Event:
    """`score` is at least `threshold`; `rises` says that this is likelier for the second table."""

    score: str
    threshold: float
    rises: bool

    def seen(self, first: Scores, second: Scores) -> tuple[int, int, int]:
        """How often it happened where it is likely, where it is not, and among how many of each."""
        counts = [int((x[self.score] >= self.threshold).sum()) for x in (first, second)]
        sizes = [len(x[self.score]) for x in (first, second)]
        if sizes[0] != sizes[1]:
            raise ValueError("both tables need as many runs")
        likely, unlikely = reversed(counts) if self.rises else counts
        return likely, unlikely, sizes[0]


def rates(likely: np.ndarray, unlikely: np.ndarray, runs: int, alarm: float) -> tuple[np.ndarray, np.ndarray]:
    """A lower bound on the probability of what was seen `likely` times and an upper one for `unlikely`, by Clopper and
    Pearson: both hold with probability at least 1 − `alarm`.

    >>> [round(float(x), 3) for x in rates(np.array(1000), np.array(0), 1000, 1e-6)]
    [0.986, 0.014]
    """
    likely, unlikely = np.asarray(likely), np.asarray(unlikely)
    low = np.where(likely > 0, beta.ppf(alarm / 2, np.maximum(likely, 1), runs - likely + 1), 0.0)
    high = np.where(unlikely < runs, beta.isf(alarm / 2, unlikely + 1, np.maximum(runs - unlikely, 1)), 1.0)
    return low, high


def epsilon_bound(likely: np.ndarray, unlikely: np.ndarray, runs: int, *, delta: float, alarm: float) -> np.ndarray:
    """ε is at least this, or something happened that has a probability of at most `alarm`."""
    p, q = rates(likely, unlikely, runs, alarm)
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = np.log(np.maximum(p - delta, 0) / q)
        other = np.log(np.maximum(1 - q - delta, 0) / (1 - p))
    return np.maximum(np.maximum(np.nan_to_num(plain, nan=0.0), np.nan_to_num(other, nan=0.0)), 0)


def rho_bound(likely: np.ndarray, unlikely: np.ndarray, runs: int, *, alarm: float) -> np.ndarray:
    """The same for ρ. The divergence of two coins falls as their probabilities come closer."""
    p, q = (np.atleast_1d(x)[:, None] for x in rates(likely, unlikely, runs, alarm))
    a = _ORDERS[None]
    best = np.zeros(len(p))
    with np.errstate(divide="ignore", invalid="ignore"):
        for x, y in ((p, q), (q, p)):
            heads = a * np.log(x) + (1 - a) * np.log(y)
            tails = a * np.log1p(-x) + (1 - a) * np.log1p(-y)
            divergence = np.logaddexp(heads, tails) / (a - 1)
            best = np.maximum(best, np.nan_to_num((divergence / a).max(axis=1), nan=0.0, posinf=0.0))
    return np.where((p > q)[:, 0], best, 0.0).reshape(np.shape(likely))


def bound_of(claim: str, likely: np.ndarray, unlikely: np.ndarray, runs: int, delta: float, alarm: float) -> np.ndarray:
    if claim == "rho":
        return rho_bound(likely, unlikely, runs, alarm=alarm)
    return epsilon_bound(likely, unlikely, runs, delta=delta, alarm=alarm)


def best_event(first: Scores, second: Scores, *, claim: str, delta: float, mild: float = MILD) -> Event:
    """Of all scores, thresholds and directions the event that would accuse most, on runs that are not counted later."""
    best, strongest = Event(next(iter(first)), math.inf, False), -1.0
    for score in first:
        ones, others = np.sort(first[score]), np.sort(second[score])
        values = np.unique(np.concatenate([ones, others]))
        if len(values) > _THRESHOLDS:
            values = np.unique(np.quantile(values, np.linspace(0, 1, _THRESHOLDS), method="nearest"))
        above = [len(x) - np.searchsorted(x, values, side="left") for x in (ones, others)]
        for rises in (False, True):
            likely, unlikely = reversed(above) if rises else above
            found = bound_of(claim, likely, unlikely, len(ones), delta, mild)
            if found.max() > strongest:
                strongest, at = float(found.max()), int(found.argmax())
                best = Event(score, float(values[at]), rises)
    return best


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an attack on fresh runs says about one claim."""

    claim: str
    stated: float
    found: float
    event: Event
    likely: int
    unlikely: int
    runs: int

    @property
    def refuted(self) -> bool:
        return self.found > self.stated


def judge(
    first: Scores,
    second: Scores,
    *,
    claim: str,
    stated: float,
    delta: float = 0.0,
    alarm: float = ALARM,
    mild: float = MILD,
) -> Verdict:
    """Choose an event by one half of the runs and count it in the other.

    The first quarter also teaches the score that looks outputs up among those seen before: it is made here, from
    "fingerprint".
    """
    runs = len(next(iter(first.values())))
    half, quarter = runs // 2, runs // 4
    first, second = _with_memory(first, second, quarter)
    pick = [{k: v[quarter:half] for k, v in x.items()} for x in (first, second)]
    count = [{k: v[half:] for k, v in x.items()} for x in (first, second)]
    event = best_event(*pick, claim=claim, delta=delta, mild=mild)
    likely, unlikely, n = event.seen(*count)
    found = float(bound_of(claim, np.array(likely), np.array(unlikely), n, delta, alarm))
    return Verdict(claim, stated, found, event, likely, unlikely, n)


def _with_memory(first: Scores, second: Scores, taught: int) -> tuple[Scores, Scores]:
    """Fingerprints replaced by how much oftener each was seen for the second table than for the first."""
    if "fingerprint" not in first:
        return first, second
    often: dict[float, float] = {}
    for x, sign in ((first, -1), (second, 1)):
        for key in x["fingerprint"][:taught].tolist():
            often[key] = often.get(key, 0) + sign
    made = []
    for x in (first, second):
        seen = np.array([often.get(key, 0.0) for key in x["fingerprint"].tolist()])
        made.append({**{k: v for k, v in x.items() if k != "fingerprint"}, "seen before": seen})
    return made[0], made[1]


def attainable(first: np.ndarray, second: np.ndarray, *, claim: str, delta: float, runs: int, alarm: float) -> float:
    """What an ideal attack would find in as many runs, from draws of the likelihood ratio under both tables."""
    values = np.unique(np.concatenate([first, second]))
    values = np.unique(np.quantile(values, np.linspace(0, 1, 4 * _THRESHOLDS), method="nearest"))
    above = [1 - np.searchsorted(np.sort(x), values, side="left") / len(x) for x in (first, second)]
    best = 0.0
    for likely, unlikely in (above, above[::-1]):
        counts = [np.rint(x * runs).astype(int) for x in (likely, unlikely)]
        best = max(best, float(bound_of(claim, *counts, runs, delta, alarm).max()))
    return best
