"""The figures and the page of `rates.py`, from its results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import drawing
from rates import Series, lower_rate, series, upper_rate, verdict

TITLES = {"uniform": "uniform rows", "clumps": "rows in clumps", "skewed": "skewed rows"}
LOOKS = {
    "theorem": (drawing.BLUE, "o"),
    "default": (drawing.RED, "s"),
    "native": (drawing.ORANGE, "^"),
}


def look(each: Series, native: int) -> str:
    return "native" if each.method == "default" and each.sparsity == 1 and each.steps == native else each.method


def label(each: Series, native: int) -> str:
    words = {"theorem": "Theorem 1", "default": "default", "native": f"default, columns of {native:,} steps"}
    return words[look(each, native)]


def draw(found: Sequence[Series], name: str, *, native: int, folder: Path) -> None:
    """Losses and theory, s by kind of table."""
    sweep = found[0].sweep
    kinds, sparsities = list(dict.fromkeys(e.kind for e in found)), sorted({e.sparsity for e in found})
    over_rows = sweep == "rows"
    shape = (len(sparsities), len(kinds)) if over_rows else (1, len(sparsities))
    figure, axes = plt.subplots(
        *shape, figsize=(3.1 * shape[1] + 0.4, 2.9 * shape[0] + 0.9), sharex=over_rows, sharey="row", squeeze=False
    )
    handles: dict[str, Any] = {}
    for i, s in enumerate(sparsities):
        for j, kind in enumerate(kinds):
            ax = axes[i, j] if over_rows else axes[0, i]
            part = [e for e in found if (e.sparsity, e.kind) == (s, kind)]
            handles |= _panel(ax, part, native)
            ax.set_title(f"s = {s}, {TITLES[kind]}" if over_rows else f"s = {s}")
            ax.set_xlabel(f"rows n (d = {part[0].columns[0]})" if over_rows else f"columns d (n = {part[0].rows[0]:,})")
    for row in axes:
        row[0].set_ylabel("loss")
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    drawing.write(figure, name, folder=folder)


def _panel(ax: Axes, part: Sequence[Series], native: int) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    ax.set_xscale("log")
    ax.set_yscale("log")
    for each in part:
        colour, marker = LOOKS[look(each, native)]
        middle = each.losses.mean(axis=0)
        (handles[label(each, native)],) = ax.plot(each.places, middle, color=colour, marker=marker, markersize=4)
        ax.fill_between(each.places, each.losses.min(axis=0), each.losses.max(axis=0), color=colour, alpha=0.2, lw=0)
        if each.proved is not None:
            proved = each.proved.mean(axis=0)
            (handles["1/2k + 2 E U(0, η)"],) = ax.plot(each.places, proved, color=colour, ls="--", lw=1)
            for rate, style, words in (
                (upper_rate, "-.", "formula of Theorem 1, constant 1"),
                (lower_rate, ":", "formula of the lower bound, constant 1"),
            ):
                (handles[words],) = ax.plot(each.places, each.theory(rate), color="0.4", ls=style, lw=1)
    if part[0].sweep == "columns":
        ax.set_xticks(part[0].places, [str(d) for d in part[0].places])
        ax.minorticks_off()
    return handles


def slopes_table(found: Sequence[Series], native: int) -> str:
    lines = [
        "| s | rows are | method | slope | formula of Theorem 1 | lower bound | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in sorted(found, key=lambda e: e.sparsity):
        slope, half = each.slope()
        lines.append(
            f"| {each.sparsity} | {each.kind} | {label(each, native)} | {slope:.2f} ± {half:.2f} | "
            f"{each.slope_of(each.theory(upper_rate)):.2f} | {each.slope_of(each.theory(lower_rate)):.2f} | "
            f"{verdict(each)} |"
        )
    return "\n".join(lines).replace("-", "−").replace("|−−−", "|---")


def losses_table(found: Sequence[Series], native: int) -> str:
    """Mean losses, one line for each place, of one s and one kind of rows."""
    proved = next(e for e in found if e.proved is not None)
    what = "rows" if proved.sweep == "rows" else "columns"
    heads = [label(each, native) for each in found]
    lines = [
        f"| {what} | k | {' | '.join(heads)} | 1/2k + 2 E U(0, η) |",
        "|" + "---|" * (len(heads) + 3),
    ]
    for j, place in enumerate(proved.places):
        losses = " | ".join(f"{each.losses[:, j].mean():.4f}" for each in found)
        assert proved.proved is not None
        bound = proved.proved[:, j].mean()
        lines.append(f"| {place:,} | {proved.resolutions[j]} | {losses} | {bound:.4f} |")
    return "\n".join(lines)


INTRODUCTION = """\
# How fast the loss falls

