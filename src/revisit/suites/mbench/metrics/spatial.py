"""Spatial consistency of MBench: do the points of a view stand where the poses of the return demand?

    epipolar       E = mean distance of matches to the lines their partners draw, both images (eq. 7)
    reprojection   E = mean distance of matches to the points triangulated from them, both images (eq. 8)
    score          exp(-E / tau) of each pair, and the mean over pairs

docs/mbench-metrics.md tells how the rules `corrected` and `paper` differ, and what was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revisit.core import InvalidEvidence, Metric, Score, Series, Unscored
from revisit.geometry import two_view
from revisit.geometry.poses import invert_rigid_poses
from revisit.suites.mbench.evidence import GeometryTrack, PairMatches
from revisit.suites.mbench.metrics import rules

LEAST_MATCHES = 20
LONG_SIDE = 504  # the pixels in which errors are told: Depth Anything 3's own grid
TRIM = 0.1
TAU = {"corrected": 5.0, "paper": 1.0}
ONE_PLACE = 1e-6  # of the scene's depth between two centres: no direction to draw lines in
LEAST_MIXED_UP, SHARE_MIXED_UP = 2.0, 0.5  # pixels of error, and the share of it that the other reading may have


@dataclass(frozen=True)
class MatchedView:
    """Two cameras and their matches."""

    k1: np.ndarray
    k2: np.ndarray
    rotation: np.ndarray
    translation: np.ndarray
    x1: np.ndarray
    x2: np.ndarray
    in_one_place: bool


def pure_rotation_transfer_errors(view: MatchedView) -> np.ndarray:
    """Distance of each match to where a pure turn carries its partner: the mean of both images."""
    turn = view.k2 @ view.rotation @ np.linalg.inv(view.k1)

    def apply_homography(points: np.ndarray, homography: np.ndarray) -> np.ndarray:
        moved = np.column_stack([points, np.ones(len(points))]) @ homography.T
        return np.asarray(moved[:, :2] / moved[:, 2:])

    there = np.linalg.norm(apply_homography(view.x1, turn) - view.x2, axis=1)
    back = np.linalg.norm(apply_homography(view.x2, np.linalg.inv(turn)) - view.x1, axis=1)
    return np.asarray((there + back) / 2)


def epipolar_errors(view: MatchedView) -> np.ndarray:
    """Symmetric epipolar distance of each match, in pixels of the grid."""
    if view.in_one_place:
        return pure_rotation_transfer_errors(view)
    f = two_view.fundamental(view.k1, view.k2, view.rotation, view.translation)
    return two_view.symmetric_epipolar_distance(view.x1, view.x2, f)


def reprojection_errors(view: MatchedView) -> np.ndarray:
    """Reprojection error of each match, the mean of both images; infinite where its point is not before both."""
    if view.in_one_place:
        return pure_rotation_transfer_errors(view) / 2  # the best direction lies midway between both
    p1, p2 = two_view.projection_matrix(view.k1), two_view.projection_matrix(view.k2, view.rotation, view.translation)
    points = two_view.triangulate(view.x1, view.x2, p1, p2)
    both = [two_view.reprojection_error(points, x, p) for x, p in ((view.x1, p1), (view.x2, p2))]
    return np.asarray((both[0] + both[1]) / 2)


def finite_errors(view: MatchedView, errors_of: Callable[[MatchedView], np.ndarray]) -> np.ndarray:
    """Errors of the matches of a pair that have one."""
    errors = errors_of(view) if len(view.x1) else np.zeros(0)
    return errors[np.isfinite(errors)]


def mean_error_trimmed_by_rule(errors: np.ndarray, rule: str) -> float:
    """Mean error, without the worst tenth unless the paper's rule is asked for."""
    inliers = np.sort(errors)[: len(errors) - int(TRIM * len(errors))] if rule == "corrected" else errors
    return float(inliers.mean())


def matched_views_of_pairs(track: GeometryTrack, matches: PairMatches, c2w: np.ndarray) -> list[MatchedView]:
    """The two cameras and the matches of each pair."""
    all_views = []
    least = ONE_PLACE * rules.first_median_depth_or_one(track)
    for k, (i, j) in enumerate(zip(matches.row.tolist(), matches.other_row.tolist(), strict=True)):
        points = matches.points[matches.offsets[k] : matches.offsets[k + 1]]
        rotation, translation = two_view.relative_pose(c2w[i], c2w[j])
        near = bool(np.linalg.norm(translation) < least)
        ks = track.intrinsics[i], track.intrinsics[j]
        all_views.append(MatchedView(*ks, rotation, translation, points[:, :2], points[:, 2:], near))
    return all_views


def median_parallax_degrees(view: MatchedView) -> float:
    """Median angle in degrees between the two rays of a match, after the turn is undone."""
    rays = []
    for x, k, turn in ((view.x1, view.k1, np.eye(3)), (view.x2, view.k2, view.rotation)):
        ray = np.column_stack([x, np.ones(len(x))]) @ np.linalg.inv(k).T @ turn
        rays.append(ray / np.linalg.norm(ray, axis=1, keepdims=True))
    return float(np.degrees(np.median(np.arccos(np.clip((rays[0] * rays[1]).sum(axis=1), -1, 1)))))


