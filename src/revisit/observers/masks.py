"""The target through the frames of a clip, from where it is in the first one: by MobileSAM and a tracker of ours.

Where a case names no box, `when_unknown` says what the former does: `skip` (nothing is found, and `maker` says why) or
`saliency` (the largest thing that U2-Net finds salient in the first frame). Frames between those that are asked for are
not shown to the networks. See docs/networks.md.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from revisit.core import Frame, UsageError, every
from revisit.observers.mask_tracking import Box, Tracker
from revisit.observers.pictures import in_groups

if TYPE_CHECKING:
    from revisit.networks.mobile_sam import MobileSam, PictureEmbedding

MOBILE_SAM, U2NETP = "mobile-sam", "u2netp"
SAM2, DINO = "sam2.1-hiera-tiny", "grounding-dino-tiny"
AT_MOST = 32  # frames that MobileSAM looks at
GROUP = 8  # frames that the encoder sees together
KEPT = 2 * GROUP  # embeddings kept for the next observer of the same frames, 4 MB each
BOX, SALIENT = "box in the first frame", "what is salient in the first frame"
NOTHING = "nothing: no box was given, and no salient object was found in the first frame"
SKIP, SALIENCY = "skip", "saliency"


def choose_frames(count: int, fps: float, *inputs: object, at_most: int, **params: object) -> np.ndarray:
    """At most so many frames, evenly spread, the first and the last among them."""
    return every(at_most=at_most).pick(count, fps)


@dataclass
class MaskTrack:
    """The target through a clip."""

    prompt: str  # what it was followed from
    index: np.ndarray  # (N,) frames that were looked at; none where there is nothing to follow
    masks: list[np.ndarray | None]
    score: list[float]


def follow_target(
    box: Box | None, when_unknown: str = SKIP, pictures: dict[int, np.ndarray] | None = None
) -> Generator[None, Any, MaskTrack]:
    """The target of a box, or of what is salient, through the frames that are sent: for `yield from` in an observer.

    Their pictures are kept in `shown`, by the number of the frame, where it is given.
    """
    from revisit.networks import mobile_sam, runtime

    if when_unknown not in (SKIP, SALIENCY):
        raise UsageError(f"when_unknown={when_unknown!r}: choose {SKIP!r} or {SALIENCY!r}")
    track = MaskTrack(BOX if box else SALIENT, np.zeros(0, np.int64), [], [])
    tracker: Tracker | None = None
    index: list[int] = []

    def see(frames: list[Frame]) -> None:
        nonlocal box, tracker, when_unknown
        if pictures is not None:
            pictures.update((frame.index, frame.rgb) for frame in frames)
        if box is None and when_unknown == SALIENCY:
            from revisit.networks.u2net import salient_box

            box, when_unknown = salient_box(frames[0].rgb), SKIP  # of the first frame only
        if box is None:
            return
        with runtime.inference():
            net = mobile_sam.network()
            for frame, embedding in zip(frames, embeddings(net, frames), strict=True):
                if tracker is None:
                    tracker = Tracker(net, frame.rgb, box, embedding=embedding)
                else:
                    tracker.see(frame.rgb, embedding)
                index.append(frame.index)
                track.masks.append(tracker.mask)
                track.score.append(tracker.score)

    yield from in_groups(1 if runtime.device() == "cpu" else GROUP, see)
    track.index = np.array(index, dtype=np.int64)
    track.prompt = track.prompt if box else NOTHING
    return track


_seen: OrderedDict[tuple[str, str], PictureEmbedding] = OrderedDict()


def embeddings(net: MobileSam, frames: Sequence[Frame]) -> list[PictureEmbedding]:
    """Embeddings of frames of one size; those that another observer of the same frames had made are not made again."""
    from revisit.networks import runtime

    keys = [(runtime.device(), frame.digest) for frame in frames]
    fresh = {key: frame for key, frame in zip(keys, frames, strict=True) if key not in _seen}
    if fresh:
        computed = net.embed(runtime.on_device([frame.rgb for frame in fresh.values()]))
        _seen.update(zip(fresh, computed, strict=True))
    out = [_seen[key] for key in keys]
    while len(_seen) > KEPT:
        _seen.popitem(last=False)
    return out
