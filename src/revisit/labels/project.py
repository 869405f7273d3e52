"""Project: a folder with everything a labelling needs: what is asked, by which rules, and which files are shown.

`project.json` is written once and holds no answers; these are in the store (labels.sqlite in the same folder, or a
PostgreSQL database). Clips stay where they are; copies are made only of those that browsers cannot play.
"""

from __future__ import annotations

import hashlib
import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from revisit.core import Case, RevisitError, UsageError
from revisit.core.cases import clip_title
from revisit.core.grouping import group_items
from revisit.core.text import convert_read_errors, parse_json
from revisit.labels.items import (
    LabelItem,
    items_of_task,
    reference_cases,
    sample_items,
    sample_least_certain,
    sample_survey_questions,
)
from revisit.labels.label import TASKS, Label
from revisit.labels.store import Store
from revisit.results.record_files import case_from_json, case_to_json, write_json
from revisit.results.run import Run
from revisit.web.media import playable_file

SCHEMA = 1
RATERS = 3  # of an item, where nobody says how many
FOLLOWS = "raters follow names"  # a fact of projects whose items go to all named raters, since nobody said how many
WRITTEN = ("settings", "runs", "facts", "guide", "secret", "cases", "digests", "shots", "files", "items")
FILE, STORE, COPIES = "project.json", "labels.sqlite", "media"


@dataclass(frozen=True)
class ProjectSettings:
    """What is asked of whom."""

    tasks: tuple[str, ...] = ("pairwise",)
    of: str = "clips"  # or "reference"
    raters: int = RATERS  # per item
    agree: int = 0  # an item is done once so many agree on all its questions; 0: never before `raters`
    sampling: str = "balanced"
    count: int | None = None
    metric: str = ""  # for sampling by uncertainty
    dimensions: tuple[str, ...] = ()
    forms: int = 1
    per_scene: int | None = None  # questions of each scene in a survey
    gold_every: int = 10  # every so manyeth item is a gold question, while there are any
    seed: int = 0


@dataclass(frozen=True)
class ShownClip:
    """A clip as it is shown: the name of its file in addresses, and its clock."""

    media: str
    fps: float
    frames: int
    width: int
    height: int


@dataclass(frozen=True)
class Project:
    """A labelling: cases, items, files, rules."""

    folder: Path
    settings: ProjectSettings
    cases: Mapping[str, Case]
    digests: Mapping[str, str]
    shots: Mapping[str, ShownClip]  # case -> how its clip is shown
    files: Mapping[str, Path]  # name in an address -> file
    items: tuple[LabelItem, ...]
    secret: str
    guide: str = ""
    runs: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def item_by_id(self) -> dict[str, LabelItem]:
        return {item.id: item for item in self.items}

    @property
    def default_store(self) -> str:
        return str(self.folder / STORE)

    def open_store(self, where: str = "") -> Store:
        """Its answers: where somebody says that they are, else beside it."""
        return Store(where or self.default_store, self.hashed_name)

    @property
    def hashed_name(self) -> str:
        """What tells this project from others, in cookies and databases; it gives nothing away."""
        return hashlib.sha256(self.secret.encode()).hexdigest()[:12]


def make_project(
    folder: Path,
    runs: Sequence[Path],
    settings: ProjectSettings,
    *,
    gold: Sequence[Label] = (),
    guide: str = "",
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
    warned: Callable[[str], None] = warnings.warn,
) -> Project:
    """A new project in an empty folder; clips that cannot be read are left out, and `warned` hears which."""
    if (folder / FILE).exists():
        raise UsageError(f"{folder} is already a project; leave out --task and the other settings to continue it")
    cases, digests, results = _cases_digests_and_results(runs, settings.of)
    shots: dict[str, ShownClip] = {}
    files: dict[str, Path] = {}
    broken: set[str] = set()
    while True:  # until all that were chosen can be read
        readable = [case for case in cases.values() if case.id not in broken]
        if not readable:
            raise UsageError("no clip of these runs can be read, so there is nothing to show")
        known = [label for label in gold if not broken & {label.case, label.other}]
        items = add_gold_answers(_sample_items_of_tasks(settings, readable, results), known, readable, settings)
        used = list(dict.fromkeys(case for item in items for case in item.cases))
        folder.mkdir(parents=True, exist_ok=True)
        for case_id in used:
            if case_id in shots:
                continue
            progress(len(shots) + len(broken) + 1, len({*used, *shots, *broken}), case_id)
            try:
                playable = playable_file(cases[case_id].clip, folder / COPIES)
            except (RevisitError, OSError) as error:
                broken.add(case_id)
                warned(f"left out: {clip_title(case_id)}: {error}")
                continue
            name, info = secrets.token_urlsafe(12), playable.info
            shots[case_id] = ShownClip(name, info.fps, info.count, info.width, info.height)
            files[name] = playable.path.resolve()
        if not broken & set(used):
            break
    project = Project(
        folder, settings, {case_id: cases[case_id] for case_id in used},
        {case_id: digests.get(case_id, "") for case_id in used}, {case_id: shots[case_id] for case_id in used}, files,
        tuple(items), secrets.token_hex(32), guide, tuple(str(run.resolve()) for run in runs),
        {"created": datetime.now(timezone.utc).isoformat(timespec="seconds")},
    )  # fmt: skip
    _write_project(project)
    return project


