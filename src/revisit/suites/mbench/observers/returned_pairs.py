"""Frames that see one view out and back, compared: matched points, the late frame warped to the early one, and style.

Which frames belong together follows from the poses in the file beside the clip (geometry.fold_pairs): out and back in
MBench's setting A, early and late segments in setting T. Pictures are reduced to the grid of the file's depth, so that
pixels, depth and intrinsics share one grid. Matches are SIFT's (RootSIFT distances), each other's best and clearly
ahead of the second best; nothing is thrown out for disagreeing with the poses, since that is what is measured.

Style is compared by Gram matrices of VGG16, whose convolutions come with LPIPS, or of VGG-19. MBench names VGG-19; the
matrices of the two networks are not of one size, and `maker` says which one it was. Beside pairs out and back (without
a file, frames at equal times from both ends), neighbours of 32 frames spread over the clip are compared (of all frames
with `samples: 0`, as MBench's eq. 13 has it). Matrices are forgotten as soon as no later frame is compared with them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import ClipInfo, Frame, FrameStream, observer, register_observer_per_network
from revisit.geometry.fold_pairs import Pairs, frame_numbers_of_poses, segment_or_out_and_back_pairs, symmetric_pairs
from revisit.geometry.two_view import project_pixels_to_second_view, relative_pose, sample_nearest_depth
from revisit.media.error_names import raise_media_errors_naming_file
from revisit.observers.geometry_file import Geometry, read_geometry
from revisit.observers.matching import match_descriptors
from revisit.observers.pictures import feed_frames_in_groups
from revisit.suites.mbench.evidence import CaseAnnotations, GramDistances, PairMatches, WarpedViews

POINTS = 4000
RATIO = 0.75
OCCLUDED = 0.05  # of the depth: a point that much further than what is seen there is hidden
LONG_SIDE = 512  # of pictures whose matrices are compared
AT_ONCE = 4  # frames; VGG takes 300 MB for each


@dataclass(frozen=True, eq=False)
class ChosenPairs:
    """The pairs of a clip and what they were chosen by."""

    geometry: Geometry
    pairs: Pairs
    frame: np.ndarray  # frame number of each pose
    note: str

    @property
    def ends(self) -> np.ndarray:
        """(pairs, 2) numbers of their frames."""
        return self.frame[np.stack([self.pairs.row, self.pairs.other], axis=1)]

    def pairs_with_both(self, numbers: Collection[int]) -> np.ndarray:
        """Positions of the pairs both of whose frames have these numbers."""
        return np.flatnonzero(np.isin(self.ends, list(numbers)).all(axis=1))


def choose_returned_pairs(
    geometry: Geometry, path: Path, count: int, annotations: CaseAnnotations, rule: str
) -> ChosenPairs:
    """The pairs of frames of a clip of `count` frames, from the poses in the file and the setting of the case."""
    with raise_media_errors_naming_file(path):
        frame, note = frame_numbers_of_poses(len(geometry.c2w), geometry.frame, count)
    depth = float(np.nan_to_num(geometry.median_depth[0], nan=1.0))
    pairs = segment_or_out_and_back_pairs(geometry.c2w, frame, count, annotations, depth, literal=rule == "paper")
    notes = [text for text in (note, pairs.note, "" if geometry.depth is not None else "no depth") if text]
    return ChosenPairs(geometry, pairs, frame, "; ".join(notes))


@observer(
    id="lite.return_matches", version=1, kind="sequence", makes=PairMatches, inputs=("artifacts.da3", "annotations"),
    sets=("lite",),
)  # fmt: skip
def return_matches(
    clip: ClipInfo, path: Path, annotations: CaseAnnotations, *, rule: str = "corrected", convention: str = "auto"
) -> FrameStream:
    """Matching points of the frames that see one view out and back."""
    choice = choose_returned_pairs(read_geometry(path, convention), path, clip.count, annotations, rule)
    points = {number: find_sift_points(grey) for number, grey in (yield from collect_grey_pictures(choice)).items()}
    at = choice.pairs_with_both(points)
    tables = [match_sift_points(points[first], points[second]) for first, second in choice.ends[at].tolist()]
    return PairMatches(
        frame=choice.ends[at, 0],
        other=choice.ends[at, 1],
        row=choice.pairs.row[at],
        other_row=choice.pairs.other[at],
        distance=choice.pairs.distance[at],
        offsets=np.cumsum([0, *(len(table) for table in tables)]),
        points=np.concatenate([np.zeros((0, 4)), *tables]),
        how=choice.pairs.how,
        note=choice.note,
        matcher=f"SIFT, {POINTS} points, ratio {RATIO}, mutual",
    )


@observer(
    id="lite.warped_views", version=1, kind="sequence", makes=WarpedViews, inputs=("artifacts.da3", "annotations"),
    sets=("lite",),
)  # fmt: skip
def warped_views(
    clip: ClipInfo, path: Path, annotations: CaseAnnotations, *, rule: str = "corrected", convention: str = "auto"
) -> FrameStream:
    """The late frames, as the early cameras would see them."""
    geometry = read_geometry(path, convention)
    choice = choose_returned_pairs(geometry, path, clip.count, annotations, rule)
    pictures = yield from collect_grey_pictures(choice)
    at = choice.pairs_with_both(pictures if geometry.depth is not None else ())
    frame, other = choice.ends[at, 0], choice.ends[at, 1]
    rows = zip(choice.pairs.row[at].tolist(), choice.pairs.other[at].tolist(), other.tolist(), strict=True)
    views = [warp_to_other_view(geometry, i, j, pictures[number]) for i, j, number in rows]
    shape = (len(at), geometry.height, geometry.width)
    return WarpedViews(
        frame=frame,
        other=other,
        picture=np.array([pictures[number] for number in frame.tolist()], dtype=np.uint8).reshape(shape),
        warped=np.array([warped for warped, _ in views], dtype=np.uint8).reshape(shape),
        visible=np.array([visible for _, visible in views], dtype=bool).reshape(shape),
        how=choice.pairs.how,
        note=choice.note,
    )


def collect_grey_pictures(choice: ChosenPairs) -> Any:
    """Grey pictures of the wanted frames on the grid of the geometry, by frame number."""
    import cv2

    pictures: dict[int, np.ndarray] = {}
    size = choice.geometry.width, choice.geometry.height
    frame_numbers = set(choice.ends.ravel().tolist())
    while (frame := (yield)) is not None:
        if frame.index in frame_numbers:
            grey = cv2.cvtColor(frame.rgb, cv2.COLOR_RGB2GRAY)
            pictures[frame.index] = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    return pictures


def find_sift_points(grey: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(positions (n, 2), unit descriptors (n, 128)) of SIFT points."""
    import cv2

    keypoints, raw = cv2.SIFT_create(nfeatures=POINTS).detectAndCompute(grey, None)  # type: ignore[attr-defined]
    if raw is None or not keypoints:
        return np.zeros((0, 2)), np.zeros((0, 128), np.float32)
    unit = np.sqrt(raw / np.maximum(raw.sum(axis=1, keepdims=True), 1e-9))
    return np.array([point.pt for point in keypoints]), unit.astype(np.float32)


