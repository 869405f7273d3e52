"""Which part of a path is the model and which the scene, found by what repeats; other readings where two fit.

With truth among the clips its scenes tell (`pairing.py`). Without, words that stand in a grid are models and scenes;
which is which is told by names (step_1000), then by first frames: clips of one scene begin alike, those of one model
do not; then by numbers (Real_020). Where nothing tells, the first folder is the model; the other reading is offered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from revisit.core.text import count_and_noun, join_names
from revisit.datasets.folder.clip_paths import (
    FULL,
    ClipPath,
    TruthPath,
    find_training_step_numbers,
    without_generic_folders,
)
from revisit.datasets.folder.first_frames import levels_sharing_first_frame
from revisit.datasets.folder.pairing import pair_clips_with_truth
from revisit.datasets.folder.path_patterns import ClipFacts, infer_layout
from revisit.datasets.folder.path_words import (
    is_checkpoint_word,
    is_digits_word,
    is_generic_word,
    mostly_model_names,
    mostly_scene_names,
    split_at_separators,
    split_checkpoint,
    strip_name,
)

COMMON = 0.5  # of it, for one that is not there to be missing: two models without a scene in common fill half
Pair = tuple[str, str]


@dataclass(frozen=True)
class LayoutReading:
    """What each clip is, and the layout that says so; no layout where no pattern does."""

    facts: Mapping[Path, ClipFacts]
    layout: str
    truth: Mapping[Path, TruthPath] = field(default_factory=dict)

    @property
    def model_names(self) -> list[str]:
        return list(dict.fromkeys(one.model for one in self.facts.values()))

    @property
    def scene_names(self) -> list[str]:
        return list(dict.fromkeys(one.scene for one in self.facts.values()))

    @property
    def missing_clips(self) -> list[ClipFacts]:
        """Clips that one model has and another one lacks, where models have most of their clips in common."""
        there = set(self.facts.values())
        clips = list(dict.fromkeys((one.scene, one.seed) for one in self.facts.values()))
        if len(there) <= COMMON * len(self.model_names) * len(clips):
            return []
        every = [ClipFacts(model, scene, seed) for model in self.model_names for scene, seed in clips]
        return [one for one in every if one not in there]

    @property
    def size_text(self) -> str:
        """How many models and scenes, with some of their names."""
        models = f"{count_and_noun(len(self.model_names), 'model')} ({join_names(self.model_names)})"
        return f"{models} × {count_and_noun(len(self.scene_names), 'scene')} ({join_names(self.scene_names)})"


def possible_readings(clips: Sequence[ClipPath], truths: Sequence[TruthPath], root: str) -> list[LayoutReading]:
    """The reading to take, then others that fit as well; `root` is the model where paths name none."""
    facts, truth = pair_clips_with_truth(clips, truths, root)
    if not facts:
        return [_make_reading(clips, reading, root) for reading in _readings_without_truth(clips, root)]
    models = {one.model for one in facts.values()}
    rest = [clip for clip in clips if clip.path not in facts]
    facts.update({clip.path: _facts_by_known_models(clip, models, root) for clip in rest})
    counts = Counter(facts.values())
    for clip in clips:  # of two that would be one, all words tell
        if counts[one := facts[clip.path]] > 1:
            scene = "/".join(word for word in clip.words if word != one.model)
            facts[clip.path] = one._replace(scene=scene or one.scene)
    return [replace(_make_reading(clips, [facts[clip.path] for clip in clips], root), truth=truth)]


def _make_reading(clips: Sequence[ClipPath], facts: Sequence[ClipFacts], root: str) -> LayoutReading:
    layout = infer_layout([clip.name for clip in clips], facts, root)
    return LayoutReading({clip.path: one for clip, one in zip(clips, facts, strict=True)}, layout)


def _facts_by_known_models(clip: ClipPath, models: set[str], root: str) -> ClipFacts:
    """A clip of a scene without truth, by the models of the others."""
    for k, word in enumerate(clip.words):
        if word in models and len(clip.words) > 1:
            rest = [other for j, other in enumerate(clip.words) if j != k and not is_generic_word(other)]
            return ClipFacts(word, "/".join(rest) or clip.words[-1], clip.seed)
    for left, _, right in split_at_separators(clip.words[-1]):
        if left in models or right in models:
            model, scene = (right, left) if right in models else (left, right)
            return ClipFacts(model, "/".join((*clip.words[:-1], scene)), clip.seed)
    words = tuple(word for word in clip.words if not is_generic_word(word)) or clip.words
    if root in models:
        return ClipFacts(root, "/".join(words), clip.seed)
    return _first_folder_as_model(replace(clip, words=words), root)


def _first_folder_as_model(clip: ClipPath, root: str) -> ClipFacts:
    """The first folder is the model, and the rest of the path the scene."""
    if len(clip.words) == 1:
        return ClipFacts(root, clip.words[0], clip.seed)
    return ClipFacts(clip.words[0], "/".join(clip.words[1:]), clip.seed)


def _readings_without_truth(clips: Sequence[ClipPath], root: str) -> list[list[ClipFacts]]:
    """Readings of clips without truth, the one to take first."""
    short = without_generic_folders(clips)
    usual = [_first_folder_as_model(clip, root) for clip in short]
    depth = {len(clip.words) for clip in short}
    if depth == {1}:
        if checkpoints := _checkpoints_of_one_scene(short, root):
            return [checkpoints]
        return _readings_of_flat_names(short, usual)
    if min(depth) == 1:
        return [usual]  # some lie in the source itself
    if len({clip.words[0] for clip in short}) == 1:
        return _readings_of_one_folder(short, usual)
    return _readings_of_several_folders(short, usual, root)


def _checkpoints_of_one_scene(clips: Sequence[ClipPath], folder: str) -> list[ClipFacts] | None:
    """step_1000.mp4, step_2000.mp4 are checkpoints that show one scene, named after the folder if by nothing else."""
    split = [split_checkpoint(clip.words[-1]) for clip in clips]
    names = [one for one in split if one is not None]
    if len(names) < len(clips) or len({scene for scene, _ in names}) > 1 or len({step for _, step in names}) < 2:
        return None
    return [ClipFacts(step, scene or folder, clip.seed) for (scene, step), clip in zip(names, clips, strict=True)]


def _readings_of_flat_names(clips: Sequence[ClipPath], usual: list[ClipFacts]) -> list[list[ClipFacts]]:
    """Names in one folder: Real_020_wan is a scene and a model where such names form a grid."""
    stems = [clip.words[-1] for clip in clips]
    last, first = split_stems_into_grid(stems, model_last=True), split_stems_into_grid(stems, model_last=False)
    by_last = [ClipFacts(model, scene, clip.seed) for (scene, model), clip in zip(last, clips, strict=False)]
    by_first = [ClipFacts(model, scene, clip.seed) for (model, scene), clip in zip(first, clips, strict=False)]
    if not by_last and not by_first:
        return [usual]
    second_is_model = _second_half_is_model(last or first, [clip.path for clip in clips], counted_first=True)
    if second_is_model and by_last:
        return [by_last]
    if second_is_model is False and by_first:
        return [by_first]
    # walk_001, run_001: as well scenes of one model.
    return [one for one in (by_last, *((by_first, usual) if by_last else (usual, by_first))) if one]


def split_stems_into_grid(all_stems: Sequence[str], *, model_last: bool) -> list[Pair]:
    """(left, right) of every name so that both repeat and fill a grid; nothing where they do not.

    Names have several separators: the split is taken whose halves stand in most other names, and of those with the
    shortest model.
    """
    stems = list(dict.fromkeys(all_stems))  # a name may have several seeds
    halves = [[(left, right) for left, _, right in split_at_separators(stem)] for stem in stems]
    lefts = Counter(left for some in halves for left, _ in some)
    rights = Counter(right for some in halves for _, right in some)
    pairs = []
    for some in halves:
        telling = [(left, right) for left, right in some if not is_digits_word(right if model_last else left)]
        if not telling:
            return []
        pairs.append(max(telling, key=lambda one: (
            min(lefts[one[0]], rights[one[1]]) > 1, lefts[one[0]] * rights[one[1]], -len(one[model_last]),
        )))  # fmt: skip
    if not _fills_grid(pairs):
        return []
    pair_of = dict(zip(stems, pairs, strict=True))
    return [pair_of[stem] for stem in all_stems]


def _fills_grid(pairs: Sequence[Pair]) -> bool:
    """Whether pairs are all different and fill most of a grid of at least two by two."""
    one, other = {left for left, _ in pairs}, {right for _, right in pairs}
    if len(set(pairs)) < len(pairs) or min(len(one), len(other)) < 2 or len(pairs) < 4:
        return False
    return len(pairs) >= FULL * len(one) * len(other)


def _readings_of_one_folder(clips: Sequence[ClipPath], usual: list[ClipFacts]) -> list[list[ClipFacts]]:
    """Clips below one folder, which may be the model's, or hold folders or names of several models."""
    model = clips[0].words[0]
    inside = [ClipPath(clip.path, clip.name, clip.words[1:], clip.seed) for clip in clips]
    if all(len(clip.words) == 1 for clip in inside):
        if checkpoints := _checkpoints_of_one_scene(inside, model):
            return [checkpoints]
        return [usual, *(facts for facts in _readings_of_flat_names(inside, usual) if facts != usual)][:2]
    below = [_first_folder_as_model(clip, model) for clip in inside]
    if all(len(clip.words) > 1 and is_checkpoint_word(clip.words[0]) for clip in inside):
        return [below]
    if find_training_step_numbers(clips):
        return [below, usual]
    if min(len(clip.words) for clip in inside) < 2 or not _fills_grid([(one.model, one.scene) for one in below]):
        return [usual]
    return [below] if mostly_model_names({one.model for one in below}) else [usual, below]


