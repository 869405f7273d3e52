"""Rules: what the gates and single metrics say of failures, beside the fitted models and where these know nothing.

They are not fitted: each rests on one statement of a gate, or on a number that an eye sees at a glance. A rule answers
where the fitted models do not know the signs of a kind (`rule_answers`), and holds them back where its evidence speaks
against them (`limit_fitted_answer`). Without a reference nobody knows what the camera or the target should have done,
so many kinds cannot be decided. Collapse, blur, cut and flicker are asked of every clip.
"""

from __future__ import annotations

from typing import NamedTuple

from revisit.diagnosis.kinds import CAMERA, KNOWN_BY, Scores, ramp
from revisit.evidence.motion import RESTS_AS_ASKED

RESTS = 0.5  # share of the time without motion
BY_GATE = 0.9  # confidence in what a gate states; gates say "unsure" where they are not
BY_LOOKS = 0.6  # that a target is gone: one that changed while nobody looked is not recognised either
BY_NETWORK = 0.8  # the same where a network looked, which knows a changed target better
BY_ONE_CUE = 0.7  # of what one cue says alone: never a finding
PERHAPS = 0.45  # what is listed as doubtful, and not said
DENIED = 0.05  # confidence in a kind that its rule denies
WHOLE_TURN = 0.75  # share of the requested turn from which a camera is not called timid
HALF_TURN = 0.5  # below this share it surely is
NO_TURN = 2.0  # degrees: less is no turn
UNDECIDED, UNDONE = 0.5, 0.2  # outcome of the event: between first view and truth, and surely the first view
NEITHER = 0.35, 0.75  # outcome of the event that is neither the first view's nor the truth's
LEFT = 0.35  # share of the reference's way: a camera that stays below it never left
REFERENCE_MOVES = 0.04  # widths: a reference that moves less rests
REFERENCE_RETURNS = 0.5  # share of its way out that a reference comes back, from which it returns
SOFT, SHARP = 0.45, 0.58  # gradient on the strongest edges over that at a quarter of the size
NOTICED, PLAIN = 12.0, 40.0  # gray levels: a change at the target's place
STAYS, LEAVES = ("never left", "covered, not left"), ("left, returned", "left, not returned")


class RuleAnswer(NamedTuple):
    """What a rule says of a kind: its confidence, its strength, and the frames that show it."""

    sure: float
    strength: float
    frames: tuple[int, ...] = ()


NO = RuleAnswer(DENIED, 0.0)

# Kinds that rules answer of a clip whose camera never looked away, too.
IN_VIEW = frozenset({
    "style", "lighting", "vanish", "texture_drift", "state_frozen", "late_return", "partial_return", "camera_drift",
})  # fmt: skip


def rule_answers(scores: Scores) -> dict[str, RuleAnswer]:
    """What the rules say, by kind; each counts where the fitted models do not know the signs of the kind."""
    return {**_event_answers(scores), **_picture_answers(scores), **_camera_answers(scores), **_target_answers(scores)}


def limit_fitted_answer(kind_id: str, answer: RuleAnswer, rule: RuleAnswer | None, scores: Scores) -> RuleAnswer:
    """A fitted model's answer beside the evidence of the rules."""
    if kind_id == "collapse" and rule is not None:
        # A return that is a little softer than the truth looks like the beginning of a decay.
        return rule if rule.sure >= answer.sure else _cap_confidence(answer, BY_ONE_CUE)
    if kind_id == "blur" and scores.is_scored("edge_sharpness"):
        return answer._replace(sure=answer.sure * (1 - _edge_sharpness(scores)))
    if kind_id == "style" and scores.get("time_to_collapse", "first_view_at_end"):
        # A style lies over the whole picture; a thing that grew does not.
        shared = abs(scores.get("time_to_collapse", "chroma_change"))
        return _cap_confidence(answer, max(ramp(shared, 0.05, 0.2), DENIED))
    if kind_id == "state_reset" and rule is not None:
        # In the target's box nothing happened, or what happened there speaks for a reset as well.
        agree = not scores.is_scored("first_state") or answer.sure >= UNDECIDED
        return rule if agree and rule.sure > answer.sure else answer
    if kind_id in ("late_return", "partial_return") and not reference_camera_returns(scores):
        return NO
    if kind_id in ("frozen_camera", "timid_camera") and cues_disagree(scores):
        return _cap_confidence(answer, BY_ONE_CUE)
    if kind_id == "frozen_camera":
        # What moves in front of a camera that rests carries the picture along.
        stays = PERHAPS * ramp(LEFT - scores.get("camera_reach", default=1.0), 0.0, 0.1)
        return answer._replace(sure=max(answer.sure, stays))
    return answer


