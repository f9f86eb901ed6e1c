"""Random columns, conditions and queries, each with its meaning over all possible rows, written down a second time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from certsynth.domain import Category, Column, Ordered
from certsynth.domain.labels import tree_column
from certsynth.domain.ratios import ratio_values
from within import Floats, Near, World, average, extremes, products, spreads

KINDS = (
    "integer",
    "number",
    "date",
    "ordinal",
    "category",
    "boolean",
    "tree",
    "metric",
    "integer",
    "number",
    "datetime",
)
"""Those that have means more often than others."""
RATIO_KINDS = ("by ratios", "by ratios", "numbers by ratios", "integer", "category", "boolean")
"""Kinds of schemas with columns that are compared by ratios."""
WEIGHTS = (Fraction(1), Fraction(1), Fraction(1, 2), Fraction(1, 4), Fraction(1, 10))
FACTORS = (1.0, -1.0, 2.0, -3.0, 0.5, -0.25, 1000.0, -1e6)
TREES = (["h/n", "h/d", "c", "c/b"], ["a", "b"], ["a/b/c", "a/d", "e"])
SHARES = (0.5, 0.05, 0.25, 0.3, 0.9, 0.999)
COMPARISONS = ("<", "<=", ">", ">=", "=", "!=")


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A query as text; the tables within a bound that make it extreme; and its value for a table, which is None where
    the table has no such rows.

    `form` is for counting. `whole`: the answer is rounded inward, to numbers of rows. `apply` asks in another way than
    by text: a function of the user's.
    """

    text: str
    form: str
    columns: tuple[str, ...]
    search: Callable[[Near], list[Floats]]
    value: Callable[[Floats], float | None]
    whole: bool = False
    least: float = -math.inf
    most: float = math.inf
    apply: Callable[[Any], Any] | None = None


# ------------------------------------------------------------ columns


def column(rng: np.random.Generator, name: str, kind: str) -> Column:
    weight, missing = WEIGHTS[rng.integers(len(WEIGHTS))], bool(rng.integers(2))
    low = int(rng.integers(-4, 4)) if rng.integers(4) else int(rng.choice([-100_000, 100_000, 0]))
    match kind:
        case "integer":
            return Ordered(name, low=low, high=low + int(rng.integers(0, 6)), missing=missing, weight=weight)
        case "number":
            width = float(rng.choice([1e-3, 1.0, 2.5, 1e5]))
            return Ordered(name, kind=kind, low=float(low), high=low + width, missing=missing, weight=weight)
        case "by ratios" | "numbers by ratios":
            return _by_ratios(rng, name, whole=kind == "by ratios", missing=missing, weight=weight)
        case "date" | "datetime":
            first = int(rng.choice([-400_000, -3, 18_262])) * (1 if kind == "date" else 86_399)
            last = first + int(rng.integers(0, 6))
            return Ordered(name, kind=kind, low=first, high=last, missing=missing, weight=weight)
        case "ordinal":
            values = ("low", "middle", "high", "top")[: rng.integers(1, 5)]
            return Ordered(name, kind=kind, low=0, high=len(values) - 1, values=values, missing=missing, weight=weight)
        case "boolean":
            return Category(name, kind=kind, values=("false", "true"), missing=missing, weight=weight)
        case "tree":
            paths = TREES[rng.integers(len(TREES))]
            return replace(tree_column(name, paths, missing=missing, other=bool(rng.integers(2))), weight=weight)
        case "metric":
            table = ((0, 1, 4), (1, 0, 4), (4, 4, 0))
            stated = tuple(tuple(map(Fraction, row)) for row in table)
            return Category(name, kind=kind, values=("x", "y", "z"), distances=stated, missing=missing, weight=weight)
    values = ("x", "y", "z", "w")[: rng.integers(1, 5)]
    return Category(name, values=values, other=bool(rng.integers(2)), missing=missing, weight=weight)  # type: ignore[arg-type]


