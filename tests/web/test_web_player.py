"""The player in a real browser: many videos in step, the right frames, and nothing from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import Clip
from revisit.media import encode_mp4, open_clip
from revisit.web.media import media_response, playable_file
from revisit.web.server import static_files
from tests.browsing import chromium, serving, until

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>player</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/static/player.css"></head>
<body><div id="player" data-options='OPTIONS'></div><script src="/static/player.js"></script>
<script src="/static/start.js"></script></body></html>"""
START = """
const root = document.getElementById("player");
window.player = RevisitPlayer.create(root, JSON.parse(root.dataset.options));
window.ready = new Promise((resolve) => player.on("ready", () => resolve(true)));
// The largest distance between videos over the next seconds, sampled as often as the screen is drawn.
window.worst = (milliseconds) => new Promise((resolve) => {
  const end = performance.now() + milliseconds;
  let most = 0, samples = 0, moved = new Set();
  const look = () => {
    if (player.playing) { most = Math.max(most, player.skew()); samples += 1; moved.add(player.frame); }
    if (performance.now() < end) requestAnimationFrame(look); else resolve([most, samples, moved.size]);
  };
  look();
});
function pixels(video, width, height) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d");
  context.drawImage(video, 0, 0, width, height);
  return context.getImageData(0, 0, width, height).data;
}
// The numbers that are written into the pictures: eight blocks, white for a bit that is set.
window.numbers = () => player.videos.map((video) => {
  const data = pixels(video, 64, 48);
  const white = (bit) => data[4 * (24 * 64 + bit * 8 + 4)] > 128;
  return [0, 1, 2, 3, 4, 5, 6, 7].reduce((sum, bit) => sum + (white(bit) ? 1 << bit : 0), 0);
});
window.picture = (width, height) => [...pixels(player.videos[0], width, height)];
"""


def numbered(path: Path, frames: int, fps: float, size: tuple[int, int] = (48, 64)) -> None:
    """A clip whose frames say their number: eight blocks, white for a bit that is set."""
    pictures = []
    for number in range(frames):
        rgb = np.full((*size, 3), 20, np.uint8)
        for bit in range(8):
            if number >> bit & 1:
                rgb[4:-4, bit * 8 : bit * 8 + 8] = 235
        pictures.append(rgb)
    encode_mp4(path, pictures, fps)


def page(options: dict[str, Any], files: dict[str, Path]) -> Any:
    pytest.importorskip("starlette", reason="needs starlette (pip install 'revisit-bench[annotate]')")
    from starlette.applications import Starlette
    from starlette.responses import FileResponse, HTMLResponse, Response
    from starlette.routing import Route

    def static(request: Any) -> Any:
        name = request.path_params["name"]
        if name == "start.js":
            return Response(START, media_type="text/javascript")
        return FileResponse(static_files()[name])

    told = json.dumps(options).replace("'", "&#39;")
    return Starlette(
        routes=[
            Route("/", lambda request: HTMLResponse(PAGE.replace("OPTIONS", told))),
            Route("/static/{name}", static),
            Route("/media/{name}", lambda request: media_response(files, request.path_params["name"])),
        ]
    )


@pytest.mark.slow
def test_nine_videos_stay_within_a_frame(tmp_path):
    videos, files = [], {}
    for k in range(9):
        numbered(tmp_path / f"{k}.mp4", 97, 24)
        files[str(k)] = tmp_path / f"{k}.mp4"
        videos.append({"src": f"/media/{k}", "fps": 24, "frames": 97, "title": "<b>video</b> " + str(k)})
    problems: list[str] = []
    requests: list[str] = []
    with serving(page({"videos": videos}, files)) as address, chromium() as browser:
        tab = browser.new_page()
        tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(address)
        tab.evaluate("ready")

        def same(frame: int) -> None:
            assert tab.evaluate("player.frame") == frame
            assert set(tab.evaluate("numbers()")) == {frame}
            assert tab.evaluate("player.skew()") < 0.05

        same(0)
        tab.evaluate("player.seek(40)")
        same(40)
        for key, frame in (
            ("ArrowRight", 41),
            ("ArrowRight", 42),
            ("ArrowLeft", 41),
            ("Shift+ArrowRight", 51),
            ("Home", 0),
        ):
            tab.keyboard.press(key)
            until(tab, f"player.frame === {frame} && player.videos.every((v) => !v.seeking)")
            same(frame)
        for rate in (1, 2, 0.5):
            tab.evaluate(f"player.speed({rate})")
            tab.evaluate("player.play()")
            apart = []
            for _ in range(5):  # a busy machine may stall one of nine decoders for a moment
                most, samples, moved = tab.evaluate("worst(1500)")
                apart.append(most if samples > 5 and moved > 3 else float("inf"))
                if apart[-1] <= 1:
                    break
                tab.evaluate("player.seek(0)")
                tab.evaluate("player.play()")
            assert min(apart) <= 1, f"{apart} frames apart at {rate}x"
            tab.evaluate("player.pause()")
            same(tab.evaluate("player.frame"))
        tab.evaluate("player.speed(1), player.loop([10, 20]), player.seek(15)")
        tab.evaluate("player.play()")
        tab.wait_for_timeout(1500)
        assert 9 <= tab.evaluate("player.frame") <= 21
        tab.evaluate("player.pause()")
        tab.evaluate("player.loop(false), player.seek(90)")
        tab.evaluate("player.play()")
        until(tab, "!player.playing")
        until(tab, "player.videos.every((v) => !v.seeking)")
        same(96)
        assert tab.locator("figcaption").first.inner_text() == "<b>video</b> 0"
    assert not problems
    assert all(url.startswith((address, "data:")) for url in requests)


