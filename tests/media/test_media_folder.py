"""Folders of frames: which images, in which order, and what is said when they do not fit together."""

from __future__ import annotations

import struct
from pathlib import Path

import cv2
import numpy as np
import pytest

from revisit.core import Clip, MediaError, UsageError
from revisit.media import Limits, clip_digest, open_clip
from revisit.media.frame_folder import find_frame_files


def flat(value: int, height: int = 16, width: int = 24) -> np.ndarray:
    return np.full((height, width, 3), value, np.uint8)


def fill(folder: Path, names: list[str]) -> Path:
    """A folder whose images carry their place in `names` as their value times ten."""
    folder.mkdir(exist_ok=True)
    for place, name in enumerate(names):
        assert cv2.imwrite(str(folder / name), flat(place * 10))
    return folder


def values(folder: Path, limits: Limits = Limits()) -> list[int]:
    with open_clip(Clip(folder), limits) as stream:
        return [int(frame.rgb[0, 0, 0]) for frame in stream]


def refusal(folder: Path, limits: Limits = Limits()) -> str:
    with pytest.raises(MediaError) as caught:
        values(folder, limits)
    sentence = str(caught.value)
    assert sentence.startswith(f"{folder.name}: ") and sentence.isprintable()
    return sentence


def test_natural_order(tmp_path: Path) -> None:
    folder = fill(tmp_path / "f", ["frame2.png", "frame10.png", "frame1.png", "frame100.PNG"])
    assert values(folder) == [20, 0, 10, 30]


def test_png_frames_are_exact_and_clocked(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frames = [rng.integers(0, 256, (17, 33, 3), dtype=np.uint8) for _ in range(3)]
    for i, rgb in enumerate(frames):
        cv2.imwrite(str(tmp_path / f"{i}.png"), rgb[..., ::-1])
    (tmp_path / "notes.txt").write_text("not a frame")
    with open_clip(Clip(tmp_path, fps=8)) as stream:
        assert (stream.info.width, stream.info.height, stream.info.count, stream.info.fps) == (33, 17, 3, 8)
        got = list(stream)
    assert all(np.array_equal(frame.rgb, rgb) for frame, rgb in zip(got, frames, strict=True))
    assert [frame.time for frame in got] == [0, 0.125, 0.25]
    with open_clip(Clip(tmp_path)) as stream:
        assert stream.info.fps == 24
    with pytest.raises(UsageError, match="not a valid frame rate"):
        open_clip(Clip(tmp_path, fps=-1))


@pytest.mark.parametrize("suffix", ["jpg", "jpeg", "webp"])
def test_other_kinds(tmp_path: Path, suffix: str) -> None:
    assert values(fill(tmp_path / "f", [f"{i}.{suffix}" for i in range(3)])) == pytest.approx([0, 10, 20], abs=3)


def test_grey_alpha_and_16_bit_images(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "0.png"), np.full((8, 8), 40, np.uint8))
    cv2.imwrite(str(tmp_path / "1.png"), np.full((8, 8, 4), 80, np.uint8))
    cv2.imwrite(str(tmp_path / "2.png"), np.full((8, 8, 3), 120 * 257, np.uint16))
    assert values(tmp_path) == pytest.approx([40, 80, 120], abs=1)


def test_only_wanted_images_arrive(tmp_path: Path) -> None:
    folder = fill(tmp_path / "f", [f"{i}.png" for i in range(20)])
    with open_clip(Clip(folder), wanted=np.array([3, 4, 17])) as stream:
        assert [(frame.index, int(frame.rgb[0, 0, 0])) for frame in stream] == [(3, 30), (4, 40), (17, 170)]


def test_side_images_are_left_out(tmp_path: Path) -> None:
    folder = fill(tmp_path / "f", ["0.jpg", "0.depth.png", "1.jpg", "1.depth.png"])
    assert [path.name for path in find_frame_files(folder).paths] == ["0.jpg", "1.jpg"]
    with open_clip(Clip(folder)) as stream:
        assert stream.info.count == 2
    assert stream.notes == ("images marked .depth were ignored: they accompany the frames",)
    numbered = fill(tmp_path / "g", ["shot.0001.png", "shot.0002.png"])
    assert len(find_frame_files(numbered).paths) == 2


