"""Pixels: the same on every machine, and the right colours."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from revisit.core import Clip, MediaError
from revisit.media import decoder_process, open_clip
from revisit.media.colour import RED_AND_BLUE, UNITS, pixel_layout_of_format, rgb_of, rgb_to_yuv420_planes
from tests.conftest import PROJECT
from tests.media.test_media_decode import pictures, write_video

STORED = json.loads((PROJECT / "tests/rgb_digests.json").read_text())
BT601, BT709, BT2020 = 6, 1, 9
LIMITED, FULL = 1, 2
NAMES = {BT601: "ITU-R BT.601", BT709: "ITU-R BT.709", BT2020: "ITU-R BT.2020"}


def yuv444(bits: int, matrix: int, range_: int, samples: np.ndarray) -> np.ndarray:
    """RGB of samples (N, 3) that are YUV at full resolution."""
    name = "yuv444p" if bits == 8 else f"yuv444p{bits}le"
    planes = [samples[None, :, k].astype("u1" if bits == 8 else "<u2") for k in range(3)]
    return rgb_of(name, matrix, range_, len(samples), 1, planes)[0]


def some_samples(bits: int, count: int = 20_000) -> np.ndarray:
    rng = np.random.default_rng(bits)
    corners = np.array(np.meshgrid(*[[0, 16 << (bits - 8), 1 << (bits - 1), (1 << bits) - 1]] * 3)).reshape(3, -1).T
    return np.concatenate([corners, rng.integers(0, 1 << bits, (count, 3))])


# Against what others computed


@pytest.mark.parametrize("matrix", [BT601, BT709, BT2020])
@pytest.mark.parametrize("range_", [LIMITED, FULL])
@pytest.mark.parametrize("bits", [8, 10, 12])
def test_colours_are_those_of_an_independent_library(matrix: int, range_: int, bits: int) -> None:
    colour = pytest.importorskip("colour", reason="needs colour-science")
    samples = some_samples(bits)
    exact = 255 * colour.YCbCr_to_RGB(
        samples, K=colour.WEIGHTS_YCBCR[NAMES[matrix]], in_bits=bits, in_legal=range_ == LIMITED, in_int=True,
        out_legal=False, out_int=False,
    )  # fmt: skip
    got = yuv444(bits, matrix, range_, samples)
    assert np.abs(got - np.clip(exact, 0, 255)).max() <= 0.5 + 0.1


@pytest.mark.parametrize("matrix", [2, 5, 6])
def test_the_fast_way_lies_within_a_fifth_of_a_level_of_an_independent_library(matrix: int) -> None:
    colour = pytest.importorskip("colour", reason="needs colour-science")
    samples = some_samples(8)
    samples[:, 0] = np.maximum(samples[:, 0], 16)  # what is below black is black
    planes = [np.repeat(np.repeat(samples[None, :, k], 2, 0), 2, 1).astype(np.uint8) for k in range(3)]
    got = rgb_of("yuv420p", matrix, LIMITED, 2 * len(samples), 2, [planes[0], planes[1][:1, ::2], planes[2][:1, ::2]])
    exact = 255 * colour.YCbCr_to_RGB(
        samples, K=colour.WEIGHTS_YCBCR[NAMES[BT601]], in_bits=8, in_legal=True, in_int=True, out_int=False
    )
    assert np.abs(got[0, ::2] - np.clip(exact, 0, 255)).max() <= 0.5 + 0.2
    assert np.array_equal(got[0], got[1])


def test_what_is_encoded_has_the_planes_of_an_independent_library() -> None:
    colour = pytest.importorskip("colour", reason="needs colour-science")
    rgb = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    exact = (
        colour.RGB_to_YCbCr(rgb / 255, K=colour.WEIGHTS_YCBCR[NAMES[BT601]], out_bits=8, out_legal=True, out_int=False)
        * 255
    )
    blocks = exact.reshape(10, 2, 15, 2, 3).mean(axis=(1, 3))
    for got, wanted in zip(rgb_to_yuv420_planes(rgb), (exact[..., 0], blocks[..., 1], blocks[..., 2]), strict=True):
        assert np.abs(got - wanted).max() <= 0.51


@pytest.mark.long
def test_planes_of_real_clips_are_those_decoded_on_another_machine(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both the planes and, for BT.601, the pixels that OpenCV made of them there."""
    seen = planes_seen(monkeypatch)
    equal = 0
    for name, clip in json.loads((shared / "golden/decode_arm64.json").read_text())["clips"].items():
        seen.clear()
        numbers = np.array([entry["frame"] for entry in clip["at"]])
        with open_clip(Clip(shared / name), wanted=numbers) as stream:
            frames = [frame.rgb for frame in stream]
        for entry, planes, rgb in zip(clip["at"], seen, frames, strict=True):
            assert sha(*planes) == entry["planes"], (name, entry["frame"])
            if clip["colorspace"] in (2, 5, 6):
                assert sha(rgb) == entry["opencv_i420"], (name, entry["frame"])
                equal += 1
    assert equal == 30


