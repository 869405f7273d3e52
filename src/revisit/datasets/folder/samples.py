"""Several samples of one scene: clips whose names differ only in a number, and that begin with the same picture.

Names alone do not tell: Real_007 and Real_024 are two scenes. Samples of one scene begin alike, and count as seeds of
it: intervals then resample scenes, and a copy of a clip adds no evidence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from revisit.core.grouping import group_items
from revisit.datasets.folder.clip_paths import ClipPath, Words
from revisit.datasets.folder.first_frames import ALIKE, CLEAR, load_first_frames_unless_blank, mean_picture_difference
from revisit.datasets.folder.layout import split_stems_into_grid
from revisit.datasets.folder.path_words import are_checkpoint_numbers, is_checkpoint_word, mostly_model_names

# Of 255, over pictures of 24 x 24: first frames of one scene by two published models differ by 3.8 in the mean (median
# of 180 pairs), those of two scenes by 13 or more. Samples of one model are nearer: they differ in what was encoded.
SAME_MEAN, SAME_MOST = 3.0, 25.0  # on average, and anywhere: a cup that was moved is another scene
MOST_MEMBERS = 3  # clips of a group that are looked at
MOST_GROUPS = 3  # groups of one name that are looked at
MOST_NAMES = 12  # names that are looked at; all of them where these disagree
_NUMBERED = re.compile(
    r"(?:|(?P<base>.+?)[_\-. ]+)(?P<word>(?:sample|take|run|try|rollout|generation|gen|draw)s?[_\-=. ]?)?"
    r"(?:s(?=\d))?\(?(?P<number>\d{1,18})\)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class NumberedClip:
    """A clip whose path ends in a number, and what it is called without it."""

    clip: ClipPath
    words: Words
    number: int
    has_word: bool  # the name itself says sample, take or run


@dataclass(frozen=True)
class SampleReading:
    """The clips of a folder with samples of one scene as its seeds."""

    clips: list[ClipPath]
    example: tuple[str, ...]  # names of clips that are samples of one scene
    begin_alike: bool  # else only their names say so
    unlike: tuple[str, ...] = ()  # clips that do not begin like the others of their scene, and are samples by name


def find_samples_as_seeds(clips: Sequence[ClipPath], scenes: set[str], root: str) -> SampleReading | None:
    """Clips with their numbers as seeds where they are samples of one scene; None where nothing says so.

    `scenes` are the names that the truth has: a number in one of them belongs to the scene. `root` is the name of the
    source.
    """
    if any(clip.seed for clip in clips):
        return None  # names say what the seeds are
    by_name_only = None
    for position in range(1, max((len(clip.words) for clip in clips), default=0) + 1):
        groups = _group_by_numbered_word(clips, position, scenes)
        if not groups:
            continue
        names = _names_with_same_first_frames(groups)
        if names:
            alike = [group for group in groups if group[0].words[-1] in names]
            return _number_samples_as_seeds(clips, alike, root, begin_alike=True)
        repeats = position > 1 and len({group[0].words[-1] for group in groups}) > 1  # of names in numbered folders
        if by_name_only is None and (repeats or all(one.has_word for group in groups for one in group)):
            by_name_only = groups
    return _number_samples_as_seeds(clips, by_name_only, root, begin_alike=False) if by_name_only else None


def find_grid_numbers_as_seeds(
    clips: Sequence[ClipPath], scenes: set[str], root: str, samples_by_picture: SampleReading | None
) -> SampleReading | None:
    """kitchen_alpha_0.mp4 with its number as the seed, where scenes, models and numbers form a whole grid; else None.

    `samples_by_picture` are the samples by first pictures. Where these are half of the clips or more, so are the
    others.
    """
    if any(clip.seed or len(clip.words) > 1 for clip in clips):
        return None
    groups = _group_by_numbered_word(clips, 1, scenes)
    numbers = {tuple(sorted(one.number for one in group)) for group in groups}
    if len(numbers) != 1 or sum(map(len, groups)) < len(clips):
        return None
    stems = [group[0].words[-1] for group in groups]
    if not (split_stems_into_grid(stems, model_last=True) or split_stems_into_grid(stems, model_last=False)):
        return None
    grid = _number_samples_as_seeds(clips, groups, root, begin_alike=False)
    seen = (
        {clip.path for clip, other in zip(samples_by_picture.clips, clips, strict=True) if clip != other}
        if samples_by_picture
        else set()
    )
    unlike = tuple(clip.name for clip in clips if clip.path not in seen)
    return replace(grid, begin_alike=True, unlike=unlike) if 2 * len(seen) >= len(clips) else grid


def _group_by_numbered_word(clips: Sequence[ClipPath], position: int, scenes: set[str]) -> list[list[NumberedClip]]:
    """Clips that differ only in a number in one of the words, counted from the end of the path; at least two each.

    Of folders only those that say so (sample_0), or numbers below another folder (wan/42/kitchen.mp4): a number alone
    may be that of a checkpoint.
    """
    candidates = []
    for clip in clips:
        if len(clip.words) < position or clip.keeps_ending:
            continue
        at = len(clip.words) - position
        match = None if is_checkpoint_word(clip.words[at]) else _NUMBERED.fullmatch(clip.words[at])
        if match is None or clip.words[at] in scenes or (position > 1 and (match["base"] or not (match["word"] or at))):
            continue
        words = (*clip.words[:at], *filter(None, [match["base"]]), *clip.words[at + 1 :])
        if words:
            candidates.append(NumberedClip(clip, words, int(match["number"]), bool(match["word"])))
    groups = group_items(candidates, lambda one: one.words).values()
    numbered = [group for group in groups if len({one.number for one in group}) == len(group) > 1]
    numbers = {one.number for group in numbered for one in group if not one.has_word}
    if are_checkpoint_numbers(numbers):
        return []  # kitchen/1000.mp4, kitchen/2000.mp4: checkpoints
    taken = {clip.words for clip in clips}
    return [group for group in numbered if group[0].words not in taken]


def _names_with_same_first_frames(groups: Sequence[Sequence[NumberedClip]]) -> set[str]:
    """The names whose groups begin alike; groups of one name go together, whichever model made them."""
    by_name = group_items(groups, lambda group: group[0].words[-1])
    names = list(by_name)
    few = names[:: max(1, -(-len(names) // MOST_NAMES))]
    pictures: dict[str, list[list[np.ndarray]]] = {}
    verdicts = _same_beginning_by_name({name: by_name[name] for name in few}, pictures)
    if len(few) < len(names):
        if len(set(verdicts.values())) == 1:
            return set(names) if all(verdicts.values()) else set()
        verdicts |= _same_beginning_by_name({name: by_name[name] for name in names if name not in few}, pictures)
    alike = {name for name, verdict in verdicts.items() if verdict}
    return alike if _differ_more_between_than_within_groups({name: pictures[name] for name in alike}) else set()


def _same_beginning_by_name(
    by_name: Mapping[str, Sequence[Sequence[NumberedClip]]], collected_pictures: dict[str, list[list[np.ndarray]]]
) -> dict[str, bool]:
    """Whether most groups of each name begin alike; what was looked at is kept in `collected_pictures`."""
    verdicts = {}
    for name, groups in by_name.items():
        collected_pictures[name] = [some for group in groups[:MOST_GROUPS] if (some := _usable_first_pictures(group))]
        votes = [
            all(_are_same_picture(one, other) for one, other in combinations(some, 2))
            for some in collected_pictures[name]
        ]
        verdicts[name] = bool(votes) and 2 * sum(votes) >= len(votes)
    return verdicts


def _are_same_picture(one: np.ndarray, other: np.ndarray) -> bool:
    return mean_picture_difference(one, other) <= SAME_MEAN and float(np.abs(one - other).max()) <= SAME_MOST


def _usable_first_pictures(group: Sequence[NumberedClip]) -> list[np.ndarray]:
    """First pictures of some clips of a group; none where one cannot be read, or shows nothing."""
    chosen = [group[0], group[len(group) // 2], group[-1]] if len(group) > MOST_MEMBERS else group
    return load_first_frames_unless_blank(one.clip.path for one in chosen)


def _differ_more_between_than_within_groups(pictures: Mapping[str, list[list[np.ndarray]]]) -> bool:
    """Whether groups begin clearly less alike than the clips of one, or all show one scene."""
    groups = [group for some in pictures.values() for group in some]
    within = [mean_picture_difference(one, other) for group in groups for one, other in combinations(group, 2)]
    between = [mean_picture_difference(one[0], other[0]) for one, other in combinations(groups, 2)]
    apart = max(between, default=0.0)
    return apart <= ALIKE or float(np.median(within)) <= CLEAR * apart


def _number_samples_as_seeds(
    clips: Sequence[ClipPath], groups: Sequence[Sequence[NumberedClip]], root: str, *, begin_alike: bool
) -> SampleReading:
    """The clips with the numbers of these groups as seeds."""
    numbered = {one.clip.path: one for group in groups for one in group}
    folders = {group[0].words[0] for group in groups if len(group[0].words) == 1 and len(group[0].clip.words) > 1}
    one_scene = bool(folders) and (mostly_model_names(folders) or _groups_share_first_picture(groups))
    changed = []
    for clip in clips:
        if one := numbered.get(clip.path):
            alone = one_scene and len(one.words) == 1  # wan/0.mp4, svc/0.mp4: models, and one scene without a name
            clip = replace(clip, words=(*one.words, root) if alone else one.words, seed=one.number)
        changed.append(clip)
    return SampleReading(changed, tuple(one.clip.name for one in groups[0]), begin_alike)


def _groups_share_first_picture(groups: Sequence[Sequence[NumberedClip]]) -> bool:
    """Whether several groups begin with one picture: then they are of one scene, by several models."""
    pictures = [some[0] for group in groups[:MOST_GROUPS] if (some := _usable_first_pictures(group))]
    differences = [mean_picture_difference(one, other) for one, other in combinations(pictures, 2)]
    return len(pictures) > 1 and max(differences) <= ALIKE
