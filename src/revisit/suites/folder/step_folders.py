"""Folders of checkpoints that are called by a number alone: wan/1000/kitchen.mp4, wan/2000/kitchen.mp4."""

from __future__ import annotations

from collections.abc import Sequence

from revisit.core.grouping import group_items
from revisit.suites.folder.clip_paths import ClipPath
from revisit.suites.folder.path_words import are_checkpoint_numbers, is_generic_word

FULL = 0.7  # of a grid, such as that of scenes and models, must be there


def without_generic_folders(clips: Sequence[ClipPath]) -> list[ClipPath]:
    """The clips without the folders around all of them that tell nothing: results/wan/a.mp4 is wan/a."""
    words = [clip.words for clip in clips]
    while min(map(len, words)) > 1 and len({one[0] for one in words}) == 1 and is_generic_word(words[0][0]):
        words = [one[1:] for one in words]
    return [ClipPath(clip.path, clip.name, some, clip.seed) for clip, some in zip(clips, words, strict=True)]


def find_step_numbers(clips: Sequence[ClipPath]) -> list[str]:
    """The numbers of folders that are steps of a training, below those of models; none where they may be anything else.

    Scenes are counted otherwise (001, 1, 2), and each has clips of its own, where steps repeat them. Folders that all
    hold a video.mp4 and nothing else are taken for scenes.
    """
    short = without_generic_folders(clips) if clips else []
    numbers = {clip.words[1] for clip in short if len(clip.words) > 2}
    if min((len(clip.words) for clip in short), default=0) < 3 or not all(map(_is_unpadded_number, numbers)):
        return []
    if not are_checkpoint_numbers([int(number) for number in numbers]):
        return []
    for mine in group_items(short, lambda clip: clip.words[0]).values():
        steps, names = {clip.words[1] for clip in mine}, {clip.words[2:] for clip in mine}
        filled = len({clip.words[1:] for clip in mine}) / (len(steps) * len(names))
        if len(steps) < 2 or filled < FULL or all(is_generic_word(name[-1]) for name in names):
            return []
    return sorted(numbers, key=int)


def _is_unpadded_number(word: str) -> bool:
    """Whether a name is a number as one writes it, 1000 and not 0001."""
    return word.isdecimal() and word == str(int(word))
