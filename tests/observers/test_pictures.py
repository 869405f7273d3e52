"""Pictures inside of evidence."""

import hashlib

import cv2
import numpy as np
import pytest

from revisit.core import Frame, InvalidEvidence
from revisit.evidence.pictures import pack_jpegs, unpack_jpegs
from revisit.observers.pictures import (
    gray_at_long_side,
    resize_by_exact_bilinear,
    rgb_at_long_side,
    small_rgb_from_shared_size,
)


def scene(height: int, width: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(40, 216, (7, 12, 3), dtype=np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


@pytest.mark.parametrize("size", [(111, 192), (89, 160), (61, 33)])
def test_pictures_come_back_nearly_as_they_were(size: tuple[int, int]):
    shown = [scene(*size, seed) for seed in range(3)]
    files, begins = pack_jpegs(shown)
    back = unpack_jpegs(files, begins, (size[1], size[0]))
    assert back.shape == (3, *size, 3)
    assert np.abs(back.astype(float) - np.stack(shown)).mean() < 1.5
    assert back[1, :, :, 0].mean() == pytest.approx(shown[1][:, :, 0].mean(), abs=0.5)  # red stays red
    assert files.size < 0.5 * back.size
    assert unpack_jpegs(*pack_jpegs([]), (5, 5)).shape == (0, 5, 5, 3)


def test_each_picture_is_a_jpeg_file_that_others_read():
    Image = pytest.importorskip("PIL.Image")
    import io

    files, begins = pack_jpegs([scene(40, 64)])
    with Image.open(io.BytesIO(files[begins[0] : begins[1]].tobytes())) as picture:
        assert picture.format == "JPEG"
        assert picture.size == (64, 40)
        assert np.abs(np.asarray(picture.convert("RGB"), float) - scene(40, 64)).mean() < 1.5


def test_damaged_files_are_refused():
    files, begins = pack_jpegs([scene(40, 64), scene(40, 64, 1)])
    with pytest.raises(InvalidEvidence, match="picture 1 is not a JPEG file of 64 x 40"):
        unpack_jpegs(files, np.array([0, begins[1], begins[1]]), (64, 40))
    with pytest.raises(InvalidEvidence, match="of 64 x 41"):
        unpack_jpegs(files, begins, (64, 41))


def test_a_thing_is_made_once_per_frame():
    frame = Frame(0, 0.0, scene(20, 30), "0" * 32)
    made = []
    for _ in range(2):
        frame.once("thing", lambda: made.append(1))
    assert made == [1]


def ramps(height: int, width: int) -> np.ndarray:
    """A picture of whole numbers alone, the same everywhere."""
    y, x = np.mgrid[:height, :width]
    return np.stack([7 * x + 3 * y, x * y // 5, 255 - (x * x + 11 * y) // 9], axis=2).astype(np.uint8)


# Made on ARM64; x86-64 makes the same, and so do OpenCV 4.10 and 5.0.
@pytest.mark.parametrize(
    ("size", "long_side", "digest"),
    [
        ((480, 832), 640, "7f1df20be9225142"),
        ((1080, 1920), 640, "72980fd1e12711bf"),
        ((333, 500), 320, "5421a7138d48176b"),
        ((240, 416), 320, "05ae8ad39bebd6ce"),
        ((361, 641), 320, "18bea9c59fdeccb9"),
    ],
)
def test_scaled_pictures_are_the_same_on_every_machine(size: tuple[int, int], long_side: int, digest: str):
    frame = Frame(0, 0.0, ramps(*size), "0" * 32)
    made = [rgb_at_long_side(frame, long_side), small_rgb_from_shared_size(frame, 192), gray_at_long_side(frame, 256)]
    assert hashlib.sha256(b"".join(picture.tobytes() for picture in made)).hexdigest()[:16] == digest


def test_interpolation_is_bilinear_between_pixel_centres():
    rows, columns = 37, 41
    picture = scene(53, 61)
    found = resize_by_exact_bilinear(picture, columns, rows).astype(float)
    y, x = ((np.arange(n) + 0.5) * m / n - 0.5 for n, m in ((rows, 53), (columns, 61)))
    y0, x0 = np.floor(y).astype(int), np.floor(x).astype(int)
    below, right = (y - y0)[:, None, None], (x - x0)[None, :, None]
    corners = [[picture[y0 + dy][:, x0 + dx].astype(float) for dx in (0, 1)] for dy in (0, 1)]
    upper, lower = (row[0] * (1 - right) + row[1] * right for row in corners)
    assert np.abs(found - (upper * (1 - below) + lower * below)).max() < 0.75  # weights are of 1/256
    assert np.array_equal(resize_by_exact_bilinear(picture[..., 1].copy(), columns, rows), found[..., 1])
