"""Clips by the truth that lies with them: where the names of its scenes stand in a path, the rest is the model's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from revisit.core.grouping import group_items
from revisit.datasets.folder.clip_paths import (
    ClipPath,
    TruthPath,
    Words,
    candidate_truth_indexes,
    find_training_step_numbers,
)
from revisit.datasets.folder.path_patterns import ClipFacts
from revisit.datasets.folder.path_words import is_checkpoint_word, is_generic_word, split_at_separators, strip_name
from revisit.media import file_digest


@dataclass(frozen=True)
class Match:
    """The scene that a path names, and what else it says."""

    scene: Words
    rest: Words  # other folders and parts of the name, in their order
    seed: int


def pair_clips_with_truth(
    clips: Sequence[ClipPath], truths: Sequence[TruthPath], root: str
) -> tuple[dict[Path, ClipFacts], dict[Path, TruthPath]]:
    """Clips whose paths name scenes of the truth: what each is, and its truth; `root` is the model without another."""
    best: dict[ClipPath, Match] = {}
    named: Mapping[Words, TruthPath] = {}
    for names in candidate_truth_indexes(truths) if truths else ():
        by_last_word = group_items(names, lambda scene: scene[-1])
        matches = {clip: match for clip in clips if (match := _match_scene(clip, by_last_word)) is not None}
        if len(matches) > len(best):
            best, named = matches, names
    if not best:
        return {}, {}
    facts: dict[Path, ClipFacts] = {}
    truth_of: dict[Path, TruthPath] = {}
    constant = set.intersection(*(set(match.rest) for match in best.values()))
    others = {word for match in best.values() for word in match.rest if not is_generic_word(word)} - constant
    level = None if others else _model_level_of_scenes(named)
    steps = {*find_training_step_numbers(clips), *filter(is_checkpoint_word, others)}
    for clip, match in best.items():
        # A folder's name in the names of its files is one word: wan/wan_kitchen.mp4.
        scene, rest = match.scene, [word for word in dict.fromkeys(match.rest) if word not in constant]
        telling = [word for word in rest if not is_generic_word(word)] or rest
        alone = [word for word in match.rest if not is_generic_word(word)]  # one model: what all paths say is its name
        if level is not None:
            model, scene = scene[level], scene[:level] + scene[level + 1 :]
        elif telling:
            model = "-".join([telling[0], *(word for word in telling[1:] if word in steps)])
            scene = (*(word for word in telling[1:] if word not in steps), *scene)
        else:
            model = alone[0] if alone else root
        facts[clip.path] = ClipFacts(model, "/".join(scene), match.seed)
        truth_of[clip.path] = named[match.scene]
    return facts, truth_of


def _match_scene(clip: ClipPath, index: Mapping[str, list[Words]]) -> Match | None:
    """The scene in a path: a whole word before a part of one, then the longest."""
    matches: list[tuple[tuple[bool, int, int], Match]] = []
    for k, word in enumerate(clip.words):
        candidates = [(word, "", "")]
        for left, _, right in split_at_separators(word):
            candidates += [(left, "", right), (right, left, "")]
        for name, before, after in candidates:
            for scene in index.get(name, ()):
                others = _remove_scene_words(clip.words[:k], scene[:-1])
                if others is None:
                    continue
                is_seed = after.isdigit() and len(after) < 10
                affix = [part for part in (before, "" if is_seed else after) if part]
                rest = [*others, *affix, *clip.words[k + 1 :]]
                plain = tuple(part for part in (strip_name(word, name) for word in rest) if part)
                seed = int(after) if is_seed else clip.seed
                matches.append(((name == word, len(scene), len(name)), Match(scene, plain, seed)))
    return max(matches, key=lambda one: one[0])[1] if matches else None


def _remove_scene_words(words: Words, scene: Words) -> list[str] | None:
    """The words without those of a scene, which must stand among them in order."""
    rest = list(words)
    at = 0
    for part in scene:
        if part not in rest[at:]:
            return None
        at = rest.index(part, at)
        rest.pop(at)
    return rest


def _model_level_of_scenes(truths: Mapping[Words, TruthPath]) -> int | None:
    """Which word of scenes is the model's: truth lies in the folder of each model (wan/gt/a, wan/pred/a); or None.

    Folders of scenes look the same where one model made everything. What tells them apart is the truth itself: that of
    one scene is the same in the folder of every model.
    """
    depth = min(map(len, truths))
    for level in range(depth if depth > 1 else 0):
        other_words = {scene: (*scene[:level], "", *scene[level + 1 :]) for scene in truths}
        groups = group_items(truths, other_words.__getitem__)
        pairs = [pair for scenes in groups.values() for pair in pairwise(scenes)]
        if len(groups) == 1 < len(truths) or (level and not pairs):
            continue  # only this word tells scenes apart, or nothing says that it does not
        if all(_same_content(truths[one].path, truths[other].path) for one, other in pairs):
            return level
    return None


def _same_content(one: Path, other: Path) -> bool:
    if one.is_dir() and other.is_dir():
        first, second = (sorted(folder.glob("[!.]*")) for folder in (one, other))
        names = [path.name for path in first] == [path.name for path in second]
        return names and _same_content(first[0], second[0]) and _same_content(first[-1], second[-1])
    if one.is_dir() or other.is_dir():
        return False
    return one.stat().st_size == other.stat().st_size and file_digest(one) == file_digest(other)
