"""The metrics of the suite, in the order of its tables."""

from __future__ import annotations

from revisit.suites.worldmark.metrics import control, memory, whole  # noqa: F401 - importing them registers their metrics

# Column of the benchmark's table -> our metric.
COLUMNS = {
    **{one.upstream: one.id for one in control.CONTROL},
    "Local": "worldmark_local",
    "Global": "worldmark_global",
    "Rev": "worldmark_revisit",
    "QA_q": "worldmark_quality",
    "QA_a": "worldmark_aesthetic",
}
STAND_INS = ("worldmark_local_small", "worldmark_revisit_small")  # of the small set, with names of their own


def worldmark_metric_ids() -> list[str]:
    """Ids of the metrics of this suite."""
    return [*COLUMNS.values(), *STAND_INS, "worldmark_step"]