def reference_camera_returns(scores: Scores) -> bool:
    """Whether the camera of the reference comes back at all; taken to where nobody knows."""
    return scores.get("return_shortfall", "reference_returns", default=1.0) >= REFERENCE_RETURNS


def camera_never_left(scores: Scores) -> bool:
    """Whether the camera stayed at the first view: beside a reference that left, or by the gates without one."""
    if scores.is_scored(KNOWN_BY[CAMERA]):
        return scores.get("camera_reach") < LEFT and not cues_disagree(scores)
    stays = scores.gate_label("view_return") in STAYS or scores.gate_label("camera_moved") == "frozen camera"
    return stays and not reference_camera_rests(scores)  # where a reference hardly moves, nothing was to leave


def cues_disagree(scores: Scores) -> bool:
    """Whether the gate of the view and the camera's way beside the reference's say opposite things of its leaving."""
    label = scores.gate_label("view_return")
    if not scores.is_scored(KNOWN_BY[CAMERA]):
        return False
    left = scores.get("camera_reach") >= LEFT
    return (left and label in STAYS) or (not left and label in LEAVES)


def reference_camera_rests(scores: Scores) -> bool:
    """Whether there is a reference, and its camera hardly moves."""
    reason = scores.unscored_reason(KNOWN_BY[CAMERA])
    return reason is not None and reason.kind == "at_rest"


def has_reference(scores: Scores) -> bool:
    """Whether the clip was compared with a reference."""
    reason = scores.unscored_reason(KNOWN_BY[CAMERA])
    return scores.is_scored(KNOWN_BY[CAMERA]) or (reason is not None and reason.kind != "no_reference")


def camera_asked_to_rest(scores: Scores) -> bool:
    """Whether the camera of the clip was asked to hold still, as its gate or its own metric says."""
    return scores.gate_label("camera_moved") == RESTS_AS_ASKED or scores.is_scored("wr_static_hold")


def camera_is_at_rest(scores: Scores) -> bool:
    """Whether the camera hardly moves, whatever it was asked."""
    still = scores.get("frozen_camera", default=1.0)  # share of the time; one that moves and stays was perhaps asked to
    stays = scores.gate_label("view_return") in STAYS and still >= RESTS
    return scores.gate_label("camera_moved") == "frozen camera" or stays


def has_neither_reference_nor_script(scores: Scores) -> bool:
    """Whether neither a reference nor a camera script says what the camera should have done."""
    scripted = any(record.case.camera for record in scores.records.values())
    return not has_reference(scores) and not scripted


def degrees_and_share_turned(scores: Scores) -> tuple[float, float] | None:
    """Degrees turned at the farthest, and the share of the requested turn, to its side; None without a request."""
    yaw, requested = (scores.get("wr_camera_alignment", fact) for fact in ("yaw_deg", "requested_deg"))
    return (abs(yaw), yaw / requested) if requested else None


def _cap_confidence(answer: RuleAnswer, sure: float) -> RuleAnswer:
    return answer._replace(sure=min(answer.sure, sure))


def _edge_sharpness(scores: Scores) -> float:
    """How sharp the strongest edges are, in the whole clip and at its end: 0 soft, 1 sharp."""
    whole = scores.get("edge_sharpness")
    return ramp(min(whole, scores.get("edge_sharpness", "late", default=whole)), SOFT, SHARP)


