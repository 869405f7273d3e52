"""Cases from a tree of predictions beside the dataset's own tree.

Every recording of the dataset is expected once per model; what nobody made is yielded as missing, so that coverage
counts it. Files that belong to no test are passed over. A name is never split at its dots.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from revisit.core import Case, Clip, Rejected, UsageError
from revisit.core.text import convert_read_errors, parse_json
from revisit.datasets.clips import first_file, require_option_folder, video_files, visible_folders
from revisit.media import VIDEO_SUFFIXES, frame_count_in_mp4_index
from revisit.media.text_files import csv_dict_reader
from revisit.suites.mind.metrics.selection import MAIN, MIRROR, SHARED, VARIED

PERSPECTIVES = ("1st_data", "3rd_data")
TESTS = (*MAIN, MIRROR)
POSES = ("images.txt", "poses.npz", "poses.npy", "poses.txt")  # of a prediction, the first that is there
ACTION_SPACE = re.compile(r"(?P<scene>.+)-(?P<speed>\d+(?:\.\d+)?)x-(?P<angle>\d+(?:\.\d+)?)")
MOST_BYTES = 256 << 20  # of an action file; a recording of an hour has some tens of megabytes
KIND = "scene_kind"  # an annotation: one of the paper's eight kinds of scenes, or another word
KIND_KEYS = ("scene_kind", "scene_type", "scene_category")  # of an action file that tells it
SCENES = "scenes.csv"  # in the dataset: name, kind, and where two perspectives share a name also perspective
ActionRow = Mapping[str, Any]  # of an action file: time, keys, and where the actor and the camera are
ActionFile = Mapping[str, Any]  # mark_time, total_time, data, and perhaps a caption and the kind of the scene
ACTION_FILE = 'expected {"mark_time": 240, "total_time": 1000, "data": [one row per frame]}'


@dataclass(frozen=True)
class RecordingInfo:
    """What the dataset says of one clip."""

    video: Path
    actions: Path
    mark: int  # first frame that is to be predicted
    total: int
    caption: str
    poses: Path | None
    poses_from: int  # number, in the file of poses, of the first predicted frame
    kind: str = ""  # of scene, where the action file tells one


def is_mind_source(source: Path) -> bool:
    """Whether this is a tree of predictions, or a folder of such trees."""
    return source.is_dir() and bool(_prediction_trees_by_model(source))


def read(
    source: Path,
    roots: Sequence[Path] = (),
    *,
    gt: str | None = None,
    model: str | None = None,
    poses: str | None = None,
    scenes: str | None = None,
) -> Iterator[Case | Rejected]:
    """Cases of all models in `source`, and what is missing or cannot be used."""
    trees = _prediction_trees_by_model(source) if source.is_dir() else {}
    if not trees:
        raise UsageError(
            f"{source}: no predictions found; expected {{1st_data,3rd_data}}/{{{','.join(TESTS)}}} in it, "
            "or folders of models with these"
        )
    if model is not None and len(trees) > 1:
        raise UsageError(f"{source} holds {len(trees)} models ({', '.join(trees)}); --option model names one")
    truth = None if gt is None else find_truth_root(Path(gt).expanduser())
    estimated = None if poses is None else require_option_folder("poses", poses)
    tests = sorted({test for tree in trees.values() for test in MAIN if _has_test(tree, test)})
    if truth is None and tests:
        needed = "the dataset's ground truth: add --option gt=DIR, the folder with 1st_data/test"
        raise UsageError(f"{' and '.join(tests)} need {needed}")
    load_recording = cache(read_recording_info)  # every model is compared with the same ones
    kinds = read_scene_kinds(truth, None if scenes is None else Path(scenes).expanduser())

    @cache
    def longest_prediction_frames(place: str) -> int | None:
        """Frames of the longest prediction in this place of all trees; None where one of them does not say."""
        videos = [video for tree in trees.values() if (video := find_video_file(tree / place)) is not None]
        lengths = [frame_count_in_mp4_index(video) for video in videos]
        return None if None in lengths else max((length or 0 for length in lengths), default=0) or None

    for name, tree in trees.items():
        for perspective in PERSPECTIVES:
            entries: list[Case | Rejected] = []
            for place in () if truth is None else (truth / perspective / "test" / test for test in MAIN):
                entries += _prediction_cases(model or name, tree, place, load_recording, longest_prediction_frames)
            entries += _mirror_cases(model or name, tree, truth, perspective, load_recording)
            for entry in entries:
                yield _add_kind_and_poses(entry, kinds, estimated) if isinstance(entry, Case) else entry


def read_scene_kinds(truth: Path | None, own_table: Path | None = None) -> dict[tuple[str, str], str]:
    """(perspective, name of a recording) -> kind of its scene, from a table; the perspective is empty for both."""
    path = own_table or (None if truth is None else truth / SCENES)
    if path is None or (own_table is None and not path.is_file()):
        return {}
    with convert_read_errors(
        path, "a CSV file with the columns name, kind, and perspective where a name means two scenes"
    ):
        rows = list(csv_dict_reader(path.read_text(encoding="utf-8-sig")))
        return {((row.get("perspective") or "").strip(), row["name"].strip()): row["kind"].strip() for row in rows}


def _add_kind_and_poses(case: Case, kinds: Mapping[tuple[str, str], str], estimated: Path | None) -> Case:
    """The case with the kind of its scene by the table, and with its file of estimated poses, where there are such.

    The table goes before what names and files tell; a file of poses is <model>/<perspective>/<test>/<name>.npz.
    """
    name = case.sample.rpartition("/")[2]
    if kind := kinds.get((case.subset, name)) or kinds.get(("", name)):
        case = replace(case, annotations={**case.annotations, KIND: kind})
    if estimated is None or case.condition == MIRROR:
        return case
    file = first_file(estimated / case.model / f"{case.sample}{suffix}" for suffix in (".npz", ".npy", ".txt"))
    return case if file is None else replace(case, artifacts={**case.artifacts, "poses": file})


def find_truth_root(folder: Path) -> Path:
    """The folder of the dataset that holds 1st_data and 3rd_data."""
    for root in (folder, folder / "MIND-Data"):
        if any((root / perspective / "test").is_dir() for perspective in PERSPECTIVES):
            return root
    raise UsageError(f"{folder}: no ground truth found; expected the dataset's 1st_data/test or 3rd_data/test in it")


def _prediction_trees_by_model(source: Path) -> dict[str, Path]:
    """Model name -> tree of its predictions."""
    if _has_test(source, *TESTS):
        return {source.resolve().name: source}
    return {entry.name: entry for entry in visible_folders(source) if _has_test(entry, *TESTS)}


def _has_test(tree: Path, *tests: str) -> bool:
    return any((tree / perspective / test).is_dir() for perspective in PERSPECTIVES for test in tests)


def _prediction_cases(
    model: str,
    tree: Path,
    truth: Path,
    load_recording: Callable[[Path], RecordingInfo | str],
    longest: Callable[[str], int | None],
) -> Iterator[Case | Rejected]:
    """The predictions of the recordings of a test, which lie in `truth`."""
    perspective, test = truth.parts[-3], truth.name
    recordings = {place.name: place for place in visible_folders(truth)}
    for name in recordings:
        sample = f"{perspective}/{test}/{name}"
        video = find_video_file(tree / sample)
        absent = f"missing: there is no {sample}/video.mp4"
        entry = absent if video is None else load_recording(recordings[name])
        if video is None or isinstance(entry, str):
            yield Rejected(f"{sample}@{model}", str(entry), model, perspective, test, missing=video is None)
        else:
            yield _prediction_case(model, sample, video, entry, longest(sample))
    for place in visible_folders(tree / perspective / test):
        if place.name not in recordings and find_video_file(place) is not None:
            name = f"{perspective}/{test}/{place.name}"
            reason = f"the dataset has no {perspective}/test/{test}/{place.name}; name a prediction after its recording"
            yield Rejected(f"{name}@{model}", reason, model, perspective, test)


def _prediction_case(model: str, sample: str, video: Path, entry: RecordingInfo, frames: int | None) -> Case:
    perspective, test, name = sample.split("/")
    own = first_file(video.parent / file for file in POSES)
    artifacts = {"actions": entry.actions, "true_poses": entry.poses, "poses": own}
    remaining = entry.total - entry.mark
    return Case(
        id=f"{sample}@{model}",
        suite="mind",
        model=model,
        sample=sample,
        clip=Clip(video),
        # One stretch for all models, so that it is decoded once for all, and not further than the longest of them.
        reference=Clip(entry.video, start=entry.mark, count=min(frames, remaining) if frames else remaining),
        align="index",
        subset=perspective,
        condition=test,
        prompt=entry.caption,
        annotations={
            "mark_time": entry.mark,
            "total_time": entry.total,
            "true_poses_from": entry.poses_from,
            **parse_action_space(name, test),
            **({KIND: entry.kind} if entry.kind else {}),
        },
        artifacts={artifact: path for artifact, path in artifacts.items() if path is not None},
    )


def parse_action_space(name: str, test: str) -> dict[str, Any]:
    """What the name of a recording says of its action space: `data-0-1.0x-200` walks at 1.0 times the shared speed.

    `angle` is the last number, as the dataset writes it. `scene` is what stands before both; a kind of scene is told
    where the name begins with a word of its own, not with `data`.
    """
    match = ACTION_SPACE.fullmatch(name)
    scene = name if match is None else match["scene"]
    kind = scene.rstrip("0123456789.-_ ")
    annotations: dict[str, Any] = {"action_space": "varied" if test == VARIED else "shared", "scene": scene}
    if kind and kind != "data":
        annotations[KIND] = kind
    if match is not None:
        annotations |= {"speed": float(match["speed"]), "angle": float(match["angle"])}
    return annotations


def _mirror_cases(
    model: str, tree: Path, truth: Path | None, perspective: str, load_recording: Callable[[Path], RecordingInfo | str]
) -> Iterator[Case | Rejected]:
    """Clips that go out and come back; the dataset says how many, and not which is which."""
    test = None if truth is None else truth / perspective / "test"
    scenes = {} if test is None else {place.name: place for place in visible_folders(test / SHARED)}
    folder = tree / perspective / MIRROR
    videos = [video for place in (folder, *visible_folders(folder)) for video in video_files(place)]
    for video in videos:
        inside = video.relative_to(folder).with_suffix("")
        clip = Clip(video)
        # First frames of these tests are those of recordings: a folder that is called like one shows its scene.
        first = load_recording(scenes[inside.parts[0]]) if inside.parts[0] in scenes else ""
        kind = first.kind if isinstance(first, RecordingInfo) else ""
        yield Case(
            id=f"{perspective}/{MIRROR}/{inside.as_posix()}@{model}",
            suite="mind",
            model=model,
            sample=f"{perspective}/{MIRROR}/{inside.parts[0]}",
            clip=clip,
            reference=clip,
            align="mirror",
            subset=perspective,
            condition=MIRROR,
            annotations={"video_name": video.name, "action_space": "shared", **({KIND: kind} if kind else {})},
        )
    inputs = [] if test is None else [path.suffix.lower() for path in (test / MIRROR).glob("*") if path.is_file()]
    for k in range(len(videos), inputs.count(".png") * inputs.count(".json")):
        yield Rejected(
            f"{perspective}/{MIRROR}/clip {k + 1}@{model}", "missing: fewer clips than first frames times action files",
            model, perspective, MIRROR, True,
        )  # fmt: skip


def find_video_file(folder: Path) -> Path | None:
    """The file called `video` with one of the suffixes of videos, in small letters or capitals."""
    return first_file(folder / f"video{end}" for suffix in VIDEO_SUFFIXES for end in (suffix, suffix.upper()))


def read_recording_info(folder: Path) -> RecordingInfo | str:
    """What the dataset has of a clip, or the sentence that says what is wrong with it."""
    video, actions = find_video_file(folder), folder / "action.json"
    where = f"the ground truth {folder.name}"
    if video is None:
        return f"{where} has no video.mp4; download it again"
    if not actions.is_file():
        return f"{where} has no action.json, so the start of its prediction is unknown; download it again"
    try:
        content = read_action_file(actions)
        rows, total = content["data"], content.get("total_time", len(content["data"]))
        mark = content["mark_time"]
        if not (isinstance(mark, int) and isinstance(total, int) and 0 <= mark < total):
            raise ValueError(f"mark_time is {mark!r} and total_time {total!r}; {ACTION_FILE}")
    except (ValueError, KeyError, OSError, RecursionError) as error:
        problem = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        return f"{where}: action.json cannot be used: {problem[:200]}"
    poses, poses_from = _find_true_poses(folder, actions, rows, mark)
    kind = next((str(content[key]).strip() for key in KIND_KEYS if isinstance(content.get(key), str)), "")
    return RecordingInfo(video, actions, mark, total, _read_caption(folder, content), poses, poses_from, kind)


def read_action_file(path: Path) -> ActionFile:
    """The content of an action.json; ValueError where it is none."""
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
    try:
        content = parse_json(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"it is not JSON ({error}); {ACTION_FILE}") from None
    if not isinstance(content, dict) or not isinstance(content.get("data", []), list):
        raise ValueError(f"it is not an object with rows; {ACTION_FILE}")
    return content


def _find_true_poses(folder: Path, actions: Path, rows: list[Any], mark: int) -> tuple[Path | None, int]:
    """The file of true poses, and the number in it of the first predicted frame.

    images.txt and npz files describe the clip from mark_time on; the action file describes the whole recording.
    """
    if (folder / "images.txt").is_file():
        return folder / "images.txt", 0
    arrays = sorted(folder.glob("*.npz"))
    if arrays:
        return arrays[0], 0
    if rows and isinstance(rows[0], dict) and ("camera_pos" in rows[0] or "actor_pos" in rows[0]):
        return actions, mark
    return None, 0


def _read_caption(folder: Path, content: ActionFile) -> str:
    caption = content.get("caption")
    if isinstance(caption, str) and caption.strip():
        return caption
    file = folder.parents[2] / "description" / f"{folder.name}.txt"
    return file.read_text(encoding="utf-8", errors="replace").strip() if file.is_file() else ""
