"""Forward and backward optical flow of pairs of pictures, at the sizes that the networks take, in pixels.

GMFlow's memory grows with the square of the pixels, so its pictures are limited in size; small ones are enlarged, and
all sides are set to multiples of 32; flow is scaled back. RAFT sees the pictures as they are, padded on the right and
below to multiples of 8 by repeating the edge, as MemoBench does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from revisit.networks import gmflow, raft, runtime, settings
from revisit.networks.preprocessing import nearest_size_of_multiples

Pairs = list[tuple[np.ndarray, np.ndarray]]
GPU_PAIRS = 8  # at a time; on a CPU one at a time is as fast


def pairs_at_once() -> int:
    """How many pairs are worth their memory here, and no more than the user wants."""
    if not runtime.device().startswith("cuda"):
        return 1
    return min(GPU_PAIRS, settings.requested_batch_size() or GPU_PAIRS)


def gmflow_both_ways(earlier: Sequence[np.ndarray], later: Sequence[np.ndarray], max_long_side: int) -> Pairs:
    """Forward and backward flow by GMFlow on pictures whose longer side is at most `max_long_side`."""
    network = runtime.network(gmflow.ID, gmflow.build)
    with runtime.inference():
        a, b = (runtime.channels_first_on_device(pictures).float() / 255 for pictures in (earlier, later))
        height, width = a.shape[-2:]
        scale = max(min(1.0, max_long_side / max(height, width)), gmflow.SMALLEST / min(height, width))
        size = nearest_size_of_multiples((round(scale * height), round(scale * width)), gmflow.MULTIPLE)
        a, b = (functional.interpolate(x, size, mode="bilinear", antialias=True) for x in (a, b))
        return _flow_pairs_as_arrays(*(_resize_flow(flow, (height, width)) for flow in network(a, b)))


def raft_both_ways(earlier: Sequence[np.ndarray], later: Sequence[np.ndarray], levels_from_minus_one: bool) -> Pairs:
    """Forward and backward flow by RAFT-Large; without `levels_from_minus_one` on values from 0 to 1, as MemoBench."""
    network = runtime.network(raft.ID, raft.build)
    with runtime.inference():
        a, b = (runtime.channels_first_on_device(pictures).float() / 255 for pictures in (earlier, later))
        height, width = a.shape[-2:]
        if levels_from_minus_one:
            a, b = 2 * a - 1, 2 * b - 1
        missing = [max(raft.SMALLEST - n, -n % raft.MULTIPLE) for n in (width, height)]
        a, b = (functional.pad(x, (0, missing[0], 0, missing[1]), mode="replicate") for x in (a, b))
        both = network(torch.cat([a, b]), torch.cat([b, a]))[..., :height, :width]
        return _flow_pairs_as_arrays(*both.chunk(2))


def _resize_flow(flow: Tensor, size: tuple[int, int]) -> Tensor:
    """Flow of the same pictures at another size."""
    scale = flow.new_tensor([size[1] / flow.shape[-1], size[0] / flow.shape[-2]])
    return functional.interpolate(flow, size, mode="bilinear", align_corners=False) * scale[:, None, None]


def _flow_pairs_as_arrays(forward: Tensor, backward: Tensor) -> Pairs:
    """(height, width, 2) arrays of each pair."""
    return list(zip(*(runtime.to_numpy(flow.permute(0, 2, 3, 1)) for flow in (forward, backward)), strict=True))
