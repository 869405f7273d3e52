"""A clip laid over its reference: the camera's way, the look, and what became of the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from revisit.core import DERIVED, METRICS, Case, Clip, InvalidEvidence, Score, Target, Unscored, evidence_id
from revisit.evidence.frames import CasePhases
from revisit.evidence.reference import Departures
from revisit.metrics.appearance_difference import cut_away, unsteady_light
from revisit.metrics.overlay import (
    connected_parts,
    dilate_mask,
    fit_channel_gain_and_offset,
    rgb_to_lab,
    warp_picture,
    warps_to_motion_vectors,
)
from revisit.metrics.target_difference import shifted_squared_differences
from revisit.observers import reference_alignment
from revisit.observers.cuts import cut_signal
from revisit.observers.frames import frame_facts
from revisit.observers.reference_alignment import departures_from_reference
from tests.looking import as_frames, look, wall, window

WIDE = wall(900, seed=3)
OTHER = wall(900, seed=8)
WAY = [0, 0, *range(25, 325, 25), 300, *range(275, -25, -25), 0, 0]  # left edge of the view: out and back
N = len(WAY)
LEAVES, RETURNS = 7, N - 7  # the target is out of view between these frames
TURN = N // 2
BOX, PLACE = (52, 64), (70, 60)  # size and first place of the target: x, y
PHASES = CasePhases(LEAVES, RETURNS, "given")
CASE = Case(
    "c", "folder", "m", "s", Clip(Path("c.mp4")), target=Target("box", (70 / 320, 60 / 180, 122 / 320, 124 / 180))
)
Picture = np.ndarray


def thing(seed: int = 1, size: tuple[int, int] = BOX) -> Picture:
    """A box with a pattern of its own in strong colours."""
    rng = np.random.default_rng(seed)
    coarse = rng.uniform(0, 1, (5, 4, 3)) * (0.4, 0.3, 0.3) + (0.6, 0.1, 0.0)
    return np.asarray(
        cv2.resize(coarse.astype(np.float32), size, interpolation=cv2.INTER_CUBIC).clip(0, 1) * 255, np.uint8
    )


def put(place: tuple[int, int], sprite: Picture | None = None, on: Picture = WIDE, share: float = 1.0) -> Picture:
    """The wall with a thing on it, of which a share is there."""
    sprite = thing() if sprite is None else sprite
    out = on.copy()
    x, y = place
    part = out[y : y + sprite.shape[0], x : x + sprite.shape[1]]
    part[:] = np.round(share * sprite + (1 - share) * part.astype(float)).astype(np.uint8)
    return out


def shot(walls: Sequence[Picture], way: Sequence[int] = WAY) -> list[Picture]:
    return [window(picture, x) for picture, x in zip(walls, way, strict=True)]


def story(before: Picture, after: Picture) -> list[Picture]:
    """The wall as it is in each frame: it changes while the target is out of view."""
    return [before if k < TURN else after for k in range(N)]


HOME = put(PLACE)
AWAY_PLACE = (190, 62)
MOVED = put(AWAY_PLACE)
STILL_TRUTH = shot(story(HOME, HOME))
MOVED_TRUTH = shot(story(HOME, MOVED))
rng = np.random.default_rng(0)


def observed(clip: list[Picture], truth: list[Picture]) -> Departures:
    made: Departures = look(departures_from_reference, as_frames(clip, 8), 8, reference=as_frames(truth, 8))
    return made


def test_a_reference_is_joined_once_for_all_clips_that_are_compared_with_it(monkeypatch):
    joins = []

    def counted(maker, a, b):
        joins.append((a, b))
        return register(maker, a, b)

    register = reference_alignment.register_pictures
    monkeypatch.setattr(reference_alignment, "register_pictures", counted)
    monkeypatch.setattr(reference_alignment, "_reference_registrations", {})
    clip, truth = STILL_TRUTH[:6], MOVED_TRUTH[-6:]
    alone = observed(clip, truth)
    first = len(joins)
    again = observed(clip, truth)
    assert first == 6 + 5 + len(reference_alignment._reference_registrations)
    assert len(joins) - first == 6 + 5  # with the reference, and from frame to frame of the clip
    assert all(np.array_equal(getattr(alone, field.name), getattr(again, field.name)) for field in fields(alone))
    other = observed(clip, truth[::-1])  # another order of the same frames is another reference
    monkeypatch.setattr(reference_alignment, "_reference_registrations", {})
    fresh = observed(clip, truth[::-1])
    assert all(np.array_equal(getattr(other, field.name), getattr(fresh, field.name)) for field in fields(other))


def answer(id: str, seen: Departures, case: Case = CASE) -> Score | Unscored:
    """A metric's answer, its derivations worked out on the way."""
    known: dict[str, object] = {"departures": seen, "case_phases": PHASES}

    def get(kind: type) -> object:
        if kind is Case:
            return case
        name = evidence_id(kind)
        if name not in known:
            parts = [get(need) for need in DERIVED[name].needs]
            known[name] = next((p for p in parts if isinstance(p, Unscored)), None) or DERIVED[name].fn(*parts)
        return known[name]

    parts = [get(need) for need in METRICS[id].needs]
    return next((p for p in parts if isinstance(p, Unscored)), None) or METRICS[id](*parts)


