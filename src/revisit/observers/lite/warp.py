"""Warp errors: frames of the visible and the returned phase, carried into each other by classical optical flow.

What is measured is in observers/warping.py. Flow is DIS on gray at the compared size, there and back. DIS alone loses a
pan of more than a tenth of the width, which a quarter of a second often brings, so it starts from the flow that is
added up over the frames between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import ClipInfo, Frame, Sight, observer
from revisit.evidence.memory_clips import WarpErrors
from revisit.observers.lite.pictures import SHARED_LONG_SIDE, flow_maker, follow, gray
from revisit.observers.warping import Found, chosen_step, sampled_frames


@observer(id="lite.warp", version=1, kind="sequence", makes=WarpErrors, inputs=("phases",), sets=("lite",))
def warp_errors(
    clip: ClipInfo, phases: tuple[int, int], *, step: int = 0, closed: bool = False, long_side: int = 640
) -> Sight:
    """Errors of flow between sampled frames of the visible and of the returned phase.

    `step` is in frames; 0 stands for a quarter of a second.
    """
    import cv2

    step = chosen_step(step, clip.fps)
    sampled = sampled_frames(clip.count, phases, step, closed)
    phase_of = {k: phase for phase, chosen in sampled.items() if chosen for k in range(chosen[0], chosen[-1] + 1)}
    maker = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    found = Found()
    before: tuple[int, np.ndarray] | None = None  # the sampled frame before, of the same phase
    way: Way | None = None  # from that frame to the last one seen
    width = height = 0
    frame: Frame
    while (frame := (yield)) is not None:
        phase = phase_of.get(frame.index)
        if phase is None:
            continue
        if frame.index == sampled[phase][0]:
            before = way = None
        small = gray(frame.at(SHARED_LONG_SIDE))
        way = Way(small) if way is None else way.to(small)
        if frame.index not in sampled[phase]:
            continue
        picture = frame.at(long_side)
        height, width = picture.shape[:2]
        if before is not None:
            earlier, shown = before
            there, back = way.at(height, width)
            grays = gray(shown), gray(picture)
            there, back = maker.calc(*grays, there), maker.calc(*grays[::-1], back)
            found.add((earlier, frame.index, phase), shown, picture, there, back)
        before, way = (frame.index, picture), way.restarted()
    return found.record(step=step, fps=clip.fps, closed=closed, maker="DIS", width=width, height=height)


@dataclass(frozen=True)
class Way:
    """Flow from a frame to a later one and back, at a small size, added up over the frames between."""

    last: np.ndarray  # gray picture of the later frame
    there: np.ndarray | None = None  # None: the later frame is the frame itself
    back: np.ndarray | None = None
    step: tuple[np.ndarray, np.ndarray] | None = None  # there and back over the last frame alone

    def to(self, picture: np.ndarray) -> Way:
        """The way as far as the next frame; cameras move steadily, so flow is looked for where it was before."""
        maker = flow_maker()
        guess = [flow.copy() for flow in self.step] if self.step is not None else [None, None]
        on, home = maker.calc(self.last, picture, guess[0]), maker.calc(picture, self.last, guess[1])
        there, back = on, home
        if self.there is not None and self.back is not None:
            there, back = self.there + follow(self.there, on)[0], home + follow(home, self.back)[0]
        return Way(picture, there, back, (on, home))

    def restarted(self) -> Way:
        """A way that begins here."""
        return Way(self.last, step=self.step)

    def at(self, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Flow there and back in pixels of a picture of this size."""
        import cv2

        made = []
        for flow in (self.there, self.back):
            assert flow is not None
            rows, columns = flow.shape[:2]
            scale = np.array([width / columns, height / rows], dtype=np.float32)
            made.append(np.ascontiguousarray(cv2.resize(flow, (width, height)) * scale))
        return made[0], made[1]
