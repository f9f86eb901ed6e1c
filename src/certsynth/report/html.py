"""Rendering of the report: the view, the layout of its charts, and a template that escapes every value."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

from certsynth.report import charts, words


@dataclass(frozen=True, slots=True)
class Inline:
    """A file that is inlined into the page verbatim, with the hash by which the content security policy allows it."""

    text: Markup
    sha256: str


def render(view: Mapping[str, Any]) -> str:
    """Render one self-contained HTML page from the result of `certsynth.report.view.view`."""
    pairs = view["subsets"]["map"]
    scale = charts.share_scale(view["columns"]["drawn"])
    drawn = {
        "terms": charts.stacked(view["certificates"]),
        "budget": charts.budget(view["privacy"]),
        "choice": charts.lines(view["choice"]["drawn"]) if view["choice"]["drawn"] else None,
        "map": charts.heat(pairs) if pairs else None,
        "columns": [(column, charts.spread(column, scale)) for column in view["columns"]["drawn"]],
    }
    return _template().render(
        view=view,
        drawn=drawn,
        percent=charts.percent,
        roles=words.ROLES,
        style=inline("style.css"),
        scripts=[inline("calculator.js"), inline("page.js")],
    )


@functools.cache
def inline(name: str) -> Inline:
    text = files("certsynth.report").joinpath(name).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Inline(
        text=Markup(text), sha256=f"'sha256-{digest}'"
    )  # a file of this package: it contains nothing from a release


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("certsynth.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {
        "sort_keys": True,
        "separators": (",", ":"),
        "allow_nan": False,
        "ensure_ascii": False,  # six characters for one would double the page in some scripts
    }
    return environment.get_template("template.html.j2")
