"""Entities of MBench: does the object keep its texture, the person the face and the clothes (docs/mbench-metrics.md)?

The score is the mean cosine of the descriptors of a track with their mean (eq. 5, 6), over tracks. It moves little: two
descriptors at a right angle still have a cosine of 0.71 with their mean. `return_score` in the facts moves more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from revisit.core import InvalidEvidence, PublishedMaker, Score, Series, Unscored, metric
from revisit.suites.mbench.evidence import BodyFeatures, FaceFeatures, FoldPairs, ObjectFeatures
from revisit.suites.mbench.metrics.rules import PAPER, check_rule

LEAST_SHARE = 0.1  # of the frames that were looked at


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1 along the last axis; zeros stay zeros."""
    vectors = np.asarray(vectors, dtype=float)
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))


def centroid_cosines(vectors: np.ndarray) -> np.ndarray:
    """(N,) cosine of each descriptor with the mean of all."""
    vectors = np.asarray(vectors, dtype=float)
    return np.asarray(unit(vectors) @ unit(vectors.mean(axis=0)))


def return_cosine(vectors: np.ndarray, frame: np.ndarray, turnaround: int) -> float | None:
    """Cosine between the mean descriptors before and after the camera turned back; None without both."""
    early, late = (unit(vectors)[frame <= turnaround], unit(vectors)[frame > turnaround])
    if not len(early) or not len(late):
        return None
    return float(unit(early.mean(axis=0)) @ unit(late.mean(axis=0)))


def face_tracks(frame: np.ndarray, vectors: np.ndarray, least: float = FaceFeatures.same) -> np.ndarray:
    """(N,) number of the track of each face; frames come in order, and a track has one face a frame.

    Each new face is as alike to a track as to its last or its mean face, whichever is more; the most alike go first.
    """
    faces = unit(vectors)
    track = np.full(len(faces), -1)
    members: list[list[int]] = []
    for number in np.unique(frame):
        here = np.flatnonzero(frame == number)
        alike = [
            (float(max(faces[k] @ faces[rows[-1]], faces[k] @ unit(faces[rows].mean(axis=0)))), int(k), t)
            for k in here
            for t, rows in enumerate(members)
        ]
        taken: set[int] = set()
        for cosine, k, t in sorted(alike, key=lambda found: (-found[0], found[1], found[2])):
            if cosine >= least and track[k] < 0 and t not in taken:
                track[k] = t
                taken.add(t)
        for k in here.tolist():
            if track[k] < 0:
                track[k] = len(members)
                members.append([k])
            else:
                members[track[k]].append(k)
    return track


def long_tracks(track: np.ndarray, looked: int, rule: str) -> np.ndarray:
    """Names of the tracks that count, of faces in `looked` frames."""
    names, sizes = np.unique(track, return_counts=True)
    return np.asarray(names[sizes >= (1 if rule == "paper" else max(2, int(np.ceil(LEAST_SHARE * looked))))])


def over_tracks(
    frame: np.ndarray, vectors: np.ndarray, track: np.ndarray, counted: np.ndarray, turnaround: int
) -> tuple[float, Series, dict[str, Any]]:
    """(mean over the tracks that count of the mean cosine with the track's mean, all cosines, facts)."""
    means, returns, rows, values = [], [], [], []
    for name in counted:
        at = np.flatnonzero(track == name)
        cosines = centroid_cosines(vectors[at])
        means.append(float(cosines.mean()))
        rows.append(at)
        values.append(cosines)
        returns.append(return_cosine(vectors[at], frame[at], turnaround))
    known = [value for value in returns if value is not None]
    facts = {
        "track_lengths": [len(at) for at in rows],
        "of_each_track": means,
        "return_score": float(np.mean(known)) if known else None,
    }
    at = np.concatenate(rows)
    return float(np.mean(means)), Series(frame=frame[at], track=track[at], value=np.concatenate(values)), facts


DINOV2 = PublishedMaker("DINOv2", "described_by", ("dinov2",))
ARCFACE = PublishedMaker("InsightFace buffalo_l", "described_by", ("buffalo-l", "insightface", "arcface"))


