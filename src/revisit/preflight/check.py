"""Check: everything that is wrong with a set of clips, each fault with its clip and a sentence.

How a clip looks is told by a few small copies of its frames, without asking what they show.

Turns of the camera that the picture shows (odometry) are held to those that were asked for, by side and by amount; the
length of a way cannot be seen in one camera's pictures. The picture's field of view is rarely known, so amounts are
held to loose bounds; the side is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from revisit.core import OBSERVERS, Clip, Rejected, RevisitError
from revisit.core.grouping import group_items
from revisit.core.text import count_and_noun, join_names, read_package_yaml
from revisit.evidence.camera import CameraPath
from revisit.evidence.pictures import is_black, is_flat
from revisit.geometry.poses import make_rigid_poses
from revisit.geometry.rotations import yaw_pitch_of_rotation
from revisit.media import file_digest, open_clip
from revisit.preflight.expected import Expected

# kind -> what it means; in the order of the table
KINDS: Mapping[str, str] = read_package_yaml("revisit.preflight", "faults.yaml")
RATE = 0.01  # relative: frame rates that are nearer are one
UNLIKE = 45.0  # of 255: a first frame that is so far from the given one is another picture
RELATED = 0.5  # correlation with it: of 24 clips by eight models 0.89 or more, of other pictures 0.51 or less
SIZE = (64, 36)  # width, height of a small copy
LOOKS = 24  # of a clip, evenly spread
BLOCK = 4  # pixels of a small copy: change is looked for in blocks
MOST = 0.9  # of the frames are black or blank
STILL = (1.6, 8.0)  # of 255: mean change, and that of any block, of a clip that was asked to move and does not
FROZEN = (1.2, 5.0)  # the same, where nobody says what was asked; the stillest of 85 real clips changes by 7 and 34
ALIKE = 0.4  # of 255, in the mean: two clips that are one, encoded twice
NEARER = 0.6  # another sample's first frame fits by so much better
APART = 6.0  # of 255: a first frame that is nearer than this is the given one
ODOMETRY = "lite.odometry"
ASKED = 12.0  # degrees: turns that are smaller are not held to anything
REST = 1.0  # degrees: a camera that turns by less was asked to rest, if it does not go anywhere
UNREST = 15.0  # degrees by which a camera at rest must turn to be told
LEAST_GAIN, MOST_GAIN = 0.35, 2.8  # of the asked turn: the field of view may be off by as much
AGREES = 0.5  # of the correlation between both courses
RELIABLE = 0.6  # of the frames; the others say nothing


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with a clip."""

    kind: str
    id: str
    model: str
    clip: Path
    sentence: str


@dataclass
class CheckReport:
    """What was looked at, what is wrong, and what could not be told."""

    clips: int = 0
    there: int = 0  # without any only inputs were checked
    faults: list[Fault] = field(default_factory=list)
    unchecked: Counter[str] = field(default_factory=Counter)  # what could not be held to anything -> clips
    remarks: list[str] = field(default_factory=list)  # what is no fault and may be none of the user's intentions


def check_clips(
    expected: Sequence[Expected],
    *,
    strangers: Sequence[Path] = (),
    rejected: Sequence[Rejected] = (),
    workers: int = 1,
    tell: Callable[[int, int], None] = lambda number, total: None,
) -> CheckReport:
    """Everything that is wrong with clips, and with what they are to be made from; `strangers` belong to no sample.

    `rejected` are entries of a dataset that cannot become a clip.
    """
    report = CheckReport(len(expected), sum(one.clip.exists() for one in expected))
    for path in strangers:
        sentence = f"the dataset has no sample of this name; remove {path}, or rename it"
        report.faults.append(Fault("not asked for", path.name, path.parent.name, path, sentence))
    report.faults += [Fault("bad input", entry.id, entry.model, Path(), entry.reason) for entry in rejected]
    for one in expected:
        if one.problem:
            report.faults.append(_fault_of_clip("bad input", one, one.problem))
        if not one.clip.exists() and report.there:
            report.faults.append(_fault_of_clip("missing", one, f"there is no {one.clip}"))
    there = [one for one in expected if one.clip.exists()]
    seen: list[tuple[Expected, Appearance]] = []
    with ThreadPoolExecutor(max(workers, 1)) as pool:
        results = zip(there, pool.map(_check_single_clip, there), strict=True)
        for number, (one, (appearance, faults, undecided)) in enumerate(results, start=1):
            report.faults += faults
            report.unchecked.update(undecided)
            if appearance is not None:
                seen.append((one, appearance))
            tell(number, len(there))
    report.remarks += _mixed_size_and_rate_remarks(seen)
    report.remarks += _copies_between_models_remarks(seen)
    report.faults += _duplicate_faults(seen)
    report.faults += _first_frame_faults(seen, report.unchecked)
    order = list(KINDS)
    report.faults.sort(key=lambda fault: (order.index(fault.kind), fault.model, fault.id))
    return report


