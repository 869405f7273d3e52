"""Detections of the target for MemoBench: every mask above `threshold`, with its share of the frame and its score.

Networks of the paper set are asked with the words of the dataset, or the name of the target where it gives none; the
words are part of the protocol (`rule`, see docs/memobench-metrics.md), and `style` puts them as Table S4 of MemoBench
does. `small.detections` needs no words: the target is asked for by its first look, and followed as in `small.masks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import numpy as np

from revisit.core import ClipInfo, Frame, FrameStream, Target, UsageError, observer
from revisit.observers import masks, target_presence
from revisit.observers.pictures import feed_frames_in_groups
from revisit.suites.memobench.evidence import Detections, expected_detector_prompt

SAM3 = "sam3"
GROUP = 4  # frames at a time
CERTAIN_LIKE, CERTAIN_MARGIN = (0.4, 0.6), (-0.05, 0.05)  # from surely away to surely there
# How the words are put to the detector (Table S4); `first` is the first word alone.
STYLES = {
    "original": "{}",
    "the": "the {}",
    "detect": "detect {} in the scene",
    "photo": "a photo of {}",
    "first": "{}",
}


class PromptAnnotations(TypedDict, total=False):
    """The words that the dataset gives for the target of a case."""

    ors_prompts: Mapping[str, str]  # by rule
    ors_prompt: str


Rows = list[tuple[np.ndarray, np.ndarray]]  # scores and coverages of the masks of each frame


@observer(
    id="paper.detections", version=1, kind="sequence", makes=Detections, inputs=("annotations", "target?"),
    weights=(SAM3,),
)  # fmt: skip
def detections_by_sam3(
    clip: ClipInfo,
    annotations: PromptAnnotations,
    target: Target | None,
    *,
    rule: str = "corrected",
    threshold: float = 0.0,
    style: str = "original",
) -> FrameStream:
    """What SAM 3 finds in each frame when it is asked for the target by name."""

    def ask_sam3(pictures: Any, words: str) -> Rows:
        from revisit.networks import sam3

        answers = sam3.network(SAM3).detect_named_objects(pictures, words, threshold=threshold)
        return [(one.score, one.coverage) for one in answers]

    words = detector_prompt_in_style(annotations, target, rule, style)
    return (yield from _collect_detections(words, ask_sam3, threshold, SAM3))


@observer(
    id="paper.detections_grounding", version=1, kind="sequence", makes=Detections, inputs=("annotations", "target?"),
    weights=(masks.DINO, masks.SAM2),
)  # fmt: skip
def detections_by_grounding_dino(
    clip: ClipInfo,
    annotations: PromptAnnotations,
    target: Target | None,
    *,
    rule: str = "corrected",
    threshold: float = 0.25,
    style: str = "original",
) -> FrameStream:
    """What Grounding DINO finds when it is asked for the target by name, cut out by SAM 2.1: for want of SAM 3.

    Its scores are another network's, and are not to be compared with those of SAM 3.
    """

    def ask_grounding_dino(pictures: Any, words: str) -> Rows:
        from revisit.networks import grounding_dino, runtime, sam2

        rows: Rows = []
        detector = grounding_dino.network(masks.DINO)
        for k, (score, boxes) in enumerate(detector.detect_scores_and_boxes(pictures, words, threshold=threshold)):
            share = np.zeros(0, np.float32)
            if len(score):
                logits = sam2.Sam2Tracker(sam2.network(masks.SAM2), pictures[k : k + 1], boxes.tolist()).first
                size = (int(pictures.shape[-2]), int(pictures.shape[-1]))
                share = sam2.masks_at(logits, size).mean((1, 2)).astype(np.float32)
            rows.append((runtime.to_numpy(score), share))
        return rows

    words = detector_prompt_in_style(annotations, target, rule, style)
    return (yield from _collect_detections(words, ask_grounding_dino, threshold, f"{masks.DINO} + {masks.SAM2}"))


@observer(
    id="small.detections", version=2, kind="sequence", makes=Detections, inputs=("target?",),
    weights=(masks.MOBILE_SAM, masks.U2NETP), choose=masks.evenly_spread_frame_numbers,
)  # fmt: skip
def detections_by_look(
    clip: ClipInfo, target: Target | None, *, at_most: int = masks.AT_MOST, when_unknown: str = masks.SALIENCY
) -> FrameStream:
    """Where the target is found again, and how sure that is: asked for by its first look, not by a name.

    The score is likeness x expected overlap x sharpness of the mask; a mask that fails the tracker's rules is none.
    """
    track = yield from masks.track_target_masks(None if target is None else target.box, when_unknown)
    rows = [k for k, mask in enumerate(track.masks) if mask is not None]
    return Detections(
        index=track.index,
        frame=track.index[rows],
        coverage=np.array([float(mask.mean()) for mask in track.masks if mask is not None]),
        score=np.array([track.score[k] for k in rows]),
        prompt=track.prompt,
        threshold=0.0,
        maker=masks.MOBILE_SAM,
    )


def detector_prompt_in_style(
    annotations: PromptAnnotations, target: Target | None, rule: str, style: str = "original"
) -> str:
    """The words to ask with; empty where neither the dataset nor the target has any."""
    if style not in STYLES:
        raise UsageError(f"unknown prompt style {style!r} for the detector; choose one of {', '.join(STYLES)}")
    words = expected_detector_prompt(annotations, rule) or (target.name if target else "")
    if style == "first":
        words = words.partition(" ")[0]
    return STYLES[style].format(words) if words else ""


def _collect_detections(prompt: str, ask: Callable[[Any, str], Rows], threshold: float, maker: str) -> Any:
    from revisit.networks import runtime

    index: list[int] = []
    rows: Rows = []

    def detect_in_group(frames: list[Frame]) -> None:
        if prompt:
            with runtime.inference():
                rows.extend(ask(runtime.channels_first_on_device([frame.rgb for frame in frames]), prompt))
            index.extend(frame.index for frame in frames)

    yield from feed_frames_in_groups(GROUP, detect_in_group)
    counts = [len(score) for score, _ in rows]
    return Detections(
        index=np.array(index, dtype=np.int64),
        frame=np.repeat(np.array(index, dtype=np.int64), counts),
        coverage=np.concatenate([share for _, share in rows] or [np.zeros(0)]).astype(np.float64),
        score=np.concatenate([score for score, _ in rows] or [np.zeros(0)]).astype(np.float64),
        prompt=prompt,
        threshold=threshold,
        maker=maker,
    )


@observer(
    id="small.sightings", version=1, kind="sequence", makes=Detections, size=target_presence.LONG_SIDE,
    inputs=("target?",), choose=target_presence.frame_numbers_to_look_at, weights=(*target_presence.WEIGHTS, "u2netp"),
)  # fmt: skip
def sightings(clip: ClipInfo, target: Target | None, *, when_unknown: str = masks.SALIENCY) -> FrameStream:
    """Where the target is found again, and how sure that is: asked for by its first look, not by a name.

    Where no box was given, the target is what is salient in the first frame, or with `when_unknown=skip` nothing. The
    score is 1 where a frame shows the target clearly, 0 where it lacks it, and grows between with likeness and margin.
    """
    if when_unknown not in (masks.SKIP, masks.SALIENCY):
        raise UsageError(f"when_unknown={when_unknown!r}: it is {masks.SKIP!r} or {masks.SALIENCY!r}")
    frames = yield from target_presence.collect_shrunk_frames()
    box = None if target is None else target.box
    if box is None and when_unknown == masks.SALIENCY and frames:
        from revisit.networks import runtime
        from revisit.networks.u2net import largest_salient_box

        with runtime.inference():
            box = largest_salient_box(frames[0].rgb)
    index = np.array([frame.index for frame in frames if box is not None], dtype=np.int64)
    rows = target_presence.best_windows_and_search(frames, box)[0] if box is not None else []
    boxes = np.array([row.box for row in rows], dtype=np.float64).reshape(-1, 4)
    prompt = masks.NOTHING if box is None else masks.SALIENT if target is None else masks.BOX
    return Detections(
        index=index, frame=index, coverage=(boxes[:, 2:] - boxes[:, :2]).prod(axis=1),
        score=np.array([sighting_confidence(row.like, row.unlike) for row in rows], dtype=np.float64),
        prompt=prompt, threshold=0.0, maker=target_presence.WEIGHTS[0], guessed=target is None,
    )  # fmt: skip


def sighting_confidence(target_likeness: float, other_likeness: float) -> float:
    """How sure it is that a window shows the target, 0 to 1; a half is where the target gate says that it shows."""
    by_like = (target_likeness - CERTAIN_LIKE[0]) / (CERTAIN_LIKE[1] - CERTAIN_LIKE[0])
    by_margin = (target_likeness - other_likeness - CERTAIN_MARGIN[0]) / (CERTAIN_MARGIN[1] - CERTAIN_MARGIN[0])
    return float(np.clip(min(by_like, by_margin), 0, 1))
