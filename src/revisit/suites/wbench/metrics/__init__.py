"""The metrics of the suite by dimension: the columns of the published board, and those beside it."""

from __future__ import annotations

import revisit.suites.wbench.metrics.consistency
import revisit.suites.wbench.metrics.judged
import revisit.suites.wbench.metrics.loops
import revisit.suites.wbench.metrics.navigation
import revisit.suites.wbench.metrics.quality  # noqa: F401 - importing them registers their metrics

# Dimension -> its metrics, in the order of the board; each dimension is the mean of those that were scored.
DIMENSIONS = {
    "Quality": ("wb_aesthetic", "wb_imaging", "wb_flicker", "wb_dynamic", "wb_smoothness", "wb_hpsv3"),
    "Setting": ("wb_scene", "wb_subject_adherence"),
    "Interaction": ("wb_navigation",),
    "Consistency": (
        "wb_background", "wb_spatial", "wb_gated_spatial", "wb_perspective", "wb_segment", "wb_geometric",
        "wb_photometric", "wb_subject",
    ),
    "Physical": ("wb_plausibility", "wb_causal"),
}  # fmt: skip
# What the full split adds to interaction, and the two halves of the navigation score.
FURTHER = (
    "wb_event_edit", "wb_subject_action", "wb_perspective_switch", "wb_navigation_accuracy",
    "wb_navigation_consistency",
)  # fmt: skip


def metrics() -> list[str]:
    """Ids of the metrics of this suite."""
    return [*(metric for ids in DIMENSIONS.values() for metric in ids), *FURTHER]
