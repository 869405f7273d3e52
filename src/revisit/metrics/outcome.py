"""Outcome: does the returned view show what happened while it was out of sight?

Evidence: `PairedViews`, small pictures of the clip and of a reference that shows the truth, and the
phases. The reference's return is compared with the reference's first view: where they differ lies the
event's mark. There, the clip's return looks like the truth, like the first view (the world was reset), or like neither.
Everything is compared after blurring and at the best small shift, because a camera that comes back a few pixels off is
not a wrong outcome.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from revisit.core import Reason, Score, Series, Unscored, metric
from revisit.evidence.frames import CasePhases
from revisit.evidence.reference import PairedViews
from revisit.metrics.answers import cache_recent_results
from revisit.metrics.overlay import box_blur, channel_mean, rolled_values, row_medians

BLUR = 2  # pixels on each side: hides noise and shifts below the search's step
REACH = 4  # steps of 2 pixels: shifts of up to a twentieth of a picture 160 pixels wide
LOWEST_USUAL = 4.0  # gray levels: compression and noise alone change a blurred picture by less
CONTRAST_SHARE = 0.5  # of the picture's own contrast: different views differ by more than all of it
LOWEST_CHANGE = 20.0  # gray levels: a change that an eye notices at a glance
TIMES_USUAL = 4.0  # a mark differs so many times more than the median of the picture does
SMALLEST_MARK = 0.002  # of the picture: 5 x 6 pixels of 160 x 90
LARGEST_MARK = 0.5  # of the picture: a larger one is another view, not an event in this one
BACKGROUND_SHARE = 0.5  # of the event's own change: with more around it the event cannot be told apart


@dataclass(frozen=True)
class Mark:
    """Where the reference's return differs from its first view."""

    first: np.ndarray  # (H, W, 3) the first view, shifted onto the return
    back: np.ndarray  # (H, W, 3) the return
    row: int  # of that return
    inside: np.ndarray  # (H, W) the mark
    around: np.ndarray  # (H, W) the rest, clear of the mark and of the edge
    change: float  # mean difference inside the mark, gray levels


def mean_channel_difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(H, W) mean absolute difference over the channels."""
    return channel_mean(np.abs(a - b))


def align_by_small_shift(
    moving: np.ndarray, fixed: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """`moving` at the small shift at which it is most like `fixed`, and the median difference of gray there.

    The median, over the mask if there is one, leaves out what really changed. Searched on every second
    pixel first, then to a pixel.
    """
    gray, target = channel_mean(moving), channel_mean(fixed)
    region = np.zeros(target[::2, ::2].shape, bool)
    region[REACH:-REACH, REACH:-REACH] = True
    if mask is not None:
        region &= mask[::2, ::2]
    y, x, _ = best_shift_and_difference(gray[::2, ::2], target[::2, ::2], region, (0, 0), REACH)
    fine = region.repeat(2, axis=0).repeat(2, axis=1)[: moving.shape[0], : moving.shape[1]]
    y, x, away = best_shift_and_difference(gray, target, fine, (2 * y, 2 * x), 1)
    return np.roll(moving, (y, x), axis=(0, 1)), away


def best_shift_and_difference(
    moving: np.ndarray, fixed: np.ndarray, region: np.ndarray, start: tuple[int, int], reach: int
) -> tuple[int, int, float]:
    """Rows and columns by which to roll `moving`, and the median difference from `fixed` that this leaves.

    A difference that is the same everywhere is light, not shift, and does not count.
    """
    reaches = range(-reach, reach + 1)
    shifts = np.array([(start[0] + y, start[1] + x) for y in reaches for x in reaches])
    change = rolled_values(moving, region, shifts) - fixed[region]
    change -= row_medians(change)[:, None]
    away = row_medians(np.abs(change, out=change)).tolist()
    tries = [(far, abs(y) + abs(x), y, x) for far, (y, x) in zip(away, shifts.tolist(), strict=True)]
    least, _, y, x = min(tries)
    return y, x, least


@cache_recent_results(4)
def find_event_mark(reference: np.ndarray, returned: np.ndarray) -> Mark | Reason:
    """The event's mark in the reference, or the reason why there is none."""
    pictures = [box_blur(picture, BLUR) for picture in reference]
    tries = [(align_by_small_shift(pictures[0], pictures[row]), int(row)) for row in returned]
    (first, usual), row = min(tries, key=lambda attempt: attempt[0][1])
    change = mean_channel_difference(first, pictures[row])
    edge = 2 * REACH + BLUR
    clear = np.zeros(change.shape, bool)
    clear[edge:-edge, edge:-edge] = True
    inside = clear & (change > max(LOWEST_CHANGE, TIMES_USUAL * usual))
    share = inside.sum() / clear.sum()
    if share < SMALLEST_MARK:
        unchanged = f"the reference returns to its first view unchanged ({share:.1%} differs)"
        return Reason("nothing_happened", f"{unchanged}, so no event can be checked")
    gray = pictures[row].mean(axis=2)
    contrast = float(np.median(np.abs(gray - np.median(gray))))
    if share > LARGEST_MARK or usual > max(LOWEST_USUAL, CONTRAST_SHARE * contrast):
        typical = f"{float(np.median(change[clear])):.0f} gray levels at the median"
        elsewhere = f"the reference does not return to its first view ({typical})"
        return Reason("no_return", f"{elsewhere}, so the event cannot be checked")
    near = box_blur(inside, BLUR) > 0
    return Mark(first, pictures[row], row, inside, clear & ~near, float(change[inside].mean()))


