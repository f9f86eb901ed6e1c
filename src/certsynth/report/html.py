"""The page: the view, the places of the marks, and a template that escapes whatever it is given."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jinja2

from certsynth.report import charts, words


def render(view: Mapping[str, Any]) -> str:
    """One self-contained page of HTML for what `certsynth.report.view.view` returned."""
    pairs = view["subsets"]["map"]
    drawn = {
        "terms": charts.stacked(view["certificates"]),
        "budget": charts.budget(view["privacy"]),
        "choice": charts.lines(view["choice"]["drawn"]) if view["choice"]["drawn"] else None,
        "map": charts.heat(pairs) if pairs else None,
        "columns": [(column, charts.spread(column)) for column in view["columns"]["drawn"]],
    }
    return _template().render(view=view, drawn=drawn, roles=words.ROLES)


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("certsynth.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("template.html.j2")
