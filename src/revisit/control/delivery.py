"""Delivery: the payload of a generator for a camera path, read back as its loader reads it, with what is lost."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from revisit.control.generators import Generator
from revisit.control.payloads import FAMILIES, LoadedPath, PayloadError, PayloadRequest
from revisit.control.payloads.family import STILL, PayloadOptions, headings_between_poses, largest_distance_and_scale
from revisit.control.requested_path import CameraPlan, amplify_path, compile_script, limit_translation_per_axis
from revisit.core import RevisitError
from revisit.core.text import read_package_yaml
from revisit.geometry.camera_script import Step, frame_count_of_script, parse_script
from revisit.geometry.poses import make_trajectory, resample
from revisit.geometry.rotations import angle_between_rotations
from revisit.media.files import atomic_write_path

EXACT_DEGREES = 1e-2
EXACT_METRES = 1e-4
REMARKS = read_package_yaml("revisit.control", "remarks.yaml")


@dataclass(frozen=True, eq=False)
class Delivery:
    """What a generator is given: the files, the path that its loader takes from them, and how far that is from the ask.

    The errors are the largest in any frame, against what was asked, with the gain and before anything was clipped; None
    where the loader's units are not known. Where only the shape of a way is delivered, its error is the one at the best
    scale. `key_step` is how far one key goes at that scale, from one pose that the loader reads to the next.
    """

    plan: CameraPlan
    to: Generator
    files: Mapping[str, bytes]
    loaded: LoadedPath
    clipped: bool  # whether a way was longer than the generator's largest
    turn_error: float | None  # degrees
    way_error: float | None  # metres
    picture: tuple[int, int] | None = None  # size of the first picture, where it is known
    key_step: float | None = None  # metres; None where no key is held
    options: PayloadOptions = field(default_factory=dict)  # of the payload: the card's, or those of a patched copy

    @property
    def needs_patched_copy(self) -> bool:
        """Whether only a patched copy of the generator reads the files as they are meant."""
        return dict(self.options) != dict(self.to.options)

    @property
    def degrees_per_token(self) -> float | None:
        """Degrees that a token turns, where the payload has tokens."""
        usual = FAMILIES[self.to.payload].token_degrees
        return None if usual is None else float(self.options.get("degrees", usual))

    @property
    def is_exact(self) -> bool:
        """Whether a public loader, as it is, takes just what was asked from the files."""
        is_read_as_written = bool(self.to.loader) and not self.to.converter and not self.needs_patched_copy
        is_metric = self.loaded.ways == "metres" and not FAMILIES[self.to.payload].about
        return is_read_as_written and is_metric and self.turn_error is not None and not self.misses_requested_path

    @property
    def misses_requested_path(self) -> bool:
        """Whether the path that is delivered is known to be another."""
        return (self.turn_error or 0) > EXACT_DEGREES or (self.way_error or 0) > EXACT_METRES

    @property
    def one_line_payload(self) -> str:
        """The payload itself, where it is one line of text that a command can take; else nothing."""
        return next(iter(self.files.values())).decode().strip() if FAMILIES[self.to.payload].line else ""

    def remarks(self) -> list[str]:
        """What someone who uses it must know, as sentences."""
        family, lengths = FAMILIES[self.to.payload], _possible_frame_counts(self.plan.steps)
        way_error = self.way_error or 0
        applies = {
            "spread": len(self.plan) not in lengths,
            "amplified": self.to.gain[:2] != (1, 1) and family.gains,
            "cut": self.clipped,
            "shape": self.loaded.ways == "shape",
            "keys": self.key_step is not None and way_error > EXACT_METRES,
            "patched": self.needs_patched_copy,
            "unknown": self.turn_error is None,
            "inexact": self.turn_error is not None and self.misses_requested_path,
            "picture": family.pictured and self.picture is None,
            "converter": bool(self.to.converter),
        }
        facts = {"asked": lengths[0], "frames": len(self.plan), "keys": way_error / (self.key_step or 1)}
        return [text.format(delivery=self, **facts) for name, text in REMARKS.items() if applies[name]]

    def record_facts(self) -> dict[str, object]:
        """What the record of a generation keeps of it."""
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}
        together = hashlib.sha256("".join(f"{name}:{digest}\n" for name, digest in sorted(digests.items())).encode())
        return {
            "family": self.to.payload,
            "layout": FAMILIES[self.to.payload].layout,
            "sha256": digests.popitem()[1] if len(digests) == 1 else together.hexdigest(),
            "poses": len(self.loaded.frame),
            "gain": list(self.to.gain),
            "clipped": self.clipped,
            "exact": self.is_exact,
            "largest_turn_error_degrees": _round_six_digits_or_none(self.turn_error),
            "largest_way_error_metres": _round_six_digits_or_none(self.way_error),
            "ways": self.loaded.ways,
            **({} if self.key_step is None else {"key_step_metres": _round_six_digits_or_none(self.key_step)}),
            **({"patched": dict(self.options), "patch": self.to.patch} if self.needs_patched_copy else {}),
            "loader": self.to.loader or "none found",
            "checked": list(self.to.checked),
            "converter": self.to.converter,
            "note": self.to.note,
        }

    def write_files_beside(self, clip: Path) -> Path:
        """Write the files beside a clip's name; the one file, or the folder they are in."""
        family = FAMILIES[self.to.payload]
        place = clip.with_name(f"{clip.name}.camera" if family.is_folder else f"{clip.name}.camera.{family.files[0]}")
        for other in FAMILIES.values() if family.is_folder else ():  # what another generator was given here before
            for name in set(other.files) - set(self.files) if other.is_folder else ():
                (place / name).unlink(missing_ok=True)
        for name, content in self.files.items():
            with atomic_write_path(place / name if family.is_folder else place) as temporary:
                temporary.write_bytes(content)
        return place


