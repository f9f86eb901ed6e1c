"""The site: `make docs` builds it into build/docs/html, without network, and its pages load nothing from elsewhere.

Pages are Markdown, and work in a plain viewer of the repository as well. Mathematics is written with its own letters,
so that no renderer is needed: a page with a formula for MathJax would load a script from the net, and a test refuses
it.
"""

from __future__ import annotations

import importlib.metadata

project = "certsynth"
author = "the authors of certsynth"
version = release = importlib.metadata.version("certsynth")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["README.md"]
nitpicky = True

# Names of other people's types that signatures mention: nothing is fetched to find them.
nitpick_ignore_regex = [("py:.*", r"(?!certsynth\.)(\w+\.)*\w+"), ("py:.*", r"certsynth\.\w+\..*")]

# Links to headings work as in a viewer of the repository: small letters, hyphens for spaces.
myst_heading_anchors = 3
myst_links_external_new_tab = False
suppress_warnings = ["myst.strikethrough"]

autodoc_typehints = "none"  # parameters are explained in words; signatures stay readable
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = f"certsynth {version}"
html_static_path = ["images"]
html_copy_source = False
html_show_sourcelink = False
