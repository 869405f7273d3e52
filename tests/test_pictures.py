"""Pictures inside of evidence."""

import cv2
import numpy as np
import pytest

from revisit.core import Frame, InvalidEvidence
from revisit.evidence.pictures import packed, unpacked


def scene(height: int, width: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(40, 216, (7, 12, 3), dtype=np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


@pytest.mark.parametrize("size", [(111, 192), (89, 160), (61, 33)])
def test_pictures_come_back_nearly_as_they_were(size: tuple[int, int]):
    shown = [scene(*size, seed) for seed in range(3)]
    files, begins = packed(shown)
    back = unpacked(files, begins, (size[1], size[0]))
    assert back.shape == (3, *size, 3)
    assert np.abs(back.astype(float) - np.stack(shown)).mean() < 1.5
    assert back[1, :, :, 0].mean() == pytest.approx(shown[1][:, :, 0].mean(), abs=0.5)  # red stays red
    assert files.size < 0.5 * back.size
    assert unpacked(*packed([]), (5, 5)).shape == (0, 5, 5, 3)


def test_each_picture_is_a_jpeg_file_that_others_read():
    Image = pytest.importorskip("PIL.Image")
    import io

    files, begins = packed([scene(40, 64)])
    with Image.open(io.BytesIO(files[begins[0] : begins[1]].tobytes())) as picture:
        assert picture.format == "JPEG"
        assert picture.size == (64, 40)
        assert np.abs(np.asarray(picture.convert("RGB"), float) - scene(40, 64)).mean() < 1.5


def test_damaged_files_are_refused():
    files, begins = packed([scene(40, 64), scene(40, 64, 1)])
    with pytest.raises(InvalidEvidence, match="picture 1 is not a JPEG file of 64 x 40"):
        unpacked(files, np.array([0, begins[1], begins[1]]), (64, 40))
    with pytest.raises(InvalidEvidence, match="of 64 x 41"):
        unpacked(files, begins, (64, 41))


def test_a_thing_is_made_once_per_frame():
    frame = Frame(0, 0.0, scene(20, 30), "0" * 32)
    made = []
    for _ in range(2):
        frame.once("thing", lambda: made.append(1))
    assert made == [1]
