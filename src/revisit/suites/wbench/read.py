"""Cases from the benchmark's folder of cases and from folders of models' videos.

<data>/cases/case_<id>.json        what is asked; <data>/masks/case_<id>_mask.png, where the subject is at first
<model>/videos/case_<id>_combined.mp4, and beside videos/ what the benchmark's own tools write:
megasam/case_<id>_combined.npz (poses), da3_cache/case_<id>/results.npz (depth), evaluation/<metric>/case_<id>.json
<model>/turns.json                 where turns end, which the public evaluator documents and does not read

Every case of the split is expected once per model; what nobody made is yielded as missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Case, Clip, MediaError, Rejected, Remark, Target, UsageError
from revisit.core.text import join_names
from revisit.datasets.clips import first_file, require_option_folder, video_files, visible_folders
from revisit.media import natural_order
from revisit.media.text_files import read_json_object
from revisit.suites.wbench.metrics.rules import FIRST_PERSON, actions_form_loop, parse_action

VIDEO = re.compile(r"case_(?P<id>.+?)(?:_combined)?")
NAVIGATION = "navigation"
SPLITS = (NAVIGATION, "full")
TYPES = ("event_edit", "subject_action", "perspective_switch")
CASE_FILE = "an object with id, settings and interactions [{turn, type, action, prompt}]"
TURNS_FILE = '{"fps": 24, "cases": {"1": {"turn_frames": [0, 40, 81]}}}'


def is_wbench_source(source: Path) -> bool:
    """Whether this is a model's folder of videos, or a folder of such folders."""
    return source.is_dir() and bool(_model_folders(source))


def read(
    source: Path,
    roots: Sequence[Path] = (),
    *,
    data: str | None = None,
    model: str | None = None,
    split: str | None = None,
    poses: str | None = None,
) -> Iterator[Case | Rejected | Remark]:
    """Cases of all models in `source`, and what is missing or cannot be used."""
    models = _model_folders(source) if source.is_dir() else {}
    if not models:
        raise UsageError(f"{source}: no videos found; expected videos/case_<id>_combined.mp4 in it or in its folders")
    if model is not None and len(models) > 1:
        raise UsageError(f"{source} holds {len(models)} models ({', '.join(models)}); --option model names one")
    if split is not None and split not in SPLITS:
        raise UsageError(f"--option split={split}: choose {' or '.join(SPLITS)}")
    cases, refused = read_cases(_find_data_folder(source, data))
    estimated = require_option_folder("poses", poses) if poses else None
    yield from refused
    for name, folder in models.items():
        yield from _entries_of_model(model or name, folder, cases, split, estimated)


def _model_folders(source: Path) -> dict[str, Path]:
    """Model -> its folder, which holds the videos or a folder `videos` of them."""
    if _videos_by_case(source):
        folder = source.resolve()
        return {folder.parent.name if folder.name == "videos" else folder.name: source}
    return {entry.name: entry for entry in visible_folders(source) if _videos_by_case(entry)}


def _videos_by_case(folder: Path) -> dict[str, Path]:
    """Case -> its video, in the folder or in `videos` below it."""
    place = folder / "videos" if (folder / "videos").is_dir() else folder
    return {match["id"]: video for video in video_files(place) if (match := VIDEO.fullmatch(video.stem))}


def _find_data_folder(source: Path, data: str | None) -> Path:
    """The folder that holds `cases`."""
    for place in [Path(data).expanduser()] if data else [source, *source.parents[:3]]:
        for folder in (place, place / "data"):
            if (folder / "cases").is_dir():
                return folder
    raise UsageError(
        f"{data or source}: there is no folder cases/ with case_<id>.json; download the benchmark's data and add "
        "--option data=DIR"
    )