def value(id: str, seen: Departures) -> float:
    found = answer(id, seen)
    assert isinstance(found, Score), found
    return found.value


@pytest.fixture(scope="module")
def perfect() -> Departures:
    noisy = [np.clip(p + rng.normal(0, 1, p.shape), 0, 255).astype(np.uint8) for p in MOVED_TRUTH]
    return observed(noisy, MOVED_TRUTH)


BOUNDS = {
    "camera_reach": (1, 0.02), "camera_standstill": (0, 0), "camera_scale": (1, 0.02), "return_shortfall": (0, 0.01),
    "return_delay": (0, 0.02), "camera_strays": (0, 0.004), "light_departure": (0, 0.3), "place_departure": (0, 0.01),
    "style_departure": (0, 0.03), "sharpness_departure": (0, 0.03), "structure_decay": (0, 0.02),
    "target_faded": (0, 0.03), "target_elsewhere": (0, 0), "target_doubled": (0, 0.05), "target_colour": (0, 2),
    "target_pattern": (0, 0.02), "target_outline": (0, 2), "first_state": (0, 0.03),
}  # fmt: skip


@pytest.mark.parametrize("id", BOUNDS)
def test_the_truth_with_noise_scores_its_bound(id: str, perfect: Departures):
    bound, tolerance = BOUNDS[id]
    assert value(id, perfect) == pytest.approx(bound, abs=tolerance)


def test_a_camera_that_never_leaves():
    seen = observed(shot(story(HOME, HOME), [0] * N), STILL_TRUTH)
    assert value("camera_reach", seen) < 0.05
    assert value("camera_standstill", seen) > 0.95
    assert isinstance(answer("camera_scale", seen), Unscored)
    assert isinstance(answer("return_delay", seen), Unscored)


