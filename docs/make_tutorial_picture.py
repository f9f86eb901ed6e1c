"""Draw the tutorial's picture: the ages of its synthetic people, with certified intervals and the true shares.

The release is made anew, so figures change a little each time: python docs/make_tutorial_picture.py
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dot_plot import MARGIN, cross, svg, text

from certsynth import Schema, demo, release

HERE = Path(__file__).parent
PICTURE, TUTORIAL = HERE / "images" / "tutorial-ages.svg", HERE / "tutorial.md"
ROWS, EPSILON, BINS = 20_000, 1, 10
WIDTH, LEFT, TOP, HEIGHT = 760, 74, 84, 220
"""Pixels: the width of the picture, the left and upper edge of the chart, and its height."""
TICK = 0.05
"""Distance of the lines for shares."""


def schema() -> Schema:
    """The one that the tutorial shows."""
    found = re.search(r"^<!-- file: schema.toml -->\n```toml\n(.*?)^```", TUTORIAL.read_text("utf-8"), re.S | re.M)
    assert found is not None
    return Schema.parse(found[1])


def draw(bins: list[tuple[str, float, float, float, float]]) -> str:
    """Each bin has its name, the synthetic share, the ends of its interval, and the true share."""
    most = max(high for _, _, _, high, _ in bins) * 1.05
    each = (WIDTH - LEFT - MARGIN) / len(bins)
    bottom = TOP + HEIGHT

    def at(share: float) -> float:
        return bottom - HEIGHT * share / most

    body = [
        text(MARGIN, MARGIN + 14, "Ages of the synthetic people", kind="head"),
        *_legend(),
    ]
    for i in range(int(most / TICK) + 1):
        y = at(i * TICK)
        body.append(f'<path class="grid" d="M{LEFT} {y:.1f} H{WIDTH - MARGIN}"/>')
        body.append(text(LEFT - 8, y + 4, f"{i * TICK:.0%}".replace("%", " %"), kind="soft", anchor="end"))
    for i, (name, share, low, high, truth) in enumerate(bins):
        x = LEFT + (i + 0.5) * each
        top, height = at(high), at(low) - at(high)
        body.append(f'<rect class="band" x="{x - 15:.1f}" y="{top:.1f}" width="30" height="{height:.1f}" rx="3"/>')
        body.append(f'<circle class="s0" cx="{x:.1f}" cy="{at(share):.1f}" r="5"/>')
        body.append(cross(x, at(truth)))
        body.append(text(x, bottom + 20, name, kind="soft", anchor="middle"))
    body.append(text(LEFT, bottom + 42, "age in years; the vertical axis is the share of all people", kind="soft"))
    said = "; ".join(f"{name}: {low:.3f} to {high:.3f}, truly {truth:.3f}" for name, _, low, high, truth in bins)
    return svg(WIDTH, bottom + 42 + MARGIN, "Ages of the synthetic people, with certified intervals", said, body)


def _legend() -> Iterator[str]:
    y = MARGIN + 38
    yield f'<rect class="band" x="{MARGIN}" y="{y - 10}" width="26" height="12"/>'
    yield text(MARGIN + 34, y, "certified interval", kind="soft")
    yield f'<circle class="s0" cx="{MARGIN + 172}" cy="{y - 4}" r="5"/>'
    yield text(MARGIN + 184, y, "synthetic rows", kind="soft")
    yield cross(MARGIN + 300, y - 4)
    yield text(MARGIN + 312, y, "private rows (shown here only because the town is made up)", kind="soft")


def write() -> None:
    town = demo.people(ROWS)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.csv"
        demo.write_csv(town, file)
        made = release(file, schema(), epsilon=EPSILON)
    ages = [int(age) for age in town["age"]]
    bins = []
    for (name,), cell in made.answer(f"histogram(age, {BINS})").rows:
        first, _, last = str(name).partition(" to ")
        truth = sum(int(first) <= age <= int(last or first) for age in ages) / len(ages)
        bins.append((str(name).replace(" to ", "–"), cell.estimate, cell.low, cell.high, truth))
    PICTURE.write_text(draw(bins), encoding="utf-8")


if __name__ == "__main__":
    write()