def read_cases(data: Path) -> tuple[dict[str, Case], list[Rejected]]:
    """The cases of a dataset by id, and a sentence for each file that is none."""
    cases: dict[str, Case] = {}
    refused = []
    for path in sorted((data / "cases").glob("case_*.json"), key=natural_order):
        try:
            case = _parse_case(read_json_object(path, CASE_FILE), path.stem.removeprefix("case_"), data)
            cases[case.sample] = case
        except (MediaError, ValueError, TypeError, AttributeError, KeyError) as error:
            refused.append(Rejected(path.name, f"cannot be read ({error}); expected {CASE_FILE}"))
    if not cases:
        raise UsageError(f"{data / 'cases'}: no case that can be read; expected case_<id>.json files with {CASE_FILE}")
    return cases, refused


def _parse_case(content: Mapping[str, Any], name: str, data: Path) -> Case:
    """A case as its file describes it, without the clip of a model."""
    settings: Mapping[str, Any] = content.get("settings") or {}
    turns = list(content["interactions"])
    if not turns:
        raise ValueError("it has no interactions")
    actions, types, prompts = ([str(turn.get(field) or "") for turn in turns] for field in ("action", "type", "prompt"))
    place, looks = content.get("scene_adherence") or {}, content.get("subject_adherence") or {}
    of_type = {
        kind: " ".join(prompt for prompt, of in zip(prompts, types, strict=True) if of == kind).strip()
        for kind in TYPES
    }
    judged = {
        "scene_adherence": _flatten_text([place.get("visible_part"), place.get("offscreen_part")]).strip(),
        "subject_adherence": _flatten_text([looks.get("appearance_part"), looks.get("action_part")]).strip(),
        **{f"{kind}_adherence": text for kind, text in of_type.items()},
        "causal_fidelity": _flatten_text(content.get("causal_fidelity")),
    }
    walks = [action for kind, action in zip(types, actions, strict=True) if kind in ("", NAVIGATION)]
    id, perspective = str(content.get("id", name)), str(settings.get("perspective") or FIRST_PERSON)
    annotations = {
        "actions": actions,
        "types": types,
        "perspective": perspective,
        "scene": _name_of_thing(settings.get("scene"), "name", "environment"),
        "navigation": NAVIGATION in types or any(map(parse_action, actions)),
        "loop": actions_form_loop(walks),
        **{kind: kind in types for kind in TYPES},
        "judged": {question: text for question, text in judged.items() if text},
    }
    mask, subject = data / "masks" / f"case_{name}_mask.png", _name_of_thing(settings.get("subject"), "desc", "type")
    return Case(
        id=id,
        suite="wbench",
        model="",
        sample=id,
        clip=Clip(Path(name)),
        subset=perspective,
        condition="loop" if annotations["loop"] else NAVIGATION if annotations["navigation"] else "other",
        prompt=" ".join(prompts).strip() or str(content.get("description") or ""),
        target_name=subject,
        annotations=annotations,
        artifacts={"mask": mask} if mask.is_file() else {},  # of the subject in the first frame
    )


def _name_of_thing(thing: object, *fields: str) -> str:
    """What a thing is called: by the first of these fields that says it, or by the text that it is."""
    if isinstance(thing, Mapping):
        return next((str(thing[field]) for field in fields if thing.get(field)), "")
    return str(thing or "")


def _flatten_text(value: object) -> str:
    """A text, or the texts in a list or an object, as one."""
    if isinstance(value, Mapping | list):
        parts = value.values() if isinstance(value, Mapping) else value
        return " ".join(filter(None, map(_flatten_text, parts)))
    return "" if value is None else str(value)


def _entries_of_model(
    model: str, folder: Path, cases: Mapping[str, Case], split: str | None, poses: Path | None
) -> Iterator[Case | Rejected | Remark]:
    """The cases of one model."""
    videos = _videos_by_case(folder)
    turns, trouble = read_turn_frames(folder)
    if trouble:
        yield Remark(f"{model}: {trouble}")
    walked = {case_id for case_id, case in cases.items() if case.annotations["navigation"]}
    beyond = [case_id for case_id in videos if case_id in cases and case_id not in walked]
    whole = split == "full" or (split is None and bool(beyond))
    for case_id, case in cases.items():
        if not (whole or case_id in walked):
            continue
        if case_id not in videos:
            reason = f"missing: there is no videos/case_{case_id}_combined.mp4"
            yield Rejected(f"{case_id}@{model}", reason, model, case.subset, missing=True)
        else:
            yield _case_of_video(model, folder, case, videos[case_id], turns.get(case_id), poses)
    for case_id in videos.keys() - cases.keys():
        reason = f"the dataset has no cases/case_{case_id}.json; name a video case_<id>_combined.mp4 after its case"
        yield Rejected(f"{case_id}@{model}", reason, model)


