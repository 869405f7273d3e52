"""Cases from deliveries: <domain>/<view>/<model>/<image>_<action>.mp4, beside the inputs they answer.

Every case of the inputs is expected once per model and split that the model has clips of. What nobody made is missing,
and what nobody asked for is refused with a sentence. Both views of a picture's number share their actions, so a scene
is a domain and a number: fifty in all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from revisit.core import Case, Clip, Rejected, Remark, UsageError
from revisit.datasets.clips import first_file, require_option_folder, video_files, visible_folders
from revisit.media.text_files import read_json_object
from revisit.suites.worldmark.arena import (
    DOMAINS,
    FOLDER,
    VIEWS,
    ArenaCase,
    find_arena_folder,
    read_action_keys,
    read_arena_cases,
    require_arena_folder,
)

NAME = re.compile(r"(\d{3})_(\d{3})")


@dataclass(frozen=True)
class Delivered:
    """The clips of one model for one split."""

    view: str
    domain: str
    model: str
    clips: list[Path]  # in natural order


def is_worldmark_delivery(source: Path) -> bool:
    """Whether this is a folder of deliveries, or one of them in its place."""
    deliveries = _find_deliveries(source, "") if source.is_dir() else []
    return any(NAME.fullmatch(path.stem) for delivered in deliveries for path in delivered.clips[:3])


def read(
    source: Path,
    roots: Sequence[Path] = (),
    *,
    arena: str | None = None,
    split: str | None = None,
    flow: str | None = None,
    geometry: str | None = None,
    ratings: str | None = None,
    step: str | None = None,
) -> Iterator[Case | Rejected | Remark]:
    """Cases of all models, and what is missing or was not asked for; `step` is for `settings`."""
    deliveries = _find_deliveries(source, split or "") if source.is_dir() else []
    if not deliveries:
        raise UsageError(
            f"{source}: no deliveries found; expected {{{','.join(DOMAINS)}}}/{{{','.join(VIEWS)}}}/<model>/000_001.mp4"
            " in it, or a folder of a model with --option split=first/real"
        )
    place = find_arena_folder(source) if arena is None else require_arena_folder(Path(arena).expanduser())
    if place is None:
        yield Remark(
            f"no inputs ({FOLDER}) were found beside the clips, so nobody knows which clips are missing and what lens "
            "they have; give --option arena=DIR"
        )
    questions = list(read_arena_cases(place)) if place is not None else []
    folders = {name: require_option_folder(name, value) for name, value in
               (("flow", flow), ("geometry", geometry), ("ratings", ratings)) if value}  # fmt: skip
    for delivered in deliveries:
        split_key = delivered.view, delivered.domain
        expected = {one.name: one for one in questions if (one.view, one.domain) == split_key}
        yield from _delivery_cases(delivered, expected, place, folders)


def _delivery_cases(
    delivered: Delivered, expected: dict[str, ArenaCase], arena: Path | None, folders: Mapping[str, Path]
) -> Iterator[Case | Rejected]:
    """The clips of one delivery, and those that it lacks."""
    actions, complete = read_action_keys(arena), arena is not None
    subset, model = f"{delivered.view}/{delivered.domain}", delivered.model
    there: dict[str, Path] = {}
    for path in delivered.clips:
        match, name = NAME.fullmatch(path.stem), path.stem
        problem = ""
        if match is None:
            problem = f"{path.name}: a clip is called by its picture and its action, such as 003_006.mp4"
        elif name in there:
            problem = f"{path.name}: there is {there[name].name} as well; keep one of the two"
        elif complete and name not in expected:
            problem = f"{path.name}: the inputs do not ask for this picture and action in {subset}"
        elif not complete and int(match[2]) not in actions:
            problem = f"{path.name}: there is no action {int(match[2])}"
        if problem:
            yield Rejected(f"{subset}/{path.name}@{model}", problem, model, subset)
        else:
            there[name] = path
            if not complete:
                image, action = int(name[:3]), int(name[4:])
                expected[name] = ArenaCase(delivered.view, delivered.domain, image, action, actions[action])
    for name, question in expected.items():
        if name in there:
            yield _case_of_clip(question, model, there[name], folders)
        else:
            reason = f"missing: there is no {name}.mp4"
            yield Rejected(f"{question.id}@{model}", reason, model, subset, question.keys, missing=True)


def _case_of_clip(arena_case: ArenaCase, model: str, path: Path, folders: Mapping[str, Path]) -> Case:
    files = {name: _find_artifact(folder, model, arena_case.name) for name, folder in folders.items()}
    focal = {} if arena_case.focal is None else {"focal": arena_case.focal}
    return Case(
        id=f"{arena_case.id}@{model}",
        suite="worldmark",
        model=model,
        sample=f"{arena_case.domain}/{arena_case.image:03d}",
        clip=Clip(path),
        subset=f"{arena_case.view}/{arena_case.domain}",
        condition=arena_case.keys,
        prompt=arena_case.prompt,
        annotations={"name": arena_case.name, "action": arena_case.action, **focal},
        artifacts={name: file for name, file in files.items() if file is not None},
    )


def _find_artifact(folder: Path, model: str, name: str) -> Path | None:
    """The file of a clip: <model>__<name>.npz, <model>/<name>.npz, or the result file that has an entry of it."""
    own = first_file((folder / f"{model}__{name}.npz", folder / model / f"{name}.npz"))
    return own or _result_files_by_clip(folder).get(f"{model}__{name}")


@lru_cache(maxsize=4)
def _result_files_by_clip(folder: Path) -> Mapping[str, Path]:
    """The clips of which result files of the public evaluator tell, each with its file."""
    expected = '{"<model>__<image>_<action>": {...}}'
    return {name: file for file in sorted(folder.glob("*.json")) for name in read_json_object(file, expected)}


def _find_deliveries(source: Path, split: str) -> list[Delivered]:
    """The deliveries in a folder; one that stands in its place is known by the names of the folders above it."""
    if split:
        view, _, domain = split.partition("/")
        if view not in VIEWS or domain not in DOMAINS:
            raise UsageError(f"--option split={split}: a split is first/real, first/style, third/real or third/style")
        return _model_deliveries(source, view, domain)
    deliveries = [
        one for domain in DOMAINS for view in VIEWS if (source / domain / view).is_dir()
        for one in _model_deliveries(source / domain / view, view, domain)
    ]  # fmt: skip
    above = source.resolve().parts
    for domain, view in (above[-2:], above[-3:-1]) if len(above) > 2 else ():
        if not deliveries and view in VIEWS and domain in DOMAINS:
            deliveries = _model_deliveries(source, view, domain)
    return deliveries


def _model_deliveries(folder: Path, view: str, domain: str) -> list[Delivered]:
    """The folders of models in a folder, or the folder itself where it holds clips."""
    if clips := video_files(folder):
        return [Delivered(view, domain, folder.resolve().name, clips)]
    inside = {path.name: video_files(path) for path in visible_folders(folder)}
    return [Delivered(view, domain, model, clips) for model, clips in inside.items() if clips]
