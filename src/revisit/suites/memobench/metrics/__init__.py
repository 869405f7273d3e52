"""Which metrics the suite asks, in the order of the tables.

First the benchmark's own, in the order of its leaderboard; then metrics for clips that look away and return, which the
benchmark does not have; then descriptions of the camera to sort clips by.
"""

from __future__ import annotations

from revisit.core import METRICS
from revisit.core.suites import metrics_of

OWN = (
    "memo_visual_quality", "memo_motion_smoothness", "memo_identity", "memo_geo3d", "memo_camera", "memo_image_reward",
    "memo_ors", "memo_psnr", "memo_ssim", "memo_lpips", "memo_vqa_if", "memo_vqa_ob", "memo_vqa_cm", "memo_vqa_pa",
    "memo_aesthetic", "memo_image_quality",
)  # fmt: skip
RETURNING = ("target_reappearance", "target_identity", "return_consistency", "event_outcome")
CAMERA = ("camera_path", "true_turn")
DIAGNOSED = ("camera_departure", "look_departure", "target_departure")  # what failures are told by
FIDELITY = ("memo_psnr", "memo_ssim", "memo_lpips")


def suite_metric_ids() -> list[str]:
    """Ids of the metrics of this suite; what a plugin adds comes last."""
    diagnosed = filter(is_failure_diagnosis_metric, METRICS)
    return list(dict.fromkeys([*OWN, *RETURNING, *CAMERA, *metrics_of("memobench"), *diagnosed]))


def is_failure_diagnosis_metric(metric_id: str) -> bool:
    """Whether a metric only serves to tell failures apart: it has no column of its own."""
    return METRICS[metric_id].family in DIAGNOSED
