"""Look departure: changes of light, style, sharpness and place, against the reference or within the clip.

Evidence: `Departures`, frame by frame after the camera has been undone. Differences that are the same over
large parts of the picture are light; differences of local structure, which no light explains, are another
place; lost fine detail with the coarse detail kept is blur. `unsteady_light` and `cut_away` need no reference.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from revisit.core import Reason, Score, Series, Unscored, derived, metric
from revisit.evidence.frames import CasePhases, FrameFacts
from revisit.evidence.motion import CutSignal
from revisit.evidence.reference import AppearanceDifference, Departures
from revisit.metrics import overlay
from revisit.metrics.cuts import find_cut_rows

FAMILY = "look_departure"  # the group of these metrics, by which users name it

CELL = 3  # pixels of the halved picture: side of the cells on which looks are compared
WINDOW = 2  # pixels of the halved picture on each side of the window of local structure
NOISE = 6.0  # variance in gray levels squared below which structure is noise
TEXTURE = 4.0  # gray levels: local deviation of a place that can be recognised
UNLIKE = 0.5  # local correlation below which a place is another one
LEAST_CELLS = 12
BESIDE = 0.04  # widths: cameras that are so close see the same cells, if it is the same place
sign = partial(metric, version=1, higher_is_better=False, suites=("folder",))  # what all cards here share
NOT_LAID = Reason("no_overlap", "no frame after the return could be aligned with the reference")


@derived(makes=AppearanceDifference, needs=(Departures,), version=1)
def appearance_difference(departures: Departures) -> AppearanceDifference | Unscored:
    """What each compared frame looks like beside the reference's."""
    n = len(departures.index)
    if not n:
        return Unscored("no_overlap", "no frame of the clip has an aligned frame in the reference")
    lab, chroma, contrast, likeness = np.zeros((n, 3)), np.zeros(n), np.zeros(n), []
    for row in range(n):
        pictures = departures.shown[row], departures.truth[row]
        mine, true = (overlay.rgb_to_lab(halve_by_averaging(picture)) for picture in pictures)
        valid = halve_by_averaging(departures.covered[row]) == 1
        valid = valid if valid.any() else np.ones_like(valid)
        lab[row] = (mine - true)[valid].mean(axis=0)
        colours = [np.hypot(side[..., 1], side[..., 2])[valid].mean() + 1.0 for side in (mine, true)]
        spreads = [side[..., 0][valid].std() + 1.0 for side in (mine, true)]
        chroma[row], contrast[row] = np.log(colours[0] / colours[1]), np.log(spreads[0] / spreads[1])
        likeness.append(local_correlation_by_cell(mine[..., 0], true[..., 0], valid))
    floor = 0.25  # gray levels per pixel: keeps a black frame from having a ratio of noise
    detail = np.log(np.maximum(departures.clip_detail, floor) / np.maximum(departures.reference_detail, floor))
    paths = overlay.camera_paths_from_steps(departures)
    # Whether the chained steps of both cameras lead to the same place; they do not where a chain is broken.
    beside = np.zeros(n, bool) if paths is None else np.linalg.norm(paths[0] - paths[1], axis=1) < BESIDE
    joined = np.where(overlay.trusted_registration_mask(departures), departures.offset_share, 0.0)
    return AppearanceDifference(departures.index, joined, beside, lab, np.stack(likeness), chroma, contrast, detail)


def halve_by_averaging(picture: np.ndarray) -> np.ndarray:
    """The picture at half its size, as means of 2 x 2 pixels."""
    height, width = (n // 2 * 2 for n in picture.shape[:2])
    even = np.asarray(picture[:height, :width], np.float32)
    return np.asarray((even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]) / 4)