def _camera_answers(scores: Scores) -> dict[str, RuleAnswer]:
    """A camera that rests, or makes only part of the turn it was asked for."""
    label = scores.gate_label("view_return")
    turned = degrees_and_share_turned(scores)
    answers: dict[str, RuleAnswer] = {}
    if camera_asked_to_rest(scores):
        return answers  # a camera that holds as it was asked is right
    if reference_camera_rests(scores):
        moves = scores.facts("camera_reach").get("reference_widths", 0.0) >= REFERENCE_MOVES
        still = scores.get("frozen_camera", default=1.0)
        frozen = PERHAPS * ramp(still, 0.7, 0.9) if moves else DENIED
        return {"frozen_camera": RuleAnswer(frozen, 0.0), "timid_camera": NO, "late_return": NO, "partial_return": NO}
    if camera_never_left(scores) and has_reference(scores):
        answers |= {"late_return": NO, "partial_return": NO, "camera_drift": NO}
    if turned is not None:
        if turned[0] < NO_TURN:
            answers["frozen_camera"] = RuleAnswer(BY_GATE, 1.0)
        elif 0 < turned[1] < WHOLE_TURN:  # to the wrong side is another fault, which has no kind
            sure = 0.5 + (BY_GATE - 0.5) * ramp(WHOLE_TURN - turned[1], 0.0, WHOLE_TURN - HALF_TURN)
            answers["timid_camera"] = RuleAnswer(sure, 1 - ramp(turned[1], 0.0, 1.0))
    elif camera_is_at_rest(scores):
        lost_strip = float(scores.facts("view_return").get("lost_strip") or 0.0)
        # Beside a reference that nobody could follow, the camera was perhaps to rest. Without one, and without a
        # script, nobody asked it to move: a filmed camera on its stand does nothing wrong.
        sure = BY_ONE_CUE if has_reference(scores) else PERHAPS if has_neither_reference_nor_script(scores) else BY_GATE
        answers["frozen_camera"] = RuleAnswer(sure, 1 - ramp(lost_strip, 0.0, 0.5))
    elif label in (*STAYS, *LEAVES) and scores.is_scored("frozen_camera"):
        answers["frozen_camera"] = NO  # it moves
    return answers


def _picture_answers(scores: Scores) -> dict[str, RuleAnswer]:
    """Decay, blur, and another style or light of a view that is seen again or never left."""
    answers = _returned_view_answers(scores)
    if scores.is_scored("time_to_collapse") and "collapse" in scores.facts("time_to_collapse"):
        sign = scores.get("time_to_collapse", "collapse")
        frames = tuple(scores.named_frames("time_to_collapse"))
        answers["collapse"] = RuleAnswer(max(0.95 * sign, DENIED), sign, frames)
        if "blank" in scores.facts("time_to_collapse"):  # black, or of one colour: there is nothing left to decay
            first = int(scores.get("time_to_collapse", "blank_from_frame"))
            answers["collapse"] = RuleAnswer(0.95, 1.0, (first,))
        if scores.get("time_to_collapse", "first_view_at_end"):
            chroma, light = (abs(scores.get("time_to_collapse", f"{name}_change")) for name in ("chroma", "light"))
            answers["style"] = RuleAnswer(max(BY_ONE_CUE * ramp(chroma, 0.2, 0.45), DENIED), ramp(chroma, 0, 0.5))
            if not scores.is_scored("lighting_consistency"):
                sure = max(BY_ONE_CUE * ramp(light, 0.25, 0.6), DENIED)
                answers["lighting"] = RuleAnswer(sure, ramp(light, 0, 0.8))
    if scores.is_scored("edge_sharpness"):
        soft = 1 - _edge_sharpness(scores)
        # A bare wall has soft shades only: the reference, or the view's own first time, must say so as well.
        returned = answers.get("blur", NO)
        sure = max(BY_ONE_CUE * soft, returned.sure * soft, DENIED)
        answers["blur"] = RuleAnswer(sure, max(soft, returned.strength))
    return answers


