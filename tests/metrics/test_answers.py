"""Answers that are kept: nothing is worked out twice for one record or for equal references, or mixed up."""

from __future__ import annotations

import numpy as np

from revisit.core import Frame
from revisit.core.frames import frame_digest
from revisit.metrics.answers import cache_for_last_record, cache_recent_results
from revisit.observers.frames import pixel_checksum
from revisit.observers.matching import points_of_frame
from tests.looking import wall


def test_answers_about_the_last_record_are_kept_by_settings() -> None:
    calls: list[tuple[object, float, bool]] = []

    @cache_for_last_record
    def mean(record: np.ndarray, factor: float = 1.0, *, square: bool = False) -> float:
        calls.append((record, factor, square))
        return float(factor * record.mean() ** (2 if square else 1))

    one, equal = np.arange(5.0), np.arange(5.0)
    assert [mean(one), mean(one), mean(one, 2.0), mean(one, 2.0), mean(one, square=True)] == [2.0, 2.0, 4.0, 4.0, 4.0]
    assert len(calls) == 3
    assert mean(equal) == 2.0 and len(calls) == 4  # another object may hold anything
    assert mean(one) == 2.0 and len(calls) == 5  # only the last one is kept


def test_answers_about_equal_arrays_are_kept_and_the_oldest_leave() -> None:
    calls: list[object] = []

    @cache_recent_results(2)
    def total(array: np.ndarray, other: np.ndarray | None, box: tuple[float, float]) -> float:
        calls.append(array)
        return float(array.sum() + sum(box))

    first = np.arange(6)
    assert total(first, None, (0.5, 0.5)) == total(first.copy(), None, (0.5, 0.5)) == 16.0 and len(calls) == 1
    differing = [(first.reshape(2, 3), None, (0.5, 0.5)), (first.astype(float), None, (0.5, 0.5)),
                 (first, first, (0.5, 0.5)), (first, None, (0.5, 0.25))]  # fmt: skip
    for arguments in differing:  # another shape, type, array or number is another question
        total(*arguments)
    assert len(calls) == 5
    total(first, None, (0.5, 0.5))
    assert len(calls) == 6  # the oldest answers were dropped


def test_a_frame_is_hashed_when_asked_and_equal_pixels_have_equal_checksums() -> None:
    rgb = np.random.default_rng(0).integers(0, 256, (9, 7, 3)).astype(np.uint8)
    assert Frame(0, 0.0, rgb).digest == frame_digest(rgb) and Frame(0, 0.0, rgb, "told").digest == "told"
    assert pixel_checksum(rgb) == pixel_checksum(rgb.copy()) and len(pixel_checksum(rgb)) == 16
    for place in np.ndindex(rgb.shape):
        other = rgb.copy()
        other[place] ^= 1
        assert pixel_checksum(other) != pixel_checksum(rgb)


def test_points_of_a_frame_are_found_once_for_each_size() -> None:
    grey = wall(200, seed=1).mean(axis=2).astype(np.uint8)
    frame = Frame(0, 0.0, np.repeat(grey[..., None], 3, axis=2))
    points = points_of_frame(frame, grey)
    assert points_of_frame(frame, grey) is points
    assert points_of_frame(frame, grey[::2, ::2]) is not points
