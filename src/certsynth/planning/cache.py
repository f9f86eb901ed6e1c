"""A cache of plans on disk: a plan depends on a schema and a few numbers, never on rows."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

CACHE_VARIABLE = "CERTSYNTH_CACHE"
"""Environment variable that names the cache folder; "off" disables the cache. By default it is a folder of the user's
cache."""

Answer = dict[str, Any]


def load_or_make(question: Mapping[str, Any], make: Callable[[], Answer]) -> Answer:
    """The stored answer to a question; if there is none, what `make` returns, which is stored. JSON in both cases.

    A folder that cannot be read or written is treated as if there were none.
    """
    folder = _folder()
    if folder is None:
        return _json_copy(make())
    asked = json.dumps({"certsynth": importlib.metadata.version("certsynth"), **question}, sort_keys=True)
    file = folder / f"{hashlib.sha256(asked.encode()).hexdigest()}.json"
    with contextlib.suppress(OSError, ValueError, RecursionError):
        found = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(found, dict) and found.get("asked") == asked and isinstance(found.get("answer"), dict):
            return dict(found["answer"])
    answer = _json_copy(make())
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".new", delete=False, encoding="utf-8") as new:
            json.dump({"asked": asked, "answer": answer}, new)
        Path(new.name).replace(file)
    return answer


def _json_copy(answer: Answer) -> Answer:
    return dict(json.loads(json.dumps(answer)))


def _folder() -> Path | None:
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen)
    with contextlib.suppress(RuntimeError):  # no home
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "certsynth"
    return None
