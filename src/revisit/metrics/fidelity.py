"""Fidelity: how close is the clip to its reference, pixel by pixel, and in which phase is it lost?

Evidence: `FrameFidelity`, at the size and with the alignment of its request. PSNR is
10 log10(255^2 / MSE) per frame, averaged over frames; an identical frame counts as 99 dB. SSIM has
families (docs/fidelity.md), and a protocol names the one it uses. LPIPS rests on `PerceptualDistance`,
which takes a network.
All punish a small shift of the camera as hard as a wrong world: read them beside the camera's error.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TypeVar

import numpy as np

from revisit.core import InvalidEvidence, Reason, Score, Series, Unscored, metric
from revisit.core.phase_pairs import first_rows
from revisit.evidence.fidelity import SSIM_FAMILIES, FrameFidelity, PerceptualDistance
from revisit.evidence.frames import CasePhases

IDENTICAL_DB = 99.0
Seen = TypeVar("Seen", FrameFidelity, PerceptualDistance)
PHASES = ("visible", "hidden", "returned")
NO_FRAMES = Reason("no_overlap", "no frame of the clip has an aligned frame in the reference")


def whole(seen: Seen) -> Seen:
    """The pairs of the whole clip, one for each frame, without those of phases that are aligned on their own."""
    rows = first_rows(seen.index)
    if len(rows) == len(seen.index):
        return seen
    columns = {f.name: getattr(seen, f.name) for f in fields(seen)}
    return replace(seen, **{name: column[rows] for name, column in columns.items() if isinstance(column, np.ndarray)})


def psnr_per_frame(mse: np.ndarray) -> np.ndarray:
    """PSNR in dB of each frame, 99 for identical frames."""
    return np.asarray(np.minimum(10 * np.log10(255.0**2 / np.maximum(mse, 1e-12)), IDENTICAL_DB))


def ssim_per_frame(fidelity: FrameFidelity, family: str) -> np.ndarray | Unscored:
    """SSIM of each frame in one family, or Unscored where the observer was not asked for that family."""
    if family not in SSIM_FAMILIES:
        raise InvalidEvidence(f"there is no SSIM family {family!r}; choose one of {', '.join(SSIM_FAMILIES)}")
    values = getattr(fidelity, f"ssim_{family}")
    if values is None:
        observed = [name for name in SSIM_FAMILIES if getattr(fidelity, f"ssim_{name}") is not None]
        return Unscored(
            "other_settings",
            f"the metric takes the SSIM family {family}, and the observer's parameter `families` lists "
            f"{', '.join(observed) or 'none'}",
        )
    return np.asarray(values, dtype=float)


def by_phase(values: np.ndarray, index: np.ndarray, phases: CasePhases) -> dict[str, np.ndarray]:
    """Values of the visible, hidden and returned frames; a phase without frames is empty."""
    if not 0 <= phases.first_hidden <= phases.first_returned:
        raise InvalidEvidence(
            f"the phases start at frames {phases.first_hidden} (hidden) and {phases.first_returned} (returned); "
            "the view is hidden first and returns later"
        )
    bounds = np.searchsorted(index, [phases.first_hidden, phases.first_returned])
    return dict(zip(PHASES, np.split(np.asarray(values), bounds), strict=True))


def phase_facts(values: np.ndarray, index: np.ndarray, phases: CasePhases) -> dict[str, object]:
    """Mean and count of each phase, for a score's facts."""
    parts = by_phase(values, index, phases)
    means = {name: float(part.mean()) if len(part) else None for name, part in parts.items()}
    return {"mean": means, "frames": {name: len(part) for name, part in parts.items()}, "source": phases.source}


def returned_score(
    values: np.ndarray, fidelity: FrameFidelity | PerceptualDistance, phases: CasePhases
) -> Score | Unscored:
    """Mean over the returned frames, with all phases in the facts."""
    facts = phase_facts(values, fidelity.index, phases)
    returned = fidelity.index >= phases.first_returned
    if not returned.any():
        return Unscored("no_overlap", f"no frame after the return at frame {phases.first_returned} was compared", facts)
    units = Series(frame=fidelity.index[returned], other=fidelity.reference[returned], value=values[returned])
    return Score(float(values[returned].mean()), units=units, facts=facts)


