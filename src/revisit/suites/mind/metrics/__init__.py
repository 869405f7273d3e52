"""The metrics of the suite, in the order of the tables; the card says for which tests."""

from __future__ import annotations

import revisit.suites.mind.metrics.action
import revisit.suites.mind.metrics.gsc
import revisit.suites.mind.metrics.lcm
import revisit.suites.mind.metrics.visual  # noqa: F401 - importing them registers their metrics
from revisit.core import METRICS

# Metric of the result file -> our metrics, by the name of their value there.
KEYS = {
    "lcm": {name: f"mind_lcm_{name}" for name in ("mse", "psnr", "ssim", "lpips")},
    "visual_quality": {"imaging": "mind_imaging", "aesthetic": "mind_aesthetic"},
    "dino": {"dino_mse": "mind_dino"},
    "action": {"rpe_trans": "mind_action_translation", "rpe_rot": "mind_action_rotation"},
    "gsc": {name: f"mind_gsc_{name}" for name in ("mse", "psnr", "ssim", "lpips")},
}
ORDER = [metric_id for key in ("lcm", "gsc", "action", "visual_quality", "dino") for metric_id in KEYS[key].values()]


def mind_metric_ids() -> list[str]:
    """Ids of the metrics of this suite: MIND's own, then those of camera paths."""
    further = [metric_id for metric_id in METRICS if "mind" in METRICS[metric_id].suites and metric_id not in ORDER]
    return [*ORDER, *further]
