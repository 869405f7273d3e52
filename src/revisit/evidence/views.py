"""Views: which frames of a clip show the same place, by cues that fail independently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from revisit.core import Array, evidence


@evidence(id="view_links")
@dataclass(frozen=True)
class ViewLinks:
    """How every sampled frame relates to every other one: row i, column j reads "from i to j"."""

    index: Annotated[Array, "N; rising"]  # frame numbers
    time: Annotated[Array, "N"]  # seconds
    points: Annotated[Array, "N"]  # local features found: little texture, few points
    inliers: Annotated[Array, "N, N"]  # matched points that one similarity explains, symmetric
    support: Annotated[Array, "N, N"]  # share of the textured cells in the common area that hold such a match
    warp: Annotated[Array, "N, N, 3, 3"]  # that similarity, in fractions of the frame
    structure: Annotated[Array, "N, N"]  # correlation of gradient directions at the best shift
    lead: Annotated[Array, "N, N"]  # how far that shift leads the next best one
    shift: Annotated[Array, "N, N, 2"]  # that shift, in fractions
    change: Annotated[Array, "N - 1"]  # mean absolute difference of grey levels to the next sampled frame, 0-1
    attached: float  # share of the frame that travels with the camera: overlays, a handlebar


@evidence(id="view_relations")
@dataclass(frozen=True)
class ViewRelations:
    """What both cues and the chain of frames between say of each ordered pair of sampled frames (from i to j).

    S is N, or 1 where only the first frame is asked about.
    """

    index: Annotated[Array, "N"]  # frame numbers
    time: Annotated[Array, "N"]  # seconds
    seen: Annotated[Array, "N, N"]  # a cue joins them directly
    lost: Annotated[Array, "S, N"]  # widest strip along one side of i that is outside j; nan where nothing joins them
    share: Annotated[Array, "S, N"]  # of the area of i that is inside j, likewise
    warp: Annotated[Array, "S, N, 3, 3"]  # from i to j, fractions of the frame, likewise
    confidence: Annotated[Array, "N, N"]  # of the direct cue, 0-1
    agreement: float  # share of the pairs joined by both cues on which they agree


@evidence(id="view_phases")
@dataclass(frozen=True)
class ViewPhases:
    """What became of the first view: at each sampled frame, how much of it is seen, and the phase."""

    index: Annotated[Array, "N"]
    time: Annotated[Array, "N"]
    share: Annotated[Array, "N"]  # of the first view that is in the frame, 0-1; nan where the cues cannot tell
    phase: Annotated[Array, "N"]  # 0 visible, 1 away, 2 returned, -1 cannot tell


@evidence(id="return_pairs")
@dataclass(frozen=True)
class ReturnPairs:
    """Frames that see the same viewpoint before it was lost and after it came back."""

    i: Annotated[Array, "P"]  # frame number before
    j: Annotated[Array, "P"]  # frame number after
    gap: Annotated[Array, "P"]  # seconds since the view of i was last seen
    overlap: Annotated[Array, "P"]  # share of the view of i that is seen in j
    warp: Annotated[Array, "P, 3, 3"]  # from i to j, fractions of the frame
    confidence: Annotated[Array, "P"]  # 0-1

    def __len__(self) -> int:
        return len(self.i)
