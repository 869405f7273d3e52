"""Raters in a real Chromium: pairs by keyboard, closed tabs, swapped sides, marks and boxes that the suites read."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs starlette (pip install 'revisit-bench[annotate]')")

from revisit.core import SUITES, Case, Clip, Target
from revisit.labels.app import RaterPages
from revisit.labels.label import read_label_files
from revisit.labels.label_files import labels_of_project, project_export_files, write_files
from revisit.labels.project import Project, ProjectSettings, make_project
from revisit.labels.store import Store
from revisit.media import encode_mp4
from tests.browsing import chromium, serving, until
from tests.labelling import tiny_run, write_run

ADMIN = "0123456789abcdef0123"
ADDED = """
window.light = (k) => {
  const canvas = document.createElement("canvas"), video = player.videos[k];
  canvas.width = canvas.height = 8;
  canvas.getContext("2d").drawImage(video, 0, 0, 8, 8);
  return canvas.getContext("2d").getImageData(0, 0, 8, 8).data[0];
};
null
"""


def lit_run(folder: Path, models: int, samples: int) -> Path:
    """Clips of one brightness each: the model with the higher number is brighter."""
    cases = []
    for k in range(models):
        for sample in range(samples):
            path = folder / "videos" / f"m{k}" / f"s{sample}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            encode_mp4(path, [np.full((48, 64, 3), 30 + 30 * k + (n % 2), np.uint8) for n in range(15)], 12)
            cases.append(Case(f"s{sample}@m{k}#0", "folder", f"m{k}", f"s{sample}", Clip(path), prompt="a light"))
    return write_run(folder / "run", cases, "folder", {}, {})


def opened(browser: Any, address: str, token: str) -> tuple[Any, Any, list[str]]:
    """A rater's own browser, with what went wrong in it."""
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    tab = context.new_page()
    wrong: list[str] = []
    tab.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("request", lambda request: None if request.url.startswith((address, "data:")) else wrong.append(request.url))
    tab.goto(f"{address}/r/{token}")
    return context, tab, wrong


def ready(tab: Any) -> None:
    made = "window.player && player.videos !== undefined"  # before that, it is the element of that name
    until(tab, f"{made} && player.videos.every((video) => video.readyState >= 2 && !video.seeking)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("models", "samples"), [(3, 2), pytest.param(6, 2, marks=pytest.mark.long)], ids=["six", "thirty"]
)
def test_two_raters_label_pairs_with_the_keyboard(tmp_path, models, samples):
    pairs = models * (models - 1) // 2 * samples
    settings = ProjectSettings(("pairwise",), raters=2, dimensions=("camera", "integrity"))
    made = make_project(tmp_path / "project", [lit_run(tmp_path, models, samples)], settings)
    store = Store(made.default_store)
    tokens = [store.add_rater(name)[1] for name in ("ann", "ben")]
    sides: dict[str, set[str]] = {"ann": set(), "ben": set()}
    with serving(RaterPages(made, store, ADMIN).make_application()) as address, chromium() as browser:
        for name, token in zip(("ann", "ben"), tokens, strict=True):
            _, tab, wrong = opened(browser, address, token)
            tab.keyboard.press("Tab")
            tab.goto(f"{address}/work?task=pairwise")
            for done in range(pairs):
                ready(tab)
                tab.evaluate(ADDED)
                left, right = tab.evaluate("[light(0), light(1)]")
                assert abs(left - right) > 10
                better = "1" if left > right else "2"  # ann prefers light, and so does ben in the first question only
                sides[name].add(better)
                worse = "2" if better == "1" else "1"
                tab.keyboard.press(better)
                tab.keyboard.press(better if name == "ann" else worse)
                if done == 0:  # the players stay in step here, too
                    tab.keyboard.press("Space")
                    until(tab, "player.playing && player.frame > 2")
                    assert tab.evaluate("player.skew()") <= 1
                    tab.keyboard.press("Space")
                    until(tab, "!player.playing && player.videos.every((video) => !video.seeking)")
                    assert tab.evaluate("player.skew()") < 0.05
                page = tab.url
                tab.keyboard.press("Enter")
                until(tab, f"location.href !== {json.dumps(page)}")
            assert "Nothing left" in tab.content()
            assert not wrong
    labels = labels_of_project(made, store)
    assert len(labels) == 2 * 2 * pairs
    assert sides == {"ann": {"1", "2"}, "ben": {"1", "2"}}  # both sides were swapped at times
    for label in labels:
        brighter = "a" if label.model > label.other_model else "b"
        darker = "b" if brighter == "a" else "a"
        assert label.answer == (darker if label.rater == "ben" and label.question == "integrity" else brighter)
        assert label.seconds > 0
    compared = {tuple(sorted((label.model, label.other_model))) for label in labels}
    assert compared == set(combinations([f"m{k}" for k in range(models)], 2))
    assert {label.swapped for label in labels} == {True, False}


