"""Fidelity: how close is the clip to its reference, pixel by pixel, and in which phase is it lost (docs/fidelity.md)?

A `Measure` is one formula over pairs of frames, written here once. Which pairs count is chosen by a metric: below the
whole clip, and what follows the return; the benchmarks choose in folders of their own (`suites/*/`).

Beside a reference whose camera rests, memory is not tested, and yet a target may vanish, become another or never do
what it does in the truth: `target_in_view` says so, by small pictures of clip and reference at the same times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from revisit.core import Case, InvalidEvidence, Metric, NoScore, Reason, Score, Series, Unscored, metric
from revisit.core.phase_pairs import first_row_of_each_frame
from revisit.evidence.frames import CasePhases
from revisit.evidence.reference import SSIM_FAMILIES, FrameFidelity, PairedViews, PerceptualDistance
from revisit.metrics.overlay import box_blur, channel_mean

IDENTICAL_DB = 99.0
PHASES = ("visible", "hidden", "returned")
NO_FRAMES = Reason("no_overlap", "no frame of the clip has an aligned frame in the reference")
BLUR = 2  # pixels on each side, of pictures 160 wide
LEAST_FRAMES = 4
LEAST_PIXELS = 24


def psnr_per_frame(mse: np.ndarray) -> np.ndarray:
    """PSNR in dB of each frame, 99 for identical frames."""
    return np.asarray(np.minimum(10 * np.log10(255.0**2 / np.maximum(mse, 1e-12)), IDENTICAL_DB))


def ssim_per_frame(fidelity: FrameFidelity, family: str) -> np.ndarray:
    """SSIM of each frame in one family, or NoScore where the observer was not asked for that family."""
    if family not in SSIM_FAMILIES:
        raise InvalidEvidence(f"unknown SSIM family {family!r}; choose one of {', '.join(SSIM_FAMILIES)}")
    values = getattr(fidelity, f"ssim_{family}")
    if values is None:
        observed = [name for name in SSIM_FAMILIES if getattr(fidelity, f"ssim_{name}") is not None]
        raise NoScore(
            "other_settings",
            f"the metric needs the SSIM family {family}, but the observer's parameter `families` lists "
            f"{', '.join(observed) or 'none'}",
        )
    return np.asarray(values, dtype=float)


def split_by_phase(values: np.ndarray, index: np.ndarray, phases: CasePhases) -> dict[str, np.ndarray]:
    """Values of the visible, hidden and returned frames; a phase without frames is empty."""
    if not 0 <= phases.first_hidden <= phases.first_returned:
        raise InvalidEvidence(
            f"the phases start at frames {phases.first_hidden} (hidden) and {phases.first_returned} (returned); the "
            "hidden phase must start before the return"
        )
    bounds = np.searchsorted(index, [phases.first_hidden, phases.first_returned])
    return dict(zip(PHASES, np.split(np.asarray(values), bounds), strict=True))


def frames_represented(index: np.ndarray) -> np.ndarray:
    """How many frames each compared one stands for: half the way to its neighbours; 1 where every frame is compared."""
    gaps = np.diff(index, prepend=index[:1] - 1, append=index[-1:] + 1) if len(index) else np.zeros(1)
    return np.asarray((gaps[1:] + gaps[:-1]) / 2)


def phase_facts(values: np.ndarray, index: np.ndarray, phases: CasePhases) -> dict[str, object]:
    """Mean and count of each phase, for a score's facts."""
    parts, weights = split_by_phase(values, index, phases), split_by_phase(frames_represented(index), index, phases)
    means = {name: float(np.average(v, weights=weights[name])) if len(v) else None for name, v in parts.items()}
    return {"mean": means, "frames": {name: len(part) for name, part in parts.items()}, "source": phases.source}


