"""Small pictures of a clip and its reference, side by side in time."""

from __future__ import annotations

import numpy as np

from revisit.core import ClipInfo, Frame, Sight, every, observer
from revisit.evidence.fidelity import PairedViews
from revisit.observers.fidelity import same_size
from revisit.observers.pictures import SHARED_LONG_SIDE, small

LONG_SIDE = 160


@observer(
    id="lite.outcome",
    version=1,
    kind="sequence",
    makes=PairedViews,
    frames=every(at_most=64),
    pairs=True,
    sets=("lite",),
)
def paired_views(clip: ClipInfo) -> Sight:
    """At most 64 aligned pairs of pictures, 160 pixels on the longer side."""
    index: list[int] = []
    shown: list[np.ndarray] = []
    truth: list[np.ndarray] = []
    pair: tuple[Frame, Frame]
    while (pair := (yield)) is not None:
        if index and index[-1] == pair[0].index:
            continue  # a further partner, of an alignment by phases; the first is that of the whole clip
        picture = small(pair[0], LONG_SIDE)
        index.append(pair[0].index)
        shown.append(picture)
        truth.append(same_size(pair[1].at(SHARED_LONG_SIDE), picture.shape[1], picture.shape[0]))
    empty = np.zeros((0, 1, 1, 3), dtype=np.uint8)
    return PairedViews(
        index=np.array(index, dtype=np.int64),
        clip=np.stack(shown) if shown else empty,
        reference=np.stack(truth) if truth else empty,
    )
