"""LeRobot datasets (v2 and v3): episodes in parquet files, their cameras in mp4 files or as pictures.

One clip for each episode and camera. In v3 a file holds many episodes: a clip is then a stretch of it. Nothing is
copied but pictures that lie in parquet files.

Actions become a camera script where their names say that they move a camera, and in which unit: `camera_yaw_deg` or
`cam.pitch.rad`, camera or cam, what turns or moves, and the unit. An arm has a yaw, too, so a name without "camera" is
no camera action; one without a unit could be anything, and is not guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Clip, Rejected, Remark, UsageError
from revisit.core.optional import import_optional
from revisit.core.text import count_and_noun, join_names, parse_json
from revisit.datasets.entries import ClipStore, DatasetEntry, Unusable, clip_content_of_field

INFO = "meta/info.json"
IMAGES = "observation.images."  # how the names of cameras begin
KINDS = {
    "yaw": "yaw", "pan": "yaw", "pitch": "tilt", "tilt": "tilt", "roll": "roll",
    "forward": "dolly", "right": "truck", "up": "crane",
}  # fmt: skip
POSITIVE = {
    "yaw": "right", "tilt": "up", "roll": "left", "dolly": "forward", "truck": "right", "crane": "up",
}  # fmt: skip
UNITS = {"deg": 1.0, "degrees": 1.0, "rad": 180 / math.pi, "radians": 180 / math.pi, "m": 1.0, "metres": 1.0}
TURNS = ("yaw", "tilt", "roll")


def is_lerobot_dataset(source: Path) -> bool:
    """Whether a folder is one."""
    return (source / INFO).is_file() and "codebase_version" in (source / INFO).read_text(encoding="utf-8")


def read_lerobot(source: Path, roots: Sequence[Path] = ()) -> Iterator[DatasetEntry | Rejected | Remark]:
    """All episodes; what cannot be read of one costs that one only."""
    try:
        info = parse_json((source / INFO).read_text(encoding="utf-8"))
        dataset = LeRobot(source, info, dict(info["features"]), float(info["fps"]))
        episodes = list(dataset.iterate_episodes())
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise UsageError(f"{source}: its meta files are not those of a LeRobot dataset ({error})") from None
    if not dataset.cameras:
        raise UsageError(f"{source}: none of its features is a video or an image")
    if dataset.action_names:
        yield Remark(dataset.camera_columns_and_note[1])
    for episode in episodes:
        if isinstance(episode, Rejected):
            yield episode
            continue
        for camera in dataset.cameras:
            name = dataset.clip_name(episode, camera)
            try:
                yield dataset.make_entry(episode, camera, name)
            except (Unusable, OSError, KeyError, ValueError) as error:
                yield Rejected(name, f"{' '.join(str(error).split())[:300]}")


@dataclass(frozen=True)
class LeRobot:
    """The files of a dataset, by what meta/info.json says."""

    root: Path
    info: Mapping[str, Any]
    features: Mapping[str, Mapping[str, Any]]
    fps: float

    @cached_property
    def cameras(self) -> list[str]:
        return [name for name, one in self.features.items() if one.get("dtype") in ("video", "image")]

    @cached_property
    def action_names(self) -> list[str]:
        names = self.features.get("action", {}).get("names") or []
        if isinstance(names, Mapping):  # {"motors": [...]}
            names = [name for group in names.values() for name in (group if isinstance(group, list) else [group])]
        return [str(name) for name in names]

    @cached_property
    def camera_columns_and_note(self) -> tuple[dict[int, tuple[str, float]], str]:
        return camera_action_columns(self.action_names)

    @property
    def has_many_episodes_per_file(self) -> bool:
        return str(self.info["codebase_version"]).startswith("v3")

    def iterate_episodes(self) -> Iterator[Mapping[str, Any] | Rejected]:
        if not self.has_many_episodes_per_file:
            for line in (self.root / "meta/episodes.jsonl").read_text(encoding="utf-8").splitlines():
                if line.strip():
                    yield parse_json(line)
            return
        for shard in sorted((self.root / "meta/episodes").rglob("*.parquet")):
            try:
                yield from _read_parquet(shard).to_pylist()
            except Unusable as error:
                yield Rejected(shard.relative_to(self.root).as_posix(), str(error))

    def clip_name(self, episode: Mapping[str, Any], camera: str) -> str:
        name = f"episode_{int(episode['episode_index']):06d}"
        lasts = {one.rpartition(".")[2] for one in self.cameras}
        view = camera.rpartition(".")[2] if len(lasts) == len(self.cameras) else camera.removeprefix(IMAGES)
        return name if len(self.cameras) == 1 else f"{name}/{view}"

    def make_entry(self, episode: Mapping[str, Any], camera: str, name: str) -> DatasetEntry:
        tasks = [str(task) for task in episode.get("tasks") or ()]
        details = {"group": name.partition("/")[0], "prompt": "; ".join(tasks), "fps": None}
        script = ""
        if self.action_names and (columns := self.camera_columns_and_note[0]):
            actions = np.array(self._rows_of_episode(episode)["action"].to_pylist(), float)
            script = camera_script_of_actions(actions, columns)
        return DatasetEntry(name, self._clip_of_episode(episode, camera, name), None, details, script)

    def _clip_of_episode(self, episode: Mapping[str, Any], camera: str, name: str) -> Clip:
        if self.features[camera]["dtype"] == "image":
            shard, frames = self._data_file_of_episode(episode), self._rows_of_episode(episode)[camera].to_pylist()
            return ClipStore.for_shard(shard).store_clip(name, clip_content_of_field(frames, [self.root]), self.fps)
        path = self._file_from_template(str(self.info["video_path"]), episode, f"videos/{camera}", video_key=camera)
        if not path.is_file():
            raise Unusable(f"there is no {path.relative_to(self.root.resolve())}")
        if not self.has_many_episodes_per_file:
            return Clip(path)
        first = round(float(episode[f"videos/{camera}/from_timestamp"]) * self.fps)
        return Clip(path, start=first, count=int(episode["length"]))

    def _rows_of_episode(self, episode: Mapping[str, Any]) -> Any:
        table = _read_parquet(self._data_file_of_episode(episode))
        from pyarrow import compute

        return table.filter(compute.equal(table["episode_index"], int(episode["episode_index"])))

    def _data_file_of_episode(self, episode: Mapping[str, Any]) -> Path:
        return self._file_from_template(str(self.info["data_path"]), episode, "data")

    def _file_from_template(self, template: str, episode: Mapping[str, Any], place: str, **more: str) -> Path:
        number = int(episode["episode_index"])
        numbers = {"episode_index": number, "episode_chunk": number // int(self.info.get("chunks_size") or 1000)}
        for part in ("chunk_index", "file_index"):
            numbers[part] = int(episode.get(f"{place}/{part}") or 0)
        path = (self.root / template.format(**numbers, **more)).resolve()
        if not path.is_relative_to(self.root.resolve()):
            raise Unusable(f"{template!r} leads out of the dataset")
        return path


def _read_parquet(path: Path) -> Any:
    """A parquet file, or Unusable with the sentence why not."""
    pyarrow, parquet = (import_optional(name, "tables") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        return parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise Unusable(f"{path.name} cannot be read as parquet ({' '.join(str(error).split())[:120]})") from None


def camera_action_columns(names: Sequence[str]) -> tuple[dict[int, tuple[str, float]], str]:
    """Column of the action -> (move, degrees or metres of one unit); and a sentence on what was made of the names."""
    parts = {name: re.split(r"[^a-z]+", name.lower()) for name in names}
    if not (cameras := [name for name, words in parts.items() if {"camera", "cam"} & set(words)]):
        named = join_names(names, 5)
        return {}, f"actions ({named}) are no camera actions by their names: no camera was requested (docs/data.md)"
    columns: dict[int, tuple[str, float]] = {}
    for name in cameras:
        kind = next((KINDS[word] for word in parts[name] if word in KINDS), None)
        unit = next((word for word in reversed(parts[name]) if word in UNITS), None)
        if kind is None or unit is None or (kind in TURNS) == (unit in ("m", "metres")):
            example = "as camera_yaw_deg or camera_forward_m do"
            return {}, f"the camera action {name} says no unit, {example}: no camera was requested (docs/data.md)"
        columns[list(names).index(name)] = kind, UNITS[unit]
    moves = ", ".join(dict.fromkeys(f"{kind} {POSITIVE[kind]}" for kind, _ in columns.values()))
    count = count_and_noun(len(columns), "camera action")
    return columns, f"{count} became the camera request, positive values as {moves}, per frame"


def camera_script_of_actions(actions: np.ndarray, columns: dict[int, tuple[str, float]]) -> str:
    """The camera script of (frames, values): the action of a frame moves the camera to the next one."""
    steps = []
    for moves, run in groupby(_moves_of_action(row, columns) for row in actions[:-1]):
        count = len(list(run))
        amounts = [f"{move}:{amount * count:.6g}" for move, amount in moves]
        steps.append(f"{'+'.join(amounts) or 'hold'}@{count}")
    return ",".join(steps)


def _moves_of_action(row: np.ndarray, columns: dict[int, tuple[str, float]]) -> list[tuple[str, float]]:
    """What an action moves, and by how many degrees or metres, to six digits: frames alike in these are one step."""
    return [
        (f"{kind}:{POSITIVE[kind]}", float(f"{row[column] * scale:.6g}"))
        for column, (kind, scale) in columns.items()
        if row[column]
    ]
