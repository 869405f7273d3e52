"""Where the page finds the clips: beside their originals, copied into the report, or on the server that shows it.

And film strips: pictures of a clip's frames, taken as they lie in the evidence cache; no frame is decoded for them.
Beside them is the clock of a clip (frames, frame rate, size), and what else of its evidence a page reads.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from revisit.core import EVIDENCE, Clip, MediaError, digest
from revisit.core.cases import IN_MEMORY
from revisit.engine.cache import EvidenceCache
from revisit.evidence.frames import FrameFacts, Thumbnails
from revisit.media import CLIP_SUFFIXES
from revisit.media.video_index import is_video_mirrored

PLAYED = (".mp4", ".m4v", ".mov", ".mkv", ".webm")  # by browsers, most of them
# `src` of a video that can be played with the `start` of the clip in it, or a `note` that says why there is none
Placed = dict[str, object]
SHOTS = 12
JUDGES = ("judge_answers", "probe_answers", "trigger_answer", "progress_ratings", "judgeability")
SHOWN = {
    *("thumbnails", "frame_facts", "target_track", "object_region", "object_masks", "pair_matches", "geometry_track"),
    *("judge_frames", *JUDGES),
}  # all evidence that a scene is made from; `write_html` checks that it is there
GONE = "The small pictures of this clip are no longer in the evidence cache; run the same eval command again."


@dataclass(frozen=True)
class Videos:
    """Turns clips into addresses relative to the report's folder; pictures are written into it."""

    folder: Path
    copy: bool = False
    used: dict[str, None] = field(default_factory=dict)  # addresses of pictures that were asked for, in order
    folders: dict[str, Path] = field(default_factory=dict)  # without links

    def keep_picture(self, address: str, picture: Callable[[], bytes]) -> None:
        """Write a picture into the folder, once."""
        self.used[address] = None
        path = self.folder / address
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(picture())

    def video_address(self, clip: Clip) -> Placed:
        """Where the video of a clip is."""
        if note := _reason_not_playable(clip.path):
            return {"src": None, "note": note}
        near = os.path.relpath(self.resolve_path(clip.path), self.resolve_path(self.folder))
        address = self._link_or_copy(clip.path) if self.copy else near
        return {"src": quote(address), "start": clip.start, "note": None}

    def resolve_path(self, path: Path) -> Path:
        """The path without links; the folder of thousands of clips is looked up once."""
        if path.is_symlink():
            return path.resolve()
        folder = os.path.dirname(path)  # noqa: PTH120 - a text, which is quick to look up
        if folder not in self.folders:
            self.folders[folder] = path.parent.resolve()
        return self.folders[folder] / path.name

    def _link_or_copy(self, clip: Path) -> str:
        """Link the file into the report where the disk allows, copy it where not."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", clip.stem)[:60].strip("._") or "clip"
        name = f"clips/{plain}-{digest(str(clip), 8)}{clip.suffix.lower()}"
        target = self.folder / name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(clip.resolve(), target)
            except OSError:
                shutil.copyfile(clip, target)
        return name


def _reason_not_playable(path: Path) -> str:
    """Why a page on disk cannot play a clip; nothing where it can."""
    if path.parts[0] == IN_MEMORY:
        return "Its frames were scored in memory; no video was kept."
    if path.is_dir():
        return f"{path.name} is a folder of frames; `revisit view` plays it."
    if not path.is_file():
        return f"The video is no longer at {path}."
    if path.suffix.lower() not in PLAYED:
        way = "; `revisit view` plays it" if path.suffix.lower() in CLIP_SUFFIXES else ""
        return f"{path.name} is not a video that a browser plays{way}."
    turned = f"{path.name} is stored mirrored, and not every browser turns it round; `revisit view` plays it."
    return turned if is_video_mirrored(path) else ""


@dataclass(frozen=True)
class FilmStrip:
    """The pictures there are of one clip, and where the report keeps those it shows."""

    pictures: Thumbnails
    name: str  # of the folder with its pictures

    def evenly_spread_frames(self) -> list[int]:
        """Frame numbers of about a dozen pictures from the first frame to the last."""
        return [int(self.pictures.index[k]) for k in evenly_spread_rows(len(self.pictures.index), SHOTS)]

    def nearest_pictured_frame(self, frame: int) -> int:
        """The frame nearest to `frame` of which there is a picture."""
        return int(self.pictures.index[self._row_nearest_to(frame)])

    def frame_at_progress(self, progress: float) -> int:
        """The frame at a share of the clip's length, as far as there are pictures."""
        return round(progress * int(self.pictures.index[-1]))

    def picture_address(self, frame: int) -> str:
        """Where the picture of a frame lies, relative to the report."""
        return f"frames/{self.name}/{frame:06d}.jpg"

    def write_pictures(self, frames: Iterable[int], videos: Videos) -> None:
        """Keep the pictures of these frames as JPEG files, once each."""
        for frame in frames:
            picture = partial(self.pictures.picture, self._row_nearest_to(frame))
            videos.keep_picture(self.picture_address(frame), picture)

    def _row_nearest_to(self, frame: int) -> int:
        return int(np.abs(self.pictures.index - frame).argmin())


def evenly_spread_rows(row_count: int, max_rows: int) -> list[int]:
    """At most so many rows, evenly spread, both ends among them."""
    return sorted({round(k) for k in np.linspace(0, row_count - 1, min(row_count, max_rows))}) if row_count else []


Clock = dict[str, Any]  # `frames`, `fps` and `size` (width, height) of a clip


def load_film_strip(evidence: Mapping[str, str], cache: EvidenceCache) -> FilmStrip | None:
    """The film of a clip or reference by the keys of its evidence; None where the cache has lost it, or it has none."""
    pictures: Thumbnails | None = load_evidence_or_none("thumbnails", evidence, cache)
    return FilmStrip(pictures, evidence["thumbnails"][:16]) if pictures is not None and len(pictures.index) else None


def load_clip_clock(evidence: Mapping[str, str], cache: EvidenceCache) -> Clock | None:
    """Number of frames, frame rate and size of a clip, if its facts are in the cache."""
    facts: FrameFacts | None = load_evidence_or_none("frame_facts", evidence, cache)
    if facts is None or not len(facts.index):
        return None
    return _make_clock(facts.frame_count, float(facts.fps), int(facts.width), int(facts.height))


@lru_cache(maxsize=4096)
def read_file_clock(clip: Clip) -> Clock | None:
    """The same from the file itself, of which no frame is decoded; None where it cannot be read."""
    from revisit.media import read_clip_info

    try:
        info = read_clip_info(clip)
    except (MediaError, OSError):
        return None
    return _make_clock(info.count, info.fps, info.width, info.height) if info.count else None


def _make_clock(frames: int, fps: float, width: int, height: int) -> Clock:
    return {"frames": frames, "fps": round(fps, 3), "size": [width, height]}


def safe_evidence_key(evidence: Mapping[str, str], kind: str) -> str | None:
    """The address of a piece of evidence; anything that is not a plain hash would lead out of the cache."""
    key = evidence.get(kind)
    return key if isinstance(key, str) and key.isascii() and key.isalnum() else None


def load_evidence_or_none(kind: str, evidence: Mapping[str, str], cache: EvidenceCache) -> Any:
    """The evidence of a kind, which a benchmark may have brought; None where there is none."""
    assert kind in SHOWN
    key = safe_evidence_key(evidence, kind)
    return cache.load(EVIDENCE[kind], key) if key and kind in EVIDENCE else None
