"""Decoders that tests fork are the decoders of users: the same frames, the same limits, the same sentences."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from revisit.core import Clip, MediaError
from revisit.media.decode import open_clip
from revisit.media.limits import Limits
from tests.forked_decoders import DecoderServer, ForkingSubprocess

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="other systems fork no decoders in tests"),
    pytest.mark.usefixtures("decoders_start_by_themselves"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[DecoderServer]:
    server = DecoderServer()
    yield server
    server.close()


@pytest.fixture
def fork_decoders(server: DecoderServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, decoders are forked."""
    return lambda: monkeypatch.setattr("revisit.media.decoder_process.subprocess", ForkingSubprocess(server))


def read(path: Path, limits: Limits, decoding: str) -> np.ndarray | str:
    """The frames, or the sentence that says why there are none."""
    try:
        with open_clip(Clip(path, decoding=decoding), limits) as stream:
            return np.stack([frame.rgb for frame in stream])
    except MediaError as error:
        return str(error)


@pytest.mark.parametrize(
    ("limits", "decoding", "part"),
    [
        (Limits(), "", 1.0),
        (Limits(), "opencv", 1.0),
        (Limits(), "", 0.7),
        (Limits(pixels=100), "", 1.0),
    ],
    ids=["whole", "by OpenCV", "truncated", "too many pixels"],
)
def test_a_forked_decoder_gives_what_another_gives(make_clip, tmp_path, fork_decoders, limits, decoding, part):
    path = make_clip(tmp_path / "clip.mp4")
    content = path.read_bytes()
    path.write_bytes(content[: round(part * len(content))])
    alone = read(path, limits, decoding)
    fork_decoders()
    together = read(path, limits, decoding)
    assert type(alone) is type(together) is (np.ndarray if (limits, part) == (Limits(), 1.0) else str)
    assert np.array_equal(alone, together), (alone, together)


def test_a_forked_decoder_may_not_take_more_memory(make_clip, tmp_path, fork_decoders):
    """The other one does not even load its libraries."""
    path = make_clip(tmp_path / "clip.mp4")
    fork_decoders()
    sentence = read(path, Limits(memory=40 << 20), "")
    assert "decoding needs more than 40.0 MiB of memory" in str(sentence)


def test_a_forked_decoder_that_is_killed_is_told_and_the_next_one_decodes(make_clip, tmp_path, fork_decoders):
    path = make_clip(tmp_path / "clip.mp4", count=60, size=(480, 640))
    fork_decoders()
    stream = open_clip(Clip(path))
    with pytest.raises(MediaError, match="the decoder was killed"), stream:
        for frame in stream:
            if frame.index == 0:
                os.kill(stream._worker._process.pid, 9)
    assert len(read(path, Limits(), "")) == 60
