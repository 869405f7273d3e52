"""Style differences between frames: Gram matrices of VGG16, whose convolutions come with LPIPS, or of VGG-19.

MBench names VGG-19; the matrices of the two networks are not of one size, and `maker` says which one it was. Compared
are neighbours of 32 frames spread over the clip (of all frames with `samples: 0`, as MBench's eq. 13 has it), and pairs
that see one view out and back: by the poses in the file beside the clip, or, without one, frames at equal times from
both ends. Matrices are forgotten as soon as no later frame is compared with them.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import ClipInfo, Frame, FrameStream, register_observer_per_network
from revisit.geometry.fold_pairs import symmetric_pairs
from revisit.observers.geometry_file import read_geometry
from revisit.observers.pictures import feed_frames_in_groups
from revisit.suites.mbench.evidence import CaseAnnotations, GramDistances
from revisit.suites.mbench.observers.returned_pairs import choose_returned_pairs

LONG_SIDE = 512
AT_ONCE = 4  # frames; VGG takes 300 MB for each

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
    return (yield from observe_gram_distances(pairs, partial(gram_matrices_of_pictures, network), maker))


def observe_gram_distances(pairs: list[Compared], matrices: Any, maker: str) -> Any:
    """Distances of the pairs of frames; `matrices` makes those of a few pictures of one size."""
    from revisit.networks import runtime
    from revisit.networks.gram import gram_difference_and_own_norms

    last_use = {earlier: later for later, earlier, _ in sorted(pairs)}
    features: dict[int, list[Any]] = {}
    rows: dict[int, list[np.ndarray]] = {}
    count = 0

    def compare_group(frames: list[Frame]) -> None:
        nonlocal count
        layers = matrices([frame.rgb for frame in frames])
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
