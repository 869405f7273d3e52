"""Clips that are no mp4: AVI, MOV, GIF, animated WebP and arrays, against the libraries that wrote them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

import revisit as package
from revisit.core import Case, Clip, MediaError, Rejected
from revisit.datasets.folder.read import read
from revisit.media import Limits, clip_digest, is_clip_file, open_clip, save_npz

COUNT, HEIGHT, WIDTH, FPS = 7, 50, 66, 10


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    """A view that slides over a wall of few colours, which GIF keeps."""
    levels = np.array([0, 60, 130, 200, 255], np.uint8)
    wall = levels[np.random.default_rng(0).integers(0, 5, (10, 24, 3))]
    wall = np.kron(wall, np.ones((5, 5, 1), np.uint8))
    return np.stack([wall[:, 3 * k : 3 * k + WIDTH] for k in range(COUNT)])


def by_opencv(codec: str) -> Callable[[Path, np.ndarray], None]:
    def write(path: Path, frames: np.ndarray) -> None:
        writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*codec), FPS, (WIDTH, HEIGHT))
        assert writer.isOpened()
        for frame in frames:
            writer.write(np.ascontiguousarray(frame[..., ::-1]))
        writer.release()

    return write


def by_pyav(codec: str, pixels: str) -> Callable[[Path, np.ndarray], None]:
    def write(path: Path, frames: np.ndarray) -> None:
        with av.open(str(path), "w") as container:
            stream = container.add_stream(codec, rate=FPS)
            stream.height, stream.width, stream.pix_fmt = HEIGHT, WIDTH, pixels
            for frame in frames:
                container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")))
            container.mux(stream.encode())

    return write


def by_pillow(path: Path, frames: np.ndarray) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs Pillow, which writes GIF and WebP without us")
    pictures = [image.fromarray(frame) for frame in frames]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=1000 // FPS, loop=0, lossless=True)


EXACT = {
    "ffv1.avi": by_opencv("FFV1"), "huffyuv.avi": by_opencv("HFYU"), "raw.avi": by_pyav("rawvideo", "bgr24"),
    "a.webp": by_pillow,
}  # fmt: skip
LOSSY = {
    "mjpg.avi": by_opencv("MJPG"), "xvid.avi": by_opencv("XVID"), "h264.avi": by_pyav("libx264", "yuv420p"),
    "h264.mov": by_pyav("libx264", "yuv420p"), "a.gif": by_pillow,
}  # fmt: skip


def decoded(path: Path, **limits: int) -> np.ndarray:
    with open_clip(Clip(path), Limits(**limits)) as stream:
        assert stream.info.fps == pytest.approx(FPS) and stream.info.times[1] == pytest.approx(1 / FPS)
        return np.stack([frame.rgb for frame in stream])


def independent(path: Path) -> np.ndarray:
    """The frames as the library of its writer reads them back."""
    if path.suffix == ".gif":
        from PIL import Image, ImageSequence

        return np.stack([np.asarray(one.convert("RGB")) for one in ImageSequence.Iterator(Image.open(path))])
    capture = cv2.VideoCapture(str(path))
    return np.stack([frame[..., ::-1] for _ in range(COUNT) for read, frame in [capture.read()] if read])


@pytest.mark.parametrize("name", [*EXACT, *LOSSY])
def test_frames_are_those_of_an_independent_reader(name: str, frames: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / name
    {**EXACT, **LOSSY}[name](path, frames)
    assert is_clip_file(path)
    found = decoded(path)
    assert found.shape == frames.shape
    theirs = frames if name in EXACT or name == "a.gif" else independent(path)
    if name in EXACT or name == "a.gif":
        assert np.array_equal(found, theirs)
    else:  # chroma is enlarged by repetition here, and smoothed there
        assert np.abs(found.astype(float) - theirs).mean() < 12 and np.abs(found.mean() - theirs.mean()) < 1
    whole = path.read_bytes()
    path.write_bytes(whole[: 2 * len(whole) // 3])
    with pytest.raises(MediaError, match=r"truncated|cut off"):
        decoded(path)


def test_limits_hold_before_an_animation_is_decoded(frames: np.ndarray, tmp_path: Path) -> None:
    by_pillow(tmp_path / "a.webp", frames)
    by_pillow(tmp_path / "a.gif", frames)
    for name in ("a.webp", "a.gif"):
        for limits in ({"frames": 3}, {"pixels": 100}):
            with pytest.raises(MediaError, match="raise the limit with --limits"):
                decoded(tmp_path / name, **limits)
    by_pillow(tmp_path / "still.webp", frames[:1])
    assert not is_clip_file(tmp_path / "still.webp")
    with pytest.raises(MediaError, match="a WebP picture, not an animation"):
        decoded(tmp_path / "still.webp")


def scaled(frames: np.ndarray, low: float, high: float) -> np.ndarray:
    return (frames / 255 * (high - low) + low).astype(np.float32)


ARRAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "THWC uint8": lambda f: f,
    "TCHW uint8": lambda f: f.transpose(0, 3, 1, 2),
    "CTHW float 0..1": lambda f: scaled(f, 0, 1).transpose(3, 0, 1, 2),
    "TCHW float -1..1": lambda f: scaled(f, -1, 1).transpose(0, 3, 1, 2),
    "THWC float 0..255": lambda f: f.astype(np.float32),
    "THWC half": lambda f: scaled(f, 0, 1).astype(np.float16),
    "a batch of one, with overshoot": lambda f: scaled(f, -1.0, 1.0)[None] * np.float32(1.0001),
    "columns first": lambda f: np.asfortranarray(f),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_frames_are_clips(name: str, frames: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ARRAYS[name](frames))
    save_npz(
        tmp_path / "a.npz", {"video": ARRAYS[name](frames), "fps": np.float64(FPS), "poses": np.zeros((COUNT, 4, 4))}
    )
    for path, fps in ((tmp_path / "a.npy", None), (tmp_path / "a.npz", FPS)):
        assert is_clip_file(path)
        with open_clip(Clip(path), wanted=np.array([0, COUNT - 1])) as stream:
            assert stream.info.fps == (fps or 24) and stream.info.count == COUNT
            assert all(np.array_equal(frame.rgb, frames[frame.index]) for frame in stream)
        assert "was read as" in stream.notes[0]
    with open_clip(Clip(tmp_path / "a.npz", fps=5)) as stream:
        assert stream.info.fps == 5
    assert clip_digest(Clip(tmp_path / "a.npz", fps=5)) != clip_digest(Clip(tmp_path / "a.npz"))


class Bomb:
    """Would say so, if it were loaded."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return pytest.fail, ("a pickle was loaded",)


