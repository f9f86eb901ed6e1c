"""Results as sentences, small tables and JSON. Bounds are rounded so that the printed statements stay true."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import click

from certsynth.cli.layout import table
from certsynth.record.form import said_of
from certsynth.record.record import CertificateRecord, DirectRecord, ExceptionsRecord, PlugInRecord

SHOWN = 5  # subsets listed; the JSON has all

HELPS = "More rows, fewer columns, a lower sparsity, a workload or a larger epsilon help."
PLAN_IS_FREE = "Every further run spends its budget again; `certsynth plan` tries settings without spending anything."

_SHORT = Decimal("0.0001")

_TERMS = {
    "measured_loss": "measured loss, with noise",
    "slack": "slack for that noise",
    "discretisation": "discretisation",
    "privatisation": "privatisation",
    "projection": "projection",
}


def print_json(result: Mapping[str, Any]) -> None:
    """Print the result as the only object on stdout. NaN is not valid JSON and raises an error."""
    click.echo(json.dumps(result, indent=2, allow_nan=False))


def upward(value: float) -> str:
    """Four decimals, never below the value.

    >>> upward(0.01881), upward(1.0), downward(0.01889)
    ('0.0189', '1.0000', '0.0188')
    """
    return str(Decimal(repr(float(value))).quantize(_SHORT, ROUND_CEILING))


def downward(value: float) -> str:
    """Four decimals, never above the value."""
    return str(Decimal(repr(float(value))).quantize(_SHORT, ROUND_FLOOR))


def percent(share: float) -> str:
    """A share as a percentage, never rounded up: a confidence below 1 is not shown as 100 %.

    >>> percent(0.95), percent(0.9999999999999)
    ('95 %', '99.99999999 %')
    """
    exact = Decimal(repr(float(share))) * 100
    return f"{exact.quantize(Decimal('1e-8'), ROUND_FLOOR).normalize():f} %"


def budget(epsilon: str | None, delta: str | None, rho: str | None) -> str:
    """The budget spent, in the library's decimals, which are never rounded down.

    >>> budget("1", None, None)
    'epsilon 1'
    >>> budget("1", "0.000001", "0.024355970354")
    'epsilon 1, delta 0.000001 (rho 0.024355970354)'
    """
    return f"epsilon {epsilon}" if delta is None else f"epsilon {epsilon}, delta {delta} (rho {rho})"


def budget_numbers(epsilon: str, delta: str | None, rho: str | None) -> dict[str, float | None]:
    """ε, δ and ρ as numbers for JSON; δ and ρ are null for pure privacy."""
    texts = {"epsilon": epsilon, "delta": delta, "rho": rho}
    return {key: None if text is None else float(text) for key, text in texts.items()}


def measured(mechanism: str, resolution: int | None) -> str:
    """The mechanism and the resolution of a measurement."""
    if mechanism == "adaptive":
        return "adaptive, with pairs of columns chosen by private scores"
    return f"{mechanism} at {'full detail' if resolution is None else f'resolution {resolution}'}"


def columns_of(sparsity: int, named: int | None) -> str:
    """The columns that a statistic may use: at most `sparsity`, or those of one of the `named` subsets.

    >>> columns_of(2, None), columns_of(2, 1), columns_of(3, 6)
    ('at most 2 columns', 'the columns of the named subset', 'the columns of one of the 6 named subsets')
    """
    if named is None:
        return f"at most {counted(sparsity, 'column')}"
    return "the columns of " + ("the named subset" if named == 1 else f"one of the {named:,} named subsets")


def covered(subsets: Sequence[Mapping[str, Any]], named: object) -> str:
    """As `columns_of`, for the subsets of an answer, which were `named` or all have the same size."""
    return columns_of(max(len(s["columns"]) for s in subsets), None if named is None else len(subsets))


def promise(bound: float, *, confidence: float, columns: str, weighted: bool = False) -> str:
    """The certificate in a sentence, for statistics of these columns, which may be `weighted`."""
    if bound >= 1:
        return f"The certificate is vacuous: the bound is 1, the largest possible distance. {HELPS} {PLAN_IS_FREE}"
    return (
        f"With confidence {percent(confidence)}, no statistic of {columns} that is "
        f"1-Lipschitz on columns scaled to {'their weights' if weighted else 'length 1'} is off by more than "
        f"{upward(bound)}."
    )


def exceptions(
    found: ExceptionsRecord | None, subsets: Sequence[Mapping[str, Any]], *, listed: str = "in certificate.json"
) -> list[str]:
    """The bounds of exceptions and of all other subsets in a line; nothing if there are none. Many exceptions are
    `listed` elsewhere."""
    from certsynth.report.exceptions import promise  # imports what --help does without

    if found is None:
        return []
    sizes, names = {len(subset["columns"]) for subset in subsets}, [" × ".join(each) for each in found.subsets]
    sentence = promise(found, sizes, names, (upward(found.bound_of_others), upward(found.bound)), listed=listed)
    return [sentence] if sentence else []


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def terms(certificate: CertificateRecord) -> list[str]:
    """Both certificates with what they are made of; the smaller one is the bound."""
    kinds: list[tuple[str, str, DirectRecord | PlugInRecord]] = []
    if certificate.direct:
        kinds.append(("direct certificate", "direct", certificate.direct))
    if plug_in := certificate.plug_in.tightest:
        proxy = "path" if plug_in is certificate.plug_in.path else "transport"
        kinds.append((f"plug-in certificate ({proxy} loss)", "plug-in", plug_in))
    rows = []
    for title, kind, part in kinds:
        mark = "  ← the bound" if kind == certificate.kind else ""
        rows.append((title, upward(part.bound) + mark))
        rows += [(f"  {_TERMS[name]}", f"{value:.4f}") for name, value in said_of(part.terms)]
    return table(rows)


def worst(subsets: Sequence[Mapping[str, Any]], *keys: str) -> list[str]:
    """A table of the subsets with the largest values of the first of `keys`, with one column for each key.

    A value that is None is shown as a dash, and comes first: nothing is known of it.
    """
    ranked = sorted(subsets, key=lambda subset: [-math.inf if subset[key] is None else -subset[key] for key in keys])
    shown = {"bound": upward, "upper": upward, "lower": downward}
    rows = [("columns", *(key.replace("_", "-") for key in keys))]
    rows += [
        (
            " × ".join(subset["columns"]),
            *("–" if subset[key] is None else shown.get(key, upward)(subset[key]) for key in keys),
        )
        for subset in ranked[:SHOWN]
    ]
    return table(rows)


def diagnostic(certificate: CertificateRecord) -> str:
    """Section 5.3 of the paper in words: would a better fit help? Or why that is not known."""
    plug_in = certificate.plug_in.tightest
    if plug_in is None:
        return f"note: {certificate.no_plug_in}."
    found = plug_in.diagnostic
    far = f"The rows are {found.fit:.4f} away from the noisy counts they were fitted to."
    noise = f"Noise alone puts the real rows {found.noise_low:.4f} to {found.noise_high:.4f} away."
    if found.worth_optimising:
        remedy = (
            "A better fit may help: another --projection, --public rows, or another --loss. Every further release "
            "spends its budget again."
        )
    else:
        remedy = "A better fit would not bring them closer to the truth: what is left is noise."
    return f"{far} {noise} {remedy}"
