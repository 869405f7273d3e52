"""Direction, purity, latency and stability: the public functions' numbers, and cameras whose behaviour is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from revisit.core import METRICS, Case, Clip, NoScore, Score, Unscored
from revisit.evidence.frames import FrameFacts
from revisit.suites.worldmark.evidence import KeyFlow, KeyParallax, KeySplit
from revisit.suites.worldmark.metrics.control import (
    control_scores,
    sideways_step_shares,
)
from revisit.suites.worldmark.metrics.signal import Signal, make_signal
from revisit.suites.worldmark.observers import fit_parallax_line

RULES = ("upstream", "corrected")


def facts(count: int, fps: float, width: int = 640) -> FrameFacts:
    none = np.zeros(count)
    return FrameFacts(
        np.arange(count), np.arange(count) / fps, np.zeros((count, 16), np.uint8), none, none, width, 432, fps
    )


def signal_of(keys: str, across: np.ndarray, away: np.ndarray, fps: float, rule: str) -> Signal:
    flow = KeyFlow(np.arange(len(across)), across, away, "simulated")
    return make_signal(keys, facts(len(across) + 2, fps), flow, rule)


def test_the_public_functions_numbers_on_seeded_signals(shared: Path) -> None:
    folder = shared / "golden/worldmark_flow"
    arrays = np.load(folder / "signals.npz")
    keys_compared = 0
    for case in json.loads((folder / "cases.json").read_text())["cases"]:
        k, truth = case["case"], case["upstream"]
        signal = signal_of("".join(case["keys"]), arrays[f"Sx{k}"], arrays[f"Srad{k}"], case["fps_of_file"], "upstream")
        lines = {
            j: fit_parallax_line(arrays[f"inv_depth{k}_{j}"], arrays[f"u{k}_{j}"])
            for j in range(3)
            if f"u{k}_{j}" in arrays
        }
        table = np.array(list(lines.values())).reshape(-1, 3)
        numbers = np.array(list(lines), dtype=np.int64)
        near, far, spread = table.T
        parallax = KeyParallax(numbers, near, far, spread, np.zeros(len(lines)), "a network", "a method")
        split = sideways_step_shares.fn(parallax)
        steps = dict(zip(split.segment.tolist(), split.step_share.tolist(), strict=True))
        for (near, far, spread), wanted in zip(table, truth["parallax"].values(), strict=True):
            assert (round(near, 3), round(far, 3)) == (wanted["a"], wanted["b_far"])
            assert round(abs(near) * spread, 3) == wanted["trans_amp"]
        columns = {
            "M1": ("dir_gated", control_scores("direction", signal, steps, "upstream")),
            "M2": ("purity", control_scores("purity", signal, steps, "upstream")),
            "M3": ("score", control_scores("latency", signal, steps, "upstream")),
            "M4": ("score", control_scores("stability", signal, steps, "upstream")),
        }
        for name, (field, scores) in columns.items():
            wanted = [None if row.get("na") else row[field] for row in truth[name]]
            assert [one.score for one in scores] == pytest.approx(wanted, abs=1e-9), (k, name)
            keys_compared += len(scores)
        assert [one.parts["seconds"] for one in columns["M3"][1]] == [row["latency"] for row in truth["M3"]]
    assert keys_compared > 150


def stalling(fps: float, start: float) -> np.ndarray:
    """A steady way that stops for 0.6 s in every four seconds."""
    time = np.arange(int(20 * fps) - 2) / fps
    return np.where((time % 4 >= start) & (time % 4 < start + 0.6), 0.0, 4.0)


@pytest.mark.parametrize("start", [1.0, 2.0])
def test_stability_depends_on_the_frame_rate_upstream_alone(start: float) -> None:
    rates = (12, 16, 24, 30)
    scores = {
        rule: [
            control_scores("stability", signal_of("W", 0 * way, way, fps, rule), {}, rule)[0].score
            for fps in rates
            if (way := stalling(fps, start)) is not None
        ]
        for rule in RULES
    }
    assert scores["upstream"] == pytest.approx([0.44, 0.52, 0.60, 0.65], abs=0.03)
    corrected = [score for score in scores["corrected"] if score is not None]
    assert max(corrected) - min(corrected) < 0.02


@pytest.mark.parametrize("fps", [12, 16, 24, 30, 60])
def test_a_late_answer_takes_its_seconds_at_every_rate(fps: float) -> None:
    time = (np.arange(int(40 * fps) - 2) + 1) / fps  # in the middle of a pair
    away = np.where(time < 22, 3.0, -3.0)  # the switch is at 20
    seconds = {
        rule: control_scores("latency", signal_of("WS", 0 * away, away, fps, rule), {}, rule)[0].parts["seconds"]
        for rule in RULES
    }
    assert seconds["corrected"] == pytest.approx(2.1, abs=0.15)
    assert seconds["upstream"] == pytest.approx(2.1 * fps / 16, abs=0.3), "counted as if there were 16 a second"


def cameras(count: int = 640) -> Mapping[str, tuple[np.ndarray, np.ndarray]]:
    """Flow of a camera that was asked to turn left and back."""
    half, noise = np.r_[np.ones(count // 2), -np.ones(count - count // 2)], np.random.default_rng(0)
    still = noise.normal(0, 0.02, (2, count))
    return {
        "perfect": (5 * half + still[0], still[1]),
        "frozen": (still[0], still[1]),
        "opposite": (-5 * half + still[0], still[1]),
        "never returns": (np.full(count, 5.0), still[1]),
    }


def scores_of(name: str, metric: str, rule: str) -> float | None:
    across, away = cameras()[name]
    case = Case("c@m", "worldmark", "m", "c", Clip(Path("c.mp4")), condition="LR")
    split = KeySplit(np.array([0, 1]), np.array([0.05, 0.05]), "a network")
    flow = KeyFlow(np.arange(len(across)), across, away, "simulated")
    answer = METRICS[metric](case, facts(len(across) + 2, 16), flow, split, rule=rule)
    return answer.value if isinstance(answer, Score) else None


def test_a_frozen_camera_gets_no_credit_when_corrected() -> None:
    direction_of = {name: scores_of(name, "worldmark_direction_rotation", "corrected") for name in cameras()}
    assert direction_of["perfect"] == pytest.approx(95, abs=0.5) and direction_of["frozen"] == 0
    assert direction_of["opposite"] == pytest.approx(-95, abs=0.5)
    assert direction_of["never returns"] == pytest.approx(0, abs=1)
    for metric in ("worldmark_stability_rotation", "worldmark_latency_rotation"):
        assert scores_of("perfect", metric, "corrected") == pytest.approx(99, abs=1.5)
        assert scores_of("frozen", metric, "corrected") == 0 == scores_of("opposite", metric, "corrected")
    assert scores_of("frozen", "worldmark_purity_rotation", "corrected") is None
    upstream = scores_of("frozen", "worldmark_purity_rotation", "upstream")
    assert upstream is not None and upstream > 35, "upstream gives a camera at rest about half of the purity"


def test_without_depth_a_turn_is_not_told_from_a_step() -> None:
    case = Case("c@m", "worldmark", "m", "c", Clip(Path("c.mp4")), condition="WR")
    flow = KeyFlow(np.arange(638), np.full(638, 2.0), np.full(638, 2.0), "simulated")
    nothing = KeySplit(np.zeros(0, int), np.zeros(0), "")
    turn = METRICS["worldmark_direction_rotation"](case, facts(640, 16), flow, nothing)
    step = METRICS["worldmark_direction_translation"](case, facts(640, 16), flow, nothing)
    assert isinstance(turn, Unscored) and turn.kind == "not_in_set" and "depth" in turn.sentence
    assert isinstance(step, Score) and step.value == pytest.approx(100)


@pytest.mark.parametrize("keys", ["", "XY", "mem_test"])
def test_a_clip_without_keys_has_a_reason(keys: str) -> None:
    with pytest.raises(NoScore) as error:
        make_signal(keys, facts(64, 16), KeyFlow(np.arange(62), np.ones(62), np.ones(62), "m"), "corrected")
    assert error.value.unscored.kind == "no_camera"
