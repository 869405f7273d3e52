"""The view gate: did the first view leave the frame, for how long, and did it come back (docs/view-gate.md)?

How much is lost is measured as a strip: the widest band along one side of the first view that is outside the
frame. A turn by a quarter of the picture loses a quarter on one side; the same area lost to a slow zoom is a
thin rim all around, behind which nothing disappears. So the rim of a slow zoom is taken off the strip of a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from revisit.core import GateResult, Series, derived, gate
from revisit.evidence.views import ViewLinks, ViewPhases, ViewRelations
from revisit.metrics.answers import cache_for_last_record
from revisit.metrics.margins import UNSURE, add_confidence_or_make_unsure
from revisit.metrics.rows import true_runs

VERIFIED = 10  # points: frames of different places agree on 6 at most
SUPPORTED = 0.15  # of the textured cells: fewer, and one thing was recognised, not the view
LEADS = 0.12  # structure: the best shift of frames of different places leads the next by 0.11 at most
CORRELATES = 0.25
LEFT = 0.25  # of the width or height, on one side: a turn of 15 degrees at a field of view of 60
BACK = 0.5  # returned: at most half of the strip that was lost is still missing,
MOST_MISSING = 0.4  # and never more than this
SURE = 0.4  # confidence of a direct cue at which one sample is enough: 16 points, or a lead of 0.16
MOSTLY_UNKNOWN = 0.5
GRID, FINE_GRID = 20, 80  # cells a side in which loss is counted; the finer one where a verdict is tried for its margin
STILL = 0.02  # nothing moved: lost strips below the resolution of the cues
STILL_CHANGE = 0.01  # and grey levels differ by less than one in a hundred on average
RESTS = 0.05  # lost strips of a camera that rests, from sample to sample and from the first one on
MOSTLY_FOLLOWED = 0.75  # share of neighbouring samples that must be joined before a camera is said to rest
CUT_CHANGE = 0.1  # mean change of grey levels from sample to sample: from here on a cut, and not something that grows
COVERED = "covered, not left"
STEP = 0.1  # of margin: thresholds of recognition and of return a tenth higher or lower,
STEP_OF_LEFT = 0.05  # or that of leaving a twentieth

VISIBLE, AWAY, RETURNED, UNKNOWN = 0, 1, 2, -1


@lru_cache(maxsize=2)
def _cell_middles(cells: int) -> np.ndarray:
    """(3, cells * cells) homogeneous positions of the middles of so many cells a side, row by row."""
    at = (np.arange(cells) + 0.5) / cells
    x, y = (g.ravel() for g in np.meshgrid(at, at))
    return np.stack([x, y, np.ones_like(x)])


def share_inside_and_lost_strip(warp: np.ndarray, cells: int = GRID) -> tuple[np.ndarray, np.ndarray]:
    """(share of the area inside the other frame, widest strip along one side outside it) under warps (..., 3, 3)."""
    moved = np.asarray(warp, float) @ _cell_middles(cells)
    u, v, depth = moved[..., 0, :], moved[..., 1, :], moved[..., 2, :]
    if not (depth == 1).all():  # of a similarity they all are
        safe = np.where(np.abs(depth) < 1e-9, 1e-9, depth)
        u, v = u / safe, v / safe
    inside = (u >= 0) & (u <= 1) & (v >= 0) & (v <= 1) & (depth > 0)
    grid = inside.reshape(*inside.shape[:-1], cells, cells).astype(np.float32)
    ones = np.ones(cells, np.float32)
    strips = []
    per_column, per_row = ones @ grid, grid @ ones  # whole numbers
    for counts in (per_column, per_row):  # a line is lost when all but a rest of it is outside
        outside = counts.astype(float) / cells < 0.1
        strips += [np.cumprod(outside, axis=-1).sum(axis=-1), np.cumprod(outside[..., ::-1], axis=-1).sum(axis=-1)]
    return per_row.astype(float).sum(axis=-1) / cells**2, np.max(strips, axis=0) / cells


def slow_zoom_rim(warp: np.ndarray) -> np.ndarray:
    """The strip that zooming in takes off every side under affine warps (..., 3, 3), where the zoom is slow.

    A zoom by a third takes an eighth off each side. One that would count as leaving by itself is not slow and has no
    rim; in between the rim grows and shrinks evenly, so that no verdict hangs on a small difference.
    """
    scale = np.sqrt(np.abs(np.linalg.det(np.asarray(warp, float)[..., :2, :2])))
    rim = (1 - 1 / np.maximum(scale, 1.0)) / 2
    return np.asarray(np.clip(LEFT - rim, 0.0, rim))


def strip_lost_to_turns(relations: ViewRelations) -> np.ndarray:
    """(N,) the strip of the first view that is lost in each frame, without the rim of a slow zoom; nan as in `lost`."""
    return np.asarray(np.maximum(relations.lost[0] - slow_zoom_rim(relations.warp[0]), 0.0))


@derived(makes=ViewRelations, needs=(ViewLinks,), version=1)
def derive_view_relations(links: ViewLinks) -> ViewRelations:
    """What both cues and the chain say of every pair of sampled frames."""
    return view_relations(links)


@cache_for_last_record  # two gates try the same thresholds
def view_relations(links: ViewLinks, factor: float = 1.0, first_only: bool = False) -> ViewRelations:
    """The relations with all thresholds of recognition times a factor; on request only those of the first frame."""
    n = len(links.index)
    by_points = (links.inliers >= factor * VERIFIED) & (links.support >= factor * SUPPORTED)
    by_structure = (links.lead >= factor * LEADS) & (links.structure >= factor * CORRELATES)
    np.fill_diagonal(by_points, True)
    shifts = np.tile(np.eye(3), (n, n, 1, 1))
    shifts[..., :2, 2] = links.shift
    warp = np.where(by_points[..., None, None], links.warp, shifts).astype(float)
    seen = by_points | by_structure
    rows = np.arange(min(n, 1) if first_only else n)
    chained, reached = shortest_chain_warps_and_reached(seen, links.inliers, links.lead, warp, rows)
    warp = np.where(seen[rows][..., None, None], warp[rows], chained)
    joined = seen[rows] | reached
    share, lost = np.full(joined.shape, np.nan), np.full(joined.shape, np.nan)
    share[joined], lost[joined] = share_inside_and_lost_strip(warp[joined], FINE_GRID if first_only else GRID)
    agreement = 1.0 if first_only else _cue_agreement(links, by_points & by_structure & ~np.eye(n, dtype=bool))
    strength = np.maximum(by_points * np.clip(links.inliers / 40, 0, 1), by_structure * np.clip(links.lead / 0.4, 0, 1))
    return ViewRelations(
        index=links.index, time=links.time, seen=seen, lost=lost,
        share=share, warp=warp, confidence=strength.astype(float), agreement=agreement,
    )  # fmt: skip


def _cue_agreement(links: ViewLinks, both: np.ndarray) -> float:
    """The share of the pairs joined by both cues on which they agree."""
    apart = np.abs(share_inside_and_lost_strip(links.warp[both])[1] - np.abs(links.shift[both]).max(axis=-1))
    return float((apart < LEFT).mean()) if both.any() else 1.0


def shortest_chain_warps_and_reached(
    seen: np.ndarray, inliers: np.ndarray, lead: np.ndarray, warp: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Warps (S, N, 3, 3) along the shortest chains of strong links from some frames, and whether there is one."""
    n, every = len(seen), np.arange(len(starts))
    cost = np.where(seen, 1.0 + np.minimum(20.0 / np.maximum(inliers, 1), 2.0 / np.maximum(lead, 0.1)), np.inf)
    paths = np.tile(np.eye(3), (len(starts), n, 1, 1))
    far = np.full((len(starts), n), np.inf)
    far[every, starts] = 0.0
    visited = np.zeros(far.shape, bool)
    for _ in range(n):
        k = np.where(visited, np.inf, far).argmin(axis=1)  # the nearest frame that each start has not passed yet
        reached = np.isfinite(far[every, k]) & ~visited[every, k]
        visited[every[reached], k[reached]] = True
        through = far[every, k][:, None] + cost[k]
        start, end = np.nonzero((through < far) & ~visited & reached[:, None])
        far[start, end] = through[start, end]
        paths[start, end] = warp[k[start], end] @ paths[start, k[start]]
    return paths, visited


