"""Cases from a folder of videos or from a JSONL manifest.

`import scan` writes a manifest of the videos in a folder by the same reading, to be edited by hand afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from revisit.core import Case, Clip, Rejected, Remark, Target, UsageError
from revisit.core.cases import case_id
from revisit.core.text import count_and_noun, join_names
from revisit.datasets.clips import (
    MANIFEST,
    find_target,
    is_frame_folder,
    read_manifest,
    read_target_boxes,
    unread_files,
)
from revisit.datasets.folder.clip_paths import (
    ClipPath,
    TruthPath,
    find_clip_paths,
    find_training_step_numbers,
    read_truth_folder,
    separate_truth_clips,
    word_starts_or_ends_with,
)
from revisit.datasets.folder.layout import LayoutReading, possible_readings
from revisit.datasets.folder.pairing import pair_clips_with_truth
from revisit.datasets.folder.path_patterns import ClipFacts, infer_layout, merge_seed_into_scene, parse_layout_pattern
from revisit.datasets.folder.path_words import is_generic_word, may_be_truth_word
from revisit.datasets.folder.samples import SampleReading, find_grid_numbers_as_seeds, find_samples_as_seeds
from revisit.media import CLIP_SUFFIXES

TARGETS = "targets.json"
FolderEntry = Case | Rejected | Remark


def read(
    source: Path, roots: Sequence[Path] = (), layout: str = "", reference: str = "", questions: str = ""
) -> Iterator[Case | Rejected | Remark]:
    """Cases of a manifest file, of a folder with a manifest.jsonl, or of a plain folder, with remarks on the latter.

    `layout` says which part of a path is what, instead of the reader's own guess; `reference` is a folder with the
    true videos, by the names of the scenes; `questions` are for a judge, and change no case.
    """
    if not source.exists():
        raise UsageError(f"{source}: no such file or folder")
    manifest = source / MANIFEST if source.is_dir() else source
    is_clip = source.is_file() and source.suffix.lower() in CLIP_SUFFIXES
    if is_clip or (not manifest.is_file() and is_frame_folder(source)):
        name = source.resolve().name if source.is_dir() else source.stem
        only: list[FolderEntry] = [_make_folder_case(ClipFacts(source.resolve().parent.name, name), source)]
        yield from _add_references_by_name(only, Path(reference), any_name=True) if reference else only
    elif manifest.is_file():
        if layout:
            raise UsageError(f"{manifest} says what each clip is; leave --layout out, or move the manifest away")
        if source.is_dir():
            yield Remark(f"read from {MANIFEST}; clips that it does not name are left out")
        entries = read_manifest(manifest, roots)
        yield from _add_references_by_name(list(entries), Path(reference)) if reference else entries
    else:
        yield from cases_of_folder(source, understand_layout(source, layout, reference))


@dataclass(frozen=True)
class FolderReading:
    """How a folder is read: the clips with their readings, and what is the truth of what."""

    clips: tuple[ClipPath, ...]
    readings: tuple[LayoutReading, ...]  # the one that is taken, then others that fit
    truths: tuple[TruthPath, ...]
    reference: str = ""  # the folder of truth that the user named
    unfitting: tuple[str, ...] = ()  # clips that the user's layout does not fit
    samples: SampleReading | None = None  # clips that were read as samples of one scene

    @property
    def summary_sentences(self) -> list[str]:
        """What was understood, in three lines at most."""
        reading = self.readings[0]
        used = {truth.path for truth in reading.truth.values()}
        left = [truth for truth in self.truths if truth.path not in used]
        warnings = [_unpaired_truth_sentence(left, reading)] if left else []
        if self.unfitting:
            count = count_and_noun(len(self.unfitting), "clip")
            warnings.append(f"{count} left out, which the layout does not fit: {join_names(self.unfitting)}")
        if self.samples is not None:
            warnings.append(self._samples_sentence(self.samples))
        real = [model for model in reading.model_names if may_be_truth_word(model)]
        others = [model for model in reading.model_names if model not in real]
        if real and others and not self.truths and all(map(is_generic_word, others)):  # real beside fake or pred
            warnings.append(f"if {real[0]} is the truth, rename it to gt: as it is, it is ranked as a model")
        steps = find_training_step_numbers(self.clips)
        if steps and {model.rpartition("-")[2] for model in reading.model_names} <= {*steps}:
            warnings.append(f"folders called {join_names(steps)} are read as steps of a training")
        if len(self.readings) > 1:
            warnings.append(self._other_readings_sentence())
        sentences = [self._counts_sentence(reading), self._example_sentence(reading), "; ".join(warnings)]
        return list(filter(None, sentences))

    def _counts_sentence(self, reading: LayoutReading) -> str:
        facts = [reading.size_text]
        if reading.truth:
            with_truth = {reading.facts[path].scene for path in reading.truth}
            share = "" if len(with_truth) == len(reading.scene_names) else f" for {len(with_truth)} of them"
            facts.append(f"truth from {self._truth_place_name(reading)}{share}")
        if (seeds := {one.seed for one in reading.facts.values()}) != {0}:
            facts.append(f"{count_and_noun(len(seeds), 'seed')} from names")
        if missing := reading.missing_clips:
            names = [f"{one.scene}{f' (seed {one.seed})' if seeds != {0} else ''} of {one.model}" for one in missing]
            facts.append(f"{len(missing)} of {len(reading.facts) + len(missing)} clips missing: {join_names(names)}")
        return ", ".join(facts)

    def _example_sentence(self, reading: LayoutReading) -> str:
        clip = self.clips[0]
        facts = reading.facts[clip.path]
        seed = f", seed {facts.seed}" if any(one.seed for one in reading.facts.values()) else ""
        layout = f"read as {reading.layout}" if reading.layout else "read by names"
        return f"{layout}; for example {clip.name} is model {facts.model}, scene {facts.scene}{seed}"

    def _truth_place_name(self, reading: LayoutReading) -> str:
        if self.reference:
            return f"{Path(self.reference).name}/"
        used = next(iter(reading.truth.values()))
        return f"{used.said_by}/" if used.in_folder else used.path.name.replace(used.scene[-1], "*", 1)

    def _samples_sentence(self, samples: SampleReading) -> str:
        layout = merge_seed_into_scene(self.readings[0].layout)
        way = f"--layout '{layout}' reads" if layout else "a manifest (`revisit import scan`) can name"
        if re.match(r"[^{}/]*\{seed\}/", self.readings[0].layout):  # run1/kitchen.mp4
            way = f"--layout '{{model}}/{{scene}}.mp4' takes folders for models, {way}"
        unlike = f"; {join_names(samples.unlike)} begin otherwise, and are samples by their names"
        return (
            f"{join_names(samples.example)} differ only in a number and begin with the same picture: they are samples "
            f"of one scene, and intervals resample scenes; {way} each as a scene of its own"
        ) + (unlike if samples.unlike else "")

    def _other_readings_sentence(self) -> str:
        first, *others = self.readings
        ways = [f"{one.size_text} with --layout '{one.layout}'" if one.layout else one.size_text for one in others]
        this = f"--layout '{first.layout}'" if first.layout else "a manifest (`revisit import scan`)"
        return f"other readings fit as well: {'; or '.join(ways)}; {this} keeps this one"


def _unpaired_truth_sentence(truths: Sequence[TruthPath], reading: LayoutReading) -> str:
    names = _first_scene_names(truths)
    if reading.truth:
        return f"no model has a clip of {count_and_noun(len(truths), 'scene')} of the truth: {names}"
    return (
        f"{truths[0].said_by} says that it is the truth, but no name in it ({names}) goes with a clip "
        f"({join_names(reading.scene_names)}): nothing is compared with it; give both the same "
        f"names, or say with --layout which part of a name is the scene"
    )


def _first_scene_names(truths: Sequence[TruthPath]) -> str:
    return join_names(["/".join(one.scene) for one in truths])


def understand_layout(source: Path, layout: str = "", reference: str = "") -> FolderReading:
    """How the clips of a folder are read, by the user's layout or by what repeats in their paths."""
    place = Path(reference).resolve() if reference else None
    clips = find_clip_paths(source, outside=place if place and place != source.resolve() else None)
    if not clips:
        return FolderReading((), (LayoutReading({}, ""),), ())
    elsewhere = read_truth_folder(place) if place else []
    others, inside = separate_truth_clips(clips, source.resolve().name)
    named = sorted({one.said_by for one in inside if one.in_folder})
    if len(named) > 1 and not place:
        choose = f"choose one with --reference {source / named[0]}"
        raise UsageError(f"{' and '.join(named)} both say that they are the truth; {choose}")
    root = source.resolve().name
    truths = elsewhere or inside
    if layout:
        return _read_with_user_layout(others, truths, root, layout, reference)
    scenes = {scene for one in truths for scene in one.scene}
    samples = find_samples_as_seeds(others, scenes, root)
    grid = find_grid_numbers_as_seeds(others, scenes, root, samples if samples and samples.begin_alike else None)
    if grid is not None and grid.begin_alike:
        samples, grid = grid, None
    elif samples is not None and not samples.begin_alike:  # only names say so
        samples, grid = None, samples
    others = others if samples is None else samples.clips
    layouts = tuple(possible_readings(others, truths, root))
    if grid is not None:
        layouts = (*layouts, *possible_readings(grid.clips, truths, root)[:1])
    if samples is None and layouts[0].truth:
        reading, samples = _merge_samples_of_truth(others, layouts[0], root)
        layouts = (reading, *layouts[1:])
    if place and not layouts[0].truth:
        raise UsageError(
            f"no clip of {source} has the name of a true video in {reference}: the truth has "
            f"{_first_scene_names(truths)}, the clips are {join_names([one.name for one in others])}; "
            "--layout says which part of a path is the scene, such as '{model}/{scene}.mp4'"
        )
    return FolderReading(tuple(others), layouts, tuple(truths), reference, samples=samples)


