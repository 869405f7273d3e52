"""Which part of a box is the target, its colours there, and its motion: things of known shape over known grounds."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from revisit.observers.grid_descriptors import OwnColours, soft_colour_histogram
from revisit.observers.target_tracking import (
    TargetSearch,
    is_in_silhouette,
    lab_colours_in_box,
    target_and_camera_motion,
)

BOX = (0.3, 0.3, 0.5, 0.7)
RED, GREEN = (190, 60, 50), (60, 150, 70)


def picture(colour: tuple[int, int, int], ground: tuple[int, int, int], shift: int = 0, seed: int = 0) -> np.ndarray:
    """A disc that fills the box, moved by some pixels, before a grained ground."""
    rng = np.random.default_rng(seed)
    height, width = 200, 400
    image = np.clip(np.array(ground) + rng.normal(0, 12, (height, width, 1)), 0, 255)
    image = cv2.GaussianBlur(image, (0, 0), 1.0)
    y, x = np.mgrid[:height, :width]
    inside = (x - 160 - shift) ** 2 + (y - 100) ** 2 < 38**2
    grain = cv2.GaussianBlur(np.random.default_rng(9).normal(0, 60, (height, width, 1)), (0, 0), 1.5)[..., None]
    image[inside] = np.clip(np.array(colour) + np.roll(grain, shift, axis=1)[inside], 0, 255)
    return image.astype(np.uint8)


def test_the_silhouette_is_the_disc_and_not_the_corners_of_its_box():
    figure = TargetSearch(picture(RED, (130, 130, 130)), BOX).figure
    rows, columns = figure.shape
    y, x = np.mgrid[-1 : 1 : rows * 1j, -1 : 1 : columns * 1j]
    radius = np.hypot(x, y)
    assert figure[radius < 0.7].mean() > 0.9
    assert figure[radius > 1.25].mean() < 0.5


def test_where_nothing_stands_out_no_cell_is_left_out():
    ground = np.random.default_rng(3).integers(120, 140, (200, 400, 3)).astype(np.uint8)
    assert TargetSearch(ground, BOX).figure.min() > 0.3


def test_own_colours_do_not_depend_on_the_ground_but_on_the_thing():
    search = TargetSearch(picture(RED, (130, 130, 130)), BOX)
    box = np.array(BOX)

    def likeness(colour: tuple[int, int, int], ground: tuple[int, int, int]) -> float:
        return search.own_colours.best_view_overlap(lab_colours_in_box(picture(colour, ground, seed=1), box))

    assert likeness(RED, (130, 130, 130)) > 0.9
    assert likeness(RED, (90, 110, 160)) > 0.75
    assert likeness(GREEN, (130, 130, 130)) < 0.35
    search.own_colours.add_view(lab_colours_in_box(picture(GREEN, (130, 130, 130)), box))
    assert likeness(GREEN, (130, 130, 130)) > 0.9, "a view that was learnt counts as the target"


def test_soft_shares_add_up_and_change_little_with_a_little_light():
    rng = np.random.default_rng(0)
    lab = rng.uniform(80, 170, (576, 3))
    weights = np.full(576, 1 / 576)
    shares = soft_colour_histogram(lab, weights)
    assert shares.sum() == pytest.approx(1)
    assert np.minimum(shares, soft_colour_histogram(lab + np.array([4, 0, 0]), weights)).sum() > 0.85
    one = OwnColours(np.ones((4, 4)))
    one.add_view(lab)
    assert one.best_view_overlap(lab) == pytest.approx(1)


def test_the_motion_of_a_disc_is_that_of_its_silhouette():
    """The ground in the corners of the box rests while the disc moves by three pixels."""
    before, after = (cv2.cvtColor(picture(RED, (130, 130, 130), shift), cv2.COLOR_RGB2GRAY) for shift in (0, 3))
    flow = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_FAST)
    there, back = flow.calc(before, after, None), flow.calc(after, before, None)
    figure = TargetSearch(picture(RED, (130, 130, 130)), BOX).figure
    step = target_and_camera_motion(before, after, there, back, np.array(BOX), False, figure)
    assert step.shift[0] * 400 == pytest.approx(3, abs=0.6)


def test_points_of_the_middle_count_where_nothing_stands_out():
    offset = np.array([[0.0, 0.0], [0.9, 0.9], [0.5, -0.5], [2.0, 0.0]])
    assert is_in_silhouette(offset, None).tolist() == [True, False, True, False]
    assert is_in_silhouette(offset, np.zeros((5, 5))).tolist() == [True, False, True, False]
    many = np.repeat(offset, 3, axis=0)
    assert is_in_silhouette(many, np.ones((5, 5)))[::3].tolist() == [True, True, True, False]
