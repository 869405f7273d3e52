"""Search, wipe, leaderboard, list of runs and two runs beside each other, in a real browser; one is started for all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from revisit.cli.main import app
from revisit.report.live_server import make_live_application
from revisit.report.write_html import write_report
from revisit.results.run import Run
from tests.browsing import chromium, serving, until
from tests.run_directories import make_scenes
from tests.web.test_web_player import numbered

pytestmark = pytest.mark.slow
MODELS = ["<b>bold</b>", "a model with a name that is rather long and goes on", "zeta"]
SCENES = ["ZenGarden_001", "frozen lake", "citizen"]
CLIPPED = """[...document.querySelectorAll("th, td")]
  .filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent)"""
LISTED = """[...document.querySelectorAll("#runs tbody tr")]
  .filter((row) => !row.hidden).map((row) => row.cells[0].dataset.value)"""
LIGHT = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with its report: three models on three scenes."""
    folder = tmp_path_factory.mktemp("pages")
    numbered(folder / "clip.mp4", 24, 24)
    made = make_scenes(folder, MODELS, SCENES, video=folder / "clip.mp4", frames=24, prompt="a frozen puddle")
    write_report(Run(made))
    return made


@contextmanager
def tab_of(browser: Any, address: str, width: int = 1280, **options: Any) -> Iterator[Any]:
    """A tab; at the end nothing went wrong in it, and the page is not wider than the screen."""
    problems: list[str] = []
    tab = browser.new_page(viewport={"width": width, "height": 844}, **options)
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.goto(address)
    yield tab
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.close()
    assert not problems


def test_the_search_finds_words_by_their_beginnings(browser: Any, run: Path) -> None:
    with tab_of(browser, (run / "report/index.html").as_uri()) as tab:

        def found(words: str) -> set[str]:
            tab.fill("#search", words)
            return set(tab.evaluate("shown.map((clip) => clip.sample)"))

        assert found("Zen") == {"ZenGarden_001"}  # neither in frozen nor in citizen
        assert found("garden") == found("001") == found("zengarden") == found("_001") == {"ZenGarden_001"}
        assert found("froz") == set(SCENES)  # the prompt of all
        assert found("lake fro") == {"frozen lake"} and found("itizen") == set()
        assert found("zet zen") == {"ZenGarden_001"} and tab.evaluate("shown.length") == 1
        assert "begin with what you type" in tab.inner_text("#searched")


@pytest.mark.parametrize("width", [1280, 390])
def test_names_in_a_wipe_stand_apart(browser: Any, run: Path, width: int) -> None:
    with tab_of(browser, (run / "report/index.html").as_uri(), width) as tab:
        tab.click("#list article:nth-child(2) h3 a")
        until(tab, "scene && scene.player && scene.player.videos.every((v) => v.readyState > 1)")
        assert not tab.locator(".rp-names").is_visible()
        tab.keyboard.press("w")
        assert tab.locator("#scene .rp-cell figcaption:visible").count() == 0
        left, right = (tab.locator(".rp-names span").nth(k) for k in (0, 1))
        assert left.inner_text() == "left: truth" and right.inner_text().startswith("right: ")
        boxes = [one.bounding_box() for one in (left, right)]
        assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
        assert boxes[1]["x"] + boxes[1]["width"] <= width
        wiper, picture = (tab.locator(f"#scene {one}").bounding_box() for one in (".rp-wiper", ".rp-grid"))
        assert abs(wiper["width"] - picture["width"]) < 4  # the knob stands below the cut
        tab.keyboard.press("w")
        assert (
            not tab.locator(".rp-names").is_visible() and tab.locator("#scene .rp-cell figcaption:visible").count() > 1
        )


@pytest.fixture(scope="module")
def leaderboard(run: Path) -> Path:
    page = run.parent / "board.html"
    done = CliRunner().invoke(app, ["leaderboard", str(run), "--format", "html", "--out", str(page)])
    assert done.exit_code == 0, done.output
    return page


