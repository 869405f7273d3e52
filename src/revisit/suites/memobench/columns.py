"""The columns of the public leaderboard, in its order: names, titles, and where a record has the number."""

from __future__ import annotations

from typing import NamedTuple

FIDELITY = {"PSNR": "memo_psnr", "SSIM": "memo_ssim", "LPIPS": "memo_lpips"}
Place = tuple[str, ...]  # of a number in the facts of a record
SCORE: Place = ()  # the score itself


class PublicColumn(NamedTuple):
    """A column: our metric, its short title, and how its number is taken from a record."""

    metric: str
    title: str
    place: Place = SCORE
    factor: float = 1  # what the public files multiply it by
    decimals: int | None = None  # on a board; None: by the rule for all numbers
    higher_is_better: bool = True


LEADERBOARD = {
    "VisualQuality": PublicColumn("memo_visual_quality", "VisQual"),
    "MotionSmoothness": PublicColumn("memo_motion_smoothness", "MotSmooth"),
    "ObjIdentityConsistency": PublicColumn("memo_identity", "ObjConsist"),
    "Geo3DConsistency": PublicColumn("memo_geo3d", "3DConsist"),
    "CameraControllability": PublicColumn("memo_camera", "CamCtrl"),
    "ImageRewardScore": PublicColumn("memo_image_reward", "ImgReward"),
    "ORS": PublicColumn("memo_ors", "ORS", factor=100, decimals=3),
    "GT_ALL_PSNR": PublicColumn("memo_psnr", "PSNR", ("mean", "all")),
    "GT_ALL_SSIM": PublicColumn("memo_ssim", "SSIM", ("mean", "all"), decimals=3),
    "GT_ALL_LPIPS": PublicColumn("memo_lpips", "LPIPS", ("mean", "all"), decimals=3, higher_is_better=False),
    "InstructionFollowing": PublicColumn("memo_vqa_if", "VQA-IF"),
    "ObjectBackground": PublicColumn("memo_vqa_ob", "VQA-OB"),
    "ContinuityOfMemory": PublicColumn("memo_vqa_cm", "VQA-CM"),
    "PhysicsAdherence": PublicColumn("memo_vqa_pa", "VQA-PA"),
}
