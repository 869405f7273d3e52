"""Where the page finds the clips: beside their originals, copied into the report, or on the server that shows it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from revisit.core import Clip, digest
from revisit.core.cases import IN_MEMORY
from revisit.media import CLIP_SUFFIXES
from revisit.media.video_index import is_video_mirrored

PLAYED = (".mp4", ".m4v", ".mov", ".mkv", ".webm")  # by browsers, most of them
# `src` of a video that can be played with the `start` of the clip in it, or a `note` that says why there is none
Placed = dict[str, object]


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