def read_turn_frames(folder: Path) -> tuple[dict[str, list[int]], str]:
    """Case -> the frames at which its turns begin and end, from turns.json; and what is wrong with the file."""
    path = first_file(place / "turns.json" for place in (folder, folder / "videos", folder.parent))
    if path is None:
        return {}, ""
    try:
        entries = read_json_object(path, TURNS_FILE).get("cases")
    except MediaError as error:
        return {}, f"turns.json is not used ({error}); turns are taken for equally long. Expected {TURNS_FILE}"
    turns: dict[str, list[int]] = {}
    wrong = []
    for name, entry in (entries if isinstance(entries, Mapping) else {}).items():
        frames = entry.get("turn_frames") if isinstance(entry, Mapping) else None
        if isinstance(frames, list) and _are_rising_frame_numbers(frames):
            turns[str(name)] = frames
        else:
            wrong.append(str(name))
    if wrong or not turns:
        named = f" of {join_names(wrong)}" if wrong else ""
        return turns, f"turn_frames{named} in turns.json are no rising frame numbers; expected {TURNS_FILE}"
    return turns, ""


def _are_rising_frame_numbers(frames: Sequence[object]) -> bool:
    numbers = [frame for frame in frames if isinstance(frame, int) and frame >= 0]
    return len(numbers) == len(frames) > 1 and all(a < b for a, b in pairwise(numbers))


def _case_of_video(
    model: str, folder: Path, case: Case, video: Path, turn_frames: list[int] | None, poses: Path | None
) -> Case | Rejected:
    name, id, annotations = f"case_{case.sample}", f"{case.sample}@{model}", dict(case.annotations)
    base = folder.parent if folder.resolve().name == "videos" else folder
    turns = len(annotations["actions"])
    if turn_frames is not None and len(turn_frames) != turns + 1:
        reason = f"turns.json has {len(turn_frames)} marks and the case {turns} turns; expected one more"
        return Rejected(id, reason, model, case.subset)
    pose_folders = [base / "megasam"] if poses is None else [poses / model, poses, base / "megasam"]
    places = {
        "poses": [folder / f"{name}{end}.npz" for folder in pose_folders for end in ("_combined", "")],
        "da3": [base / "da3_cache" / name / "results.npz"],
        "masks": [base / "masks" / f"{name}.npz"],
        "object_features": [base / "object_features" / f"{name}.npz"],
        "dreamsim": [base / "dreamsim" / f"{name}.csv"],
        "results": sorted((base / "evaluation").glob(f"*/{name}.json")) if (base / "evaluation").is_dir() else [],
    }
    artifacts = {kind: path for kind, paths in places.items() if (path := first_file(paths)) is not None}
    if turn_frames is not None:
        annotations["turn_frames"] = turn_frames
    if mask := case.artifacts.get("mask"):
        case = replace(case, target=_subject_target(mask, case.target_name), target_name="")
    return replace(case, id=id, model=model, clip=Clip(video), annotations=annotations, artifacts=artifacts)


def _subject_target(mask: Path, subject: str) -> Target | None:
    """The subject, from its mask in the first frame."""
    import cv2

    content = np.fromfile(mask, np.uint8)  # OpenCV does not take every name of a file
    picture = cv2.imdecode(content, cv2.IMREAD_GRAYSCALE) if len(content) else None
    if picture is None or not (picture > 127).any():
        return None
    x, y, w, h = cv2.boundingRect((picture > 127).astype(np.uint8))
    height, width = picture.shape
    return Target(subject or "subject", (x / width, y / height, (x + w) / width, (y + h) / height))
