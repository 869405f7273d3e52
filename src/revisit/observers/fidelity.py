"""Squared error and SSIM of a clip against its reference; docs/fidelity.md says how frames are brought to one size
(`quick`, `area`, `mind`), and what the families of SSIM are.

Eight pairs a second are compared by default, the first, the second and the last among them: the first frame is often
given, and the second shows what became of it.

LPIPS with AlexNet or VGG16 is compared in the same pairs (`networks.lpips` says how it is computed). Small pictures of
clip and reference, side by side in time, are stored for metrics that look at what became of a thing.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from revisit import weights
from revisit.core import (
    Batch,
    ClipInfo,
    Frame,
    PairStream,
    Sampling,
    UsageError,
    observer,
    per_second,
    register_observer_per_network,
)
from revisit.evidence.pictures import EDGE, SIGMA, WINDOW, pack_jpegs, ssim_map
from revisit.evidence.reference import SSIM_FAMILIES, FrameFidelity, PairedViews, PerceptualDistance
from revisit.observers.pictures import (
    resize_by_area,
    resize_by_halving,
    rgb_at_exact_size,
    rgb_at_shared_size,
    shrunk_size,
    small_rgb_from_shared_size,
)
from revisit.observers.rows import columns_of_rows

TILE = 96, 210  # rows and columns worked on at a time, so that what is worked on stays in the processor's cache
MIND_SIZE = 1280, 720
PAIRED_SIDE, PAIRED_QUALITY = 160, 90  # of pictures that are blurred before they are compared
RATE = 8.0  # pairs a second; the metrics weigh each by the frames that it stands for


def compared_frame_numbers(count: int, fps: float, *, rate: float | None = RATE, **_: Any) -> np.ndarray:
    """Frames that are compared: so many a second, or every one, the first two and the last among them."""
    return np.union1d(Sampling(rate).pick(count, fps), np.arange(min(count, 2)))


@observer(
    id="lite.fidelity",
    version=5,
    kind="sequence",
    makes=FrameFidelity,
    pairs=True,
    choose=compared_frame_numbers,
    sets=("lite",),
)
def frame_fidelity(
    clip: ClipInfo,
    *,
    families: str = "rgb",
    resize: str = "quick",
    long_side: int | None = 640,
    rate: float | None = RATE,
) -> PairStream:
    """Squared error and SSIM of `rate` frames a second, or of all, against the aligned frames of the reference."""
    import cv2

    family_names = parse_ssim_families(families)
    rows: list[tuple[float, ...]] = []
    width = height = 0
    while (pair := (yield)) is not None:
        picture, truth = bring_pair_to_one_size(pair, resize, long_side)
        height, width = picture.shape[:2]
        error = cv2.norm(picture, truth, cv2.NORM_L2SQR) / picture.size
        similar = (mean_ssim(picture, truth, family) for family in family_names)
        rows.append((pair[0].index, pair[1].index, error, *similar))
    index, reference, *values = columns_of_rows(rows, 3 + len(family_names))
    mse, *similarities = (np.array(column, dtype=np.float64) for column in values)
    by_family = {f"ssim_{name}": column for name, column in zip(family_names, similarities, strict=True)}
    return FrameFidelity(
        np.array(index, dtype=np.int64), np.array(reference, dtype=np.int64), mse, width, height, **by_family
    )


def parse_ssim_families(families: str) -> list[str]:
    """The SSIM families in a list such as `rgb,gray_border`; an empty one asks for the squared error alone."""
    names = list(dict.fromkeys(name for name in families.replace(",", " ").split()))
    unknown = sorted(set(names) - set(SSIM_FAMILIES))
    if unknown:
        raise UsageError(f"unknown SSIM family {', '.join(unknown)}; `families` may list {', '.join(SSIM_FAMILIES)}")
    return names


def bring_pair_to_one_size(
    pair: tuple[Frame, Frame], resize: str, long_side: int | None, rate: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Both pictures at one size: float32 from 0 to 255 by the rule `mind`, else 8-bit."""
    if resize == "mind":
        picture, truth = (
            one.once(("cover", *MIND_SIZE), partial(resize_to_cover_and_crop, one.rgb, *MIND_SIZE)) for one in pair
        )
        return picture, truth
    if resize == "quick":
        rows, columns = pair[0].rgb.shape[:2]
        size = shrunk_size(columns, rows, long_side or max(rows, columns))
        return rgb_at_exact_size(pair[0], *size), rgb_at_exact_size(pair[1], *size)
    if resize != "area":
        raise UsageError(f"unknown resize rule {resize!r}; `resize` must be quick, area or mind")
    picture = pair[0].at(long_side)
    height, width = picture.shape[:2]
    return picture, pair[1].once(("same size", width, height), lambda: resize_by_area(pair[1].rgb, width, height))


def quick_size_on_gpu(
    shape: tuple[int, int], resize: str, long_side: int | None, rate: float | None = None
) -> tuple[int, int] | None:
    """(height, width) of `bring_pair_to_one_size` by the rule `quick`, where a GPU can do it."""
    from revisit.networks.preprocessing import can_resize_bytes_as_on_cpu

    rows, columns = shape
    width, height = shrunk_size(columns, rows, long_side or max(shape))
    return (height, width) if resize == "quick" and can_resize_bytes_as_on_cpu(shape, (height, width)) else None


