"""A real browser shows the page without complaint, and asks nobody for anything. Skipped where there is none."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from report_specimens import EVERY_KIND, candidates, document, table

from certsynth.report import render_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--enable-logging=stderr",
    "--dump-dom",
)


MECHANISMS = ("identity", "haar", "haar-hilbert", "haar-weighted", "quad-tree", "haar-noisy-total")
RESOLUTIONS = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)

ENDS = """
const seen = [...document.querySelectorAll("text")].map(t => t.getBoundingClientRect()).filter(r => r.width);
document.title = ["ends", Math.min(...seen.map(r => r.left)) >= 0, Math.max(...seen.map(r => r.right)) <= innerWidth,
  document.documentElement.scrollWidth <= innerWidth].join();
"""


def page(**choices: Any) -> str:
    return render_report(document(EVERY_KIND, **choices), EVERY_KIND, table(EVERY_KIND))


def browse(html: str, folder: Path, width: int = 1000) -> tuple[str, list[str], list[str]]:
    """The page as Chromium leaves it, what it wrote to the console, and the hosts that were asked for."""
    file = folder / "report.html"
    file.write_text(html, encoding="utf-8")
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_note_requests, args=(server, asked), daemon=True).start()
        assert CHROMIUM is not None
        own = [
            f"--window-size={width},900",
            f"--user-data-dir={folder / 'profile'}",
            f"--proxy-server=127.0.0.1:{server.getsockname()[1]}",
        ]
        ran = subprocess.run(
            [CHROMIUM, *FLAGS, *own, file.as_uri()], capture_output=True, text=True, timeout=60, check=True
        )
    console = [line for line in ran.stderr.splitlines() if ":CONSOLE" in line]
    errands = ("google.com", "googleapis.com", "gvt1.com", "gstatic.com")  # the browser's own
    return ran.stdout, console, [host for host in asked if not host.split(":")[0].endswith(errands)]


def _note_requests(server: socket.socket, asked: list[str]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection, contextlib.suppress(OSError):  # connections that come to nothing
            connection.settimeout(2)
            head = connection.recv(4096).decode("latin-1")
            asked += re.findall(r"^\w+ (?:http://)?([^/ ]+)", head)
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def test_a_browser_shows_it_without_complaint_or_request(tmp_path: Path) -> None:
    shown, console, asked = browse(page(), tmp_path)
    assert "The promise" in shown
    assert not console
    assert not asked


def test_the_browser_test_would_see_complaints_and_requests(tmp_path: Path) -> None:
    leaky = page().replace("default-src 'none'; style-src 'unsafe-inline'", "default-src *  'unsafe-inline'")
    leaky = leaky.replace("</main>", '<img src="http://leak.example/x"><script>console.error("seen")</script></main>')
    _, console, asked = browse(leaky, tmp_path)
    assert any("seen" in line for line in console)
    assert "leak.example" in asked


def test_the_policy_stops_what_escaping_would_let_through(tmp_path: Path) -> None:
    leaky = page().replace("</main>", '<img src="http://leak.example/x"><script>document.title = "ran"</script></main>')
    shown, _, asked = browse(leaky, tmp_path)
    assert "<title>ran</title>" not in shown
    assert "leak.example" not in asked


def ends(html: str, folder: Path, width: int) -> str:
    """Whether texts of pictures end inside the window on the left and right, and nothing else sticks out."""
    free = html.replace("default-src 'none'; style-src 'unsafe-inline'", "default-src 'unsafe-inline'")
    shown, _, _ = browse(free.replace("</main>", f"</main><script>{ENDS}</script>"), folder, width)
    return re.findall(r"<title>ends,(\S+)</title>", shown)[0]


@pytest.mark.parametrize("width", [500, 834, 1000, 1400])
def test_no_text_sticks_out_of_the_page(tmp_path: Path, width: int) -> None:
    html = page(concentrated=True, compared=candidates(MECHANISMS, RESOLUTIONS))
    assert ends(html, tmp_path, width) == "true,true,true"


def test_a_text_that_sticks_out_would_be_seen(tmp_path: Path) -> None:
    html = page(compared=candidates(["m" * 18, "haar"], RESOLUTIONS, best=("haar", 8)))
    assert ends(html.replace("mmm", "mmm" * 20), tmp_path, 1000).split(",")[1] == "false"
