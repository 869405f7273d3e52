"""Does the world stay as it is? Local memory along the way, revisit memory where the camera comes back.

local     frames at equal steps of the way that the flow adds up to. Neighbours whose vectors are farther apart than a
          threshold are a mutation: 100 (1 - cut) (1 - share of mutations), and a model's is 100 (1 - share of clips
          with a cut) (1 - mean share of mutations).
revisit   keys that undo each other: ten frames of the way out, each with the frame of the way back that lies as far
          from the turning point; 100 / (1 + mean distance of their vectors).

`upstream` steps by the median step over all clips of all models of a folder, so that another model in it changes
everybody's score; `corrected` by the mean of half a second of the clip itself. Degrees are W / 70 pixels of the clip's
own width upstream, though flow is measured at 640 and counts every step twice; here the lens tells them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from revisit.core import Case, Metric, PublishedMaker, Score, Series, Unscored, metric
from revisit.evidence.frames import FrameFacts
from revisit.evidence.motion import ShotChanges
from revisit.metrics.rows import nearest_rows, true_runs, unit_vectors
from revisit.metrics.rules import is_upstream_rule
from revisit.suites.worldmark.evidence import FLOW_SIZE, FrameVectors, KeyFlow, SmallFrameVectors, keys_undo_each_other
from revisit.suites.worldmark.metrics.control import CARD, SEA_RAFT
from revisit.suites.worldmark.metrics.signal import AT_REST, RATE, Signal, make_signal

DINO = PublishedMaker("DINOv2-B", "described_by", ("dinov2-base",))
HALF_SECOND = 8  # samples
LEAST_FRAMES = 5  # fewer steps than that, and a camera is at rest
CUT, NEAR_CUT = 0.5, 0.5  # probability of a cut; seconds around it whose pairs do not count
# Distance of vectors that is a mutation. DINOv2's is the benchmark's. EfficientNet's is above all 78 half seconds of
# seven other clips without a cut (0.135 at most) and below the cuts of an edited film (0.38 at least).
MUTATION: dict[type, float] = {FrameVectors: 0.10, SmallFrameVectors: 0.15}
FIELD_OF_VIEW = 70.0  # degrees across, where no lens is known
AGREES, ANSWERS, ANSWER_SAMPLES, ALIKE = 0.3, 0.2, 3, 0.5  # gates of a return
TURNED, TURN_FROM, TURN_WITHIN = 15.0, 5.0, 3.0  # degrees
STEP_WITHIN = 30.0  # pixels
PAIRS, SCANNED, APART_SAMPLES = 10, 200, 32
NO_STEP = (
    "upstream steps by the median over all clips of all models of a folder, which no clip knows; `revisit worldmark` "
    "works it out, or give --option step=PIXELS"
)
PARTIAL = 0.3  # of the way out: a return that comes no farther is called partial


def samples_at_equal_steps(signal: Signal, step: float) -> np.ndarray:
    """The samples at which the way passes one step after another."""
    way = np.cumsum(signal.speed)
    rows, target = [], step
    for row, length in enumerate(way.tolist()):
        if length >= target:
            rows.append(row)
            target += step
    return np.array(rows, dtype=np.int64)


def mean_half_second_flow(signal: Signal) -> float:
    """The mean way of half a second, in the unit in which the way is added up."""
    return float(signal.speed.mean()) * HALF_SECOND


def first_frames_after_cuts(shots: ShotChanges) -> np.ndarray:
    """The first frame after each cut; what is on at the very start or end of a clip divides nothing."""
    hot = true_runs(shots.probability > CUT)
    inside = [end - 1 for start, end in hot if shots.index[start] > 1 and end < len(shots.index)]
    return np.asarray(shots.index[inside])


def cosine_distances(vectors: FrameVectors, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
    """1 - cosine between the vectors of frames, or of those nearest to them."""
    units = unit_vectors(vectors.vector)
    a, b = (units[nearest_rows(vectors.index, frames)] for frames in (earlier, later))
    return np.asarray(1 - (a * b).sum(axis=1))


def register_local_memory_metric(
    kind: type, id_suffix: str, title_suffix: str, published: tuple[PublishedMaker, ...]
) -> Metric:
    """Local memory by the vectors of one kind; `id_suffix` ends its id and `title_suffix` its title."""

    def score_local_memory(
        case: Case,
        frames: FrameFacts,
        flow: KeyFlow,
        vectors: Any,
        shots: ShotChanges,
        *,
        rule: str = "corrected",
        step: float | None = None,
        threshold: float = MUTATION[kind],
    ) -> Score | Unscored:
        signal = make_signal(case.condition, frames, flow, rule)
        upstream, own = is_upstream_rule(rule), mean_half_second_flow(signal)
        facts: dict[str, object] = {"flow": flow.maker, "described_by": vectors.maker, "own_step": own, "step": step}
        if upstream and step is None:
            return Unscored("other_settings", NO_STEP, facts)
        if not len(vectors.index):
            return Unscored("not_observed", "no frame has a vector", facts)
        facts["step"] = chosen = own if step is None else step
        rows = samples_at_equal_steps(signal, chosen) if chosen > 0 else np.zeros(0, np.int64)
        rests = not upstream and float(signal.speed.mean()) < AT_REST
        if len(rows) < LEAST_FRAMES or rests:
            return Unscored("at_rest", f"the camera hardly moves: {own / HALF_SECOND:.2g} pixels a sample", facts)
        at = signal.frame[rows]
        earlier, later = at[:-1], at[1:]
        apart = cosine_distances(vectors, earlier, later)
        apart = np.round(apart, 4) if upstream else apart
        cuts = first_frames_after_cuts(shots)
        reach = NEAR_CUT * (RATE if upstream else frames.fps)
        near = (np.abs(np.stack([earlier, later])[:, :, None] - cuts) <= reach).any(axis=(0, 2))
        mutated = apart[~near] > threshold
        share = float(mutated.mean()) if len(mutated) else None
        facts |= {"cut": bool(len(cuts)), "mutations": share, "threshold": threshold, "pairs": len(mutated)}
        if share is None and not len(cuts):
            return Unscored("too_short", "no pair of frames counts", facts)
        units = Series(frame=later[~near], other=earlier[~near], value=100 * (1 - mutated), distance=apart[~near])
        return Score(0.0 if len(cuts) else 100 * (1 - (share or 0.0)), units=units, facts=facts)

    return metric(
        id=f"worldmark_local{id_suffix}", version=1, title=f"Local memory{title_suffix}",
        upstream="Local" if published else "",
        needs=(Case, FrameFacts, KeyFlow, kind, ShotChanges), **CARD, published_by=published,
        responds_to=("scene change", "cut", "mutation"),
        blind_to=("frozen camera", "what is forgotten out of view"), rewards_unchanged=True,
        doc="100 x the share of equal steps of the way without a mutation; 0 with a cut.",
    )(score_local_memory)  # fmt: skip


@dataclass(frozen=True)
class Returns:
    """Samples of the way out and of the way back that lie as far from a turning point, and why others have none."""

    pairs: tuple[tuple[int, int, float], ...]  # earlier, later, by how much their ways differ
    problems: tuple[str, ...]
    partial: bool = False


def flow_per_degree(width: int, focal_in_widths: float | None, rule: str) -> float:
    """The way, in the unit in which it is added up, of a turn by one degree.

    Upstream takes the clip's own width over 70 degrees. Here it is the mean over the picture of what a turn moves,
    f (1 + x² / f²) per radian, at the size of the flow.
    """
    if is_upstream_rule(rule):
        return width / FIELD_OF_VIEW
    across = float(FLOW_SIZE[0])
    length = across * (focal_in_widths or 0.5 / np.tan(np.radians(FIELD_OF_VIEW / 2)))
    return float(np.radians(1) * length * (1 + across**2 / (12 * length**2)))


def find_return_pairs(signal: Signal, flow_of_degree: float, rule: str) -> Returns:
    """Pairs of samples of all turning points of a clip that pass the gates."""
    upstream, turns = is_upstream_rule(rule), signal.keys[0].family == "rotation"
    way = np.abs(signal.horizontal) if turns else signal.speed
    way = way if upstream else way / 2  # every eighth of a second is there twice
    count, n = len(signal.keys), len(way)
    borders = [round(k / count * n) for k in range(count + 1)]
    pairs: list[tuple[int, int, float]] = []
    problems, partial = [], False
    for number in range(1, count):
        start, turn, end = borders[number - 1 : number + 2]
        problem, answer = _turning_point_problem_and_sample(signal, number, (start, turn, end), upstream)
        if not problem and turns and way[start:turn].sum() < TURNED * flow_of_degree:
            problem = f"the camera turns by less than {TURNED:g} degrees"
        if problem:
            problems.append(problem)
            continue
        least, within = (TURN_FROM * flow_of_degree, TURN_WITHIN * flow_of_degree) if turns else (0.0, STEP_WITHIN)
        some = pair_samples_around_turn(way, (start, turn, end), answer, least, within)
        partial |= bool(way[turn:end].sum() < PARTIAL * way[start:turn].sum())
        if not some:
            problems.append("no place of the way out is reached again two seconds later or more")
        pairs += some
    return Returns(tuple(pairs), tuple(dict.fromkeys(problems)), partial)


def _turning_point_problem_and_sample(
    signal: Signal, number: int, borders: tuple[int, int, int], upstream: bool
) -> tuple[str, int]:
    """Why a turning point does not count, or "", and the sample at which the camera turns."""
    start, turn, end = borders
    out, back = (signal.signed_flow_of_key(key) for key in signal.keys[number - 1 : number + 1])
    out, back = out[start:turn], back[turn:end]
    lengths = [float(np.abs(part).sum()) for part in (out, back)]
    shares = [part.sum() / length if length >= 1e-6 else 0.0 for part, length in zip((out, back), lengths, strict=True)]
    if min(shares) < AGREES:
        return "the camera does not go out and back as asked", 0
    means = [length / max(len(part), 1) for part, length in zip((out, back), lengths, strict=True)]
    if not upstream and min(means) < AT_REST / 2:
        return "the camera is at rest", 0
    answering = np.zeros(0, np.int64)
    if len(back) > ANSWER_SAMPLES and means[1] >= 1e-6:
        means_of_three = np.convolve(back, np.ones(ANSWER_SAMPLES) / ANSWER_SAMPLES, mode="valid")[:-1]
        answering = np.flatnonzero(means_of_three >= ANSWERS * means[1])
    if not len(answering):
        return "the camera never turns back", 0
    if min(means) / max(*means, 1e-6) < ALIKE:
        return "one way is more than twice as fast as the other", 0
    return "", turn + int(answering[0])


def pair_samples_around_turn(
    motion: np.ndarray, borders: tuple[int, int, int], turned_at: int, least: float, within: float
) -> list[tuple[int, int, float]]:
    """Ten pairs of samples, evenly over how far from the turning point they lie, at least two seconds apart."""
    start, turn, end = borders
    if turn - start < 3 or end - turn < 3:
        return []
    out, back = np.cumsum(motion[start:turn][::-1])[::-1], np.cumsum(motion[turn:end])
    first = min(max(turned_at - turn, 0), len(back) - 1)
    near, far = max(least, float(back[first])), min(float(out[0]), float(back[-1]))
    if far <= near:
        return []

    def nearest_samples(depths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        i, j = (np.abs(way[None] - depths[:, None]).argmin(axis=1) for way in (out, back[first:]))
        return i, first + j

    depths = np.linspace(near, far, SCANNED)
    i, j = nearest_samples(depths)
    late = np.flatnonzero(turn + j - start - i >= APART_SAMPLES)
    if not len(late):
        return []
    depths = np.linspace(depths[late[0]], far, PAIRS)
    i, j = nearest_samples(depths)
    good = (np.abs(out[i] - depths) <= within) & (np.abs(back[j] - depths) <= within) & (turn + j > start + i + 1)
    rows = dict.fromkeys((start + int(a), turn + int(b)) for a, b in zip(i[good], j[good], strict=True))
    return [(a, b, float(abs(back[b - turn] - out[a - start]))) for a, b in rows]


def register_revisit_memory_metric(
    kind: type, id_suffix: str, title_suffix: str, published: tuple[PublishedMaker, ...]
) -> Metric:
    """Revisit memory by the vectors of one kind; `id_suffix` ends its id and `title_suffix` its title."""

    def score_revisit_memory(
        case: Case, frames: FrameFacts, flow: KeyFlow, vectors: Any, *, rule: str = "corrected", scale: float = 1.0
    ) -> Score | Unscored:
        signal = make_signal(case.condition, frames, flow, rule)
        if not keys_undo_each_other(signal.names):
            return Unscored("does_not_apply", f"the keys {case.condition} do not lead back")
        if not len(vectors.index):
            return Unscored("not_observed", "no frame has a vector")
        focal = case.annotations.get("focal")
        degree = flow_per_degree(frames.width, focal, rule)
        again = find_return_pairs(signal, degree, rule)
        facts: dict[str, object] = {
            "flow": flow.maker, "described_by": vectors.maker, "pairs": len(again.pairs), "partial": again.partial,
            "problems": list(again.problems),
            "lens": "the picture's" if focal else f"{FIELD_OF_VIEW:g} degrees assumed",
        }  # fmt: skip
        if not again.pairs:
            return Unscored("no_return", "; ".join(again.problems), facts)
        earlier, later, off = (np.array(column) for column in zip(*again.pairs, strict=True))
        earlier, later = signal.frame[earlier], signal.frame[later]
        apart = cosine_distances(vectors, earlier, later)
        if signal.keys[0].family == "rotation":
            facts["degrees_off"] = float(off.mean()) / degree
        score = 100 / (1 + max(float(apart.mean()), 0.0) / scale)
        each = 100 / (1 + np.maximum(apart, 0) / scale)
        units = Series(frame=later, other=earlier, value=each, distance=apart)
        return Score(round(score, 3) if is_upstream_rule(rule) else score, units=units, facts=facts)

    return metric(
        id=f"worldmark_revisit{id_suffix}", version=1, title=f"Revisit memory{title_suffix}",
        upstream="Rev" if published else "",
        needs=(Case, FrameFacts, KeyFlow, kind), **CARD, published_by=published,
        responds_to=("forgotten content", "another place after the return"), rewards_unchanged=True,
        blind_to=("cuts", "what was never left"), doc="100 / (1 + mean distance of frames that see one place again).",
    )(score_revisit_memory)  # fmt: skip


register_local_memory_metric(FrameVectors, "", "", (SEA_RAFT, DINO))
register_revisit_memory_metric(FrameVectors, "", "", (SEA_RAFT, DINO))
register_local_memory_metric(SmallFrameVectors, "_small", " by a small network", ())
register_revisit_memory_metric(SmallFrameVectors, "_small", " by a small network", ())


@metric(
    id="worldmark_step", version=1, title="Way of half a second", needs=(Case, FrameFacts, KeyFlow),
    blind_to=("content", "direction"), **{**CARD, "unit": "pixels", "range": (0, None), "higher_is_better": None},
)  # fmt: skip
def half_second_flow(case: Case, frames: FrameFacts, flow: KeyFlow, *, rule: str = "corrected") -> Score | Unscored:
    """Mean flow of half a second, of which upstream takes the median over all clips for its steps."""
    signal = make_signal(case.condition, frames, flow, rule)
    return Score(mean_half_second_flow(signal), facts={"flow": flow.maker})
