"""Build: a MIND dataset from recordings with key logs or poses, and go-and-return tests from scripts of keys.

Beside `<name>.mp4` lies `<name>.keys.csv` (frame, keys: the keys held from that frame on, of w s a d to walk and of
u n l r to look up, down, left and right) or `<name>.poses.npy` (camera-to-world, metres, one
per frame). From poses the
keys are what the camera did from frame to frame; from keys the path is what steps of a known size make of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from revisit.core import MediaError, UsageError
from revisit.core.text import convert_read_errors
from revisit.geometry.formats import format_colmap
from revisit.geometry.poses import InvalidPoses, make_trajectory, require_rigid_poses, to_4x4_poses
from revisit.judges.questions import JsonObject, Question, Text
from revisit.media import frame_count_in_mp4_index, load_npy, write_picture
from revisit.media.files import write_text_atomically
from revisit.media.text_files import csv_dict_reader
from revisit.suites import authoring
from revisit.suites.mind.metrics.selection import MIRROR, SHARED
from revisit.suites.mind.read import PERSPECTIVES, SCENES
from revisit.suites.mind.world_keys import (
    CODES,
    MIRRORS,
    Actor,
    KeySteps,
    action_file_content,
    infer_keys_from_path,
    keys_out_and_back,
    walk_with_keys,
)

# What a recording shows, for a generator that is to go on with it.
CAPTION = Question(
    "mind.caption",
    "These are frames of one recording, in order: somebody walks through a place and looks around. Describe the place, "
    "what stands in it and how it looks, and who or what is seen, in two or three sentences. Say nothing of the camera "
    "and of what may come next. Then name the kind of place in one or two words.",
    JsonObject({"caption": Text(900), "kind": Text(40)}),
)
TICKS = 24  # out, and as many back


def read_held_keys(path: Path, frames: int) -> list[str]:
    """The keys of every frame, from a log of changes."""
    with convert_read_errors(path, "a CSV file with the columns frame and keys"):
        rows = list(csv_dict_reader(path.read_text(encoding="utf-8-sig")))
        changes = {int(row["frame"]): (row["keys"] or "").replace("+", "").strip().lower() for row in rows}
    keys, keys_by_frame = "", []
    for frame in range(frames):
        keys = changes.get(frame, keys)
        if unknown := sorted(set(keys) - set(CODES)):
            raise UsageError(f"{path}: frame {frame} holds {unknown[0]!r}; keys are {', '.join(CODES)}")
        keys_by_frame.append(keys)
    return keys_by_frame


def camera_path_of_keys(keys: Sequence[str], steps: KeySteps) -> np.ndarray:
    """Camera-to-world poses (frames, 4, 4); the keys of a frame lead to the next one."""
    return np.stack([actor.camera_pose() for actor in walk_with_keys(keys, Actor(), steps)])


def write_mind_dataset(
    root: Path, videos: Iterable[Path], *, perspective: str, mark: float, steps: KeySteps, licence: str, source: str,
    captions: Mapping[str, str], kinds: Mapping[str, str],
) -> tuple[Path, list[str]]:  # fmt: skip
    """The dataset of some recordings with its mirror tests, and a sentence for each that was left out.

    `captions` and `kinds` (of scenes) are by the names of recordings; they become description/<name>.txt and
    scenes.csv, as far as they are known.
    """
    if perspective not in PERSPECTIVES:
        raise UsageError(f"--perspective is {' or '.join(PERSPECTIVES)}, not {perspective!r}")
    if not 0 < mark < 1:
        raise UsageError(f"--mark is the share of a recording that is context, between 0 and 1, not {mark:g}")
    data = authoring.make_empty_folder(root) / "MIND-Data"
    test = data / perspective / "test"
    whose = ("actor", "camera") if perspective == "3rd_data" else ("actor",)
    names: list[str] = []
    left_out = []
    for video in videos:
        try:
            if video.stem in names:
                raise UsageError(f"another recording is called {video.stem}; give one of them another name")
            keys, c2w = _read_keys_and_path(video, steps)
            first = round(mark * len(keys))
            if first == len(keys):
                raise UsageError(f"with --mark {mark:g} none of its {len(keys)} frames is left to predict")
        except (UsageError, MediaError, InvalidPoses) as error:
            left_out.append(f"{video.name}: {error}")
            continue
        place = test / SHARED / video.stem
        place.mkdir(parents=True)
        shutil.copyfile(video, place / f"video{video.suffix.lower()}")
        authoring.write_json_file(place / "action.json", action_file_content(keys, dict.fromkeys(whose, c2w), first))
        write_text_atomically(place / "images.txt", format_colmap(make_trajectory(c2w[first:])))
        write_picture(test / MIRROR / f"{video.stem}.png", authoring.read_video_frame(video, 0))
        if caption := captions.get(video.stem):
            write_text_atomically(data / perspective / "description" / f"{video.stem}.txt", f"{caption}\n")
        names.append(video.stem)
    if not names:
        raise UsageError("; ".join(left_out) or "there is no recording")
    for name, out_keys in MIRRORS.items():
        keys = keys_out_and_back(out_keys, TICKS)
        half = camera_path_of_keys(keys[:TICKS], steps)
        paths = dict.fromkeys(whose, np.concatenate([half, half[::-1]]))  # frame i and frame n-1-i are one view
        authoring.write_json_file(test / MIRROR / f"{name}.json", action_file_content(keys, paths, 0))
    if kind_rows := [(name, kinds[name], perspective) for name in names if kinds.get(name)]:
        authoring.write_csv_file(data / SCENES, ("name", "kind", "perspective"), kind_rows, newline="\n")
    counts = {"recordings": len(names), "first frames of mirror tests": len(names)}
    counts |= {"go-and-return files": len(MIRRORS), "recordings with a caption": len(captions)}
    title = f"MIND recordings of {source}"
    authoring.write_dataset_card(data, "mind", title=title, licence=licence, source=source, counts=counts)
    return data, left_out


def _read_keys_and_path(video: Path, steps: KeySteps) -> tuple[list[str], np.ndarray]:
    """Keys and path of a recording, whichever was recorded."""
    frames = frame_count_in_mp4_index(video)
    if frames is None:
        raise UsageError("the file does not say how many frames it has; save it as mp4")
    log, poses = video.with_suffix(".keys.csv"), video.with_suffix(".poses.npy")
    if poses.is_file():
        c2w = to_4x4_poses(load_npy(poses))
        require_rigid_poses(c2w)
        if len(c2w) != frames:
            raise UsageError(f"{poses.name} has {len(c2w)} poses, and the video {frames} frames")
        return (read_held_keys(log, frames) if log.is_file() else infer_keys_from_path(c2w)), c2w
    if not log.is_file():
        raise UsageError(f"neither {log.name} nor {poses.name} lies beside it")
    keys = read_held_keys(log, frames)
    return keys, camera_path_of_keys(keys, steps)
