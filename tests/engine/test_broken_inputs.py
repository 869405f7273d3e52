"""Everything a folder of videos can hold that is not a good video: one sentence each, and the rest is scored."""

from __future__ import annotations

import json
import struct
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from revisit.media import encode_mp4
from tests.conftest import moving_frames


def audio_only(path: Path) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=8000)
        for start in range(0, 8000, 1024):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = 8000, start, Fraction(1, 8000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def with_format(path: Path, codec: str, pixels: str, frames: list[np.ndarray]) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=8)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = pixels
        for rgb in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format=pixels)))
        container.mux(stream.encode(None))


def variable_rate(path: Path, frames: list[np.ndarray]) -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=24)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = Fraction(1, 1000)
        for i, rgb in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(rgb, format="rgb24")
            frame.pts, frame.time_base = i * i * 10, Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def huge_declared(path: Path, good: bytes) -> None:
    """A small video whose sample description claims 60000 x 60000 pixels."""
    at = good.index(b"avc1", good.index(b"stsd"))
    data = bytearray(good)
    data[at + 28 : at + 32] = struct.pack(">HH", 60000, 60000)
    path.write_bytes(bytes(data))


# name, what is in the failure's sentence (None: it is scored)
EXPECTED = {
    "zero.mp4": "the file is empty",
    "text.mp4": "this is text, not a video",
    "truncated.mp4": "truncated",
    "audio.mp4": "no picture",
    "huge.mp4": "more than the 33.2 million allowed",
    "missing.mp4": "no such file",
    "one frame.mp4": None,
    "odd.mkv": None,
    "ten bit.mp4": None,
    "variable.mp4": None,
    "ünï çödé ✓.mp4": None,
    "good.mp4": None,
}


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    folder = tmp_path / "zoo"
    folder.mkdir()
    frames = moving_frames(12, (96, 128))
    encode_mp4(folder / "good.mp4", frames, fps=8)
    good = (folder / "good.mp4").read_bytes()
    (folder / "ünï çödé ✓.mp4").write_bytes(good + b"\x00\x00\x00\x0cfreemore")  # a copy would count once
    (folder / "zero.mp4").write_bytes(b"")
    (folder / "text.mp4").write_text("this is not a video\n" * 20)
    (folder / "truncated.mp4").write_bytes(good[: len(good) * 2 // 3])
    audio_only(folder / "audio.mp4")
    huge_declared(folder / "huge.mp4", good)
    encode_mp4(folder / "one frame.mp4", frames[:1], fps=8)
    with_format(folder / "odd.mkv", "ffv1", "bgr0", [np.ascontiguousarray(frame[:95, :127]) for frame in frames])
    with_format(folder / "ten bit.mp4", "libx264", "yuv420p10le", frames)
    variable_rate(folder / "variable.mp4", frames)
    entries = [{"id": name, "video": name} for name in EXPECTED]
    entries += [
        {"id": "up", "video": "../outside.mp4"},
        {"id": "absolute", "video": str(tmp_path / "outside.mp4")},
        {"id": "good.mp4", "video": "good.mp4"},
    ]
    (folder / "manifest.jsonl").write_text("\n".join(json.dumps(entry) for entry in entries), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_each_broken_input_is_one_sentence_and_the_others_are_scored(revisit, zoo, tmp_path):
    done = revisit("eval", "zoo", "--workers", 2, "-m", "motion_amount,flicker,scene_cuts", check=1)
    records = [json.loads(line) for line in (tmp_path / "runs/zoo/records.jsonl").read_text().splitlines()]
    motion = {record["case"].partition("@")[0]: record for record in records if record.get("metric") == "motion_amount"}
    for name, sentence in EXPECTED.items():
        record = motion[name]
        if sentence is not None:
            assert record["status"] == "failed" and sentence in record["reason"]["sentence"], record
            assert "\n" not in record["reason"]["sentence"]
            assert done.stderr.count(f"failed: model, {name}: ") == 1
        elif name == "one frame.mp4":
            assert record["status"] == "unscored", record
        else:
            assert record["status"] == "scored", record
    summary = json.loads((tmp_path / "runs/zoo/summary.json").read_text())
    reasons = {entry["id"]: entry["reason"] for entry in summary["rejected"]}
    lines = len(EXPECTED)
    assert "leads out of the manifest's folder" in reasons[f"manifest.jsonl line {lines + 1}"]
    assert "leads out of the manifest's folder" in reasons[f"manifest.jsonl line {lines + 2}"]
    assert "already on line" in reasons[f"manifest.jsonl line {lines + 3}"]
    assert "Traceback" not in done.stderr
    assert (tmp_path / "runs/zoo/report/index.html").is_file()


def test_every_metric_answers_a_one_frame_clip_with_a_score_or_a_reason(revisit, zoo, tmp_path):
    (zoo / "manifest.jsonl").write_text(
        json.dumps(
            {
                "id": "one", "video": "one frame.mp4", "reference": "one frame.mp4",
                "target": {"name": "t", "box": [0.2, 0.2, 0.6, 0.6]},
            }
        )
    )  # fmt: skip
    revisit("eval", "zoo", "--workers", 0)
    records = [json.loads(line) for line in (tmp_path / "runs/zoo/records.jsonl").read_text().splitlines()]
    assert len(records) > 10
    assert not [record for record in records if record["status"] == "failed"]
