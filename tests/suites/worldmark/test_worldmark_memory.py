"""Local, revisit and global memory: the public functions' pairs and steps, closed forms, and known cameras."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from revisit.core import METRICS, Case, Clip, Score, Unscored
from revisit.evidence.motion import ShotChanges
from revisit.geometry.rotations import rotation_from_axis_angle
from revisit.media import save_npz
from revisit.suites.worldmark.evidence import FLOW_SIZE, KEYS, FrameVectors, KeyFlow
from revisit.suites.worldmark.imports import read_geometry_error, read_video_rating
from revisit.suites.worldmark.metrics.memory import (
    find_return_pairs,
    first_frames_after_cuts,
    flow_per_degree,
    mean_half_second_flow,
    samples_at_equal_steps,
)
from revisit.suites.worldmark.metrics.signal import Signal
from tests.suites.worldmark.test_worldmark_control import facts


def seeded(seed: int) -> tuple[str, np.ndarray, np.ndarray, int]:
    """Keys, flow to the side and away, and width: the input of returns.json, which the public functions wrote."""
    rng = np.random.default_rng(seed)
    keys = ("WS", "LR", "AD", "WSW", "LRL", "ADA")[seed % 6]
    n = len(keys)
    count, speed = int(rng.integers(200, 420)), rng.uniform(0.3, 4, n)
    lag = int(rng.integers(0, 40))
    lengths = [count // n + (k == n - 1) * (count % n) for k in range(n)]
    parts = [np.full(length, KEYS[key].sign * v) for length, key, v in zip(lengths, keys, speed, strict=True)]
    own = np.concatenate(parts)
    own = np.r_[np.full(lag, own[0]), own][:count] + rng.normal(0, rng.uniform(0.1, 1.5), count)
    other = rng.normal(0, 0.3, count)
    across, away = (other, own) if keys[0] in "WS" else (own, other)
    return keys, across, away, int(rng.choice([416, 640, 1280, 1920]))


def test_pairs_and_steps_are_those_of_the_public_functions() -> None:
    rows = json.loads((Path(__file__).parent / "returns.json").read_text())
    for row in rows:
        keys, across, away, width = seeded(row["seed"])
        time = np.arange(len(across)) / 16
        signal = Signal(
            tuple(KEYS[key] for key in keys), tuple(keys), time, across, away, float(time[-1]), np.arange(len(time))
        )
        again = find_return_pairs(signal, flow_per_degree(width, None, "upstream"), "upstream")
        assert [list(pair[:2]) for pair in again.pairs] == row["pairs"], row["seed"]
        assert samples_at_equal_steps(signal, mean_half_second_flow(signal)).tolist() == row["steps"]
    assert sum(bool(row["pairs"]) for row in rows) >= 8 and sum(row["failed"] > 0 for row in rows) >= 8


@pytest.mark.parametrize("across", [45.0, 70.0, 100.0])
def test_a_degree_is_what_the_lens_makes_of_it(across: float) -> None:
    """Against a camera that is turned by one degree: where every pixel's ray meets the picture afterwards."""
    width, height = FLOW_SIZE
    focal = 0.5 / np.tan(np.radians(across / 2))
    f = focal * width
    x, y = np.meshgrid(np.arange(0, width, 4) + 2 - width / 2, np.arange(0, height, 4) + 2 - height / 2)
    turned = np.stack([x, 0 * y, np.full_like(x, f)], axis=-1) @ rotation_from_axis_angle((0, 1, 0), 1.0)
    moved = np.abs(f * turned[..., 0] / turned[..., 2] - x).mean()
    assert flow_per_degree(1280, focal, "corrected") == pytest.approx(moved, rel=0.01)
    assert flow_per_degree(640, focal, "upstream") == pytest.approx(640 / 70)


