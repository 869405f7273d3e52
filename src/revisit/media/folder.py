"""Folder: which files of a folder are the frames of a clip, and in which order.

Rules: frames are png, jpg/jpeg or webp images directly in the folder, in natural order (2 before
10). A word between two dots marks a side image that belongs to a frame (`0001.depth.png`,
`0001.mask.png`) and is left out where plain images exist; a number there is part of the name
(`shot.0001.png`). All frames are of one kind: a folder with both jpg and png frames is refused,
because nothing says which of them is the clip.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from revisit.core import MediaError

_DECODERS = {"png": "png", "jpg": "mjpeg", "jpeg": "mjpeg", "webp": "webp"}


@dataclass(frozen=True)
class FrameFiles:
    """The frames of a folder in order, the decoder they need, and what was left out."""

    paths: tuple[Path, ...]
    decoder: str
    notes: tuple[str, ...]


def frame_files(folder: Path) -> FrameFiles:
    """The images that make up the clip in `folder`."""
    groups: dict[tuple[str, str], list[Path]] = defaultdict(list)  # (tag, decoder) -> images
    for path in folder.iterdir():
        decoder = _DECODERS.get(path.suffix[1:].lower())
        if decoder and not path.name.startswith(".") and path.is_file():
            groups[_tag(path.stem), decoder].append(path)
    chosen = {key: paths for key, paths in groups.items() if not key[0]} or groups
    if not chosen:
        raise MediaError("the folder has no png, jpg or webp images; put frames such as 0001.png directly into it")
    if len(chosen) > 1:
        kinds = " and ".join(sorted(f"{len(paths)} like {min(paths).name}" for paths in chosen.values()))
        raise MediaError(f"the folder has images of several formats ({kinds}); keep one format in a folder of frames")
    (tag, decoder), paths = next(iter(chosen.items()))
    left_out = sorted({other for other, _ in groups if other != tag})
    notes = tuple(f"images marked .{other} were ignored: they accompany the frames" for other in left_out)
    ordered = tuple(sorted(paths, key=natural))
    gap = _gap(ordered)
    return FrameFiles(ordered, decoder, (*notes, gap) if gap else notes)


def _gap(paths: tuple[Path, ...]) -> str:
    """A sentence on numbers that are missing between frames, where they are numbered in even steps; else nothing."""
    numbers = [int(found[-1]) if (found := re.findall(r"[0-9]+", path.stem)) else -1 for path in paths]
    steps = Counter(after - before for before, after in pairwise(numbers))
    if len(steps) < 2:
        return ""
    usual = steps.most_common(1)[0][0]
    gaps = [k for k, (before, after) in enumerate(pairwise(numbers)) if after - before > usual > 0]
    if not gaps or min(steps) < 1:  # numbers that go back are not numbers of frames
        return ""
    first = gaps[0]
    more = f", and {len(gaps) - 1} more such gaps" if len(gaps) > 1 else ""
    return (
        f"frame numbers are missing between {paths[first].name} and {paths[first + 1].name}{more}; the frames that are "
        "there were taken as one clip without gaps"
    )


def natural(path: Path) -> tuple[list[tuple[int, str]], str]:
    """Sort key by which `frame2` comes before `frame10`; equal numbers (`01`, `1`) fall back to the name."""
    pieces = re.findall(r"[0-9]+|[^0-9]+", path.stem)
    return [(int(p), "") if p[0] in "0123456789" else (-1, p) for p in pieces], path.name


def _tag(stem: str) -> str:
    word = stem.rpartition(".")[2] if "." in stem else ""
    return "" if word.isdigit() else word.lower()