<!-- Made by experiments/rates.py: change that. -->

**The claim** (Theorem 1 of the paper, and the lower bound beneath it). With k ≍ d⁻¹(log²(εn)/nε)^(−1/s) cells to a
column, the expected loss of Algorithm 1 is at most of order d·(log²(εn)/nε)^(1/s). No ε-private mechanism has a loss
below the order of (⌊d/s⌋/nε)^(1/s) on every table. Both leave a constant open, so slopes are what can be compared:
those of log loss over log n, and over log d.

**The data** are generated, ε = 1, and each point is the mean of {repetitions} repetitions, each with a table and noise
of its own.

- *uniform*: independent columns that fill the cube evenly;
- *clumps*: {clump} rows each at places that fill the cube evenly. More rows mean more places, not more rows to a place,
  so that at every n there is something to lose at small scales;
- *skewed*: u₀·uⱼ with uniform u. Columns depend on each other and crowd at 0.

Values are whole steps, {steps_1:,} to a column for s = 1 and {steps_2} for s = 2 ({many_2} where columns are many).
On whole steps `evaluate` is exact, its `lower` and `upper` are the same number, and so no lattice of the evaluator
limits what is seen.

**The methods.** *Theorem 1* is Algorithm 1 as the theorem has it: that k with 1 for the constant, Haar noise along the
snake, the measure on the whole grid that is least in path loss, values at the centres of cells, no public rows. For
s = 1 the program falls apart into one for each column. *Default* is the rows that `release` makes, with the share of ε
that it spends on them.

```text
python experiments/rates.py          # all of it: half an hour of one core; goes on where it was stopped
python experiments/rates.py --quick  # the same in small, in a minute, into build/rates-quick
python experiments/rates.py --draw   # this page and its figures, from experiments/results
```

**How slopes are told.** In each repetition a line is laid through the logarithms by least squares. The mean of the
{repetitions} slopes is given, with its 95 % t-interval. Beside it is the slope that the formula of the theorem has over
the same places, computed in the same way: its logarithms make it flatter than −1/s. "Steeper" and "flatter" mean that
the formula's slope is outside of the interval.
"""

ROWS = """\
## Against the number of rows

![Loss against rows, for s = 1 and 2 and three kinds of rows](images/rates-rows.svg)

{slopes}

As n grows without end the formula's slope goes to −1 for s = 1 and to −1/2 for s = 2, which is that of the lower bound.

Uniform rows, s = 1:

{losses_1}

Uniform rows, s = 2:

{losses_2}

{findings}
"""

COLUMNS = """\
## Against the number of columns

![Loss against columns, for s = 1 and 2](images/rates-columns.svg)

{slopes}

s = 1:

{losses_1}

s = 2:

{losses_2}

{findings}
"""

ROWS_FINDINGS = """\
**Theorem 1 is in line with its formula.** No loss is above 1/2k + 2·U(0, η), which the proof promises for each draw of
the noise; the closest comes to {closest:.0%} of it. For s = 1 slopes are those of the formula with its logarithms, near
−0.8 rather than −1. For s = 2 they are flatter by {flatter:.2f}, and that is rounding: k is a whole number ({ks}), and
1/k has the slope {whole:.2f} over these n, where the formula has {formula:.2f}. Nearly all of the loss is what values
lose to the centres of their cells; the noise itself, U(0, η), is {noise:.0%} of it at {last:,} uniform rows. The k of
the theorem suits a bound that counts noise twice and cells at their worst, and leaves room for more cells.

**The default falls faster for s = 2.** The likely reason: it spreads rows over the values of a cell as single columns
say, so that what is lost inside of a cell is less than its width. On uniform and skewed rows, which are smooth, its
slope is steeper than −1/2. That does not contradict the lower bound, which speaks of the worst table for each n. On
clumps, where there is something to be lost at every scale, the slope is {clumps:.2f}, a little steeper than −1/2, and
the loss at {last:,} rows is {ratio:.1f} times that on uniform rows.