def turning(fps: float, degrees: float, focal: float) -> KeyFlow:
    """Flow of a turn to the left and back, 20 s each."""
    count = int(40 * fps)
    way = flow_per_degree(640, focal, "corrected") * degrees / 20 * 2 / fps
    half = np.where((np.arange(count - 2) + 1) / fps < 20, way, -way)
    return KeyFlow(np.arange(count - 2), half, np.zeros(count - 2), "simulated")


def remembered(count: int, *, forgets: bool) -> FrameVectors:
    """Vectors of a view that turns away and comes back, or goes on to new ones."""
    angle = np.linspace(0, 1.2 if forgets else 0.6, count)
    if not forgets:
        angle = 0.6 - np.abs(angle - 0.3) - 0.3
    return FrameVectors(np.arange(count), np.stack([np.cos(angle), np.sin(angle)], axis=1), "dinov2-base")


def revisit_of(fps: float, degrees: float, *, forgets: bool, rule: str, width: int = 640) -> Score | Unscored:
    focal, count = 0.8, int(40 * fps)
    case = Case("c@m", "worldmark", "m", "c", Clip(Path("c.mp4")), condition="LR", annotations={"focal": focal})
    vectors = remembered(count, forgets=forgets)
    return METRICS["worldmark_revisit"](
        case, facts(count, fps, width), turning(fps, degrees, focal), vectors, rule=rule
    )


@pytest.mark.parametrize("fps", [12, 16, 24, 30])
def test_a_world_that_is_there_again_scores_full_at_every_rate(fps: float) -> None:
    there, lost = (revisit_of(fps, 60, forgets=forgets, rule="corrected") for forgets in (False, True))
    assert isinstance(there, Score) and there.value > 99.9 and there.facts["pairs"] == 10
    assert isinstance(lost, Score) and lost.value < 96
    assert there.facts["degrees_off"] < 1


@pytest.mark.parametrize(("width", "asks"), [(640, 7.5), (1280, 15.0), (1920, 22.5)])
def test_the_gate_of_fifteen_degrees_depends_on_the_width_upstream_alone(width: int, asks: float) -> None:
    """At the upstream's own field of view: what turns a little less is refused, and a little more is scored."""
    lens = {"upstream": 15.0 * width / 1280, "corrected": 15.0}
    assert lens["upstream"] == pytest.approx(asks)
    per_degree = 640 / 70 / flow_per_degree(640, 0.8, "corrected")  # upstream's degree in degrees of the lens
    for rule, gate in lens.items():
        scale = per_degree if rule == "upstream" else 1.0
        below, above = (
            revisit_of(16, gate * scale * share, forgets=False, rule=rule, width=width) for share in (0.9, 1.1)
        )
        assert isinstance(below, Unscored) and "15 degrees" in below.sentence, rule
        assert isinstance(above, Score), rule


def local_of(way: float, rule: str = "corrected", step: float | None = None, cut: int = 0) -> Score | Unscored:
    count = 320
    case = Case("c@m", "worldmark", "m", "c", Clip(Path("c.mp4")), condition="W")
    flow = KeyFlow(np.arange(count - 2), np.zeros(count - 2), np.full(count - 2, way), "simulated")
    vectors = np.tile([1.0, 0.0], (count, 1))
    vectors[160:] = [0.0, 1.0]  # one mutation
    probability = np.zeros(count - 1)
    probability[cut : cut + 1] = 0.9 if cut else 0.0
    shots = ShotChanges(np.arange(1, count), np.arange(1, count) / 16, probability, probability, "transnetv2")
    frames = FrameVectors(np.arange(count), vectors, "dinov2-base")
    return METRICS["worldmark_local"](case, facts(count, 16), flow, frames, shots, rule=rule, step=step)


def test_local_memory_counts_mutations_and_cuts() -> None:
    one = local_of(2.0)
    assert isinstance(one, Score) and one.value == pytest.approx(100 * (1 - 1 / one.facts["pairs"]))
    cut = local_of(2.0, cut=159)
    assert isinstance(cut, Score) and cut.value == 0 and cut.facts["mutations"] == 0, "the cut is counted once"
    frozen = local_of(0.01)
    assert isinstance(frozen, Unscored) and frozen.kind == "at_rest"


