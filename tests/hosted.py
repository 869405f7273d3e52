"""Observers with a made-up network, for the tests of the host. Imported in workers and in the host, too."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from revisit.core import Batch, ClipInfo, Frame, FrameStream, MediaError, PairStream, evidence, observer, per_second


@evidence(id="toy_rows")
@dataclass(frozen=True)
class ToyRows:
    """What a made-up network says of frames."""

    index: Annotated[np.ndarray, "N; rising"]
    mean: Annotated[np.ndarray, "N; finite"]
    told: np.ndarray  # what the case said
    together: np.ndarray  # frames in the batch
    process: np.ndarray
    maker: str


@evidence(id="toy_pairs")
@dataclass(frozen=True)
class ToyPairs:
    """Differences to a reference."""

    index: np.ndarray
    reference: np.ndarray
    difference: np.ndarray


@evidence(id="toy_walk")
@dataclass(frozen=True)
class ToyWalk:
    """Differences of neighbours, or to a reference."""

    step: np.ndarray
    digest: np.ndarray  # how the frames begin that are told apart by it
    process: int


@observer(
    id="toy.rows", version=1, kind="frame", makes=ToyRows, weights=("toy",), inputs=("prompt",), frames=per_second(4)
)  # fmt: skip
def toy_rows(batch: Batch) -> ToyRows:
    """Means of frames."""
    from revisit.networks import runtime

    with runtime.inference():
        mean = runtime.channels_first_on_device(batch.rgb).float().mean(dim=(1, 2, 3))
    count = len(batch.index)
    told = np.array([len(prompt) for (prompt,) in batch.inputs])
    return ToyRows(batch.index, runtime.to_numpy(mean), told, np.full(count, count), np.full(count, os.getpid()), "toy")


@observer(id="toy.pairs", version=1, kind="frame", makes=ToyPairs, weights=("toy",), pairs=True, size=32)
def toy_pairs(batch: Batch) -> ToyPairs:
    """Mean differences to the reference."""
    from revisit.networks import runtime

    with runtime.inference():
        mine, other = (
            runtime.channels_first_on_device(batch.rgb).float(),
            runtime.channels_first_on_device(batch.reference).float(),
        )
        difference = (mine - other).abs().mean(dim=(1, 2, 3))
    return ToyPairs(batch.index, batch.reference_index, runtime.to_numpy(difference))


def as_shares(pair: tuple[Frame, Frame]) -> tuple[np.ndarray, np.ndarray]:
    """Both pictures from 0 to 1, as some protocols prepare them."""
    mine, other = (np.asarray(frame.rgb / 255, dtype=np.float32) for frame in pair)
    return mine, other


@observer(
    id="toy.shares", version=1, kind="frame", makes=ToyPairs, weights=("toy",), pairs=True, prepare=as_shares
)  # fmt: skip
def toy_shares(batch: Batch) -> ToyPairs:
    """Mean differences to the reference, of pictures that are no bytes."""
    return toy_pairs.fn(batch)


@observer(id="toy.walk", version=1, kind="sequence", makes=ToyWalk, weights=("toy",), size=20)
def toy_walk(clip: ClipInfo) -> FrameStream:
    """Mean differences of neighbouring frames, which a sequence observer gets as they are, whatever its size."""
    steps: list[float] = []
    digests: list[int] = []
    before: Frame | None = None
    while (frame := (yield)) is not None:
        assert max(frame.rgb.shape) == max(clip.width, clip.height)
        if before is not None:
            steps.append(float(np.abs(frame.rgb.astype(float) - before.rgb).mean()))
        digests.append(int(frame.digest[:8], 16))
        before = frame
    return ToyWalk(np.array(steps), np.array(digests), os.getpid())


@observer(id="toy.beside", version=1, kind="sequence", makes=ToyWalk, weights=("toy",), pairs=True)
def toy_beside(clip: ClipInfo) -> PairStream:
    """Mean differences to a reference of any size, in order."""
    steps: list[float] = []
    while (pair := (yield)) is not None:
        frame, other = pair
        steps.append(float(frame.rgb.mean() - other.rgb.mean()))
    return ToyWalk(np.array(steps), np.zeros(0), os.getpid())


@observer(id="toy.refuses", version=1, kind="sequence", makes=ToyWalk, weights=("toy",))
def toy_refuses(clip: ClipInfo) -> FrameStream:
    """Nothing: it does not begin."""
    raise MediaError("this clip is refused")
    yield


@observer(id="toy.stumbles", version=1, kind="sequence", makes=ToyWalk, weights=("toy",))
def toy_stumbles(clip: ClipInfo) -> FrameStream:
    """Nothing: it fails on its way."""
    while (frame := (yield)) is not None:
        if frame.index == 1:
            raise ValueError("a stone")
    return ToyWalk(np.zeros(0), np.zeros(0), os.getpid())


@observer(id="toy.fussy", version=1, kind="frame", makes=ToyRows, weights=("toy",), choose=lambda *_: 1 // 0)
def toy_fussy(batch: Batch) -> ToyRows:
    """Nothing: it cannot even say which frames it wants."""
    raise AssertionError


# Each wants another size, so that each fills a file of its own in shared memory.
SIZES = [
    observer(id=f"toy.size{size}", version=1, kind="frame", makes=ToyRows, weights=("toy",), size=size,
             inputs=("prompt",))(toy_rows.fn)
    for size in (10, 20, 30, 40, 50)
]  # fmt: skip


@observer(id="toy.broken", version=1, kind="frame", makes=ToyRows, weights=("toy",))
def toy_broken(batch: Batch) -> ToyRows:
    """Nothing: it fails."""
    raise ValueError("the network is upset")


@observer(id="toy.deadly", version=1, kind="frame", makes=ToyRows, weights=("toy",))
def toy_deadly(batch: Batch) -> ToyRows:
    """Nothing: it ends the process."""
    os._exit(7)


@observer(id="toy.dark", version=1, kind="frame", makes=ToyRows, weights=("toy",), inputs=("prompt",))
def toy_dark(batch: Batch) -> ToyRows:
    """Means of frames, and none of a black one."""
    seen: ToyRows = toy_rows.fn(batch)
    return ToyRows(seen.index, np.where(seen.mean > 0, seen.mean, np.nan), seen.told, seen.together, seen.process, "")