def _merge_samples_of_truth(
    clips: Sequence[ClipPath], reading: LayoutReading, root: str
) -> tuple[LayoutReading, SampleReading | None]:
    """The reading with samples of one scene as its seeds, where each has a true video that begins with one picture."""
    truths = {one.path: ClipPath(one.path, "/".join(one.scene), one.scene) for one in reading.truth.values()}
    samples = find_samples_as_seeds(list(truths.values()), set(), root)
    if samples is None or not samples.begin_alike or any(one.seed for one in reading.facts.values()):
        return reading, None
    scenes = {one.path: one for one in samples.clips if one.words != truths[one.path].words}
    facts = {}
    for path, one in reading.facts.items():
        truth = reading.truth.get(path)
        scene = scenes.get(truth.path) if truth else None
        facts[path] = one if scene is None else ClipFacts(one.model, "/".join(scene.words), scene.seed)
    layout = infer_layout([clip.name for clip in clips], [facts[clip.path] for clip in clips], root)
    return LayoutReading(facts, layout, reading.truth), samples


def _read_with_user_layout(
    clips: Sequence[ClipPath], truths: Sequence[TruthPath], root: str, layout: str, reference: str
) -> FolderReading:
    match_path = parse_layout_pattern(layout)
    facts = {clip: one for clip in clips if (one := match_path(clip.name)) is not None}
    unfitting = tuple(clip.name for clip in clips if clip not in facts)
    if not facts:
        raise UsageError(f"no clip fits --layout {layout!r}; they are named {join_names(unfitting)}")
    facts_by_path = {clip.path: one._replace(model=one.model or root) for clip, one in facts.items()}
    by_scene = {"/".join(one.scene): one for one in truths}
    truth_by_clip = {path: by_scene[one.scene] for path, one in facts_by_path.items() if one.scene in by_scene}
    unmatched = [clip for clip in facts if clip.path not in truth_by_clip]
    truth_by_clip.update(pair_clips_with_truth(unmatched, truths, root)[1])
    reading = LayoutReading(facts_by_path, layout, truth_by_clip)
    return FolderReading(tuple(facts), (reading,), tuple(truths), reference, unfitting)


