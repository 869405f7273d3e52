"""Where the page finds the clips: beside their originals, or copied into the report."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from revisit.core import digest
from revisit.media import VIDEO_SUFFIXES


@dataclass(frozen=True)
class Videos:
    """Turns paths of clips into addresses relative to the report's folder."""

    folder: Path
    copy: bool = False

    def place(self, path: str) -> dict[str, str | None]:
        """`src` of a video that can be played, or a `note` that says why there is none."""
        clip = Path(path)
        if clip.is_dir():
            return {"src": None, "note": f"{clip.name} is a folder of frames: there is no video to play."}
        if not clip.is_file():
            return {"src": None, "note": f"The video is no longer at {path}."}
        if clip.suffix.lower() not in VIDEO_SUFFIXES:
            return {"src": None, "note": f"{clip.name} is not a video that a browser plays."}
        if self.copy:
            return {"src": quote(self._copied(clip)), "note": None}
        return {"src": quote(os.path.relpath(clip.resolve(), self.folder.resolve())), "note": None}

    def _copied(self, clip: Path) -> str:
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