def _check_single_clip(expected_clip: Expected) -> tuple[Appearance | None, list[Fault], list[str]]:
    """What is wrong with a clip by itself, and what cannot be decided."""
    try:
        appearance = measure_appearance(expected_clip.clip)
    except RevisitError as error:
        return None, [_fault_of_clip("unreadable", expected_clip, str(error))], []
    problems = dict(_size_and_length_problems(expected_clip, appearance))
    path, undecided = expected_clip.path, []
    moves = camera_moves(path)
    if blank := why_blank(appearance):
        problems["black"] = blank
    elif (path is None or moves) and (frozen := why_frozen(appearance, moves)):
        problems["frozen"] = frozen
    elif path is None or (moves and not _largest_turn(turns_from_first_view(path)) >= ASKED):
        undecided.append("camera: no turn was asked for that could be seen")
    elif (wrong := camera_fault(expected_clip.clip, path)) is None:
        undecided.append("camera: the picture does not tell how it turns")
    elif wrong:
        problems["camera"] = wrong
    return appearance, [_fault_of_clip(kind, expected_clip, why) for kind, why in problems.items()], undecided


def _size_and_length_problems(one: Expected, appearance: Appearance) -> Iterator[tuple[str, str]]:
    """Kinds of faults in length, size and rate, each with a sentence; with a tolerance only the seconds count."""
    if one.tolerance:
        if one.frames is not None and one.fps is not None and appearance.fps:
            seconds, requested = appearance.frames / appearance.fps, one.frames / one.fps
            if abs(seconds - requested) > one.tolerance * requested:
                wanted = f"{requested:.1f} s were asked for ({one.tolerance:.0%} more or less)"
                yield "wrong length", f"it takes {seconds:.1f} s, and {wanted}"
        return
    if one.frames is not None and appearance.frames != one.frames:
        yield "wrong length", f"it has {appearance.frames} frames, and {one.frames} were asked for"
    if one.size is not None and appearance.size != tuple(one.size):
        size, expected_size = ("x".join(map(str, size)) for size in (appearance.size, one.size))
        yield "wrong size", f"it is {size}, and {expected_size} was asked for"
    if one.fps is not None and abs(appearance.fps - one.fps) > RATE * one.fps:
        yield "wrong rate", f"it has {appearance.fps:g} frames a second, and {one.fps:g} were asked for"


def _mixed_size_and_rate_remarks(seen: Sequence[tuple[Expected, Appearance]]) -> list[str]:
    """Models whose clips were free in size and rate, and have several."""
    remarks = []
    free = [(one.model, appearance) for one, appearance in seen if one.tolerance]
    for model, of_model in group_items(free, lambda pair: pair[0]).items():
        sizes = {"x".join(map(str, look.size)) for _, look in of_model}
        rates = {f"{look.fps:g}" for _, look in of_model}
        for what, several in (("sizes", sizes), ("frame rates", rates)):
            if len(several) > 1:
                remarks.append(f"{model}: clips have {len(several)} {what} ({', '.join(sorted(several))})")
    return remarks


def _copies_between_models_remarks(seen: Sequence[tuple[Expected, Appearance]]) -> list[str]:
    """A sentence on clips that are, byte for byte, those of another model or of the truth."""
    first: dict[str, Expected] = {}
    copies = []
    for one, appearance in seen:
        original = first.setdefault(appearance.digest or one.id, one)
        if original.model != one.model:
            same = one.id == original.id  # where ids are those of scenes, not paths
            names = [f"{clip.id} of {clip.model}" if same else clip.id for clip in (one, original)]
            copies.append(" is ".join(names))
    if not copies:
        return []
    verb = "is a copy" if len(copies) == 1 else "are copies"
    return [f"{count_and_noun(len(copies), 'clip')} {verb} of another model's or the truth's: {join_names(copies)}"]