def test_planes_of_all_formats_are_those_decoded_on_another_machine(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = planes_seen(monkeypatch)
    folder = shared / "golden/decode_formats"
    for name, clip in json.loads((folder / "planes_arm64.json").read_text())["clips"].items():
        seen.clear()
        with open_clip(Clip(folder / name)) as stream:
            assert sum(1 for _ in stream) == clip["frames"]
        assert [sha(*planes) for planes in seen] == clip["planes"], name


def planes_seen(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A list that fills with the planes of every frame as the decoding process sends them."""
    seen: list[Any] = []

    def look(*frame: Any) -> np.ndarray:
        seen.append(frame[5])
        return rgb_of(*frame)

    monkeypatch.setattr(decoder_process, "rgb_of", look)
    return seen


def sha(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:32]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_pixels_are_those_of_other_processors_and_versions(
    shared: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(decoder_process, "THREADS", threads)
    for name, digests in STORED["clips"].items():
        with open_clip(Clip(shared / "golden/decode_formats" / name)) as stream:
            assert [frame.digest for frame in stream] == digests, name


def test_jpeg_frames_have_the_colours_of_libjpeg(tmp_path: Path) -> None:
    rgb = cv2.GaussianBlur(np.random.default_rng(0).integers(0, 256, (51, 65, 3), dtype=np.uint8), (0, 0), 2)
    for k, sampling in enumerate((0x111111, 0x211111, 0x221111)):  # 4:4:4, 4:2:2, 4:2:0
        folder = tmp_path / str(k)
        folder.mkdir()
        cv2.imwrite(str(folder / "0.jpg"), rgb[..., ::-1], [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling])
        with open_clip(Clip(folder)) as stream:
            got = next(iter(stream)).rgb.astype(int)
        reference = cv2.imread(str(folder / "0.jpg"))[..., ::-1].astype(int)
        if k == 0:
            assert np.abs(got - reference).max() <= 2  # two decoders round their cosines differently
        assert np.abs((got - reference).mean(axis=(0, 1))).max() < 0.3


# The arithmetic


@pytest.mark.parametrize("matrix", sorted(RED_AND_BLUE))
@pytest.mark.parametrize("range_", [LIMITED, FULL])
@pytest.mark.parametrize("bits", [8, 10])
def test_sums_of_16_bits_are_those_of_wide_whole_numbers(matrix: int, range_: int, bits: int) -> None:
    """All pairs of 8-bit samples that make red and blue and many that make green: no sum leaves its 16 bits."""
    red, blue = RED_AND_BLUE[matrix]
    green, more = 1 - red - blue, 1 << (bits - 8)
    luma, steps, black = (219 * more, 224 * more, 16 * more) if range_ == LIMITED else ((256 * more - 1),) * 2 + (0,)
    v, u = 2 * (1 - red), 2 * (1 - blue)
    shares = {
        (0, 2): v, (1, 1): -u * blue / green, (1, 2): -v * red / green, (2, 1): u,
    }  # fmt: skip
    grid = np.arange(256) * more + more // 2
    y, c = (part.ravel() for part in np.meshgrid(grid, grid))
    samples = np.stack([y, c, np.random.default_rng(1).permutation(c)], axis=1)
    sums = np.rint(y * 255 / luma * UNITS) if bits > 8 else y * round(255 / luma * 2 * UNITS) // 2
    wanted = np.stack([sums.astype(int) - round(black * 255 / luma * UNITS)] * 3, axis=1)
    for (channel, plane), weight in shares.items():
        wanted[:, channel] += np.rint(255 * weight * ((samples[:, plane] - 128 * more) / steps) * UNITS).astype(int)
    assert np.array_equal(yuv444(bits, matrix, range_, samples), np.clip((wanted + UNITS // 2) // UNITS, 0, 255))


@pytest.mark.parametrize("size", [(54, 96), (53, 97), (1, 1), (2, 1), (129, 131), (400, 7)])
@pytest.mark.parametrize("ratio", ["410", "411", "420", "422", "440", "444"])
@pytest.mark.parametrize("range_", [LIMITED, FULL])
def test_a_chroma_sample_counts_for_its_pixels_at_every_size(size: tuple[int, int], ratio: str, range_: int) -> None:
    height, width = size
    rng = np.random.default_rng(0)
    layout = pixel_layout_of_format(f"yuv{ratio}p", width, height)
    planes = [rng.integers(16, 236, (p.rows, p.columns), dtype=np.uint8) for p in layout.planes]
    across, down = layout.chroma
    wide = [np.repeat(np.repeat(p, down, 0), across, 1)[:height, :width] for p in planes[1:]]
    got = rgb_of(f"yuv{ratio}p", BT709, range_, width, height, planes)
    assert np.array_equal(got, rgb_of("yuv444p", BT709, range_, width, height, [planes[0], *wide]))
    if ratio == "420" and range_ == LIMITED:  # the fast way, too
        fast = rgb_of("yuv420p", BT601, range_, width, height, planes)
        slow = rgb_of("yuv444p", BT601, range_, width, height, [planes[0], *wide])
        assert fast.shape == (height, width, 3) and np.abs(fast.astype(int) - slow).max() <= 1


def test_grey_and_rgb_of_any_depth_have_the_level_in_proportion() -> None:
    rng = np.random.default_rng(0)
    for bits in (9, 10, 12, 16):
        for order in ("le", "be"):
            grey = rng.integers(0, 1 << bits, (5, 7)).astype(">u2" if order == "be" else "<u2")
            exact = grey / ((1 << bits) - 1) * 255
            for name, planes in ((f"gray{bits}{order}", [grey]), (f"gbrp{bits}{order}", [grey] * 3)):
                assert np.abs(rgb_of(name, 2, 0, 7, 5, planes) - exact[..., None]).max() <= 0.5
    wide = rng.integers(0, 1 << 16, (5, 7, 4)).astype(">u2")
    got = rgb_of("rgba64be", 0, 0, 7, 5, [wide.reshape(5, 28)])
    assert np.abs(got - wide[..., :3] / 65535 * 255).max() <= 0.5
    grey = rng.integers(16, 236, (5, 7)).astype(np.uint8)
    assert np.abs(rgb_of("gray", 2, LIMITED, 7, 5, [grey]) - (grey[..., None] - 16.0) / 219 * 255).max() <= 0.5


def test_bytes_of_rgb_are_only_moved() -> None:
    rgb = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    r, g, b = (rgb[..., k] for k in range(3))
    x = np.full_like(r, 99)
    for name, channels in (
        ("rgb24", (r, g, b)), ("bgr24", (b, g, r)), ("rgba", (r, g, b, x)), ("bgra", (b, g, r, x)),
        ("argb", (x, r, g, b)), ("abgr", (x, b, g, r)), ("bgr0", (b, g, r, x)), ("0rgb", (x, r, g, b)),
    ):  # fmt: skip
        assert np.array_equal(rgb_of(name, 0, 2, 7, 5, [np.stack(channels, -1).reshape(5, -1)]), rgb), name
    assert np.array_equal(rgb_of("gbrp", 0, 2, 7, 5, [g, b, r]), rgb)
    assert np.array_equal(rgb_of("ya8", 2, 0, 7, 5, [np.stack([r, x], -1).reshape(5, -1)]), np.stack([r, r, r], -1))


@pytest.mark.parametrize("kind", ["palette", "bits", "grey", "grey16", "rgb16", "rgba"])
def test_png_of_every_kind(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(0)
    shape = {"grey": (9, 13), "grey16": (9, 13), "rgb16": (9, 13, 3), "rgba": (9, 13, 4)}.get(kind)
    if shape is None:
        made, wanted = tiny_png(kind, rng)
        (tmp_path / "0.png").write_bytes(made)
    else:
        top = 1 << (16 if kind.endswith("16") else 8)
        picture = rng.integers(0, top, shape).astype(np.uint16 if kind.endswith("16") else np.uint8)
        cv2.imwrite(str(tmp_path / "0.png"), picture)
        wanted = picture / (top - 1) * 255
        wanted = np.repeat(wanted[..., None], 3, 2) if picture.ndim == 2 else wanted[..., 2::-1]
    with open_clip(Clip(tmp_path)) as stream:
        got = next(iter(stream)).rgb
    assert np.abs(got - wanted).max() <= 0.5


def tiny_png(kind: str, rng: np.random.Generator) -> tuple[bytes, np.ndarray]:
    """A PNG with a palette or of one bit, written by hand, and its pixels."""
    import struct
    import zlib

    def chunk(tag: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))

    width, height = 13, 9
    if kind == "palette":
        colours = rng.integers(0, 256, (16, 3), dtype=np.uint8)
        index = rng.integers(0, 16, (height, width), dtype=np.uint8)
        rows, depth, type_, extra = index, 8, 3, chunk(b"PLTE", colours.tobytes())
        wanted = colours[index]
    else:
        bits = rng.integers(0, 2, (height, width), dtype=np.uint8)
        rows, depth, type_, extra = np.packbits(bits, axis=1), 1, 0, b""
        wanted = np.repeat(bits[..., None] * np.uint8(255), 3, 2)
    data = b"".join(b"\0" + row.tobytes() for row in rows)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, type_, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + extra + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""), wanted


def test_what_is_not_known_is_refused_with_what_to_do() -> None:
    plane = np.zeros((2, 2), np.uint8)
    with pytest.raises(MediaError, match=r"its colour matrix \(YCgCo\) is not read; convert it to BT.709"):
        rgb_of("yuv444p", 8, 0, 2, 2, [plane] * 3)
    for name in ("xyz12le", "yuyv422", "nv12", "grayf32le", "rgb565le", "yuv430p"):
        with pytest.raises(MediaError, match=f"its pixel format {name} is not read; convert it"):
            pixel_layout_of_format(name, 2, 2)


def test_a_clip_says_its_matrix_and_range(tmp_path: Path) -> None:
    """The same planes under other labels are other colours: BT.709 is not taken for BT.601, nor full for limited."""
    means = {}
    for matrix, range_ in ((1, 1), (6, 1), (1, 2), (6, 2)):
        said = f"colormatrix={'bt709' if matrix == 1 else 'smpte170m'}:fullrange={'on' if range_ == 2 else 'off'}"
        options = {"crf": "1", "x264-params": said}
        path = write_video(tmp_path / f"{matrix}{range_}.mp4", pictures(1), options=options)
        with open_clip(Clip(path)) as stream:
            means[matrix, range_] = tuple(next(iter(stream)).rgb.mean(axis=(0, 1)).round(3))
    assert len(set(means.values())) == 4
