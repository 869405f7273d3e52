"""A set whose networks cannot run here says so before anything is decoded; captions name what really observed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import moving_frames

METRICS = "lpips,psnr,flicker,scene_cuts,shot_changes"
BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(name)
        return None

sys.meta_path.insert(0, Blocker())
import importlib.util
_find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {blocked!r} else _find(name, package)
"""


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    from revisit.media import encode_mp4

    (tmp_path / "videos/m").mkdir(parents=True)
    encode_mp4(tmp_path / "videos/m/a.mp4", moving_frames(seed=1), fps=8)
    encode_mp4(tmp_path / "videos/truth.mp4", moving_frames(seed=2), fps=8)
    line = {"id": "a", "model": "m", "video": "m/a.mp4", "reference": "truth.mp4"}
    (tmp_path / "videos/manifest.jsonl").write_text(json.dumps(line) + "\n")
    return tmp_path / "videos"


def without(tmp_path: Path, *libraries: str) -> dict[str, str]:
    """An environment in which these libraries cannot be imported."""
    folder = tmp_path / "blocked"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(BLOCKER.format(blocked=set(libraries)))
    before = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(folder), *([before] if before else [])])
    return {"PYTHONPATH": path, "REVISIT_WEIGHTS": str(tmp_path / "no-weights")}


def weights_of(folder: Path, *ids: str, source: Path) -> Path:
    """A folder that has only these weights."""
    for id in ids:
        shutil.copytree(source / id, folder / id)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["small", "paper"])
def test_without_torch_nothing_is_decoded_and_the_command_is_told(
    videos: Path, tmp_path: Path, revisit: Any, name: str
) -> None:
    done = revisit(
        "eval", videos, "--set", name, "-m", METRICS, "--workers", 0, "--no-report", "--quiet", "--out", "run",
        check=None, env=without(tmp_path, "torch"),
    )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert "torch not installed" in line and "revisit-bench[networks]" in line and "revisit weights pull" in line
    assert not (tmp_path / "run/records.jsonl").exists()


@pytest.mark.long
def test_the_command_that_is_told_works_as_printed(videos: Path, tmp_path: Path, revisit: Any) -> None:
    """The first half is for the environment that runs this, and finds the package and its extra there."""
    done = revisit("eval", videos, "--set", "small", "-m", METRICS, check=3, env=without(tmp_path, "torch"))
    told = done.stderr.strip().rpartition("): ")[2]
    install, pull = told.split(" && ")
    words = shlex.split(install)
    assert sys.executable in words and words[-1] == "revisit-bench[networks]"
    assert shlex.split(pull)[:3] == ["revisit", "weights", "pull"]
    revisit(*shlex.split(pull)[1:], "--dry-run")  # every id is one that can be fetched
    dry = subprocess.run([*words, "--dry-run"], capture_output=True, text=True, check=False, timeout=300)
    if dry.returncode and "revisit-bench" not in dry.stderr:
        pytest.skip("no package registry")
    assert dry.returncode == 0, dry.stderr


@pytest.mark.slow
def test_torch_without_any_weights_is_told_as_well(videos: Path, revisit: Any) -> None:
    pytest.importorskip("torch")
    done = revisit("eval", videos, "--set", "small", "-m", METRICS, "--workers", 0, check=3)
    assert "no weights of transnetv2 and lpips_alex" in done.stderr
    assert "revisit weights pull transnetv2 lpips_alex" in done.stderr and "pip install" not in done.stderr


@pytest.mark.slow
def test_with_some_of_the_weights_the_others_are_named(
    videos: Path, tmp_path: Path, revisit: Any, pulled_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVISIT_WEIGHTS", str(weights_of(tmp_path / "some", "lpips_alex", source=pulled_weights)))
    done = revisit("eval", videos, "--set", "small", "-m", METRICS, "--workers", 0, "--quiet", "--out", "run")
    first = done.stderr.splitlines()[0]
    assert "1 of the 2 observers that the set small adds to lite cannot run here" in first
    assert "revisit weights pull transnetv2" in first
    said = "small without small.cuts"
    assert json.loads((tmp_path / "run/summary.json").read_text())["observed_by"] == said
    assert f"observers: {said}" in (tmp_path / "run/report/index.html").read_text(encoding="utf-8")
    assert f"observers {said}" in revisit("leaderboard", "run").stdout
    assert f"observers {said}" in revisit("plan", videos, "--set", "small", "-m", METRICS).stderr


@pytest.mark.slow
def test_what_asks_nothing_of_a_set_is_captioned_as_lite(videos: Path, tmp_path: Path, revisit: Any) -> None:
    done = revisit("eval", videos, "--set", "paper", "-m", "psnr,flicker", "--workers", 0, "--out", "run")
    assert "cannot run here" not in done.stderr
    assert json.loads((tmp_path / "run/summary.json").read_text())["observed_by"] == "lite"
    assert "observers lite" in revisit("leaderboard", "run").stdout