def view_states(
    relations: ViewRelations, i: int, threshold: float = LEFT, lost: np.ndarray | None = None
) -> np.ndarray:
    """(N,) of the view of frame i in each frame: VISIBLE, AWAY or UNKNOWN, by the strips lost.

    Visible takes a direct cue. Away: a cue or the chain shows a strip lost, or nothing joins the frames at
    all. Unknown: by the chain the view should be there, but no cue recognises it.
    """
    lost, seen = relations.lost[i] if lost is None else lost, relations.seen[i]
    with np.errstate(invalid="ignore"):
        is_away = np.isnan(lost) | (lost >= threshold)
    return np.asarray(np.where(is_away, AWAY, np.where(seen, VISIBLE, UNKNOWN)))


def drop_uncertain_single_samples(mask: np.ndarray, certain: np.ndarray) -> np.ndarray:
    """The mask without single samples that are not certain."""
    mask_out = np.array(mask, bool)
    for start, end in true_runs(mask):
        if end - start == 1 and not certain[start]:
            mask_out[start] = False
    return mask_out


@derived(makes=ViewPhases, needs=(ViewRelations,), version=2)
def view_phases(relations: ViewRelations) -> ViewPhases:
    """Share of the first view in each sampled frame, and whether it is visible, away or returned."""
    return phases_of_first_view(relations)


