"""The target: where a thing of the first frame is later on, as raw cues without a verdict.

Boxes are x0, y0, x1, y1 in fractions of the frame and may reach outside it. Similarities are
correlations of whitened edge and colour layouts: 1 is the same picture, what unrelated things
reach depends on the target's size and is told by `second` and `place_second`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import evidence


@evidence(id="target_track")
@dataclass(frozen=True)
class TargetTrack:
    """What a target in the first frame looks like and where it seems to be, frame by frame."""

    index: np.ndarray  # (N,) frame numbers
    seconds: np.ndarray  # (N,) presentation times
    box: np.ndarray  # (N, 4) followed by motion and looks; by the background's motion once lost
    inside: np.ndarray  # (N,) share of that box inside the frame
    flow: np.ndarray  # (N,) share of the box whose motion from the frame before survives the way back
    near: np.ndarray  # (N,) best similarity close to the followed box
    part: np.ndarray  # (N,) similarity of the half of the followed box that changed least: a glass that fills
    peak: np.ndarray  # (N,) best similarity anywhere in the frame
    peak_box: np.ndarray  # (N, 4)
    second: np.ndarray  # (N,) best similarity anywhere clear of the peak: what clutter reaches
    first: np.ndarray  # (N,) similarity of the peak to the very first view (others: to any view before it was lost)
    early: np.ndarray  # (N,) similarity of the peak to the views remembered first, which cannot have drifted far
    colour: np.ndarray  # (N,) overlap of the colours at the peak with those of the most alike of the same views, 0-1
    place: np.ndarray  # (N,) best similarity to what surrounded the target in the first frame
    place_box: np.ndarray  # (N, 4) where the target would be, judged by its surroundings
    place_second: np.ndarray  # (N,) the same, clear of the best: what clutter reaches
    at_place: np.ndarray  # (N,) similarity of what is at `place_box` to the target
    camera: np.ndarray  # (N,) motion of the background from the frame before, in frame widths
    cells: int  # size of the target in cells of the layout: how much there is to compare
    texture: float  # how far the target's cells differ from the frame's average cell, in deviations
    width_px: float  # size of the target's box in the clip's own pixels
    height_px: float


VISIBLE, HIDDEN, RETURNED = 0, 1, 2


@evidence(id="target_phases")
@dataclass(frozen=True)
class TargetPhases:
    """When the target was in view: worked out from `TargetTrack`, one state per frame."""

    index: np.ndarray  # (N,) frame numbers
    seconds: np.ndarray  # (N,)
    state: np.ndarray  # (N,) VISIBLE before it was hidden, HIDDEN, or RETURNED
    sure: np.ndarray  # (N,) whether this frame itself decided, or its neighbours did
    box: np.ndarray  # (N, 4) where the target is taken to be; its last or expected place while hidden
    lead: np.ndarray  # (N,) similarity beyond what clutter reaches
