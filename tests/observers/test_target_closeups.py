"""A closer look at candidates: cuts, and which candidate is the target."""

from __future__ import annotations

import numpy as np
import pytest

from revisit.observers.target_closeups import (
    CloseUps,
    crop_box,
    drop_overlapping_boxes,
    overlap_by_union_and_by_smaller,
)

RED, GREY = (200, 40, 40), (120, 120, 120)
BOX = np.array([0.25, 0.25, 0.5, 0.75])


def scene(colour: tuple[int, int, int] | None, ground: tuple[int, int, int] = GREY) -> np.ndarray:
    """A thing of one colour in the box, before a plain ground."""
    picture = np.tile(np.array(ground, np.uint8), (80, 160, 1))
    if colour is not None:
        picture[20:60, 40:80] = colour
    return picture


def test_a_cut_is_never_empty():
    picture = scene(RED)
    assert crop_box(picture, BOX).shape == (40, 40, 3)
    for box in ([-0.5, 0.2, -0.1, 0.4], [0.9, 0.9, 1.5, 1.5], [1.2, 1.2, 1.4, 1.4]):
        assert min(crop_box(picture, np.array(box)).shape[:2]) >= 4


def test_candidates_that_lie_in_one_place_are_looked_at_once():
    near = BOX + 0.01
    assert (
        overlap_by_union_and_by_smaller(BOX, BOX)[0] == pytest.approx(1)
        and overlap_by_union_and_by_smaller(BOX, BOX + 1)[0] == 0
    )
    assert [box.tolist() for box in drop_overlapping_boxes([BOX, near, BOX + 0.4])] == [
        BOX.tolist(),
        (BOX + 0.4).tolist(),
    ]


def test_the_candidate_most_like_the_target_is_taken(monkeypatch: pytest.MonkeyPatch):
    """With the mean colour for a network: of the windows that are given, the one with the target in it wins."""

    def described(self: CloseUps, picture: np.ndarray, boxes: list[np.ndarray]) -> np.ndarray:
        rows = np.array([crop_box(picture, box).mean(axis=(0, 1)) - 100 for box in boxes])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    monkeypatch.setattr(CloseUps, "_described", described)
    away = np.array([0.7, 0.1, 0.95, 0.6])
    close = CloseUps(scene(RED), BOX, np.array([away]))
    there = close.find_best_look_and_learn(scene(RED), away)
    assert there["close"] == pytest.approx(1, abs=0.02) and there["close"] - there["close_unlike"] > 0.5
    assert overlap_by_union_and_by_smaller(there["close_box"], BOX)[0] > 0.5
    gone = close.find_best_look_and_learn(scene(None), away)
    assert gone["close"] - gone["close_unlike"] < 0
