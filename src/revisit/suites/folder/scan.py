"""`import scan`: writes a manifest of the videos in a folder as `eval` reads it, to be edited by hand afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from revisit.core import Case, Rejected, Remark, Target, UsageError
from revisit.core.text import join_names
from revisit.suites.folder.clip_paths import word_starts_or_ends_with
from revisit.suites.folder.read import cases_of_folder, understand_layout


def scan_folder(
    root: Path,
    *,
    pattern: str | None = None,
    reference: str | None = None,
    targets: Mapping[str, Target] | None = None,
    on_remark: Callable[[str], None] = lambda _: None,
) -> Iterator[dict[str, Any]]:
    """Manifest entries for every clip below `root`, by the reading of `eval`; the truth is named beside its clips.

    `pattern` is a layout, as in "{id}_{model}.mp4" or "{model}/seed{seed}/{scene}.mp4"; `reference` names the model
    whose clips are the truth, where its name does not say so; `targets` maps a file's path without its ending, its stem
    or an id to a target. `on_remark` hears how the folder is read.
    """
    if not root.is_dir():
        raise UsageError(f"{root}: no such folder")
    understood = understand_layout(root, pattern or "")
    if not understood.clips:
        raise UsageError(f"{root}: no videos found")
    cases = []
    for entry in cases_of_folder(root, understood, targets):
        if isinstance(entry, Case):
            cases.append(entry)
        elif isinstance(entry, Remark):
            on_remark(entry.sentence)
        elif isinstance(entry, Rejected) and not entry.missing:
            on_remark(f"left out: {entry.id}: {entry.reason}")
    truth = {(case.sample, case.seed): case.clip.path for case in reversed(cases) if case.model == reference}
    named = any(word_starts_or_ends_with(reference, one.said_by) for one in understood.truths) if reference else True
    if not truth and not named:
        models = join_names(sorted({case.model for case in cases}), 11)
        raise UsageError(f"no clip belongs to the reference model {reference!r}; the models found are {models}")
    of_scene = {scene: path for (scene, _), path in truth.items()}
    for case in cases:
        if case.model == reference:
            continue
        path = truth.get((case.sample, case.seed)) or of_scene.get(case.sample)
        path = path or (case.reference.path if case.reference else None)
        video = case.clip.path.relative_to(root).as_posix()
        line: dict[str, Any] = {"id": case.sample, "model": case.model, "video": video}
        if case.seed:
            line["seed"] = case.seed
        if path:
            line["reference"] = path.relative_to(root).as_posix()
        if case.target:
            line["target"] = {"name": case.target.name, "box": list(case.target.box)}
        yield line