def _returned_view_answers(scores: Scores) -> dict[str, RuleAnswer]:
    """Light and blur of a view that is seen again, against its first time."""
    answers: dict[str, RuleAnswer] = {}
    if scores.is_scored("lighting_consistency"):
        shift = float(scores.records["lighting_consistency"].raw or 0.0)  # CIELAB, half of lightness and colour
        answers["lighting"] = RuleAnswer(ramp(shift, 4.0, 16.0), ramp(shift, 0.0, 20.0))
    if scores.is_scored("style_consistency"):
        ratio = scores.facts("style_consistency").get("ratio") or {}
        fine, coarse = float(ratio.get("gradient_0", 1.0)), float(ratio.get("gradient_2", 1.0))
        lost_detail = 1 - fine / max(coarse, 1e-6)  # fine detail against coarse: dimmer light takes both
        answers["blur"] = RuleAnswer(ramp(lost_detail, 0.15, 0.55), ramp(lost_detail, 0.0, 0.7))
    return answers


def _event_answers(scores: Scores) -> dict[str, RuleAnswer]:
    """What the unseen event left in the returned view: nothing, or something else than in the truth."""
    if not scores.is_scored("event_outcome"):
        return {}
    outcome, details = scores.get("event_outcome"), scores.facts("event_outcome")
    frame = details.get("clip_frame")
    frames = () if frame is None else (int(frame),)
    undone = ramp(UNDECIDED - outcome, 0.0, UNDECIDED - UNDONE)
    answers = {"state_reset": RuleAnswer(BY_GATE * undone, 1 - outcome, frames)}
    wrong = float(details.get("from_truth") or 0.0) / max(float(details.get("event_change") or 0.0), 1.0)
    if NEITHER[0] <= outcome <= NEITHER[1] and wrong >= 0.5:
        answers["shape_drift"] = RuleAnswer(PERHAPS, ramp(wrong, 0.0, 1.0), frames)
    return answers


def _target_answers(scores: Scores) -> dict[str, RuleAnswer]:
    """A target that is gone, by its gate, or beside a reference whose camera rests."""
    label, confidence = scores.gate_label("target_return"), scores.facts("target_return").get("confidence") or 0.0
    view, reference = scores.gate_label("view_return"), has_reference(scores)
    answers: dict[str, RuleAnswer] = {}
    if label in ("never hidden", "hidden, returned"):
        answers["vanish"] = NO
    elif label == "hidden, not returned" and confidence >= 0.5:
        by_network = scores.facts("target_return").get("by", "layout") != "layout"
        seen_again = view == "left, returned"
        # Where the view did not come back, or nobody knows what the target should do, its absence is no evidence.
        if seen_again or (reference and (view in STAYS or not reference_camera_returns(scores))):
            answers["vanish"] = RuleAnswer(BY_NETWORK if by_network and seen_again else BY_LOOKS, 1.0)
    if not (reference_camera_rests(scores) and scores.is_scored("target_in_view")):
        return answers
    wrong = scores.get("target_in_view")
    first, clip, truth = (scores.get("target_in_view", name) for name in ("first", "clip_change", "truth_change"))
    if wrong < max(NOTICED, truth / 2):
        answers["vanish"] = NO
    elif first >= PLAIN or wrong >= max(PLAIN, 2 * truth):
        answers["vanish"] = RuleAnswer(BY_LOOKS, ramp(wrong, 0.0, 2 * PLAIN))
    elif truth >= NOTICED and clip <= 0.4 * truth:
        answers["state_frozen"] = RuleAnswer(PERHAPS, 1 - ramp(clip, 0.0, truth))
    elif wrong >= truth >= NOTICED:
        answers["texture_drift"] = RuleAnswer(PERHAPS, ramp(wrong, 0.0, 2 * PLAIN))
    return answers