def _duplicate_faults(seen: Sequence[tuple[Expected, Appearance]]) -> list[Fault]:
    """Clips of one model that are the same, though their jobs are not; baseline generators know no prompt, and may."""
    faults = []
    own = [(one, appearance) for one, appearance in seen if not one.stand_in]
    for group in group_items(own, lambda pair: (pair[0].model, pair[1].frames, pair[1].small.shape)).values():
        means = np.array([appearance.small.mean(axis=(0, 1, 2)) for _, appearance in group])
        for k, (one, appearance) in enumerate(group):
            for j in np.nonzero(np.abs(means[:k] - means[k]).max(axis=1) < 1)[0] if k else ():
                other, appearance_of_other = group[int(j)]
                same_inputs = one.inputs and one.inputs == other.inputs
                if not same_inputs and is_same_clip(appearance, appearance_of_other):
                    faults.append(_fault_of_clip("duplicate", one, f"it is the same clip as {other.id}"))
                    break
    return faults


def _first_frame_faults(seen: Sequence[tuple[Expected, Appearance]], unchecked: Counter[str]) -> list[Fault]:
    """Clips that begin with another picture than they were given."""
    first_frames = dict.fromkeys(one.first for one, _ in seen if one.first is not None)
    readable = {path: small for path in first_frames if (small := read_small_copy(path)) is not None}
    faults = []
    for one, appearance in seen:
        own = readable.get(one.first) if one.first else None
        if own is None:
            unchecked["first frame: none was given"] += 1
            continue
        if why_blank(appearance):
            continue  # told already
        first = appearance.small[0]
        mine = mean_difference_without_tint(first, own)
        distances = {
            path: mean_difference_without_tint(first, small) for path, small in readable.items() if path != one.first
        }
        nearest = min(distances, key=lambda path: distances[path], default=None)
        if nearest is not None and mine > APART and distances[nearest] < NEARER * mine:
            whose = next(other for other, _ in seen if other.first == nearest)
            faults.append(_fault_of_clip("another sample", one, f"it begins with the first frame of {whose.id}"))
        elif mine > UNLIKE or (mine > APART and lightness_correlation(first, own) < RELATED):
            faults.append(
                _fault_of_clip("first frame", one, f"its first frame is not the given one (off by {mine:.0f} of 255)")
            )
    return faults


def _fault_of_clip(kind: str, expected_clip: Expected, sentence: str) -> Fault:
    return Fault(kind, expected_clip.id, expected_clip.model, expected_clip.clip, sentence)


@dataclass(frozen=True, eq=False)
class Appearance:
    """Small copies of frames, and facts of the file."""

    frames: int
    fps: float
    size: tuple[int, int]
    small: np.ndarray  # (n, 36, 64, 3) levels
    digest: str


def measure_appearance(clip: Path) -> Appearance:
    """What a clip looks like; raises MediaError where it cannot be decoded to its end."""
    import cv2

    def spread_frame_numbers(count: int, fps: float) -> np.ndarray:
        return np.unique(np.linspace(0, count - 1, min(count, LOOKS)).round().astype(int))

    with open_clip(Clip(clip), wanted=spread_frame_numbers) as stream:
        small = [cv2.resize(frame.rgb, SIZE, interpolation=cv2.INTER_AREA).astype(np.float32) for frame in stream]
        info = stream.info
    digest = "" if clip.is_dir() else file_digest(clip)
    return Appearance(info.count, float(info.fps), (info.width, info.height), np.stack(small), digest)


def read_small_copy(path: Path) -> np.ndarray | None:
    """The small copy of a picture."""
    import cv2

    full = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
    return None if full is None else cv2.resize(full[..., ::-1], SIZE, interpolation=cv2.INTER_AREA).astype(np.float32)


def why_blank(appearance: Appearance) -> str:
    """Why a clip shows nothing, or nothing."""
    dark = is_black(appearance.small.mean(-1))
    if np.mean(dark) >= MOST:
        return f"{np.sum(dark)} of {dark.size} frames are black"
    flat = np.asarray(is_flat(np.moveaxis(appearance.small, -1, 1)).all(axis=1))
    return f"{np.sum(flat)} of {flat.size} frames have one colour" if np.mean(flat) >= MOST else ""


def why_frozen(appearance: Appearance, asked_to_move: bool) -> str:
    """Why a clip is a still picture, or nothing. A camera that was asked to rest is not asked about."""
    if len(appearance.small) < 2:
        return ""
    change = np.abs(appearance.small - appearance.small[0]).mean(-1)
    h, w = change.shape[1] // BLOCK, change.shape[2] // BLOCK
    blocks = change[:, : h * BLOCK, : w * BLOCK].reshape(len(change), h, BLOCK, w, BLOCK).mean(axis=(2, 4))
    mean, most = STILL if asked_to_move else FROZEN
    still = float(change.mean(axis=(1, 2)).max()) <= mean and float(blocks.max()) <= most
    return f"all {appearance.frames} frames are one picture" if still else ""


