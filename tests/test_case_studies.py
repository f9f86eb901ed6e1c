"""The case studies run as they are printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "case-studies"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.stem != "index")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_case_study_runs_and_its_claims_hold(page):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert any("assert" in block for block in blocks)
    exec(compile("\n".join(blocks), str(page), "exec"), {"__name__": "case_study"})
