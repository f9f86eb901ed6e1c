"""The certificate as it stands in the folder: plain values, read back and checked field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from certsynth.certificate.direct import Direct
from certsynth.certificate.plug_in import PlugIn, Proxy, Terms
from certsynth.mechanisms import Measurement
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.mechanisms.sparse import SparseMeasurement
from certsynth.transport import Path

FORMAT = "certsynth-certificate/2"

COUNTED, ADAPTING = "number of rows", "choosing the resolution"
DISPLACEMENT, LOSS_OF_ROWS, LOSS_OF_SINGLES = "mean displacement", "loss of the rows", "loss of single columns"
"""What parts of the budget are spent on beside the measurements, as a release says it."""


def measuring(ways: int, sparsity: int) -> str:
    """What the budget of a measurement is spent on, as a release says it: of so many columns at once."""
    if ways == sparsity:
        return "noisy marginals"
    return "noisy single columns" if ways == 1 else f"noisy marginals of {ways} columns"


def choosing(candidates: int) -> str:
    return f"choosing among {candidates} tables"


NO_PLUG_IN = (
    "there is no plug-in certificate: of a grid with so many cells only those that stand out are kept, and the law of "
    "their error is not known without the rows"
)


def path_length(measurement: Measurement) -> float | None:
    """Of the longest path that cells are lined up along: the path loss, and wavelets, pay for it. None where cells are
    too many to be lined up.

    Paper: Theorem 2 [general-rates]
    """
    if isinstance(measurement, SparseMeasurement):
        return None
    marginals, order = measurement.marginals, measurement.strategy.order
    return max(Path.along(marginals.of(subset), order).length for subset in marginals.subsets)


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """No 1-Lipschitz statistic of the columns of one of the subsets is off by more than `bound`.

    The smaller of the direct and the plug-in bound, valid at `confidence`: each has its share of the failure
    probability, so that choosing between them after looking is allowed. Where there is no plug-in certificate, the
    direct one has all of it.
    """

    confidence: float
    plug_in: Mapping[Proxy, PlugIn]
    direct: Direct | None = None
    single: Direct | None = None

    def __post_init__(self) -> None:
        if not self.plug_in and not self.direct:
            raise ValueError("there is nothing that certifies")

    @property
    def tightest(self) -> PlugIn | None:
        """The plug-in certificate with the transport proxy where there is one: it is never the larger in practice."""
        return self.plug_in.get("transport") or self.plug_in.get("path")

    @property
    def kind(self) -> str:
        plug = self.tightest
        return "direct" if self.direct and (plug is None or self.direct.bound < plug.bound) else "plug-in"

    @property
    def bound(self) -> float:
        return min(each.bound for each in (self.tightest, self.direct) if each)

    @property
    def single_column_bound(self) -> float:
        """The bound for statistics of one column: never above that for more."""
        return min([self.bound] + ([self.single.bound] if self.single else []))

    def to_json(self) -> dict[str, Any]:
        return {
            "bound": self.bound,
            "confidence": self.confidence,
            "kind": self.kind,
            "terms": self._leading_terms(),
            "single_column_bound": self.single_column_bound,
            "subsets": self._subsets(),
            "direct": direct_json(self.direct) if self.direct else None,
            "single_column": direct_json(self.single) if self.single else None,
            "plug_in": {proxy: _plug_in(each) for proxy, each in self.plug_in.items()},
            "no_plug_in": None if self.plug_in else NO_PLUG_IN,
        }

    def _leading_terms(self) -> dict[str, float]:
        if self.kind == "direct":
            assert self.direct
            return _direct_terms(self.direct)
        assert self.tightest
        return _terms(self.tightest.worst)

    def _subsets(self) -> list[dict[str, Any]]:
        """Each with the smaller bound: the direct certificate has one for all."""
        most, plug = self.direct.bound if self.direct else 1.0, self.tightest
        if plug is None:
            assert self.direct
            return [{"columns": list(columns), "bound": most} for columns in self.direct.subsets]
        return [
            {"columns": list(columns), "bound": min(terms.bound, most)}
            for columns, terms in zip(plug.subsets, plug.terms, strict=True)
        ]


def direct_json(direct: Direct) -> dict[str, Any]:
    """A direct certificate as it stands in certificate.json."""
    return {
        "bound": direct.bound,
        "confidence": float(direct.confidence),
        str(direct.cost.spent.unit): decimal_text(direct.cost.spent.amount),
        "terms": _direct_terms(direct),
    }


def _direct_terms(direct: Direct) -> dict[str, float]:
    estimate = max(direct.estimates)
    return {"measured_loss": estimate, "slack": direct.bound - estimate}


def _plug_in(plug: PlugIn) -> dict[str, Any]:
    diagnostic = plug.diagnostic
    return {
        "bound": plug.bound,
        "confidence": float(plug.confidence),
        "terms": _terms(plug.worst),
        "subsets": [
            {"columns": list(columns), "bound": terms.bound, "terms": _terms(terms)}
            for columns, terms in zip(plug.subsets, plug.terms, strict=True)
        ],
        "diagnostic": {
            "fit": diagnostic.fit,
            "noise_mean": diagnostic.noise_mean,
            "noise_low": diagnostic.noise_low,
            "noise_high": diagnostic.noise_high,
            "worth_optimising": diagnostic.worth_optimising,
        },
    }


def _terms(terms: Terms) -> dict[str, float]:
    return {
        "discretisation": terms.discretisation,
        "privatisation": terms.privatisation,
        "projection": terms.projection,
    }
