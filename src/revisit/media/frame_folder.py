"""Folder: which files of a folder are the frames of a clip, and in which order.

Rules: frames are png, jpg/jpeg or webp images directly in the folder, in natural order (2 before
10). A word between two dots marks a side image that belongs to a frame (`0001.depth.png`,
`0001.mask.png`) and is left out where plain images exist; a number there is part of the name
(`shot.0001.png`). All frames are of one kind and one sequence: a folder with both jpg and png frames
is refused, and so is one with `a_1.png` and `b_1.png`, or with `1.png` and `01.png`, because nothing
says which of them is the clip.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from revisit.core import MediaError
from revisit.core.grouping import group_items
from revisit.core.text import join_names
from revisit.media.error_names import printable_line

_DECODERS = {"png": "png", "jpg": "mjpeg", "jpeg": "mjpeg", "webp": "webp"}


@dataclass(frozen=True)
class FrameFiles:
    """The frames of a folder in order, the decoder they need, and what was left out."""

    paths: tuple[Path, ...]
    decoder: str
    notes: tuple[str, ...]


def find_frame_files(folder: Path) -> FrameFiles:
    """The images that make up the clip in `folder`."""
    groups: dict[tuple[str, str], list[Path]] = defaultdict(list)  # (tag, decoder) -> images
    for path in folder.iterdir():
        decoder = _DECODERS.get(path.suffix[1:].lower())
        if decoder and not path.name.startswith(".") and path.is_file():
            groups[_word_after_last_dot(path.stem), decoder].append(path)
    candidates = {key: paths for key, paths in groups.items() if not key[0]} or groups
    if not candidates:
        raise MediaError("the folder has no png, jpg or webp images; put frames such as 0001.png directly into it")
    if len(candidates) > 1:
        kinds = " and ".join(sorted(f"{len(paths)} like {min(paths).name}" for paths in candidates.values()))
        raise MediaError(f"the folder has images of several formats ({kinds}); keep one format in a folder of frames")
    (tag, decoder), paths = next(iter(candidates.items()))
    left_out = sorted({other for other, _ in groups if other != tag})
    notes = [f"images marked .{other} were ignored: they accompany the frames" for other in left_out]
    ordered = tuple(sorted(paths, key=natural_sort_key))
    _require_one_numbered_sequence(ordered)
    notes += [_differing_names_note(ordered), _mixed_zero_padding_note(ordered), _missing_numbers_note(ordered)]
    return FrameFiles(ordered, decoder, tuple(filter(None, notes)))


def _require_one_numbered_sequence(paths: tuple[Path, ...]) -> None:
    """Refuse images that are numbered as several clips would be."""
    sequences = _group_by_stem_key(paths, _stem_with_masked_numbers)
    if len(sequences) > 1:
        if max(map(len, sequences)) > 1:
            raise _several_sequences_error(sequences)
        return
    for twice in _group_by_stem_key(paths, _numbers_in_stem):
        if len(twice) > 1 and _numbers_in_stem(twice[0].stem):
            raise MediaError(
                f"the folder has two images of one number, {printable_line(twice[0].name)} and "
                f"{printable_line(twice[1].name)}; "
                "keep one of them, or put each sequence into a folder of its own"
            )
    columns = list(zip(*(_numbers_in_stem(path.stem) for path in paths), strict=True))
    counting = not columns or any(len(set(column)) == len(paths) for column in columns)
    if not counting and not _is_timestamp_stem(paths[0].stem):  # every number starts again
        raise _several_sequences_error(_group_by_stem_key(paths, lambda stem: _numbers_in_stem(stem)[:-1]))


def _group_by_stem_key(paths: tuple[Path, ...], key: Callable[[str], Hashable]) -> list[list[Path]]:
    """The images in groups of the same key, which is made of the name without its ending."""
    return list(group_items(paths, lambda path: key(path.stem)).values())


def _several_sequences_error(sequences: list[list[Path]]) -> MediaError:
    """The sentence that names the two longest sequences."""
    longest = sorted(sequences, key=len, reverse=True)
    names = join_names([_first_and_last_name_text(paths) for paths in longest], 3)
    return MediaError(
        f"the folder holds {len(longest)} sequences of images, not one: {names}; put each into a folder of its own"
    )


def _first_and_last_name_text(paths: list[Path]) -> str:
    if len(paths) == 1:
        return printable_line(paths[0].name)
    return f"{printable_line(paths[0].name)} to {printable_line(paths[-1].name)} ({len(paths)} images)"


def _stem_with_masked_numbers(stem: str) -> str:
    """The name with a mark in place of each number; names without any number are one sequence."""
    return re.sub(r"[0-9]+", "#", stem) if re.search(r"[0-9]", stem) else ""


def _numbers_in_stem(stem: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"[0-9]+", stem))


def _is_timestamp_stem(stem: str) -> bool:
    """Whether a name is a point in time, whose last number starts again and again: 12.250, or 2026-01-31_12-00-01."""
    return bool(re.fullmatch(r"[0-9]+\.[0-9]+|[0-9]+([^0-9A-Za-z]+[0-9]+){2,}", stem))


def _mixed_zero_padding_note(paths: tuple[Path, ...]) -> str:
    """A sentence on numbers that are not all filled up with zeros to the same length; else nothing."""
    numbers = [(digits[-1], path) for path in paths if (digits := re.findall(r"[0-9]+", path.stem))]
    padded = [(number, path) for number, path in numbers if number[0] == "0" and len(number) > 1]
    if not padded:
        return ""
    longest, other = max(padded, key=lambda pair: len(pair[0]))
    shorter = [path for number, path in numbers if len(number) < len(longest)]
    if not shorter:
        return ""
    names = f"{printable_line(shorter[0].name)} and {printable_line(other.name)}"
    return f"numbers are written in two ways ({names}); the frames were taken in the order of their numbers"


def _differing_names_note(paths: tuple[Path, ...]) -> str:
    """A sentence on names of which no two differ in their numbers alone; else nothing."""
    patterns = {_stem_with_masked_numbers(path.stem) for path in paths}
    if len(patterns) < 2:
        return ""
    names = _first_and_last_name_text(list(paths))
    return f"the images are not numbered as one sequence; they were taken in the order of their names, {names}"


def _missing_numbers_note(paths: tuple[Path, ...]) -> str:
    """A sentence on numbers that are missing between frames, where they are numbered in even steps; else nothing."""
    numbers = [int(digits[-1]) if (digits := re.findall(r"[0-9]+", path.stem)) else -1 for path in paths]
    steps = Counter(after - before for before, after in pairwise(numbers))
    if len(steps) < 2:
        return ""
    usual = min(steps, key=lambda step: (-steps[step], step))
    gaps = [k for k, (before, after) in enumerate(pairwise(numbers)) if after - before > usual > 0]
    if not gaps or min(steps) < 1:  # numbers that go back are not numbers of frames
        return ""
    first = gaps[0]
    suffix = f", and {len(gaps) - 1} more such gaps" if len(gaps) > 1 else ""
    return (
        f"frame numbers are missing between {paths[first].name} and {paths[first + 1].name}{suffix}; the frames that "
        "are there were taken as one clip without gaps"
    )


def natural_sort_key(path: Path) -> tuple[list[tuple[int, str]], str]:
    """Sort key by which `frame2` comes before `frame10`; equal numbers (`01`, `1`) fall back to the name."""
    pieces = re.findall(r"[0-9]+|[^0-9]+", path.stem)
    return [(int(p), "") if p[0] in "0123456789" else (-1, p) for p in pieces], path.name


def _word_after_last_dot(stem: str) -> str:
    word = stem.rpartition(".")[2] if "." in stem else ""
    return "" if word.isdigit() else word.lower()
