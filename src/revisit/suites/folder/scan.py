"""`import scan`: writes a manifest of the videos in a folder, to be edited by hand afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from revisit.core import UsageError
from revisit.core.text import join_names
from revisit.suites.clips import TargetRow, target_name
from revisit.suites.folder.clip_paths import list_clip_paths
from revisit.suites.folder.path_patterns import ClipFacts, Pattern, parse_layout_pattern


def scan_folder(
    root: Path,
    *,
    pattern: str | None = None,
    reference: str | None = None,
    targets: Mapping[str, TargetRow] | None = None,
) -> Iterator[dict[str, Any]]:
    """Manifest entries for every clip below `root`.

    `pattern` reads scene, model and seed out of paths, as in "{id}_{model}.mp4" or "{model}/seed{seed}/{scene}.mp4";
    `reference` names the model whose clips are the truth; `targets` maps a file's path without its ending, its stem or
    an id to {"box": [x0, y0, x1, y1], "target": name}.
    """
    if not root.is_dir():
        raise UsageError(f"{root}: no such folder")
    clips = list(_model_sample_seed_paths(root, parse_layout_pattern(pattern) if pattern else None))
    if not clips:
        raise UsageError(f"{root}: no videos found" + (f" that look like {pattern!r}" if pattern else ""))
    truth = {sample: path for model, sample, _, path in clips if model == reference}
    if reference is not None and not truth:
        models = join_names(sorted({model for model, _, _, _ in clips}), 11)
        raise UsageError(f"no clip belongs to the reference model {reference!r}; the models found are {models}")
    for model, sample, seed, path in clips:
        entry: dict[str, Any] = {"id": sample, "model": model, "video": path.relative_to(root).as_posix()}
        if seed:
            entry["seed"] = seed
        if sample in truth and model != reference:
            entry["reference"] = truth[sample].relative_to(root).as_posix()
        if target := target_row_of_clip(targets or {}, root, sample, path):
            entry["target"] = target
        yield entry


def target_row_of_clip(targets: Mapping[str, TargetRow], root: Path, sample: str, path: Path) -> TargetRow | None:
    """Name and box of a clip's target in a table by path without ending, stem or id."""
    if not targets:
        return None
    names = (path.relative_to(root).with_suffix("").as_posix(), path.stem, sample)
    row = next((targets[name] for name in names if name in targets), None)
    return None if row is None else {"name": target_name(row), "box": row["box"]}


def _model_sample_seed_paths(root: Path, pattern: Pattern | None) -> Iterator[tuple[str, str, int, Path]]:
    for clip in list_clip_paths(root):
        model, *scene = clip.words if len(clip.words) > 1 else (root.resolve().name, *clip.words)
        facts = ClipFacts(model, "/".join(scene)) if pattern is None else pattern.match_path(clip.name)
        if facts is not None:
            yield facts.model or model, facts.scene, facts.seed, clip.path
