"""Small pictures of a clip and its reference, side by side in time."""

from __future__ import annotations

import numpy as np

from revisit.core import ClipInfo, PairStream, observer, per_second
from revisit.evidence.fidelity import PairedViews
from revisit.evidence.pictures import pack_jpegs
from revisit.observers.pictures import at_shared_size, fitted, small

LONG_SIDE = 160
QUALITY = 90  # of the pictures, which are blurred before they are compared


@observer(
    id="lite.outcome",
    version=4,
    kind="sequence",
    makes=PairedViews,
    frames=per_second(8, at_most=32),
    pairs=True,
    sets=("lite",),
)
def paired_views(clip: ClipInfo) -> PairStream:
    """At most 32 aligned pairs of pictures, 160 pixels on the longer side."""
    index: list[int] = []
    pictures: list[np.ndarray] = []
    truth: list[np.ndarray] = []
    while (pair := (yield)) is not None:
        if index and index[-1] == pair[0].index:
            continue  # a further partner, of an alignment by phases; the first is that of the whole clip
        picture = small(pair[0], LONG_SIDE)
        index.append(pair[0].index)
        pictures.append(picture)
        truth.append(fitted(at_shared_size(pair[1]), picture.shape[1], picture.shape[0]))
    clip_files, reference_files = pack_jpegs(pictures, QUALITY), pack_jpegs(truth, QUALITY)
    return PairedViews(
        index=np.array(index, dtype=np.int64),
        clip_jpeg=clip_files[0],
        clip_begins=clip_files[1],
        reference_jpeg=reference_files[0],
        reference_begins=reference_files[1],
        width=pictures[0].shape[1] if pictures else 1,
        height=pictures[0].shape[0] if pictures else 1,
    )
