"""The sentences of the report about the choice of mechanism, resolution and pairs of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from certsynth.report import numerals

MECHANISMS = {
    "identity": "Noise on every count.",
    "haar": "Noise on the difference between the halves of a line of cells, then of each half, and so on.",
    "haar-hilbert": "As haar, with the cells in the order of Hilbert’s curve, which keeps neighbours together.",
    "haar-tour": "As haar, with the cells in the order of a tour that visits nearby cells in turn, in any metric.",
    "haar-weighted": "As haar-hilbert, with a larger part of the budget for the finer differences.",
    "quad-tree": "Noise on the counts of squares of all sizes, from a few large ones down to the cells.",
    "haar-noisy-total": "As haar, with noise on the total of each table as well: the mechanism of the paper.",
    "adaptive": "Noise on every count of single columns, and of those pairs that private scores chose.",
    "low-dimensional": "Noise on every cell of one grid of all columns; only cells that stand out are kept.",
    "low-dimensional-l1": "As low-dimensional, with negative counts kept as well, as in the paper.",
}

CHOSEN_BEFORE, CHOSEN_PRIVATELY = "Chosen from public knowledge", "Chosen privately"
CHOSEN_BY_NOISY_ROWS = "Chosen by a noisy number of rows"

MORE_CELLS = "More cells keep more detail, but get more noise."


def place(resolution: int | None) -> str:
    return "at full detail" if resolution is None else f"with {resolution:,} cells along a column"


def only_candidate(candidate: Mapping[str, Any]) -> str:
    return (
        f"There was no choice to make: {candidate['mechanism']} {place(candidate['resolution'])} was the only "
        f"candidate, with an expected loss of {candidate['loss_text']}."
    )


def chosen(candidate: Mapping[str, Any], number: int, *, hidden: bool) -> str:
    """Explain a choice from public knowledge; `hidden`: the number of rows is private."""
    rows = "a noisy number of rows" if hidden else "the number of rows"
    return (
        f"From the schema, the budget and {rows} alone, {candidate['mechanism']} {place(candidate['resolution'])} was "
        f"chosen out of {number:,} candidates; its expected loss was {candidate['loss_text']}."
    )


def adapted(candidate: Mapping[str, Any], number: int, dimension: int) -> str:
    """Explain a private choice of the resolution, which depends on the rows."""
    if number == 1:
        return f"There was no choice to make: one grid of all columns {place(candidate['resolution'])} was requested."
    return (
        f"Among {number:,} grids, each for rows of a different dimension, the one for dimension {dimension}, "
        f"{place(candidate['resolution'])}, was chosen privately by how many of its cells hold rows. The expected loss "
        "of each grid is for rows of its dimension."
    )


def chosen_by_scores(pairs: int) -> str:
    """Explain a private choice of pairs of columns."""
    return (
        "Single columns were measured first, and all pairs of columns were scored privately by how far they are from "
        f"independent columns. By these noisy numbers alone, {numerals.count(pairs)} of them were chosen to be "
        "measured, each with its own number of cells and amount of noise. The certificate covers all pairs, measured "
        "or not."
    )


def choice_caption(*, rehearsed: bool, above: int, top: str) -> str:
    said = ["The expected loss is on the scale of the bound; it is a forecast, not a promise."]
    if rehearsed:
        said.append("Filled marks were rehearsed on simulated tables; open ones come from a model.")
    if above:
        said.append(f"The scale ends at {top}: {above} of the candidates lie{'s' * (above == 1)} above it.")
    return " ".join(said)


def choice_described(lines: Sequence[Mapping[str, Any]], candidate: Mapping[str, Any]) -> str:
    """Describe the chart in words: both ends of each line, and the chosen candidate."""
    ends = [(line["mechanism"], line["points"][0], line["points"][-1]) for line in lines]
    said = [f"{m} {a['loss_text']} at {a['resolution']}, {b['loss_text']} at {b['resolution']}" for m, a, b in ends]
    what = f"{candidate['mechanism']} {place(candidate['resolution'])}, {candidate['loss_text']}"
    return f"Lines of expected loss against cells along a column: {'; '.join(said)}. Chosen: {what}."


def choice_table(number: int, most: int) -> str:
    if number <= most:
        return "All candidates, smallest expected loss first."
    return f"The {most} candidates with the smallest expected loss, of {number:,}. The others are in certificate.json."
