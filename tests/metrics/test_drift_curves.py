"""Drift curves: speeds that are known come out within a tenth; a long clip costs no more than a short one."""

from __future__ import annotations

import json
import math
from pathlib import Path

import cv2
import numpy as np
import pytest

import revisit
from revisit.core import Score, Unscored, import_registering_modules
from revisit.evidence.views import ViewRelations
from revisit.media import encode_mp4
from revisit.metrics.drift_curves import DRIFT_METRICS, share_left_in_unit_square
from revisit.metrics.view_gate import derive_view_relations
from revisit.observers.patches import viewed_and_next_frame_numbers
from revisit.observers.pictures import VIEWED
from revisit.results.tables import drift_curves
from tests.benchmark_scripts import script
from tests.conftest import PROJECT
from tests.painted_datasets import FOCAL, SIZE, film, wall

import_registering_modules()
FPS, COUNT = 8.0, 80  # ten seconds


def see(frames: np.ndarray, *observers: str) -> list:
    return [revisit.observe(frames, f"lite.{name}", fps=FPS) for name in observers]


def scored(answer: Score | Unscored) -> Score:
    assert isinstance(answer, Score), answer
    return answer


@pytest.fixture(scope="module")
def sliding() -> tuple:
    """A view that slides along a wall: two thirds of it are gone in the end."""
    height, width = SIZE
    speed = 1.35  # pixels a frame
    shifts = [np.float32([[1, 0, -(10 + speed * k)], [0, 1, -10]]) for k in range(COUNT)]
    frames = np.stack([cv2.warpAffine(wall(3), shift, (width, height)) for shift in shifts])
    facts, links, patches = see(frames, "frames", "views", "patches")
    return facts, derive_view_relations.fn(links), patches, speed * FPS / width


def test_place_is_lost_at_the_speed_of_the_camera(sliding: tuple) -> None:
    facts, relations, _, speed = sliding
    slope, half = (scored(measure(facts, relations)) for measure in DRIFT_METRICS["place"])
    assert slope.value == pytest.approx(60 * speed, rel=0.1)
    assert half.value == pytest.approx(0.5 / speed, rel=0.1) and half.facts["reached"]
    curve = dict(zip(slope.facts["gap_seconds"], slope.facts["gap_distance"], strict=True))
    assert curve[4.0] == pytest.approx(4 * speed, rel=0.15) and list(curve) == sorted(curve)


def test_a_camera_that_turns_loses_the_angle_as_a_share_of_its_field_of_view() -> None:
    degrees, fps = 30.0, 4.0
    frames, _ = film(f"yaw:right:{degrees:g}@35", seed=11)
    facts, links = (revisit.observe(frames, f"lite.{name}", fps=fps) for name in ("frames", "views"))
    across = 2 * np.degrees(np.arctan(SIZE[1] / 2 / FOCAL))
    slope = scored(DRIFT_METRICS["place"][0](facts, derive_view_relations.fn(links)))
    assert slope.value == pytest.approx(60 * degrees / (35 / fps) / across, rel=0.1)


def test_common_areas_are_those_of_closed_forms() -> None:
    def about_the_middle(matrix: np.ndarray) -> np.ndarray:
        there = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1.0]])
        return there @ matrix @ np.linalg.inv(there)

    shift = np.array([[1, 0, 0.3], [0, 1, -0.25], [0, 0, 1.0]])
    turn, half = np.eye(3), np.sqrt(0.5)
    turn[:2, :2] = [[half, -half], [half, half]]
    maps = np.stack([shift, about_the_middle(turn), about_the_middle(np.diag([2.0, 2.0, 1.0])), shift + 2])
    assert share_left_in_unit_square(maps) == pytest.approx([0.7 * 0.75, 2 * (np.sqrt(2) - 1), 0.25, 0.0], abs=2e-3)


def test_similarity_falls_too_and_a_picture_at_rest_keeps_everything(sliding: tuple) -> None:
    facts, _, patches, _ = sliding
    slope, half = (scored(measure(facts, patches)) for measure in DRIFT_METRICS["similarity"])
    assert slope.value > 0.5 and half.facts["reached"]
    still = np.repeat(film("yaw:left:1@2")[0][:1], COUNT, axis=0)
    facts, lab, style, patches = see(still, "frames", "lab", "style", "patches")
    for name, evidence in (("look", (lab, style)), ("similarity", (patches,))):
        slope, half = (scored(measure(facts, *evidence)) for measure in DRIFT_METRICS[name])
        assert slope.value == pytest.approx(0, abs=1e-3)
        assert half.value == pytest.approx(facts.time[-1]) and not half.facts["reached"]


