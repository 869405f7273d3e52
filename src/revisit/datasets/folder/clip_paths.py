"""The clips of a folder by the words in their paths, and which of them say that they are the truth; also which folders
are checkpoints that are called by a number alone: wan/1000/kitchen.mp4, wan/2000/kitchen.mp4.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unicodedata import normalize

from revisit.core import UsageError
from revisit.core.grouping import group_items
from revisit.datasets.clips import find_clip_files
from revisit.datasets.folder.path_words import (
    are_checkpoint_numbers,
    is_generic_word,
    is_truth_word,
    split_seed,
    strip_truth_word,
)

FULL = 0.7  # of a grid, such as that of scenes and models, must be there
Words = tuple[str, ...]


@dataclass(frozen=True)
class ClipPath:
    """A clip, and the words of its path: folders, then its name without an ending and without a seed."""

    path: Path
    name: str  # below the source, with its ending
    words: Words
    seed: int = 0
    keeps_ending: bool = False  # because another clip differs from it in nothing else


@dataclass(frozen=True)
class TruthPath:
    """A clip that says that it is the truth, and the words of its path that say of what."""

    path: Path
    scene: Words
    said_by: str  # the folder or name that says so
    in_folder: bool  # by a folder of its own


def find_clip_paths(root: Path, outside: Path | None = None) -> list[ClipPath]:
    """The clips below a folder, in natural order, without seeds in their words; those below `outside` are left out.

    Two that differ only in their endings keep them. Letters are composed (NFC), so that a name is the same whichever
    system wrote it.
    """
    clips = [
        (folders, name, path)
        for folders, name, path in find_clip_files(root)
        if outside is None or not path.resolve().is_relative_to(outside)
    ]
    counts = Counter((folders, name) for folders, name, _ in clips)
    named = []
    for folders, name, path in clips:
        keeps = counts[folders, name] > 1 and not path.is_dir()
        words = tuple(normalize("NFC", word) for word in (*folders, f"{name}{path.suffix}" if keeps else name))
        below = normalize("NFC", path.relative_to(root).as_posix())
        named.append(ClipPath(path, below, words, keeps_ending=keeps))
    return _split_off_seeds(named)


def _split_off_seeds(clips: list[ClipPath]) -> list[ClipPath]:
    """The clips with the seeds that their words name, unless nothing else would tell two clips apart or name one."""
    facts_with_seeds = []
    for clip in clips:
        pairs = [split_seed(word) for word in clip.words]
        seeds = [seed for _, seed in pairs if seed is not None]
        words = tuple(word for word, _ in pairs if word)
        facts_with_seeds.append(replace(clip, words=words, seed=seeds[0] if seeds else 0))
    ids = {(clip.words, clip.seed) for clip in facts_with_seeds}
    return facts_with_seeds if len(ids) == len(clips) and all(clip.words for clip in facts_with_seeds) else clips


def separate_truth_clips(clips: Sequence[ClipPath], folder: str) -> tuple[list[ClipPath], list[TruthPath]]:
    """Clips to judge, and those that say that they are the truth of others; where all say so, none is.

    A gt.mp4 among clips that lie in no folder makes of the source, which is called `folder`, the folder of one scene.
    """
    flat = all(len(clip.words) == 1 for clip in clips)
    if flat and sum(is_truth_word(clip.words[0]) for clip in clips) == 1 < len(clips):
        clips = [replace(clip, words=(folder, *clip.words)) for clip in clips]
    truths = {clip.path: truth for clip in clips if (truth := _truth_path_of_clip(clip)) is not None}
    others = [clip for clip in clips if clip.path not in truths]
    if not others or not truths:
        return list(clips), []
    # `a_gt` is the truth of something only where that lies there, too: gt_city_walk may be a scene.
    beside = {word for clip in others for word in clip.words}
    # Beside a gt.mp4, gt_pred.mp4 is a comparison of both, and no truth.
    homes = {path.parent for path, truth in truths.items() if not truth.in_folder and is_truth_word(truth.said_by)}
    truth_clips = {
        path: truth
        for path, truth in truths.items()
        if truth.in_folder
        or is_truth_word(truth.said_by)
        or (path.parent not in homes and any(word_starts_or_ends_with(truth.scene[-1], word) for word in beside))
    }
    return [clip for clip in clips if clip.path not in truth_clips], list(truth_clips.values())


def word_starts_or_ends_with(part: str, word: str) -> bool:
    """Whether a word is this part, or begins or ends with it at a separator."""
    name = re.escape(part)
    return re.fullmatch(rf"{name}|{name}[-_. ].*|.*[-_. ]{name}", word, re.DOTALL) is not None


def _truth_path_of_clip(clip: ClipPath) -> TruthPath | None:
    for k, word in enumerate(clip.words):
        if is_truth_word(word) and len(clip.words) > 1:
            words = (*clip.words[:k], *clip.words[k + 1 :])
            last = k == len(clip.words) - 1 and not clip.path.is_dir()
            return TruthPath(clip.path, words, word, in_folder=not last)
    base = strip_truth_word(clip.words[-1])
    return None if base is None else TruthPath(clip.path, (*clip.words[:-1], base), clip.words[-1], in_folder=False)


def read_truth_folder(folder: Path) -> list[TruthPath]:
    """The clips of a folder of truth, each by the words that say what it is the truth of."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder of true videos; --reference takes one")
    truths = []
    for clip in find_clip_paths(folder):
        truth = _truth_path_of_clip(clip)
        truths.append(TruthPath(clip.path, truth.scene if truth else clip.words, folder.name, in_folder=True))
    if not truths:
        raise UsageError(f"{folder}: there is no clip in it; --reference takes a folder of true videos")
    return truths


