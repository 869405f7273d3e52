"""Depth of a few frames of the visible and of the returned phase, by a network.

`small.depth` is FastDepth on frames squeezed to 224 x 224. The others are Depth Anything V2 in three sizes, as
MemoBench has it: the longer side is 640 at most.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.core import Batch, Frame, observer, register_observer_per_network
from revisit.suites.memobench.evidence import DepthMaps, evenly_spread_frames

SIDE = 224
LONG_SIDE = 640


def sampled_frames_of_both_phases(
    count: int, fps: float, phases: tuple[int, int], *, samples: int = 3, **_: Any
) -> np.ndarray:
    """Frames of the visible and of the returned phase.

    Some protocols count the first hidden frame as visible, so the visible phase is sampled both ways.
    """
    hidden, returned = phases
    spans = ((0, hidden - 1), (0, hidden), (returned, count - 1))
    return np.unique(np.concatenate([evenly_spread_frames(first, last, samples) for first, last in spans]))


def resize_to_224(frame: Frame, **_: Any) -> np.ndarray:
    """The whole frame at 224 x 224, by area."""
    import cv2

    return np.asarray(cv2.resize(frame.rgb, (SIDE, SIDE), interpolation=cv2.INTER_AREA))


@observer(
    id="small.depth", version=1, kind="frame", makes=DepthMaps, inputs=("phases",), weights=("fastdepth",),
    choose=sampled_frames_of_both_phases, prepare=resize_to_224,
)  # fmt: skip
def fast_depth(batch: Batch, *, samples: int = 3) -> DepthMaps:
    """Depth of the first, middle and last frame of both phases by FastDepth; it knows rooms better than streets."""
    from revisit.networks import fastdepth

    return DepthMaps(batch.index, fastdepth.depth_maps(batch.rgb), inverse=False, maker=fastdepth.ID)


@register_observer_per_network(
    {
        "paper.depth": "depth-anything-v2-small",
        "paper.depth_base": "depth-anything-v2-base",
        "paper.depth_large": "depth-anything-v2-large",
    },
    version=1, kind="frame", makes=DepthMaps, inputs=("phases",), choose=sampled_frames_of_both_phases,
    size="long_side",
)  # fmt: skip
def depth_anything(network: str, batch: Batch, *, samples: int = 3, long_side: int = LONG_SIDE) -> DepthMaps:
    """Inverse depth of the first, middle and last frame of both phases by {network}."""
    from revisit.networks import depth_anything, runtime

    maps = runtime.to_numpy(depth_anything.inverse_depth(network, runtime.channels_first_on_device(batch.rgb)))
    return DepthMaps(batch.index, maps, inverse=True, maker=network)
