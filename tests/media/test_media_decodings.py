"""Pixels by another library: bit by bit those that it makes itself, in the same guarded process, by the same limits."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revisit.media.decoder_process as decoder_process
from revisit.core import OBSERVERS, SUITES, Case, Clip, MediaError, MissingPrerequisite, UsageError
from revisit.engine import dependencies
from revisit.engine.in_memory import plan_for_given_cases
from revisit.engine.plan import Plan
from revisit.engine.request import load_observer_set
from revisit.media import DECODING_RULE, Limits, open_clip, pixel_rules
from revisit.results.record_files import case_from_json, case_to_json
from tests.media.test_media_decode import H264, pictures, same, write_video

LIBRARIES = ("opencv", "pyav")


def frames_of(path: Path, decoding: str, limits: Limits = Limits(), **options: Any) -> list[np.ndarray]:
    with open_clip(Clip(path, decoding=decoding), limits, **options) as stream:
        return [frame.rgb for frame in stream]


def by_library(path: Path, decoding: str) -> list[np.ndarray]:
    """What the library itself makes of a video or of the images of a folder, here in this process."""
    import av
    import cv2

    if path.is_dir():
        assert decoding == "opencv"
        return [cv2.imread(str(image))[..., ::-1] for image in sorted(path.iterdir())]
    if decoding == "pyav":
        with av.open(str(path)) as container:
            return [frame.to_rgb().to_ndarray() for frame in container.decode(video=0)]
    capture, made = cv2.VideoCapture(str(path)), []
    while (read := capture.read())[0]:
        made.append(read[1][..., ::-1])
    return made


def refusal(path: Path, decoding: str, limits: Limits = Limits(), **options: Any) -> str:
    """The sentence a clip is refused with."""
    with pytest.raises(MediaError) as caught:
        frames_of(path, decoding, limits, **options)
    sentence = str(caught.value)
    assert sentence.startswith(path.name) and sentence.isprintable()
    return sentence.removeprefix(f"{path.name}: ")


# Pixels


@pytest.mark.slow
@pytest.mark.parametrize("decoding", LIBRARIES)
@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt", "size"),
    [
        ("a.mp4", "libx264", "yuv420p", (48, 64)),
        ("b.mp4", "libx264", "yuv444p", (53, 97)),
        ("c.mp4", "libx264", "yuv422p10le", (54, 96)),
        ("d.mp4", "libx265", "yuv420p10le", (48, 64)),
        ("a.webm", "libvpx-vp9", "yuv420p", (53, 97)),
        ("a.mkv", "ffv1", "bgr0", (54, 96)),
        ("a.mov", "mjpeg", "yuvj420p", (48, 64)),
    ],
)
def test_videos_have_the_pixels_of_the_library(
    tmp_path: Path, decoding: str, name: str, codec: str, pix_fmt: str, size: tuple[int, int]
) -> None:
    path = write_video(tmp_path / name, pictures(7, *size), codec, pix_fmt)
    expected = by_library(path, decoding)
    assert same(frames_of(path, decoding), expected)
    assert same(frames_of(path, decoding, wanted=np.array([1, 4])), [expected[1], expected[4]])
    with open_clip(Clip(path, start=3, count=2, decoding=decoding)) as stream:
        assert same([frame.rgb for frame in stream], expected[3:5])


@pytest.mark.slow
def test_our_own_pixels_are_others(tmp_path: Path) -> None:
    """Else nothing above would tell whose they are."""
    path = write_video(tmp_path / "a.webm", pictures(3, 53, 97), "libvpx-vp9")
    own = frames_of(path, "")
    assert not any(same(own, frames_of(path, decoding)) for decoding in LIBRARIES)


@pytest.mark.slow
@pytest.mark.parametrize("decoding", LIBRARIES)
def test_published_formats_and_real_clips(shared: Path, decoding: str) -> None:
    formats = sorted(path for path in (shared / "golden/decode_formats").iterdir() if path.suffix != ".json")
    assert len(formats) == 10
    for path in [*formats, shared / "memobench_more/ZenGarden_001_opensora.mp4"]:
        assert same(frames_of(path, decoding), by_library(path, decoding)), path.name


@pytest.mark.slow
def test_images_have_the_pixels_of_opencv(tmp_path: Path) -> None:
    """JPEG with and without halved chroma, PNG with transparency, of 16 bits, of grey and with a palette, WebP."""
    import cv2
    from PIL import Image

    rng = np.random.default_rng(0)
    rgb = np.kron(rng.integers(0, 256, (7, 9, 3)), np.ones((7, 7, 1))).astype(np.uint8)[:45, :61]
    alpha = np.dstack([rgb, rng.integers(0, 256, rgb.shape[:2])]).astype(np.uint8)

    def folder(name: str, suffix: str, **options: Any) -> Path:
        (tmp_path / name).mkdir()
        for k in range(3):
            picture = Image.fromarray(options.pop("array", rgb) if k == 0 else np.roll(rgb, k, axis=1))
            picture = picture.convert(options["mode"]) if "mode" in options else picture
            picture.save(tmp_path / name / f"{k:03d}.{suffix}", **{n: v for n, v in options.items() if n != "mode"})
        return tmp_path / name

    made = [
        folder("halved", "jpg", subsampling="4:2:0", quality=92),
        folder("whole", "jpeg", subsampling="4:4:4", quality=92),
        folder("grey", "jpg", mode="L"),
        folder("palette", "png", mode="P"),
        folder("transparent", "png", array=alpha, mode="RGBA"),
        folder("webp", "webp", lossless=True),
    ]
    (tmp_path / "deep").mkdir()
    cv2.imwrite(str(tmp_path / "deep/0.png"), rng.integers(0, 65536, (31, 33, 3)).astype(np.uint16))
    for place in [*made, tmp_path / "deep"]:
        assert same(frames_of(place, "opencv"), by_library(place, "opencv")), place.name
    assert not same(frames_of(tmp_path / "halved", ""), by_library(tmp_path / "halved", "opencv"))


@pytest.mark.parametrize("decoding", LIBRARIES)
def test_a_display_matrix_is_applied_once(tmp_path: Path, decoding: str) -> None:
    import struct

    path = write_video(tmp_path / "phone.mp4", pictures(3), options=H264)
    upright = by_library(path, decoding)
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 44
    data[at : at + 36] = struct.pack(">9i", 0, 1 << 16, 0, -1 << 16, 0, 0, 0, 0, 1 << 30)
    path.write_bytes(data)
    got = frames_of(path, decoding)
    assert same(got, [np.rot90(rgb, -1) for rgb in upright])
    if decoding == "opencv":
        assert same(got, by_library(path, decoding))


# Safety


@pytest.mark.slow
def test_opencv_reads_nothing_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import cv2

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a file from outside was decoded outside of the guarded process")

    video = write_video(tmp_path / "a.mp4", pictures(3))
    (tmp_path / "images").mkdir()
    cv2.imwrite(str(tmp_path / "images/0.jpg"), pictures(1)[0])
    for name in ("VideoCapture", "imread", "imdecode", "imdecodemulti", "imreadmulti"):
        monkeypatch.setattr(cv2, name, refuse)
    assert len(frames_of(video, "opencv")) == 3 and len(frames_of(tmp_path / "images", "opencv")) == 1


@pytest.mark.parametrize("decoding", LIBRARIES)
def test_the_decoder_can_open_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decoding: str) -> None:
    """Also once OpenCV is imported: neither files nor the network, and nothing of the environment."""
    source = decoder_process.WORKER.read_text()
    probe = """
        tried = []
        for attempt in (lambda: open("/etc/hostname"), lambda: socket.socket(), lambda: os.pipe()):
            try:
                attempt()
                tried.append("opened")
            except OSError as error:
                tried.append(str(error.errno))
        raise Problem(f"{tried} {sorted(os.environ)} {'cv2' in sys.modules}")