def open_project(folder: Path) -> Project:
    """The project of a folder."""
    path = folder / FILE
    if not path.is_file():
        raise UsageError(f"{folder}: this is not a project; `revisit annotate RUN --task ...` makes one")
    with convert_read_errors(path, "a project of labels"):
        content = parse_json(path.read_text(encoding="utf-8"))
        if content.get("schema") != SCHEMA:
            raise UsageError(f"{path}: schema {content.get('schema')!r}; this Revisit reads {SCHEMA}")
        settings = msgspec.convert(content["settings"], ProjectSettings)
        cases = {entry["id"]: case_from_json(entry) for entry in content["cases"]}
        shots = msgspec.convert(content["shots"], dict[str, ShownClip])
        files = {name: Path(file) for name, file in content["files"].items()}
        items = msgspec.convert(content["items"], tuple[LabelItem, ...])
        texts = content["secret"], content["guide"], tuple(content["runs"]), content["facts"]
        return Project(folder, settings, cases, content["digests"], shots, files, items, *texts)


def set_rater_count(project: Project, raters: int, *, follows: bool) -> Project:
    """The project with so many raters for each item, also on disk; `follows`: as many as are named from now on."""
    others = {name: fact for name, fact in project.facts.items() if name != FOLLOWS}
    facts = others | ({FOLLOWS: "yes"} if follows else {})
    changed = replace(project, settings=replace(project.settings, raters=raters), facts=facts)
    if changed != project:
        _write_project(changed)
    return changed


def _write_project(project: Project) -> None:
    plain = {**vars(project), "cases": [case_to_json(case) for case in project.cases.values()]}
    content = {name: msgspec.to_builtins(plain[name], enc_hook=str) for name in WRITTEN}
    path = project.folder / FILE
    write_json(path, {"schema": SCHEMA, **content})
    path.chmod(0o600)  # it holds the key that forms are signed with


def _cases_digests_and_results(
    runs: Sequence[Path], clips_or_reference: str
) -> tuple[dict[str, Case], dict[str, str], list[Any]]:
    cases: dict[str, Case] = {}
    digests: dict[str, str] = {}
    results = []
    for path in runs:
        run = Run(path)
        plan = run.plan
        results.append(run.results)
        run_cases = [case_from_json(entry) for entry in plan["cases"] if not entry.get("truth")]
        digests_of_run = {entry["id"]: entry.get("digest") or "" for entry in plan["cases"]}
        if clips_or_reference == "reference":
            referring = [entry for entry in plan["cases"] if entry.get("reference")]
            truth = {entry["reference"]["path"]: entry.get("reference_digest") or "" for entry in referring}
            run_cases = reference_cases(run_cases)
            digests_of_run = {case.id: truth.get(str(case.clip.path), "") for case in run_cases}
        for case in run_cases:
            if case.id in cases and digests_of_run[case.id] != digests[case.id]:
                which = f"{case.id} is a different clip in {path} than in another run"
                raise UsageError(f"{which}; give the models of several runs different names")
            cases[case.id], digests[case.id] = case, digests_of_run[case.id]
    if not cases:
        raise UsageError("these runs have no clip that could be shown")
    return cases, digests, results


def _sample_items_of_tasks(settings: ProjectSettings, cases: Sequence[Case], results: Sequence[Any]) -> list[LabelItem]:
    items_of_tasks: list[LabelItem] = []
    for task in settings.tasks:
        forms = 1 if settings.per_scene else settings.forms
        items = items_of_task(task, cases, forms=forms, dimensions=settings.dimensions)
        if task == "answer" and settings.per_scene:
            items_of_tasks += sample_survey_questions(items, settings.per_scene, settings.forms, settings.seed)
        elif settings.sampling == "uncertain":
            gates = list(dict.fromkeys(gate for one in results for gate in one.gates))
            items_of_tasks += sample_least_certain(items, results, settings.metric, settings.count, gates)
        else:
            items_of_tasks += sample_items(items, settings.sampling, settings.count, settings.seed)
    return items_of_tasks


def add_gold_answers(
    items: Sequence[LabelItem], gold: Sequence[Label], cases: Sequence[Case], settings: ProjectSettings
) -> list[LabelItem]:
    """The items with the answers that are known; known ones that were not drawn are added."""
    usable = (label for label in gold if label.task in TASKS)
    gold_by_clips = group_items(usable, lambda label: (label.task, tuple(c for c in (label.case, label.other) if c)))
    items_with_gold, matched = [], set()
    every = list(items)
    for task in {task for task, _ in gold_by_clips}:
        have = {(item.cases, item.form) for item in every if item.task == task}
        candidates = items_of_task(task, cases, forms=settings.forms, dimensions=settings.dimensions)
        with_gold = [item for item in candidates if (task, item.cases) in gold_by_clips]
        every += [item for item in with_gold if (item.cases, item.form) not in have]
    for item in every:
        ids = {question.id for question in item.questions}
        labels = [label for label in gold_by_clips.get((item.task, item.cases), ()) if label.question in ids]
        if labels:
            matched |= {id(label) for label in labels}
            note = " ".join(dict.fromkeys(label.comment for label in labels if label.comment))
            item = replace(
                item, gold={label.question: label.right or label.answer for label in labels},
                example=any(label.example for label in labels), note=note,
            )  # fmt: skip
        items_with_gold.append(item)
    for label in gold:
        if id(label) not in matched:
            what = f"{label.case} ({label.task}, {label.question})"
            raise UsageError(f"the gold label of {what} fits no clip of these runs")
    return items_with_gold
