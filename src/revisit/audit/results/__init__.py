"""Results: what the audit found, kept with the package so that every metric's card can show it.

`revisit audit --save-results` writes <set>.json here. The file says on which grid, with which version of each
metric; a card shows nothing of a metric that has changed since.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from revisit.audit.schema import Content


@cache
def load_saved_audit(set: str = "lite") -> Content:
    """The saved audit of an observer set; empty where there is none."""
    file = files(__name__) / f"{set}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def saved_metric_audit(metric: str, version: int) -> Content | None:
    """What the audit found of a metric in this version, or None."""
    audit = load_saved_audit().get("metrics", {}).get(metric)
    return audit if audit is not None and audit["version"] == version else None
