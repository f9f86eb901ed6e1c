"""Makes one plan or one release, as a process of its own: `python releasing.py REQUEST`.

It imports nothing but certsynth, from wherever PYTHONPATH says: also from another checkout. The request and the report
are JSON files.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, get_type_hints

import certsynth
from certsynth import Schema, plan, release
from certsynth.algorithm.options import PlanOptions


def planned(request: dict[str, Any], schema: Schema) -> dict[str, Any]:
    known = get_type_hints(PlanOptions)
    options = {name: value for name, value in request["options"].items() if name in known}
    found = plan(schema, rows=request["rows"], **options)
    choice = found.choice
    return {"predicted": choice.predicted_bound, "low": choice.low, "high": choice.high, "plan": found.to_json()}


def released(request: dict[str, Any], schema: Schema) -> dict[str, Any]:
    made = release(request["data"], schema, seed=request["seed"], out=request["out"], **request["options"])
    document = made.document
    worst = max(made.certificate.subsets, key=lambda subset: subset[1])
    return {"bound": made.certificate.bound, "worst bound": worst[0], "document": without_lists(document)}


def without_lists(document: dict[str, Any]) -> dict[str, Any]:
    """A document without its lists by subset, which are long; the measures name every pair."""
    kept = {name: value for name, value in document.items() if name != "subsets"}
    return {name: without_lists(value) if isinstance(value, dict) else value for name, value in kept.items()}


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    schema = Schema.load(request["schema"])
    begun = time.perf_counter()
    told = {"plan": planned, "release": released}[request["ask"]](request, schema)
    told |= {"seconds": time.perf_counter() - begun, "certsynth": str(Path(certsynth.__file__).parent)}
    Path(request["report"]).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main()