@pytest.mark.slow
def test_a_timid_a_late_and_a_partial_camera():
    timid = observed(shot([HOME] * N, [x // 2 for x in WAY]), STILL_TRUTH)
    assert value("camera_reach", timid) == pytest.approx(0.5, abs=0.05)
    assert value("camera_scale", timid) == pytest.approx(0.5, abs=0.05)
    assert value("camera_standstill", timid) == 0
    wait = 6
    late_way = [*WAY[:TURN], *[300] * wait, *np.linspace(300, 0, N - TURN - wait).astype(int).tolist()]
    late = observed(shot([HOME] * N, late_way), STILL_TRUTH)
    assert value("camera_reach", late) == pytest.approx(1, abs=0.03)
    assert value("return_delay", late) > 0.15
    assert value("return_shortfall", late) < 0.1  # it arrives with the last frame
    partial = observed(shot([HOME] * N, [*WAY[:TURN], *[max(x, 150) for x in WAY[TURN:]]]), STILL_TRUTH)
    assert value("return_shortfall", partial) == pytest.approx(0.5, abs=0.07)


def test_a_camera_that_strays():
    tilted = []
    for k, picture in enumerate(STILL_TRUTH):
        turn = cv2.getRotationMatrix2D((160, 90), 4 * k / N, 1.0)
        tilted.append(cv2.warpAffine(picture, turn, (320, 180), borderMode=cv2.BORDER_REFLECT))
    found = answer("camera_strays", observed(tilted, STILL_TRUTH))
    assert isinstance(found, Score)
    assert found.value > 0.025
    assert abs(found.facts["roll_degrees"]) == pytest.approx(4 * (N - 2.5) / N, abs=0.5)


def returned(change: Callable[[Picture], Picture]) -> Departures:
    """The still scene, with every frame changed after the turn."""
    return observed([p if k < TURN else change(p) for k, p in enumerate(STILL_TRUTH)], STILL_TRUTH)


@pytest.mark.slow
@pytest.mark.long
def test_light_style_blur_and_place():
    dark = returned(lambda p: (p * 0.6).astype(np.uint8))
    assert value("light_departure", dark) > 12
    assert value("place_departure", dark) < 0.02
    assert value("target_colour", dark) < 4
    strong = returned(lambda p: np.clip(2.0 * p - p.mean(axis=2, keepdims=True), 0, 255).astype(np.uint8))
    assert value("style_departure", strong) > 0.2
    soft = observed([p if k < 2 else cv2.GaussianBlur(p, (0, 0), 3) for k, p in enumerate(STILL_TRUTH)], STILL_TRUTH)
    assert value("sharpness_departure", soft) > 0.3
    assert value("structure_decay", soft) < 0.15
    elsewhere = observed(shot(story(HOME, put(PLACE, on=OTHER))), STILL_TRUTH)
    assert value("place_departure", elsewhere) > 0.5


def test_a_picture_that_decays():
    melting = [cv2.GaussianBlur(p, (0, 0), 0.3 + 9 * (k / N) ** 2) for k, p in enumerate(STILL_TRUTH)]
    assert value("structure_decay", observed(melting, STILL_TRUTH)) > 0.2


@pytest.mark.slow
@pytest.mark.long
def test_what_became_of_a_target_that_stayed():
    gone = observed(shot(story(HOME, WIDE)), STILL_TRUTH)
    assert value("target_faded", gone) > 0.6
    assert value("target_elsewhere", gone) == 0
    half = observed(shot(story(HOME, put(PLACE, share=0.5))), STILL_TRUTH)
    assert 0.25 < value("target_faded", half) < 0.75
    beside = observed(shot(story(HOME, put((150, 60)))), STILL_TRUTH)
    assert value("target_elsewhere", beside) == pytest.approx(80 / 64, abs=0.1)
    two = observed(shot(story(HOME, put((150, 60), on=HOME))), STILL_TRUTH)
    assert value("target_doubled", two) > 0.7
    assert value("target_elsewhere", two) == 0
    assert isinstance(answer("first_state", two), Unscored)
    blue = observed(shot(story(HOME, put(PLACE, thing()[..., ::-1]))), STILL_TRUTH)
    assert value("target_colour", blue) > 30
    other = thing(7).mean(axis=2, keepdims=True) / thing(7).mean() * thing().mean(axis=(0, 1))
    painted = observed(shot(story(HOME, put(PLACE, np.clip(other, 0, 255).astype(np.uint8)))), STILL_TRUTH)
    assert value("target_pattern", painted) > 0.3
    assert value("target_outline", painted) < 5
    squat = observed(shot(story(HOME, put((58, 84), thing(size=(76, 40))))), STILL_TRUTH)
    assert value("target_outline", squat) > 10


@pytest.mark.slow
def test_what_became_of_a_target_that_moved():
    back = observed(shot(story(HOME, HOME)), MOVED_TRUTH)
    assert value("first_state", back) > 0.9
    gone = observed(shot(story(HOME, WIDE)), MOVED_TRUTH)
    assert value("first_state", gone) < 0.2
    assert value("target_faded", gone) > 0.8
    assert isinstance(answer("last_state", gone), Unscored)


@pytest.mark.slow
def test_a_target_stuck_where_it_was_last_seen():
    midway = put((120, 60))
    truth = shot([HOME if k < 4 else midway if k < TURN else MOVED for k in range(N)])
    stuck = observed(shot([HOME if k < 4 else midway for k in range(N)]), truth)
    assert value("last_state", stuck) > 0.8
    found = answer("last_state", observed(shot([HOME if k < 4 or k >= TURN else midway for k in range(N)]), truth))
    assert isinstance(found, Score)
    assert found.facts["nearer_last"] < 0.4


def test_what_cannot_be_asked_is_unscored(perfect: Departures):
    without = answer("target_faded", perfect, replace(CASE, target=None))
    assert isinstance(without, Unscored)
    assert without.kind == "no_target"
    still = observed([window(HOME, 0)] * 12, [window(HOME, 0)] * 12)
    for id in ("camera_reach", "camera_strays"):
        found = answer(id, still)
        assert isinstance(found, Unscored)
        assert found.kind == "at_rest"
    for id in BOUNDS:
        assert isinstance(answer(id, observed(STILL_TRUTH[:1], STILL_TRUTH[:1])), Unscored), id


def test_malformed_evidence_says_what_a_valid_one_looks_like(perfect: Departures):
    with pytest.raises(InvalidEvidence, match="it must be"):
        replace(perfect, shown_begins=perfect.shown_begins[:-1])
    with pytest.raises(InvalidEvidence, match="not a JPEG file"):
        _ = replace(perfect, shown_jpeg=perfect.shown_jpeg[:-400]).shown
    with pytest.raises(InvalidEvidence, match="it must be"):
        replace(perfect, offset=perfect.offset[:-1])


def test_flicker_and_cuts_need_no_reference():
    steady = look(frame_facts, as_frames(STILL_TRUTH, 8), 8)
    jumping = [np.clip(p * (1.2 if k % 2 else 0.8), 0, 255).astype(np.uint8) for k, p in enumerate(STILL_TRUTH)]
    assert unsteady_light(steady).value < 2  # type: ignore[union-attr]
    assert unsteady_light(look(frame_facts, as_frames(jumping, 8), 8)).value > 15  # type: ignore[union-attr]
    assert isinstance(unsteady_light(look(frame_facts, as_frames(STILL_TRUTH[:3], 8), 8)), Unscored)
    aside = [
        window(OTHER, x + 200) if 10 <= k < 16 else p for k, (p, x) in enumerate(zip(STILL_TRUTH, WAY, strict=True))
    ]
    assert cut_away(look(cut_signal, as_frames(STILL_TRUTH, 8), 8)).value == 0  # type: ignore[union-attr]
    assert cut_away(look(cut_signal, as_frames(aside, 8), 8)).value == pytest.approx(6 / N)  # type: ignore[union-attr]
    assert isinstance(cut_away(look(cut_signal, as_frames(STILL_TRUTH[:1], 8), 8)), Unscored)


def test_numbers_agree_with_other_implementations():
    ndimage = pytest.importorskip("scipy.ndimage")
    picture = WIDE[:60, :90]
    lab = cv2.cvtColor(picture.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    assert np.abs(rgb_to_lab(picture) - lab).max() < 0.5  # OpenCV takes its cube roots from a table
    warp = np.array([[0.98, 0.05, 0.03], [-0.04, 1.02, -0.02], [0.03, 0.01, 1.0]])
    to_pixels = np.diag([90, 60, 1.0])
    half = np.array([[1, 0, -0.5], [0, 1, -0.5], [0, 0, 1]])  # pixel centres lie half a pixel in
    matrix = half @ to_pixels @ warp @ np.linalg.inv(to_pixels) @ np.linalg.inv(half)
    other = cv2.warpPerspective(picture.astype(np.float32), matrix, (90, 60), borderMode=cv2.BORDER_REPLICATE)
    mine, inside = warp_picture(picture, warp)
    inner = cv2.erode(inside.astype(np.uint8), np.ones((5, 5))) > 0
    assert np.abs(mine - other)[inner].max() < 6  # OpenCV rounds positions to a 32nd of a pixel
    mask = np.random.default_rng(4).random((40, 50)) < 0.55
    labels, count = ndimage.label(mask)
    sizes = sorted((int((labels == k + 1).sum()) for k in range(count)), reverse=True)
    assert [int(part.sum()) for part in connected_parts(mask, 1)] == sizes
    own = np.zeros((60, 90), bool)
    own[20:32, 30:45] = True
    (table,) = shifted_squared_differences([lab], lab, own)
    shifted = np.roll(lab, (-7, -11), axis=(0, 1))
    assert table[7, 11] == pytest.approx(float(((shifted - lab)[own] ** 2).sum()), rel=1e-3)
    gain, offset = fit_channel_gain_and_offset(picture * 0.7 + 12, picture, np.ones((60, 90), bool))
    assert gain == pytest.approx([0.7] * 3, abs=0.01)
    assert offset == pytest.approx([12] * 3, abs=1)
    angle, zoom, aspect = np.radians(5), 1.1, 180 / 320
    turn = zoom * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    scale = np.diag([1, 1 / aspect])
    linear = scale @ turn @ np.linalg.inv(scale)
    moved = np.eye(3)
    moved[:2, :2] = linear
    moved[:2, 2] = np.array([0.5, 0.5]) - linear @ [0.5, 0.5] + [0.08, -0.02]
    expected = [0.08, -0.02 * aspect, 0.5 * np.log(zoom), 0.5 * angle]
    assert warps_to_motion_vectors(moved[None], (320, 180))[0] == pytest.approx(expected, abs=1e-6)


def test_blobs_are_the_connected_parts_of_a_mask():
    rng = np.random.default_rng(3)
    for rows, columns, softness in ((40, 60, 1.5), (61, 33, 0.4), (1, 50, 1.0), (30, 1, 0.5)):
        noise = cv2.GaussianBlur(rng.random((rows, columns)), (0, 0), softness)
        mask = noise > np.median(noise)
        count, label = cv2.connectedComponents(mask.astype(np.uint8), connectivity=4)
        parts = [label == k for k in range(1, count)]
        expected = sorted((part.sum() for part in parts if part.sum() >= 3), reverse=True)
        found = connected_parts(mask, 3)
        assert [blob.sum() for blob in found] == expected
        assert all(any((blob == part).all() for part in parts) for blob in found)


@pytest.mark.parametrize("reach", [1, 3, 4])
def test_grown_masks_are_those_of_a_dilation(reach):
    rng = np.random.default_rng(reach)
    for shape in ((40, 60), (2, 30), (25, 1)):
        mask = rng.random(shape) < 0.05
        square = np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)
        assert (dilate_mask(mask, reach) == (cv2.dilate(mask.astype(np.uint8), square) > 0)).all()
