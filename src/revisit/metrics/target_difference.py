"""Target departure: is the returned target missing, moved, doubled, changed or reset?

Evidence: `Overlay`, the returned frames laid over the truth, the first and the last view. The clip's picture
around the target is read as one of several simple pictures made from the reference: the truth; the truth
with the target taken out, or put elsewhere; the first view; the last view. Which of them it is like, and how
much of its difference from the truth each explains, is what the metrics say. What is behind the target is
taken from the first view where the target has moved, and otherwise filled in from both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from revisit.core import Score, Series, Unscored, derived, metric
from revisit.evidence.reference import Overlay, TargetFacts
from revisit.metrics.overlay import CHANGED, channel_sum, dilate_mask, shift_tolerant_lab_distances

FAMILY = "target_departure"  # the group of these metrics, by which users name it

TOLERATED = 5.0  # CIELAB: what a good model and compression do to a blurred picture
LARGEST = 40.0  # CIELAB: a difference beyond it counts no more
OWN = 10.0  # CIELAB: pixels that differ so from what is behind belong to the target
LEAST_PIXELS = 12
FARTHEST = 3.5  # sizes of the target: how far away it is looked for
LEAST_MARK = 0.06  # of the target: a smaller mark leaves nothing to go back to
LIES = 8.0  # CIELAB: an earlier view that differs more around the target, at the median, does not lie where it should
LEAST_CHANGE = 1.0  # CIELAB: a smaller difference than this, on average, has nothing to explain
LEAST_FOUND = 0.3  # how well a target is found elsewhere, and missed at its place, before that is called a move
# What all cards here share.
sign = partial(metric, version=1, higher_is_better=False, needs=(TargetFacts,), suites=("folder",))


def difference_beyond_tolerance(difference: np.ndarray) -> np.ndarray:
    """Differences without what is tolerated, up to the largest that counts."""
    return np.asarray(np.clip(difference - TOLERATED, 0, LARGEST))


def fill_target_from_sides(truth: np.ndarray, target_mask: np.ndarray) -> np.ndarray:
    """(H, W, 3) the truth with the target's place filled in, row by row from both sides."""
    filled = truth.copy()
    columns = np.arange(truth.shape[1])
    for row in np.flatnonzero(target_mask.any(axis=1)):
        background = ~target_mask[row]
        if background.any():
            for channel in range(3):
                filled[row, :, channel] = np.interp(columns, columns[background], truth[row, background, channel])
    return np.asarray(filled)


