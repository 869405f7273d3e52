"""LPIPS: the distance of two pictures in the features of a network (Zhang et al. 2018, version 0.1).

The pictures, from -1 to 1, are shifted and scaled, and go through the convolutions of AlexNet or VGG16.
At five depths the features of each place are divided by their length; the squared differences are weighted
by channel with learned weights, summed over channels and averaged over places; the distance is the sum of
the five. Lower is closer.

The network is in plain torch. Its weights are the state dict of `lpips.LPIPS(net=...)` of the lpips
package, in one file (`weights.py` says where). Computed in float32 without TF32, on a GPU where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from revisit.core import ClipInfo, Frame, MissingPrerequisite, Sight, observer
from revisit.evidence.fidelity import PerceptualDistance
from revisit.observers.lite.fidelity import one_size
from revisit.observers.torch.weights import load_state, short_digest, weights_file, why_not_ready

SHIFT, SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)
GPU_BATCH = 2  # pairs at a time: VGG16 at 1280 x 720 takes 2 GB a pair; on a CPU one at a time is as fast


class Conv(NamedTuple):
    """A convolution with a ReLU behind it; `number` is its place in the names of the weights."""

    number: int
    outputs: int
    kernel: int = 3
    stride: int = 1
    padding: int = 1


class Pool(NamedTuple):
    """The largest value of each neighbourhood."""

    kernel: int
    stride: int = 2


# One row for each depth at which features are compared.
Net = tuple[tuple[Conv | Pool, ...], ...]
ALEX: Net = (
    (Conv(0, 64, kernel=11, stride=4, padding=2),),
    (Pool(3), Conv(3, 192, kernel=5, padding=2)),
    (Pool(3), Conv(6, 384)),
    (Conv(8, 256),),
    (Conv(10, 256),),
)
VGG: Net = (
    (Conv(0, 64), Conv(2, 64)),
    (Pool(2), Conv(5, 128), Conv(7, 128)),
    (Pool(2), Conv(10, 256), Conv(12, 256), Conv(14, 256)),
    (Pool(2), Conv(17, 512), Conv(19, 512), Conv(21, 512)),
    (Pool(2), Conv(24, 512), Conv(26, 512), Conv(28, 512)),
)
NETS = {"lpips_alex": ALEX, "lpips_vgg": VGG}


@observer(
    id="torch.lpips_alex",
    version=1,
    kind="sequence",
    makes=PerceptualDistance,
    pairs=True,
    weights=("lpips_alex",),
    ready=partial(why_not_ready, "lpips_alex"),
)
def lpips_alex(clip: ClipInfo, *, resize: str = "area", long_side: int | None = 640) -> Sight:
    """LPIPS with AlexNet of every frame against the aligned frame of the reference."""
    return (yield from compare("lpips_alex", resize, long_side))


@observer(
    id="torch.lpips_vgg",
    version=1,
    kind="sequence",
    makes=PerceptualDistance,
    pairs=True,
    weights=("lpips_vgg",),
    ready=partial(why_not_ready, "lpips_vgg"),
)
def lpips_vgg(clip: ClipInfo, *, resize: str = "area", long_side: int | None = 640) -> Sight:
    """LPIPS with VGG16 of every frame against the aligned frame of the reference."""
    return (yield from compare("lpips_vgg", resize, long_side))


def compare(net: str, resize: str, long_side: int | None) -> Sight:
    """Distances of the pairs that are sent in, with the size rules of `lite.fidelity`."""
    state, weights, device = loaded(net)
    batch = GPU_BATCH if device == "cuda" else 1
    places: list[tuple[int, int]] = []
    found: list[np.ndarray] = []
    waiting: list[tuple[np.ndarray, np.ndarray]] = []
    width = height = 0
    pair: tuple[Frame, Frame]
    while (pair := (yield)) is not None:
        places.append((pair[0].index, pair[1].index))
        waiting.append(one_size(pair, resize, long_side))
        height, width = waiting[0][0].shape[:2]
        if len(waiting) == batch:
            found.append(distances(state, NETS[net], waiting, device))
            waiting = []
    if waiting:
        found.append(distances(state, NETS[net], waiting, device))
    table = np.array(places, dtype=np.int64).reshape(-1, 2)
    return PerceptualDistance(
        index=table[:, 0],
        reference=table[:, 1],
        distance=np.concatenate(found) if found else np.zeros(0),
        net=net,
        weights=weights,
        width=width,
        height=height,
    )


@cache
def loaded(net: str) -> tuple[dict[str, Any], str, str]:
    """Weights by layer, the digest of their file and the device they are on; once per process."""
    path = weights_file(net)
    state = by_layer(load_state(path), NETS[net], str(path))
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.set_num_threads(1)  # as with OpenCV: the workers fill the cores, and sums keep their order
    return {name: tensor.to(device) for name, tensor in state.items()}, short_digest(path), device


def by_layer(state: Mapping[str, Any], net: Net, source: str) -> dict[str, Any]:
    """The tensors this network needs, in float32: `<layer>.weight`, `<layer>.bias`, `lin<depth>`."""
    found = {}
    inputs = 3
    for depth, layers in enumerate(net):
        wanted: dict[str, tuple[str, tuple[int, ...]]] = {}
        for layer in layers:
            if isinstance(layer, Conv):
                name = f"net.slice{depth + 1}.{layer.number}"
                shape = (layer.outputs, inputs, layer.kernel, layer.kernel)
                wanted[f"{layer.number}.weight"] = f"{name}.weight", shape
                wanted[f"{layer.number}.bias"] = f"{name}.bias", (layer.outputs,)
                inputs = layer.outputs
        wanted[f"lin{depth}"] = f"lin{depth}.model.1.weight", (1, inputs, 1, 1)
        for ours, (theirs, expected) in wanted.items():
            if theirs not in state or tuple(state[theirs].shape) != expected:
                here = tuple(state[theirs].shape) if theirs in state else "nothing of that name"
                raise MissingPrerequisite(
                    f"{source}: expected {theirs} of shape {expected}, found {here}; the file holds "
                    "the state dict of lpips.LPIPS with the same net (docs/fidelity.md)"
                )
            found[ours] = state[theirs].float()
    return found


def exact_convolutions() -> Any:
    """A context in which a GPU convolves in full float32 and in one fixed order of sums."""
    import torch

    return torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)


def distances(
    state: Mapping[str, Any], net: Net, pairs: list[tuple[np.ndarray, np.ndarray]], device: str = "cpu"
) -> np.ndarray:
    """LPIPS of each pair of RGB pictures with values from 0 to 255."""
    import torch
    from torch.nn import functional

    # Both pictures of all pairs go through the network at once: first all of the clip, then all references.
    stacked = np.stack([picture for side in zip(*pairs, strict=True) for picture in side])
    with torch.inference_mode(), exact_convolutions():
        x = torch.from_numpy(stacked).to(device).permute(0, 3, 1, 2).float() / 127.5 - 1
        x = (x - x.new_tensor(SHIFT)[:, None, None]) / x.new_tensor(SCALE)[:, None, None]
        total = x.new_zeros(len(pairs))
        for depth, layers in enumerate(net):
            for layer in layers:
                if isinstance(layer, Pool):
                    x = functional.max_pool2d(x, layer.kernel, layer.stride)
                else:
                    weight, bias = state[f"{layer.number}.weight"], state[f"{layer.number}.bias"]
                    x = functional.conv2d(x, weight, bias, layer.stride, layer.padding).relu_()
            unit = x / (x.square().sum(dim=1, keepdim=True).sqrt() + 1e-10)
            difference = (unit[: len(pairs)] - unit[len(pairs) :]).square()
            total += (difference * state[f"lin{depth}"]).sum(dim=1).mean(dim=(1, 2))
        return np.asarray(total.cpu().numpy(), dtype=np.float64)
