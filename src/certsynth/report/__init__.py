"""The report: one self-contained page about a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from certsynth.answers.noisy_cells import NoisyCells
from certsynth.domain import Schema
from certsynth.record.record import Record


def render_report(
    record: Record,
    schema: Schema,
    table: Mapping[str, Any],
    *,
    rows: Sequence[np.ndarray] | None = None,
    noisy: NoisyCells | None = None,
    sizes: Mapping[str, str] | None = None,
) -> str:
    """Return the report as HTML. It loads no other resource, and the same release gives the same bytes.

    `rows` are the cleaned columns of the table, if they are known, and `noisy` the noisy counts with certified errors.
    `sizes` has the sizes of the files as texts, as `contents.size_text` writes them.
    """
    from certsynth.report.html import render
    from certsynth.report.view import view

    return render(view(record, schema, table, rows=rows, noisy=noisy, sizes=sizes))