@pytest.mark.long
def test_a_closed_tab_loses_nothing_and_raters_see_only_their_own(tmp_path):
    made = make_project(
        tmp_path / "project", [tiny_run(tmp_path, ("x", "y"), ("cup",))], ProjectSettings(("pairwise",), raters=2)
    )
    store = Store(made.default_store)
    tokens = [store.add_rater(name)[1] for name in ("ann", "ben")]
    with serving(RaterPages(made, store, ADMIN).make_application()) as address, chromium() as browser:
        context, tab, _ = opened(browser, address, tokens[0])
        tab.goto(f"{address}/work")
        ready(tab)
        tab.keyboard.press("1")  # both can be judged
        for key in "1324":
            tab.keyboard.press(key)
        tab.keyboard.press("c")
        tab.keyboard.type("the <b>left</b> one, 'surely'")
        tab.close(run_before_unload=True)  # nothing was sent
        tab = context.new_page()
        tab.goto(f"{address}/work")
        ready(tab)
        chosen = tab.evaluate("[...document.querySelectorAll('input:checked')].map((input) => input.value)")
        assert chosen == ["both", "left", "tie", "right", "both_bad"]
        assert tab.input_value("textarea[name=comment]") == "the <b>left</b> one, 'surely'"
        # ben sees an empty form, and nothing of ann's
        _, other, _ = opened(browser, address, tokens[1])
        other.goto(f"{address}/work")
        ready(other)
        assert other.evaluate("document.querySelectorAll('input:checked').length") == 0
        assert "surely" not in other.content()
        other.keyboard.press("3")  # only the right one can be judged: what comes back is not asked
        until(other, "document.querySelectorAll('fieldset[hidden]').length === 3")
        other.keyboard.press("1")
        other.keyboard.press("1")
        other.keyboard.press("Enter")
        until(other, "document.title !== 'Compare two videos'")
        tab.keyboard.press("Enter")  # one question is still open
        until(tab, "document.querySelector('.problem') !== null")
        ready(tab)
        tab.keyboard.press("Backspace")  # back a question, and answer it anew
        tab.keyboard.press("5")
        tab.keyboard.press("3")
        tab.keyboard.press("Enter")
        until(tab, "document.title !== 'Compare two videos'")
        assert "Nothing left" in tab.content()
        tab.click("text=Change the last answer")
        ready(tab)
        assert tab.evaluate("document.querySelectorAll('input:checked').length") == 6
        tab.keyboard.press("Enter")
        until(tab, "document.title !== 'Compare two videos'")
    said = {(label.rater, label.question): label for label in labels_of_project(made, store)}
    assert len(said) == 12
    assert said["ben", "judgeable"].answer in ("a", "b")
    assert {said["ben", name].answer for name in ("reappears", "same_look", "outcome")} == {"cannot_judge"}
    assert (said["ann", "camera"].answer, said["ann", "integrity"].answer) == ("cannot_judge", "tie")
    assert said["ann", "reappears"].comment == "the <b>left</b> one, 'surely'"


