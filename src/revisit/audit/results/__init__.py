"""Results: what the audit found, kept with the package so that every metric's card can show it.

`revisit audit --save-results` writes <set>.json here. The file says on which grid, with which version of each
metric; a card shows nothing of a metric that has changed since.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from revisit.audit.schema import AuditContent, MetricAudit

CHANCE = 0.6  # AUC up to which a metric does no better than chance at telling a failure from perfect memory


@cache
def results(set: str = "lite") -> AuditContent:
    """The saved audit of an observer set; empty where there is none."""
    file = files(__name__) / f"{set}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def card_of(metric: str, version: int) -> MetricAudit | None:
    """What the audit found of a metric in this version, or None."""
    audit = results().get("metrics", {}).get(metric)
    return audit if audit is not None and audit["version"] == version else None


def unresponsive(audit: MetricAudit) -> bool:
    """Whether a metric claims failures and tells none of them from perfect memory better than chance would.

    One of our own, that reproduces no published column, is then in no suite: it is asked by its name only.
    """
    claimed = [cell["auc"] for cell in audit["kinds"].values() if cell["claimed"] and cell["auc"] is not None]
    return bool(claimed) and max(claimed) <= CHANCE
