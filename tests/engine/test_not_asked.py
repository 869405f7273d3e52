"""What nobody asked is never told as "0 posed the test", and what cannot be read never as "no failure found"."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from revisit.cli.main import app
from revisit.results.funnel import count_testable_and_all

SOURCES = {
    "folder": ("folder/manifest.jsonl", "motion_smoothness", ()),
    "memobench": ("memobench", "motion_smoothness", ()),
    "wrbench": ("wrbench", "wr_camera_precision", ()),
    "mind": ("mind/predictions", "mind_action_rotation", ("--option", "gt={}/mind/MIND-Data")),
    "mbench-t": ("mbench-t", "mb_rendering_lighting", ()),
}


def invoke(*arguments: object):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A layout -> the folder with its rendered clips, made when it is first asked for."""
    root = tmp_path_factory.mktemp("worlds")

    @cache
    def rendered(layout: str) -> Path:
        flags = (
            "--seeds",
            1,
            "--size",
            "64x112",
            "--frames",
            33,
            "--failures",
            "perfect,frozen_camera",
            "--workers",
            0,
        )
        invoke("world", "render", "--suite", layout, "--out", root / layout, *flags)
        return root / layout

    return rendered


LAYOUTS = [
    "folder",
    *(pytest.param(name, marks=pytest.mark.long) for name in ("memobench", "wrbench", "mind", "mbench-t")),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_subset_of_metrics_says_nothing_of_tests_nobody_asked_for(
    layout: str, worlds: Callable[[str], Path], tmp_path: Path
) -> None:
    source, metric, more = SOURCES[layout]
    root = worlds(layout)
    options = [text.format(root) for text in more]
    suite = layout.removesuffix("-t")
    done = invoke(
        "eval", root / source, "--suite", suite, "-m", metric, *options, "--workers", 0, "--out", tmp_path / "r"
    )
    assert "testable clips" not in done.output
    summary = json.loads((tmp_path / "r/summary.json").read_text())
    scores = [entry["scores"][metric]["n"] for entry in summary["models"].values()]
    assert sum(scores) > 0, "something was scored"
    assert all(count_testable_and_all(entry["funnel"]) is None for entry in summary["models"].values())
    boards = json.loads(invoke("leaderboard", tmp_path / "r", "--json").stdout)
    assert all(column["key"] != "posed" for board in boards for column in board["columns"])
    page = (tmp_path / "r/report/index.html").read_text()
    assert "Memory could be scored in 0" not in page and "the camera moved" not in page


def test_a_memory_metric_is_told_with_who_posed_the_test(worlds: Callable[[str], Path], tmp_path: Path) -> None:
    flags = ("-m", "return_consistency", "--workers", 0, "--no-report", "--all", "--out", tmp_path / "r")
    done = invoke("eval", worlds("folder") / "folder/manifest.jsonl", *flags)
    assert "testable clips" in done.output
    models = json.loads((tmp_path / "r/summary.json").read_text())["models"]
    assert {model: count_testable_and_all(entry["funnel"]) for model, entry in models.items()} == {
        "frozen_camera": (0, 1), "perfect": (1, 1),
    }  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("kind", ["truncated", "empty", "text"])
def test_what_cannot_be_read_is_never_without_failure(worlds: Callable[[str], Path], tmp_path: Path, kind: str) -> None:
    """Also where other metrics lack a network, so that not every record of the clip is a failed one."""
    root = tmp_path / "folder"
    shutil.copytree(worlds("folder") / "folder", root)
    (clip,) = (root / "perfect").glob("*.mp4")
    data = clip.read_bytes()
    clip.write_bytes({"truncated": data[: len(data) // 2], "empty": b"", "text": b"<html>not found</html>"}[kind])
    done = invoke("eval", root / "manifest.jsonl", "--workers", 0, "--out", tmp_path / "r")
    assert "diagnosis of perfect (1 clip): 1 could not be read" in done.output and "no failure found" not in done.output
    found = json.loads((tmp_path / "r/diagnosis.json").read_text())
    (words,) = (entry["words"] for case, entry in found["cases"].items() if "@perfect" in case)
    assert words.startswith("could not be read: ")
    summary = json.loads((tmp_path / "r/summary.json").read_text())
    stages = {stage["stage"]: stage["n"] for stage in summary["models"]["perfect"]["funnel"]}
    assert stages["all clips"] == 1 and stages["readable"] == 0
    assert "no failure found" not in (tmp_path / "r/report/index.html").read_text()
