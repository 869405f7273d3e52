"""LeRobot datasets (v2 and v3): episodes in parquet files, their cameras in mp4 files or as pictures.

One clip for each episode and camera. In v3 a file holds many episodes: a clip is then a stretch of it. Nothing is
copied but pictures that lie in parquet files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Clip, Rejected, Remark, UsageError
from revisit.core.text import parse_json
from revisit.datasets.camera_actions import camera_action_columns, camera_script_of_actions
from revisit.datasets.entries import ClipStore, DatasetEntry, Unusable, clip_content_of_field, import_format_library

INFO = "meta/info.json"
IMAGES = "observation.images."  # how the names of cameras begin


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
    pyarrow, parquet = (import_format_library(name, "tables") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        return parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise Unusable(f"{path.name} cannot be read as parquet ({' '.join(str(error).split())[:120]})") from None
