"""The report in a real browser, opened from disk: players in step, curves that seek, an address that remembers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from revisit.report.write_html import write_report
from revisit.results.run import Run
from tests.browsing import chromium, until
from tests.run_directories import make_scenes
from tests.web.test_web_player import numbered

MODELS = [*"abcdefg", "<img src=x onerror=alert(1)>\u202e\x1b[31m"]
SETTLED = "scene && scene.player && scene.player.videos.every((v) => v.readyState > 1 && !v.seeking)"
# The largest distance between players while they run, asked as often as the screen is drawn.
WORST = """(milliseconds) => new Promise((resolve) => {
  const end = performance.now() + milliseconds;
  let most = 0, seen = new Set();
  const look = () => {
    if (scene.player.playing) { most = Math.max(most, scene.player.skew()); seen.add(scene.player.frame); }
    if (performance.now() < end) requestAnimationFrame(look); else resolve([most, seen.size]);
  };
  look();
})"""


@contextmanager
def opened(page: Path, **options: Any) -> Iterator[Any]:
    """A tab with the page from disk; at the end nothing went wrong in it, and nothing was asked of a network."""
    problems: list[str] = []
    requests: list[str] = []
    with chromium() as browser:
        tab = browser.new_page(**options)
        tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.on("dialog", lambda dialog: problems.append(dialog.message))
        tab.goto(page.as_uri())
        yield tab
    assert not problems
    assert all(url.startswith(("file:", "data:")) for url in requests), requests


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scenes of eight models and the truth: nine players."""
    folder = tmp_path_factory.mktemp("page")
    numbered(folder / "clip.mp4", 97, 24)
    run = make_scenes(folder, MODELS, ["kitchen", "attic"], video=folder / "clip.mp4", prompt="<b>a room</b>")
    return write_report(Run(run))


@pytest.mark.slow
def test_nine_players_stay_within_a_frame_and_a_curve_seeks(page: Path) -> None:
    with opened(page, viewport={"width": 1280, "height": 800}) as tab:
        tab.click("#list article:first-child h3 a")
        until(tab, SETTLED)
        assert tab.evaluate("scene.player.videos.length") == 9
        assert tab.evaluate("scene.clips[0].truth") is True
        names = tab.evaluate(
            "[...document.querySelectorAll('#scene .rp-cell figcaption')].map((n) => n.firstChild.textContent)"
        )
        assert names == ["truth", *sorted(MODELS)]  # the marked-up one, too, is a text

        def same(frame: int) -> None:
            until(tab, f"scene.player.frame === {frame} && {SETTLED}")
            assert tab.evaluate("scene.player.skew()") < 0.05

        tab.keyboard.press("ArrowRight")
        tab.keyboard.press("ArrowRight")
        same(2)
        tab.evaluate("scene.player.seek(40)")
        same(40)
        for rate in (1, 2, 0.5):
            tab.evaluate(f"scene.player.speed({rate})")
            tab.keyboard.press(" ")
            until(tab, "scene.player.playing")
            apart = []
            for _ in range(6):  # a busy machine may stall one of nine decoders for a moment
                most, moved = tab.evaluate(WORST, 1200)
                apart.append(most if moved > 2 else float("inf"))
                if apart[-1] <= 1:
                    break
                tab.evaluate("scene.player.seek(0)")
                tab.evaluate("scene.player.play()")
            assert min(apart) <= 1, f"{apart} frames apart at {rate}x"
            tab.evaluate("scene.player.pause()")
            same(tab.evaluate("scene.player.frame"))

        curve = tab.locator("#scene .curve").first
        box = curve.bounding_box()
        assert box is not None
        tab.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 20)
        until(tab, "!document.getElementById('tip').hidden")
        tip = tab.locator("#tip").inner_text()
        assert tip.startswith("frame 48") and "0.60" in tip  # the middle of a line from 0.9 to 0.3
        tab.mouse.click(box["x"] + 0.25 * box["width"], box["y"] + 20)
        same(24)
        until(tab, "location.hash.includes('frame=24')")
        assert float(
            tab.evaluate("document.querySelector('.timeline').style.getPropertyValue('--at')")
        ) == pytest.approx(24.5 / 97, abs=1e-6)
        assert tab.locator("#scene .rp-overlay rect").count() > 0  # where the target is
        tab.keyboard.press("b")
        assert tab.locator("#scene .rp-overlay rect").count() == 0

        tab.keyboard.press("3")
        assert tab.locator("#scene .rp-cell.chosen figcaption").inner_text().startswith("a")
        tab.keyboard.press("w")  # the truth over the chosen one
        assert tab.evaluate("[...scene.player.cells].map((c) => getComputedStyle(c).display !== 'none')") == [
            k in (0, 2) for k in range(9)
        ]
        tab.keyboard.press("w")
        tab.reload()
        until(tab, SETTLED)
        same(24)
        assert tab.locator("#scene .rp-cell.chosen figcaption").inner_text().startswith("a")
        tab.keyboard.press("n")
        until(tab, "scene && scene.clips[0].sample === 'attic'")
        tab.keyboard.press("Escape")
        until(tab, "!document.getElementById('page').hidden")
        tab.go_back()
        until(tab, "scene && scene.clips[0].sample === 'attic'")


