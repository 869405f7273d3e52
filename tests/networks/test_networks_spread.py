"""What the cards promise: batches and processes move no score by more than the tolerance that is stated there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from revisit.media import encode_mp4
from revisit.networks import numeric_spread
from tests.conftest import Cli

pytest.importorskip("torch", reason="networks run on torch")
pytestmark = pytest.mark.slow

METRICS = ("return_features", "wr_integrity", "lpips")
SETTINGS = {
    "in batches": {"REVISIT_NETWORKS": "host", "REVISIT_BATCH": "64"},
    "by each worker": {"REVISIT_NETWORKS": "workers"},
}


@pytest.fixture
def films(tmp_path: Path) -> Path:
    """Two clips that look aside and back, with references of their own."""
    data = pytest.importorskip("skimage.data", reason="needs scikit-image's pictures")
    folder, lines = tmp_path / "films", []
    folder.mkdir()
    offsets = [*range(0, 96, 16), *range(96, -1, -16)]
    for name, picture in {"woman": data.astronaut(), "rocket": data.rocket()}.items():
        frames = [np.ascontiguousarray(picture[:240, x : x + 320]) for x in offsets]
        encode_mp4(folder / f"{name}-true.mp4", frames, 8)
        encode_mp4(folder / f"{name}.mp4", [(frame * 0.9).astype(np.uint8) for frame in frames], 8, crf=30)
        lines.append({"id": name, "model": "one", "video": f"{name}.mp4", "reference": f"{name}-true.mp4"})
    (folder / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.mark.slow
@pytest.mark.long
def test_batches_and_processes_keep_to_the_tolerance_on_the_card(
    films: Path, small_weights: Path, revisit: Cli, tmp_path: Path
) -> None:
    asked = [word for metric in METRICS for word in ("-m", metric)]
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for name, setting in SETTINGS.items():
        out = tmp_path / name
        env = {"REVISIT_DEVICE": "cpu", "REVISIT_CACHE": str(tmp_path / f"{name} cache"), **setting}
        revisit("eval", films / "manifest.jsonl", "--set", "small", *asked, "--out", out, "--no-report", env=env)
        records = map(json.loads, (out / "records.jsonl").read_text().splitlines())
        scored = [one for one in records if "metric" in one and one["status"] == "scored"]
        scores[name] = {(one["metric"], one["case"]): one["score"] for one in scored}
    first, *others = scores.values()
    made = [key for key in first if not key[1].endswith("@truth")]  # references are clips of their own, too
    assert {metric for metric, _ in made} == set(METRICS) and len(made) == 2 * len(METRICS)
    measured = numeric_spread.measured_spread_by_set()["small"]["metrics"]
    for other in others:
        assert other.keys() == first.keys()
        for (metric, case), score in first.items():
            tolerance = numeric_spread.tolerance_of(measured[metric])
            assert score == pytest.approx(other[metric, case], abs=tolerance), (metric, case)