def test_a_leaderboard_sorts_and_leads_to_the_clips(browser: Any, leaderboard: Path) -> None:
    with tab_of(browser, leaderboard.as_uri()) as tab:
        assert tab.title() == "Leaderboard: folder · Revisit"
        names = "[...document.querySelectorAll('tbody th')].map((cell) => cell.dataset.value)"
        assert tab.evaluate(names) == sorted(MODELS, key=str.lower)
        score = tab.get_by_role("button", name="Same view after return")
        score.click()
        assert tab.evaluate(names) == MODELS  # the score of model k is 0.9 - 0.1 k
        assert tab.locator("th[aria-sort=descending]").count() == 1
        score.focus()
        tab.keyboard.press("Enter")
        assert tab.evaluate(names) == MODELS[::-1]
        tab.get_by_role("button", name="Model").click()
        assert tab.evaluate(names) == sorted(MODELS, key=str.lower)
        tab.locator("tbody tr").filter(has_text="zeta").locator("th a").click()
        until(tab, "typeof data !== 'undefined' && location.hash.includes('model=zeta')")
        assert tab.locator("#count").inner_text() == "3 of 9 clips" and tab.locator("#model").input_value() == "zeta"
        tab.go_back()
        tab.locator("tbody tr").filter(has_text="bold").locator("td a", has_text="0.90").click()
        until(tab, "typeof data !== 'undefined' && location.hash.includes('order=return_consistency')")
        assert tab.locator("#model").input_value() == MODELS[0]


def test_a_leaderboard_fits_a_phone_in_the_dark(browser: Any, leaderboard: Path) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        with tab_of(browser, leaderboard.as_uri(), 390, color_scheme=scheme) as tab:
            grounds.append(tab.evaluate(LIGHT))
            assert tab.evaluate(CLIPPED) == []
            assert tab.evaluate("document.querySelector('.wide').scrollLeft") == 0
    assert grounds[0] != grounds[1] and grounds[0].startswith("rgb(25")


def test_runs_are_listed_filtered_and_compared(browser: Any, run: Path, tmp_path: Path) -> None:
    other = make_scenes(tmp_path / "later", [MODELS[2], "only here"], SCENES, pictures=False)
    facts = json.loads((other / "run.json").read_text())
    facts["invocations"][0]["started"] = "2026-03-04T05:06:07+00:00"
    (other / "run.json").write_text(json.dumps(facts))
    broken = make_scenes(tmp_path / "broken", ["x"], ["one"], pictures=False, finished=False)
    with (
        serving(make_live_application([run, other, broken], tmp_path / "copies")) as address,
        tab_of(browser, address) as tab,
    ):
        first = tab.evaluate(LISTED)
        assert len(first) == 3 and first[0] == "later/run" and "2026-03-04 05:06" in tab.inner_text("#runs")
        assert "<b>bold</b>" in tab.inner_text("#runs") and "not finished" in tab.inner_text("#runs")
        tab.fill("#filter", "only")
        assert tab.evaluate(LISTED) == ["later/run"] and tab.inner_text("#count") == "1 of 3 runs"
        tab.fill("#filter", "")
        tab.get_by_role("button", name="Run", exact=True).click()
        assert tab.evaluate(LISTED) == sorted(first)
        compare = tab.get_by_role("button", name="Compare the two ticked runs")
        assert compare.is_disabled()
        pages = next(name for name in first if name.startswith("pages"))
        for name in (pages, "later/run"):
            tab.get_by_label(f"Compare {name}").check()
        assert compare.is_enabled() and tab.get_by_label("Compare broken/run").is_disabled()
        compare.click()
        until(tab, "location.pathname === '/diff'")
        text = tab.inner_text("main")
        assert "only here" in text and "zeta" in text  # what differs, and the model that both have
        assert "+0.20" in text or "−0.20" in text  # zeta is the third of one run and the first of the other
        second, first_run = tab.inner_text("h1").split(" against ")
        tab.get_by_text("the other way round").click()
        until(tab, f"document.querySelector('h1').textContent === '{first_run} against {second}'")
    with (
        serving(make_live_application([run, other], tmp_path / "copies")) as address,
        tab_of(browser, address, 390, color_scheme="dark") as tab,
    ):
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        assert tab.evaluate(LIGHT).startswith("rgb(2")
