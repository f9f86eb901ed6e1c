"""The last step: a release with its record, which says what was done, what it cost, and what is promised."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from certsynth.algorithm.asked import asked_json
from certsynth.algorithm.method import Run
from certsynth.algorithm.values import Certified, Chosen, Outcome
from certsynth.artefact import Release
from certsynth.artefact.certificate import FORMAT, path_length
from certsynth.mechanisms import Guarantee, Neighbours
from certsynth.mechanisms.guarantee import decimal_text


def record(this: Run, outcome: Outcome) -> Release:
    """The release in memory. Nothing of the rows is in its document but what mechanisms gave out."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "certsynth": importlib.metadata.version("certsynth"),
        "table": {"name": this.schema.name, "unit": this.schema.unit, "columns": list(this.schema.names)},
        "privacy": _privacy(this, outcome),
        "asked": asked_json(this.asked, this.settings),
        "release": _method(this, outcome),
        "compared": _compared(outcome.chosen),
        "certificate": outcome.certified.certificate.to_json(),
        "recompute": _recompute(this, outcome.measured.resolution, outcome.certified),
        "ledger": this.means.spending.reservation,
    }
    if not this.means.spending.releasable:
        document["releasable"] = False
    measurements = outcome.measured.measurements
    return Release(schema=this.schema, document=document, measurements=measurements, table=outcome.fitted.table)


def _privacy(this: Run, outcome: Outcome) -> dict[str, Any]:
    """What was spent: composed of what mechanisms returned."""
    guarantee = Guarantee.composed(part.cost for part in outcome.spent)
    known = guarantee.neighbours is Neighbours.REPLACE_ONE
    return {
        **this.settings.privacy.describe(guarantee.spent),
        "neighbours": str(guarantee.neighbours),
        "rows": outcome.measured.last.total if known else None,
        "spent": [step.to_json() for step in outcome.spent],
    }


def _method(this: Run, outcome: Outcome) -> dict[str, Any]:
    """What was measured, and how rows were fitted."""
    settings, measurement, layers = this.settings, outcome.measured.last, outcome.chosen.choice.layers
    return {
        "sparsity": settings.sparsity,
        "workload": settings.workload(this.schema),
        "resolution": outcome.measured.resolution,
        "dimension": outcome.chosen.dimension,
        "mechanism": measurement.strategy.name,
        "growth": decimal_text(measurement.strategy.growth),
        "order": measurement.strategy.order,
        "path_length": path_length(measurement),
        "measured": [
            {"columns_at_once": layer.ways, "cells": layer.cells, "resolution": layer.resolution} for layer in layers
        ],
        "projection": outcome.fitted.support,
        "loss": settings.loss,
        "detail": settings.detail,
        "candidates": settings.candidates,
        "preset": settings.preset,
        "rows": len(outcome.fitted.rows[0]),
    }


def _compared(chosen: Chosen) -> list[dict[str, Any]]:
    """What the choice was made from."""
    return [
        {
            "mechanism": candidate.strategy.name,
            "resolution": candidate.resolution,
            "discretisation": candidate.discretisation,
            "privatisation": candidate.privatisation,
            "predicted_loss": candidate.predicted,
            "rehearsals": len(candidate.rehearsed),
            "chosen": candidate is chosen.choice.best,
        }
        for candidate in chosen.choice.designs
    ]


def _recompute(this: Run, resolution: int | None, certified: Certified) -> dict[str, Any]:
    """What anybody needs to compute the plug-in certificate again."""
    proxies = this.settings.proxies(resolution)
    return {
        "plug_in_failure_probability": str(this.settings.plug_in_beta),
        "draws": this.settings.draws,
        "seed": f"{certified.seed:032x}",
        "hub": None if proxies.hub is None else str(proxies.hub),
        "end": str(proxies.end),
    }