@metric(
    id="psnr",
    version=1,
    title="PSNR against the reference",
    unit="dB",
    range=(0, IDENTICAL_DB),
    higher_is_better=True,
    needs=(FrameFidelity,),
    suites=("folder",),
    responds_to=("wrong camera", "wrong content", "exposure drift"),
    blind_to=("what differs", "whether a difference is plausible"),
)
def psnr(fidelity: FrameFidelity) -> Score | Unscored:
    """Mean over frames of the PSNR against the aligned reference frame; 99 dB for an identical frame."""
    fidelity = whole(fidelity)
    if not len(fidelity.index):
        return Unscored(NO_FRAMES)
    values = psnr_per_frame(fidelity.mse)
    facts = {
        "compared_at": [fidelity.width, fidelity.height],
        "identical_frames": int((values >= IDENTICAL_DB).sum()),
        "first": float(values[0]),
        "last": float(values[-1]),
    }
    units = Series(frame=fidelity.index, other=fidelity.reference, value=values)
    return Score(float(values.mean()), raw=float(fidelity.mse.mean()), units=units, facts=facts)


@metric(
    id="ssim",
    version=1,
    title="SSIM against the reference",
    unit="score",
    range=(-1, 1),
    higher_is_better=True,
    needs=(FrameFidelity,),
    suites=("folder",),
    paper="Wang et al. 2004",
    responds_to=("wrong camera", "wrong content", "blur"),
    blind_to=("what differs", "whether a difference is plausible", "colour, in the gray family"),
)
def ssim(fidelity: FrameFidelity, *, family: str = "rgb") -> Score | Unscored:
    """Mean over frames of the SSIM against the aligned reference frame."""
    fidelity = whole(fidelity)
    values = ssim_per_frame(fidelity, family)
    if isinstance(values, Unscored):
        return values
    if not len(values):
        return Unscored(NO_FRAMES)
    units = Series(frame=fidelity.index, other=fidelity.reference, value=values)
    facts = {"compared_at": [fidelity.width, fidelity.height], "family": family}
    return Score(float(values.mean()), units=units, facts=facts)


@metric(
    id="psnr_returned",
    version=1,
    title="PSNR after the return",
    unit="dB",
    range=(0, IDENTICAL_DB),
    higher_is_better=True,
    needs=(FrameFidelity, CasePhases),
    suites=("folder",),
    responds_to=("forgotten content", "wrong camera"),
    blind_to=("what differs", "whether a difference is plausible"),
)
def psnr_returned(fidelity: FrameFidelity, phases: CasePhases) -> Score | Unscored:
    """Mean PSNR over the frames after the view has returned; the facts hold all three phases."""
    fidelity = whole(fidelity)
    return returned_score(psnr_per_frame(fidelity.mse), fidelity, phases)


@metric(
    id="ssim_returned",
    version=1,
    title="SSIM after the return",
    unit="score",
    range=(-1, 1),
    higher_is_better=True,
    needs=(FrameFidelity, CasePhases),
    suites=("folder",),
    paper="Wang et al. 2004",
    responds_to=("forgotten content", "wrong camera"),
    blind_to=("what differs", "whether a difference is plausible"),
)
def ssim_returned(fidelity: FrameFidelity, phases: CasePhases, *, family: str = "rgb") -> Score | Unscored:
    """Mean SSIM over the frames after the view has returned; the facts hold all three phases."""
    fidelity = whole(fidelity)
    values = ssim_per_frame(fidelity, family)
    return values if isinstance(values, Unscored) else returned_score(values, fidelity, phases)


@metric(
    id="lpips",
    version=1,
    title="LPIPS against the reference",
    unit="distance",
    range=(0, None),
    higher_is_better=False,
    needs=(PerceptualDistance,),
    suites=("folder",),
    paper="Zhang et al. 2018",
    responds_to=("wrong content", "wrong camera", "blur"),
    blind_to=("what differs", "whether a difference is plausible"),
)
def lpips(seen: PerceptualDistance) -> Score | Unscored:
    """Mean over frames of the LPIPS distance to the aligned reference frame; 0 is identical."""
    seen = whole(seen)
    if not len(seen.index):
        return Unscored(NO_FRAMES)
    facts = {
        "compared_at": [seen.width, seen.height],
        "net": seen.net,
        "weights": seen.weights,
        "first": float(seen.distance[0]),
        "last": float(seen.distance[-1]),
    }
    units = Series(frame=seen.index, other=seen.reference, value=seen.distance)
    return Score(float(seen.distance.mean()), units=units, facts=facts)


@metric(
    id="lpips_returned",
    version=1,
    title="LPIPS after the return",
    unit="distance",
    range=(0, None),
    higher_is_better=False,
    needs=(PerceptualDistance, CasePhases),
    suites=("folder",),
    paper="Zhang et al. 2018",
    responds_to=("forgotten content", "wrong camera"),
    blind_to=("what differs", "whether a difference is plausible"),
)
def lpips_returned(seen: PerceptualDistance, phases: CasePhases) -> Score | Unscored:
    """Mean LPIPS distance over the frames after the view has returned; the facts hold all three phases."""
    seen = whole(seen)
    return returned_score(seen.distance, seen, phases)