def _readings_of_several_folders(clips: Sequence[ClipPath], usual: list[ClipFacts], root: str) -> list[list[ClipFacts]]:
    """Clips in several folders: those of models, or of scenes."""
    clips = _without_run_folders(clips)
    pairs: list[Pair] = []
    for clip in clips:
        folder, *between, stem = clip.words
        own = strip_name(stem, folder) or stem  # a file may repeat the folder's name: wan/wan_kitchen.mp4
        pairs.append((folder, "/".join([*between, own]) or folder))
    paths = [clip.path for clip in clips]
    folders = {folder for folder, _ in pairs}
    rest = {name for _, name in pairs}
    one_model = [ClipFacts(root, "/".join(clip.words), clip.seed) for clip in clips]
    if len(rest) == 1 or rest == folders:  # kitchen/video.mp4, or kitchen/seed0.mp4
        scenes = [ClipFacts(root, folder, clip.seed) for (folder, _), clip in zip(pairs, clips, strict=True)]
        return [usual] if mostly_model_names(folders) else [usual, scenes]
    steps = find_training_step_numbers(clips)
    models_first = [_join_step_to_model(*pair, clip.seed, steps) for pair, clip in zip(pairs, clips, strict=True)]
    depth = {len(clip.words) for clip in clips}
    if depth == {3} and (readings := _readings_with_inner_models(clips, models_first)):
        return readings
    if steps:
        return [models_first, usual]
    if not _fills_grid([(folder, name) for folder, name in dict.fromkeys(pairs)]):
        repeats = len(rest) < len(set(pairs))
        return [models_first] if repeats or mostly_model_names(folders) else [models_first, one_model]
    if depth != {2}:
        return [models_first]
    scenes_first = [ClipFacts(name, folder, clip.seed) for (folder, name), clip in zip(pairs, clips, strict=True)]
    verdict = _second_half_is_model(pairs, paths)
    if verdict is None:
        return [models_first, scenes_first]
    return [scenes_first] if verdict else [models_first]


