"""A real browser, told what to do over a pipe (Chrome DevTools Protocol): pages, windows, themes, and what it saw."""

from __future__ import annotations

import base64
import json
import os
import queue
import shutil
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

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
    "--disable-dev-shm-usage",
)

PATIENCE = 60
"""Seconds after which a browser that does not answer is given up."""

Json = dict[str, Any]


class Browser:
    """One running Chromium. Pages are opened in turn, each in a tab of its own."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        self._folder = folder
        heard, self._say = os.pipe()
        self._hear, said = os.pipe()
        # The protocol is spoken on descriptors 3 and 4, which only a shell can arrange without a fork of ours.
        command = f'exec "$0" "$@" 3<&{heard} 4>&{said}'
        own = [f"--user-data-dir={folder / 'profile'}", "--remote-debugging-pipe", "about:blank"]
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", command, CHROMIUM, *FLAGS, *own],
            pass_fds=(heard, said),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(heard)
        os.close(said)
        self._number = 0
        self._answers: dict[int, queue.Queue[Json]] = {}
        self.events: list[Json] = []
        self._news = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _listen(self) -> None:
        left = b""
        while chunk := os.read(self._hear, 1 << 16):
            *whole, left = (left + chunk).split(b"\0")
            for text in whole:
                message = json.loads(text)
                if "id" in message:
                    self._answers[message["id"]].put(message)
                else:
                    with self._news:
                        self.events.append(message)
                        self._news.notify_all()

    def call(self, method: str, session: str | None = None, **parameters: Any) -> Json:
        self._number += 1
        answer: queue.Queue[Json] = queue.Queue()
        self._answers[self._number] = answer
        said = {"id": self._number, "method": method, "params": parameters}
        data = json.dumps(said | ({"sessionId": session} if session else {})).encode() + b"\0"
        while data:
            data = data[os.write(self._say, data) :]
        found = answer.get(timeout=PATIENCE)
        if "error" in found:
            raise RuntimeError(f"{method}: {found['error']}")
        return dict(found["result"])

    def wait(self, method: str, session: str) -> None:
        with self._news:
            seen = self._news.wait_for(
                lambda: any(e["method"] == method and e.get("sessionId") == session for e in self.events), PATIENCE
            )
        assert seen, f"no {method}"

    def open(self, html: str, *, width: int = 1000, dark: bool = False, media: str = "screen", **more: Any) -> Page:
        return Page(self, self._folder, html, width=width, dark=dark, media=media, **more)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._say)


class Page:
    """A page that has been loaded from a file, and all that it asked for and complained of."""

    def __init__(
        self,
        browser: Browser,
        folder: Path,
        html: str,
        *,
        width: int,
        dark: bool,
        media: str,
        height: int = 900,
        scripts: bool = True,
    ) -> None:
        self._browser = browser
        file = folder / "page.html"
        file.write_text(html, encoding="utf-8")
        self._address = file.as_uri()
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.call("Page.navigate", url=self._address)
        browser.wait("Page.loadEventFired", self._session)

    def call(self, method: str, **parameters: Any) -> Json:
        return self._browser.call(method, self._session, **parameters)

    def run(self, expression: str) -> Any:
        """What a line of JavaScript gives; the page's policy does not bind the one who asks."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def resize(self, width: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def press(self, key: str, code: int, text: str = "") -> None:
        """A key, as from a keyboard."""
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **typed)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def _events(self, method: str) -> list[Json]:
        return [
            e["params"] for e in self._browser.events if e["method"] == method and e.get("sessionId") == self._session
        ]

    @property
    def complaints(self) -> list[str]:
        """What was written to the console, thrown and not caught, or refused by the policy of the page."""
        console = [str(e["args"]) for e in self._events("Runtime.consoleAPICalled")]
        thrown = [str(e["exceptionDetails"]) for e in self._events("Runtime.exceptionThrown")]
        logged = [str(e["entry"]["text"]) for e in self._events("Log.entryAdded")]
        return console + thrown + logged

    @property
    def requests(self) -> list[str]:
        """Whatever was asked for apart from the page itself."""
        asked = [str(e["request"]["url"]) for e in self._events("Network.requestWillBeSent")]
        return [url for url in asked if url != self._address]

    def screenshot(self, *, whole: bool = False) -> bytes:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        return base64.b64decode(shot["data"])

    def _clip(self, whole: bool) -> Json:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def pdf(self) -> bytes:
        made = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=True)
        return base64.b64decode(made["data"])

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)
