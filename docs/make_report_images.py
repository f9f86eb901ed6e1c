"""Take pictures of the report of a demo release: its first screen in light and dark, on a phone, and on paper.

Needs Chromium. Every run makes a new release, so that the numbers in the pictures change a little.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from certsynth import Schema, demo, release

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "report"))
from chromium import Browser

IMAGES = Path(__file__).with_name("images")

NAMES = {"high = 100": 'high = 100\nunit = "years"', "high = 120000.0": 'high = 120000.0\nunit = "dollars"'}
"""Lines of the demo's schema, and what they are replaced by."""

PICTURES = {
    "light": {"width": 1280, "height": 900},
    "dark": {"width": 1280, "height": 900, "dark": True},
    "phone": {"width": 390, "height": 844},
    "print": {"width": 760, "height": 1075, "media": "print"},
}


def made_page(folder: Path) -> str:
    """The report of a new release of the made-up town."""
    text = demo.SCHEMA
    for line, named in NAMES.items():
        text = text.replace(line, named)
    demo.write_csv(demo.people(20_000), folder / "people.csv")
    release(folder / "people.csv", Schema.parse(text), epsilon="1", out=folder / "release")
    return (folder / "release" / "report.html").read_text(encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        html = made_page(folder)
        with Browser(folder) as browser:
            for picture, options in PICTURES.items():
                shown = browser.open(html, **options)
                shown.run("document.documentElement.style.scrollbarWidth = 'none'")
                if picture == "print":
                    shown.run("document.body.style.padding = '40px'")  # the margins of the paper
                (IMAGES / f"report-{picture}.png").write_bytes(shown.screenshot())
                shown.close()


if __name__ == "__main__":
    main()
