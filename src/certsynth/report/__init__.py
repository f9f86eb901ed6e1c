"""The report: one self-contained page about a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certsynth.domain import Schema
from certsynth.record.record import Record


def render_report(record: Record, schema: Schema, table: Mapping[str, Any]) -> str:
    """Return the report as HTML. It loads no other resource, and the same release gives the same bytes."""
    from certsynth.report.html import render
    from certsynth.report.view import view

    return render(view(record, schema, table))