def _by_ratios(rng: np.random.Generator, name: str, *, whole: bool, missing: bool, weight: Fraction) -> Ordered:
    """A few values with growing gaps, or the many of a real schema."""
    if rng.integers(4):
        some = rng.choice(
            [-1000, -20, -1, 0, 1, 2, 3, 5, 10, 50, 51, 1000, 10**6], int(rng.integers(2, 7)), replace=False
        )
        grid: tuple[float, ...] = tuple(sorted(float(x) if whole else float(x) / 10 for x in some))
    else:
        low = 0 if whole else Fraction(1, 2)
        grid = ratio_values(Fraction(low), Fraction(10**6), Fraction(1) if whole else None) or ()
    ends = (int(grid[0]), int(grid[-1])) if whole else (grid[0], grid[-1])
    kind: Any = "integer" if whole else "number"
    return Ordered(name, kind=kind, low=ends[0], high=ends[1], missing=missing, weight=weight, grid=grid)


def is_number(each: Column) -> bool:
    return isinstance(each, Ordered) and each.kind != "ordinal"


def is_moment(each: Column) -> bool:
    return isinstance(each, Ordered) and each.kind in ("date", "datetime")


# ------------------------------------------------------------ conditions


Truth = np.ndarray
"""1, 0 or −1 for each possible row: true, unknown or false."""


def condition(rng: np.random.Generator, world: World, depth: int = 2) -> tuple[str, Truth, frozenset[str]]:
    """A text, of which rows it is true, and the columns that it names."""
    choice = rng.integers(6) if depth else 5
    if choice < 2:
        parts = [condition(rng, world, depth - 1) for _ in range(2)]
        word, join = (("and", np.minimum), ("or", np.maximum))[choice]
        text = f" {word} ".join(f"({text})" for text, _, _ in parts)
        return text, join(parts[0][1], parts[1][1]), parts[0][2] | parts[1][2]
    if choice == 2:
        text, truth, names = condition(rng, world, depth - 1)
        return f"not ({text})", -truth, names
    return atom(rng, world)


def atom(rng: np.random.Generator, world: World) -> tuple[str, Truth, frozenset[str]]:
    columns = list(world.schema)
    each = columns[rng.integers(len(columns))]
    figures, names = world.figures[each.name], frozenset([each.name])
    if rng.integers(8) == 0:
        negated = bool(rng.integers(2))
        absent = np.where(np.isnan(figures), 1, -1)
        return f"{each.name} is {'not ' * negated}missing", -absent if negated else absent, names
    numbers = [c for c in columns if is_number(c) and not is_moment(c)]  # type: ignore[attr-defined]
    if len(numbers) > 1 and rng.integers(3) == 0:
        return _sum_of_two(rng, world, numbers)
    if isinstance(each, Category):
        labels = [c for c in columns if isinstance(c, Category) and c.kind != "boolean"]
        if len(labels) > 1 and rng.integers(3) == 0:
            return _same_label(rng, world, labels)
        return _of_labels(rng, each, figures)
    assert isinstance(each, Ordered)
    sign = COMPARISONS[rng.integers(len(COMPARISONS))]
    if each.kind == "ordinal" or is_moment(each):
        border = float(rng.integers(int(each.low), int(each.high) + 1))
        shown = each.values[int(border)] if each.kind == "ordinal" else _moment(each, border)
        return f"{each.name} {sign} '{shown}'", compared(figures, sign, border), names
    factor = float(FACTORS[rng.integers(len(FACTORS))]) if rng.integers(2) else 1.0
    border = float(rng.choice(figures[~np.isnan(figures)]))
    if not each.whole and factor != 1:  # a border that is no value: two ways to multiply may round differently
        border += 0.013 * (each.high - each.low)
    if rng.integers(4) == 0:
        border += 0.5 if each.whole else 0.37 * (each.high - each.low)
    text = each.name if factor == 1 else f"{number(factor)}*{each.name}"
    return f"{text} {sign} {number(factor * border)}", compared(factor * figures, sign, factor * border), names


