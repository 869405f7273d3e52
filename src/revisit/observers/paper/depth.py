"""Depth by Depth Anything V2, as MemoBench has it: a few frames of two phases, their longer side 640 at most."""

from __future__ import annotations

from revisit.core import Batch, observer
from revisit.evidence.memory_clips import DepthMaps
from revisit.observers.phase_samples import first_middle_last

LONG_SIDE = 640


@observer(
    id="paper.depth", version=1, kind="frame", makes=DepthMaps, inputs=("phases",),
    weights=("depth-anything-v2-small",), choose=first_middle_last, size="long_side",
)  # fmt: skip
def depth_maps(batch: Batch, *, samples: int = 3, long_side: int = LONG_SIDE) -> DepthMaps:
    """Inverse depth of the first, middle and last frame of both phases by Depth Anything V2 Small."""
    return maps("depth-anything-v2-small", batch)


@observer(
    id="paper.depth_base", version=1, kind="frame", makes=DepthMaps, inputs=("phases",),
    weights=("depth-anything-v2-base",), choose=first_middle_last, size="long_side",
)  # fmt: skip
def depth_maps_base(batch: Batch, *, samples: int = 3, long_side: int = LONG_SIDE) -> DepthMaps:
    """Inverse depth of the first, middle and last frame of both phases by Depth Anything V2 Base."""
    return maps("depth-anything-v2-base", batch)


@observer(
    id="paper.depth_large", version=1, kind="frame", makes=DepthMaps, inputs=("phases",),
    weights=("depth-anything-v2-large",), choose=first_middle_last, size="long_side",
)  # fmt: skip
def depth_maps_large(batch: Batch, *, samples: int = 3, long_side: int = LONG_SIDE) -> DepthMaps:
    """Inverse depth of the first, middle and last frame of both phases by Depth Anything V2 Large."""
    return maps("depth-anything-v2-large", batch)


def maps(id: str, batch: Batch) -> DepthMaps:
    """Inverse depth of the frames of a batch."""
    from revisit.networks import depth_anything, runtime

    found = runtime.numbers(depth_anything.depth(id, runtime.on_device(batch.rgb)))
    return DepthMaps(batch.index, found, inverse=True, maker=id)