def score_pair_errors(
    track: GeometryTrack,
    matches: PairMatches,
    errors_of: Callable[[MatchedView], np.ndarray],
    rule: str,
    tau: float | None,
    least_matches: int,
) -> Score | Unscored:
    """Mean over pairs of exp(-E / tau), with what is known about them in the facts."""
    if len(matches.points) != int(matches.offsets[-1]):
        raise InvalidEvidence(f"PairMatches has {len(matches.points)} points; its offsets end at {matches.offsets[-1]}")
    if len(matches.frame) and max(matches.row.max(), matches.other_row.max()) >= len(track.c2w):
        raise InvalidEvidence(f"PairMatches refers to a row beyond the {len(track.c2w)} poses of GeometryTrack")
    tau = TAU[rules.check_rule(rule)] if tau is None else tau
    scale = LONG_SIDE / max(track.width, track.height) if rule == "corrected" else 1.0
    facts: dict[str, object] = {
        "pairs": len(matches.frame),
        "pairs_chosen_by": matches.how,
        "convention": track.convention,
        "convention_said_by": track.found,
        "grid": [track.width, track.height],
        "pixels_of_long_side": LONG_SIDE if rule == "corrected" else max(track.width, track.height),
        "tau": tau,
        "matcher": matches.matcher,
        "poses_by": track.maker,
        "note": matches.note,
    }
    if track.refused:
        return Unscored("unreadable", track.refused, facts)
    if not len(matches.frame):
        return rules.unscored_without_pairs(matches.note, facts)
    views = matched_views_of_pairs(track, matches, track.c2w)
    errors = [finite_errors(view, errors_of) for view in views]
    rows = [k for k, one in enumerate(errors) if len(one) >= least_matches]
    facts["pairs_with_too_few_matches"] = len(views) - len(rows)
    if not rows:
        most = int(np.diff(matches.offsets).max())
        sentence = f"no pair of frames has {least_matches} usable matches (at most {most} were found)"
        return Unscored("not_followed", sentence, facts)
    error = np.array([scale * mean_error_trimmed_by_rule(errors[k], rule) for k in rows])
    counts = [len(errors[k]) for k in rows]
    angles = [median_parallax_degrees(views[k]) for k in rows]
    distance = matches.distance[rows]
    facts |= {
        "median_error": float(np.median(error)),
        "matches": float(np.mean(counts)),
        "parallax_degrees": float(np.median(angles)),
        "in_one_place": sum(views[k].in_one_place for k in rows),
        "pose_distance": float(np.nanmean(distance)) if np.isfinite(distance).any() else None,
    }
    if error.mean() >= LEAST_MIXED_UP:
        swapped = matched_views_of_pairs(track, matches, invert_rigid_poses(track.c2w))
        usable = [one for k in rows if len(one := finite_errors(swapped[k], errors_of))]
        means = [scale * mean_error_trimmed_by_rule(one, rule) for one in usable]
        if_swapped = float(np.mean(means)) if means else np.inf
        facts["error_if_mixed_up"] = if_swapped if means else None
        if if_swapped <= SHARE_MIXED_UP * error.mean():
            other = "camera-to-world" if track.convention == "w2c" else "world-to-camera"
            facts["warning"] = (
                f"the pose convention seems wrong: read as {other} the error is {if_swapped:.2f} px instead of "
                f"{error.mean():.2f} px; correct 'convention' in the pose file"
            )
    units = Series(
        frame=matches.frame[rows], other=matches.other[rows], value=np.exp(-error / tau), raw=error, matches=counts,
        parallax=angles,
    )  # fmt: skip
    return Score(float(np.exp(-error / tau).mean()), raw=float(error.mean()), units=units, facts=facts)


def register_spatial_metric(
    name: str, equation: int, errors_of: Callable[[MatchedView], np.ndarray], error_description: str
) -> Metric:
    """The metric of one distance between matches and what the poses demand."""

    def score_distance(
        track: GeometryTrack,
        matches: PairMatches,
        *,
        rule: str = "corrected",
        tau: float | None = None,
        least_matches: int = LEAST_MATCHES,
    ) -> Score | Unscored:
        return score_pair_errors(track, matches, errors_of, rule, tau, least_matches)

    return rules.score_metric(
        id=f"mb_spatial_{name}", version=1, title=f"{name.capitalize()} consistency",
        needs=(GeometryTrack, PairMatches), paper=f"{rules.PAPER} eq. {equation}", upstream=f"spatial_{name}",
        responds_to=("changed layout", "moved furniture", "wrong poses"),
        blind_to=("colour and light", "motion along the epipolar lines", "places without texture"),
        doc=f"exp(-E / tau) with E the {error_description}, in pixels.",
    )(score_distance)  # fmt: skip


spatial_epipolar = register_spatial_metric(
    "epipolar", 7, epipolar_errors, "symmetric epipolar distance of matches between frames out and back"
)
spatial_reprojection = register_spatial_metric(
    "reprojection", 8, reprojection_errors, "distance of matches to their triangulated points, both images"
)