def _sum_of_two(rng: np.random.Generator, world: World, numbers: list[Column]) -> tuple[str, Truth, frozenset[str]]:
    first, second = (numbers[i] for i in rng.choice(len(numbers), 2, replace=False))
    factor, sign = float(rng.choice([1.0, -1.0, 2.0])), COMPARISONS[rng.integers(4)]
    total = world.figures[first.name] + factor * world.figures[second.name]
    there = total[~np.isnan(total)]
    border = float(rng.choice(there)) + 0.25 * float(np.ptp(there) or 1.0) / 7
    text = f"{first.name} + {number(factor)}*{second.name} {sign} {number(border)}"
    return text, compared(total, sign, border), frozenset([first.name, second.name])


def _same_label(rng: np.random.Generator, world: World, labels: list[Category]) -> tuple[str, Truth, frozenset[str]]:
    first, second = (labels[i] for i in rng.choice(len(labels), 2, replace=False))
    pairs = zip(world.written[first.name], world.written[second.name], strict=True)
    truth = np.array([0 if a is None or b is None else 1 if a == b else -1 for a, b in pairs])
    differ = bool(rng.integers(2))
    text = f"{first.name} {'!=' if differ else '='} {second.name}"
    return text, -truth if differ else truth, frozenset([first.name, second.name])


def _of_labels(rng: np.random.Generator, each: Category, figures: Floats) -> tuple[str, Truth, frozenset[str]]:
    names, code = frozenset([each.name]), int(rng.integers(len(each.labels)))
    if each.kind == "boolean":
        text, wanted = ((each.name, 1.0), (f"not {each.name}", 0.0), (f"{each.name} = false", 0.0))[rng.integers(3)]
        return text, compared(figures, "=", wanted), names
    if rng.integers(3) == 0:
        some = sorted(set(map(int, rng.integers(0, len(each.labels), 2))))
        listed = ", ".join(f"'{each.labels[i]}'" for i in some)
        return (
            f"{each.name} in [{listed}]",
            np.where(np.isnan(figures), 0, np.where(np.isin(figures, some), 1, -1)),
            names,
        )
    sign = "=" if rng.integers(2) else "!="
    return f"{each.name} {sign} '{each.labels[code]}'", compared(figures, sign, float(code)), names


def compared(figures: Floats, sign: str, border: float) -> Truth:
    with np.errstate(invalid="ignore"):
        holds = {
            "<": figures < border, "<=": figures <= border, ">": figures > border,
            ">=": figures >= border, "=": figures == border, "!=": figures != border,
        }[sign]  # fmt: skip
    return np.where(np.isnan(figures), 0, np.where(holds, 1, -1))


def number(value: float) -> str:
    """A number as queries write it: whole, or with all its digits."""
    shown = repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
    return f"({shown})" if shown.startswith("-") else shown


def _moment(each: Ordered, figure: float) -> str:
    return str(np.datetime64(int(figure), "D" if each.kind == "date" else "s")).replace("T", " ")


# ------------------------------------------------------------ queries


