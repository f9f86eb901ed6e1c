"""The site: `make docs` builds it into build/docs/html, without network, and its pages load nothing from elsewhere.

Pages are Markdown, and read well in a plain viewer of the repository, too. Mathematics is written with its own letters,
in pages and in the docstrings of public names. So no renderer is needed: MathJax would be a script from the net.
"""

from __future__ import annotations

import importlib.metadata
import re
from typing import Any

project = "certsynth"
version = release = importlib.metadata.version("certsynth")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["**.py", "**.toml", "**.json"]
default_role = "code"  # docstrings write `this`
nitpicky = True
smartquotes_action = "D"  # dashes between parameters and their meaning; quotes stay as they are

# Links to headings work as in a viewer of the repository: small letters, hyphens for spaces.
myst_heading_anchors = 3

autodoc_typehints = "none"  # parameters are explained in words
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_use_rtype = False

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_title = f"certsynth {version}"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

_FILES = r"(?:README|CHANGELOG|CONTRIBUTING|audits/README)\.md"


def _without_links_outward(app: Any, name: str, source: list[str]) -> None:
    """Links to files of the repository that are no pages of the site: their words stay, the link goes."""
    out_of_docs = r"\.\./" * (name.count("/") + 1)
    source[0] = re.sub(rf"\[([^\]]+)\]\({out_of_docs}{_FILES}(?:#[^)]*)?\)", r"\1", source[0])


_kept: dict[str, list[str]] = {}


def _keep(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Before napoleon: it takes the words before a colon in a property's docstring for a type."""
    if what == "property":
        _kept[name] = list(lines)


def _restore(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """After it."""
    if what == "property":
        lines[:] = _kept.pop(name)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _keep, priority=100)
    app.connect("autodoc-process-docstring", _restore, priority=900)
    app.connect("source-read", _without_links_outward)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
