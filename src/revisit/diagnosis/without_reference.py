"""Rules for a clip without a reference, or without a target: what its gates and its own return say of failures.

They are not fitted: each rests on one statement of a gate, or on a ratio that an eye sees at a glance. Without a
reference nobody knows what the camera or the target should have done, so most kinds cannot be told. With a reference
and without a target, the outcome of the unseen event still tells a reset.
"""

from __future__ import annotations

from typing import NamedTuple

from revisit.diagnosis.signs import Scores, between
from revisit.evidence.motion import RESTS_AS_ASKED

RESTS = 0.5  # share of the time without motion
BY_GATE = 0.9  # confidence in what a gate states; gates say "unsure" where they are not
BY_LOOKS = 0.6  # that a target is gone: one that changed while nobody looked is not recognised either
BY_NETWORK = 0.8  # the same where a network looked, which knows a changed target better
WHOLE_TURN = 0.75  # share of the requested turn from which a camera is not called timid
HALF_TURN = 0.5  # below this share it surely is
NO_TURN = 2.0  # degrees: less is no turn
UNDECIDED, UNDONE = 0.5, 0.2  # outcome of the event: between first view and truth, and surely the first view


class RuleAnswer(NamedTuple):
    """What a rule says of a kind: its confidence, its strength, and the frames that show it."""

    sure: float
    strength: float
    frames: tuple[int, ...] = ()


def by_rule(scores: Scores) -> dict[str, RuleAnswer]:
    """What the rules say, by kind; each counts where the fitted models do not know the signs of the kind."""
    answers: dict[str, RuleAnswer] = {}
    never_left = scores.label("view_return") in ("never left", "covered, not left")
    rests = scores.of("frozen_camera", default=1.0) >= RESTS  # a camera that moves and stays was perhaps asked to
    turned = turned_share(scores)
    if asked_to_rest(scores):
        pass  # a camera that holds as it was asked is right
    elif turned is not None:
        if turned[0] < NO_TURN:
            answers["frozen_camera"] = RuleAnswer(BY_GATE, 1.0)
        elif 0 < turned[1] < WHOLE_TURN:  # to the wrong side is another fault, which has no kind
            sure = 0.5 + (BY_GATE - 0.5) * between(WHOLE_TURN - turned[1], 0.0, WHOLE_TURN - HALF_TURN)
            answers["timid_camera"] = RuleAnswer(sure, 1 - between(turned[1], 0.0, 1.0))
    elif scores.label("camera_moved") == "frozen camera" or (never_left and rests):
        lost_strip = float(scores.facts("view_return").get("lost_strip") or 0.0)
        answers["frozen_camera"] = RuleAnswer(BY_GATE, 1 - between(lost_strip, 0.0, 0.5))
    if scores.known("target_reappearance") and scores.of("target_reappearance") == 0:
        layout = scores.facts("target_return").get("by", "layout") == "layout"
        answers["vanish"] = RuleAnswer((BY_LOOKS if layout else BY_NETWORK), 1.0)
    if scores.known("event_outcome"):
        undone = between(UNDECIDED - scores.of("event_outcome"), 0.0, UNDECIDED - UNDONE)
        frame = scores.facts("event_outcome").get("clip_frame")
        answers["state_reset"] = RuleAnswer(
            BY_GATE * undone, 1 - scores.of("event_outcome"), () if frame is None else (frame,)
        )
    if scores.known("lighting_consistency"):
        shift = float(scores.records["lighting_consistency"].raw or 0.0)  # CIELAB, half of lightness and colour
        answers["lighting"] = RuleAnswer(between(shift, 4.0, 16.0), between(shift, 0.0, 20.0))
    if scores.known("style_consistency"):
        ratio = scores.facts("style_consistency").get("ratio") or {}
        fine, coarse = float(ratio.get("gradient_0", 1.0)), float(ratio.get("gradient_2", 1.0))
        lost_detail = 1 - fine / max(coarse, 1e-6)  # fine detail against coarse: dimmer light takes both
        answers["blur"] = RuleAnswer(between(lost_detail, 0.15, 0.55), between(lost_detail, 0.0, 0.7))
    return answers


def asked_to_rest(scores: Scores) -> bool:
    """Whether the camera of the clip was asked to hold still, as its gate or its own metric says."""
    return scores.label("camera_moved") == RESTS_AS_ASKED or scores.known("wr_static_hold")


def turned_share(scores: Scores) -> tuple[float, float] | None:
    """Degrees turned at the farthest, and the share of the requested turn, to its side; None without a request."""
    yaw, requested = (scores.of("wr_camera_alignment", fact) for fact in ("yaw_deg", "requested_deg"))
    return (abs(yaw), yaw / requested) if requested else None