@pytest.mark.slow
def test_marks_and_boxes_made_here_are_read_by_the_suites(tmp_path):
    """Drawn with the mouse and marked by key; then read by MemoBench's reader, `import scan` and as labels."""
    from revisit.datasets.clips import read_target_boxes
    from revisit.datasets.folder.read import scan_folder
    from revisit.suites.memobench.metadata import read_marks_sheet

    path = tmp_path / "videos" / "wan" / "Barnyard_001.mp4"
    path.parent.mkdir(parents=True)
    encode_mp4(path, [np.full((60, 100, 3), 8 * n, np.uint8) for n in range(25)], 12)
    case = Case(
        "Barnyard_001@wan#0", "folder", "wan", "Barnyard_001", Clip(path), target=Target("cow", (0.1, 0.1, 0.2, 0.2))
    )
    run = write_run(tmp_path / "run", [case], "folder", {}, {})
    made = make_project(tmp_path / "project", [run], ProjectSettings(("marks", "failure"), raters=1))
    store = Store(made.default_store)
    token = store.add_rater("ann")[1]
    with serving(RaterPages(made, store, ADMIN).make_application()) as address, chromium() as browser:
        _, tab, wrong = opened(browser, address, token)
        tab.goto(f"{address}/work?task=marks")
        ready(tab)
        tab.fill("#target", "brown cow")
        area = tab.evaluate(
            "(() => { const r = player.videos[0].getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()"
        )
        tab.evaluate("scrollTo(0, 0)")
        height, width = area[3], area[3] * 100 / 60  # the picture, without the bars beside it
        left = area[0] + (area[2] - width) / 2
        tab.mouse.move(left + 0.25 * width, area[1] + 0.40 * height)
        tab.mouse.down()
        tab.mouse.move(left + 0.40 * width, area[1] + 0.50 * height)
        tab.mouse.move(left + 0.65 * width, area[1] + 0.85 * height)
        tab.mouse.up()
        tab.evaluate("document.activeElement.blur()")
        for _ in range(9):
            tab.keyboard.press("ArrowRight")
        until(tab, "player.frame === 9 && player.videos.every((video) => !video.seeking)")
        tab.keyboard.press("g")
        tab.keyboard.press("Shift+ArrowRight")
        until(tab, "player.frame === 19 && player.videos.every((video) => !video.seeking)")
        tab.keyboard.press("b")
        until(tab, "document.querySelector('input[value=\"hidden, returned\"]').checked")
        tab.keyboard.press("Enter")
        until(tab, "document.title !== 'Mark the target'")
        tab.goto(f"{address}/work?task=failure")
        ready(tab)
        tab.keyboard.press("End")
        until(tab, "player.frame === 24 && player.videos.every((video) => !video.seeking)")
        tab.keyboard.press("6")
        tab.keyboard.press("g")
        tab.keyboard.press("Enter")
        until(tab, "document.title !== 'Name what goes wrong'")
        assert not wrong
    folder = tmp_path / "labels"
    write_files(project_export_files(made, store, folder), folder)
    labels = read_label_files([folder])
    marks = next(label for label in labels if label.task == "marks")
    assert marks.answer == "hidden, returned" and marks.frames == {"gone": 9, "back": 19}
    assert marks.boxes[0].name == "brown cow"
    assert marks.boxes[0].box == pytest.approx((0.25, 0.40, 0.65, 0.85), abs=0.01)
    assert Path(marks.clip).resolve() == path.resolve()
    failure = next(label for label in labels if label.task == "failure")
    assert (failure.question, failure.answer, failure.frames) == ("vanish", "yes", {"worst": 24})
    sheet = read_marks_sheet(folder / "marks.csv")
    assert [(name.id, found.exits, found.returns) for name, found in sheet.marks.items()] == [("Barnyard_001", 9, 19)]
    targets = read_target_boxes(folder / "targets.json")
    entry = next(iter(scan_folder(tmp_path / "videos", targets=targets)))
    assert entry["target"]["name"] == "brown cow"
    assert entry["target"]["box"] == pytest.approx([0.25, 0.40, 0.65, 0.85], abs=0.01)
    (tmp_path / "videos/manifest.jsonl").write_text(json.dumps(entry) + "\n")
    cases = [one for one in SUITES["folder"].read(tmp_path / "videos") if isinstance(one, Case)]
    assert cases[0].target.box == pytest.approx((0.25, 0.40, 0.65, 0.85), abs=0.01)
    memo = list(
        SUITES["memobench"].read(
            tmp_path / "videos", marks=str(folder / "marks.csv"), targets=str(folder / "targets.json")
        )
    )
    assert any(isinstance(one, Case) and one.target is not None and one.target.name == "brown cow" for one in memo)


def test_a_project_opens_again_as_it_was(tmp_path):
    from revisit.labels.project import open_project

    made = make_project(
        tmp_path / "p",
        [tiny_run(tmp_path, ("x", "y"), ("cup",))],
        ProjectSettings(("pairwise", "trigger")),
        guide="Look.",
    )
    found: Project = open_project(tmp_path / "p")
    assert found == made
    assert (tmp_path / "p/project.json").stat().st_mode & 0o077 == 0  # it holds a key
