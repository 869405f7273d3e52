"""Odometry: how the camera turns, from points tracked through the clip.

Points are tracked from a key frame until the picture has moved enough; each frame's turn is measured against
its key frame, so that errors add up per key frame and not per frame. A turn without parallax is
fitted to the points' rays (Kabsch); with parallax it comes from the essential matrix. The field of view is the
one under which turns are rotations and epipolar geometry is Euclidean, if the clip shows enough of either.

It knows when it is lost. A pose that few points agree on is none; a jump that no camera makes is a glitch if the path
goes on where it was, and else the end of what is known; gaps add up; and where the path says that the first view is
back, the frame is compared with the first one directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from revisit.core import ClipInfo, Frame, FrameStream, every, observer
from revisit.evidence.camera import CameraPath
from revisit.observers.matching import Points, find_described_points, match_points, points_of_frame
from revisit.observers.pictures import Flows, gray_at_long_side, median, resize_by_area
from revisit.observers.rows import columns_of_rows

SIZE = 320
POINTS_SIZE = 288  # longer side at which points of frames too far apart to track are described
AT_MOST = 96
POSE_GAP = 0.09  # seconds: points are followed in all frames, and poses worked out so far apart
CORNERS = 200
WINDOW = 15  # pixels, side of the window by which a point is followed
KEY_MOTION = 0.15  # of the width, in the median: enough parallax to see, little enough to track
KEY_SURVIVORS = 0.5  # of the key frame's points
LEAST_TRACKS = 20
ENOUGH_TRACKS = 60  # with fewer, points are looked for again by how they look, which costs ten times as much
MOST_TRACKS = 100  # used to fit a pose
ASSUMED_FIELD = 60.0  # degrees: a common phone or film camera
FIELDS = np.arange(30.0, 111.0, 2.5)
SIGHTS = 0.04, 0.03  # of the width: less motion tells nothing of the lens; the second where few tracks moved as far
LEAST_VOTES = 4
MOST_VOTES = 24  # tracks asked about the lens
ASKED = 60  # points that such a track has
SETTLED = 1e-7  # radians: a turn that changes less has been found
TINY = 1e-5  # radians and directions: steps of numerical derivatives
TRIALS = 100  # of a random search; more only help where nothing fits, and cost seconds
ESSENTIAL_TRIALS = 50  # of the one whose answer is a start among others
TIGHT = 1.0  # pixels at the working size
LENS_TOLERANCE = 1.5  # pixels, for the geometry that tells the field of view
FAR_OFF = 30.0  # degrees: parallax does not move a pose further from the best turn; the wrong one of two solutions does
JUMP, JUMPS = 25.0, 8.0  # degrees from sample to sample, and times the usual step, that no camera makes
GLITCH = 6  # samples after which a path that came back from a jump must be where it was
LARGEST_ERROR = 15.0  # degrees: what is less certain is not reliable
LOOP_MATCHES = 40  # points of the first frame that must be found again before a loop is checked
TURN_ONLY = 0.8  # of the points fit a turn without parallax: the direction of the step is not observable


@dataclass(frozen=True)
class PointTrack:
    """Points of a key frame and where they are in a later frame, in pixels from the centre of the frame."""

    key: int  # rows of the sampled frames
    row: int
    start: np.ndarray  # (n, 2)
    end: np.ndarray  # (n, 2)
    closes: bool  # the later frame is the next key frame


@observer(
    id="lite.odometry", version=6, kind="sequence", makes=CameraPath, frames=every(at_most=AT_MOST),
    size=SIZE,    sets=("lite",),
)  # fmt: skip
def odometry(clip: ClipInfo) -> FrameStream:
    """Turns of the camera and directions of its steps, from tracked points."""
    frames: list[tuple[int, float, np.ndarray]] = []
    tracks: list[PointTrack] = []
    key, last, closes = 0, np.zeros((0, 0), np.uint8), True
    start = now = np.zeros((0, 2), np.float32)
    born = 0
    described: dict[int, Points] = {}  # of the last two frames, where tracking was not enough
    flows, before = Flows(), None
    while (frame := (yield)) is not None:
        picture = gray_at_long_side(frame, SIZE)
        row = len(frames)
        frames.append((frame.index, frame.time, picture))
        if before is not None:
            both_flows = flows.forward_and_backward_flow(before, frame)
            now, alive = track_points_by_flow(last, picture, now, *both_flows)
            start, now = start[alive], now[alive]
            if len(now) < KEY_SURVIVORS * born and key != row - 1:  # the frame before still knows its place
                key, start = row - 1, find_corners(last)
                born = len(start)
                now, alive = track_points_by_flow(last, picture, start, *both_flows)
                start, now = start[alive], now[alive]
            if len(now) < ENOUGH_TRACKS and key == row - 1:
                described = {
                    row - 1: described.get(row - 1) or points_at_reduced_size(last, before),
                    row: points_at_reduced_size(picture, frame),
                }
                matched = matched_positions(*described.values())
                start, now = max((start, now), matched, key=lambda matches: len(matches[0]))
            moved = median(np.hypot(*(now - start).T)) if len(now) else np.inf
            closes = moved > KEY_MOTION * picture.shape[1] or len(now) < max(KEY_SURVIVORS * born, LEAST_TRACKS)
            centre = np.array([picture.shape[1], picture.shape[0]]) / 2
            tracks.append(PointTrack(key, row, start - centre, now - centre, closes))
        if closes:
            key = row
            start = now = find_corners(picture)
            born = len(now)
        last, before = picture, frame
    rows = rows_to_estimate_poses_for(tracks, [time for _, time, _ in frames])
    return estimate_camera_path([frames[row] for row in rows], tracks, rows)


def rows_to_estimate_poses_for(tracks: list[PointTrack], time: list[float]) -> list[int]:
    """Rows whose poses are worked out: the first and the last, key frames, and between them some, evenly in time."""
    keys = {track.key for track in tracks} | {track.row for track in tracks if track.closes}
    rows = [0] if time else []
    for row in range(1, len(time)):
        if row in keys or row == len(time) - 1 or time[row] - time[rows[-1]] >= POSE_GAP:
            rows.append(row)
    return rows


def agrees_with_return_to_start(
    rotation: np.ndarray, pictures: Sequence[np.ndarray], focal_length: float, field_of_view: float
) -> np.ndarray:
    """(N,) False from the farthest view on, where a frame that should show the first view again says otherwise."""
    n = len(pictures)
    fine = np.ones(n, bool)
    away = rotation_angles_in_degrees(rotation)
    if n < 8 or away.max() < LARGEST_ERROR:
        return fine
    far = int(away.argmax())
    back = far + 1 + np.flatnonzero(away[far + 1 :] < 0.4 * field_of_view)
    if not len(back):
        return fine
    row = int(back[away[back].argmin()])
    start, end = matched_positions(points_at_reduced_size(pictures[0]), points_at_reduced_size(pictures[row]))
    if len(start) < LOOP_MATCHES:
        return fine  # nothing is recognised: another place, or the first one changed; that is not for the path to say
    centre = np.array([pictures[0].shape[1], pictures[0].shape[0]]) / 2
    turn, _, count = relative_pose((start - centre) / focal_length, (end - centre) / focal_length, TIGHT / focal_length)
    if turn is not None and count >= LOOP_MATCHES and rotation_angles_in_degrees(rotation[row] @ turn) > LARGEST_ERROR:
        fine[far:] = False
    return fine


def rotation_angles_in_degrees(rotation: np.ndarray) -> np.ndarray:
    """Angles of rotations (..., 3, 3)."""
    return np.asarray(np.degrees(np.arccos(np.clip((np.trace(rotation, axis1=-2, axis2=-1) - 1) / 2, -1, 1))))


def is_rotation_known(rotation: np.ndarray, is_measured: np.ndarray) -> np.ndarray:
    """(N,) whether the turn since the first frame is known, from the path and which steps of it were measured.

    A jump is a glitch where the path soon goes on from where it was: only the samples between are lost. Else nobody
    knows where the camera is from there on. Steps that were not measured may each have been twice the usual one.
    """
    n = len(rotation)
    fine = is_measured.copy()
    if n < 2:
        return fine
    steps = rotation_angles_in_degrees(np.swapaxes(rotation[:-1], 1, 2) @ rotation[1:])
    usual = max(float(np.median(steps[is_measured[1:]])) if is_measured[1:].any() else 0.0, 1.0)
    row = 0
    while row < n - 1:
        if steps[row] <= max(JUMP, JUMPS * usual):
            row += 1
            continue
        later = np.arange(row + 2, min(row + 2 + GLITCH, n))
        off = rotation_angles_in_degrees(rotation[row].T @ rotation[later]) if len(later) else np.zeros(0)
        agreeing = later[off <= LARGEST_ERROR + 2 * usual * (later - row)]
        if not len(agreeing):
            fine[row + 1 :] = False
            return fine
        fine[row + 1 : agreeing[0]] = False
        row = int(agreeing[0])
    unsure = np.cumsum(~is_measured) * 2 * usual
    return np.asarray(fine & (unsure <= LARGEST_ERROR))


def find_corners(picture: np.ndarray) -> np.ndarray:
    """Well spread corners (n, 2) of a grey picture."""
    import cv2

    points = cv2.goodFeaturesToTrack(picture, CORNERS, 0.005, 7)
    return np.zeros((0, 2), np.float32) if points is None else points.reshape(-1, 2)


def track_points_by_flow(
    a: np.ndarray, b: np.ndarray, points: np.ndarray, forward_flow: np.ndarray, backward_flow: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where points of picture a are in b, and which of them come back to where they started.

    The flow there and back, at any size, says where to look; Lucas and Kanade's method does the rest.
    """
    import cv2

    if not len(points):
        return points, np.zeros(0, bool)
    options: dict[str, Any] = {
        "winSize": (WINDOW, WINDOW), "maxLevel": 1, "criteria": (3, 10, 0.02), "flags": cv2.OPTFLOW_USE_INITIAL_FLOW,
    }  # fmt: skip
    landed, status, _ = cv2.calcOpticalFlowPyrLK(
        a, b, points, move_points_by_flow(points, forward_flow, a.shape), **options
    )
    returned, status_back, _ = cv2.calcOpticalFlowPyrLK(
        b, a, landed, move_points_by_flow(landed, backward_flow, a.shape), **options
    )
    alive = (status.ravel() > 0) & (status_back.ravel() > 0) & (np.abs(points - returned).max(axis=1) < 0.7)
    x, y = landed[:, 0], landed[:, 1]
    return landed, alive & (x >= 0) & (y >= 0) & (x < b.shape[1]) & (y < b.shape[0])


