"""What a dataset's reader yields: clips with what is said of them; and where content without a file of its own goes.

Samples of an iterator in Python are written as lossless frames with a manifest beside them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import Clip, UsageError, digest
from revisit.core.frames import as_pixel_array
from revisit.media.cache_folders import INPUTS, cache_root
from revisit.media.files import write_json_lines

IMAGE_KINDS = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"RIFF": ".webp"}
VIDEO_KINDS = {b"\x1aE\xdf\xa3": ".mkv", b"RIFF": ".avi", b"GIF8": ".gif"}
NAMES = ("name", "id", "key", "video_id", "episode")  # fields that name a clip
PROMPTS = ("prompt", "text", "caption", "instruction", "task")
REFERENCES = ("reference", "gt", "ground_truth", "truth", "target_video")
Content = bytes | Sequence[bytes] | np.ndarray | Path  # a video, pictures, frames, or a file
EXPECTED = "a sample is a mapping with `name` and `frames`, and `reference`, `prompt`, `camera` and the like"


@dataclass(frozen=True)
class DatasetEntry:
    """A clip of a dataset, and what the dataset says of it: fields of a manifest line."""

    name: str
    clip: Clip
    reference: Clip | None = None
    details: Mapping[str, object] = field(default_factory=dict)
    camera: str = ""  # script of the requested motion


class Unusable(ValueError):
    """A sample that is no clip; the sentence says why."""


@dataclass(frozen=True)
class ClipStore:
    """Files of clips that lie inside of shards: video bytes as they are, pictures as they are, arrays as PNG files."""

    folder: Path

    @classmethod
    def for_shard(cls, shard: Path) -> ClipStore:
        """The place of a shard, which is another one when the shard changes."""
        state = shard.stat()
        return cls(cache_root() / INPUTS / digest([str(shard.resolve()), state.st_size, state.st_mtime_ns], 16))

    def store_clip(self, name: str, content: Content, fps: float | None = None) -> Clip:
        """The clip, written once and whole, also where several processes do."""
        if isinstance(content, Path):
            return Clip(content)
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[-80:].strip("._") or "clip"
        place = self.folder / f"{digest(name, 8)}-{plain}"
        if isinstance(content, bytes):
            kinds = {content[:4] + b"ftyp": ".mp4", **VIDEO_KINDS}
            video = f"clip{_suffix_by_first_bytes(content, kinds, 'its bytes are no video (mp4, mkv, webm, mov)')}"
            _write_folder_once(place, [(video, content)])
            return Clip(place / video)
        files = _png_files(content, name) if isinstance(content, np.ndarray) else _picture_files(content)
        _write_folder_once(place, files)
        return Clip(place, fps)

    def make_entry(
        self, name: str, content: Content, truth: Content | None, fields: Mapping[str, object]
    ) -> DatasetEntry:
        """A clip and its reference, stored under this name, with what `fields` say of it."""
        fps = float(str(fields["fps"])) if fields.get("fps") else None
        reference = None if truth is None else self.store_clip(f"{name}.reference", truth, fps)
        return DatasetEntry(name, self.store_clip(name, content, fps), reference, manifest_details_of(fields))


def _write_folder_once(place: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """A folder of files by name; one that is there is left as it is."""
    if place.is_dir():
        return
    temporary = place.with_name(f".{place.name}-{os.getpid()}-{os.urandom(4).hex()}")
    temporary.mkdir(parents=True)
    try:
        for name, content in files:
            (temporary / name).write_bytes(content)
        temporary.rename(place)
    except OSError:
        if not place.is_dir():  # another process was first
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def clip_content_of_field(value: object, allowed: Sequence[Path] = ()) -> Content:
    """What a field of a sample holds, as a clip: a video, its file in an allowed folder, pictures or frames."""
    if isinstance(value, Mapping):  # as datasets store videos and pictures
        return clip_content_of_field(value["path"] if value.get("bytes") is None else value["bytes"], allowed)
    if isinstance(value, bytes | np.ndarray):
        return value
    if isinstance(value, str):
        return _require_allowed_file(value, allowed)
    if isinstance(value, Sequence) and value and isinstance(value[0], bytes | Mapping):
        pictures = [clip_content_of_field(one, allowed) for one in value]
        files = [one.read_bytes() if isinstance(one, Path) else one for one in pictures]
        return [one for one in files if isinstance(one, bytes)]
    if isinstance(value, Sequence) and value:
        array = np.asarray(value)
        return array.astype(np.uint8) if array.dtype.kind in "iu" and array.min() >= 0 and array.max() <= 255 else array
    raise Unusable(f"a {type(value).__name__} is no video, no pictures and no array of frames")


def _require_allowed_file(name: str, allowed: Sequence[Path]) -> Path:
    """A file that a dataset names; a name alone is no permission to read it."""
    for root in (folder.resolve() for folder in allowed):
        path = (root / name).resolve()
        if path.is_relative_to(root):
            if not path.is_file():
                raise Unusable(f"there is no {name}")
            return path
    raise Unusable(f"{name} leads out of the dataset; move it there, or allow its folder with --root")


def manifest_details_of(fields: Mapping[str, object]) -> dict[str, object]:
    """What a sample says of its clip, by the names of a manifest; what is left goes to the annotations."""
    fields_of_manifest = ("model", "camera", "seed", "fps", "target", "phases", "group", "subset", "condition")
    details = {name: fields[name] for name in fields_of_manifest if fields.get(name) not in (None, "")}
    prompt = next((str(fields[name]) for name in PROMPTS if fields.get(name)), "")
    others = fields.keys() - {*fields_of_manifest, *PROMPTS, *NAMES}
    rest = {name: value for name, value in fields.items() if name in others and isinstance(value, str | int | float)}
    return {**details, **({"prompt": prompt} if prompt else {}), **({"annotations": rest} if rest else {})}


def _suffix_by_first_bytes(content: bytes, kinds: Mapping[bytes, str], otherwise: str) -> str:
    suffix = next((end for start, end in kinds.items() if content.startswith(start)), None)
    if suffix is None:
        raise Unusable(otherwise)
    return suffix


def _png_files(array: np.ndarray, name: str) -> Iterator[tuple[str, bytes]]:
    import cv2

    try:
        frames = as_pixel_array(array, name)
    except UsageError as error:
        raise Unusable(str(error)) from None
    for number, frame in enumerate(frames):
        _, content = cv2.imencode(".png", frame[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 1])
        yield f"{number:06d}.png", content.tobytes()


def _picture_files(pictures: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    for number, picture in enumerate(pictures):
        suffix = _suffix_by_first_bytes(picture, IMAGE_KINDS, f"picture {number} is no png, jpg or webp")
        yield f"{number:06d}{suffix}", picture


def write_samples_and_manifest(samples: Iterable[Mapping[str, Any]], folder: Path) -> Path:
    """Write each sample as it comes, so that one is in memory at a time; the path of the manifest.

    One that is no clip is warned of, and counts as missing.
    """
    store, lines = ClipStore(folder.resolve()), []
    for number, sample in enumerate(samples):
        if not isinstance(sample, Mapping) or "frames" not in sample:
            problem = "has no `frames`" if isinstance(sample, Mapping) else f"is a {type(sample).__name__}"
            raise UsageError(f"sample {number} {problem}; {EXPECTED}")
        name = str(sample.get("name") or f"{number:06d}")
        fields = {key: value for key, value in sample.items() if key not in ("name", "frames", "reference")}
        line = {"id": name, **manifest_details_of(fields)}
        try:
            line["video"] = _store_clip_relative(store, name, sample["frames"])
            if sample.get("reference") is not None:
                line["reference"] = _store_clip_relative(store, f"{name}.reference", sample["reference"])
        except UsageError as error:
            warnings.warn(f"{name} is refused: {error}", stacklevel=3)
            line["video"] = f"refused/{number:06d}"
        lines.append(line)
    if not lines:
        raise UsageError(f"the iterator has no samples; {EXPECTED}")
    manifest = folder / "manifest.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    write_json_lines(manifest, lines, ascii=True)
    return manifest


def _store_clip_relative(store: ClipStore, name: str, frames: Any) -> str:
    """Where the frames lie, relative to the manifest; other frames of the same name lie elsewhere."""
    rgb = as_pixel_array(frames, name)
    digest = hashlib.sha256(np.ascontiguousarray(rgb).data).hexdigest()[:16]
    clip: Clip = store.store_clip(f"{digest}-{name}", rgb)
    return clip.path.relative_to(store.folder).as_posix()
