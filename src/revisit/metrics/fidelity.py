"""Fidelity: how close is the clip to its reference, pixel by pixel, and in which phase is it lost (docs/fidelity.md)?

A `Measure` is one formula over pairs of frames, written here once. Which pairs count is chosen by a metric: below the
whole clip, and what follows the return; the benchmarks choose in folders of their own (`suites/*/`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from revisit.core import InvalidEvidence, Metric, NoScore, Reason, Score, Series, Unscored, metric
from revisit.core.phase_pairs import first_row_of_each_frame
from revisit.evidence.frames import CasePhases
from revisit.evidence.reference import SSIM_FAMILIES, FrameFidelity, PerceptualDistance

IDENTICAL_DB = 99.0
PHASES = ("visible", "hidden", "returned")
NO_FRAMES = Reason("no_overlap", "no frame of the clip has an aligned frame in the reference")


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


def over_clip(measure: Measure, *responds_to: str, blind_to: tuple[str, ...] = UNEXPLAINED) -> Metric:
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


def after_return(measure: Measure) -> Metric:
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


psnr = over_clip(PSNR, "wrong camera", "wrong content", "exposure drift")
ssim = over_clip(SSIM, "wrong camera", "wrong content", "blur", blind_to=(*UNEXPLAINED, "colour, in the gray family"))
lpips = over_clip(LPIPS, "wrong content", "wrong camera", "blur")
psnr_returned, ssim_returned, lpips_returned = map(after_return, (PSNR, SSIM, LPIPS))