@dataclass(frozen=True)
class Measure:
    """A formula over pairs of frames, with what every card of it says."""

    id: str
    called: str
    kind: type  # of evidence
    values: Callable[..., np.ndarray]  # (evidence, **params) -> a number for each pair
    unit: str
    range: tuple[float, float | None]
    higher_is_better: bool
    paper: str = ""
    note: str = ""  # ends a sentence about its mean
    facts: tuple[str, ...] = ()  # fields of the evidence that a score repeats
    params: Mapping[str, object] = field(default_factory=dict)

    @property
    def card_arguments(self) -> dict[str, Any]:
        """What all metrics of this measure have in common, as arguments of `metric`."""
        return {name: getattr(self, name) for name in ("unit", "range", "higher_is_better", "params")}

    def comparison_facts(self, fidelity: FrameFidelity | PerceptualDistance) -> dict[str, object]:
        """What a score says of how it was measured."""
        further = {name: getattr(fidelity, name) for name in self.facts}
        return {"compared_at": [fidelity.width, fidelity.height], **further}


MSE = Measure(
    "mse",
    "squared error",
    FrameFidelity,
    lambda seen: seen.mse / 255.0**2,
    "mse",
    (0, 1),
    False,
    note=", values from 0 to 1",
)
PSNR = Measure(
    "psnr",
    "PSNR",
    FrameFidelity,
    lambda seen: psnr_per_frame(seen.mse),
    "dB",
    (0, IDENTICAL_DB),
    True,
    note="; 99 dB for an identical frame",
)
LPIPS = Measure(
    "lpips", "LPIPS", PerceptualDistance, lambda seen: seen.distance, "distance", (0, None), False, "Zhang et al. 2018",
    "; 0 is identical", facts=("net", "weights"),
)  # fmt: skip


def ssim_measure(family: str) -> Measure:
    """SSIM, in this family unless a protocol says otherwise."""
    return Measure(
        "ssim", "SSIM", FrameFidelity, ssim_per_frame, "score", (-1, 1), True, "Wang et al. 2004",
        params={"family": family},
    )  # fmt: skip


SSIM = ssim_measure("rgb")
UNEXPLAINED = ("what differs", "whether a difference is plausible")


def register_clip_mean_metric(measure: Measure, *responds_to: str, blind_to: tuple[str, ...] = UNEXPLAINED) -> Metric:
    """The metric that takes the mean over the whole clip."""

    def score_clip(fidelity: Any, **params: Any) -> Score | Unscored:
        values = measure.values(fidelity, **params)
        rows = first_row_of_each_frame(fidelity.index)
        if not len(rows):
            return Unscored(NO_FRAMES)
        values = values[rows]
        facts = {**measure.comparison_facts(fidelity), **params, "first": float(values[0]), "last": float(values[-1])}
        units = Series(frame=fidelity.index[rows], other=fidelity.reference[rows], value=values)
        mean = partial(np.average, weights=frames_represented(fidelity.index[rows]))
        if measure is PSNR:
            facts["identical_frames"] = int((values >= IDENTICAL_DB).sum())
        raw = float(mean(fidelity.mse[rows])) if measure is PSNR else None
        return Score(float(mean(values)), raw=raw, units=units, facts=facts)

    return metric(
        id=measure.id, version=1, title=f"{measure.called} against the reference", needs=(measure.kind,),
        suites=("folder",), paper=measure.paper, responds_to=responds_to, blind_to=blind_to, **measure.card_arguments,
        doc=f"Mean over frames of the {measure.called} against the aligned reference frame{measure.note}.",
    )(score_clip)  # fmt: skip


def register_after_return_metric(measure: Measure) -> Metric:
    """The metric that takes the mean over the frames after the view has returned, with all phases in the facts."""

    def score_after_return(fidelity: Any, phases: CasePhases, **params: Any) -> Score | Unscored:
        values = measure.values(fidelity, **params)
        rows = first_row_of_each_frame(fidelity.index)
        index, values = fidelity.index[rows], values[rows]
        facts = phase_facts(values, index, phases)
        at = index >= phases.first_returned
        if not at.any():
            sentence = f"no frame after the return at frame {phases.first_returned} could be compared"
            return Unscored("no_overlap", sentence, facts)
        units = Series(frame=index[at], other=fidelity.reference[rows][at], value=values[at])
        return Score(float(np.average(values[at], weights=frames_represented(index)[at])), units=units, facts=facts)

    return metric(
        id=f"{measure.id}_returned", version=1, title=f"{measure.called} after the return",
        needs=(measure.kind, CasePhases), suites=("folder",), paper=measure.paper,
        responds_to=("forgotten content", "wrong camera"), blind_to=UNEXPLAINED, **measure.card_arguments,
        doc=f"Mean {measure.called} over the frames after the view has returned; the facts hold all three phases.",
    )(score_after_return)  # fmt: skip