def test_other_rates_and_lengths_follow_by_time_or_by_share(tmp_path):
    numbered(tmp_path / "long.mp4", 60, 24)
    numbered(tmp_path / "short.mp4", 20, 10)
    files = {name: tmp_path / f"{name}.mp4" for name in ("long", "short")}
    videos = [{"src": "/media/long", "fps": 24, "frames": 60}, {"src": "/media/short", "fps": 10, "frames": 20}]
    with chromium() as browser:
        for align, expected in (("time", (48, 19)), ("share", (48, 16))):
            with serving(page({"videos": videos, "align": align, "keys": None}, files)) as address:
                tab = browser.new_page()
                tab.goto(address)
                tab.evaluate("ready")
                tab.evaluate("player.seek(48)")
                assert tuple(tab.evaluate("numbers()")) == expected
                tab.evaluate("player.wipe(0.25)")
                assert "75%" in tab.evaluate("player.cells[0].style.clipPath")
                tab.evaluate("player.destroy()")
                assert tab.evaluate("document.querySelectorAll('video').length") == 0
                tab.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        ("golden/decode_formats/vp9_420_odd.webm", "golden/decode_formats/ffv1_rgb.mkv"),
        pytest.param(
            (
                "clips/sam2_cups.mp4",
                "clips/wrb_case_a_yaw_rl.mp4",
                "clips/wmark_m6_good.mp4",
                "memobench/videos/Real_007_svc.mp4",
                "golden/decode_formats/h264_444_10bit.mp4",
            ),
            marks=pytest.mark.long,
        ),
    ],
    ids=["few", "more"],
)
def test_the_frame_that_is_shown_is_the_frame_that_is_decoded(shared, tmp_path, names):
    """Real clips, and formats that browsers do not play: what is on screen at frame k is frame k of the clip."""
    import cv2

    def small(rgb: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        return cv2.resize(rgb, size, interpolation=cv2.INTER_AREA).astype(float)

    with chromium() as browser:
        for name in names:
            clip = Clip(shared / name, start=9, count=30) if "Real_007" in name else Clip(shared / name)
            seen = playable_file(clip, tmp_path / "copies")
            video = {"src": "/media/clip", "fps": seen.info.fps, "frames": seen.info.count}
            size = (160, max(2, round(160 * seen.info.height / seen.info.width)))
            with open_clip(clip) as stream:
                decoded = [small(frame.rgb, size) for frame in stream]
            assert len(decoded) == seen.info.count
            with serving(page({"videos": [video]}, {"clip": seen.path})) as address:
                tab = browser.new_page()
                tab.goto(address)
                tab.evaluate("ready")
                for number in sorted({0, 1, seen.info.count // 2, seen.info.count - 2, seen.info.count - 1}):
                    tab.evaluate(f"player.seek({number})")
                    pixels = np.array(tab.evaluate(f"picture({size[0]}, {size[1]})"), float).reshape(
                        size[1], size[0], 4
                    )
                    near = range(max(0, number - 2), min(seen.info.count, number + 3))
                    off = {other: float(np.abs(pixels[:, :, :3] - decoded[other]).mean()) for other in near}
                    assert off[number] < 12, (clip.path.name, number, off)
                    assert off[number] <= min(off.values()) + 0.3, (clip.path.name, number, off)
                tab.close()