@metric(
    id="mb_object_texture", version=1, title="Object texture", unit="score", range=(0, 1), higher_is_better=True,
    needs=(ObjectFeatures, FoldPairs), suites=("mbench",), paper=f"{PAPER} eq. 5", upstream="object_texture",
    responds_to=("texture drift", "another target"), blind_to=("frames without the target", "small changes"),
    published_by=(DINOV2,),
)  # fmt: skip
def object_texture(seen: ObjectFeatures, pairs: FoldPairs, *, rule: str = "corrected") -> Score | Unscored:
    """Mean cosine of the target's descriptors with their mean; frames that do not show it do not count."""
    check_rule(rule)
    returned = bool((seen.frame > pairs.turnaround).any())
    facts: dict[str, Any] = {
        "visible": len(seen.frame) / max(len(seen.index), 1), "return_visible": returned, "described_by": seen.maker,
        "turnaround": pairs.turnaround,
    }  # fmt: skip
    if len(seen.frame) < 2:
        return Unscored(
            "not_seen",
            f"the target was not seen twice, so nothing can be compared ({len(seen.frame)} of {len(seen.index)} frames "
            f"show it, by {seen.maker})",
            facts,
        )
    if rule == "corrected" and not returned:
        return Unscored("not_seen", "the target was not seen after the camera turned back", facts)
    cosines = centroid_cosines(seen.vector)
    facts["return_score"] = return_cosine(seen.vector, seen.frame, pairs.turnaround)
    mean = float(cosines.mean())
    return Score(
        float(np.clip(mean, 0, 1)), raw=mean, units=Series(frame=seen.frame, value=cosines), facts=facts
    )  # fmt: skip


@metric(
    id="mb_human_identity", version=1, title="Human identity", unit="score", range=(0, 1), higher_is_better=True,
    needs=(FaceFeatures, FoldPairs), suites=("mbench",), paper=f"{PAPER} eq. 6", upstream="human_identity",
    responds_to=("another face",), blind_to=("people without a visible face", "a person who never returns"),
    published_by=(ARCFACE,),
)  # fmt: skip
def human_identity(
    seen: FaceFeatures, pairs: FoldPairs, *, rule: str = "corrected", same_face: float | None = None
) -> Score | Unscored:
    """Mean over people of the cosine of their faces with the mean face."""
    check_rule(rule)
    if not len(seen.frame):
        return Unscored("not_seen", nobody(seen), {"described_by": seen.maker})
    track, counted, facts = people(seen, rule, same_face)
    if not len(counted):
        return Unscored(
            "not_seen",
            f"no face was seen in at least two frames and a tenth of all frames ({facts['left_out']} were seen more "
            "briefly)",
            facts,
        )
    mean, units, more = over_tracks(seen.frame, seen.vector, track, counted, pairs.turnaround)
    return Score(float(np.clip(mean, 0, 1)), raw=mean, units=units, facts=facts | more)


@metric(
    id="mb_human_appearance", version=2, title="Human appearance", unit="score", range=(0, 1), higher_is_better=True,
    needs=(FaceFeatures, BodyFeatures, FoldPairs), suites=("mbench",), paper=f"{PAPER} section 4.2.2",
    upstream="human_appearance", responds_to=("other clothes",), blind_to=("people without a visible face",),
    published_by=(replace(ARCFACE, fact="faces_described_by"), DINOV2),
)  # fmt: skip
def human_appearance(
    seen: FaceFeatures,
    bodies: BodyFeatures,
    pairs: FoldPairs,
    *,
    rule: str = "corrected",
    same_face: float | None = None,
) -> Score | Unscored:
    """Mean over people of the cosine of their bodies with the mean body; faces say who is who, and who counts."""
    check_rule(rule)
    if len(bodies.face) and bodies.face.max() >= len(seen.frame):
        raise InvalidEvidence(f"BodyFeatures names face {bodies.face.max()} and there are {len(seen.frame)} faces")
    if not len(bodies.face):
        what = f"no body was found ({len(seen.frame)} faces found)" if len(seen.frame) else nobody(seen)
        return Unscored("not_seen", what, {"described_by": bodies.maker})
    track, people_seen, facts = people(seen, rule, same_face)
    mine = track[bodies.face]
    least = 1 if rule == "paper" else 2
    counted = np.array([name for name in people_seen if (mine == name).sum() >= least])
    facts |= {"tracks": len(counted), "faces_described_by": seen.maker, "described_by": bodies.maker}
    if not len(counted):
        sentence = f"no person's body was seen twice, so nothing can be compared ({len(people_seen)} people found)"
        return Unscored("not_seen", sentence, facts)
    mean, units, more = over_tracks(seen.frame[bodies.face], bodies.vector, mine, counted, pairs.turnaround)
    return Score(float(np.clip(mean, 0, 1)), raw=mean, units=units, facts=facts | more)


def nobody(seen: FaceFeatures) -> str:
    """What is said of a clip without faces."""
    return f"no face was found in {len(seen.index)} frames"


def people(seen: FaceFeatures, rule: str, same_face: float | None) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """(track of each face, names of the tracks that count, facts)."""
    least = seen.same if same_face is None else same_face
    track = face_tracks(seen.frame, seen.vector, least)
    counted = long_tracks(track, len(seen.index), rule)
    facts = {
        "tracks": len(counted), "left_out": len(np.unique(track)) - len(counted), "frames_looked_at": len(seen.index),
        "same_face": least, "described_by": seen.maker,
    }  # fmt: skip
    return track, counted, facts
