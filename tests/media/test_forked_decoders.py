"""Decoders that are forked do what those do that start by themselves: the same frames, limits and sentences."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from revisit.core import Clip, MediaError
from revisit.media import decoder_process
from revisit.media.decode import open_clip
from revisit.media.limits import Limits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems fork no decoders")


def read(path: Path, limits: Limits, decoding: str) -> np.ndarray | str:
    """The frames, or the sentence that says why there are none."""
    try:
        with open_clip(Clip(path, decoding=decoding), limits) as stream:
            return np.stack([frame.rgb for frame in stream])
    except MediaError as error:
        return str(error)


FORK_ONCE = """

left = [1]


def fork_once():
    if not left:
        raise BlockingIOError(11, "no room")
    left.pop()
    return os.fork()
"""


def own_server() -> decoder_process.DecoderServer:
    (server,) = (
        one for key, one in decoder_process._servers.items() if key[:2] == (os.getpid(), decoder_process.WORKER)
    )
    return server


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
def test_a_forked_decoder_gives_what_another_gives(make_clip, tmp_path, monkeypatch, limits, decoding, part):
    path = make_clip(tmp_path / "clip.mp4")
    content = path.read_bytes()
    path.write_bytes(content[: round(part * len(content))])
    forked = read(path, limits, decoding)
    monkeypatch.setattr(decoder_process, "FORKED", False)
    alone = read(path, limits, decoding)
    assert type(alone) is type(forked) is (np.ndarray if (limits, part) == (Limits(), 1.0) else str)
    assert np.array_equal(alone, forked), (alone, forked)


def test_a_folder_of_images_has_no_clip_to_hold(tmp_path):
    import cv2

    pictures = np.random.default_rng(0).integers(0, 256, (3, 24, 32, 3), dtype=np.uint8)
    for number, picture in enumerate(pictures):
        cv2.imwrite(str(tmp_path / f"{number}.png"), picture[..., ::-1])
    assert np.array_equal(read(tmp_path, Limits(), ""), pictures)


def test_a_forked_decoder_may_not_take_more_memory(make_clip, tmp_path):
    """The other one does not even load its libraries."""
    sentence = read(make_clip(tmp_path / "clip.mp4"), Limits(memory=40 << 20), "")
    assert "decoding needs more than 40.0 MiB of memory" in str(sentence)


def test_a_forked_decoder_that_is_killed_is_told_and_the_next_one_decodes(make_clip, tmp_path):
    path = make_clip(tmp_path / "clip.mp4", count=60, size=(480, 640))
    stream = open_clip(Clip(path))
    with pytest.raises(MediaError, match="the decoder was killed"), stream:
        for frame in stream:
            if frame.index == 0:
                os.kill(stream._worker._process.pid, signal.SIGKILL)
    assert len(read(path, Limits(), "")) == 60


def test_a_server_that_is_killed_takes_its_decoders_along_and_is_started_again(make_clip, tmp_path):
    path = make_clip(tmp_path / "clip.mp4", count=60, size=(480, 640))
    stream = open_clip(Clip(path))
    with pytest.raises(MediaError, match="the decoder was killed"), stream:
        for frame in stream:
            if frame.index == 0:
                os.kill(own_server()._process.pid, signal.SIGKILL)
    assert len(read(path, Limits(), "")) == 60


def test_a_server_without_room_for_a_process_stays_with_its_decoders(make_clip, tmp_path, monkeypatch):
    """The next decoder starts by itself, or says what is missing; those at work go on."""
    script = tmp_path / "worker.py"
    source = decoder_process.WORKER.read_text()
    assert "os.fork()" in source
    script.write_text(source.replace("pid = os.fork()", "pid = fork_once()").replace("# The server\n", FORK_ONCE))
    monkeypatch.setattr(decoder_process, "WORKER", script)
    path = make_clip(tmp_path / "clip.mp4", count=60, size=(480, 640))
    with open_clip(Clip(path)) as first:
        with open_clip(Clip(path)) as second:
            assert isinstance(first._worker._process, decoder_process.ForkedDecoder)
            assert isinstance(second._worker._process, subprocess.Popen)
            assert sum(1 for _ in second) == 60
        assert sum(1 for _ in first) == 60


def test_a_decoder_holds_its_pipes_and_its_clip(make_clip, tmp_path):
    """Nothing of its server's, nor of decoders beside it."""
    path = make_clip(tmp_path / "clip.mp4", count=60, size=(480, 640))
    with open_clip(Clip(path)), open_clip(Clip(path)) as stream:
        files = Path(f"/proc/{stream._worker._process.pid}/fd")
        names = {int(file.name): str(file.readlink()) for file in files.iterdir()}
    assert sorted(names) == [0, 1, 2, 3] and names[3] == str(path), names


def test_a_server_ends_with_the_process_that_started_it(make_clip, tmp_path):
    path = make_clip(tmp_path / "clip.mp4")
    code = (
        "import os, sys; from pathlib import Path; from revisit.core import Clip; from revisit.media import open_clip, "
        "decoder_process\nwith open_clip(Clip(Path(sys.argv[1]))) as stream: next(iter(stream))\n"
        "(server,) = decoder_process._servers.values(); print(server._process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    until = time.monotonic() + 20
    while _runs(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    """Whether there is such a process that has not ended; one that nobody waited for counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_server_that_was_stopped_goes_on(make_clip, tmp_path, monkeypatch):
    monkeypatch.setattr(decoder_process, "AWAKE", 0.1)
    path = make_clip(tmp_path / "clip.mp4")
    expected = read(path, Limits(), "")
    os.kill(own_server()._process.pid, signal.SIGSTOP)
    assert np.array_equal(read(path, Limits(), ""), expected)