def test_a_real_folder_with_depth_beside_its_frames(shared: Path) -> None:
    folder = shared / "clips/7scenes_redkitchen_return"
    found = find_frame_files(folder)
    assert [path.name for path in found.paths[:2]] == ["0000.jpg", "0001.jpg"]
    with open_clip(Clip(folder, fps=10), wanted=np.array([0])) as stream:
        (frame,) = stream
    # libjpeg interpolates the colour planes, swscale repeats them.
    reference = np.asarray(cv2.imread(str(found.paths[0])))[..., ::-1]
    assert np.abs(frame.rgb.astype(int) - reference).mean() < 1.5


def test_several_kinds_are_refused(tmp_path: Path) -> None:
    sentence = refusal(fill(tmp_path / "f", ["0.png", "1.png", "2.jpg"]))
    assert "several formats (1 like 2.jpg and 2 like 0.png)" in sentence


def test_empty_folder(tmp_path: Path) -> None:
    assert "has no png, jpg or webp images" in refusal(tmp_path)


def test_sizes_that_differ(tmp_path: Path) -> None:
    folder = fill(tmp_path / "f", ["0.png", "1.png"])
    cv2.imwrite(str(folder / "2.png"), flat(0, 8, 8))
    assert "2.png has 8x8 pixels and the first frame 24x16" in refusal(folder)


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp"])
@pytest.mark.parametrize("damage", ["empty", "text", "cut"])
def test_unreadable_image_is_named(tmp_path: Path, suffix: str, damage: str) -> None:
    folder = fill(tmp_path / "f", [f"{i}.{suffix}" for i in range(4)])
    broken = folder / f"2.{suffix}"
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    for path in folder.iterdir():
        cv2.imwrite(str(path), noise)
    whole = broken.read_bytes()
    broken.write_bytes({"empty": b"", "text": b"not found", "cut": whole[: len(whole) // 2]}[damage])
    assert f"2.{suffix} " in refusal(folder)


def test_huge_declared_size(tmp_path: Path) -> None:
    folder = fill(tmp_path / "f", ["0.png"])
    data = bytearray((folder / "0.png").read_bytes())
    data[16:24] = struct.pack(">II", 100_000, 100_000)
    (folder / "0.png").write_bytes(data)
    assert "0.png has 100000x100000 pixels, more than the 33.2 million allowed" in refusal(folder)


def test_limits_hold_for_folders(tmp_path: Path) -> None:
    folder = fill(tmp_path / "f", [f"{i}.png" for i in range(6)])
    assert "more than 5 frames" in refusal(folder, Limits(frames=5))
    assert "more than the 10 bytes allowed" in refusal(folder, Limits(file_size=10))
    assert "24x16 pixels, more than" in refusal(folder, Limits(pixels=100))


def test_images_larger_than_a_pipe(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frames = [rng.integers(0, 256, (600, 800, 3), dtype=np.uint8) for _ in range(4)]  # noise does not compress
    for i, rgb in enumerate(frames):
        cv2.imwrite(str(tmp_path / f"{i}.png"), rgb[..., ::-1])
    with open_clip(Clip(tmp_path)) as stream:
        assert all(np.array_equal(frame.rgb, frames[frame.index]) for frame in stream)


# Digests


def test_digest_of_a_file_is_of_its_bytes(tmp_path: Path) -> None:
    for name in ("a.mp4", "b.mp4"):
        (tmp_path / name).write_bytes(b"abc")
    assert clip_digest(Clip(tmp_path / "a.mp4")) == clip_digest(Clip(tmp_path / "b.mp4"))
    assert clip_digest(Clip(tmp_path / "a.mp4")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(MediaError, match=r"^c.mp4: there is no such file"):
        clip_digest(Clip(tmp_path / "c.mp4"))


def test_digest_of_a_folder_is_of_rate_names_and_bytes(tmp_path: Path) -> None:
    a = fill(tmp_path / "a", ["0.png", "1.png"])
    b = fill(tmp_path / "b", ["0.png", "1.png"])
    (b / "notes.txt").write_text("not part of the clip")
    assert clip_digest(Clip(a)) == clip_digest(Clip(b)) == clip_digest(Clip(a, fps=24))
    assert clip_digest(Clip(a)) != clip_digest(Clip(a, fps=12))
    (b / "1.png").rename(b / "2.png")
    assert clip_digest(Clip(a)) != clip_digest(Clip(b))


# One sequence


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            ["a_1.png", "a_2.png", "b_1.png", "b_2.png", "b_3.png"],
            "2 sequences of images, not one: b_1.png to b_3.png (3 images) and a_1.png to a_2.png (2 images)",
        ),
        (
            ["frame1.png", "frame2.png", "frame01.png", "frame02.png"],
            "two images of one number, frame01.png and frame1",
        ),
        (["1.jpg", "2.jpg", "2.jpeg"], "two images of one number, 2.jpeg and 2.jpg"),
        (["cam1_01.png", "cam1_02.png", "cam2_01.png", "cam2_02.png"], "cam1_02.png (2 images) and cam2_01.png to"),
        (["0001_rgb.png", "0001_depth.png", "0002_rgb.png", "0002_depth.png"], "2 sequences of images, not one: 0001_"),
        (["1.png", "2.png", "cover.png"], "1.png to 2.png (2 images) and cover.png"),
        (
            ["a1.png", "a2.png", "b1.png", "c1.png"],
            "3 sequences of images, not one: a1.png to a2.png (2 images), b1.png and c1.png",
        ),
    ],
)
def test_two_sequences_are_refused_by_name(tmp_path: Path, names: list[str], expected: str) -> None:
    sentence = refusal(fill(tmp_path / "f", names))
    assert expected in sentence and "folder of its own" in sentence


@pytest.mark.parametrize(
    "names",
    [
        ["first.png", "last.png"],  # no numbers at all
        ["1305031102.175304.png", "1305031103.175304.png"],  # seconds with a fraction
        ["2026-01-31_12-00-59.png", "2026-01-31_12-01-00.png", "2026-01-31_12-02-00.png"],
        ["take2_08.png", "take2_09.png", "take2_10.png"],
        ["7 of 9.png", "8 of 9.png"],  # the number that counts is not the last
        ["frame.0009.png", "frame.0010.png"],
    ],
)
def test_one_sequence_by_other_names(tmp_path: Path, names: list[str]) -> None:
    assert values(fill(tmp_path / "f", names)) == [10 * k for k in range(len(names))]


def test_what_is_odd_about_numbers_is_noted(tmp_path: Path) -> None:
    assert find_frame_files(fill(tmp_path / "gap", ["1.png", "5.png", "6.png"])).notes == (
        "frame numbers are missing between 1.png and 5.png; the frames that are there were taken as one clip without "
        "gaps",
    )
    assert find_frame_files(fill(tmp_path / "padding", ["1.png", "2.png", "003.png"])).notes == (
        "numbers are written in two ways (1.png and 003.png); the frames were taken in the order of their numbers",
    )
    assert find_frame_files(fill(tmp_path / "names", ["a_1.png", "b_1.png"])).notes == (
        "the images are not numbered as one sequence; they were taken in the order of their names, a_1.png to b_1.png "
        "(2 images)",
    )
    for names in (["08.png", "09.png", "10.png"], ["8.png", "9.png", "10.png"], ["0.png", "1.png"]):
        assert find_frame_files(fill(tmp_path / names[0], names)).notes == ()


@pytest.mark.slow
def test_a_folder_of_two_sequences_costs_no_other_clip(tmp_path: Path) -> None:
    import revisit

    clips = tmp_path / "clips"
    clips.mkdir()
    fill(clips / "good", [f"{k}.png" for k in range(4)])
    fill(clips / "two", ["a_1.png", "a_2.png", "b_1.png", "b_2.png"])
    results = revisit.evaluate(clips, metrics=["flicker"], out=tmp_path / "run")
    answers = {record.case.sample: record for record in results.records}
    assert answers["good"].status == "scored" and answers["two"].status == "failed"
    assert "2 sequences of images, not one: a_1.png to a_2.png" in answers["two"].sentence
