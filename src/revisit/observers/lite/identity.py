"""Patch descriptors of the first frame and of frames after the return, by classical means (see lite/patches).

`crop` keeps the middle only, as networks with square inputs do: a square of 7/8 of the shorter side.
"""

from __future__ import annotations

import numpy as np

from revisit.core import ClipInfo, Frame, Sight, observer
from revisit.evidence.memory_clips import IdentityTokens
from revisit.observers.lite.patches import LONG_SIDE, patch_tokens

KEPT = 7 / 8  # a side of 224 out of 256


@observer(id="lite.identity", version=1, kind="sequence", makes=IdentityTokens, inputs=("phases",), sets=("lite",))
def identity_tokens(clip: ClipInfo, phases: tuple[int, int], *, samples: int = 9, crop: bool = False) -> Sight:
    """Descriptors of the patches of the first frame and of `samples` frames spread over the returned phase."""
    wanted = set(compared_frames(clip.count, phases, samples))
    index: list[int] = []
    tokens: list[np.ndarray] = []
    frame: Frame
    while (frame := (yield)) is not None:
        if frame.index in wanted:
            grid = patch_tokens(middle(frame.rgb) if crop else frame.at(LONG_SIDE))
            index.append(frame.index)
            tokens.append(grid.reshape(-1, grid.shape[2]).astype(np.float16))
    return IdentityTokens(np.array(index, dtype=np.int64), np.stack(tokens), "gradients and colour", crop)


def compared_frames(count: int, phases: tuple[int, int], samples: int) -> list[int]:
    """Numbers of the first frame and of `samples` frames spread over the returned phase of a clip of `count` frames."""
    first, last = phases[1], count - 1
    spread = {first + int(k * (last - first) / max(samples - 1, 1)) for k in range(samples) if first <= last}
    return sorted({0, *spread})


def middle(rgb: np.ndarray) -> np.ndarray:
    """The square in the middle of a picture."""
    height, width = rgb.shape[:2]
    side = max(1, int(KEPT * min(height, width)))
    top, left = (height - side) // 2, (width - side) // 2
    return np.ascontiguousarray(rgb[top : top + side, left : left + side])
