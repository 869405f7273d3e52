"""Which metrics the suite asks: the twelve dimensions in upstream's order, then what plugins add."""

from __future__ import annotations

from revisit.core import METRICS
from revisit.suites.mbench.names import BY_ID


def metrics() -> list[str]:
    """Ids of the metrics of this suite."""
    others = [id for id in METRICS if "mbench" in METRICS[id].suites and id not in BY_ID]
    return [*(id for id in BY_ID if id in METRICS), *others]
