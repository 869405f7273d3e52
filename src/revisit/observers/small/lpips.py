"""LPIPS of a clip against its reference, with AlexNet or VGG16 (`networks.lpips` says how it is computed)."""

from __future__ import annotations

import numpy as np

from revisit import weights
from revisit.core import Batch, observer
from revisit.evidence.fidelity import PerceptualDistance
from revisit.observers.lite.fidelity import one_size


@observer(
    id="torch.lpips_alex",
    version=2,
    kind="frame",
    makes=PerceptualDistance,
    pairs=True,
    weights=("lpips_alex",),
    prepare=one_size,
)
def lpips_alex(batch: Batch, *, resize: str = "area", long_side: int | None = 640) -> PerceptualDistance:
    """LPIPS with AlexNet of every frame against the aligned frame of the reference."""
    return compare("lpips_alex", batch)


@observer(
    id="torch.lpips_vgg",
    version=2,
    kind="frame",
    makes=PerceptualDistance,
    pairs=True,
    weights=("lpips_vgg",),
    prepare=one_size,
)
def lpips_vgg(batch: Batch, *, resize: str = "area", long_side: int | None = 640) -> PerceptualDistance:
    """LPIPS with VGG16 of every frame against the aligned frame of the reference."""
    return compare("lpips_vgg", batch)


def compare(net: str, batch: Batch) -> PerceptualDistance:
    """Distances of the pairs of a batch, which `one_size` has brought to one size."""
    from revisit.networks import lpips, runtime

    with runtime.inference():
        network = runtime.network(net, getattr(lpips, net))
        shown, truth = runtime.on_device(batch.rgb), runtime.on_device(batch.reference)
        found = runtime.numbers(network(shown, truth), np.float64)
    height, width = shown.shape[-2:]
    return PerceptualDistance(
        index=batch.index,
        reference=batch.reference_index,
        distance=found,
        net=net,
        weights=weights.digests([net])[0].partition("=")[2][:16],
        width=width,
        height=height,
    )
