"""Object reappearance score (ORS) of MemoBench: is the target found again in the frames of the return?

    ORS = (sum of the confidences) / (number of returned frames)   (Eq. 6)

A frame's confidence is that of its best mask of a plausible size. Upstream and the paper count every mask, however
unsure; `corrected` those above 0.5, the usual default of such detectors, and wants the file to say with which words it
was asked, since they move ORS by a factor of ten (docs/memobench-metrics.md).
"""

from __future__ import annotations

import numpy as np

from revisit.core import Case, InvalidEvidence, PublishedMaker, Score, Series, Unscored, metric
from revisit.evidence.frames import FrameFacts
from revisit.suites.memobench.evidence import Detections, expected_detector_prompt
from revisit.suites.memobench.metrics import rules

SMALLEST, LARGEST = 0.0005, 0.5  # coverage of a mask that counts
FALLBACK = 0.7  # coverage up to which one counts where none of the usual size is there
THRESHOLD = 0.5  # of `corrected`
SURELY_SEEN = 0.9  # of the visible frames: a guessed object that is missed more often was a bad guess


def best_confidence_per_frame(
    detections: Detections,
    threshold: float,
    smallest: float = SMALLEST,
    largest: float = LARGEST,
    fallback: float = FALLBACK,
) -> np.ndarray:
    """The best confidence among the masks that count, of every frame that was looked at; nan where there is none."""
    rows = np.searchsorted(detections.index, detections.frame)
    sure = (detections.score > threshold) & (detections.coverage >= smallest)
    best = np.full(len(detections.index), -np.inf)
    for most in (largest, max(largest, fallback)):  # the second only where the first has nothing
        counts = sure & (detections.coverage <= most) & np.isneginf(best)[rows]
        np.maximum.at(best, rows[counts], detections.score[counts])
    return np.where(np.isneginf(best), np.nan, best)


@metric(
    id="memo_ors", version=2, title="Object reappearance", unit="score", range=(0, 1), higher_is_better=True,
    needs=(Case, FrameFacts, Detections), suites=("memobench",), paper=f"{rules.PAPER} eq. 6", upstream="ors",
    responds_to=("object vanishes", "unrecognisable object"),
    blind_to=("another individual", "wrong state", "a target that never left"),
    published_by=(PublishedMaker("SAM 3", "detector", ("sam3", "sam-3")),),
)  # fmt: skip
def object_reappearance(
    case: Case,
    frames: FrameFacts,
    detections: Detections,
    *,
    rule: str = "corrected",
    threshold: float | None = None,
    smallest: float = SMALLEST,
    largest: float = LARGEST,
    fallback: float = FALLBACK,
) -> Score | Unscored:
    """Mean confidence over the returned frames that the target is in them, a frame without it counting 0.

    `threshold` is that of the rule (0.5 corrected, 0 else) unless it is given. Facts: detection rate, mean confidence
    of the frames that have one, detection rates by phase, and the words and threshold that it was asked with.
    """
    strange = np.setdiff1d(detections.frame, detections.index)
    if len(strange):
        raise InvalidEvidence(
            f"Detections.frame names frame {strange[0]}, which is not in `index`: it was not looked at"
        )
    phases = rules.checked_clip_phases(case, frames)
    limit = threshold if threshold is not None else THRESHOLD if rules.check_rule(rule) == "corrected" else 0.0
    expected = expected_detector_prompt(case.annotations, rule) or None
    facts: dict[str, object] = {
        "prompt": detections.prompt or None,
        "expected_prompt": expected,
        "prompt_as_expected": detections.prompt == expected if detections.prompt and expected else None,
        "threshold": limit,
        "coverage": [smallest, largest, fallback],
        "detector": detections.maker,
    }
    if detections.threshold > limit:
        return Unscored(
            "other_settings",
            f"the detector returned only masks above a confidence of {detections.threshold:g}, but this rule counts "
            f"those above {limit:g}; run it again with that threshold or a lower one",
            facts,
        )
    if rule == "corrected" and not detections.prompt:
        return Unscored(
            "unreadable",
            "the detections do not say which prompt was used, and the score depends on it; add `prompt` to the file",
            facts,
        )
    values = best_confidence_per_frame(detections, limit, smallest, largest, fallback)
    first, last = phases.first_and_last_frame(rules.RETURNED)
    mine = (detections.index >= first) & (detections.index <= last)
    expected_frames = last - first + 1
    # Upstream counts frames that nobody looked at as frames without the object.
    frame_count = int(mine.sum()) if rule == "corrected" else expected_frames
    if not mine.any():
        return Unscored("not_observed", f"the detector saw none of the {expected_frames} returned frames", facts)
    scores = ors_statistics(values[mine], frame_count, rule)
    rates = {
        name: _detection_rate_in_phase(values, detections.index, phases.first_and_last_frame(name))
        for name in rules.PHASES
    }
    facts |= {**scores, "looked_at": int(mine.sum()), "returned_frames": expected_frames, "found_by_phase": rates}
    visible = rates[rules.VISIBLE] or 0.0
    if detections.guessed and rule == "corrected" and visible < SURELY_SEEN:
        return Unscored(
            "not_followed",
            f"the object was guessed (what is salient in the first frame), and is found in only {visible:.0%} of the "
            "frames before it leaves; give its box: --option targets=FILE",
            facts,
        )
    facts["target_area"] = target_coverage_in_first_frame(detections, limit, smallest, fallback)
    units = Series(frame=detections.index[mine], value=np.nan_to_num(values[mine]))
    return Score(scores["ors"], scores["detection_rate"], units, facts)


def target_coverage_in_first_frame(
    detections: Detections, threshold: float, smallest: float, largest: float
) -> float | None:
    """Share of the first frame, which every model is given, that the best mask of the object covers."""
    sizes = (detections.coverage >= smallest) & (detections.coverage <= largest)
    mine = (detections.frame == 0) & (detections.score > threshold) & sizes
    return float(detections.coverage[mine][detections.score[mine].argmax()]) if mine.any() else None


def ors_statistics(confidence: np.ndarray, frame_count: int, rule: str) -> dict[str, float]:
    """ORS, detection rate and mean confidence of the confidences (nan: nothing found) of `frame_count` frames."""
    there = confidence[~np.isnan(confidence)]
    share = there.mean() if len(there) else 0.0
    values = {"ors": there.sum() / frame_count, "detection_rate": len(there) / frame_count, "mean_confidence": share}
    return {
        **{name: rules.round_if_upstream_rule(value, 4, rule) for name, value in values.items()},
        "detected": len(there),
    }


def _detection_rate_in_phase(values: np.ndarray, index: np.ndarray, phase: tuple[int, int]) -> float | None:
    mine = (index >= phase[0]) & (index <= phase[1])
    return float(np.isfinite(values[mine]).mean()) if mine.any() else None