psnr = register_clip_mean_metric(PSNR, "wrong camera", "wrong content", "exposure drift")
ssim = register_clip_mean_metric(
    SSIM, "wrong camera", "wrong content", "blur", blind_to=(*UNEXPLAINED, "colour, in the gray family")
)
lpips = register_clip_mean_metric(LPIPS, "wrong content", "wrong camera", "blur")
psnr_returned, ssim_returned, lpips_returned = map(register_after_return_metric, (PSNR, SSIM, LPIPS))


@metric(
    id="target_in_view", version=1, title="Target against the truth, in view", unit="gray levels", range=(0, 255),
    higher_is_better=False, needs=(Case, PairedViews), suites=("folder",), responds_to=("state reset in view",),
    blind_to=("a target of the same gray as what is behind it", "anything where a camera moves", "small targets"),
)  # fmt: skip
def target_in_view(case: Case, views: PairedViews) -> Score | Unscored:
    """Median difference of the target's first place from the truth's at the same time; 0 is the same.

    The facts hold the same of the first frame, and how much clip and truth change there against their own first frames.
    Only beside a reference whose camera rests does this speak of the target.
    """
    if case.target is None:
        return Unscored("no_target", "no target was given for this case, or not where it is")
    if len(views.index) < LEAST_FRAMES:
        return Unscored("too_short", f"only {len(views.index)} frames could be compared with the reference")
    inside = box_pixel_slices(case.target.box, views.clip.shape[1:3])
    sides = views.clip, views.reference
    mine, truth = ([box_blur_part(picture, inside) for picture in pictures] for pictures in sides)
    if mine[0][..., 0].size < LEAST_PIXELS:
        return Unscored("not_followed", "the target's box is too small for pictures of this size")

    def mean_gray_difference(a: np.ndarray, b: np.ndarray) -> float:
        return float(channel_mean(np.abs(a - b)).ravel().mean())

    wrong = np.array([mean_gray_difference(a, b) for a, b in zip(mine, truth, strict=True)])
    facts = {
        "first": wrong[0],
        "clip_change": float(np.median([mean_gray_difference(picture, mine[0]) for picture in mine[1:]])),
        "truth_change": float(np.median([mean_gray_difference(picture, truth[0]) for picture in truth[1:]])),
    }
    facts = {name: round(float(value), 2) for name, value in facts.items()}
    return Score(float(np.median(wrong[1:])), units=Series(frame=views.index, value=wrong), facts=facts)


def box_pixel_slices(box: tuple[float, float, float, float], shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Rows and columns inside a box in fractions of the picture."""
    height, width = shape
    x0, y0, x1, y1 = box
    rows, columns = (round(y0 * height), round(y1 * height)), (round(x0 * width), round(x1 * width))
    return slice(max(rows[0], 0), max(rows[1], 0)), slice(max(columns[0], 0), max(columns[1], 0))


def box_blur_part(picture: np.ndarray, part: tuple[slice, slice]) -> np.ndarray:
    """Some rows and columns of the averaged picture; what is too far away to count is not averaged."""
    reach = BLUR + 1
    wide = [slice(max(one.start - reach, 0), one.stop + reach) for one in part]
    inner = [slice(one.start - out.start, one.stop - out.start) for one, out in zip(part, wide, strict=True)]
    return box_blur(picture[wide[0], wide[1]], BLUR)[inner[0], inner[1]]
