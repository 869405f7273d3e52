"""FVD and KVD of two sets of videos, and FID and KID of their frames, each with its certainty.

Features are those of an evaluation: the same decode, frames and networks (`revisit weights pull --set small`). A
distance below the number of scenes that a simulation supports is not given (docs/distances.md).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revisit.api import observe
from revisit.core import Score, UsageError
from revisit.media import is_clip_file
from revisit.metrics.distribution import frame_variety, video_action
from revisit.stats.distance_formulas import FRECHET, KERNEL, DistanceFormula
from revisit.stats.intervals import Interval
from revisit.weights import lock

Videos = Sequence[Any] | str | Path


@dataclass(frozen=True)
class DistanceEstimate:
    """A distance between two sets of videos, with its 95 % interval and all that it depends on.

    Attributes
    ----------
    value, interval
        The distance, corrected for the number of videos, and its interval over scenes; None where there are too few.
    n, reference_n, scenes
        Videos of both sets, and scenes of the smaller one.
    dimensions, frames, size
        Of the features; frames taken of each video, and their size in pixels (0: the network's own).
    network, digest
        Id of the network, and the SHA-256 of its weights.
    unscored
        Why there is no value; empty where there is one.

    Examples
    --------
    >>> revisit.DistanceEstimate(None, None, 4, 4, 4, 400, 16, 224, "i3d-kinetics-400", "", "too few").value is None
    True
    """

    value: float | None
    interval: Interval | None
    n: int
    reference_n: int
    scenes: int
    dimensions: int
    frames: int
    size: int
    network: str
    digest: str
    unscored: str = ""


def fvd(
    videos: Videos,
    reference: Videos,
    *,
    scenes: Sequence[Hashable] | None = None,
    reference_scenes: Sequence[Hashable] | None = None,
    frames: int = 16,
) -> DistanceEstimate:
    """Fréchet distance between I3D features of two sets of videos, extrapolated to infinitely many.

    Parameters
    ----------
    videos, reference
        Videos: an array (count, frames, height, width, 3) of bytes, a list of such clips or of paths, or a folder of
        video files.
    scenes, reference_scenes
        The scene of each video, where several show one, or where a reference is the truth of a video. By default each
        is a scene of its own.
    frames
        Frames taken of each video, evenly spread; 9 or more.

    Returns
    -------
    DistanceEstimate
        The distance with a 95 % interval over scenes; unscored below 4 × 400 + 32 = 1632 scenes, where `kvd` is the
        answer.

    Raises
    ------
    UsageError
        If a set is empty, a video is too short, or the weights are missing; it is a ValueError, too.

    Examples
    --------
    >>> revisit.fvd(videos, reference).interval  # doctest: +SKIP
    (41.2, 58.9)
    """
    return _estimate_set_distance(
        videos, reference, scenes, reference_scenes, _video_feature_extractor(frames), FRECHET
    )


def kvd(
    videos: Videos,
    reference: Videos,
    *,
    scenes: Sequence[Hashable] | None = None,
    reference_scenes: Sequence[Hashable] | None = None,
    frames: int = 16,
) -> DistanceEstimate:
    """Kernel distance (squared MMD, cubic kernel) between I3D features of two sets of videos; unbiased at any number.

    Parameters
    ----------
    videos, reference, scenes, reference_scenes, frames
        As `fvd` takes them.

    Returns
    -------
    DistanceEstimate
        The distance with a 95 % interval over scenes; unscored below 20 scenes. It may be below 0 by chance.

    Raises
    ------
    UsageError
        If a set is empty, a video is too short, or the weights are missing; it is a ValueError, too.

    Examples
    --------
    >>> revisit.kvd(videos, reference).value  # doctest: +SKIP
    0.83
    """
    return _estimate_set_distance(videos, reference, scenes, reference_scenes, _video_feature_extractor(frames), KERNEL)


def fid(
    videos: Videos,
    reference: Videos,
    *,
    scenes: Sequence[Hashable] | None = None,
    reference_scenes: Sequence[Hashable] | None = None,
) -> DistanceEstimate:
    """Fréchet distance between EfficientNet-Lite0 features of single frames of two sets of videos.

    It is no FID of Inception and not to be compared with one: the network is another.

    Parameters
    ----------
    videos, reference, scenes, reference_scenes
        As `fvd` takes them; four frames of each scene count, evenly spread.

    Returns
    -------
    DistanceEstimate
        The distance with a 95 % interval over scenes; unscored below 4 × 1280 + 32 = 5152 scenes.

    Raises
    ------
    UsageError
        If a set is empty, or the weights are missing; it is a ValueError, too.

    Examples
    --------
    >>> revisit.fid(videos, reference).unscored  # doctest: +SKIP
    '5152 scenes are needed, and there are 64'
    """
    return _estimate_set_distance(videos, reference, scenes, reference_scenes, _frame_feature_answer, FRECHET)


def kid(
    videos: Videos,
    reference: Videos,
    *,
    scenes: Sequence[Hashable] | None = None,
    reference_scenes: Sequence[Hashable] | None = None,
) -> DistanceEstimate:
    """Kernel distance (squared MMD, cubic kernel) between EfficientNet-Lite0 features of single frames.

    Parameters
    ----------
    videos, reference, scenes, reference_scenes
        As `fvd` takes them; at most 16 frames of each video count.

    Returns
    -------
    DistanceEstimate
        The distance with a 95 % interval over scenes; unscored below 20 scenes. It may be below 0 by chance.

    Raises
    ------
    UsageError
        If a set is empty, or the weights are missing; it is a ValueError, too.

    Examples
    --------
    >>> revisit.kid(videos, reference).network  # doctest: +SKIP
    'efficientnet-lite0'
    """
    return _estimate_set_distance(videos, reference, scenes, reference_scenes, _frame_feature_answer, KERNEL)


Extract = Callable[[Any], Any]  # the answer of a metric about a video, which has its features


def _video_feature_extractor(frames: int) -> Extract:
    return lambda video: video_action(observe(video, "small.video", taken=frames))


def _frame_feature_answer(video: Any) -> Any:
    return frame_variety(observe(video, "small.integrity"))


def _list_videos(videos: Videos) -> Sequence[Any]:
    """The clips of a folder in the order of their names; what is no folder, as it is."""
    if not isinstance(videos, str | Path):
        return videos
    if not Path(videos).is_dir():
        raise UsageError(f"{videos} is no folder; give a folder of videos, or a list of paths")
    return sorted(path for path in Path(videos).rglob("*") if path.is_file() and is_clip_file(path))


def _extract_features(videos: Iterable[Any], extract: Extract, name: str) -> tuple[list[np.ndarray], Mapping[str, Any]]:
    rows: list[np.ndarray] = []
    facts: Mapping[str, Any] = {}
    for number, video in enumerate(videos):
        answer = extract(video)
        if not isinstance(answer, Score) or answer.units is None:
            way_out = "leave it out (fvd and kvd also take frames=, 9 or more)"
            raise UsageError(f"{name} {number} has no features: {answer.sentence}; {way_out}")
        rows.append(np.atleast_2d(answer.units["feature"]))
        facts = answer.facts
    return rows, facts


def _estimate_set_distance(
    videos: Videos,
    reference: Videos,
    scenes: Sequence[Hashable] | None,
    reference_scenes: Sequence[Hashable] | None,
    extract: Extract,
    formula: DistanceFormula,
) -> DistanceEstimate:
    videos, reference = _list_videos(videos), _list_videos(reference)
    names = [("video", k) for k in range(len(videos))] if scenes is None else list(scenes)
    true_names = [("reference", k) for k in range(len(reference))] if reference_scenes is None else [*reference_scenes]
    for what, count, named in (("videos", len(videos), names), ("references", len(reference), true_names)):
        if len(named) != count:
            raise UsageError(f"{count} {what} have {len(named)} scenes; name one for each")
    if not names or not true_names:
        raise UsageError("a set of videos is empty; a distance is between two sets of some")
    # Before all others: a refusal need not wait for them.
    first, facts = _extract_features([videos[0]], extract, "video")
    fewest, dimensions = min(len(set(names)), len(set(true_names))), first[0].shape[1]
    needed, network = formula.least_scenes(dimensions), str(facts["maker"])
    value, interval, unscored = None, None, f"{needed} scenes are needed, and there are {fewest}"
    if fewest >= needed:
        mine, _ = _extract_features(videos, extract, "video")
        theirs, _ = _extract_features(reference, extract, "reference")
        distance = formula.compute(
            np.concatenate(mine),
            np.concatenate(theirs),
            _repeat_names_per_row(names, mine),
            _repeat_names_per_row(true_names, theirs),
        )
        value, interval, unscored = distance.value, distance.interval, ""
    return DistanceEstimate(
        value, interval, len(videos), len(reference), fewest, dimensions, int(facts["frames"]),
        int(facts.get("size", 0)), network, lock.require_lock_entry(network).files[0].sha256, unscored,
    )  # fmt: skip


def _repeat_names_per_row(names: Sequence[Hashable], rows: Sequence[np.ndarray]) -> list[Hashable]:
    return [name for name, part in zip(names, rows, strict=True) for _ in range(len(part))]