def plan_for_generator(script: str, to: Generator, frames: int | None = None) -> CameraPlan:
    """The plan of a script for a generator.

    Without `frames` the clip is as long as the script says; where that can be read in two ways (see
    `camera_path_of_length`), the
    one that the generator can make. Where it can make neither, the path is spread over the frames of its card.
    """
    if frames is None:
        counts = _possible_frame_counts(parse_script(script))
        frames = next((count for count in counts if to.can_make_length(count)), to.frames)
    return compile_script(script, frames=frames, size=to.size, fps=to.fps)


def make_delivery(
    plan: CameraPlan, to: Generator, *, prompt: str = "", image: str = "", picture: tuple[int, int] | None = None
) -> Delivery:
    """The payload of a plan for a generator. `picture` is the size of the first picture, where it is known."""
    if not to.can_make_length(len(plan)):
        raise PayloadError(
            f"{to.id} makes clips of {to.lengths_text} frames, not {len(plan)}; give --frames {to.frames}"
        )
    if not to.static and not any(step.moves for step in plan.steps):
        raise PayloadError(f"{to.id} has no way to keep its camera still")
    family = FAMILIES[to.payload]
    turns, distances, limit = to.gain
    target = amplify_path(plan.path.c2w, rotation=turns, translation=distances) if family.gains else plan.path.c2w
    fed = limit_translation_per_axis(target, limit) if family.gains else target
    files, options = _payload_files_and_options(PayloadRequest(plan, fed, prompt, image, picture), to)
    delivered = family.read(files, len(plan), **options)
    turn_error, way_error, key_step = None, None, None
    if delivered.c2w is not None:
        actual, expected = _interpolate_poses_to_frames(delivered), target[delivered.frame[0] : delivered.frame[-1] + 1]
        turn_error = float(angle_between_rotations(expected[:, :3, :3], actual[:, :3, :3]).max())
        is_shape = delivered.ways == "shape"
        way_error, scale = largest_distance_and_scale(expected[:, :3, 3], actual[:, :3, 3], shape_only=is_shape)
        key_step = delivered.key * scale if delivered.key else None
    if delivered.moves is not None and (delivered.c2w is None or turns != 1):
        # The heading is the one that was asked for: a gain makes up for a generator that turns by less than told.
        c2w = plan.path.c2w
        by_keys = _positions_from_keys(delivered, c2w)
        way_error, key_step = largest_distance_and_scale(c2w[:, :3, 3], by_keys, shape_only=True)
    if key_step is not None and way_error is not None and way_error > key_step * (1 + 1e-6):
        raise PayloadError(
            f"keys of one speed cannot follow this path: they would be {way_error:.3f} metres off, one key's step is "
            f"{key_step:.3f}; choose a generator that takes poses, or a slower turn"
        )
    if family.keyed and not delivered.key and np.abs(plan.path.c2w[:, :3, 3] - plan.path.c2w[0, :3, 3]).max() > STILL:
        raise PayloadError("the path moves too briefly for a key: it is back before the loader looks at the next one")
    was_clipped = not family.keyed and not np.array_equal(target, fed)
    return Delivery(plan, to, files, delivered, was_clipped, turn_error, way_error, picture, key_step, options)


def refusal_reasons(scripts: Mapping[str, str], to: Generator, frames: int | None = None) -> dict[str, str]:
    """Which of these scripts a generator cannot be asked for, and why: name -> the reason."""
    reasons = {}
    for name, script in scripts.items():
        try:
            make_delivery(plan_for_generator(script, to, frames), to)
        except RevisitError as error:
            reasons[name] = str(error)
    return reasons


def _payload_files_and_options(ask: PayloadRequest, to: Generator) -> tuple[dict[str, bytes], PayloadOptions]:
    """The files of a path and the options they were written with: those of a patched copy where others do not do."""
    write = FAMILIES[to.payload].write
    refused: PayloadError | None = None
    for options in (to.options, *({**to.options, **changed} for changed in to.patched)):
        try:
            return write(ask, **options), options
        except PayloadError as error:
            refused = refused or error
    assert refused is not None
    raise PayloadError(f"{refused}; a patched copy could not do it either" if to.patched else str(refused))


def _positions_from_keys(delivered: LoadedPath, c2w: np.ndarray) -> np.ndarray:
    """Where keys lead along the heading of a path, frame by frame (N, 3), in steps of one key."""
    assert delivered.moves is not None
    steps = np.einsum("nij,nj->ni", headings_between_poses(c2w[delivered.frame]), delivered.moves)
    at = np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])
    right, ahead = (np.interp(np.arange(len(c2w)), delivered.frame, axis) for axis in at.T)
    return np.stack([right, np.zeros(len(c2w)), ahead], axis=1)


def _possible_frame_counts(steps: Sequence[Step]) -> tuple[int, ...]:
    """The frames that a script may ask for, the likeliest first."""
    total = sum(step.frames for step in steps)
    return tuple(dict.fromkeys((frame_count_of_script(steps), total, total + 1)))


def _interpolate_poses_to_frames(delivered: LoadedPath) -> np.ndarray:
    """The delivered poses of every frame: what happens between two poses that a loader reads is the even way."""
    assert delivered.c2w is not None
    frames = np.arange(delivered.frame[0], delivered.frame[-1] + 1)
    if len(frames) == len(delivered.frame):
        return delivered.c2w
    return resample(make_trajectory(delivered.c2w, delivered.frame), frames).c2w


def _round_six_digits_or_none(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
