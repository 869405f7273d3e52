"""Display matrices: all eight orientations, as ffmpeg shows them, and what they do to digests and to the page."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import Clip
from revisit.media import clip_digest, file_digest, open_clip
from revisit.media.colour import UNKNOWN_MATRIX, pixel_layout_of_format, rgb_of

from .test_media_decode import pictures, write_video

# The upper left of the display matrix, and the same by numpy. A row of the matrix is where a step right or down goes.
ORIENTATIONS = {
    "as stored": ((1, 0, 0, 1), lambda rgb: rgb),
    "hflip": ((-1, 0, 0, 1), lambda rgb: rgb[:, ::-1]),
    "vflip": ((1, 0, 0, -1), lambda rgb: rgb[::-1]),
    "half turn": ((-1, 0, 0, -1), lambda rgb: rgb[::-1, ::-1]),
    "transpose": ((0, 1, 1, 0), lambda rgb: rgb.transpose(1, 0, 2)),
    "clockwise": ((0, 1, -1, 0), lambda rgb: np.rot90(rgb, -1)),
    "counterclockwise": ((0, -1, 1, 0), lambda rgb: np.rot90(rgb, 1)),
    "antitranspose": ((0, -1, -1, 0), lambda rgb: np.rot90(rgb, 2).transpose(1, 0, 2)),
}
MIRRORED = ("hflip", "vflip", "transpose", "antitranspose")
# Halved chroma of an odd size has no exact mirror image in RGB: such clips are grey.
FILES = {
    "h264.mp4": ("libx264", "yuv420p", (48, 80), False),
    "h264-odd.mp4": ("libx264", "yuv444p", (17, 33), False),
    "h264.mkv": ("libx264", "yuv420p", (48, 80), False),
    "vp9.mp4": ("libvpx-vp9", "yuv420p", (48, 80), False),
    "vp9-odd.mp4": ("libvpx-vp9", "yuv420p", (37, 51), True),
    "vp9-odd.mkv": ("libvpx-vp9", "yuv444p", (37, 51), False),
    "vp9.webm": ("libvpx-vp9", "yuv420p", (50, 34), False),
}

QUICK = ("h264-odd.mp4", "vp9.mp4", "vp9.webm")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clips without a matrix, all of them as mp4."""
    folder = tmp_path_factory.mktemp("stored")
    for name, (codec, pix_fmt, size, grey) in FILES.items():
        frames = pictures(3, *size)
        if grey:
            frames = [np.repeat(rgb[..., :1] // 2 + rgb[..., 1:2] // 2, 3, axis=2) for rgb in frames]
        options = {"deadline": "realtime", "cpu-used": "8"} if codec == "libvpx-vp9" else {"preset": "ultrafast"}
        write_video(folder / f"{Path(name).stem}-{Path(name).suffix[1:]}.mp4", frames, codec, pix_fmt, options=options)
    return folder


def with_matrix(source: Path, target: Path, matrix: tuple[int, ...], where: bytes = b"tkhd") -> Path:
    """The mp4 file with a display matrix in the header of its track, or of the movie."""
    a, b, c, d = matrix
    data = bytearray(source.read_bytes())
    at = data.index(where) + (44 if where == b"tkhd" else 40)
    data[at : at + 36] = struct.pack(">9i", a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30)
    target.write_bytes(data)
    return target


def remuxed(source: Path, target: Path) -> Path:
    """The same packets and display matrix in another container."""
    import av

    with av.open(str(source)) as given, av.open(str(target), "w") as made:
        stream: Any = made.add_stream_from_template(given.streams.video[0])
        for packet in given.demux(given.streams.video[0]):
            if packet.size:
                packet.stream = stream
                made.mux(packet)
    return target


def file_with(stored: Path, folder: Path, name: str, matrix: tuple[int, ...]) -> Path:
    stem, suffix = Path(name).stem, Path(name).suffix
    mp4 = with_matrix(stored / f"{stem}-{suffix[1:]}.mp4", folder / f"{stem}.mp4", matrix)
    return mp4 if suffix == ".mp4" else remuxed(mp4, folder / name)


def frames_of(path: Path) -> tuple[list[np.ndarray], tuple[str, ...]]:
    with open_clip(Clip(path)) as stream:
        frames = [frame.rgb for frame in stream]
        assert {frame.shape for frame in frames} == {(stream.info.height, stream.info.width, 3)}
        assert all(frame.flags.c_contiguous for frame in frames)
        return frames, stream.notes


def shown_by_ffmpeg(path: Path, pix_fmt: str, height: int, width: int) -> list[np.ndarray]:
    """What the ffmpeg program makes of the clip by itself: its own planes, in RGB by the rules of colour.py."""
    command = ["ffmpeg", "-v", "error", "-i", str(path), "-f", "rawvideo", "-vsync", "passthrough", "-"]
    data = subprocess.run(command, capture_output=True, check=True, timeout=120).stdout
    planes = pixel_layout_of_format(pix_fmt, width, height).planes
    length = sum(plane.rows * plane.columns for plane in planes)
    assert len(data) % length == 0
    frames = []
    for start in range(0, len(data), length):
        samples, found = np.frombuffer(data[start : start + length], np.uint8), []
        for plane in planes:
            found.append(samples[: plane.rows * plane.columns].reshape(plane.rows, plane.columns))
            samples = samples[plane.rows * plane.columns :]
        frames.append(rgb_of(pix_fmt, UNKNOWN_MATRIX, 0, width, height, found))
    return frames


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("name", [one if one in QUICK else pytest.param(one, marks=pytest.mark.long) for one in FILES])
def test_every_orientation_is_as_ffmpeg_shows_it(stored: Path, tmp_path: Path, name: str, orientation: str) -> None:
    matrix, turned = ORIENTATIONS[orientation]
    plain, _ = frames_of(stored / f"{Path(name).stem}-{Path(name).suffix[1:]}.mp4")
    path = file_with(stored, tmp_path, name, matrix)
    got, notes = frames_of(path)
    assert len(got) == 3
    for rgb, before in zip(got, plain, strict=True):
        assert np.array_equal(rgb, turned(before))
    assert bool(notes) == (orientation != "as stored")
    assert ("mirrored left to right" in " ".join(notes)) == (orientation in MIRRORED)
    if shutil.which("ffmpeg"):
        height, width = got[0].shape[:2]
        expected = shown_by_ffmpeg(path, FILES[name][1], height, width)
        assert len(expected) == 3
        assert all(np.array_equal(rgb, other) for rgb, other in zip(got, expected, strict=True))


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="the ffmpeg program writes the message, and is not here")
@pytest.mark.parametrize("flip", ["", ":flip=horizontal", ":flip=vertical", ":flip=horizontal+vertical"])
@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_a_message_in_the_stream_is_obeyed(stored: Path, tmp_path: Path, degrees: int, flip: str) -> None:
    change = f"h264_metadata=display_orientation=insert:rotate={degrees}{flip}"
    fragments = ["-movflags", "frag_keyframe+empty_moov"] if degrees == 90 else []
    path = tmp_path / ("a.mkv" if degrees == 180 else "a.mp4")
    source = stored / "h264-mp4.mp4"
    command = ["ffmpeg", "-v", "error", "-i", str(source), "-c", "copy", "-bsf:v", change, *fragments, str(path)]
    subprocess.run(command, check=True, timeout=120)
    got, _ = frames_of(path)
    mirrored = flip in (":flip=horizontal", ":flip=vertical")
    assert (clip_digest(Clip(path)) != file_digest(path)) == mirrored
    # The message comes with the first frame and holds for all; ffmpeg 5 applies it to that frame only.
    assert np.array_equal(got[0], shown_by_ffmpeg(path, "yuv420p", *got[0].shape[:2])[0])
    upright, _ = frames_of(source)
    turned = [name for name, (_, turn) in ORIENTATIONS.items() if np.array_equal(turn(upright[0]), got[0])]
    assert len(turned) == 1
    assert all(
        np.array_equal(ORIENTATIONS[turned[0]][1](before), rgb) for before, rgb in zip(upright, got, strict=True)
    )


def test_a_mirrored_movie_of_mirrored_tracks_is_not_mirrored(stored: Path, tmp_path: Path) -> None:
    once = with_matrix(stored / "h264-mp4.mp4", tmp_path / "once.mp4", (-1, 0, 0, 1), b"mvhd")
    twice = with_matrix(once, tmp_path / "twice.mp4", (-1, 0, 0, 1))
    plain, _ = frames_of(stored / "h264-mp4.mp4")
    assert np.array_equal(frames_of(once)[0][0], plain[0][:, ::-1])
    assert np.array_equal(frames_of(twice)[0][0], plain[0])
    assert clip_digest(Clip(once)) != file_digest(once)
    assert clip_digest(Clip(twice)) == file_digest(twice)


def test_a_mirrored_picture_at_an_odd_angle_stays_as_it_is_and_that_is_told(stored: Path, tmp_path: Path) -> None:
    data = bytearray((stored / "h264-mp4.mp4").read_bytes())
    at = data.index(b"tkhd") + 44
    step = round(0.5**0.5 * 65536)
    data[at : at + 36] = struct.pack(">9i", -step, -step, 0, -step, step, 0, 0, 0, 1 << 30)
    (tmp_path / "odd.mp4").write_bytes(data)
    got, notes = frames_of(tmp_path / "odd.mp4")
    assert np.array_equal(got[0], frames_of(stored / "h264-mp4.mp4")[0][0])
    assert notes == (
        "its display matrix asks for a rotation by 315 degrees of the mirrored picture, which was not applied",
    )


@pytest.mark.parametrize("name", FILES)
def test_only_mirrored_clips_have_another_digest(stored: Path, tmp_path: Path, name: str) -> None:
    for orientation, (matrix, _) in ORIENTATIONS.items():
        (tmp_path / orientation).mkdir()
        path = file_with(stored, tmp_path / orientation, name, matrix)
        assert (clip_digest(Clip(path)) != file_digest(path)) == (orientation in MIRRORED)


def test_damaged_files_have_a_digest(stored: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    for name in ("h264.mkv", "vp9.webm", "h264.mp4"):
        whole = file_with(stored, tmp_path, name, ORIENTATIONS["transpose"][0]).read_bytes()
        for _ in range(60):
            data = bytearray(whole[: rng.integers(0, len(whole))])
            for at in rng.integers(0, max(len(data), 1), 20 if data else 0):
                data[at] = rng.integers(0, 256)
            (tmp_path / "broken").write_bytes(data)
            assert len(clip_digest(Clip(tmp_path / "broken"))) == 64


def test_a_browser_is_given_an_upright_copy(stored: Path, tmp_path: Path) -> None:
    from revisit.report.videos import Videos
    from revisit.web.media import playable_file

    flipped = with_matrix(stored / "h264-mp4.mp4", tmp_path / "flipped.mp4", ORIENTATIONS["transpose"][0])
    copy = playable_file(Clip(flipped), tmp_path / "copies")
    assert copy.path.parent == tmp_path / "copies" and (copy.info.width, copy.info.height) == (48, 80)
    seen, expected = frames_of(copy.path)[0][0], frames_of(flipped)[0][0]
    assert np.abs(seen.astype(int) - expected).mean() < 8
    placed = Videos(tmp_path / "report").video_address(Clip(flipped))
    note = str(placed["note"])
    assert placed["src"] is None and "mirrored" in note and "revisit view" in note
    assert Videos(tmp_path / "report").video_address(Clip(stored / "h264-mp4.mp4"))["src"]


def test_evidence_of_a_mirrored_clip_from_before_is_not_used(stored: Path, tmp_path: Path) -> None:
    """Digests that an earlier version remembered: those of mirrored clips are made anew, the others stay."""
    import msgspec

    from revisit.core import digest
    from revisit.media.digest import ClipDigests

    source, root = tmp_path / "clips", tmp_path / "cache"
    source.mkdir()
    flipped = with_matrix(stored / "h264-mp4.mp4", source / "flipped.mp4", ORIENTATIONS["hflip"][0])
    plain = Path(shutil.copy(stored / "h264-mp4.mp4", source / "plain.mp4"))
    known = {}
    for path, remembered in ((flipped, file_digest(flipped)), (plain, "remembered")):
        found = path.stat()
        state = found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        known[f"{path} 0 None {Clip(path).disturbed}"] = state, remembered
    file = root / "digests" / f"{digest(str(source.resolve()), 16)}.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(msgspec.json.encode(known))
    digests = ClipDigests(root, source)
    assert digests.find_or_compute(Clip(flipped)) == clip_digest(Clip(flipped)) != file_digest(flipped)
    assert digests.find_or_compute(Clip(plain)) == "remembered"