def cases_of_folder(
    source: Path, understood: FolderReading, targets: Mapping[str, Target] | None = None
) -> Iterator[Case | Rejected | Remark]:
    """Clips of a folder, with the truth and the targets that lie there; `targets` take the place of the latter."""
    if understood.clips:
        for sentence in understood.summary_sentences:
            yield Remark(sentence)
    homes = {clip.path.parent for clip in understood.clips}
    clip_folder = homes.pop() if len(homes) == 1 else source
    target_folder = source if targets is not None or (source / TARGETS).is_file() else clip_folder
    if targets is None and (target_folder / TARGETS).is_file():
        try:
            targets = read_target_boxes(target_folder / TARGETS)
            yield Remark(f"targets were read from {(target_folder / TARGETS).relative_to(source)}")
        except UsageError as error:
            yield Remark(f"clips have no targets: {error}")
    reading = understood.readings[0]
    for clip in understood.clips:
        facts, truth = reading.facts[clip.path], reading.truth.get(clip.path)
        names = (clip.path.relative_to(target_folder).with_suffix("").as_posix(), clip.path.stem, facts.scene)
        try:
            target = find_target(targets or {}, names)
        except UsageError as error:
            yield Rejected(case_id(facts.scene, facts.model, facts.seed), f"{TARGETS}: {error}", facts.model)
            continue
        yield _make_folder_case(facts, clip.path, truth.path if truth else None, target)
    for missing in reading.missing_clips:
        why = f"{missing.model} has no clip of {missing.scene}, which others have"
        yield Rejected(case_id(missing.scene, missing.model, missing.seed), why, missing.model, missing=True)
    renamed = [clip.name for clip in understood.clips if clip.keeps_ending]
    if renamed:
        yield Remark(f"clips that differ only in their endings keep them in their names: {join_names(renamed, 6)}")
    yield from unread_files(source)


