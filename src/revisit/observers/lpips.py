"""LPIPS of a clip against its reference, with AlexNet or VGG16 (`networks.lpips` says how it is computed)."""

from __future__ import annotations

import numpy as np

from revisit import weights
from revisit.core import Batch, observers
from revisit.evidence.fidelity import PerceptualDistance
from revisit.observers.fidelity import RATE, compared, one_size, size_on_gpu


@observers(
    {"torch.lpips_alex": "lpips_alex", "torch.lpips_vgg": "lpips_vgg"},
    version=3, kind="frame", makes=PerceptualDistance, pairs=True, prepare=one_size, choose=compared,
    gpu_size=size_on_gpu,
)  # fmt: skip
def lpips(
    network: str, batch: Batch, *, resize: str = "quick", long_side: int | None = 640, rate: float | None = RATE
) -> PerceptualDistance:
    """LPIPS ({network}) of `rate` frames a second, or of all, against the aligned frames of the reference."""
    from revisit.networks import lpips, runtime, settings

    # Half precision moves a clip's distance by up to 1e-4 with the real weights: only for those who ask for it.
    with runtime.inference(settings.precision() or None):
        net = runtime.network(network, getattr(lpips, network))
        pictures, truth = runtime.on_device(batch.rgb), runtime.on_device(batch.reference)
        distances = runtime.numbers(net(pictures, truth), np.float64)
    height, width = pictures.shape[-2:]
    return PerceptualDistance(
        index=batch.index,
        reference=batch.reference_index,
        distance=distances,
        net=network,
        weights=weights.digests([network])[0].partition("=")[2][:16],
        width=width,
        height=height,
    )
