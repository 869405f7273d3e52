"""PSNR, SSIM, MSE and LPIPS of two pictures or two clips, over every frame, at their own size.

Pictures are (height, width, 3), clips (count, height, width, 3), of bytes. Nothing is resized and nothing is aligned:
frame n is compared with frame n. The metrics `psnr`, `ssim` and `lpips` compare eight frames a second at 640 pixels or
fewer; on the frames that they compare, the numbers are the same.
"""

from __future__ import annotations

from typing import Any

from revisit.api import observe
from revisit.core import UsageError
from revisit.core.frames import as_pixel_array


def frame_mse(a: Any, b: Any) -> float:
    """Mean squared error of two pictures or clips, in levels squared, 0 to 65025.

    Parameters
    ----------
    a, b
        Pictures (height, width, 3), or clips (count, height, width, 3), of bytes and of one shape.

    Returns
    -------
    float
        The mean over pixels, channels and frames.

    Raises
    ------
    UsageError
        If the shapes differ; it is a ValueError, too.

    Examples
    --------
    >>> black = np.zeros((4, 32, 48, 3), np.uint8)
    >>> revisit.frame_mse(black, black + 3)
    9.0
    """
    return float(_fidelity_evidence(a, b).mse.mean())


def frame_psnr(a: Any, b: Any) -> float:
    """PSNR of two pictures or clips in dB: the mean over frames, of which identical ones count as 99 dB.

    Parameters
    ----------
    a, b
        Pictures (height, width, 3), or clips (count, height, width, 3), of bytes and of one shape.

    Returns
    -------
    float
        The mean over every frame. The metric `psnr` compares eight frames a second at 640 pixels or fewer.

    Raises
    ------
    UsageError
        If the shapes differ; it is a ValueError, too.

    Examples
    --------
    >>> black = np.zeros((4, 32, 48, 3), np.uint8)
    >>> round(revisit.frame_psnr(black, black + 3), 2)
    38.59
    """
    from revisit.metrics.fidelity import psnr_per_frame

    return float(psnr_per_frame(_fidelity_evidence(a, b).mse).mean())


def frame_ssim(a: Any, b: Any, family: str = "rgb") -> float:
    """SSIM of two pictures or clips, the mean over frames.

    Parameters
    ----------
    a, b
        Pictures (height, width, 3), or clips (count, height, width, 3), of bytes and of one shape.
    family
        "rgb" (per channel, without the border), "gray_border" (as MemoBench) or "torchmetrics" (as MIND).

    Returns
    -------
    float
        The mean over every frame. The metric `ssim` compares eight frames a second at 640 pixels or fewer.

    Raises
    ------
    UsageError
        If the shapes differ, or there is no such family; it is a ValueError, too.

    Examples
    --------
    >>> black = np.zeros((4, 32, 48, 3), np.uint8)
    >>> revisit.frame_ssim(black, black)
    1.0
    """
    return float(getattr(_fidelity_evidence(a, b, family), f"ssim_{family}").mean())


def frame_lpips(a: Any, b: Any, net: str = "alex") -> float:
    """LPIPS of two pictures or clips, the mean over frames; `revisit weights pull --set small` fetches the weights.

    Parameters
    ----------
    a, b
        Pictures (height, width, 3), or clips (count, height, width, 3), of bytes and of one shape.
    net
        "alex" (AlexNet) or "vgg" (VGG16).

    Returns
    -------
    float
        The mean over every frame. The metric `lpips` compares eight frames a second at 640 pixels or fewer.

    Raises
    ------
    UsageError
        If the shapes differ, there is no such network, or its weights are missing; it is a ValueError, too.

    Examples
    --------
    >>> revisit.frame_lpips(frames, truth)  # doctest: +SKIP
    0.182
    """
    if net not in ("alex", "vgg"):
        raise UsageError(f"LPIPS has the networks alex and vgg, not {net!r}")
    return float(_pair_evidence(f"torch.lpips_{net}", a, b).distance.mean())


def _fidelity_evidence(a: Any, b: Any, families: str = "") -> Any:
    return _pair_evidence("lite.fidelity", a, b, families=families)


def _pair_evidence(observer: str, a: Any, b: Any, **params: Any) -> Any:
    """The evidence of an observer of pairs, of every frame at its own size."""
    clip, truth = (as_pixel_array(one[None] if getattr(one, "ndim", 0) == 3 else one) for one in (a, b))
    if clip.shape != truth.shape:
        raise UsageError(f"two clips of one size and length are compared, not {clip.shape} and {truth.shape}")
    return observe(clip, observer, reference=truth, resize="area", long_side=None, rate=None, **params)