def _add_references_by_name(
    entries: Sequence[FolderEntry], folder: Path, *, any_name: bool = False
) -> Iterator[FolderEntry]:
    """The entries with the truth of a folder for those that name none: by name or, with `any_name`, the only one."""
    cases = [entry for entry in entries if isinstance(entry, Case) and entry.reference is None]
    truths = read_truth_folder(folder)
    references: dict[str, Clip] = {}
    for case in cases:
        for name in (case.sample, case.clip_name or case.sample):
            clip = ClipPath(case.clip.path, case.id, (name,))
            for truth in pair_clips_with_truth([clip], truths, "")[1].values():
                references[case.id] = Clip(truth.path, case.clip.fps)
    if any_name and len(cases) == len(truths) == 1:
        references.setdefault(cases[0].id, Clip(truths[0].path, cases[0].clip.fps))
    yield from entries_with_references(entries, cases, references, ["/".join(one.scene) for one in truths], folder)


def entries_with_references(
    entries: Sequence[FolderEntry],
    cases: Sequence[Case],
    references: Mapping[str, Clip],
    reference_names: list[str],
    place: Path,
) -> Iterator[FolderEntry]:
    """The entries with references by the ids of cases, at least one; `reference_names` are those there."""
    if cases and not references:
        raise UsageError(
            f"no clip ({join_names([case.sample for case in cases])}) has the name of one in {place} "
            f"({join_names(reference_names)})"
        )
    yield Remark(f"{place.name} has references of {len(references)} of {count_and_noun(len(cases), 'clip')}")
    for entry in entries:
        if isinstance(entry, Case) and entry.id in references:
            entry = replace(entry, reference=references[entry.id])
        yield entry


def _make_folder_case(
    facts: ClipFacts, path: Path, reference: Path | None = None, target: Target | None = None
) -> Case:
    truth = Clip(reference) if reference is not None else None
    return Case(
        id=case_id(facts.scene, facts.model, facts.seed), suite="folder", model=facts.model, sample=facts.scene,
        clip=Clip(path), reference=truth, seed=facts.seed, target=target,
    )  # fmt: skip


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
