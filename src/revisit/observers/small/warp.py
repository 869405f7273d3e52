"""Warp errors by GMFlow: frames of the visible and the returned phase, carried into each other by a network's flow.

What is measured is in observers/warping.py. GMFlow compares all places of two pictures, so large motion needs no help
from the frames between, and only sampled frames are looked at. It runs at a longer side of 512 at most.
"""

from __future__ import annotations

from functools import partial

from revisit.core import ClipInfo, Sight, observer
from revisit.evidence.memory_clips import WarpErrors
from revisit.observers.warping import carried, wanted_frames


@observer(
    id="small.warp", version=1, kind="sequence", makes=WarpErrors, inputs=("phases",), weights=("gmflow",),
    choose=wanted_frames,
)  # fmt: skip
def warp_errors(
    clip: ClipInfo,
    phases: tuple[int, int],
    *,
    step: int = 0,
    closed: bool = False,
    long_side: int = 640,
    flow_side: int = 512,
) -> Sight:
    """Errors of GMFlow between sampled frames of the visible and of the returned phase.

    `step` is in frames; 0 stands for a quarter of a second.
    """
    from revisit.networks.flow_runs import gmflow_of, pairs_at_once

    flow = partial(gmflow_of, side=flow_side)
    return (
        yield from carried(
            clip, phases, flow, maker="gmflow", step=step, closed=closed, long_side=long_side, batch=pairs_at_once()
        )
    )
