"""The target gate with a network's eyes: what each look says, and what they say together."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from revisit.core import GateResult, InvalidEvidence
from revisit.evidence.target import HIDDEN, RETURNED, VISIBLE, TargetLooks
from revisit.metrics.target_gate import target_phases, target_return, target_sight
from revisit.metrics.target_looks import LookRule, frame_says
from revisit.metrics.target_return import target_reappearance
from revisit.observers.target_presence import (
    WindowSearch,
    choose_looks,
    in_box,
    in_windows,
    most_different,
    overlap,
    windows,
)
from tests.metrics.test_target import BOX, plain_track


def seen(like: np.ndarray, margin: np.ndarray, lookalike: float = 0.5, before: float = 0.5) -> TargetLooks:
    count = len(like)
    return TargetLooks(
        index=3 * np.arange(count), seconds=np.arange(count) / 8, like=like, unlike=like - margin, first=like,
        before=np.full(count, before), box=np.tile(np.array(BOX), (count, 1)), colour=np.ones(count),
        lookalike=lookalike, views=1, maker="a network",
    )  # fmt: skip


def asked(looks: TargetLooks) -> GateResult:
    track = plain_track(np.full(3 * len(looks.index), 0.8))
    verdict = target_return(target_sight.fn(track, looks))
    assert isinstance(verdict, GateResult)
    return verdict


def levels(*stretches: tuple[int, float, float]) -> TargetLooks:
    """Looks with a likeness and a margin, so many of each."""
    like, margin = (np.concatenate([np.full(one[0], one[k]) for one in stretches]) for k in (1, 2))
    return seen(like, margin)


THERE, GONE, LIKE_IT = (0.75, 0.3), (0.2, -0.2), (0.6, 0.05)


@pytest.mark.parametrize(
    ("looks", "label"),
    [
        (levels((30, *THERE)), "never hidden"),
        (levels((10, *THERE), (10, *GONE), (10, *THERE)), "hidden, returned"),
        (levels((10, *THERE), (20, *GONE)), "hidden, not returned"),
        (levels((10, *THERE), (10, *GONE), (10, *LIKE_IT)), "cannot tell"),  # another person at the same place
        (levels((10, *THERE), (1, *GONE), (19, *THERE)), "never hidden"),  # one look: a passer-by
        (levels((10, *THERE), (20, 0.45, 0.05)), "cannot tell"),  # neither seen nor gone
        (levels((30, 0.75, 0.05)), "cannot tell"),  # hardly told from its background in the first frame
    ],
)
def test_verdicts(looks, label):
    verdict = asked(looks)
    assert verdict.label == label
    assert verdict.facts["by"] == "a network" and verdict.facts["judgeable"] == (label != "cannot tell")


def test_a_network_that_looks_decides_and_not_the_layout():
    track = plain_track(np.full(90, 0.8))  # the layout sees it all along: its surroundings stand in for it
    looks = levels((10, *THERE), (10, *GONE), (10, *THERE))
    sight = target_sight.fn(track, looks)
    phases = target_phases.fn(sight)
    assert [int(phases.state[k]) for k in (0, 45, 80)] == [VISIBLE, HIDDEN, RETURNED]
    assert target_reappearance(sight, phases).value == 1.0


def test_beside_a_look_alike_a_faint_sight_is_none():
    looks = levels((6, 0.9, 0.2), (24, 0.7, 0.05))
    assert asked(looks).label == "never hidden"
    assert asked(dataclasses.replace(looks, lookalike=0.8)).label == "cannot tell"


def test_what_goes_on_changing_in_its_place_is_still_there():
    """A beaker that foams grows unlike all of its views; what it looked like one look before it still looks like."""
    looks = levels((10, *THERE), (20, 0.45, 0.12))
    assert asked(looks).label == "cannot tell"
    goes_on = dataclasses.replace(looks, before=np.full(30, 0.95))
    assert asked(goes_on).label == "never hidden"
    swapped = goes_on.before.copy()
    swapped[10] = 0.5  # from one look to the next it became something else
    assert asked(dataclasses.replace(goes_on, before=swapped)).label == "cannot tell"
    box = goes_on.box.copy()
    box[10:] = np.array(BOX) + 0.5  # like the look before, and elsewhere
    assert asked(dataclasses.replace(goes_on, box=box)).label == "cannot tell"
    faded = levels((10, *THERE), (20, 0.45, 0.05))  # what cannot be told from the background may be it
    assert asked(dataclasses.replace(faded, before=np.full(30, 0.95))).label == "cannot tell"
    away = levels((10, *THERE), (10, *GONE), (10, 0.45, 0.12))  # nothing to go on from
    assert asked(dataclasses.replace(away, before=np.full(30, 0.95))).label == "cannot tell"


def test_confidence_is_the_room_around_the_thresholds():
    assert asked(levels((30, *THERE))).facts["confidence"] == 1.0
    close = asked(levels((10, *THERE), (10, *GONE), (10, 0.6, 0.175)))
    assert close.label == "hidden, returned" and close.facts["confidence"] == 0.5
    assert asked(levels((10, *THERE), (10, *GONE), (10, 0.6, 0.155))).label == "cannot tell"


def test_the_first_frame_shows_the_target_by_definition():
    assert frame_says(levels((5, *GONE)), LookRule())[0] == 1


def test_broken_looks_are_told():
    good = levels((30, *THERE))
    for name, broken in (("like", good.like[:4]), ("like", np.full(30, np.nan)), ("index", good.index[::-1])):
        with pytest.raises(InvalidEvidence):
            dataclasses.replace(good, **{name: broken})


def test_windows_of_a_descriptor_are_means_of_their_cells():
    cells = np.random.default_rng(0).normal(size=(7, 11, 5)).astype(np.float32)
    at = windows((7, 11), np.array([0.3, 0.4]))
    made = in_windows(cells, at)
    for row in (0, len(at) // 2, -1):
        top, left, bottom, right = at[row]
        mean = cells[top:bottom, left:right].mean(axis=(0, 1))
        np.testing.assert_allclose(made[row], mean / np.linalg.norm(mean), atol=1e-4)
    whole = cells[2:4, 3:7].mean(axis=(0, 1))
    np.testing.assert_allclose(
        in_box(cells, np.array([3 / 11, 2 / 7, 7 / 11, 4 / 7])), whole / np.linalg.norm(whole), atol=1e-5
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
    rows = [search.look(picture, frame(column)) for column in (1, 7, None)]
    assert [row.like - row.unlike > 0.5 for row in rows] == [True, True, False]
    centre = (rows[1].box[:2] + rows[1].box[2:]) / 2
    assert np.abs(centre - [8.5 / 12, 0.5]).max() < 0.15
    assert search.lookalike < 0.2
    assert rows[0].before > 0.9 and rows[1].before < 0.5  # it is no longer where it was


def test_frames_are_spread_and_hold_both_ends():
    for count, fps in ((5, 24.0), (81, 24.0), (1000, 24.0), (3000, 30.0)):
        picked = choose_looks(count, fps, None)
        assert picked[0] == 0 and picked[-1] == count - 1 and len(picked) <= 64


def test_overlap_and_choice_of_what_differs():
    union, smaller = overlap(np.array([[0, 0, 1, 1], [0.5, 0.5, 1, 1.0]]), np.array([0, 0, 0.5, 1.0]))
    np.testing.assert_allclose(union, [0.5, 0.0])
    np.testing.assert_allclose(smaller, [1.0, 0.0])
    rows = np.array([[1, 0], [1, 0], [0, 1], [1, 0]], np.float32)
    assert most_different(rows, 2).tolist() == [[1, 0], [0, 1]]