def move_points_by_flow(points: np.ndarray, flow: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Where the flow carries points of a picture of this shape (rows, columns)."""
    scale = np.array([flow.shape[1] / shape[1], flow.shape[0] / shape[0]], np.float32)
    x, y = np.clip((points * scale).astype(int), 0, (flow.shape[1] - 1, flow.shape[0] - 1)).T
    return np.asarray(points + flow[y, x] / scale)


def points_at_reduced_size(picture: np.ndarray, frame: Frame | None = None) -> Points:
    """Points to recognise a picture by, in its pixels; found at a smaller size, where they cost a third.

    Those of a picture that is small enough as it is are shared with the other observers of its frame.
    """
    height, width = picture.shape
    scale = min(1.0, POINTS_SIZE / max(height, width))
    if scale == 1:
        return find_described_points(picture) if frame is None else points_of_frame(frame, picture)
    points = find_described_points(resize_by_area(picture, round(width * scale), round(height * scale)))
    return replace(points, xy=points.xy * (np.array([width, height]) / points.size), size=(width, height))


def matched_positions(a: Points, b: Points) -> tuple[np.ndarray, np.ndarray]:
    """Positions of matching points of two pictures too far apart to track."""
    pairs = match_points(a, b)
    return a.xy[pairs[:, 0]].astype(np.float32), b.xy[pairs[:, 1]].astype(np.float32)


def estimate_field_of_view(tracks: list[PointTrack], width: int) -> tuple[float, bool]:
    """(horizontal field of view in degrees, whether the clip told it).

    Under the right focal length a turn's homography is a rotation (equal singular values), and an
    epipolar geometry has two equal singular values. Each key frame votes with a curve over the field.
    """
    import cv2

    focal_lengths = [focal_length_in_pixels(field, width) for field in FIELDS]
    lenses = np.stack([np.diag([f, f, 1.0]) for f in focal_lengths])
    curves = []
    for track in tracks_telling_of_lens(tracks, width):
        cv2.setRNGSeed(0)
        plane, flat = cv2.findHomography(track.start, track.end, cv2.RANSAC, LENS_TOLERANCE, maxIters=TRIALS)
        if plane is not None and flat.sum() > 0.85 * len(track.start):
            s = np.linalg.svd(np.linalg.inv(lenses) @ plane @ lenses, compute_uv=False)
            curves.append(np.log(s[:, 0] / s[:, 2]))
            continue
        cv2.setRNGSeed(0)
        fundamental, deep = cv2.findFundamentalMat(
            track.start, track.end, cv2.FM_RANSAC, LENS_TOLERANCE, 0.99, 5 * TRIALS
        )
        if fundamental is not None and fundamental.shape == (3, 3) and deep.sum() >= 0.6 * len(track.start):
            s = np.linalg.svd(lenses @ fundamental @ lenses, compute_uv=False)
            curves.append(1 - s[:, 1] / s[:, 0])
    if len(curves) >= LEAST_VOTES:
        votes = np.array(curves)
        halves = [FIELDS[np.median(part, axis=0).argmin()] for part in (votes, votes[::2], votes[1::2])]
        if FIELDS[0] < halves[0] < FIELDS[-1] and np.ptp(halves) <= 0.25 * halves[0]:
            return float(halves[0]), True
    return ASSUMED_FIELD, False


def tracks_telling_of_lens(tracks: list[PointTrack], width: int) -> list[PointTrack]:
    """At most `MOST_VOTES` tracks, evenly chosen of those that moved enough to tell something of the lens."""
    motions = [(median(np.hypot(*(one.end - one.start).T)), one) for one in tracks if len(one.start) >= ASKED]
    fit: list[PointTrack] = []
    for least in SIGHTS:
        if len(fit) < LEAST_VOTES:
            fit = [track for motion, track in motions if motion >= least * width]
    return [fit[k] for k in every(at_most=MOST_VOTES).pick(len(fit), 0)]


def focal_length_in_pixels(field_of_view: float, width: int) -> float:
    """Focal length in pixels of a horizontal field of view in degrees."""
    return float(width / 2 / np.tan(np.radians(field_of_view) / 2))


def estimate_camera_path(
    frames: list[tuple[int, float, np.ndarray]], tracks: list[PointTrack], rows: list[int]
) -> CameraPath:
    """The path through frames (number, time, picture), which are these rows of the tracks, along the key frames."""
    index, time, pictures = columns_of_rows(frames, 3)
    width = pictures[0].shape[1] if frames else SIZE
    field, estimated = estimate_field_of_view(tracks, width)
    place = {row: k for k, row in enumerate(rows)}
    n = len(rows)
    rotation = np.tile(np.eye(3), (n, 1, 1))
    direction = np.full((n, 3), np.nan)
    inliers, quality, solved = np.zeros(n, np.int64), np.zeros(n), np.zeros(n, bool)
    quality[:1], solved[:1] = 1.0, True
    f = focal_length_in_pixels(field, width)
    warm: tuple[int, np.ndarray, np.ndarray] | None = None  # the last pose against the same key frame
    for track in tracks:
        if track.row not in place:
            continue
        some = every(at_most=MOST_TRACKS).pick(len(track.start), 0)
        start, end = track.start[some] / f, track.end[some] / f
        near = None if not warm or warm[0] != track.key else warm[1:]
        turn, step, count = relative_pose(start, end, TIGHT / f, near)
        if turn is None and near:  # a jump between the two: nothing near is right
            turn, step, count = relative_pose(start, end, TIGHT / f)
        warm = None if turn is None or step is None else (track.key, turn, step)
        base, row = rotation[place[track.key]], place[track.row]
        if turn is None:
            rotation[row] = rotation[row - 1]
            continue
        rotation[row] = base @ turn.T  # `turn` maps rays of the key frame to rays of the later one
        if step is not None:
            direction[row] = base @ -(turn.T @ step)
        inliers[row], quality[row], solved[row] = count, count / len(start), True
    reliable = is_rotation_known(rotation, solved) & agrees_with_return_to_start(rotation, pictures, f, field)
    return CameraPath(
        np.array(index, np.int64), np.array(time), rotation, direction, inliers, quality, reliable, field, estimated
    )


def relative_pose(
    a: np.ndarray, b: np.ndarray, tolerance: float, initial_pose: tuple[np.ndarray, np.ndarray] | None = None
) -> tuple[np.ndarray | None, np.ndarray | None, int]:
    """(rotation, unit translation or None, inliers) that take rays of the first frame to the second.

    `initial_pose` is a pose close to the one sought; without it the search starts from several.
    """
    import cv2

    if len(a) < LEAST_TRACKS:
        return None, None, 0
    rays = Rays(a, b)
    turn, fits = fit_rotation_and_inliers(rays, tolerance)
    if fits.mean() > TURN_ONLY or median(np.hypot(*(b - a).T)) < 0.3 * tolerance:
        return turn, None, int(fits.sum())
    starts = [(turn, initial_pose[1]), initial_pose] if initial_pose else [(turn, axis) for axis in np.eye(3)]
    if not initial_pose:
        cv2.setRNGSeed(0)
        essential, mask = cv2.findEssentialMat(a, b, np.eye(3), cv2.RANSAC, 0.99, 0.5 * tolerance, ESSENTIAL_TRIALS)
        if essential is not None and essential.shape == (3, 3):
            _, rotation, step, _ = cv2.recoverPose(essential, a, b, np.eye(3), mask=mask)
            starts.append((np.asarray(rotation), np.asarray(step).ravel()))
    # The best two starts lead to where all of them would.
    first = rays.sampson_distances(np.array([essential_matrix(*start) for start in starts]))
    order = np.log1p((first / (0.3 * tolerance)) ** 2).sum(axis=1).argsort(kind="stable")
    refined = (refine_pose(rays, starts[k][0], starts[k][1], 0.3 * tolerance) for k in order[:2])
    _, rotation, step = min(refined, key=lambda pose: pose[0])
    count = int((rays.sampson_distances(essential_matrix(rotation, step)[None])[0] < 0.7 * tolerance).sum())
    if count < max(LEAST_TRACKS, 0.5 * len(a)) or rotation_angles_in_degrees(rotation @ turn.T) > FAR_OFF:
        return (turn, None, int(fits.sum())) if fits.mean() > 0.4 else (None, None, 0)
    return rotation, translation_towards_points(a, b, rotation, step), count


class Rays:
    """Matched rays (n, 2) of two frames, laid out so that the errors of several poses are a few products."""

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self.a, self.b = (np.vstack([xy.T, np.ones(len(xy))]) for xy in (a, b))  # (3, n)
        self.products = (self.b[:, None] * self.a[None]).reshape(9, -1)  # of the coordinates of b and a

    def sampson_distances(self, essential: np.ndarray) -> np.ndarray:
        """(poses, n) Sampson distance of the rays under essential matrices (poses, 3, 3)."""
        to_b = np.square(essential[:, :2].reshape(-1, 3) @ self.a)
        to_a = np.square(essential[:, :, :2].transpose(0, 2, 1).reshape(-1, 3) @ self.b)
        size = np.sqrt(to_b[::2] + to_b[1::2] + to_a[::2] + to_a[1::2])
        return np.asarray(np.abs(essential.reshape(-1, 9) @ self.products) / np.maximum(size, 1e-12))


def _cross_product_matrices(step: np.ndarray) -> np.ndarray:
    """(..., 3, 3) that multiply as the cross product with vectors (..., 3) does."""
    return np.asarray((step @ AXES.reshape(3, 9)).reshape(*step.shape[:-1], 3, 3))


AXES = np.cross(np.eye(3), np.eye(3)[:, None])  # (3, 3, 3) what multiplies as the cross product with each axis


def essential_matrix(turn: np.ndarray, step: np.ndarray) -> np.ndarray:
    """(3, 3) of x_b = turn x_a + step."""
    return np.asarray(_cross_product_matrices(step) @ turn)


def refine_pose(rays: Rays, turn: np.ndarray, step: np.ndarray, scale: float) -> tuple[float, np.ndarray, np.ndarray]:
    """(cost, rotation, unit translation) after Gauss-Newton steps on the robust epipolar error."""
    import cv2

    def robust_cost(error: np.ndarray) -> float:
        return float(np.log1p((error / scale) ** 2).sum())

    essential = essential_matrix(turn, step)
    error = rays.sampson_distances(essential[None])[0]
    total_cost = robust_cost(error)
    damping = 1e-3
    for _ in range(12):
        normals = np.linalg.svd(step[None])[2][1:]  # two directions across the translation
        # how the essential matrix changes with a turn about each axis, and with the translation along each direction
        changes = np.concatenate([_cross_product_matrices(step) @ AXES, _cross_product_matrices(normals)]) @ turn
        jacobian = (rays.sampson_distances(essential + TINY * changes) - error) / TINY
        weighted = jacobian / (1 + (error / scale) ** 2)
        normal = weighted @ jacobian.T
        normal.flat[::6] += damping * (normal.flat[::6] + 1e-9)
        change = np.clip(-np.linalg.solve(normal, weighted @ error), -0.2, 0.2)
        moved = step + change[3:] @ normals
        tried = cv2.Rodrigues(change[:3])[0] @ turn, moved / np.sqrt(moved @ moved)
        tried_essential = essential_matrix(*tried)
        tried_error = rays.sampson_distances(tried_essential[None])[0]
        tried_cost = robust_cost(tried_error)
        if tried_cost < total_cost:
            gain = total_cost - tried_cost
            (turn, step), essential, error, total_cost = tried, tried_essential, tried_error, tried_cost
            damping /= 5
            if gain < 1e-3 * total_cost:
                break
        else:
            damping *= 10
    return total_cost, turn, step


def translation_towards_points(a: np.ndarray, b: np.ndarray, turn: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The translation with the sign that puts most points in front of the camera."""
    ra, rb = np.c_[a, np.ones(len(a))] @ turn.T, np.c_[b, np.ones(len(b))]
    # depth in the first frame from rb x (depth ra + step) = 0
    left, right = np.cross(rb, ra), -np.cross(rb, np.broadcast_to(step, rb.shape))
    return step if ((left * right).sum(axis=1) > 0).mean() >= 0.5 else -step


def fit_rotation_and_inliers(rays: Rays, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Rotation between rays that fits most of them within the tolerance, and which ones."""
    rays_a, rays_b = (ray / np.sqrt((ray * ray).sum(axis=0)) for ray in (rays.a, rays.b))
    weight = np.ones(rays.a.shape[1])
    turn = np.eye(3)
    for _ in range(10):  # iteratively reweighted Kabsch
        before = turn
        u, _, vt = np.linalg.svd((rays_b * weight) @ rays_a.T)
        turn = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
        error = np.sqrt(np.square(rays_b - turn @ rays_a).sum(axis=0))
        if np.abs(turn - before).max() < SETTLED:
            break
        weight = 1 / (1 + (error / max(tolerance, median(error))) ** 2) ** 2
    return turn, error < tolerance