"""
    anchor = "        frames, facts = open_video_frames("
    assert anchor in source
    script = tmp_path / "worker.py"
    script.write_text("import socket\n" + source.replace(anchor, probe + anchor))
    monkeypatch.setattr(decoder_process, "WORKER", script)
    monkeypatch.setenv("HOME_OF_SECRETS", "1")
    sentence = refusal(write_video(tmp_path / "a.mp4", pictures(2)), decoding)
    assert sentence.startswith("['24', '24', '24']") and "SECRETS" not in sentence
    assert sentence.endswith(str(decoding == "opencv"))


@pytest.mark.slow
@pytest.mark.parametrize("decoding", LIBRARIES)
def test_damage_is_an_error_not_a_concealed_frame(tmp_path: Path, decoding: str) -> None:
    """OpenCV itself conceals it: it reads all frames of this file."""
    path = write_video(tmp_path / "a.mp4", pictures(48), options=H264, container_options={"movflags": "+faststart"})
    data = bytearray(path.read_bytes())
    start = data.index(b"mdat") + (len(data) - data.index(b"mdat")) // 2
    data[start : start + 600] = np.random.default_rng(0).bytes(600)
    path.write_bytes(data)
    assert "of 48 frames; the file is truncated or damaged" in refusal(path, decoding)
    assert "decoding stopped after" in refusal(path, decoding, wanted=np.array([0]))


def test_half_an_image_is_refused(tmp_path: Path) -> None:
    """OpenCV itself fills the rest with grey."""
    import cv2

    rng = np.random.default_rng(1)
    (tmp_path / "images").mkdir()
    path = tmp_path / "images/0.jpg"
    cv2.imwrite(str(path), rng.integers(0, 256, (64, 64, 3)).astype(np.uint8))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert cv2.imread(str(path)) is not None
    assert "0.jpg is not a complete jpeg image; write it again" in refusal(tmp_path / "images", "opencv")


@pytest.mark.slow
@pytest.mark.parametrize("decoding", LIBRARIES)
def test_limits_hold(tmp_path: Path, decoding: str) -> None:
    path = write_video(tmp_path / "a.mp4", pictures(12))
    assert "more than 5 frames; cut it" in refusal(path, decoding, Limits(frames=5))
    assert "64x48 pixels, more than the 0.001 million allowed" in refusal(path, decoding, Limits(pixels=1000))
    assert "more than the 100 bytes allowed" in refusal(path, decoding, Limits(file_size=100))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space of a process")
@pytest.mark.parametrize("memory", [40 << 20, 700 << 20])  # too little to start, too little for the frame
def test_memory_limit(tmp_path: Path, memory: int) -> None:
    frame = np.zeros((5700, 5800, 3), np.uint8)
    path = write_video(tmp_path / "a.mov", [frame], codec="mjpeg", pix_fmt="yuvj444p")
    assert "raise the limit with --limits memory=" in refusal(path, "opencv", Limits(memory=memory))


@pytest.mark.slow
def test_readers_that_do_not_agree_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clip of which OpenCV reads fewer frames, more, or another size is refused, never paired askew."""
    monkeypatch.setattr(decoder_process, "FORKED", False)
    path = write_video(tmp_path / "a.mp4", pictures(4))
    source = decoder_process.WORKER.read_text()
    for old, new, expected in (
        (
            "        if not self.capture.grab():",
            "        if number == 2 or not self.capture.grab():",
            "OpenCV reads only 2 of its frames",
        ),
        ("self.capture is not None and self.capture.grab()", "True", "OpenCV reads more than the 4 frames"),
        (
            "self.capture.retrieve()[1]",
            "self.capture.retrieve()[1][2:]",
            "OpenCV reads 64x46 pixels where PyAV reads 64x48",
        ),
    ):
        assert old in source
        script = tmp_path / "worker.py"
        script.write_text(source.replace(old, new))
        monkeypatch.setattr(decoder_process, "WORKER", script)
        assert expected in refusal(path, "opencv")