def phases_of_first_view(relations: ViewRelations, factor: float = 1.0, threshold: float = LEFT) -> ViewPhases:
    """The phases; a larger factor asks for more before a sample counts by itself, and for less missing on return."""
    if not len(relations.index):
        return ViewPhases(relations.index, relations.time, np.zeros(0), np.zeros(0, np.int64))
    state = view_states(relations, 0, threshold, strip_lost_to_turns(relations))
    sure = relations.confidence[0] >= factor * SURE
    away = drop_uncertain_single_samples(state == AWAY, sure)
    phase = np.where(away, AWAY, np.where(state == VISIBLE, VISIBLE, UNKNOWN))
    if away.any():
        after = np.arange(len(state)) > away.argmax()
        phase[after & (phase == VISIBLE)] = UNKNOWN  # on the way back: less than half of the lost strip
        phase[drop_uncertain_single_samples(_samples_near_again(relations, away, factor), sure)] = RETURNED
    share = np.where(phase == UNKNOWN, np.nan, np.nan_to_num(relations.share[0], nan=0.0))
    return ViewPhases(index=relations.index, time=relations.time, share=share, phase=phase.astype(np.int64))


def _samples_near_again(relations: ViewRelations, away: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Samples after the first one away that a cue recognises, with most of the lost strip back in the frame."""
    lost = np.nan_to_num(strip_lost_to_turns(relations), nan=1.0)
    worst = np.maximum.accumulate(np.where(away, lost, 0.0))
    near = lost <= np.minimum(BACK * worst, MOST_MISSING) / factor
    return np.asarray((np.arange(len(away)) > away.argmax()) & relations.seen[0] & near)


@gate(
    id="view_return", version=5, title="The first view leaves and returns", needs=(ViewLinks, ViewRelations, ViewPhases)
)
def view_return(links: ViewLinks, relations: ViewRelations, phases: ViewPhases) -> GateResult:
    """Whether the first view left the frame and came back, when, and for how long; `confidence` as in `margins.py`."""

    def verdicts_at_other_thresholds(steps: int) -> Iterator[GateResult]:
        for relations, phases, _ in readings_at_other_thresholds(links, steps):
            yield _view_verdict(links, relations, phases)

    return add_confidence_or_make_unsure(_view_verdict(links, relations, phases), verdicts_at_other_thresholds)


def readings_at_other_thresholds(links: ViewLinks, steps: int) -> Iterator[tuple[ViewRelations, ViewPhases, float]]:
    """Relations and phases with thresholds so many steps off, and the factor of the threshold of leaving."""
    finely = partial(view_relations, links, first_only=True)
    for factor in (1 + steps * STEP, 1 - steps * STEP):
        yield finely(factor), phases_of_first_view(finely(factor), factor), 1.0
    for factor in (1 + steps * STEP_OF_LEFT, 1 - steps * STEP_OF_LEFT):
        yield finely(1.0), phases_of_first_view(finely(1.0), threshold=LEFT * factor), factor


def _view_verdict(links: ViewLinks, relations: ViewRelations, phases: ViewPhases) -> GateResult:
    if len(links.index) < 3:
        return GateResult(
            "unsure", UNSURE, f"only {len(links.index)} frames: leaving and returning needs at least three"
        )
    phase, lost = phases.phase, strip_lost_to_turns(relations)
    units = Series(frame=links.index, seconds=links.time, value=np.nan_to_num(phases.share, nan=-1.0), phase=phase)
    facts: dict[str, object] = {
        "left_share": round(float(1 - np.nanmin(phases.share)), 3),
        "lost_strip": round(float(np.nan_to_num(lost, nan=1.0)[phase != UNKNOWN].max()), 3),
        "cue_agreement": round(relations.agreement, 3),
        "unknown_share": round(float((phase == UNKNOWN).mean()), 3),
        "attached_share": round(links.attached, 3),
    }
    say = partial(GateResult, facts=facts, units=units)
    joined = np.diagonal(relations.seen, 1)
    if joined.mean() < 0.5 and np.median(links.points) < 3 * VERIFIED:
        return say("unsure", UNSURE, "too little texture: most neighbouring frames cannot be matched")
    away = phase == AWAY
    if not away.any():
        return _verdict_without_absence(links, lost, phase, say)
    first = int(away.argmax())
    facts["first_away_frame"] = int(links.index[first])
    facts["away_seconds"] = round(_seconds_of_samples(away, links.time), 3)
    if is_view_covered(links, relations, away):
        since = f"what it shows was covered or replaced from frame {links.index[first]} on"
        return say("closed", COVERED, f"the camera rests; {since}, and the first view never left")
    replaced = bool(np.isnan(lost[away]).all())
    departure = f"{'was replaced' if replaced else 'left'} at frame {links.index[first]}"
    returned = phase == RETURNED
    if not returned.any():
        weakly = _samples_near_again(relations, away)
        if weakly.any():
            reappearance = (
                f"is recognised again at frame {links.index[int(weakly.argmax())]}, but too weakly to be sure"
            )
            return say("unsure", UNSURE, f"the first view {departure} and {reappearance}")
        why = " (no motion joins what follows to it: a cut, or a picture that dissolves)" if replaced else ""
        return say("closed", "left, not returned", f"the first view {departure} and was not seen again{why}")
    back = int(returned.argmax())
    facts["first_return_frame"] = int(links.index[back])
    facts["returned_share"] = round(float(phases.share[returned].max()), 3)
    if replaced:
        reappearance = (
            f"the first view {departure} and shows again at frame {links.index[back]}, but no motion joins them"
        )
        return say("unsure", UNSURE, f"{reappearance}: a cut away and back, or a turn too fast to follow")
    return say("open", "left, returned")


def is_view_covered(links: ViewLinks, relations: ViewRelations, away: np.ndarray) -> bool:
    """Whether a resting camera's view was covered or replaced bit by bit: nothing of it moved, and there was no cut."""
    lost = relations.lost[0]
    if np.isfinite(lost[away]).any() or np.nanmax(lost) > RESTS:
        return False  # motion took the view away
    before = np.arange(len(away) - 1)
    followed, by_points = relations.seen[before, before + 1], links.inliers[before, before + 1] >= VERIFIED
    by_shift = np.abs(links.shift[before, before + 1]).max(axis=-1)
    steps = np.where(by_points, share_inside_and_lost_strip(links.warp[before, before + 1])[1], by_shift)
    if followed.mean() < MOSTLY_FOLLOWED or np.max(steps[followed], initial=0.0) > RESTS:
        return False
    return bool(links.change[max(int(away.argmax()) - 1, 0)] < CUT_CHANGE)


def _seconds_of_samples(mask: np.ndarray, time: np.ndarray) -> float:
    """Time covered by the marked samples, each standing for half the way to its neighbours."""
    midpoints = (time[1:] + time[:-1]) / 2
    return float(np.diff(np.r_[time[0], midpoints, time[-1]])[mask].sum())


def _verdict_without_absence(
    links: ViewLinks, lost: np.ndarray, phase: np.ndarray, say: Callable[..., GateResult]
) -> GateResult:
    """The verdict where no lasting stretch shows the first view gone."""
    unknown = float((phase == UNKNOWN).mean())
    if unknown > MOSTLY_UNKNOWN:
        should = f"in {unknown:.0%} of the frames the first view should be visible by the camera motion"
        return say("unsure", UNSURE, f"{should}, but it is not recognised")
    if np.nan_to_num(lost).max() <= STILL and links.change.max(initial=0) < STILL_CHANGE:
        verdict = say("closed", "never left", "the camera is frozen: nothing moves")
        return replace(verdict, facts={**verdict.facts, "frozen": True})
    return say("closed", "never left", "the first view never left the frame")