**For s = 1 the default has a floor.** When these runs were made, columns of more than 1,024 values were written on a
grid of 256 steps; by now those of up to 65,537 are [written value by value](explanation/noise.md#values-below-runs).
Values are off by 1/1024 on average, however many rows there are. The red lines end there, and their slopes over this
range are flatter for it; on skewed rows a large loss at 1,000 rows hides it. At {most:,} uniform rows Theorem 1, which
has finer cells, is at {theorem:.4f} and the default at {default:.4f}. With columns of {native:,} steps, every one of
which it measures, there is no floor: {without:.4f} there, and slopes between that of the formula and −1.
"""

COLUMNS_FINDINGS = """\
**The theorem's mechanism grows in proportion to d, as its formula does.** For s = 2 the slope is above 1 because k is a
whole number ({ks}): 1/k has the slope {whole:.2f} over these d.

**The default grows more slowly.** For s = 2 its slope lies between those of the two formulas, whose gap in d is an open
problem of the paper. For s = 1 the floor of about 0.001 is all of the loss of few columns, so that little growth is
seen.
"""


def findings(found: Sequence[Series], native: int) -> dict[str, Any]:
    """The numbers that the words quote."""
    of = {(e.sparsity, e.kind, look(e, native)): e for e in found}
    pairs, single = of[2, "uniform", "theorem"], of[1, "uniform", "theorem"]
    proofs = [e.losses / e.proved for e in found if e.proved is not None]
    whole = pairs.slope_of(1 / np.array(pairs.resolutions, dtype=float))
    formula = pairs.slope_of(pairs.theory(upper_rate))
    assert pairs.proved is not None
    assert pairs.resolutions[-1]
    noise = (pairs.proved[:, -1] - 0.5 / pairs.resolutions[-1]) / 2
    told = {
        "closest": max(float(ratio.max()) for ratio in proofs),
        "flatter": pairs.slope()[0] - formula,
        "ks": ", ".join(map(str, pairs.resolutions)),
        "whole": whole,
        "formula": formula,
        "noise": float(noise.mean() / pairs.losses[:, -1].mean()),
        "native": native,
        "last": pairs.places[-1],
        "most": single.places[-1],
        "theorem": single.losses[:, -1].mean(),
        "default": of[1, "uniform", "default"].losses[:, -1].mean(),
    }
    if found[0].sweep == "rows":
        told["without"] = of[1, "uniform", "native"].losses[:, -1].mean()
        clumps = of.get((2, "clumps", "default"), of[2, "uniform", "default"])
        told["clumps"] = clumps.slope()[0]
        told["ratio"] = clumps.losses[:, -1].mean() / of[2, "uniform", "default"].losses[:, -1].mean()
    return told


def page(rows: dict[str, Any], columns: dict[str, Any]) -> str:
    """docs/rates.md, from the results alone."""
    settings = rows["settings"]
    native = settings["native"]
    said = [
        INTRODUCTION.format(
            repetitions=settings["repetitions"],
            clump=settings["clump"],
            steps_1=settings["steps"]["1"],
            steps_2=settings["steps"]["2"],
            many_2=columns["settings"]["steps"]["2"],
        )
    ]
    for swept, text, words in ((rows, ROWS, ROWS_FINDINGS), (columns, COLUMNS, COLUMNS_FINDINGS)):
        found = series(swept["points"])
        of = {s: [e for e in found if (e.sparsity, e.kind) == (s, "uniform")] for s in (1, 2)}
        said.append(
            text.format(
                slopes=slopes_table(found, native),
                losses_1=losses_table(of[1], native),
                losses_2=losses_table(of[2], native),
                findings=re.sub(r"-(?=\d)", "−", words.strip().format(**findings(found, native))),
            )
        )
    versions = ", ".join(f"{name} {version}" for name, version in rows["versions"].items())
    said.append(f"Made with {versions}. Tables come from seeds; noise has none, so that figures differ in each run.\n")
    return "\n".join(said).replace("\n\n\n", "\n\n")