def candidate_truth_indexes(truths: Sequence[TruthPath]) -> Iterator[dict[Words, TruthPath]]:
    """Truths by the words of their scenes: without those that say nothing, then all of them, then the last one only.

    Last, the name without what says again that it is the truth: gt/gt_kitchen.mp4.
    """
    scenes = [truth.scene for truth in truths]
    telling = [tuple(word for word in scene if not is_generic_word(word)) or scene for scene in scenes]
    if len({scene[-1] for scene in telling}) == 1 and len(truths) > 1:  # kitchen/gt/clip.mp4, hall/gt/clip.mp4
        telling = [scene[:-1] or scene for scene in telling]
    bare = [(*scene[:-1], strip_truth_word(scene[-1]) or scene[-1]) for scene in telling]
    for names in (telling, scenes, [scene[-1:] for scene in scenes], bare):
        if len(set(names)) == len(truths):
            yield dict(zip(names, truths, strict=True))


def without_generic_folders(clips: Sequence[ClipPath]) -> list[ClipPath]:
    """The clips without the folders around all of them that tell nothing: results/wan/a.mp4 is wan/a."""
    words = [clip.words for clip in clips]
    while min(map(len, words)) > 1 and len({one[0] for one in words}) == 1 and is_generic_word(words[0][0]):
        words = [one[1:] for one in words]
    return [ClipPath(clip.path, clip.name, some, clip.seed) for clip, some in zip(clips, words, strict=True)]


def find_training_step_numbers(clips: Sequence[ClipPath]) -> list[str]:
    """The numbers of folders that are steps of a training, below those of models; none where they may be anything else.

    They are written as 1000 and not 0001. Scenes are counted otherwise (001, 1, 2), and each has clips of its own where
    steps repeat them. Folders that all hold a video.mp4 and nothing else are taken for scenes.
    """
    short = without_generic_folders(clips) if clips else []
    numbers = {clip.words[1] for clip in short if len(clip.words) > 2}
    if min((len(clip.words) for clip in short), default=0) < 3:
        return []
    if not all(number.isdecimal() and number == str(int(number)) for number in numbers):
        return []
    if not are_checkpoint_numbers([int(number) for number in numbers]):
        return []
    for mine in group_items(short, lambda clip: clip.words[0]).values():
        steps, names = {clip.words[1] for clip in mine}, {clip.words[2:] for clip in mine}
        filled = len({clip.words[1:] for clip in mine}) / (len(steps) * len(names))
        if len(steps) < 2 or filled < FULL or all(is_generic_word(name[-1]) for name in names):
            return []
    return sorted(numbers, key=int)
