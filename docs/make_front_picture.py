"""Draw the README's picture: the promise of a release of the made-up town, and answers next to the true values.

The release is made anew, so figures change a little each time: python docs/make_front_picture.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from pathlib import Path

from dot_plot import MARGIN, cross, svg, text

from certsynth import Release, Schema, demo, release

PICTURE = Path(__file__).parent / "images" / "promise-and-answer.svg"
ROWS, EPSILON = 20_000, 1
WIDTH, LEFT, SCALE_LEFT, SCALE_RIGHT = 860, 268, 300, 620
"""Pixels: the width of the picture and of the promise, and the ends of the lines on which answers are drawn."""
FIRST, EACH = 92, 62
"""Pixels: from the top to the first answer, and from one answer to the next."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer in the units in which it is shown, with the true value of the made-up town."""

    query: str
    estimate: float
    low: float
    high: float
    truth: float
    unit: str

    def words(self, value: float, rounding: str = ROUND_HALF_EVEN) -> str:
        return f"{Decimal(repr(value)).quantize(Decimal('0.1'), rounding)}{self.unit}"


def answers(made: Release, town: demo.Columns) -> Iterator[Shown]:
    ages = [int(age) for age in town["age"]]
    employed = [word == "true" for word in town["employed"]]
    harbour = [region == "harbour" for region in town["region"]]
    with_work = [age for age, works in zip(ages, employed, strict=True) if works]
    truths = {
        "fraction(age > 65)": sum(age > 65 for age in ages) / len(ages),
        "fraction(region = 'harbour' and employed)": sum(map(all, zip(harbour, employed, strict=True))) / len(ages),
        "mean(age)": sum(ages) / len(ages),
        "mean(age | employed)": sum(with_work) / len(with_work),
    }
    for query, truth in truths.items():
        found, share = made.answer(query), query.startswith("fraction")
        times = 100 if share else 1
        values = (found.estimate, found.low, found.high, truth)
        yield Shown(query, *(times * value for value in values), " %" if share else " years")


def promise(made: Release, shown: Sequence[Shown]) -> Iterator[str]:
    """The promise in the units of the columns, rounded up."""
    bounds = made.certificate.record.statistics
    assert bounds is not None
    assert bounds.share_of_two_columns is not None
    (mean,) = (each for each in shown if each.query == "mean(age)")
    margin = max(mean.high - mean.estimate, mean.estimate - mean.low)
    yield f"Shares: ± {_up(100 * bounds.share_of_one_column)} points"
    yield f"Shares of two columns: ± {_up(100 * bounds.share_of_two_columns)}"
    yield f"Mean age: ± {_up(margin)} years"
    yield f"… all at once, {made.certificate.confidence:.0%} sure".replace("%", " %")


def _up(value: float) -> str:
    return str(Decimal(repr(value)).quantize(Decimal("0.1"), ROUND_CEILING))


def draw(made: Release, shown: Sequence[Shown]) -> str:
    body = [
        text(MARGIN, 34, f"The register of a made-up town: {ROWS:,} people, 7 columns, ε = {EPSILON}", kind="head"),
        text(MARGIN, 72, "What the release promises", kind="soft"),
        text(SCALE_LEFT, 72, "What anybody can ask it, without the private rows", kind="soft"),
        f'<path class="grid" d="M{LEFT} 58 V{FIRST + len(shown) * EACH - 16}"/>',
    ]
    body += [text(MARGIN, 104 + 30 * i, line, kind="head") for i, line in enumerate(promise(made, shown))]
    protected = (
        "Privacy: whatever one person's row",
        "holds, the release is at most e^ε ≈ 2.7",
        "times more or less likely.",
    )
    body += [text(MARGIN, 240 + 20 * i, line, kind="soft") for i, line in enumerate(protected)]
    for i, each in enumerate(shown):
        body += _answer(each, FIRST + i * EACH)
    bottom = FIRST + len(shown) * EACH + 8
    body += [
        f'<rect class="band" x="300" y="{bottom - 10}" width="26" height="12"/>',
        text(334, bottom, "certified interval", kind="soft"),
        f'<circle class="s0" cx="462" cy="{bottom - 4}" r="5"/>',
        text(474, bottom, "synthetic", kind="soft"),
        cross(552, bottom - 4),
        text(564, bottom, "true value (the town is made up)", kind="soft"),
    ]
    description = "; ".join(
        f"{each.query} is {each.words(each.estimate)}, certified between {each.words(each.low, ROUND_FLOOR)} and "
        f"{each.words(each.high, ROUND_CEILING)}, truly {each.words(each.truth)}"
        for each in shown
    )
    title = "The promise of a release, and answers with certified intervals"
    return svg(WIDTH, bottom + MARGIN, title, "; ".join([*promise(made, shown), description]), body)


def _answer(each: Shown, top: float) -> Iterator[str]:
    """The query above a line that is two intervals wide, and its figures on the right."""
    width = each.high - each.low
    first, last = each.low - width / 2, each.high + width / 2

    def at(value: float) -> float:
        return SCALE_LEFT + (SCALE_RIGHT - SCALE_LEFT) * (value - first) / (last - first)

    y = top + 30
    yield text(SCALE_LEFT, top + 12, each.query, kind="code")
    yield f'<path class="grid" d="M{SCALE_LEFT} {y} H{SCALE_RIGHT}"/>'
    left, right = at(each.low), at(each.high)
    yield f'<rect class="band" x="{left:.1f}" y="{y - 9}" width="{right - left:.1f}" height="18" rx="3"/>'
    yield f'<circle class="s0" cx="{at(each.estimate):.1f}" cy="{y}" r="5.5"/>'
    yield cross(at(each.truth), y)
    yield text(SCALE_RIGHT + 20, y - 2, each.words(each.estimate), kind="head")
    ends = f"{each.words(each.low, ROUND_FLOOR).removesuffix(each.unit)} to {each.words(each.high, ROUND_CEILING)}"
    yield text(SCALE_RIGHT + 20, y + 15, ends, kind="soft")


def write() -> None:
    town = demo.people(ROWS)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.csv"
        demo.write_csv(town, file)
        made = release(file, Schema.parse(demo.SCHEMA), epsilon=EPSILON)
    PICTURE.write_text(draw(made, list(answers(made, town))), encoding="utf-8")


if __name__ == "__main__":
    write()