def mean_difference_without_tint(a: np.ndarray, b: np.ndarray) -> float:
    """Mean difference in levels of two small copies, whatever their light and tint."""
    return float(np.abs((a - a.mean(axis=(0, 1))) - (b - b.mean(axis=(0, 1)))).mean())


def lightness_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of the lightness of two small copies: 1 one picture, 0 nothing in common."""
    one, other = (small.mean(axis=2) - small.mean() for small in (a, b))
    return float((one * other).sum() / max(np.linalg.norm(one) * np.linalg.norm(other), 1e-9))


def is_same_clip(a: Appearance, b: Appearance) -> bool:
    """Whether two files are one clip: the same bytes, or the same pictures encoded twice."""
    if a.digest and a.digest == b.digest:
        return True
    return a.small.shape == b.small.shape and a.frames == b.frames and float(np.abs(a.small - b.small).mean()) < ALIKE


def turns_from_first_view(path: np.ndarray) -> np.ndarray:
    """Degrees (frames, 2) to the right of and above the first view."""
    yaw, pitch = yaw_pitch_of_rotation(path[0, :3, :3].T @ path[:, :3, :3])
    return np.column_stack([np.degrees(np.unwrap(np.radians(yaw))), pitch])


def camera_moves(path: np.ndarray | None) -> bool:
    """Whether a path goes anywhere at all."""
    return path is not None and (
        _largest_turn(turns_from_first_view(path)) > REST or bool(np.ptp(path[:, :3, 3], axis=0).max() > 0.02)
    )


def camera_fault(clip: Path, path: np.ndarray) -> str | None:
    """What is wrong with the camera of a clip; empty where nothing is, None where its turns cannot be told."""
    try:
        odometry = OBSERVERS[ODOMETRY]
        inputs, params = odometry.split_inputs_and_parameters({})
        with open_clip(
            Clip(clip), wanted=partial(odometry.wanted_frame_numbers, inputs=inputs, params=params)
        ) as stream:
            estimate: CameraPath = odometry(stream)
    except RevisitError:
        return None
    requested = turns_from_first_view(path)
    turns = turns_from_first_view(make_rigid_poses(estimate.rotation))
    sure = np.asarray(estimate.reliable, dtype=bool)
    if len(turns) < 3 or sure.mean() < RELIABLE:
        return None
    times = estimate.index / max(int(estimate.index[-1]), 1) * (len(requested) - 1)
    requested = np.column_stack([np.interp(times, np.arange(len(requested)), column) for column in requested.T])
    rests = not camera_moves(path)
    if not rests and _largest_turn(requested[sure]) < ASKED:
        return None  # where it turned, odometry was lost
    return turn_fault(requested[sure], turns[sure], rests)


def turn_fault(requested: np.ndarray, estimate: np.ndarray, rests: bool) -> str:
    """What is wrong with turns (n, 2) that were seen where others were asked for; empty if nothing is."""
    want, got = _largest_turn(requested), _largest_turn(estimate)
    if rests:
        return f"it should rest and turns by {got:.0f} degrees" if got > UNREST else ""
    together = float((requested * estimate).sum())
    agrees = together / max(float(np.linalg.norm(requested) * np.linalg.norm(estimate)), 1e-9)
    gain = together / float((requested * requested).sum())
    if got >= LEAST_GAIN * want:
        if agrees < AGREES:
            how = "it turns the other way" if agrees < -AGREES else "it goes another way"
            return f"{how}: {_farthest_turn_text(estimate)}, and {_farthest_turn_text(requested)} was asked for"
        if LEAST_GAIN <= gain <= MOST_GAIN:
            return ""
    return f"it turns by {got:.0f} degrees, and {want:.0f} were asked for"


def _largest_turn(turns: np.ndarray) -> float:
    return float(np.hypot(*turns.T).max())


def _farthest_turn_text(turns: np.ndarray) -> str:
    """The farthest turn, such as `40 degrees to the left`."""
    yaw, pitch = turns[np.hypot(*turns.T).argmax()]
    if abs(yaw) >= abs(pitch):
        return f"{abs(yaw):.0f} degrees to the {'right' if yaw > 0 else 'left'}"
    return f"{abs(pitch):.0f} degrees {'up' if pitch > 0 else 'down'}"