@pytest.mark.parametrize("rate", [0.01, 0.04])
def test_a_picture_that_fades_loses_its_look_at_the_known_rate(rate: float) -> None:
    """All levels fall by `rate` a second: so do the logarithms of gradients, contrast and saturation."""
    color = pytest.importorskip("skimage.color")
    fading = np.exp(-rate * np.arange(COUNT) / FPS)[:, None, None, None]
    frames = np.round(film("yaw:left:1@80")[0][:COUNT] * fading).astype(np.uint8)
    facts, lab, style = see(frames, "frames", "lab", "style")
    some = np.arange(0, COUNT, 8)
    lightness = np.array([color.rgb2lab(frames[k]).mean(axis=(0, 1)) for k in some])
    light = np.abs(np.polyfit(some / FPS, lightness, 1)[0]).sum() / 10
    expected = 60 * (light + 5 * rate) / 8  # three of CIELAB, three gradients, contrast, saturation
    assert scored(DRIFT_METRICS["look"][0](facts, lab, style)).value == pytest.approx(expected, rel=0.1)


def test_short_clips_and_places_that_nothing_joins_are_not_asked(sliding: tuple) -> None:
    facts, relations, _, _ = sliding
    short = DRIFT_METRICS["place"][0](facts, relations, least=60.0)
    assert isinstance(short, Unscored) and short.kind == "too_short"
    blind = ViewRelations(
        relations.index, relations.time, relations.seen, np.full_like(relations.lost, np.nan),
        np.full_like(relations.share, np.nan), relations.warp, relations.confidence, 1.0,
    )  # fmt: skip
    unknown = DRIFT_METRICS["place"][0](facts, blind)
    assert isinstance(unknown, Unscored) and unknown.kind == "not_followed"


def test_of_5000_frames_as_many_are_compared_as_of_500() -> None:
    for count in (500, 5000):
        assert len(VIEWED.pick(count, 24.0)) == 36 and len(viewed_and_next_frame_numbers(count, 24.0)) <= 47


def test_a_run_beside_its_truth_has_a_curve_of_both_on_its_page(tmp_path: Path) -> None:
    fading = np.exp(-0.04 * np.arange(33))[:, None, None, None]
    for seed in (5, 6):
        truth = film("yaw:left:12@16,yaw:right:12@16", seed)[0][:33]
        for model, frames in (("truth", truth), ("fades", (truth * fading).astype(np.uint8))):
            encode_mp4(tmp_path / "clips" / model / f"scene{seed}.mp4", frames, 4.0)
    wanted = ["drift_look", "half_life_look"]
    results = revisit.evaluate(
        tmp_path / "clips", reference=tmp_path / "clips/truth", metrics=wanted, out=tmp_path / "run", report=True
    )
    (entry,) = drift_curves(results)
    assert entry["models"]["fades"][-1]["mean"] > 2 * entry["truth"][-1]["mean"]  # at the largest gap
    page = (tmp_path / "run" / "report" / "index.html").read_text(encoding="utf-8")
    assert 'id="drift"' in page and '<g class="curve kt"><title>truth</title><polygon' in page


def test_known_speeds_are_found_in_rendered_worlds_on_which_nothing_was_set() -> None:
    made = script("drift_speed")
    stored = json.loads(made.STORE.read_text())
    assert stored["code"] == made.code_digest(), "run benchmarks/drift_speed.py again"
    percent, worlds = {}, set()
    for name in made.DRIFTS:
        ratios = [row["ratio"] for row in stored["rows"] if row["signal"] == name]
        assert len(ratios) >= 6 and ratios == pytest.approx([1.0] * len(ratios), abs=0.1), name
        percent[name] = math.ceil(100 * max(abs(ratio - 1) for ratio in ratios))
        worlds.add(len(ratios))
    page = (PROJECT / "docs/training.md").read_text(encoding="utf-8")
    look, similarity, place = (f"{percent[name]} % ({name})" for name in ("look", "similarity", "place"))
    assert f"slopes came out within {look}, {similarity} and {place} of the truth" in page
    assert f"`benchmarks/drift_speed.py`, {worlds.pop()} worlds" in page and not worlds


def test_memory_of_a_rollout_of_5000_frames_is_that_of_one_of_500() -> None:
    made = script("rollout_memory")
    stored = json.loads(made.STORE.read_text())
    assert stored["code"] == made.code_digest(), "run benchmarks/rollout_memory.py again"
    for request in made.REQUESTS:
        peak = {row["frames"]: row["megabytes"] for row in stored["rows"] if row["metrics"] == request}
        assert set(peak) == {500, 1500, 5000} and peak[5000] <= 1.1 * peak[500], peak
    held = {row["frames"]: row["megabytes"] for row in stored["rows"] if row["metrics"] == "drift"}
    page = (PROJECT / "docs/training.md").read_text(encoding="utf-8")
    assert f"`revisit eval` held {held[500]} MB for 500 frames and {held[5000]} MB for 5,000" in page