# Protocols


def plan(path: Path, decoding: str, protocol: str = "other") -> Plan:
    """The plan of a clip with a reference, in a suite whose card names the decoding of a protocol."""
    suite = SUITES["folder"]
    card = {**suite.card, "protocols": {"default": {}, "other": {}}}
    if decoding:
        card["decoding"] = {"other": decoding}
    case = Case("a", "folder", "m", "a", Clip(path), reference=Clip(path))
    return plan_for_given_cases(
        replace(suite, card=card), [case], load_observer_set("lite"), protocol=protocol, metrics=["psnr"]
    )


@pytest.mark.slow
def test_any_suite_may_name_a_decoding(tmp_path: Path) -> None:
    """It has evidence of its own; the other protocols of the suite keep theirs."""
    path = write_video(tmp_path / "a.mp4", pictures(4))
    plans = {decoding: plan(path, decoding) for decoding in ("", *LIBRARIES)}
    keys = {decoding: set(made.tasks) for decoding, made in plans.items()}
    assert all(keys.values())
    assert not keys[""] & keys["opencv"] and not keys[""] & keys["pyav"] and not keys["opencv"] & keys["pyav"]
    hashes = {made.protocol_with_hash(made.metrics[0]) for made in plans.values()}
    assert len(hashes) == 3
    unnamed = plan(path, "opencv", protocol="default")
    assert set(unnamed.tasks) == keys[""] and unnamed.cases[0].clip.decoding == ""
    for decoding in LIBRARIES:
        (case,) = plans[decoding].cases
        assert case.clip.decoding == case.reference.decoding == decoding  # type: ignore[union-attr]
        assert case_from_json(json.loads(json.dumps(case_to_json(case)))) == case
        assert plans[decoding].digests == plans[""].digests  # the same content, whoever reads it
    assert "decoding" not in case_to_json(plans[""].cases[0])["clip"]  # plan.json is as it was
    with pytest.raises(UsageError, match="there is no decoding called 'decord'; a protocol may name opencv or pyav"):
        plan(path, "decord")


