"""Decoding on a GPU: frames in nv12 are those of yuv420p, and what it refuses is decoded on the CPU, which is said."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import Clip, UsageError
from revisit.media import encode_mp4, open_clip
from revisit.media.decoder_process import GPU_DECODING, WORKER, gpu_number_for_decoding

av = pytest.importorskip("av")


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    grain = rng.integers(0, 256, (6, 5, 8, 3), dtype=np.uint8).repeat(10, axis=1).repeat(8, axis=2)
    encode_mp4(path := tmp_path / "clip.mp4", grain, fps=8)
    return path


@pytest.fixture(scope="module")
def worker() -> Any:
    spec = importlib.util.spec_from_file_location("decoding_worker", WORKER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def decoded(path: Path) -> tuple[np.ndarray, tuple[str, ...]]:
    with open_clip(Clip(path)) as frames:
        return np.stack([frame.rgb for frame in frames]), frames.notes


def test_what_a_gpu_does_not_decode_is_decoded_on_the_cpu_and_the_clip_says_so(
    clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, notes = decoded(clip)
    assert not any("CPU" in note for note in notes)
    monkeypatch.setenv(GPU_DECODING, "cuda:99")  # no machine has so many
    frames, notes = decoded(clip)
    assert np.array_equal(frames, expected)
    assert any(note.startswith("decoded on the CPU, because the GPU does not decode it (") for note in notes)


@pytest.mark.parametrize("size", [(64, 48), (66, 50)])  # the second has rows that are not whole blocks
def test_samples_of_nv12_are_those_of_yuv420p(worker: Any, size: tuple[int, int]) -> None:
    width, height = size
    rgb = np.random.default_rng(1).integers(0, 256, (height, width, 3), dtype=np.uint8)
    planar = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")
    interleaved = planar.reformat(format="nv12")
    assert worker.is_same_yuv420_picture(planar, interleaved)
    stored = planar.to_ndarray()
    expected = [stored[:height], *stored[height:].reshape(2, height // 2, width // 2)]
    for plane, (samples, stride) in zip(expected, worker.split_nv12_planes(interleaved), strict=True):
        rows = np.frombuffer(samples, np.uint8)[: len(plane) * stride].reshape(len(plane), stride)
        assert np.array_equal(rows[:, : plane.shape[1]], plane)
    other = stored.copy()
    other[-1, -1] ^= 1  # one sample of red
    assert not worker.is_same_yuv420_picture(av.VideoFrame.from_ndarray(other, format="yuv420p"), interleaved)


def test_which_gpu_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, expected in (
        ("", {None}),
        ("cpu", {None}),
        ("cuda", {"0"}),
        ("cuda:3", {"3"}),
        ("cuda:0,cuda:1", {"0", "1"}),
    ):
        monkeypatch.setenv(GPU_DECODING, value)
        assert gpu_number_for_decoding() in expected
    monkeypatch.setenv(GPU_DECODING, "gpu")
    with pytest.raises(UsageError, match="choose cpu, cuda or cuda:1"):
        gpu_number_for_decoding()