def _join_step_to_model(folder: str, name: str, seed: int, steps: Collection[str]) -> ClipFacts:
    """A checkpoint in a folder of its own below the model's is part of the model's name; so are numbers of `steps`."""
    first, _, rest = name.partition("/")
    if rest and (first in steps or is_checkpoint_word(first)):
        return ClipFacts(f"{folder}-{first}", rest, seed)
    return ClipFacts(folder, name, seed)


def _readings_with_inner_models(clips: Sequence[ClipPath], models_first: list[ClipFacts]) -> list[list[ClipFacts]]:
    """kitchen/wan/01.mp4 or kitchen/left/wan.mp4: another level is the models' where names or first frames say so."""
    words = [clip.words for clip in clips]
    outer, *inner = (set(level) for level in zip(*words, strict=True))
    of_models = [k for k, level in enumerate(inner, start=1) if mostly_model_names(level)]
    if of_models and not mostly_model_names(outer) and not any(map(is_checkpoint_word, inner[0])):
        return [_level_as_model(clips, of_models[0])]
    alike = levels_sharing_first_frame(words, [clip.path for clip in clips])
    if not alike or 0 in alike or mostly_model_names(outer):
        return []
    return [*(_level_as_model(clips, k) for k in reversed(alike)), models_first]


def _level_as_model(clips: Sequence[ClipPath], k: int) -> list[ClipFacts]:
    return [ClipFacts(clip.words[k], "/".join(clip.words[:k] + clip.words[k + 1 :]), clip.seed) for clip in clips]


def _without_run_folders(clips: Sequence[ClipPath]) -> Sequence[ClipPath]:
    """The clips without a second folder that differs from model to model (wan/20260101/a, ours/20260102/a).

    With it, models would have no scene in common.
    """
    if min(len(clip.words) for clip in clips) < 3:
        return clips
    folders, places = {clip.words[0] for clip in clips}, {clip.words[:2] for clip in clips}
    rest, whole = {(clip.words[0], clip.words[2:]) for clip in clips}, {clip.words[1:] for clip in clips}
    if len(places) > len(folders) or len(whole) < len(rest) or len({scene for _, scene in rest}) == len(rest):
        return clips
    return [replace(clip, words=(clip.words[0], *clip.words[2:])) for clip in clips]


def _second_half_is_model(pairs: Sequence[Pair], paths: Sequence[Path], counted_first: bool = False) -> bool | None:
    """Which half of a grid names models: the second, the first, or None where nothing tells.

    Numbers are asked last: cfg7.5 and validation-100-0 end in one as scenes do, and their first frames say otherwise.
    With `counted_first`, first halves that end in numbers are scenes (Real_020_wan); of folders that is not enough.
    """
    first, second = {left for left, _ in pairs}, {right for _, right in pairs}
    if mostly_model_names(first) != mostly_model_names(second):
        return mostly_model_names(second)
    if levels := levels_sharing_first_frame(pairs, paths):
        return levels == [1]  # clips that share the first half begin alike: it is the scene
    if mostly_scene_names(second) and not mostly_scene_names(first) and not all(map(is_digits_word, second)):
        return False
    if counted_first and mostly_scene_names(first) and not mostly_scene_names(second):
        return True
    return None
