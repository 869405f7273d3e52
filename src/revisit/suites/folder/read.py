"""Cases from a folder of videos or from a JSONL manifest."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from revisit.core import Case, Clip, Rejected, Remark, Target, UsageError
from revisit.core.text import pluralize
from revisit.media import VIDEO_SUFFIXES
from revisit.suites.clips import (
    MANIFEST,
    TargetRow,
    case_id,
    distinguish_names,
    find_clips,
    read_manifest,
    read_targets,
    unread_files,
)
from revisit.suites.folder.scan import target_of

TARGETS = "targets.json"


def recognises(source: Path) -> bool:
    """True for anything: this suite is the fallback for what no benchmark claims."""
    return source.exists()


def read(source: Path, roots: Sequence[Path] = ()) -> Iterator[Case | Rejected | Remark]:
    """Cases of a manifest file, of a folder with a manifest.jsonl, or of a plain folder, with remarks on the latter."""
    if not source.exists():
        raise UsageError(f"{source}: no such file or folder")
    if source.is_file() and source.suffix.lower() in VIDEO_SUFFIXES:
        yield _case(source.stem, source.resolve().parent.name, source)
    elif source.is_file():
        yield from read_manifest(source, roots)
    elif (source / MANIFEST).is_file():
        yield from read_manifest(source / MANIFEST, roots)
    else:
        yield from _folder_cases(source)


def _folder_cases(source: Path) -> Iterator[Case | Rejected | Remark]:
    """Clips of a folder by their names, beside the truth and with the targets that lie there."""
    plain = list(find_clips(source))
    clips: Sequence[FolderClip] = distinguish_names(plain)
    renamed = [sample for (_, sample, _), before in zip(clips, plain, strict=True) if sample != before[1]]
    homes = {path.parent for _, _, path in clips}
    clip_folder = homes.pop() if len(homes) == 1 else source
    guess = guess_models(clip_folder, clips)
    # The name of a folder within may be that of the model, unless a clip says that it is the truth of the others.
    if guess and (clip_folder == source or truth_model({model for model, _, _ in guess.clips})):
        clips = guess.clips
        yield Remark(guess.sentence)
    truth = truth_model({model for model, _, _ in clips})
    references = {sample: path for model, sample, path in clips if model == truth}
    paired = {sample for model, sample, _ in clips if model != truth} & references.keys()
    if paired:
        yield Remark(
            f"{truth} is taken as the truth of {pluralize(len(paired), 'scene')}; a folder or file of another name, or "
            f"a manifest (`revisit import scan`), makes it a model like the others"
        )
    targets, target_folder = {}, source if (source / TARGETS).is_file() else clip_folder
    if (target_folder / TARGETS).is_file():
        try:
            targets = read_targets(target_folder / TARGETS)
            yield Remark(f"targets were read from {(target_folder / TARGETS).relative_to(source)}")
        except UsageError as error:
            yield Remark(f"clips have no targets: {error}")
    for model, sample, path in clips:
        if not (model == truth and sample in paired):
            reference = references.get(sample) if model != truth else None
            yield _case(sample, model, path, reference, target_of(targets, target_folder, sample, path))
    if renamed:
        yield Remark(f"clips that differ only in their endings keep them in their names: {', '.join(renamed[:5])}")
    yield from unread_files(source)


def _case(
    sample: str, model: str, path: Path, reference: Path | None = None, target: TargetRow | None = None
) -> Case | Rejected:
    clip_id = case_id(sample, model, 0)
    box = None
    if target is not None:
        from revisit.suites.manifest import TargetEntry

        try:
            checked = TargetEntry.model_validate(target)
        except ValueError:
            box_text = str(target["box"])[:80]
            return Rejected(
                clip_id, f"its box in {TARGETS} must be x0, y0, x1, y1 as fractions of the frame ({box_text})", model
            )
        box = Target(checked.name, checked.box)
    truth = Clip(reference) if reference is not None else None
    return Case(id=clip_id, suite="folder", model=model, sample=sample, clip=Clip(path), reference=truth, target=box)


FULL = 0.7  # of the grid of scenes and models must be there
TRUTHS = ("gt", "groundtruth", "truth", "reference", "ref")
FolderClip = tuple[str, str, Path]  # model, sample, path


@dataclass(frozen=True)
class Guess:
    """Clips by their names, or as they were where names may mean two things, and what is to be told of that."""

    clips: tuple[FolderClip, ...]
    pattern: str
    sentence: str


def guess_models(root: Path, found: Sequence[FolderClip]) -> Guess | None:
    """The models and scenes that names in one folder tell of: `Real_020_wan.mp4` is Real_020 of the model wan.

    None where they form no grid: several scenes, each of them by most of the models. Where a name says that it is the
    truth (`Real_020_gt.mp4`), one scene is enough.
    """
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
                if all(scene.isdigit() for scene, _ in parts) and not truth_model({model for _, model in parts}):
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
    if not truth_model(models) and (len(scenes) < 2 or len(parts) < 4):
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
        f"names were read as {pattern} ({example.name}: model {parts[0][1]}): {pluralize(len(scenes), 'scene')} of "
        f"{pluralize(len(models), 'model')}"
    )


def truth_model(models: Collection[str]) -> str | None:
    """The model whose name says that its clips are the truth, where there are others to compare with it."""
    matching = [model for model in models if re.sub(r"[ _-]", "", model.lower()) in TRUTHS]
    return matching[0] if len(matching) == 1 and len(models) > 1 else None
