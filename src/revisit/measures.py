"""Published measures as functions of two pictures or two clips; the metrics of the same name rest on the same code.

    revisit.psnr(frames, truth)      revisit.ssim(frames, truth)      revisit.lpips(frames, truth)

Pictures are (height, width, 3), clips (count, height, width, 3), of bytes; of clips the mean over frames is returned.
Nothing is resized and nothing is aligned: frame n is compared with frame n.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from revisit.api import observe
from revisit.core import UsageError
from revisit.core.frames import pixels


def mse(a: Any, b: Any) -> float:
    """Mean squared error in levels squared, 0 to 65025."""
    return float(_fidelity(a, b).mse.mean())


def psnr(a: Any, b: Any) -> float:
    """PSNR in dB, the mean over frames; identical frames count as 99 dB.

    >>> revisit.psnr(frames, truth)
    31.7
    """
    from revisit.metrics.fidelity import psnr_per_frame

    return float(psnr_per_frame(_fidelity(a, b).mse).mean())


def ssim(a: Any, b: Any, family: str = "rgb") -> float:
    """SSIM, the mean over frames; `family` is rgb, gray_border (MemoBench) or torchmetrics (MIND)."""
    return float(getattr(_fidelity(a, b, family), f"ssim_{family}").mean())


def lpips(a: Any, b: Any, net: str = "alex") -> float:
    """LPIPS with AlexNet or VGG16 ("vgg"), the mean over frames; `revisit weights pull --set small` brings them."""
    if net not in ("alex", "vgg"):
        raise UsageError(f"LPIPS has the networks alex and vgg, not {net!r}")
    shown, truth = _both(a, b)
    seen = observe(shown, f"torch.lpips_{net}", reference=truth, resize="area", long_side=None, rate=None)
    return float(seen.distance.mean())


def _fidelity(a: Any, b: Any, families: str = "") -> Any:
    shown, truth = _both(a, b)
    return observe(
        shown, "lite.fidelity", reference=truth, families=families, resize="area", long_side=None, rate=None
    )  # every frame


def _both(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    first, second = (pixels(given[None] if getattr(given, "ndim", 0) == 3 else given) for given in (a, b))
    if first.shape != second.shape:
        raise UsageError(f"two clips of one size and length are compared, not {first.shape} and {second.shape}")
    return first, second
