"""The view gate: what leaves, what returns, and what cannot be told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from revisit.core import GateResult, InvalidEvidence, Score, Unscored
from revisit.evidence.appearance import NetworkPatches, PatchFeatures
from revisit.evidence.views import ReturnPairs, ViewLinks, ViewRelations
from revisit.metrics.view_consistency import (
    corresponding_patch_cosines,
    return_consistency,
    return_features,
    return_pairs,
    similarity_floor_and_ceiling,
)
from revisit.metrics.view_gate import (
    AWAY,
    RETURNED,
    VISIBLE,
    derive_view_relations,
    share_inside_and_lost_strip,
    slow_zoom_rim,
    view_phases,
    view_return,
)
from revisit.observers.matching import (
    best_shift_correlations,
    find_described_points,
    gradient_structure,
    link_by_similarity,
)
from revisit.observers.patches import patch_features, viewed_and_next_frame_numbers
from revisit.observers.pictures import VIEWED
from revisit.observers.views import links_between_views
from tests.looking import as_frames, look, read

SIZE = (160, 288)


def wall(seed: int = 0, width: int = 1600) -> np.ndarray:
    """A long picture with shapes of all sizes, to slide a window over."""
    rng = np.random.default_rng(seed)
    picture = np.full((SIZE[0], width, 3), 120, np.uint8)
    for _ in range(width // 2):
        x, y = int(rng.integers(0, width)), int(rng.integers(0, SIZE[0]))
        w, h = (int(v) for v in rng.integers(6, 50, 2))
        colour = tuple(int(v) for v in rng.integers(0, 255, 3))
        cv2.rectangle(picture, (x, y), (x + w, y + h), colour, -1)
    return cv2.GaussianBlur(picture, (0, 0), 0.8)


def slide(offsets: np.ndarray, seed: int = 0) -> list[np.ndarray]:
    """Windows of the wall at these offsets in pixels."""
    picture = wall(seed)
    return [np.ascontiguousarray(picture[:, int(x) : int(x) + SIZE[1]]) for x in offsets]


def there_and_back(far: int = 600, count: int = 15) -> np.ndarray:
    there = np.linspace(0, far, count)
    return np.r_[there, there[::-1][1:]]


def judge(links: ViewLinks) -> GateResult:
    relations = derive_view_relations.fn(links)
    answer = view_return(links, relations, view_phases.fn(relations))
    assert isinstance(answer, GateResult)
    return answer


@pytest.fixture(scope="module")
def returning() -> ViewLinks:
    found = look(links_between_views, as_frames(slide(there_and_back())))
    assert isinstance(found, ViewLinks)
    return found


def test_a_turn_away_and_back_leaves_and_returns(returning: ViewLinks) -> None:
    verdict = judge(returning)
    assert (verdict.state, verdict.label) == ("open", "left, returned")
    assert verdict.facts["left_share"] == 1.0
    assert verdict.facts["returned_share"] > 0.95
    phase = view_phases.fn(derive_view_relations.fn(returning)).phase
    assert phase[0] == VISIBLE and phase[14] == AWAY and phase[-1] == RETURNED


@pytest.mark.parametrize(
    ("points", "label"),
    [(30, "left, returned"), (13, "cannot tell"), (6, "left, not returned")],
    ids=["surely", "weakly", "as pictures of different places"],
)
def test_one_weak_sample_of_the_first_view_is_neither_a_return_nor_none(
    returning: ViewLinks, points: int, label: str
) -> None:
    """After the way out only the last sample is recognised, by so many points."""
    inliers, lead = returning.inliers.copy(), returning.lead.copy()
    late = slice(len(inliers) // 2, None)
    inliers[0, late] = inliers[late, 0] = 0
    lead[0, late] = lead[late, 0] = 0
    inliers[0, -1] = inliers[-1, 0] = points
    found = judge(replace(returning, inliers=inliers, lead=lead))
    assert found.label == label
    assert ("too weakly" in found.reason) == (label == "cannot tell")


def test_a_turn_away_is_not_returned() -> None:
    verdict = judge(look(links_between_views, as_frames(slide(np.linspace(0, 600, 15)))))
    assert (verdict.state, verdict.label) == ("closed", "left, not returned")


@pytest.mark.parametrize("drift", [0.0, 0.6])
def test_a_still_camera_never_left_whatever_the_light_does(drift: float) -> None:
    rng = np.random.default_rng(0)
    frames = [
        np.clip(f * (1 - drift * k / 11) + rng.normal(0, 4, f.shape), 0, 255).astype(np.uint8)
        for k, f in enumerate(slide(np.zeros(12)))
    ]
    assert judge(look(links_between_views, as_frames(frames))).label == "never left"


def test_a_frozen_picture_says_so() -> None:
    verdict = judge(look(links_between_views, as_frames(slide(np.zeros(8)))))
    assert verdict.facts["frozen"] is True
    assert "frozen" in verdict.reason


def test_a_small_turn_has_not_left() -> None:
    verdict = judge(look(links_between_views, as_frames(slide(there_and_back(40)))))
    assert verdict.label == "never left"
    assert not verdict.facts.get("frozen")


def zoom(scale: float, left: float, count: int = 14) -> list[np.ndarray]:
    """A camera that zooms in on the wall, until so large a strip of the first view is lost on its left."""
    picture, (height, width) = wall(width=900), SIZE
    frames = []
    for share in np.linspace(0, 1, count):
        size = 1 + share * (scale - 1)
        corner = share * left * width, (1 - 1 / size) / 2 * height
        warp = np.array([[size, 0, -size * corner[0]], [0, size, -size * corner[1]]])
        frames.append(cv2.warpAffine(picture, warp, (width, height), flags=cv2.INTER_AREA))
    return frames


@pytest.mark.parametrize(
    ("scale", "left", "label"),
    [
        (1.33, 0.34, "never left"),  # a turn by 0.22 and a rim of 0.12
        (1.0, 0.34, "left, not returned"),
        (1.33, 0.44, "left, not returned"),  # a turn by 0.32
        (2.6, 0.31, "left, not returned"),  # a zoom that leaves a ninth of the area
    ],
)
def test_a_slow_zoom_takes_a_rim_and_no_view(scale: float, left: float, label: str) -> None:
    assert judge(look(links_between_views, as_frames(zoom(scale, left)))).label == label


def test_the_rim_of_a_slow_zoom_is_what_it_takes_off_each_side() -> None:
    def rim(scale: float, turn: float = 0.0) -> float:
        return float(slow_zoom_rim(np.array([[scale, 0, -turn], [0, scale, 0], [0, 0, 1.0]])))

    assert rim(1.0) == rim(0.5) == rim(1.0, 0.4) == 0.0
    assert rim(1.25) == rim(1.25, 0.4) == pytest.approx(0.1)  # of 1 / 1.25, a tenth on either side
    assert rim(2.0) == rim(3.0) == 0.0
    steps = np.array([rim(scale) for scale in np.linspace(1, 3, 400)])
    assert np.abs(np.diff(steps)).max() < 0.01


def test_a_cut_to_another_place_is_not_returned_and_says_cut() -> None:
    verdict = judge(look(links_between_views, as_frames(slide(np.arange(8.0)) + slide(np.arange(8.0), seed=5))))
    assert verdict.label == "left, not returned"
    assert "cut" in verdict.reason


def test_a_cut_away_and_back_is_not_a_camera_that_returns() -> None:
    frames = slide(np.arange(8.0)) + slide(np.arange(8.0), seed=5) + slide(np.arange(8.0))
    verdict = judge(look(links_between_views, as_frames(frames)))
    assert (verdict.state, verdict.label) == ("unsure", "cannot tell")
    assert "no motion joins them" in verdict.reason


def test_an_overlay_does_not_hold_the_view() -> None:
    frames = slide(there_and_back(), seed=1)
    badge = wall(9)[:50, :80]
    for frame in frames:
        frame[-50:, :80] = badge
    links = look(links_between_views, as_frames(frames))
    assert links.attached > 0.02
    assert judge(links).label == "left, returned"


def test_flat_pictures_cannot_be_told() -> None:
    rng = np.random.default_rng(0)
    frames = [np.clip(rng.normal(128, 1, (*SIZE, 3)), 0, 255).astype(np.uint8) for _ in range(8)]
    verdict = judge(look(links_between_views, as_frames(frames)))
    assert (verdict.state, verdict.label) == ("unsure", "cannot tell")
    assert "texture" in verdict.reason


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_frames_cannot_be_told(count: int) -> None:
    verdict = judge(look(links_between_views, as_frames(slide(np.arange(float(count))))))
    assert verdict.label == "cannot tell"


def test_malformed_links_say_what_valid_ones_look_like(returning: ViewLinks) -> None:
    with pytest.raises(InvalidEvidence, match="N, N"):
        derive_view_relations.fn(replace(returning, inliers=returning.inliers[:3]))
    with pytest.raises(InvalidEvidence, match="must be increasing"):
        derive_view_relations.fn(replace(returning, index=returning.index[::-1]))


def test_the_visible_area_is_that_of_the_clipped_polygon() -> None:
    rng = np.random.default_rng(0)
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
    for _ in range(20):
        angle, scale = rng.uniform(-0.5, 0.5), rng.uniform(0.6, 1.6)
        warp = np.eye(3)
        warp[:2, :2] = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        warp[:2, 2] = rng.uniform(-0.6, 0.6, 2)
        moved = (square @ warp[:2, :2].T + warp[:2, 2]).astype(np.float32)
        common, _ = cv2.intersectConvexConvex(moved, square)
        assert share_inside_and_lost_strip(warp)[0] == pytest.approx(common / scale**2, abs=0.03)


def test_the_lost_strip_of_a_shift_is_the_shift() -> None:
    warp = np.eye(3)
    warp[0, 2] = -0.3
    assert share_inside_and_lost_strip(warp)[1] == pytest.approx(0.3, abs=0.03)
    zoom = np.array([[1.2, 0, -0.1], [0, 1.2, -0.1], [0, 0, 1]])
    assert share_inside_and_lost_strip(zoom)[1] <= 0.1  # a third of the area, but a thin rim


def test_both_cues_find_the_shift() -> None:
    a, b = (cv2.cvtColor(f, cv2.COLOR_RGB2GRAY) for f in slide(np.array([0, 72])))
    found = link_by_similarity(find_described_points(a), find_described_points(b))
    assert found.inliers > 30
    assert found.warp[0, 2] == pytest.approx(-72 / SIZE[1], abs=0.02)
    ((_, lead, shift),) = best_shift_correlations(gradient_structure(a), [gradient_structure(b)])
    assert lead > 0.12
    assert shift[0] == pytest.approx(-72 / SIZE[1], abs=0.03)


def test_pairs_join_the_way_out_with_the_way_back(returning: ViewLinks) -> None:
    pairs = return_pairs.fn(derive_view_relations.fn(returning))
    assert len(pairs) > 5
    offsets = there_and_back()
    assert np.abs(offsets[pairs.i] - offsets[pairs.j]).max() <= 45  # one sampled step
    assert (pairs.gap > 0).all() and (pairs.j > pairs.i).all()


def features(tokens: np.ndarray) -> PatchFeatures:
    return PatchFeatures(np.arange(len(tokens)), tokens, tokens.reshape(len(tokens), -1)[:, :1])


def unit(shape: tuple[int, ...], seed: int) -> np.ndarray:
    made = np.random.default_rng(seed).normal(size=shape)
    return np.asarray(made / np.linalg.norm(made, axis=-1, keepdims=True))


def resting(count: int, at: np.ndarray | None = None) -> ViewRelations:
    """Views of a camera that rests: every frame shows the same place."""
    index = np.arange(count) if at is None else at
    count = len(index)
    warp = np.tile(np.eye(3), (count, count, 1, 1))
    whole, none = np.ones((count, count)), np.zeros((count, count))
    return ViewRelations(index, index / 8, whole.astype(bool), none, whole, warp, whole, 1.0)


def some_pairs(i: list[int], j: list[int]) -> ReturnPairs:
    n = len(i)
    return ReturnPairs(
        np.array(i), np.array(j), np.arange(1.0, n + 1), np.ones(n), np.tile(np.eye(3), (n, 1, 1)), np.ones(n)
    )


def test_the_same_patches_on_return_score_one_and_others_nothing() -> None:
    scene, other = unit((6, 8, 16), 0), unit((6, 8, 16), 1)
    same = return_consistency(features(np.stack([scene] * 6)), some_pairs([0, 1], [4, 5]), resting(6))
    assert isinstance(same, Score) and same.value == pytest.approx(1.0)
    changed = return_consistency(
        features(np.stack([scene, scene, scene, other, other, other])), some_pairs([0, 1], [4, 5]), resting(6)
    )
    assert isinstance(changed, Score) and changed.value < 0.15


def test_the_ceiling_is_that_of_the_frames_closest_to_each_other() -> None:
    scene, others = unit((6, 8, 16), 0), unit((3, 6, 8, 16), 1)
    index = np.array([0, 1, 10, 20])
    scale = similarity_floor_and_ceiling(index, np.stack([scene, scene, *others[:2]]), resting(4, index))
    assert scale is not None and scale[1] == pytest.approx(1.0) and abs(scale[0]) < 0.1
    later = 10 * index[[0, 2, 3]]
    scale = similarity_floor_and_ceiling(later, np.stack([scene, others[0], others[0]]), resting(3, later))
    assert scale is not None and 0.4 < scale[1] < 1  # steps of one length: all of them count


def test_the_ceiling_of_a_camera_that_never_rests_is_that_of_patches_that_correspond() -> None:
    """Each frame is the last one moved by two patches: the same place of two frames never shows the same thing."""
    wide = unit((6, 20, 16), 0)
    tokens = np.stack([wide[:, 2 * k : 2 * k + 8] for k in range(6)])
    still = resting(6)
    warp = still.warp.copy()
    warp[..., 0, 2] = (np.arange(6)[:, None] - np.arange(6)) * 2 / 8
    scale = similarity_floor_and_ceiling(still.index, tokens, replace(still, warp=warp))
    assert scale is not None and scale[1] == pytest.approx(1.0)
    apart = replace(still, seen=np.eye(6, dtype=bool))
    answer = return_consistency(features(tokens), some_pairs([0, 1], [4, 5]), apart)
    assert isinstance(answer, Unscored) and answer.kind == "not_followed"


def coarse_wall(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    picture = np.full((SIZE[0], 1600, 3), 120, np.uint8)
    for _ in range(70):
        x, y = (int(v) for v in rng.integers(-120, (1600, SIZE[0])))
        w, h = (int(v) for v in rng.integers(60, 120, 2))
        cv2.rectangle(picture, (x, y), (x + w, y + h), tuple(int(v) for v in rng.integers(0, 255, 3)), -1)
    return cv2.GaussianBlur(picture, (0, 0), 0.8)


def fast_return(replaced: float) -> Score:
    """A pan over coarse shapes and back, 86 of 288 pixels a frame; on return this share of the first view is new."""
    before, after = coarse_wall(0), coarse_wall(0)
    width = round(replaced * SIZE[1])
    after[:, :width] = coarse_wall(100)[:, :width]
    offsets = there_and_back(count=8).astype(int)
    walls = [before if k < 8 else after for k in range(len(offsets))]
    frames = as_frames([np.ascontiguousarray(w[:, x : x + SIZE[1]]) for w, x in zip(walls, offsets, strict=True)])
    relations = derive_view_relations.fn(look(links_between_views, frames))
    score = return_consistency(look(patch_features, frames), return_pairs.fn(relations), relations)
    assert isinstance(score, Score)
    return score


def test_what_is_replaced_costs_its_share_also_where_the_camera_is_fast() -> None:
    """Before, a scale from patches that the camera had carried away made all of these 1."""
    scores = [fast_return(share) for share in (0.0, 0.5, 0.75)]
    whole, half, quarter = (score.value for score in scores)
    assert whole > 0.97 and half < 0.93 and quarter < half - 0.05
    last = [float(np.asarray(score.units["value"])[-1]) for score in scores if score.units is not None]
    assert last[0] > 0.97 and last[1] == pytest.approx(0.5, abs=0.2) and last[2] == pytest.approx(0.25, abs=0.2)


def test_patches_are_of_the_frames_whose_views_are_compared_and_of_some_next_ones() -> None:
    assert viewed_and_next_frame_numbers(20, 24.0).tolist() == list(range(20))
    wanted, views_of = viewed_and_next_frame_numbers(300, 24.0), VIEWED.pick(300, 24.0)
    assert set(views_of) <= set(wanted) and len(wanted) == 36 + 11
    assert (np.diff(wanted) == 1).sum() == 11 and wanted[-1] == 299
    assert viewed_and_next_frame_numbers(0, 24.0).size == 0 and viewed_and_next_frame_numbers(1, 24.0).tolist() == [0]


def test_consistency_falls_over_the_gap() -> None:
    scene, noise = unit((6, 8, 32), 0), unit((8, 6, 8, 32), 1)
    frames = [scene] * 4 + [scene + a * n for a, n in zip((0.2, 0.5, 0.9, 1.4), noise, strict=False)]
    tokens = np.stack([f / np.linalg.norm(f, axis=-1, keepdims=True) for f in frames])
    score = return_consistency(features(tokens), some_pairs([0, 1, 2, 3], [4, 5, 6, 7]), resting(8))
    assert isinstance(score, Score)
    assert score.facts["slope_per_second"] < 0
    assert score.units is not None and (np.diff(score.units["value"]) < 0).all()


def test_a_networks_patches_are_compared_in_the_same_way_and_named() -> None:
    scene, other = unit((6, 8, 16), 0), unit((6, 8, 16), 1)
    seen, pairs = features(np.stack([scene, scene, scene, scene, other])), some_pairs([0, 1], [3, 4])
    network = NetworkPatches(seen.index, seen.tokens, seen.whole, "made up")
    classical, made = return_consistency(seen, pairs, resting(5)), return_features(network, pairs, resting(5))
    assert isinstance(made, Score) and isinstance(classical, Score)
    assert made.value == classical.value
    assert made.facts == {**classical.facts, "described_by": "made up"}


def test_no_pairs_is_unscored_and_bad_shapes_raise() -> None:
    good = features(np.stack([unit((6, 8, 16), 0)] * 4))
    answer = return_consistency(good, some_pairs([], []), resting(4))
    assert isinstance(answer, Unscored) and answer.kind == "no_return"
    with pytest.raises(InvalidEvidence, match="N, rows, columns"):
        return_consistency(replace(good, tokens=good.tokens[0]), some_pairs([0], [1]), resting(4))


def test_patches_are_compared_where_they_land() -> None:
    a = unit((4, 8, 16), 0)
    b = np.roll(a, -2, axis=1)
    warp = np.eye(3)
    warp[0, 2] = -2 / 8
    assert len(corresponding_patch_cosines(a, b, warp)) == 24
    assert corresponding_patch_cosines(a, b, warp) == pytest.approx(1.0)


TRUTH = {
    "wmark_m6_good": "left, returned",
    "wmark_m6_bad": "left, not returned",
    "7scenes_redkitchen_return": "left, returned",
    "lingbotmap_loop": "left, returned",
    "wmark_m5_bad": "left, not returned",
    "wf_yume15": "left, not returned",
    "sam2_cups": "never left",
    "skv_carphone": "never left",
}


QUICK = ("lingbotmap_loop", "skv_carphone")


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in TRUTH if name not in QUICK)]
)
def test_real_clips_are_judged_as_the_eye_does(shared: Path, name: str) -> None:
    assert judge(look(links_between_views, *read(shared / f"clips/{name}.mp4"))).label == TRUTH[name]


def growing(bits: int = 30) -> list[np.ndarray]:
    """A camera that rests, before which another picture takes the place of the first one bit by bit, from below."""
    first, other = slide(np.array([0]))[0], slide(np.array([0]), seed=9)[0]
    frames = [first] * 4
    for level in np.linspace(SIZE[0], 0, bits).astype(int):
        picture = first.copy()
        picture[level:] = other[level:]
        frames.append(picture)
    return [*frames, *[other] * 8]


def test_what_is_covered_before_a_camera_that_rests_has_not_left() -> None:
    verdict = judge(look(links_between_views, as_frames(growing())))
    assert verdict.state == "closed" and verdict.label in ("covered, not left", "never left")
    assert judge(look(links_between_views, as_frames(growing(1)))).label != "covered, not left"  # a cut
