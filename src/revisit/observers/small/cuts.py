"""Shot changes by TransNetV2. Frames are squeezed to 48 x 27 by area; 4 kB each are kept until the clip ends."""

from __future__ import annotations

import numpy as np

from revisit.core import ClipInfo, Frame, Sight, observer
from revisit.evidence.motion import ShotChanges

SIZE = 48, 27


@observer(id="small.cuts", version=1, kind="sequence", makes=ShotChanges, weights=("transnetv2",))
def shot_changes(clip: ClipInfo) -> Sight:
    """How sure TransNetV2 is, at each step, that a shot ends."""
    import cv2

    from revisit.networks import runtime, transnet

    index: list[int] = []
    seconds: list[float] = []
    pictures: list[np.ndarray] = []
    frame: Frame
    while (frame := (yield)) is not None:
        index.append(frame.index)
        seconds.append(frame.time)
        pictures.append(cv2.resize(frame.rgb, SIZE, interpolation=cv2.INTER_AREA))
    network = runtime.network(transnet.ID, transnet.build)
    if pictures:
        ends, during = transnet.probabilities(network, np.stack(pictures))
    else:
        ends = during = np.zeros(0)
    # The network marks the last frame of a shot; a step is named by its later frame.
    return ShotChanges(
        index=np.array(index[1:], dtype=np.int64),
        seconds=np.array(seconds[1:], dtype=np.float64),
        probability=np.asarray(ends[:-1], dtype=np.float64),
        during=np.asarray(during[:-1], dtype=np.float64),
        maker=transnet.ID,
    )
