"""A clip beside its reference: squared error and two families of SSIM.

The clip's frame is reduced to `long_side` by area averaging (never enlarged); the reference's frame is
then resized from its own size to exactly that size in one step, and stretched if its shape differs.
SSIM follows Wang et al. 2004 with an 11 x 11 Gaussian of sigma 1.5, K1 = 0.01, K2 = 0.03, peak 255:

- `ssim_gray_border`: OpenCV gray, the border reflected and kept, 1e-8 in the denominator (MemoBench);
- `ssim_rgb`: mean of the three channels, the 5-pixel border left out (scikit-image with Gaussian
  weights and `use_sample_covariance=False`, piq without downsampling, pytorch-msssim).
"""

from __future__ import annotations

import numpy as np

from revisit.core import ClipInfo, Frame, Sight, observer
from revisit.evidence.fidelity import FrameFidelity

WINDOW, SIGMA = 11, 1.5
C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2


@observer(id="lite.fidelity", version=1, kind="sequence", makes=FrameFidelity, pairs=True, sets=("lite",))
def frame_fidelity(clip: ClipInfo, *, long_side: int | None = 640) -> Sight:
    """Squared error and SSIM of every frame against the aligned frame of the reference."""
    import cv2

    rows: list[tuple[float, ...]] = []
    width = height = 0
    pair: tuple[Frame, Frame]
    while (pair := (yield)) is not None:
        shown = pair[0].at(long_side)
        height, width = shown.shape[:2]
        truth = same_size(pair[1].rgb, width, height)
        mse = cv2.norm(shown, truth, cv2.NORM_L2SQR) / shown.size
        gray = ssim_map(cv2.cvtColor(shown, cv2.COLOR_RGB2GRAY), cv2.cvtColor(truth, cv2.COLOR_RGB2GRAY), 1e-8)
        colour = without_border(ssim_map(shown, truth))
        rows.append((pair[0].index, pair[1].index, mse, float(gray.mean()), float(colour.mean(dtype=np.float64))))
    table = np.array(rows, dtype=np.float64).reshape(-1, 5)
    return FrameFidelity(
        index=table[:, 0].astype(np.int64),
        reference=table[:, 1].astype(np.int64),
        mse=table[:, 2],
        ssim_gray_border=table[:, 3],
        ssim_rgb=table[:, 4],
        width=width,
        height=height,
    )


def same_size(rgb: np.ndarray, width: int, height: int) -> np.ndarray:
    """The picture at exactly this size, by area averaging."""
    import cv2

    if rgb.shape[:2] == (height, width):
        return rgb
    return np.asarray(cv2.resize(rgb, (width, height), interpolation=cv2.INTER_AREA))


def ssim_map(a: np.ndarray, b: np.ndarray, epsilon: float = 0.0) -> np.ndarray:
    """SSIM of every pixel and channel of two 8-bit pictures."""
    import cv2

    def blur(x: np.ndarray) -> np.ndarray:
        return np.asarray(cv2.GaussianBlur(x, (WINDOW, WINDOW), SIGMA))

    a, b = a.astype(np.float32), b.astype(np.float32)
    mean_a, mean_b = blur(a), blur(b)
    mean_aa, mean_bb, mean_ab = mean_a * mean_a, mean_b * mean_b, mean_a * mean_b
    # Both variances are only ever needed as a sum, which saves one blur of five.
    variances = blur(a * a + b * b) - mean_aa - mean_bb
    covariance = blur(a * b) - mean_ab
    above = (2 * mean_ab + C1) * (2 * covariance + C2)
    return np.asarray(above / ((mean_aa + mean_bb + C1) * (variances + C2) + epsilon))


def without_border(values: np.ndarray) -> np.ndarray:
    """The map without the pixels whose window reaches over the edge (all of it where nothing would be left)."""
    edge = WINDOW // 2
    return values[edge:-edge, edge:-edge] if min(values.shape[:2]) > 2 * edge else values
