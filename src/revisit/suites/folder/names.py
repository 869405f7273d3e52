"""Names of clips that lie in one folder: `Real_020_wan.mp4` is the scene Real_020 of the model wan.

A guess is made only where names form a grid: several scenes, each of them by most of the models. Where a name says that
it is the truth (`Real_020_gt.mp4`), one scene is enough.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from revisit.core.texts import counted

FULL = 0.7  # of the grid of scenes and models must be there
TRUTHS = ("gt", "groundtruth", "truth", "reference", "ref")
Found = tuple[str, str, Path]  # model, sample, path


@dataclass(frozen=True)
class Guess:
    """Clips by their names, or as they were where names may mean two things, and what is to be told of that."""

    clips: tuple[Found, ...]
    pattern: str
    sentence: str


def guessed(root: Path, found: Sequence[Found]) -> Guess | None:
    """The models and scenes that names in one folder tell of; None where they form no grid."""
    if any(path.parent != root for _, _, path in found):
        return None
    stems = [path.name if path.is_dir() else path.stem for _, _, path in found]
    for separator in ("__", "_", "-", "."):
        for pattern, parts in (
            (f"{{id}}{separator}{{model}}", [stem.rpartition(separator)[::2] for stem in stems]),
            (f"{{model}}{separator}{{id}}", [stem.partition(separator)[::-2] for stem in stems]),
        ):
            if _is_grid(parts):
                # walk_001 and run_001 may be scenes of one model as well.
                if all(scene.isdigit() for scene, _ in parts) and not the_truth({model for _, model in parts}):
                    return Guess(tuple(found), pattern, _proposal(root, pattern, parts, found[0][2]))
                clips = tuple((model, sample, path) for (sample, model), (_, _, path) in zip(parts, found, strict=True))
                return Guess(clips, pattern, _sentence(pattern, parts, found[0][2]))
    return None


def _is_grid(parts: Sequence[tuple[str, ...]]) -> bool:
    """Whether (scene, model) pairs are all different and fill most of a grid; a number alone is no model."""
    if not all(scene and model for scene, model in parts) or len(set(parts)) < len(parts):
        return False
    scenes, models = {scene for scene, _ in parts}, {model for _, model in parts}
    if len(models) < 2 or any(model.isdigit() for model in models):
        return False
    if not the_truth(models) and (len(scenes) < 2 or len(parts) < 4):
        return False
    return len(parts) >= FULL * len(scenes) * len(models)


def _proposal(root: Path, pattern: str, parts: Sequence[tuple[str, ...]], example: Path) -> str:
    names = sorted({model for _, model in parts})
    return (
        f"all clips are taken as of one model; if {' and '.join(names[:2])} are models, `revisit import scan "
        f"{root.name} --pattern '{pattern}{'' if example.is_dir() else example.suffix}'` reads them so"
    )


def _sentence(pattern: str, parts: Sequence[tuple[str, ...]], example: Path) -> str:
    scenes, models = {scene for scene, _ in parts}, sorted({model for _, model in parts})
    return (
        f"names were read as {pattern} ({example.name}: model {parts[0][1]}): {counted(len(scenes), 'scene')} of "
        f"{counted(len(models), 'model')}"
    )


def the_truth(models: Collection[str]) -> str | None:
    """The model whose name says that its clips are the truth, where there are others to compare with it."""
    named = [model for model in models if re.sub(r"[ _-]", "", model.lower()) in TRUTHS]
    return named[0] if len(named) == 1 and len(models) > 1 else None
