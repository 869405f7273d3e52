"""Entities of MBench: does the object keep its texture, the person the face and the clothes (docs/mbench-metrics.md)?

The score is the mean cosine of the descriptors of a track with their mean (eq. 5, 6), over tracks. It moves little: two
descriptors at a right angle still have a cosine of 0.71 with their mean. `return_score` in the facts moves more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from revisit.core import InvalidEvidence, PublishedMaker, Score, Series, Unscored
from revisit.evidence.target import ObjectFeatures
from revisit.metrics.rows import unit_vectors
from revisit.suites.mbench.evidence import BodyFeatures, FaceFeatures, FoldPairs
from revisit.suites.mbench.metrics.rules import PAPER, check_rule, score_metric

Facts = dict[str, object]
LEAST_SHARE = 0.1  # of the frames that were looked at


def cosines_with_mean_vector(vectors: np.ndarray) -> np.ndarray:
    """(N,) cosine of each descriptor with the mean of all."""
    vectors = np.asarray(vectors, dtype=float)
    return np.asarray(unit_vectors(vectors) @ unit_vectors(vectors.mean(axis=0)))


def cosine_before_and_after_turn(vectors: np.ndarray, frame: np.ndarray, turnaround: int) -> float | None:
    """Cosine between the mean descriptors before and after the camera turned back; None without both."""
    unit, late = unit_vectors(vectors), frame > turnaround
    if late.all() or not late.any():
        return None
    return float(unit_vectors(unit[~late].mean(axis=0)) @ unit_vectors(unit[late].mean(axis=0)))


def assign_face_tracks(frame: np.ndarray, vectors: np.ndarray, least_cosine: float = FaceFeatures.same) -> np.ndarray:
    """(N,) number of the track of each face; frames come in order, and a track has one face a frame.

    Each new face is as alike to a track as to its last or its mean face, whichever is more; the most alike go first.
    """
    faces = unit_vectors(vectors)
    track = np.full(len(faces), -1)
    members: list[list[int]] = []
    for number in np.unique(frame):
        rows_in_frame = np.flatnonzero(frame == number)
        candidates = [
            (float(max(faces[k] @ faces[rows[-1]], faces[k] @ unit_vectors(faces[rows].mean(axis=0)))), int(k), t)
            for k in rows_in_frame
            for t, rows in enumerate(members)
        ]
        matched: set[int] = set()
        for cosine, k, t in sorted(candidates, key=lambda one: (-one[0], one[1], one[2])):
            if cosine >= least_cosine and track[k] < 0 and t not in matched:
                track[k] = t
                matched.add(t)
        for k in rows_in_frame.tolist():
            if track[k] < 0:
                track[k] = len(members)
                members.append([k])
            else:
                members[track[k]].append(k)
    return track


def score_tracks(
    frame: np.ndarray, vectors: np.ndarray, track: np.ndarray, counted_tracks: np.ndarray, turnaround: int, facts: Facts
) -> Score:
    """Mean over the tracks that count of the mean cosine with the track's mean; `facts` are those of the people."""
    rows = [np.flatnonzero(track == name) for name in counted_tracks]
    cosines = [cosines_with_mean_vector(vectors[at]) for at in rows]
    means = [float(one.mean()) for one in cosines]
    returns = [cosine_before_and_after_turn(vectors[at], frame[at], turnaround) for at in rows]
    return_scores = [value for value in returns if value is not None]
    every, mean = np.concatenate(rows), float(np.mean(means))
    units = Series(frame=frame[every], track=track[every], value=np.concatenate(cosines))
    facts |= {
        "track_lengths": [len(at) for at in rows],
        "of_each_track": means,
        "return_score": float(np.mean(return_scores)) if return_scores else None,
    }
    return Score(float(np.clip(mean, 0, 1)), raw=mean, units=units, facts=facts)


DINOV2 = PublishedMaker("DINOv2", "described_by", ("dinov2",))
ARCFACE = PublishedMaker("InsightFace buffalo_l", "described_by", ("buffalo-l", "insightface", "arcface"))


