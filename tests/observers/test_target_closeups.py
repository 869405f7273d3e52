"""A closer look at candidates: the target's own colours, cuts, and which candidate is the target."""

from __future__ import annotations

import numpy as np
import pytest

from revisit.observers.own_colours import COLOUR_STEP, OwnColours, cut, soft_histogram
from revisit.observers.target_closeups import CloseUps, distinct, intersection_over_union

RED, GREEN, GREY = (200, 40, 40), (40, 180, 60), (120, 120, 120)
BOX = np.array([0.25, 0.25, 0.5, 0.75])


def scene(colour: tuple[int, int, int] | None, ground: tuple[int, int, int] = GREY) -> np.ndarray:
    """A thing of one colour in the box, before a plain ground."""
    picture = np.tile(np.array(ground, np.uint8), (80, 160, 1))
    if colour is not None:
        picture[20:60, 40:80] = colour
    return picture


def test_colours_at_the_centre_of_a_bin_are_counted_there_and_others_are_shared():
    centres = np.array([[1, 2, -3], [4, 0, 0], [1, 2, -3]]) * COLOUR_STEP + [0, 128, 128]
    shares = soft_histogram(centres, np.array([1.0, 1.0, 2.0])).reshape(9, 23, 23)
    assert shares[1, 13, 8] == pytest.approx(0.75) and shares[4, 11, 11] == pytest.approx(0.25)
    between = soft_histogram(np.array([[1.25, 0, 0.5]]) * COLOUR_STEP + [0, 128, 128], np.ones(1)).reshape(9, 23, 23)
    assert between[1, 11, 11] == pytest.approx(0.375) and between[2, 11, 12] == pytest.approx(0.125)
    rng = np.random.default_rng(0)  # on a grid of bins, an ordinary histogram counts the same
    bins = rng.integers((0, -5, -5), (7, 6, 6), (500, 3))
    theirs, _ = np.histogramdd(bins + [0, 11, 11], bins=[np.arange(n + 1) - 0.5 for n in (9, 23, 23)])
    ours = soft_histogram(bins * COLOUR_STEP + [0, 128, 128], np.ones(500))
    np.testing.assert_allclose(ours.reshape(9, 23, 23), theirs / 500, atol=1e-9)


def test_what_the_target_has_and_its_surroundings_lack_counts():
    colours = OwnColours(scene(RED), BOX)
    assert colours.share_in(cut(scene(RED), BOX)) == pytest.approx(1)
    assert colours.share_in(cut(scene(GREEN), BOX)) < 0.05
    assert colours.share_in(cut(scene(None), BOX)) < 0.05
    dimmer = (scene(RED) * 0.9).astype(np.uint8)
    assert colours.share_in(cut(dimmer, BOX)) > 0.5  # of dimmer light chroma falls as well, which is not undone
    half = scene(RED)
    half[20:60, 40:60] = GREEN
    assert colours.share_in(cut(half, BOX)) == pytest.approx(0.5, abs=0.05)


def test_colours_of_the_ground_say_little():
    """A box that is half ground: the ground without the thing has little of its own colours."""
    wide = np.array([0.25, 0.25, 0.75, 0.75])
    colours = OwnColours(scene(RED), wide)
    assert colours.share_in(cut(scene(RED), wide)) == pytest.approx(1)
    assert colours.share_in(cut(scene(None), wide)) < 0.35


def test_a_cut_is_never_empty():
    picture = scene(RED)
    assert cut(picture, BOX).shape == (40, 40, 3)
    for box in ([-0.5, 0.2, -0.1, 0.4], [0.9, 0.9, 1.5, 1.5], [1.2, 1.2, 1.4, 1.4]):
        assert min(cut(picture, np.array(box)).shape[:2]) >= 4


def test_candidates_that_lie_in_one_place_are_looked_at_once():
    near = BOX + 0.01
    assert intersection_over_union(BOX, BOX) == pytest.approx(1) and intersection_over_union(BOX, BOX + 1) == 0
    assert [box.tolist() for box in distinct([BOX, near, BOX + 0.4])] == [BOX.tolist(), (BOX + 0.4).tolist()]


def test_the_candidate_most_like_the_target_is_taken(monkeypatch: pytest.MonkeyPatch):
    """With the mean colour for a network: of the windows that are given, the one with the target in it wins."""

    def described(self: CloseUps, picture: np.ndarray, boxes: list[np.ndarray]) -> np.ndarray:
        rows = np.array([cut(picture, box).mean(axis=(0, 1)) - 100 for box in boxes])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    monkeypatch.setattr(CloseUps, "_described", described)
    away = np.array([0.7, 0.1, 0.95, 0.6])
    close = CloseUps(scene(RED), BOX, np.array([away]))
    there = close.look(scene(RED), away)
    assert there.like == pytest.approx(1, abs=0.02) and there.like - there.unlike > 0.5 and there.colour > 0.9
    assert intersection_over_union(there.box, BOX) > 0.5
    gone = close.look(scene(None), away)
    assert gone.like - gone.unlike < 0 and gone.colour < 0.1
