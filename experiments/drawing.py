"""One style for all figures, written as SVG and PNG."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

FOLDER = Path(__file__).parents[1] / "docs" / "images"

# Colours that are told apart with any kind of colour vision (Okabe and Ito, 2008).
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000"

plt.rcParams.update(
    {
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.constrained_layout.use": True,
        "font.size": 9,
        "grid.alpha": 0.3,
        "legend.frameon": False,
        "svg.fonttype": "path",
        "svg.hashsalt": "certsynth",  # the same figure is the same file
    }
)


def write(figure: Figure, name: str, *, folder: Path = FOLDER) -> None:
    """NAME.svg and NAME.png, without the date, so that they change only if what they show does."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.png", dpi=160, metadata={"Software": None})
    plt.close(figure)
