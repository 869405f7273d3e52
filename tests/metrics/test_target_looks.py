"""The target gate with a network's eyes: what each look says, and what they say together."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from revisit.core import GateResult, InvalidEvidence
from revisit.evidence.target import HIDDEN, RETURNED, VISIBLE, TargetLooks
from revisit.metrics.target_return import gather_target_observations, target_models, target_phases, target_return
from revisit.observers.target_presence import (
    WindowSearch,
    frame_numbers_to_look_at,
    most_different_rows,
    overlap_by_union_and_by_smaller,
    unit_descriptor_of_box,
    unit_descriptors_of_windows,
    window_positions,
)
from tests.metrics.test_target import BOX, plain_track


def seen(like: np.ndarray, margin: np.ndarray, lookalike: float = 0.5, before: float = 0.5) -> TargetLooks:
    count = len(like)
    return TargetLooks(
        index=3 * np.arange(count), seconds=np.arange(count) / 8, like=like, unlike=like - margin, first=like,
        before=np.full(count, before), box=np.tile(np.array(BOX), (count, 1)), colour=np.ones(count),
        close=like, close_view=like, close_colour=np.ones(count),
        close_unlike=like - margin, close_box=np.tile(np.array(BOX), (count, 1)),
        lookalike=lookalike, views=1, maker="a network",
    )  # fmt: skip


def asked(looks: TargetLooks) -> GateResult:
    """The gate, with a layout that sees the target where the network sees it."""
    track = plain_track(np.repeat(np.where(looks.like > 0.4, 0.8, 0.27), 3))
    verdict = target_return(gather_target_observations.fn(track, looks))
    assert isinstance(verdict, GateResult)
    return verdict


def levels(*stretches: tuple[int, float, float]) -> TargetLooks:
    """Looks with a likeness and a margin, so many of each."""
    like, margin = (np.concatenate([np.full(one[0], one[k]) for one in stretches]) for k in (1, 2))
    return seen(like, margin)


THERE, GONE = (0.75, 0.3), (0.2, -0.2)


@pytest.mark.parametrize(
    ("looks", "label"),
    [
        (levels((30, *THERE)), "never hidden"),
        (levels((10, *THERE), (10, *GONE), (10, *THERE)), "hidden, returned"),
        (levels((10, *THERE), (20, *GONE)), "hidden, not returned"),
        (levels((10, *THERE), (1, *GONE), (19, *THERE)), "never hidden"),  # one look: a passer-by
        (levels((1, *THERE), (29, *GONE)), "hidden, not returned"),  # gone by the second frame
    ],
)
def test_the_most_probable_label(looks, label):
    facts = asked(looks).facts
    assert facts["guess"] == label and facts["by"] == "a network"
    assert sum(facts["probabilities"].values()) == pytest.approx(1, abs=0.002)
    assert facts["confidence"] == facts["probabilities"][label] == max(facts["probabilities"].values())


def test_a_fainter_return_is_less_probable_and_one_that_is_unlike_from_close_by():
    clear = levels((10, *THERE), (10, *GONE), (10, *THERE))
    faint = levels((10, *THERE), (10, *GONE), (10, 0.5, 0.05))
    other = dataclasses.replace(clear, close=np.r_[clear.close[:20], np.full(10, 0.45)])
    chance = [asked(looks).facts["probabilities"]["hidden, returned"] for looks in (clear, faint, other)]
    assert chance[0] > chance[1] and chance[0] > chance[2]


def test_what_is_not_probable_enough_is_not_decided(monkeypatch):
    looks = levels((10, *THERE), (10, *GONE), (10, *THERE))
    models = {name: {**model, "decided": 1.0} for name, model in target_models().items()}
    monkeypatch.setattr("revisit.metrics.target_return.target_models", lambda: models)
    verdict = asked(looks)
    assert verdict.state == "unsure" and verdict.label == "cannot tell" and not verdict.facts["judgeable"]
    assert verdict.facts["guess"] == "hidden, returned" and "probably hidden, returned" in verdict.reason


def test_looks_tell_when_the_target_was_away():
    track = plain_track(np.full(90, 0.8))  # the layout sees it all along: its surroundings stand in for it
    sight = gather_target_observations.fn(track, levels((10, *THERE), (10, *GONE), (10, *THERE)))
    phases = target_phases.fn(sight)
    assert [int(phases.state[k]) for k in (0, 45, 80)] == [VISIBLE, HIDDEN, RETURNED]


def test_broken_looks_are_told():
    good = levels((30, *THERE))
    for name, broken in (("like", good.like[:4]), ("like", np.full(30, np.nan)), ("index", good.index[::-1])):
        with pytest.raises(InvalidEvidence):
            dataclasses.replace(good, **{name: broken})


def test_windows_of_a_descriptor_are_means_of_their_cells():
    cells = np.random.default_rng(0).normal(size=(7, 11, 5)).astype(np.float32)
    at = window_positions((7, 11), np.array([0.3, 0.4]))
    made = unit_descriptors_of_windows(cells, at)
    for row in (0, len(at) // 2, -1):
        top, left, bottom, right = at[row]
        mean = cells[top:bottom, left:right].mean(axis=(0, 1))
        np.testing.assert_allclose(made[row], mean / np.linalg.norm(mean), atol=1e-4)
    whole = cells[2:4, 3:7].mean(axis=(0, 1))
    np.testing.assert_allclose(
        unit_descriptor_of_box(cells, np.array([3 / 11, 2 / 7, 7 / 11, 4 / 7])),
        whole / np.linalg.norm(whole),
        atol=1e-5,
    )


def test_the_target_is_found_where_it_went_and_not_where_it_was():
    """Cells of three sorts: a floor, a wall, and the target, which goes from the left to the right and away."""
    sorts = np.eye(3, 16, dtype=np.float32)
    picture = np.zeros((64, 96, 3), np.uint8)

    def frame(column: int | None) -> np.ndarray:
        cells = np.tile(sorts[0], (8, 12, 1))
        cells[:4] = sorts[1]
        if column is not None:
            cells[2:6, column : column + 3] = sorts[2]
        return cells

    box = np.array([1 / 12, 2 / 8, 4 / 12, 6 / 8])
    search = WindowSearch(picture, frame(1), box)
    rows = [search.find_best_window_and_learn(picture, frame(column)) for column in (1, 7, None)]
    assert [row.like - row.unlike > 0.5 for row in rows] == [True, True, False]
    centre = (rows[1].box[:2] + rows[1].box[2:]) / 2
    assert np.abs(centre - [8.5 / 12, 0.5]).max() < 0.15
    assert search.lookalike < 0.2
    assert rows[0].before > 0.9 and rows[1].before < 0.5  # it is no longer where it was


def test_frames_are_spread_and_hold_both_ends():
    for count, fps in ((5, 24.0), (81, 24.0), (1000, 24.0), (3000, 30.0)):
        picked = frame_numbers_to_look_at(count, fps, None)
        assert picked[0] == 0 and picked[-1] == count - 1 and len(picked) <= 64


def test_overlap_and_choice_of_what_differs():
    union, smaller = overlap_by_union_and_by_smaller(
        np.array([[0, 0, 1, 1], [0.5, 0.5, 1, 1.0]]), np.array([0, 0, 0.5, 1.0])
    )
    np.testing.assert_allclose(union, [0.5, 0.0])
    np.testing.assert_allclose(smaller, [1.0, 0.0])
    rows = np.array([[1, 0], [1, 0], [0, 1], [1, 0]], np.float32)
    assert rows[most_different_rows(rows, 2)].tolist() == [[1, 0], [0, 1]]