def match_sift_points(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """(m, 4) positions in both pictures of points that are each other's best match, clearly ahead of the second."""
    if len(a[0]) < 2 or len(b[0]) < 2:
        return np.zeros((0, 4))
    first, second = match_descriptors(a[1], b[1], RATIO).T
    return np.unique(np.hstack([a[0][first], b[0][second]]), axis=0)  # SIFT gives a point once for each direction


def warp_to_other_view(
    geometry: Geometry, target_row: int, source_row: int, picture: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(picture of row j as row i sees it, where both see one point of the scene)."""
    import cv2

    assert geometry.depth is not None
    pose = relative_pose(geometry.c2w[target_row], geometry.c2w[source_row])
    pixels, z = project_pixels_to_second_view(
        geometry.depth[target_row], geometry.intrinsics[target_row], geometry.intrinsics[source_row], *pose
    )
    there = sample_nearest_depth(geometry.depth[source_row], pixels)
    visible = (geometry.depth[target_row] > 0) & (there > 0) & (z <= (1 + OCCLUDED) * there)
    at = pixels.astype(np.float32)
    warped = cv2.remap(picture, at[..., 0], at[..., 1], cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(warped), visible


Compared = tuple[int, int, bool]  # the later frame, the earlier one, whether they are a pair out and back


def frame_pairs_to_compare(
    count: int, path: Path | None, annotations: CaseAnnotations, *, samples: int, rule: str, convention: str
) -> list[Compared]:
    """The pairs of frames of a clip of `count` frames; 0 `samples` are all frames."""
    spread = np.unique(np.linspace(0, max(count - 1, 0), samples or count).round().astype(int)).tolist()
    near = [(later, earlier, False) for earlier, later in pairwise(spread)]
    geometry = None if path is None else read_geometry(path, convention)
    if geometry is None or path is None or geometry.refused:
        pairs = symmetric_pairs(count)
        ends = np.stack([pairs.row, pairs.other], axis=1)
    else:
        ends = choose_returned_pairs(geometry, path, count, annotations, rule).ends
    return [*near, *((later, earlier, True) for earlier, later in ends.tolist())]


def frames_of_compared_pairs(
    count: int, fps: float, path: Path | None, annotations: CaseAnnotations, **params: Any
) -> np.ndarray:
    """Numbers of all frames that are compared."""
    pairs = frame_pairs_to_compare(count, path, annotations, **params)
    return np.array([number for later, earlier, _ in pairs for number in (later, earlier)], dtype=np.int64)


@register_observer_per_network(
    {"small.grams": "lpips_vgg", "paper.grams": "vgg19"},
    version=1, kind="sequence", makes=GramDistances, inputs=("artifacts.da3?", "annotations"),
    choose=frames_of_compared_pairs,
)  # fmt: skip
def grams(
    network: str,
    clip: ClipInfo,
    path: Path | None,
    annotations: CaseAnnotations,
    *,
    samples: int = 32,
    rule: str = "corrected",
    convention: str = "auto",
) -> FrameStream:
    """Distances of Gram matrices ({network}) between neighbouring sampled frames, and between frames out and back."""
    pairs = frame_pairs_to_compare(clip.count, path, annotations, samples=samples, rule=rule, convention=convention)
    maker = "vgg16" if network == "lpips_vgg" else network
    return (yield from collect_gram_distances(pairs, partial(gram_matrices_of_pictures, network), maker))


def collect_gram_distances(pairs: list[Compared], compute_matrices: Any, maker: str) -> Any:
    """Distances of the pairs of frames; `compute_matrices` makes those of a few pictures of one size."""
    from revisit.networks import runtime
    from revisit.networks.gram import gram_difference_and_own_norms

    last_use = {earlier: later for later, earlier, _ in sorted(pairs)}
    features: dict[int, list[Any]] = {}
    rows: dict[int, list[np.ndarray]] = {}
    count = 0

    def compare_group(frames: list[Frame]) -> None:
        nonlocal count
        layers = compute_matrices([frame.rgb for frame in frames])
        count = len(layers)
        for row, frame in enumerate(frames):
            features[frame.index] = [layer[row : row + 1] for layer in layers]
            for number, (later, earlier, _) in enumerate(pairs):
                if later == frame.index and earlier in features:
                    with runtime.inference():
                        distance = gram_difference_and_own_norms(features[later], features[earlier])
                        rows[number] = [runtime.to_numpy(part[0]) for part in distance]
            for spent in [number for number in features if last_use.get(number, 0) <= frame.index]:
                del features[spent]

    yield from feed_frames_in_groups(AT_ONCE, compare_group)
    compared = [pairs[number] for number in sorted(rows)]
    table = np.array([rows[number] for number in sorted(rows)], dtype=np.float32).reshape(len(rows), 3, count)
    return GramDistances(
        frame=np.array([later for later, _, _ in compared], dtype=np.int64),
        other=np.array([earlier for _, earlier, _ in compared], dtype=np.int64),
        fold=np.array([fold for _, _, fold in compared], dtype=bool),
        difference=table[:, 0],
        norm=table[:, 1],
        other_norm=table[:, 2],
        maker=maker,
    )


def gram_matrices_of_pictures(network: str, pictures: list[np.ndarray]) -> Any:
    """Gram matrices of pictures, (frames, channels, channels) for each depth."""
    from revisit.networks import preprocessing as shapes
    from revisit.networks import runtime
    from revisit.networks.gram import build_vgg16_from_lpips_file, build_vgg19_from_torchvision_file

    build = build_vgg16_from_lpips_file if network == "lpips_vgg" else build_vgg19_from_torchvision_file
    with runtime.inference():
        levels = runtime.channels_first_on_device(pictures)
        size = tuple(levels.shape[-2:])
        size = shapes.size_with_long_side(size, min(LONG_SIDE, max(size)))  # never enlarged
        return runtime.network(network, build)(shapes.resize_levels(levels, size))