@metric(
    id="event_outcome", version=1, title="Outcome of the unseen event", unit="score", range=(0, 1),
    higher_is_better=True, needs=(PairedViews, CasePhases), gates=("view_return",), suites=("folder",),
    responds_to=("state reset", "event did not happen", "object missing after the event"),
    blind_to=("events that leave no mark in the returned view", "how the event happened",
              "details under 4 pixels of 160"),
)  # fmt: skip
def event_outcome(views: PairedViews, phases: CasePhases) -> Score | Unscored:
    """d_first / (d_first + d_truth) in the event's mark: 1 as in the truth, 0 as if nothing had happened.

    d_first and d_truth are the mean differences of the clip's return from the reference's first view and
    from its return, once the mean colour of the surroundings agrees. A clip that shows neither falls in
    between.
    """
    returned = np.flatnonzero(views.index >= phases.first_returned)
    if not len(returned) or len(views.index) < 2 or returned[0] == 0:
        return Unscored(
            "no_overlap", f"there are no frames before, or none after, the return at frame {phases.first_returned}"
        )
    if min(views.clip.shape[1:3]) < 6 * REACH:
        return Unscored(
            "not_followed", f"pictures of {views.clip.shape[2]} x {views.clip.shape[1]} pixels are too small"
        )
    mark = find_event_mark(views.reference, returned)
    if isinstance(mark, Reason):
        return Unscored(mark)
    # The clip may come back a little earlier or later: the frame whose surroundings fit best speaks.
    tries = [
        (align_by_small_shift(box_blur(views.clip[row], BLUR), mark.back, mark.around), int(row)) for row in returned
    ]
    (shown, _), row = min(tries, key=lambda attempt: attempt[0][1])
    # Whether the light is the same is another question.
    shown = shown + (mark.back - shown)[mark.around].mean(axis=0)
    around = float(mean_channel_difference(shown, mark.back)[mark.around].mean())
    facts = {
        "mark_share": float(mark.inside.mean()),
        "event_change": mark.change,
        "surroundings": around,
        "clip_frame": int(views.index[row]),
        "reference_frame": int(views.index[mark.row]),
    }
    if around > BACKGROUND_SHARE * mark.change:
        sentence = (
            f"the clip and the reference return to different views: the surroundings differ by {around:.0f} gray "
            f"levels, the event itself by {mark.change:.0f}"
        )
        return Unscored("no_overlap", sentence, facts)
    from_first = float(mean_channel_difference(shown, mark.first)[mark.inside].mean())
    from_truth = float(mean_channel_difference(shown, mark.back)[mark.inside].mean())
    facts |= {"from_first": from_first, "from_truth": from_truth}
    total = from_first + from_truth
    units = Series(frame=[views.index[row]], other=[views.index[mark.row]], value=[from_first / total])
    return Score(from_first / total, units=units, facts=facts)