def test_our_own_rules_keep_their_address() -> None:
    facts = dependencies.observer_facts(OBSERVERS["lite.fidelity"], {})
    assert facts["decoding"] == DECODING_RULE and "decoded_by" not in facts
    assert list(facts) == ["observer", "version", "frames", "size", "weights", "params", "decoding"]


def test_evidence_of_another_version_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol is the same, but the pixels need not be."""
    path = write_video(tmp_path / "a.mp4", pictures(4))
    before = plan(path, "opencv")
    monkeypatch.setattr(dependencies, "decoding_build", lambda name: "OpenCV 4.11.0, somewhere else")
    after = plan(path, "opencv")
    assert not set(before.tasks) & set(after.tasks)
    assert before.protocol_with_hash(before.metrics[0]) == after.protocol_with_hash(after.metrics[0])


def test_an_opencv_that_cannot_is_told_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import cv2

    pixel_rules.decoding_build.cache_clear()
    monkeypatch.delattr(cv2.videoio_registry, "getStreamBufferedBackends")
    with pytest.raises(MissingPrerequisite, match=r"OpenCV 4\.11 or newer with FFmpeg; the installed .* cannot"):
        plan(write_video(tmp_path / "a.mp4", pictures(2)), "opencv")


def test_the_protocols_that_repeat_public_evaluators_name_theirs() -> None:
    named = {suite.id: suite.card["decoding"] for suite in SUITES.values() if suite.card.get("decoding")}
    assert named == {
        "memobench": {"upstream": "opencv"}, "mind": {"upstream": "pyav"}, "worldmark": {"upstream": "opencv"}
    }  # fmt: skip
    for id, chosen in named.items():
        assert set(chosen) <= set(SUITES[id].protocols)
        assert next(iter(SUITES[id].protocols)) not in chosen  # the default is ours
