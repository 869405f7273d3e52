"""Clips in, frames out: exact frames, honest clocks, and one sentence for everything that goes wrong."""

from __future__ import annotations

import os
import struct
import sys
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import revisit.media.decoder_process as decoder_process
from revisit.core import Clip, MediaError, UsageError, per_second
from revisit.core.frames import frame_digest
from revisit.media import Limits, encode_mp4, open_clip
from revisit.media.colour import pixel_layout_of_format, rgb_of

H264 = {"crf": "10", "g": "12"}


def pictures(count: int = 12, height: int = 48, width: int = 64) -> list[np.ndarray]:
    """Smooth frames that differ from each other, so that their order can be told."""
    y, x = np.mgrid[:height, :width]
    planes = [((x * 3 + i * 9) % 256, (y * 4 + i * 5) % 256, np.full_like(x, (i * 17) % 256)) for i in range(count)]
    return [np.stack(plane, axis=2).astype(np.uint8) for plane in planes]


@contextmanager
def same_priority() -> Iterator[None]:
    """SVT-AV1 makes its caller a real-time process where it may, and so every process that is started afterwards."""
    if not hasattr(os, "sched_getscheduler"):
        yield
        return
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def write_video(
    path: Path,
    frames: Iterable[np.ndarray],
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    rate: Fraction | int = 24,
    options: dict[str, str] | None = None,
    pts: Iterable[int] | None = None,
    base: Fraction | None = None,
    container_options: dict[str, str] | None = None,
    aspect: Fraction | None = None,
) -> Path:
    """A clip made with PyAV directly."""
    import av

    if codec not in av.codecs_available:
        pytest.skip(f"this PyAV cannot encode {codec}")
    frames = list(frames)
    with same_priority(), av.open(str(path), "w", container_options=container_options or {}) as container:
        stream: Any = container.add_stream(codec, rate=rate)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt, stream.options = pix_fmt, options or {}
        if base is not None:
            stream.codec_context.time_base = base
        if aspect is not None:
            stream.codec_context.sample_aspect_ratio = aspect
        for rgb, at in zip(frames, pts or range(len(frames)), strict=True):
            frame = av.VideoFrame.from_ndarray(rgb, format="rgb24")
            frame.pts, frame.time_base = at, base or 1 / Fraction(rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def plain(path: Path) -> list[np.ndarray]:
    """What PyAV decodes in this process, as RGB by the rules of colour.py; swscale's RGB is never far."""
    import av

    made = []
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            name, size = frame.format.name, (frame.width, frame.height)
            planes = [
                np.frombuffer(found, np.uint8).reshape(known.rows, -1)[:, : known.columns * known.dtype.itemsize]
                for found, known in zip(frame.planes, pixel_layout_of_format(name, *size).planes, strict=True)
            ]
            dtype = pixel_layout_of_format(name, *size).planes[0].dtype
            rgb = rgb_of(name, int(frame.colorspace), int(frame.color_range), *size, [p.view(dtype) for p in planes])
            # swscale interpolates the chroma of 10 bits, which these coarse colours show
            assert np.abs(rgb.astype(int) - frame.to_ndarray(format="rgb24")).mean() < (2 if dtype == np.uint8 else 8)
            made.append(rgb)
    return made


def frames_of(path: Path, limits: Limits = Limits(), **options: Any) -> list[np.ndarray]:
    with open_clip(Clip(path), limits, **options) as stream:
        return [frame.rgb for frame in stream]


def refusal(path: Path, limits: Limits = Limits()) -> str:
    """The sentence a clip is refused with: one line that starts with the clip's name."""
    with pytest.raises(MediaError) as caught, open_clip(Clip(path), limits) as stream:
        for _ in stream:
            pass
    sentence = str(caught.value)
    assert sentence.startswith(path.name) and sentence.isprintable()
    return sentence.removeprefix(f"{path.name}: ")


def same(got: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    return len(got) == len(expected) and all(np.array_equal(a, b) for a, b in zip(got, expected, strict=True))


# Frames


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt"),
    [
        ("a.mp4", "libx264", "yuv420p"),
        ("a.m4v", "mpeg4", "yuv420p"),
        ("a.mov", "prores_ks", "yuv422p10le"),
        ("b.mov", "mjpeg", "yuvj420p"),
        ("a.mkv", "ffv1", "yuv420p"),
        ("b.mkv", "libx264", "yuv420p"),
        ("a.webm", "libvpx", "yuv420p"),
        ("b.webm", "libvpx-vp9", "yuv420p"),
        ("c.webm", "libsvtav1", "yuv420p"),
        ("b.mp4", "libx265", "yuv420p10le"),
        ("c.mp4", "libx264", "yuv420p10le"),
    ],
)
def test_frames_equal_plain_decoding(tmp_path: Path, name: str, codec: str, pix_fmt: str) -> None:
    options = {"lag-in-frames": "8", "auto-alt-ref": "1"} if codec == "libvpx" else {}  # with hidden packets
    path = write_video(tmp_path / name, pictures(20, 64, 96), codec, pix_fmt, options=options)
    with open_clip(Clip(path)) as stream:
        assert (stream.info.width, stream.info.height, stream.info.count) == (96, 64, 20)
        assert stream.info.fps == pytest.approx(24, abs=0.01)
        got = list(stream)
    assert [frame.index for frame in got] == list(range(20))
    assert [frame.time for frame in got] == pytest.approx([i / 24 for i in range(20)], abs=1e-3)
    assert same([frame.rgb for frame in got], plain(path))
    assert stream.notes == ()


@pytest.mark.parametrize("name", ["clips/wrb_case_a_yaw_lr.mp4", "clips/lingbotmap_loop.mp4"])
def test_real_clips_equal_plain_decoding(shared: Path, name: str) -> None:
    assert same(frames_of(shared / name), plain(shared / name))


def test_thread_count_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_video(tmp_path / "a.mp4", pictures(30))
    two = frames_of(path)
    monkeypatch.setattr(decoder_process, "THREADS", 1)
    assert same(frames_of(path), two)


def test_odd_sizes_are_kept(tmp_path: Path) -> None:
    path = write_video(tmp_path / "odd.mp4", pictures(3, 17, 33), pix_fmt="yuv444p")
    got = frames_of(path)
    assert got[0].shape == (17, 33, 3) and got[0].flags.c_contiguous
    assert same(got, plain(path))


def test_one_frame(tmp_path: Path) -> None:
    path = write_video(tmp_path / "one.mp4", pictures(1))
    with open_clip(Clip(path)) as stream:
        assert stream.info.count == 1 and stream.info.fps == 24 and stream.info.times.tolist() == [0]
        assert len(list(stream)) == 1


def test_names_with_spaces_and_unicode(tmp_path: Path) -> None:
    path = write_video(tmp_path / "eine Küche – 台所 'x'.mp4", pictures(2))
    assert len(frames_of(path)) == 2


def test_digest_is_of_shape_and_bytes(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", pictures(2))
    with open_clip(Clip(path)) as stream:
        frames = list(stream)
    assert frames[0].digest == frame_digest(frames[0].rgb) != frames[1].digest
    assert len(frames[0].digest) == 32
    assert frame_digest(np.zeros((2, 3, 3), np.uint8)) != frame_digest(np.zeros((3, 2, 3), np.uint8))


def test_only_wanted_frames_arrive(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", pictures(24))
    everything = frames_of(path)
    with open_clip(Clip(path), wanted=np.array([7, 3, 23, 3])) as stream:
        got = list(stream)
    assert [frame.index for frame in got] == [3, 7, 23]
    assert same([frame.rgb for frame in got], [everything[i] for i in (3, 7, 23)])
    with open_clip(Clip(path), wanted=per_second(4).pick) as stream:
        assert [frame.index for frame in stream] == [0, 6, 12, 18, 23]
    with open_clip(Clip(path), wanted=np.array([], dtype=int)) as stream:
        assert list(stream) == []
    with pytest.raises(UsageError, match="0 to 23"), open_clip(Clip(path), wanted=np.array([24])):
        pass


def test_memory_does_not_grow_with_the_clip(tmp_path: Path) -> None:
    path = write_video(tmp_path / "long.mp4", pictures(1, 480, 640) * 100, options={"preset": "ultrafast"})
    with open_clip(Clip(path)) as stream:
        tracemalloc.start()
        try:
            count = sum(1 for _ in stream)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert count == 100
    assert peak < 5 * 480 * 640 * 3


def test_leaving_early_ends_the_decoder(tmp_path: Path) -> None:
    path = write_video(tmp_path / "long.mp4", pictures(1, 480, 640) * 100, options={"preset": "ultrafast"})
    with open_clip(Clip(path)) as stream:
        assert stream._worker is not None
        process = stream._worker._process
        next(iter(stream))
    assert process.returncode is not None
    with pytest.raises(MediaError, match="open the clip again"):
        next(iter(stream))


# Clocks, rotation, pixels


def test_variable_rate_keeps_its_times(tmp_path: Path) -> None:
    pts = [0, 40, 80, 200, 240, 500]
    path = write_video(tmp_path / "vfr.mp4", pictures(6), pts=pts, base=Fraction(1, 1000))
    with open_clip(Clip(path)) as stream:
        assert stream.info.times.tolist() == [p / 1000 for p in pts]
        assert stream.info.fps == pytest.approx(10)
        assert [frame.time for frame in stream] == [p / 1000 for p in pts]
    assert stream.notes == ("variable frame rate: 40 to 260 ms between frames, 10 frames per second on average",)


def test_a_rate_rounded_to_milliseconds_is_constant(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mkv", pictures(30), rate=Fraction(30000, 1001))
    with open_clip(Clip(path)) as stream:
        assert stream.info.fps == pytest.approx(30000 / 1001, rel=1e-6)
        assert sum(1 for _ in stream) == 30
    assert stream.notes == ()


def test_frames_before_the_edit_list_are_not_shown(tmp_path: Path) -> None:
    import av

    whole = write_video(tmp_path / "whole.mp4", pictures(30), options={**H264, "g": "30", "bf": "0"})
    cut = tmp_path / "cut.mp4"
    with av.open(str(whole)) as source, av.open(str(cut), "w", options={"avoid_negative_ts": "disabled"}) as target:
        stream: Any = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.size:
                shift = int(Fraction(10, 24) / packet.time_base)
                packet.pts, packet.dts, packet.stream = packet.pts - shift, packet.dts - shift, stream
                target.mux(packet)
    try:
        expected = plain(cut)
    except av.error.InvalidDataError:
        pytest.skip("this PyAV cannot read back the edit list it wrote")
    got = frames_of(cut)
    assert same(got, expected)
    assert same(got, frames_of(whole)[10:])


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_rotation_of_the_display_matrix_is_applied(tmp_path: Path, degrees: int) -> None:
    import cv2

    path = write_video(tmp_path / "phone.mp4", pictures(3), options=H264)
    upright = frames_of(path)
    cos, sin = {90: (0, 1), 180: (-1, 0), 270: (0, -1)}[degrees]
    matrix = struct.pack(">9i", cos << 16, sin << 16, 0, -sin << 16, cos << 16, 0, 0, 0, 1 << 30)
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 44
    data[at : at + 36] = matrix
    path.write_bytes(data)
    with open_clip(Clip(path)) as stream:
        got = [frame.rgb for frame in stream]
        assert got[0].shape == (stream.info.height, stream.info.width, 3)
    assert same(got, [np.rot90(rgb, -degrees // 90) for rgb in upright])
    assert stream.notes == (f"rotated by {360 - degrees} degrees counterclockwise, as its display matrix says",)
    player = cv2.VideoCapture(str(path))
    bgr = player.read()[1]
    assert bgr.shape == got[0].shape
    assert np.abs(bgr[..., ::-1].astype(int) - got[0]).mean() < 3


def test_pixels_that_are_not_square_are_noted(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", pictures(2), aspect=Fraction(4, 3))
    with open_clip(Clip(path)) as stream:
        assert (stream.info.width, stream.info.height) == (64, 48)
    assert stream.notes == ("pixels are not square (SAR 4:3): used as stored",)


def test_a_given_rate_does_not_override_the_clock(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", pictures(2))
    with open_clip(Clip(path, fps=8)) as stream:
        assert stream.info.fps == 24
    assert stream.notes == ("the video has its own timestamps; the given 8 frames per second were ignored",)


# Files that are not clips


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "the file is empty"),
        (b"404: not found\n", "this is text, not a video"),
        ("Küche\n".encode() * 2000, "this is text, not a video"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"#EXTM3U\n/etc/passwd\n", "a playlist"),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "a PNG image"),
        (b"RIFF\x00\x00\x00\x00AVI ", "the file was not finished"),
        (b"RIFF\x00\x00\x00\x00WAVE", "no AVI and no WebP animation; convert it to mp4"),
        (b"\xfe\x00\x81" + bytes(5000), "not a known video format"),
        (b"\x00\x00\x00\x18ftypmp42" + bytes(12), "its moov box) is missing"),
        (b"\x00\x00\x00\x08moov", "it holds no video stream"),
        (b"\x1a\x45\xdf\xa3", "its container cannot be read"),
        (b"\x1a\x45\xdf\xa3" + bytes(200), "its container cannot be read"),
    ],
)
def test_files_that_are_not_videos(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(content)
    assert expected in refusal(path)


def test_missing_files_and_special_files(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "absent.mp4")
    os.mkfifo(tmp_path / "pipe.mp4")
    assert "neither a regular file" in refusal(tmp_path / "pipe.mp4")


def test_control_characters_of_a_name_are_not_printed(tmp_path: Path) -> None:
    with pytest.raises(MediaError) as caught:
        open_clip(Clip(tmp_path / "a\x1b[31m\n.mp4"))
    assert str(caught.value).isprintable()


def test_sound_without_picture(tmp_path: Path) -> None:
    import av

    path = tmp_path / "song.mp4"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("aac", rate=16000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 4096), np.float32), format="fltp", layout="mono")
        frame.sample_rate, frame.pts = 16000, 0
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    assert refusal(path) == "it has sound but no picture"


def test_codecs_that_are_not_on_the_list(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mkv", pictures(2), codec="mpeg2video", rate=25)
    assert "uses the codec mpeg2video; convert it" in refusal(path)


# Damage


def test_index_at_the_end_cut_off(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", pictures(24), options=H264)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"moov") - 4])
    assert "moov box) is missing" in refusal(path)
    path.write_bytes(data[:-100])
    assert "the file is truncated" in refusal(path)
    path.write_bytes(data[: len(data) // 3])
    assert "the file is truncated" in refusal(path)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_cut_in_the_middle(tmp_path: Path, name: str) -> None:
    path = write_video(tmp_path / name, pictures(24), options=H264, container_options={"movflags": "+faststart"})
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    assert "the file is truncated: " in refusal(path)


def test_damage_in_the_middle_is_an_error_not_a_shorter_clip(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", pictures(48), options=H264, container_options={"movflags": "+faststart"})
    data = bytearray(path.read_bytes())
    start = data.index(b"mdat") + (len(data) - data.index(b"mdat")) // 2
    data[start : start + 600] = np.random.default_rng(0).bytes(600)
    path.write_bytes(data)
    sentence = refusal(path)
    assert "decoding stopped after" in sentence and "of 48 frames; the file is truncated or damaged" in sentence
    # The break is found even if nobody wants a frame behind it.
    with pytest.raises(MediaError, match="decoding stopped after"):
        frames_of(path, wanted=np.array([0]))


def test_size_that_changes_midway(tmp_path: Path) -> None:
    import av

    small, large = (
        write_video(tmp_path / f"{h}.mkv", pictures(3, h, 64), codec="mjpeg", pix_fmt="yuvj420p") for h in (32, 48)
    )
    joined = tmp_path / "joined.mkv"
    with av.open(str(joined), "w") as target:
        stream: Any = None
        for number, path in enumerate((small, large)):
            with av.open(str(path)) as source:
                stream = stream or target.add_stream_from_template(source.streams.video[0])
                for packet in source.demux(video=0):
                    if packet.size:
                        packet.pts = packet.dts = packet.pts + 1000 * number
                        packet.stream = stream
                        target.mux(packet)
    assert "frame 3 has 64x48 pixels and the first frame 64x32" in refusal(joined)


# Limits


def test_more_frames_or_pixels_or_bytes_than_allowed(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", pictures(12))
    assert "more than 5 frames; cut it, or raise the limit with --limits frames=" in refusal(path, Limits(frames=5))
    assert "64x48 pixels, more than the 0.001 million allowed" in refusal(path, Limits(pixels=1000))
    assert "more than the 100 bytes allowed" in refusal(path, Limits(file_size=100))


def test_huge_declared_size(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mov", pictures(2), codec="mjpeg", pix_fmt="yuvj420p")
    data = bytearray(path.read_bytes())
    huge = struct.pack(">HH", 20000, 20000)
    at = data.index(b"jpeg", data.index(b"stsd")) + 28
    data[at : at + 4] = huge
    for packet in (i for i in range(len(data) - 9) if data[i : i + 2] == b"\xff\xc0"):
        data[packet + 5 : packet + 9] = huge
    path.write_bytes(data)
    assert "20000x20000 pixels, more than the 33.2 million allowed" in refusal(path)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space of a process")
@pytest.mark.parametrize("memory", [40 << 20, 160 << 20])  # too little to start, too little for the frame
def test_memory_limit(tmp_path: Path, memory: int) -> None:
    frame = np.zeros((5700, 5800, 3), np.uint8)
    path = write_video(tmp_path / "a.mov", [frame], codec="mjpeg", pix_fmt="yuvj444p")
    assert "raise the limit with --limits memory=" in refusal(path, Limits(memory=memory))


def worker_that(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, does: str) -> Path:
    """A clip whose decoder does something else."""
    script = tmp_path / "worker.py"
    script.write_text(f"import os, sys, time, signal\nsys.stdin.buffer.readline()\n{does}\n")
    monkeypatch.setattr(decoder_process, "WORKER", script)
    monkeypatch.setattr(decoder_process, "FORKED", False)
    return write_video(tmp_path / "a.mp4", pictures(2))


HEADER = (
    b'{"width": 64, "height": 48, "count": 2, "fps": 24, "times": [0, 1], '
    b'"rotation": 0, "mirrored": false, "notes": []}'
)
SENDS = "out = sys.stdout.buffer; out.write(b'HEAD' + ({n}).to_bytes(4, 'big') + {data!r}); out.flush(); "


@pytest.mark.parametrize(
    ("does", "expected"),
    [
        ("time.sleep(60)", "decoding took longer than 1 s"),
        (SENDS.format(n=len(HEADER), data=HEADER) + "time.sleep(60)", "decoding took longer than 1 s"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "the decoder was killed"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "crashed (SIGSEGV)"),
        ("os.kill(os.getpid(), signal.SIGXCPU)", "decoding took longer"),
        ("os._exit(7)", "exit code 7"),
        ("os.write(1, b'x' * 1000)", "not a frame"),
        (SENDS.format(n=2, data=b"[]"), "not a frame"),
        (SENDS.format(n=2, data=b"{}"), "not a frame"),
        (SENDS.format(n=0xFFFFFFFF, data=b""), "not a frame"),
        (SENDS.format(n=len(HEADER), data=HEADER.replace(b"64", b"1e9")), "not a frame"),
        (SENDS.format(n=len(HEADER), data=HEADER) + "os.write(1, b'FRAM' + bytes(4))", "not a frame"),
        (SENDS.format(n=len(HEADER), data=HEADER) + "os._exit(0)", "ended early"),
    ],
)
def test_every_way_the_decoder_can_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, expected: str
) -> None:
    path = worker_that(monkeypatch, tmp_path, does)
    start = time.monotonic()
    assert expected in refusal(path, Limits(seconds=1))
    assert time.monotonic() - start < 20


def test_time_the_caller_takes_is_not_counted(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", pictures(1, 480, 640) * 12, options={"preset": "ultrafast"})
    with open_clip(Clip(path), Limits(seconds=2)) as stream:
        for frame in stream:
            time.sleep(0.25 if frame.index < 10 else 0)


@pytest.mark.parametrize("forked", [True, False])
def test_the_decoder_can_open_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked: bool) -> None:
    """A decoder that was taken over finds neither files nor the network, and no environment."""
    monkeypatch.setattr(decoder_process, "FORKED", forked)
    source = decoder_process.WORKER.read_text()
    probe = """
        import socket
        tried = []
        for attempt in (lambda: open("/etc/hostname"), lambda: socket.socket(), lambda: os.pipe()):
            try:
                attempt()
                tried.append("opened")
            except OSError as error:
                tried.append(str(error.errno))
        raise Problem(f"{tried} {sorted(os.environ)}")
"""
    anchor = "        frames, facts = open_video_frames("
    assert anchor in source
    # `socket` is imported early, as nothing can be imported later.
    script = tmp_path / "worker.py"
    script.write_text("import socket\n" + source.replace(anchor, probe + anchor))
    monkeypatch.setattr(decoder_process, "WORKER", script)
    monkeypatch.setenv("HOME_OF_SECRETS", "1")
    path = write_video(tmp_path / "a.mp4", pictures(2))
    sentence = refusal(path)
    assert sentence.startswith("['24', '24', '24']") and "SECRETS" not in sentence


# Writing


def test_written_clips_are_the_same_from_run_to_run(tmp_path: Path) -> None:
    # Too seldom different to be seen by trying, so ask the encoder, who writes into the file how it worked.
    encode_mp4(tmp_path / "a.mp4", pictures(10), fps=16)
    told = (tmp_path / "a.mp4").read_bytes()
    assert b" threads=1 " in told and b" mbtree=0 " in told


def test_written_clips_come_back(tmp_path: Path) -> None:
    frames = pictures(10)
    assert encode_mp4(tmp_path / "deep" / "a.mp4", frames, fps=16) == 10
    assert encode_mp4(tmp_path / "b.mp4", iter(frames), fps=16) == 10
    assert (tmp_path / "deep" / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()
    with open_clip(Clip(tmp_path / "b.mp4")) as stream:
        assert stream.info.fps == 16 and stream.info.count == 10
        error = [np.abs(frame.rgb.astype(int) - frames[frame.index]).mean() for frame in stream]
    assert max(error) < 8
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.mp4", "deep"]


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([], "at least one"),
        (pictures(1, 17, 33), "33x17 pixels cannot be encoded"),
        ([np.zeros((4, 4))], "uint8"),
        ([*pictures(1, 16, 16), *pictures(1, 16, 32)], "the same size"),
    ],
)
def test_frames_that_cannot_be_written(tmp_path: Path, frames: list[np.ndarray], expected: str) -> None:
    with pytest.raises(MediaError, match=expected):
        encode_mp4(tmp_path / "a.mp4", frames, fps=24)
    assert list(tmp_path.iterdir()) == []
