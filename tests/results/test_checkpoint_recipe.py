"""The checkpoint recipe of docs/training.md: truth beside the checkpoints, one run each, compared and followed."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from revisit.media import encode_mp4

SCENES = ("hall", "kitchen", "yard")
AWAY = [*range(0, 96, 16), *range(96, -1, -16)]  # columns at which the view begins: out and back
METRICS = ("-m", "psnr,return_consistency,camera_moved,view_return")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three checkpoints: the first stands still in every scene, the second in two, the third comes back in all."""
    root = tmp_path_factory.mktemp("training") / "clips"
    for k, scene in enumerate(SCENES):
        rng = np.random.default_rng(k)
        wall = np.kron(rng.integers(0, 256, (12, 40, 3), dtype=np.uint8), np.ones((8, 8, 1), np.uint8))
        truth = np.stack([wall[:, x : x + 160] for x in AWAY])
        encode_mp4(root / f"gt/{scene}.mp4", truth, 8)
        for step, (moving, noise) in enumerate(((0, 30), (1, 15), (3, 3)), start=1):
            clip = truth if k < moving else np.repeat(truth[:1], len(truth), axis=0)
            noisy = np.clip(clip + rng.normal(0, noise, clip.shape), 0, 255).astype(np.uint8)
            encode_mp4(root / f"step-{step}000/samples/{scene}_seed0.mp4", noisy, 8)
    return root


@pytest.mark.long
def test_truth_beside_the_checkpoints_gives_progress_with_coverage(checkpoints: Path, tmp_path: Path, revisit) -> None:
    for step in (1000, 2000, 3000):
        words = ("--reference", checkpoints / "gt", "--out", f"runs/step-{step}", "--no-report", "--workers", 0)
        done = revisit("eval", checkpoints / f"step-{step}", *words, *METRICS)
        assert f"1 model (step-{step}) × 3 scenes (hall, kitchen and yard), truth from gt/" in done.stderr
    runs = sorted((tmp_path / "runs").iterdir())
    plan = json.loads((runs[0] / "plan.json").read_text())
    assert {(case["model"], case["sample"]) for case in plan["cases"] if not case["truth"]} == {
        ("step-1000", scene) for scene in SCENES
    }
    found = json.loads(revisit("trend", *runs, "-m", "psnr", "--out", "trend.svg", "--json").stdout)
    assert found["points"] == ["1000", "2000", "3000"]
    assert [point["returned"] for point in found["coverage"]] == [0, 1, 3]
    assert found["metrics"][0]["monotone"] == "rises"
    drawn = ElementTree.fromstring((tmp_path / "trend.svg").read_bytes())
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}circle"))) == 6  # coverage, and one metric
    shown = revisit("trend", *runs, "-m", "psnr")
    assert "looks away and comes back on 0 of 3 → 1 of 3 → 3 of 3 clips" in shown.stderr
    compared = revisit("compare", runs[0], runs[-1], "-m", "psnr")
    assert "the camera of step-3000 looked away and came back on 3 clips, that of step-1000 on 0" in compared.stderr
    # All checkpoints in one call, with the truth among them: the same models.
    revisit("eval", checkpoints, "--out", "runs/all", "--no-report", "--workers", 0, "-m", "psnr")
    together = json.loads(revisit("trend", "runs/all", "-m", "psnr", "--json").stdout)
    cells = [[cell["mean"] for cell in one["metrics"][0]["cells"]] for one in (found, together)]
    assert cells[0] == pytest.approx(cells[1])
    # What no clip has at every point is no curve; without any progress there is no figure, and one sentence.
    some = revisit("trend", runs[0], runs[2], "-m", "return_consistency", "--out", "some.svg")
    assert "no clip has a score at every point" in some.stderr and (tmp_path / "some.svg").is_file()  # coverage
    (tmp_path / "again").symlink_to(runs[0])
    twice = (f"{runs[0]}:step-1000", f"{tmp_path / 'again'}:step-1000")
    none = revisit("trend", *twice, "-m", "return_consistency", "--by", "order", "--out", "none.svg", check=2)
    assert "there is no trend: no clip has a score of" in none.stderr and "none.svg was not written" in none.stderr
    assert not (tmp_path / "none.svg").exists()