def mask_centre_and_size(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre and size (x, y) of a mask in pixels."""
    y, x = np.nonzero(mask)
    centre = np.array([x.mean(), y.mean()])
    return centre, np.array([np.ptp(x) + 1.0, np.ptp(y) + 1.0])


@derived(makes=TargetFacts, needs=(Overlay,), version=1)
def derive_target_facts(overlay: Overlay) -> TargetFacts | Unscored:
    """What became of the target in each frame of the overlay."""
    rows = [facts for k in range(len(overlay.index)) if (facts := _facts_of_frame(overlay, k)) is not None]
    if not rows:
        return Unscored("not_followed", "the target does not stand out from the background")
    return TargetFacts(**{name: np.array([row[name] for row in rows]) for name in rows[0]})


def _facts_of_frame(overlay: Overlay, k: int) -> dict[str, float] | None:
    truth, picture, first = overlay.truth[k], overlay.shown[k], overlay.first[k]
    valid, target, was = overlay.valid[k], overlay.here[k], overlay.was[k]
    hole = first if overlay.moved[k] else fill_target_from_sides(truth, dilate_mask(target, 1))
    own = target & valid & (np.linalg.norm(truth - hole, axis=-1) > OWN)
    if own.sum() < LEAST_PIXELS:
        return None
    change = difference_beyond_tolerance(shift_tolerant_lab_distances(picture, truth))
    ring = dilate_mask(own, 3) & ~dilate_mask(own, 1) & valid
    contrast = float(np.linalg.norm(truth - hole, axis=-1)[own].mean())
    facts = {
        "index": overlay.index[k],
        "reference": overlay.reference[k],
        "contrast": contrast,
        "change": float(change[own].mean()),
        "around": float(change[ring].mean()) if ring.any() else 0.0,
    }
    facts["faded"], facts["faded_fit"] = fit_mixture_share_and_explained(picture, truth, hole, own)
    facts |= _state_facts(overlay, k, change)
    facts |= _elsewhere_facts(picture, truth, hole, own, was, bool(overlay.moved[k]))
    facts |= _identity_facts(picture, truth, own, ring)
    return facts


def _state_facts(overlay: Overlay, k: int, change: np.ndarray) -> dict[str, float]:
    """How near the target is to its first and to its last state, where these differ from the truth.

    A state between is one that shows each place of the mark as one of both, or all of it as a mixture. Of a target
    that has moved, only its earlier places speak: its true place is empty in the earlier views, as if it were gone.
    """
    truth, picture = overlay.truth[k], overlay.shown[k]
    near = dilate_mask(overlay.here[k] | overlay.was[k], 2) & overlay.valid[k]
    least = max(LEAST_PIXELS, LEAST_MARK * float(overlay.was[k].sum()))
    ring = dilate_mask(near, 4) & ~near & overlay.valid[k]
    facts: dict[str, float] = {}
    lies: dict[str, bool] = {}
    for name, view, reached in (
        ("first", overlay.first[k], overlay.first_valid[k]),
        ("last", overlay.last[k], overlay.last_valid[k]),
    ):
        region = near & reached
        away = shift_tolerant_lab_distances(view, truth)
        mark = region & (away > CHANGED)
        facts[f"{name}_like"] = facts[f"{name}_fit"] = float("nan")
        lies[name] = bool((ring & reached).sum() >= LEAST_PIXELS and np.median(away[ring & reached]) < LIES)
        if mark.sum() < least or not lies[name]:
            continue
        spoken = mark & ~dilate_mask(overlay.here[k], 1) if overlay.moved[k] else mark
        share, _ = fit_mixture_share_and_explained(
            picture, truth, view, spoken if spoken.sum() >= LEAST_PIXELS else mark
        )
        mixed = explained_difference_share(picture, truth, view, region, share)
        total = float(change[region].sum())
        to_view = difference_beyond_tolerance(shift_tolerant_lab_distances(picture, view))
        remaining = float(np.minimum(change, to_view)[region].sum())
        facts[f"{name}_like"] = share
        facts[f"{name}_fit"] = max(mixed, 1 - remaining / total) if total > LEAST_CHANGE * mark.sum() else 0.0
    both = near & overlay.first_valid[k] & overlay.last_valid[k]
    differ = both & (shift_tolerant_lab_distances(overlay.first[k], overlay.last[k]) > CHANGED)
    facts["nearer_last"] = float("nan")
    if differ.sum() >= LEAST_PIXELS and all(lies.values()):
        apart = [shift_tolerant_lab_distances(picture, view[k])[differ] for view in (overlay.first, overlay.last)]
        to_first, to_last = (difference_beyond_tolerance(distance) + 1.0 for distance in apart)
        facts["nearer_last"] = float((to_first / (to_first + to_last)).mean())
    return facts


def fit_mixture_share_and_explained(
    picture: np.ndarray, truth: np.ndarray, other: np.ndarray, mask: np.ndarray
) -> tuple[float, float]:
    """How far a picture is on its way from the truth to another, 0 to 1, and the share of its difference explained."""
    direction, difference = (other - truth)[mask].astype(float), (picture - truth)[mask].astype(float)
    share = float(np.clip((direction * difference).sum() / max(float((direction * direction).sum()), 1e-6), 0, 1))
    return share, explained_difference_share(picture, truth, other, mask, share)


def explained_difference_share(
    picture: np.ndarray, truth: np.ndarray, other: np.ndarray, mask: np.ndarray, share: float
) -> float:
    """Share of the squared difference from the truth that a mixture of truth and another picture takes away."""
    direction, difference = (other - truth)[mask].astype(float), (picture - truth)[mask].astype(float)
    return 1 - float(((difference - share * direction) ** 2).sum()) / max(float((difference**2).sum()), 1e-6)


def _elsewhere_facts(
    picture: np.ndarray, truth: np.ndarray, hole: np.ndarray, own: np.ndarray, was: np.ndarray, moved: bool
) -> dict[str, float]:
    """Where else the target is found: the shift at which the clip is most more like it than the truth is."""
    centre, size = mask_centre_and_size(own)
    extent = float(size.max())
    height, width = own.shape
    reach = (int(min(FARTHEST * extent, height - 1)), int(min(FARTHEST * extent, width - 1)))
    in_truth, in_clip = shifted_squared_differences((truth, picture), truth, own)
    stands = float((np.minimum(((truth - hole) ** 2).sum(axis=-1), LARGEST**2))[own].sum())
    # more like the target than the truth there, and like it at all
    gain = np.minimum(in_truth - in_clip, stands - in_clip) / max(stands, 1e-6)
    rows, columns = np.nonzero(own)
    # a shift and the one a whole picture less have one place in the tables, and the target fits in after one at most
    y, x = (
        np.where(places.max() + np.arange(n) < n, np.arange(n), np.arange(n) - n)
        for places, n in ((rows, height), (columns, width))
    )
    fits = (rows.min() + y >= 0) & (np.abs(y) <= reach[0]), (columns.min() + x >= 0) & (np.abs(x) <= reach[1])
    gain = np.where(fits[0][:, None] & fits[1][None], gain, -1.0)
    at = np.unravel_index(int(gain.argmax()), gain.shape)
    old = mask_centre_and_size(was)[0] - centre if moved else np.zeros(2)
    return {
        "found": float(np.clip(gain[at], 0, 1.5)),
        "found_x": float(x[at[1]]) / extent,
        "found_y": float(y[at[0]]) / extent,
        "path_x": float(old[0]) / extent,
        "path_y": float(old[1]) / extent,
        "missing": float(np.clip(in_clip[0, 0] / max(stands, 1e-6), 0, 2)),
    }


def shifted_squared_differences(
    pictures: Sequence[np.ndarray], source: np.ndarray, source_mask: np.ndarray
) -> list[np.ndarray]:
    """(H, W) for each picture: squared difference of the source's masked pixels, for each shift (wrapping around)."""
    mask = np.conj(np.fft.rfft2(source_mask.astype(float)))
    colours = [np.conj(np.fft.rfft2(np.where(source_mask, source[..., k], 0.0).astype(float))) for k in range(3)]
    total = float((source[source_mask] ** 2).sum())
    tables = []
    for picture in pictures:
        # sum of (picture - source)^2 over the mask, by the spectra of its three terms
        spectrum = np.fft.rfft2(channel_sum(np.square(picture, dtype=float))) * mask
        for channel, mine in enumerate(colours):
            spectrum -= 2 * np.fft.rfft2(picture[..., channel].astype(float)) * mine
        tables.append(np.asarray(np.maximum(np.fft.irfft2(spectrum, source_mask.shape) + total, 0)))
    return tables


def _identity_facts(picture: np.ndarray, truth: np.ndarray, own: np.ndarray, ring: np.ndarray) -> dict[str, float]:
    """How colour, lightness, pattern and outline of the target differ from the truth's."""
    difference = picture - truth
    light, true = picture[..., 0][own].astype(float), truth[..., 0][own].astype(float)
    spread = float(light.std() * true.std())
    correlation = float(((light - light.mean()) * (true - true.mean())).mean()) / spread if spread > 1 else 0.0
    outside = np.linalg.norm(difference, axis=-1)[ring] if ring.any() else np.zeros(1)
    mean, power = difference[own].mean(axis=0), float((difference[own] ** 2).sum(axis=1).mean())
    return {
        "even": float((mean**2).sum()) / max(power, 1e-6),
        "colour": float(np.hypot(difference[..., 1], difference[..., 2])[own].mean()),
        "lightness": float(np.abs(difference[..., 0])[own].mean()),
        "pattern": correlation,
        "outline": float(outside.mean()),
    }


def finite_median(values: np.ndarray) -> float | None:
    """The median of the numbers among the values; None where there is none."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else None


def _median_score(facts: TargetFacts, units: np.ndarray, value: float | None = None, /, **further: np.ndarray) -> Score:
    """A score, by default the median, with the frames it rests on and the further numbers that tell failures apart."""
    series = Series(frame=facts.index, other=facts.reference, value=np.nan_to_num(units))
    medians = {name: finite_median(column) for name, column in further.items()}
    score = float(np.median(units)) if value is None else value
    return Score(score, units=series, facts={"frames": facts.index, **medians})


@sign(
    id="target_faded", title="Target faded on return", unit="share", range=(0, 1), responds_to=("vanish",),
    blind_to=("a target that hardly stands out from the background", "a target that is gone because it moved"),
)  # fmt: skip
def target_faded(facts: TargetFacts) -> Score | Unscored:
    """How far the target's place is on its way from the target (0) to what is behind it (1), after the return.

    Facts: `fit`, the share of the difference from the truth that this explains, and `missing`, how unlike the
    target its place is.
    """
    further = {"fit": facts.faded_fit, "missing": facts.missing, "change": facts.change, "even": facts.even}
    return _median_score(facts, facts.faded, **further)


@sign(
    id="target_elsewhere", title="Target in another place", unit="sizes", range=(0, None), responds_to=("teleport",),
    blind_to=("a target that is gone", "places further than three and a half of its sizes away"),
)  # fmt: skip
def target_elsewhere(facts: TargetFacts) -> Score | Unscored:
    """How far from its true place the target is found, in its own sizes; 0 where it is not missing from there.

    Facts: `found`, how well it is found; `towards_first`, how far of that is on the way back to its first
    place, where 1 is all the way, for a target that has moved.
    """
    found, missing = finite_median(facts.found) or 0.0, finite_median(facts.missing) or 0.0
    distance = np.hypot(facts.found_x, facts.found_y)
    value = float(np.median(distance)) if min(found, missing) >= LEAST_FOUND else 0.0
    path = np.hypot(facts.path_x, facts.path_y)
    with np.errstate(divide="ignore", invalid="ignore"):
        progress = (facts.found_x * facts.path_x + facts.found_y * facts.path_y) / path**2
    aside = np.hypot(facts.found_x - progress * facts.path_x, facts.found_y - progress * facts.path_y)
    further = {"found": facts.found, "distance": distance, "towards_first": progress, "aside": aside}
    return _median_score(facts, distance, value, **further)


@sign(
    id="target_doubled", title="Second target on return", unit="share", range=(0, 1), responds_to=("duplicate",),
    blind_to=("a second target of another look", "places further than three and a half of its sizes away"),
)  # fmt: skip
def target_doubled(facts: TargetFacts) -> Score | Unscored:
    """How well the target is found at another place although it is at its own, 0 to 1."""
    apart_enough = np.hypot(facts.found_x, facts.found_y) > 0.5
    each = np.clip(facts.found, 0, 1) * np.clip(1 - facts.missing, 0, 1) * apart_enough
    return _median_score(facts, each)


@sign(
    id="target_colour", title="Target recoloured on return", unit="CIELAB", range=(0, None),
    responds_to=("colour_drift",),
    blind_to=("a change of lightness alone", "light that changes over the whole picture"),
)  # fmt: skip
def target_colour(facts: TargetFacts) -> Score | Unscored:
    """Mean difference of hue and chroma from the truth on the target, after the light has been undone."""
    return _median_score(facts, facts.colour, lightness=facts.lightness)


@sign(
    id="target_pattern", title="Target's pattern lost on return", unit="share", range=(0, 2),
    responds_to=("texture_drift",),
    blind_to=("colour", "patterns finer than a pixel of 192"),
)  # fmt: skip
def target_pattern(facts: TargetFacts) -> Score | Unscored:
    """1 - correlation of lightness on the target with the truth's: 0 the same pattern, 1 none in common."""
    return _median_score(facts, 1 - facts.pattern, lightness=facts.lightness)


@sign(
    id="target_outline", title="Target's outline changed on return", unit="CIELAB", range=(0, None),
    responds_to=("shape_drift",),
    blind_to=("a target that shrinks inside of its outline", "a change of shape in depth"),
)  # fmt: skip
def target_outline(facts: TargetFacts) -> Score | Unscored:
    """Mean difference from the truth just outside of the target's outline, after the light has been undone."""
    return _median_score(facts, facts.outline, beyond=facts.around)


@sign(
    id="first_state", title="Target back in its first state", unit="score", range=(0, 1), responds_to=("state_reset",),
    blind_to=("events that leave no mark", "which of several states between first and true is shown"),
)  # fmt: skip
def first_state(facts: TargetFacts) -> Score | Unscored:
    """In the event's mark, how near the clip is to the first view: 1 as at first, 0 as in the truth."""
    value = finite_median(facts.first_like)
    if value is None:
        return Unscored("nothing_happened", "the reference shows the returned target unchanged from the first view")
    return _median_score(facts, facts.first_like, value, fit=facts.first_fit, nearer_last=facts.nearer_last)


@sign(
    id="last_state", title="Target stuck in its last seen state", unit="score", range=(0, 1),
    responds_to=("state_frozen",),
    blind_to=("events that did not begin in view", "which of several states between last and true is shown"),
)  # fmt: skip
def last_state(facts: TargetFacts) -> Score | Unscored:
    """In the mark of what happened since the target was last seen, how near the clip is to that last view."""
    value = finite_median(facts.last_like)
    if value is None:
        return Unscored("nothing_happened", "the reference shows the returned target as it was last seen")
    if finite_median(facts.nearer_last) is None:
        return Unscored("nothing_happened", "the target was last seen unchanged, so stuck and reset look the same")
    return _median_score(facts, facts.last_like, value, fit=facts.last_fit, nearer_last=facts.nearer_last)