class Asker:
    """Random questions about one world, in which the private table has `rows` rows."""

    def __init__(self, rng: np.random.Generator, world: World, rows: int) -> None:
        self.rng, self.world, self.rows = rng, world, rows
        self.numbers = [c for c in world.schema if is_number(c)]
        self.ordered = [c for c in world.schema if isinstance(c, Ordered)]

    def question(self) -> Question | None:
        form = FORMS[self.rng.integers(len(FORMS))]
        return getattr(self, f"_{form}")()  # type: ignore[no-any-return]

    def _pick(self, columns: list[Any]) -> Any:
        return columns[self.rng.integers(len(columns))] if columns else None

    # ------------------------------------------------------------ shares

    def _fraction(self) -> Question:
        text, truth, names = condition(self.rng, self.world)
        return self._share(f"fraction({text})", "fraction", names, truth > 0, None)

    def _fraction_in_group(self) -> Question:
        text, truth, names = condition(self.rng, self.world, 1)
        group, among, more = condition(self.rng, self.world, 1)
        return self._share(f"fraction({text} | {group})", "fraction in a group", names | more, truth > 0, among > 0)

    def _count(self) -> Question:
        text, truth, names = condition(self.rng, self.world)
        return self._share(f"count({text})", "count", names, truth > 0, None, times=self.rows)

    def _cdf(self) -> Question | None:
        each = self._pick(self.ordered)
        if each is None:
            return None
        figures = self.world.figures[each.name]
        border = float(self.rng.choice(figures[~np.isnan(figures)]))
        shown = number(border)
        if each.kind == "ordinal" or is_moment(each):
            shown = f"'{each.values[int(border)] if each.kind == 'ordinal' else _moment(each, border)}'"
        truth = compared(figures, "<=", border)
        return self._share(f"cdf({each.name}, {shown})", "cdf", frozenset([each.name]), truth > 0, None)

    def _share(
        self, text: str, form: str, names: frozenset[str], holds: np.ndarray, among: np.ndarray | None, times: int = 1
    ) -> Question:
        group = np.ones(self.world.size, bool) if among is None else among
        gain = (holds & group).astype(float)

        def value(table: Floats) -> float | None:
            share = average(table, gain, group)
            return None if share is None else times * share

        return Question(
            text, form, tuple(sorted(names)), lambda near: extremes(near, gain, group), value,
            whole=form == "count", least=0.0, most=float(times),
        )  # fmt: skip

    # ------------------------------------------------------------ means and sums

    def _linear(self, columns: list[Any]) -> tuple[str, Floats] | None:
        """A multiple of one or two columns with a constant, as text and for all possible rows."""
        rng, text, total = self.rng, "", np.zeros(self.world.size)
        for each in columns:
            figures = self.world.figures[each.name]
            if is_moment(each):  # days since a day: dates have no multiples
                origin = float(each.low)
                text += f"{' + ' if text else ''}({each.name} - '{_moment(each, origin)}')"
                total = total + figures - origin
                continue
            factor = float(FACTORS[rng.integers(len(FACTORS))])
            text += f"{' + ' if text else ''}{each.name if factor == 1 else f'{number(factor)}*{each.name}'}"
            total = total + factor * figures
        if rng.integers(2):
            constant = float(rng.choice([-7.0, 3.0, 0.5, -100_000.0, 1e7]))
            text, total = (f"{number(constant)} + {text}", total + constant)
        return text, total

    def _mean(self) -> Question | None:
        return self._average(grouped=False)

    def _mean_in_group(self) -> Question | None:
        return self._average(grouped=True)

    def _average(self, *, grouped: bool) -> Question | None:
        truths = [c for c in self.world.schema if getattr(c, "kind", "") == "boolean"]
        each = self._pick([*self.numbers, *truths])
        if each is None:
            return None
        if isinstance(each, Category) or (is_moment(each) and self.rng.integers(2)):
            text, total = each.name, self.world.figures[each.name]
        else:
            text, total = self._linear([each])  # type: ignore[misc]
        inside, names = ~np.isnan(total), frozenset([each.name])
        if grouped:
            group, among, more = condition(self.rng, self.world, 1)
            inside, names, text = inside & (among > 0), names | more, f"{text} | {group}"
        form = "mean in a group" if grouped else "mean"
        there = total[~np.isnan(total)]
        return Question(
            f"mean({text})", form, tuple(sorted(names)),
            lambda near: extremes(near, total, inside), lambda table: average(table, total, inside),
            least=float(there.min()), most=float(there.max()),
        )  # fmt: skip

    def _mean_of_two(self) -> Question | None:
        return self._mean_of_several("mean of two columns", grouped=False)

    def _mean_of_two_in_group(self) -> Question | None:
        return self._mean_of_several("mean of two columns in a group", grouped=True)

    def _mean_of_several(self, form: str, *, grouped: bool) -> Question | None:
        """Over the rows that have values in all columns."""
        if len(self.numbers) < 2:
            return None
        number = min(len(self.numbers), int(self.rng.choice([2, 2, 3])))
        columns = [self.numbers[i] for i in self.rng.choice(len(self.numbers), number, replace=False)]
        text, total = self._linear(columns)  # type: ignore[misc]
        group, inside, names = self._group(~np.isnan(total), [each.name for each in columns], grouped=grouped)
        there = total[~np.isnan(total)]
        return Question(
            f"mean({text}{group})", form, names,
            lambda near: extremes(near, total, inside), lambda table: average(table, total, inside),
            least=float(there.min()), most=float(there.max()),
        )  # fmt: skip

    def _sum_of_two(self) -> Question | None:
        full = [c for c in self.numbers if not c.missing]
        if len(full) < 2:
            return None
        pair = [full[i] for i in self.rng.choice(len(full), 2, replace=False)]
        text, total = self._linear(pair)  # type: ignore[misc]
        return self._total(f"sum({text})", "sum of two columns", [c.name for c in pair], total, self.rows)

    def _sum(self) -> Question | None:
        each = self._pick(self.numbers)
        if each is None:
            return None
        text, total = self._linear([each])  # type: ignore[misc]
        return self._total(f"sum({text})", "sum", [each.name], total, self.rows)

    def _total(self, text: str, form: str, names: list[str], total: Floats, times: int) -> Question:
        """Rows without a value count as 0."""
        gain = np.where(np.isnan(total), 0.0, total)
        return Question(
            text, form, tuple(names), lambda near: extremes(near, gain), lambda table: times * float(table @ gain),
            least=times * float(gain.min()), most=times * float(gain.max()),
        )  # fmt: skip

    # ------------------------------------------------------------ spread

    def _variance(self) -> Question | None:
        return self._spread("variance", lambda variance: variance)

    def _variance_in_group(self) -> Question | None:
        return self._spread("variance", lambda variance: variance, grouped=True)

    def _sd(self) -> Question | None:
        return self._spread("sd", lambda variance: math.sqrt(max(variance, 0.0)))

    def _group(self, inside: np.ndarray, names: list[str], *, grouped: bool) -> tuple[str, np.ndarray, tuple[str, ...]]:
        """The text of a random group with its bar, the rows that are in it as well, and all columns."""
        if not grouped:
            return "", inside, tuple(names)
        text, among, more = condition(self.rng, self.world, 1)
        return f" | {text}", inside & (among > 0), tuple(sorted({*names, *more}))

    def _spread(self, statistic: str, shown: Callable[[float], float], *, grouped: bool = False) -> Question | None:
        each = self._pick(self.numbers)
        if each is None:
            return None
        values = self.world.figures[each.name] - float(each.low)
        group, inside, columns = self._group(~np.isnan(values), [each.name], grouped=grouped)

        def value(table: Floats) -> float | None:
            mean = average(table, values, inside)
            return None if mean is None else shown(average(table, (values - mean) ** 2, inside) or 0.0)

        search = lambda near: spreads(near, values, inside)  # noqa: E731
        form = f"{statistic} in a group" if grouped else statistic
        return Question(f"{statistic}({each.name}{group})", form, columns, search, value, least=0.0)

    def _covariance(self) -> Question | None:
        return self._together("covariance")

    def _correlation(self) -> Question | None:
        return self._together("correlation")

    def _correlation_in_group(self) -> Question | None:
        return self._together("correlation", grouped=True)

    def _together(self, statistic: str, *, grouped: bool = False) -> Question | None:
        if len(self.numbers) < 2:
            return None
        columns = [self.numbers[i] for i in self.rng.choice(len(self.numbers), 2, replace=False)]
        pair = [each.name for each in columns]
        x, y = (self.world.figures[each.name] - float(each.low) for each in columns)
        group, inside, names = self._group(~np.isnan(x) & ~np.isnan(y), pair, grouped=grouped)

        def value(table: Floats) -> float | None:
            means = average(table, x, inside), average(table, y, inside)
            if means[0] is None or means[1] is None:
                return None
            a, b = x - means[0], y - means[1]
            found = [average(table, each, inside) or 0.0 for each in (a * b, a * a, b * b)]
            if statistic == "covariance":
                return found[0]
            small = 1e-9 * max(np.ptp(x[inside]), 1e-9) ** 2 * max(np.ptp(y[inside]), 1e-9) ** 2
            return found[0] / math.sqrt(found[1] * found[2]) if found[1] * found[2] > small else None

        def search(near: Near) -> list[Floats]:
            more = spreads(near, x, inside)[:4] if statistic == "correlation" else []
            return products(near, x, y, inside) + more

        text, form = f"{statistic}({pair[0]}, {pair[1]}{group})", f"{statistic} in a group" if grouped else statistic
        return Question(text, form, names, search, value)

    # ------------------------------------------------------------ quantiles

    def _quantile(self) -> Question | None:
        return self._quantiles(float(SHARES[self.rng.integers(len(SHARES))]))

    def _median(self) -> Question | None:
        return self._quantiles(None)

    def _median_in_group(self) -> Question | None:
        return self._quantiles(None, grouped=True)

    def _quantiles(self, asked: float | None, *, grouped: bool = False) -> Question | None:
        each = self._pick(self.ordered)
        if each is None:
            return None
        p, values = asked or 0.5, self.world.figures[each.name]
        levels = np.unique(values[~np.isnan(values)])
        group, there, names = self._group(~np.isnan(values), [each.name], grouped=grouped)

        def value(table: Floats) -> float | None:
            share = float(table @ there)
            if share <= 1e-9:
                return None
            below = np.array([float(table @ (there & (values <= level))) for level in levels]) / share
            return float(levels[int(np.argmax(below >= p - 1e-12))])

        def search(near: Near) -> list[Floats]:
            tables = []
            for level in levels:
                with np.errstate(invalid="ignore"):
                    above, below = values >= level, values <= level
                tables.append(near.best(np.where(there, above - (1 - p), 0.0)))
                tables.append(near.best(np.where(there, below - p, 0.0)))
            return tables

        text = f"median({each.name}{group})" if asked is None else f"quantile({each.name}, {p})"
        form = "median in a group" if grouped else "median" if asked is None else "quantile"
        return Question(text, form, names, search, value, least=float(levels[0]), most=float(levels[-1]))

    # ------------------------------------------------------------ functions of the user's

    def _function(self) -> Question | None:
        """A random function of one or two columns, with slopes that it truly has."""
        some = list(self.world.schema)[: 1 + int(self.rng.integers(2))]
        names = tuple(c.name for c in some)
        parts, slopes, tables = [], {}, {}
        for each in some:
            figures = self.world.figures[each.name]
            if isinstance(each, Ordered):
                slope, bend = float(self.rng.uniform(-2, 2)), float(self.rng.choice(figures[~np.isnan(figures)]))
                part, slopes[each.name] = slope * np.abs(figures - bend), abs(slope)
            else:
                worth = self.rng.uniform(-1, 1, len(each.labels))
                part = np.where(np.isnan(figures), np.nan, worth[np.nan_to_num(figures).astype(int)])
                slopes[each.name] = float(np.ptp(worth))
            part = np.where(np.isnan(part), float(self.rng.uniform(-1, 1)), part)
            tables[each.name] = dict(zip(self.world.written[each.name], part.tolist(), strict=True))
            parts.append(part)
        total = np.sum(parts, axis=0)
        bounds = float(total.min()) - 1e-9, float(total.max()) + 1e-9

        def apply(asked: Any) -> Any:
            def function(*row: Any) -> float:
                return float(sum(tables[name][value] for name, value in zip(names, row, strict=True)))

            return asked(function, columns=names, lipschitz=None, slopes=slopes, bounds=bounds, row_by_row=True)

        return Question(
            f"function({', '.join(names)})", "function", names, lambda near: extremes(near, total),
            lambda table: float(table @ total), apply=apply,
        )  # fmt: skip


FORMS = tuple(
    name[1:]
    for name in vars(Asker)
    if name[1:] in {
        "fraction", "fraction_in_group", "count", "cdf", "mean", "mean_in_group", "mean_of_two", "mean_of_two_in_group",
        "sum_of_two", "sum",
        "variance", "sd", "covariance", "correlation", "quantile", "median", "function", "variance_in_group",
        "correlation_in_group", "median_in_group",
    }
)  # fmt: skip
