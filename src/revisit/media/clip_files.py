"""Which files are clips: videos by their endings, arrays and WebP files by what is in them."""

from __future__ import annotations

from pathlib import Path

from revisit.media.array_clip import has_array_shaped_like_frames
from revisit.media.container import is_animated_webp

VIDEO_SUFFIXES = (".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".gif")
ARRAY_SUFFIXES = (".npy", ".npz")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
CLIP_SUFFIXES = (*VIDEO_SUFFIXES, *ARRAY_SUFFIXES, ".webp")  # of files that may be clips


def is_clip_file(path: Path) -> bool:
    """Whether a file is a clip: an array of poses and a still picture are none, though they end as clips may."""
    suffix = path.suffix.lower()
    if suffix in VIDEO_SUFFIXES:
        return True
    if suffix == ".webp":
        try:
            with path.open("rb") as file:
                return is_animated_webp(file.read(32))
        except OSError:
            return False
    return suffix in ARRAY_SUFFIXES and has_array_shaped_like_frames(path)