@pytest.mark.slow
def test_filters_live_in_the_address_and_survive_a_reload(page: Path) -> None:
    with opened(page, viewport={"width": 390, "height": 844}) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390  # nothing reaches out of a phone
        tab.select_option("#model", "c")
        tab.select_option("#order", "return_consistency")
        tab.fill("#search", "attic")
        assert tab.locator("#count").inner_text() == "1 of 16 clips"
        tab.reload()
        assert tab.locator("#count").inner_text() == "1 of 16 clips"
        assert tab.locator("#search").input_value() == "attic" and tab.locator("#model").input_value() == "c"
        tab.click("#list h3 a")
        until(tab, SETTLED)
        assert tab.locator("#scene .rp-cell.chosen figcaption").inner_text().startswith("c")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        assert tab.evaluate("asked().q") == "attic"
        tab.keyboard.press("Escape")
        until(tab, "!document.getElementById('page').hidden")
        assert tab.locator("#count").inner_text() == "1 of 16 clips"
        tab.goto(page.as_uri() + "#scene=nothing&frame=x")
        assert tab.evaluate("document.getElementById('page').hidden") is False


@pytest.mark.long
def test_two_thousand_clips_are_searched_and_opened_at_once(tmp_path: Path) -> None:
    """Search within 100 ms, a scene within 300 ms: of the page's own thread, since others may keep the machine busy."""
    numbered(tmp_path / "clip.mp4", 24, 24)
    names = [f"scene {k:03d}" for k in range(250)]
    run = make_scenes(tmp_path, list("abcdefgh"), names, video=tmp_path / "clip.mp4", frames=24, pictures=False)
    with opened(write_report(Run(run))) as tab:
        assert tab.evaluate("data.clips.length") == 2000
        session = tab.context.new_cdp_session(tab)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})

        def worked() -> float:
            """Milliseconds that the thread of the page has worked so far."""
            told = session.send("Performance.getMetrics")["metrics"]
            return 1000 * float(next(one["value"] for one in told if one["name"] == "TaskDuration"))

        def cost(script: str, given: str) -> float:
            before = worked()
            tab.evaluate(script, given)
            return worked() - before

        search = """(words) => {
          const field = document.getElementById("search");
          field.value = words;
          field.dispatchEvent(new Event("input"));
          document.getElementById("list").getBoundingClientRect();
        }"""
        assert max(cost(search, words) for words in ("17", "scene 2 h", "a", "", "249 b")) < 100
        assert tab.locator("#count").inner_text() == "1 of 2000 clips"
        opening = """async (key) => {
          location.hash = "#scene=" + key;
          while (!scene || scene.key !== key) await new Promise((resolve) => setTimeout(resolve, 1));
          document.getElementById("scene").getBoundingClientRect();
        }"""
        keys = tab.evaluate("[...sceneKeys].slice(0, 4)")
        assert min(cost(opening, key) for key in keys) < 300