def test_upstreams_step_is_that_of_the_folder() -> None:
    unknown = local_of(2.0, "upstream")
    assert (
        isinstance(unknown, Unscored) and unknown.kind == "other_settings" and "revisit worldmark" in unknown.sentence
    )
    near, far = (local_of(2.0, "upstream", step) for step in (8.0, 64.0))
    assert isinstance(near, Score) and isinstance(far, Score)
    assert near.value > far.value, "the same clip, with another model in the folder"
    few = local_of(2.0, "upstream", 200.0)
    assert isinstance(few, Unscored) and few.kind == "at_rest"


def test_a_cut_divides_only_what_lies_on_both_sides_of_it() -> None:
    def cuts(*hot: int) -> list[int]:
        probability = np.isin(np.arange(19), hot).astype(float)
        return first_frames_after_cuts(
            ShotChanges(np.arange(1, 20), np.zeros(19), probability, probability, "n")
        ).tolist()

    assert cuts() == [] and cuts(9) == [10] and cuts(8, 9, 10) == [11] and cuts(4, 12) == [5, 13]
    assert cuts(0, 1) == [] and cuts(17, 18) == []


def test_geometry_that_agrees_has_no_error(tmp_path: Path) -> None:
    """A wall two metres ahead, seen from three places to its side; then with one frame that puts it farther away."""
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, 0, 3] = (0, 0.2, 0.4)
    lens = np.array([[64.0, 0, 64], [0, 64.0, 48], [0, 0, 1]])
    arrays = {
        "extrinsics": poses, "intrinsics": lens, "depth": np.full((3, 96, 128), 2.0),
        "producer": np.array("vggt-omega"), "convention": np.array("c2w_opencv"), "conf": np.ones((3, 96, 128)),
    }  # fmt: skip
    save_npz(tmp_path / "a.npz", arrays)
    good = read_geometry_error(tmp_path / "a.npz", model="m", annotations={})
    assert good.median < 0.02 and good.shared > 0.9
    arrays["depth"] = arrays["depth"] * np.array([1.0, 1.1, 1.2])[:, None, None]
    save_npz(tmp_path / "b.npz", arrays)
    bad = read_geometry_error(tmp_path / "b.npz", model="m", annotations={})
    scores = [METRICS["worldmark_global"](one) for one in (good, bad)]
    assert all(isinstance(one, Score) for one in scores)
    assert bad.median > 0.08 and scores[0].value > 75 > 40 > scores[1].value  # type: ignore[union-attr]


def test_result_files_of_the_public_evaluator_are_read(tmp_path: Path) -> None:
    file = tmp_path / "qalign_shard0of1.json"
    file.write_text(json.dumps({"mine__003_006": {"qalign_quality": 3.0, "qalign_aesthetic": 5.0, "n_frames": 20}}))
    rating = read_video_rating(file, model="mine", annotations={"name": "003_006"})
    scores = [METRICS[f"worldmark_{part}"](rating) for part in ("quality", "aesthetic")]
    assert [one.value for one in scores if isinstance(one, Score)] == [50.0, 100.0]
    file = tmp_path / "omega_c3_1s_shard0of1.json"
    file.write_text(json.dumps({"mine__003_006": {"global_median_e": 0.05, "covis_ratio": 0.4}}))
    score = METRICS["worldmark_global"](read_geometry_error(file, model="mine", annotations={"name": "003_006"}))
    assert isinstance(score, Score) and score.value == pytest.approx(50.0)
    file.write_text(json.dumps({"mine__003_006": {"global_median_e": None, "covis_ratio": None}}))  # nothing seen twice
    score = METRICS["worldmark_global"](read_geometry_error(file, model="mine", annotations={"name": "003_006"}))
    assert isinstance(score, Unscored) and score.reason.kind == "no_overlap"