def resize_to_cover_and_crop(rgb: np.ndarray, width: int, height: int) -> np.ndarray:
    """The picture as float32, scaled bilinearly until it covers this size, and its centre cut out."""
    import cv2

    rows, columns = rgb.shape[:2]
    scale = max(width / columns, height / rows)
    size = round(columns * scale), round(rows * scale)
    picture = np.asarray(rgb, dtype=np.float32)
    if size != (columns, rows):
        picture = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_LINEAR))
    # Halves to even, as torchvision's centre_crop does: one pixel of shift costs more than a decibel.
    left, top = round((size[0] - width) / 2), round((size[1] - height) / 2)
    return np.ascontiguousarray(picture[top : top + height, left : left + width])


def mean_ssim(a: np.ndarray, b: np.ndarray, family: str) -> float:
    """Mean SSIM of two RGB pictures with values from 0 to 255."""
    import cv2

    if family == "gray_border":
        gray = [cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY) for picture in (a, b)]
        return mean_ssim_inside_border(add_reflected_border(gray[0]), add_reflected_border(gray[1]), epsilon=1e-8)
    # A picture smaller than the window has no inside; its reflected border is then all there is.
    if family == "torchmetrics" or min(a.shape[:2]) < WINDOW:
        a, b = add_reflected_border(a), add_reflected_border(b)
    return mean_ssim_inside_border(a, b)


def add_reflected_border(picture: np.ndarray) -> np.ndarray:
    """The picture with half a window more on all sides, reflected, so that every pixel of it lies inside."""
    import cv2

    return np.asarray(cv2.copyMakeBorder(picture, EDGE, EDGE, EDGE, EDGE, cv2.BORDER_REFLECT_101))


def mean_ssim_inside_border(a: np.ndarray, b: np.ndarray, epsilon: float = 0.0) -> float:
    """Mean SSIM over the pixels whose whole window lies in the pictures, and over their channels."""
    import cv2

    height, width = a.shape[:2]
    kernel = cv2.getGaussianKernel(WINDOW, SIGMA, cv2.CV_32F)

    def window_mean(values: np.ndarray, scale: float, offset: float) -> np.ndarray:
        return np.asarray(cv2.sepFilter2D(values, cv2.CV_32F, kernel, scale * kernel, delta=offset)[EDGE:-EDGE])

    total = 0.0
    corners = product(range(0, height - 2 * EDGE, TILE[0]), range(0, width - 2 * EDGE, TILE[1]))
    for top, left in corners:
        tile = slice(top, top + TILE[0] + 2 * EDGE), slice(left, left + TILE[1] + 2 * EDGE)
        x, y = (np.asarray(picture[tile], dtype=np.float32, order="C") for picture in (a, b))
        total += sum(cv2.sumElems(ssim_map(x, y, window_mean, epsilon)[:, EDGE:-EDGE]))
    return float(total / ((height - 2 * EDGE) * (width - 2 * EDGE) * (a.size // (height * width))))


@register_observer_per_network(
    {"torch.lpips_alex": "lpips_alex", "torch.lpips_vgg": "lpips_vgg"},
    version=3, kind="frame", makes=PerceptualDistance, pairs=True, prepare=bring_pair_to_one_size,
    choose=compared_frame_numbers,
    gpu_size=quick_size_on_gpu,
)  # fmt: skip
def lpips_distances(
    network: str, batch: Batch, *, resize: str = "quick", long_side: int | None = 640, rate: float | None = RATE
) -> PerceptualDistance:
    """LPIPS ({network}) of `rate` frames a second, or of all, against the aligned frames of the reference."""
    from revisit.networks import lpips, runtime, settings

    # Half precision moves a clip's distance by up to 1e-4 with the real weights: only for those who ask for it.
    with runtime.inference(settings.requested_precision() or None):
        net = runtime.network(network, getattr(lpips, network))
        pictures, truth = runtime.channels_first_on_device(batch.rgb), runtime.channels_first_on_device(batch.reference)
        distances = runtime.to_numpy(net(pictures, truth), np.float64)
    height, width = pictures.shape[-2:]
    digest = weights.digests([network])[0].partition("=")[2][:16]
    return PerceptualDistance(batch.index, batch.reference_index, distances, network, digest, width, height)


@observer(
    id="lite.outcome",
    version=4,
    kind="sequence",
    makes=PairedViews,
    frames=per_second(8, at_most=32),
    pairs=True,
    sets=("lite",),
)
def paired_views(clip: ClipInfo) -> PairStream:
    """At most 32 aligned pairs of pictures, 160 pixels on the longer side."""
    rows: list[tuple[int, np.ndarray, np.ndarray]] = []
    while (pair := (yield)) is not None:
        if rows and rows[-1][0] == pair[0].index:
            continue  # a further partner, of an alignment by phases; the first is that of the whole clip
        picture = small_rgb_from_shared_size(pair[0], PAIRED_SIDE)
        truth = resize_by_halving(rgb_at_shared_size(pair[1]), picture.shape[1], picture.shape[0])
        rows.append((pair[0].index, picture, truth))
    index, pictures, truths = columns_of_rows(rows, 3)
    height, width = pictures[0].shape[:2] if pictures else (1, 1)
    clip_files, reference_files = pack_jpegs(pictures, PAIRED_QUALITY), pack_jpegs(truths, PAIRED_QUALITY)
    return PairedViews(np.array(index, dtype=np.int64), *clip_files, *reference_files, width, height)