REFUSED: dict[str, tuple[Callable[[np.ndarray], object], str]] = {
    "grey": (lambda f: f[..., 0], "it has no array of frames"),
    "latents": (lambda f: np.zeros((COUNT, 4, HEIGHT, WIDTH), np.float32), "it has no array of frames"),
    "three frames": (lambda f: f[:3].transpose(0, 3, 1, 2), "may be TCHW or CTHW"),
    "nan": (lambda f: np.full(f.shape, np.nan, np.float32), "not all finite"),
    "other range": (lambda f: f.astype(np.float32) * 4, "its values go from 0 to 1020"),
    "objects": (lambda f: np.array([Bomb()], dtype=object), "it has no array of frames"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_arrays_are_refused_with_what_is_expected(name: str, frames: np.ndarray, tmp_path: Path) -> None:
    content, sentence = REFUSED[name]
    np.save(tmp_path / "a.npy", content(frames), allow_pickle=True)
    with pytest.raises(MediaError, match=sentence):
        open_clip(Clip(tmp_path / "a.npy"))
    (tmp_path / "b.npy").write_bytes(pickle.dumps(Bomb()))
    assert not is_clip_file(tmp_path / "b.npy")
    np.save(tmp_path / "c.npy", frames)
    for limits in (Limits(frames=2), Limits(pixels=100), Limits(file_size=1000), Limits(memory=1000)):
        with pytest.raises(MediaError):
            open_clip(Clip(tmp_path / "c.npy"), limits)


def test_folders_of_any_format_are_read_and_scored_alike(frames: np.ndarray, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    EXACT["ffv1.avi"](folder / "avi.avi", frames)
    by_pillow(folder / "webp.webp", frames)
    by_pillow(folder / "gif.gif", frames)
    LOSSY["h264.mov"](folder / "mov.mov", frames)
    np.savez(folder / "npz.npz", frames=frames, fps=FPS)
    np.savez(folder / "poses.npz", poses=np.zeros((COUNT, 4, 4)))
    entries = list(read(folder))
    assert {entry.sample for entry in entries if isinstance(entry, Case)} == {"avi", "webp", "gif", "mov", "npz"}
    assert not [entry for entry in entries if isinstance(entry, Rejected)]
    results = package.evaluate(folder, metrics=["flicker"], out=tmp_path / "run", workers=0)
    scores = {case.sample: results.answer(case, "flicker").value for case in results.cases}
    assert len(scores) == 5 and all(value is not None for value in scores.values())
    exact = [scores[name] for name in ("avi", "webp", "gif", "npz")]
    assert exact == pytest.approx([exact[0]] * 4) and scores["mov"] == pytest.approx(exact[0], rel=0.3)


@pytest.mark.parametrize("rate", [np.array("fast"), np.array(8 + 1j), np.array(np.nan), np.array(0)])
def test_a_rate_that_is_none_is_refused(rate: np.ndarray, frames: np.ndarray, tmp_path: Path) -> None:
    np.savez(tmp_path / "clip.npz", frames=frames, fps=rate)
    with pytest.raises(MediaError, match=r"fps is .*; write a number above zero"):
        open_clip(Clip(tmp_path / "clip.npz"))