def local_correlation_by_cell(a: np.ndarray, b: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """(rows, columns) correlation of two gray pictures around each cell, the best within a pixel; nan where flat."""
    shifted = [np.roll(a, shift, axis=(0, 1)) * b for shift in overlay.NEIGHBOURS]
    means = overlay.box_blur_float32(np.stack([a, a * a, b, b * b, *shifted], axis=-1), WINDOW)
    mean_a, mean_aa, mean_b, mean_bb, *products = means.transpose(2, 0, 1)
    deviation_a, deviation_b = (np.sqrt(np.maximum(m2 - m**2, 0)) for m, m2 in ((mean_a, mean_aa), (mean_b, mean_bb)))
    best = np.full(a.shape, -1.0)
    for shift, product in zip(overlay.NEIGHBOURS, products, strict=True):
        mean, deviation = (np.roll(v, shift, axis=(0, 1)) for v in (mean_a, deviation_a))
        best = np.maximum(best, (product - mean * mean_b) / (deviation * deviation_b + NOISE / 4))
    usable = valid & (np.maximum(deviation_b, deviation_a) > TEXTURE / 2)
    return np.asarray(np.where(usable, best, np.nan)[CELL // 2 :: CELL, CELL // 2 :: CELL])


@sign(
    id="light_departure", title="Light against the reference", unit="CIELAB", range=(0, None),
    needs=(AppearanceDifference, CasePhases), responds_to=("lighting",),
    blind_to=("content", "light that changes from frame to frame", "a clip that cannot be aligned with the reference"),
)  # fmt: skip
def light_departure(looks: AppearanceDifference, phases: CasePhases) -> Score | Unscored:
    """Length of the median shift of mean CIELAB from the reference after the return; 0 is the same light."""
    rows = (looks.index >= phases.first_returned) & (looks.joined > 0)
    if not rows.any():
        return Unscored(NOT_LAID)
    shift = np.median(looks.lab[rows], axis=0)
    units = Series(frame=looks.index[rows], value=np.linalg.norm(looks.lab[rows], axis=1))
    facts = {"lightness": float(shift[0]), "a": float(shift[1]), "b": float(shift[2])}
    return Score(float(np.linalg.norm(shift)), units=units, facts=facts)


@sign(
    id="place_departure", title="Place replaced", unit="share", range=(0, 1), needs=(AppearanceDifference, CasePhases),
    responds_to=("background",),
    blind_to=("light", "colour", "places without texture", "a clip that cannot be aligned with the reference"),
)  # fmt: skip
def place_departure(looks: AppearanceDifference, phases: CasePhases) -> Score | Unscored:
    """Share of the textured cells whose structure is not the reference's after the return, median over frames."""
    back = looks.index >= phases.first_returned
    joined = back & (looks.joined > 0)
    # A place that is another altogether joins with nothing; that its camera went the same way must speak for it.
    rows = np.flatnonzero(joined if joined.any() else back & looks.beside).tolist()
    cells = {row: textured_cell_likeness(looks, row) for row in rows}
    shares = {row: float((some < UNLIKE).mean()) for row, some in cells.items() if len(some) >= LEAST_CELLS}
    if not shares:
        return Unscored(NOT_LAID)
    value = np.array(list(shares.values()))
    return Score(float(np.median(value)), units=Series(frame=looks.index[list(shares)], value=value))


def textured_cell_likeness(looks: AppearanceDifference, row: int) -> np.ndarray:
    """Likeness of the cells of a frame that can be recognised."""
    cells = looks.likeness[row]
    return np.asarray(cells[np.isfinite(cells)])


@sign(
    id="style_departure", title="Style against the reference", unit="log ratio", range=(0, None),
    needs=(AppearanceDifference, CasePhases), responds_to=("style",),
    blind_to=("a style with the same chroma and detail", "content"),
)  # fmt: skip
def style_departure(looks: AppearanceDifference, phases: CasePhases) -> Score | Unscored:
    """Mean |log ratio| of chroma and of detail at three scales against the reference, after the return.

    Detail is taken relative to the contrast of the whole picture, so that a dimmer light is not another style.
    """
    rows = looks.index >= phases.first_returned
    if not rows.any():
        return Unscored(NOT_LAID)
    detail = looks.detail[rows] - looks.contrast[rows, None]
    value = (np.abs(detail).mean(axis=1) + np.abs(looks.chroma[rows])) / 2
    facts = {"chroma": float(np.median(looks.chroma[rows])), "detail": np.median(detail, axis=0)}
    return Score(float(np.median(value)), units=Series(frame=looks.index[rows], value=value), facts=facts)


@sign(
    id="sharpness_departure", title="Fine detail lost", unit="log ratio", range=(None, None),
    needs=(AppearanceDifference,),
    responds_to=("blur",),
    blind_to=("content", "detail that is wrong"),
)  # fmt: skip
def sharpness_departure(looks: AppearanceDifference) -> Score | Unscored:
    """Median over all frames of how much more the finest detail lost than the coarsest, against the reference.

    In natural logarithms: 0.7 is half of the detail. The facts hold the same early and late in the clip.
    """
    if len(looks.index) < 4:
        return Unscored("too_short", f"only {len(looks.index)} frames could be compared with the reference")
    loss = looks.detail[:, -1] - looks.detail[:, 0]
    n = len(loss)
    early, late = float(np.median(loss[n // 8 : n // 2])), float(np.median(loss[-max(2, n // 6) :]))
    facts = {"early": early, "late": late}
    return Score(float(np.median(loss[1:])), units=Series(frame=looks.index, value=loss), facts=facts)


@sign(
    id="structure_decay", title="Structure decays", unit="share", range=(-1, 1), needs=(AppearanceDifference,),
    responds_to=("collapse",),
    blind_to=("light", "a break from one frame to the next"),
)  # fmt: skip
def structure_decay(looks: AppearanceDifference) -> Score | Unscored:
    """How much less of the reference's structure the last sixth of the clip keeps than its first third.

    Structure kept is the median local correlation of textured cells; 0 where the frames cannot be joined though
    the cameras went the same way. The first frames are left out: models are given them.
    """
    rows = np.flatnonzero((looks.joined > 0) | looks.beside)
    similarity = np.array([median_structure_likeness(looks, int(row)) for row in rows])
    n = len(looks.index)
    early, late = (rows >= n // 8) & (rows < n // 3), rows >= n - max(2, n // 6)
    if not early.any() or not late.any():
        return Unscored("no_overlap", "at the start or the end of the clip its camera is not where the reference's is")
    units = Series(frame=looks.index[rows], value=1 - similarity)
    return Score(float(np.clip(np.median(similarity[early]) - np.median(similarity[late]), -1, 1)), units=units)


def median_structure_likeness(looks: AppearanceDifference, row: int) -> float:
    """Median local correlation of a frame, 0 where it is not joined with the reference or shows no texture."""
    cells = textured_cell_likeness(looks, row)
    return float(max(np.median(cells), 0.0)) if looks.joined[row] > 0 and len(cells) >= LEAST_CELLS else 0.0


@sign(
    id="unsteady_light", title="Light from frame to frame", unit="gray levels", range=(0, 255), needs=(FrameFacts,),
    responds_to=("flicker",),
    blind_to=("flicker of parts that cancel out", "flicker in less than half of the frames", "slow change of light"),
)  # fmt: skip
def unsteady_light(frames: FrameFacts) -> Score | Unscored:
    """Median |second difference| of mean luma, in gray levels of 255: a cut or a turn of the light does not count."""
    if len(frames.index) < 5:
        return Unscored("too_short", f"flicker needs at least five frames; there are {len(frames.index)}")
    bend = 255 * np.abs(np.diff(np.asarray(frames.luma, dtype=float), n=2)) / 2
    return Score(float(np.median(bend)), units=Series(frame=frames.index[1:-1], value=bend))


@sign(
    id="cut_away", title="Time cut away", unit="share", range=(0, 1), needs=(CutSignal,), responds_to=("cut",),
    blind_to=("slow morphs and fades", "a single strange frame", "what is shown meanwhile"),
)  # fmt: skip
def cut_away(signal: CutSignal, *, threshold: float = 0.5, apart: float = 0.2) -> Score | Unscored:
    """Share of the clip between a cut and the cut back, or the end: 0 without a cut."""
    if not len(signal.index):
        return Unscored("too_short", "finding a cut needs at least two frames")
    rows = find_cut_rows(signal.score, signal.seconds, threshold, apart)
    edges = [int(signal.index[row]) for row in rows]
    frames = int(signal.index[-1]) + 1
    spans = list(zip(edges[::2], [*edges[1::2], frames], strict=False))
    share = sum(end - start for start, end in spans) / frames
    return Score(min(share, 1.0), raw=float(signal.score.max()), facts={"frames": edges})
