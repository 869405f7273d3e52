"""The target: where a thing of the first frame is later on, as raw cues without a verdict; its pixels and looks.

Boxes are x0, y0, x1, y1 in fractions of the frame and may reach outside it. Similarities are
correlations of whitened edge and colour layouts: 1 is the same picture, what unrelated things
reach depends on the target's size and is told by `second` and `place_second`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from revisit.core import Array, evidence


@evidence(id="target_track")
@dataclass(frozen=True)
class TargetTrack:
    """What a target in the first frame looks like and where it seems to be, frame by frame."""

    index: Annotated[Array, "N; rising"]  # frame numbers
    seconds: Annotated[Array, "N; finite"]  # presentation times
    box: Annotated[Array, "N, 4; finite"]  # followed by motion and looks; by the background's motion once lost
    inside: Annotated[Array, "N; finite"]  # share of that box inside the frame
    flow: Annotated[Array, "N; finite"]  # share of the box whose motion from the frame before survives the way back
    near: Annotated[Array, "N; finite"]  # best similarity close to the followed box
    part: Annotated[Array, "N; finite"]  # similarity of the half of the followed box that changed least
    peak: Annotated[Array, "N; finite"]  # best similarity anywhere in the frame
    peak_box: Annotated[Array, "N, 4; finite"]
    second: Annotated[Array, "N; finite"]  # best similarity anywhere clear of the peak: what clutter reaches
    first: Annotated[Array, "N; finite"]  # similarity of the peak to the very first view (others: to any view)
    early: Annotated[Array, "N; finite"]  # similarity of the peak to the views remembered first
    colour: Annotated[Array, "N; finite"]  # overlap of the colours at the peak with those of the nearest view
    own_colour: Annotated[Array, "N; finite"]  # the same inside the target's silhouette alone, in soft bins
    place: Annotated[Array, "N; finite"]  # best similarity to what surrounded the target in the first frame
    place_box: Annotated[Array, "N, 4; finite"]  # where the target would be, judged by its surroundings
    place_second: Annotated[Array, "N; finite"]  # the same, clear of the best: what clutter reaches
    at_place: Annotated[Array, "N; finite"]  # similarity of what is at `place_box` to the target
    stands: Annotated[Array, "N; 0 to 1"]  # how far what is in the followed box stands out from what is around it
    place_stands: Annotated[Array, "N; 0 to 1"]  # the same at `place_box`
    camera: Annotated[Array, "N; finite"]  # motion of the background from the frame before, in frame widths
    cells: int  # size of the target in cells of the layout: how much there is to compare
    texture: float  # how far the target's cells differ from the frame's average cell, in deviations
    width_px: float  # size of the target's box in the clip's own pixels
    height_px: float


@evidence(id="target_looks")
@dataclass(frozen=True)
class TargetLooks:
    """What a network says of the target in a few frames: the window most like it and least like its background.

    Likenesses are cosines of descriptors of windows, at most 1. `like - unlike` is the margin over the background.
    """

    index: Annotated[Array, "N; rising"]  # frames looked at, the first one among them
    seconds: Annotated[Array, "N; finite"]
    like: Annotated[Array, "N; finite"]  # of that window, to the most alike of the target's views
    unlike: Annotated[Array, "N; finite"]  # of that window, to the most alike background of the first frame
    first: Annotated[Array, "N; finite"]  # of that window, to the very first view
    before: Annotated[Array, "N; finite"]  # the largest, of a window near that of the look before, to that one
    box: Annotated[Array, "N, 4; finite"]  # that window
    colour: Annotated[Array, "N; 0 to 1"]  # overlap of its colours with those of the views
    close: Annotated[Array, "N; finite"]  # of the best candidate seen closely, to the very first view
    close_view: Annotated[Array, "N; finite"]  # of that candidate, to the most alike of its views until it was lost
    close_colour: Annotated[Array, "N; finite"]  # of that candidate, overlap of colours inside the target's silhouette
    close_unlike: Annotated[Array, "N; finite"]  # of that candidate, to the most alike background of the first frame
    close_box: Annotated[Array, "N, 4; finite"]  # that candidate
    lookalike: float  # of the target in the first frame, to the most alike thing beside it
    views: int  # of the target, taken while it was seen clearly; the first one counts
    maker: str


@evidence(id="target_sight")
@dataclass(frozen=True)
class TargetObservations:
    """All that a set knows of the target: followed by its looks, and looked for by a network."""

    track: TargetTrack
    looks: TargetLooks | None  # None where no network of the set looks
    start_likeness: float | None = None  # of its box in the first frame to the reference's; None where nobody can say


VISIBLE, HIDDEN, RETURNED = 0, 1, 2


@evidence(id="target_phases")
@dataclass(frozen=True)
class TargetPhases:
    """When the target was in view, one state per frame of `TargetTrack`: by a network where one looked, else by it."""

    index: Annotated[Array, "N"]  # frame numbers
    seconds: Annotated[Array, "N"]
    state: Annotated[Array, "N"]  # VISIBLE before it was hidden, HIDDEN, or RETURNED
    sure: Annotated[Array, "N"]  # whether this frame itself decided, or its neighbours did
    box: Annotated[Array, "N, 4"]  # where the target is taken to be; its last or expected place while hidden
    lead: Annotated[Array, "N"]  # similarity beyond what clutter, or the background, reaches


@evidence(id="object_masks")
@dataclass(frozen=True)
class ObjectMasks:
    """Which pixels are the target's, in some frames."""

    index: Annotated[Array, "N"]  # frames that were looked at
    mask: Annotated[Array, "N, height, width"]  # bool; empty masks where it is not seen
    maker: str


@evidence(id="object_features")
@dataclass(frozen=True)
class ObjectFeatures:
    """A descriptor of the target in each frame that shows it."""

    index: Annotated[Array, "F"]  # frames that were looked at
    frame: Annotated[Array, "N"]  # those that show it
    vector: Annotated[Array, "N, D; finite"]
    maker: str