@score_metric(
    id="mb_object_texture", version=1, title="Object texture", needs=(ObjectFeatures, FoldPairs),
    paper=f"{PAPER} eq. 5", upstream="object_texture", responds_to=("texture drift", "another target"),
    blind_to=("frames without the target", "small changes"), published_by=(DINOV2,),
)  # fmt: skip
def object_texture(features: ObjectFeatures, pairs: FoldPairs, *, rule: str = "corrected") -> Score | Unscored:
    """Mean cosine of the target's descriptors with their mean; frames that do not show it do not count."""
    check_rule(rule)
    returned = bool((features.frame > pairs.turnaround).any())
    facts: Facts = {
        "visible": len(features.frame) / max(len(features.index), 1),
        "return_visible": returned,
        "described_by": features.maker,
        "turnaround": pairs.turnaround,
    }
    if len(features.frame) < 2:
        times = f"{len(features.frame)} of {len(features.index)} frames"
        sentence = f"the target was not seen twice, so nothing can be compared ({times} show it, by {features.maker})"
        return Unscored("not_seen", sentence, facts)
    if rule == "corrected" and not returned:
        return Unscored("not_seen", "the target was not seen after the camera turned back", facts)
    cosines = cosines_with_mean_vector(features.vector)
    facts["return_score"] = cosine_before_and_after_turn(features.vector, features.frame, pairs.turnaround)
    mean = float(cosines.mean())
    units = Series(frame=features.frame, value=cosines)
    return Score(float(np.clip(mean, 0, 1)), raw=mean, units=units, facts=facts)


@score_metric(
    id="mb_human_identity", version=1, title="Human identity", needs=(FaceFeatures, FoldPairs), paper=f"{PAPER} eq. 6",
    upstream="human_identity", responds_to=("another face",),
    blind_to=("people without a visible face", "a person who never returns"), published_by=(ARCFACE,),
)  # fmt: skip
def human_identity(
    faces: FaceFeatures, pairs: FoldPairs, *, rule: str = "corrected", same_face: float | None = None
) -> Score | Unscored:
    """Mean over people of the cosine of their faces with the mean face."""
    check_rule(rule)
    if not len(faces.frame):
        return Unscored("not_seen", no_face_sentence(faces), {"described_by": faces.maker})
    track, names, facts = face_tracks_and_counted_ones(faces, rule, same_face)
    if not len(names):
        sentence = f"no face was seen in two frames and a tenth of all ({facts['left_out']} were seen more briefly)"
        return Unscored("not_seen", sentence, facts)
    return score_tracks(faces.frame, faces.vector, track, names, pairs.turnaround, facts)


@score_metric(
    id="mb_human_appearance", version=2, title="Human appearance", needs=(FaceFeatures, BodyFeatures, FoldPairs),
    paper=f"{PAPER} section 4.2.2", upstream="human_appearance", responds_to=("other clothes",),
    blind_to=("people without a visible face",), published_by=(replace(ARCFACE, fact="faces_described_by"), DINOV2),
)  # fmt: skip
def human_appearance(
    faces: FaceFeatures,
    bodies: BodyFeatures,
    pairs: FoldPairs,
    *,
    rule: str = "corrected",
    same_face: float | None = None,
) -> Score | Unscored:
    """Mean over people of the cosine of their bodies with the mean body; faces say who is who, and who counts."""
    check_rule(rule)
    if len(bodies.face) and bodies.face.max() >= len(faces.frame):
        raise InvalidEvidence(f"BodyFeatures names face {bodies.face.max()} and there are {len(faces.frame)} faces")
    if not len(bodies.face):
        what = f"no body was found ({len(faces.frame)} faces found)" if len(faces.frame) else no_face_sentence(faces)
        return Unscored("not_seen", what, {"described_by": bodies.maker})
    track, people_seen, facts = face_tracks_and_counted_ones(faces, rule, same_face)
    mine = track[bodies.face]
    least = 1 if rule == "paper" else 2
    names = np.array([name for name in people_seen if (mine == name).sum() >= least])
    facts |= {"tracks": len(names), "faces_described_by": faces.maker, "described_by": bodies.maker}
    if not len(names):
        sentence = f"no person's body was seen twice, so nothing can be compared ({len(people_seen)} people found)"
        return Unscored("not_seen", sentence, facts)
    return score_tracks(faces.frame[bodies.face], bodies.vector, mine, names, pairs.turnaround, facts)


def no_face_sentence(faces: FaceFeatures) -> str:
    """What is said of a clip without faces."""
    return f"no face was found in {len(faces.index)} frames"


def face_tracks_and_counted_ones(
    faces: FaceFeatures, rule: str, same_face: float | None
) -> tuple[np.ndarray, np.ndarray, Facts]:
    """(track of each face, names of the tracks that count, facts)."""
    least = faces.same if same_face is None else same_face
    track = assign_face_tracks(faces.frame, faces.vector, least)
    every, sizes = np.unique(track, return_counts=True)
    names = every[sizes >= (1 if rule == "paper" else max(2, int(np.ceil(LEAST_SHARE * len(faces.index)))))]
    facts: Facts = {
        "tracks": len(names), "left_out": len(every) - len(names), "frames_looked_at": len(faces.index),
        "same_face": least, "described_by": faces.maker,
    }  # fmt: skip
    return track, names, facts
