"""Warp errors by RAFT-Large, as MemoBench has them: frames of two phases, carried into each other by a network's flow.

What is measured is in observers/warping.py. The network was trained on values from -1 to 1; the public evaluator gives
it values from 0 to 1, and so does `signed: false`, which the protocol `upstream` sets.
"""

from __future__ import annotations

from functools import partial

from revisit.core import ClipInfo, Sight, observer
from revisit.evidence.memory_clips import WarpErrors
from revisit.observers.warping import carried, wanted_frames


@observer(
    id="paper.warp", version=1, kind="sequence", makes=WarpErrors, inputs=("phases",), weights=("raft-large",),
    choose=wanted_frames,
)  # fmt: skip
def warp_errors(
    clip: ClipInfo,
    phases: tuple[int, int],
    *,
    step: int = 0,
    closed: bool = False,
    long_side: int = 640,
    signed: bool = True,
) -> Sight:
    """Errors of RAFT's flow between sampled frames of the visible and of the returned phase.

    `step` is in frames; 0 stands for a quarter of a second.
    """
    from revisit.networks.flow_runs import pairs_at_once, raft_of

    flow = partial(raft_of, signed=signed)
    maker = "raft-large" if signed else "raft-large on values from 0 to 1"
    return (
        yield from carried(
            clip, phases, flow, maker=maker, step=step, closed=closed, long_side=long_side, batch=pairs_at_once()
        )
    )
