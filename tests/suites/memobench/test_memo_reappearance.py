"""ORS of MemoBench: which masks count, which frames, and with which words the detector was asked."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from revisit import observe
from revisit.core import InvalidEvidence, Unscored, UsageError
from revisit.suites.memobench.cases import detector_prompt_for_rule
from revisit.suites.memobench.evidence import Detections
from revisit.suites.memobench.metrics.reappearance import best_confidence_per_frame, object_reappearance, ors_statistics
from tests.memo import RULES, case, frames, refused, scored


def found(score=1.0, coverage=0.1, at=range(40), **facts):
    """One mask in each of these frames of a clip that was looked at as a whole."""
    count = len(at)
    plain = {"prompt": "a pig", "threshold": 0.0, "maker": "made up"} | facts
    return Detections(
        np.arange(40), np.array(at, int), np.resize(float(coverage), count), np.resize(float(score), count), **plain
    )


def test_a_sure_detection_in_every_frame_scores_1_under_every_rule():
    for rule in RULES:
        assert scored(object_reappearance(case(), frames(), found(), rule=rule)).value == 1


def test_frames_without_the_target_count_as_zero():
    made = scored(object_reappearance(case(), frames(), found(0.8, at=[*range(25), 30, 31, 32])))
    assert made.value == pytest.approx(3 * 0.8 / 15)
    assert (made.facts["detected"], made.facts["detection_rate"]) == (3, pytest.approx(0.2))
    assert made.facts["mean_confidence"] == pytest.approx(0.8)
    assert made.facts["found_by_phase"]["hidden"] == 1  # it was never gone: the score means little


def test_a_guess_that_is_missed_while_in_view_says_nothing_of_the_return():
    missed = found(0.8, at=[*range(0, 10, 2), *range(25, 40)], guessed=True)
    answer = object_reappearance(case(), frames(), missed)
    assert isinstance(answer, Unscored) and answer.kind == "not_followed"
    assert scored(object_reappearance(case(), frames(), found(0.8, guessed=True))).value == pytest.approx(0.8)
    assert scored(object_reappearance(case(), frames(), missed, rule="paper")).value > 0


def test_unsure_masks_count_upstream_and_in_print_only():
    unsure = found(0.3)
    assert scored(object_reappearance(case(), frames(), unsure)).value == 0
    assert scored(object_reappearance(case(), frames(), unsure, rule="paper")).value == pytest.approx(0.3)
    assert scored(object_reappearance(case(), frames(), unsure, rule="upstream")).value == 0.3
    assert scored(object_reappearance(case(), frames(), unsure, threshold=0.2)).value == pytest.approx(0.3)


def test_frames_that_were_not_looked_at_shrink_the_return_except_upstream():
    half = replace(found(0.9, at=range(0, 40, 2)), index=np.arange(0, 40, 2))
    corrected = scored(object_reappearance(case((12, 26)), frames(), half))
    assert corrected.value == pytest.approx(0.9)
    assert (corrected.facts["looked_at"], corrected.facts["returned_frames"]) == (7, 14)
    assert scored(object_reappearance(case((12, 26)), frames(), half, rule="upstream")).value == 0.45
    early = replace(half, index=np.arange(0, 20), frame=np.arange(0, 20))
    assert refused(object_reappearance(case((12, 26)), frames(), early)).kind == "not_observed"


def test_the_words_and_the_threshold_are_part_of_the_answer():
    assert refused(object_reappearance(case(), frames(), found(prompt=""))).kind == "unreadable"
    assert scored(object_reappearance(case(), frames(), found(prompt=""), rule="upstream")).facts["prompt"] is None
    cut = found(threshold=0.5)
    assert refused(object_reappearance(case(), frames(), cut, rule="upstream")).kind == "other_settings"
    assert scored(object_reappearance(case(), frames(), cut)).facts["threshold"] == 0.5
    asked = case(ors_prompts={"corrected": "a pig", "upstream": "a pig(subject) running"}, ors_prompt="else")
    assert scored(object_reappearance(asked, frames(), found())).facts["prompt_as_expected"] is True
    other = scored(object_reappearance(asked, frames(), found(), rule="upstream"))
    assert other.facts["expected_prompt"] == "a pig(subject) running" and not other.facts["prompt_as_expected"]


def test_coverage_can_be_swept():
    large = found(0.9, coverage=0.4)
    assert scored(object_reappearance(case(), frames(), large)).value == pytest.approx(0.9)
    assert scored(object_reappearance(case(), frames(), large, largest=0.3)).value == pytest.approx(0.9)  # the fallback
    assert scored(object_reappearance(case(), frames(), large, largest=0.3, fallback=0)).value == 0
    assert scored(object_reappearance(case(), frames(), large, smallest=0.5)).value == 0


def test_malformed_evidence_says_what_a_valid_one_looks_like():
    with pytest.raises(InvalidEvidence, match="it must be"):
        object_reappearance(case(), frames(), replace(found(), score=np.zeros(3)))
    with pytest.raises(InvalidEvidence, match="coverage must lie between 0 and 1"):
        object_reappearance(case(), frames(), found(coverage=12))
    with pytest.raises(InvalidEvidence, match="frame 40, which is not in `index`"):
        object_reappearance(case(), frames(), replace(found(), frame=np.arange(1, 41)))


def test_upstream_is_reproduced(shared):
    oracle = json.loads((shared / "oracle/memobench/oracle.json").read_text())
    assert len(oracle["ors_frame"]) == 6
    for one in oracle["ors_frame"]:
        coverage, score = (np.array([mask[name] for mask in one["masks"]]) for name in ("coverage", "score"))
        masks = Detections(np.zeros(1, int), np.zeros(len(score), int), coverage, score, "x", 0.0, "x")
        [best] = best_confidence_per_frame(masks, 0.0)
        assert [not np.isnan(best), np.nan_to_num(best)] == one["expected"]
    clip = oracle["ors_clip"]
    confidence = np.array([value or np.nan for value in clip["per_frame_conf"]])
    made = ors_statistics(confidence, clip["n_total"] - clip["r_start"], "upstream")
    expected = clip["expected"]
    assert made == {
        "ors": expected["ors"], "detection_rate": expected["detection_rate"],
        "mean_confidence": expected["mean_confidence"], "detected": expected["n_detected"],
    }  # fmt: skip
    there = np.flatnonzero(clip["per_frame_conf"])
    seen = Detections(
        np.arange(10), there + 3, np.full(len(there), 0.1), np.array(clip["per_frame_conf"])[there], "x", 0.0, "x"
    )
    whole = scored(object_reappearance(case((2, 3)), frames(10), seen, rule="upstream"))
    assert (whole.value, whole.facts["returned_frames"]) == (expected["ors"], expected["n_r_frames"])


def test_all_prompts_are_reproduced(shared):
    expected = json.loads((shared / "oracle/memobench/oracle.json").read_text())["ors_prompts"]
    found = {}
    for split in ("Synthetic", "Real"):
        with (shared / f"memobench/metadata/{split.lower()}_metadata.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                number = f"{int(row['video_id']):03d}"
                name = f"{row['scene']}_{number}" if split == "Synthetic" else number
                found[name] = detector_prompt_for_rule(row["prompt"], row["subject"], split)
    assert len(found) == 360 and found == expected


def test_upstream_takes_all_that_stands_before_the_mark():
    """Its pattern runs from the first "sees" to the mark, over commas and full stops, and on to the next of them."""
    upstream = re.compile(r"sees (.*?\(subject\)[^.,]*)", re.IGNORECASE)
    for prompt in (
        "The observer sees a red, rusty car(subject) driving to the left, then turns.",
        "Someone sees the street. Nothing moves. He SEES a dog (subject) asleep., and walks on.",
        "First person view sees a pig(subject) running from left to right.",
    ):
        expected = upstream.search(prompt).group(1).strip().rstrip(".,")
        assert detector_prompt_for_rule(prompt, "car", "Synthetic", "upstream") == expected
    assert (
        detector_prompt_for_rule("It sees a red, rusty car(subject) driving", "car", "Synthetic", "corrected") == "car"
    )


def prompts_by_rule(prompt: str, subject: str, split: str) -> dict[str, str]:
    return {rule: detector_prompt_for_rule(prompt, subject, split, rule) for rule in RULES}


def test_words_by_rule():
    prompt = (
        "First person view sees a pig (subject) running from left to right. Observer turns, and re-sees the subject."
    )
    assert prompts_by_rule(prompt, "pig", "Synthetic") == {
        "corrected": "a pig", "upstream": "a pig (subject) running from left to right", "paper": "pig"
    }  # fmt: skip
    assert prompts_by_rule("A view of a test tube.", "a test tube filled", "Real") == {
        "corrected": "a test tube", "upstream": "a test tube filled", "paper": "a test tube filled"
    }  # fmt: skip
    assert detector_prompt_for_rule("Nobody is marked.", "pig", "Synthetic") == "pig"
    with pytest.raises(UsageError, match="unknown rule 'x'"):
        detector_prompt_for_rule(prompt, "pig", "Real", "x")


@pytest.mark.long
def test_ground_truths_reach_the_top_or_are_left_out(shared: Path, small_weights: object) -> None:
    """Boxes of two targets are known; of the third what is salient is guessed, and found to be no good guess."""
    boxes = {"Real_007": (0.31, 0.24, 0.62, 1.0), "Barnyard_001": None, "HongKong_001": None}
    known = json.loads((shared / "moving/targets.json").read_text())
    boxes["Barnyard_001"] = tuple(known["mb_barnyard001_gt"]["box"])
    answers = {}
    for name, box in boxes.items():
        seen = observe(shared / f"memobench/videos/{name}_gt.mp4", "small.sightings", target=box)
        answers[name] = object_reappearance(
            case((39, 58)), frames(81), seen
        )  # when the beaker leaves and is back, by eye
    values = {name: answer.value for name, answer in answers.items() if not isinstance(answer, Unscored)}
    assert values.keys() == {"Real_007", "Barnyard_001"} and min(values.values()) >= 0.8
