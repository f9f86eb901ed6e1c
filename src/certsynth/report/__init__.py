"""The report: one self-contained page about a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certsynth.domain import Schema
from certsynth.record.record import Record


def render_report(record: Record, schema: Schema, table: Mapping[str, Any]) -> str:
    """The page as HTML. It loads nothing from anywhere, and is the same for the same release, byte for byte."""
    from certsynth.report.html import render
    from certsynth.report.view import view

    return render(view(record, schema, table))
