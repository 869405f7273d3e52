"""Units of work: one observer on one clip, one decode of a clip, and jobs of clips that are tied together.

Clips that are tied by a reference go to one worker, the reference first, so that its frames are decoded once and
compared with every clip that needs them. Where few references would leave workers idle, such a job is split; its
references are then decoded in each part.
"""

from __future__ import annotations

import importlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from traceback import walk_tb
from typing import Any

import msgspec
import numpy as np

from revisit.core import OBSERVERS, Clip, Observer, RevisitError
from revisit.core.registry import packages_with_registrations


class ObserverTask(msgspec.Struct, frozen=True):
    """One observer on one clip; `key` is the address of its evidence. A struct, because a plan has many."""

    key: str
    observer: str
    module: str  # imported in the worker, so that plugins are found there too
    params: Mapping[str, Any]
    inputs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    reference: str | None = None  # digest of the other clip, for observers of pairs
    file: Path | None = None  # what an importer reads, instead of frames
    # All files that are read besides the clip, with digests.
    files: Mapping[Path, str] = msgspec.field(default_factory=dict)
    shown: ObserverTask | None = None  # makes the pictures that a judge is asked about


def observer_of(task: ObserverTask) -> Observer:
    """The observer that a task names; a worker imports the module of each, and not the whole catalogue."""
    if OBSERVERS.registered(task.observer) is None:
        with suppress(ImportError):  # of a function that says another module; the catalogue may know it all the same
            importlib.import_module(task.module)
    return OBSERVERS.registered(task.observer) or OBSERVERS[task.observer]


def inputs_of(task: ObserverTask) -> tuple[Any, ...]:
    """What the case says, in the order in which the observer takes it."""
    return tuple(task.inputs[name] for name in observer_of(task).inputs)


def wanted_frame_numbers(task: ObserverTask, count: int, fps: float) -> np.ndarray:
    """Numbers of the frames that a task wants of a clip."""
    return observer_of(task).wanted_frame_numbers(count, fps, inputs_of(task), task.params)


def error_sentence(error: Exception) -> str:
    """What went wrong, in one line; of what nobody expected also its type and place."""
    text = " ".join(str(error).split())
    return text if isinstance(error, RevisitError) else f"{type(error).__name__}: {text[:300]}{_error_place(error)}"


def observer_error_sentence(task: ObserverTask, error: Exception) -> str:
    """The same of an observer, which is named where nobody expected the error."""
    text = error_sentence(error)
    return text if isinstance(error, RevisitError) else f"{task.observer} failed: {text}"


def _error_place(error: Exception) -> str:
    """` (package/file.py:12)`: the innermost line of this package, or of one that registered something."""
    place = ""
    for frame, line in walk_tb(error.__traceback__):
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in packages_with_registrations:
            folder, _, inside = frame.f_code.co_filename.replace(os.sep, "/").rpartition(f"/{package}/")
            place = f" ({f'{package}/{inside}' if folder else inside.rpartition('/')[2]}:{line})"
    return place


@dataclass(frozen=True)
class ClipTask:
    """One decode: a clip and everything that has to be observed in it."""

    digest: str
    clip: Clip
    observers: tuple[ObserverTask, ...]
    again: bool = False  # a reference that another part of the same job observes


@dataclass(frozen=True)
class ObservingJob:
    """Clips for one worker, in order: a reference comes before the clips compared with it."""

    clips: tuple[ClipTask, ...]
    references: frozenset[str]  # digests whose frames later clips of this job need

    @property
    def max_split_parts(self) -> int:
        """Into how many it can be split: a part has a clip that nothing is compared with."""
        return max(1, sum(clip.digest not in self.references for clip in self.clips))

    def split(self, parts: int, cost: Callable[[ClipTask], float]) -> list[ObservingJob]:
        """The job in so many parts of about equal cost. The first one observes the references, which all decode."""
        parts = min(parts, self.max_split_parts)
        if parts < 2:
            return [self]
        references = [clip for clip in self.clips if clip.digest in self.references]
        shares: list[list[ClipTask]] = [[] for _ in range(parts)]
        load = [sum(map(cost, references)), *[0.0] * (parts - 1)]
        others = (clip for clip in self.clips if clip.digest not in self.references)
        for clip in sorted(others, key=cost, reverse=True):
            lightest = load.index(min(load))
            shares[lightest].append(clip)
            load[lightest] += cost(clip)
        return [
            ObservingJob((*references, *shares[0]), self.references),
            *(_job_with_references(share, references) for share in shares[1:] if share),
        ]


def _job_with_references(clips: Sequence[ClipTask], references: Sequence[ClipTask]) -> ObservingJob:
    """A job of these clips, and of those that they are compared with."""
    needed = frozenset(task.reference for clip in clips for task in clip.observers if task.reference)
    decoded = (replace(clip, observers=(), again=True) for clip in references if clip.digest in needed)
    return ObservingJob((*decoded, *clips), needed)


def make_observing_jobs(
    keys: Iterable[str], tasks: Mapping[str, tuple[str, Clip, ObserverTask]], clips: Mapping[str, Clip]
) -> list[ObservingJob]:
    """Work that makes these pieces of evidence, each clip in exactly one job.

    `tasks` says how each piece is made, and of which clip; `clips` are all of them by digest, in the order of the plan.
    """
    per_clip: dict[str, list[ObserverTask]] = defaultdict(list)
    for key in dict.fromkeys(keys):
        owner, _, task = tasks[key]
        if task.shown is None:  # a judge is asked in the main process
            per_clip[owner].append(task)
    references = {task.reference for mine in per_clip.values() for task in mine if task.reference}
    for reference in references:
        per_clip.setdefault(reference, [])
    order = {owner: position for position, owner in enumerate(clips)}
    jobs = []
    for component in _group_clips_by_references(per_clip):
        members = sorted(component, key=lambda owner: (_reference_chain_length(owner, per_clip), order[owner]))
        decodes = tuple(ClipTask(owner, clips[owner], tuple(per_clip[owner])) for owner in members)
        needed = frozenset(t.reference for owner in members for t in per_clip[owner] if t.reference)
        jobs.append(ObservingJob(decodes, needed))
    return sorted(jobs, key=lambda job: min(order[clip.digest] for clip in job.clips))


def _group_clips_by_references(per_clip: Mapping[str, Sequence[ObserverTask]]) -> list[list[str]]:
    """Clips connected by references, as groups."""
    group_of = {owner: [owner] for owner in per_clip}
    for owner, tasks in per_clip.items():
        for reference in {task.reference for task in tasks if task.reference}:
            small, large = sorted((group_of[owner], group_of[reference]), key=len)
            if small is not large:
                large += small
                group_of.update(dict.fromkeys(small, large))
    return list({id(group): group for group in group_of.values()}.values())


def _reference_chain_length(
    owner: str, per_clip: Mapping[str, Sequence[ObserverTask]], above: frozenset[str] = frozenset()
) -> int:
    """Length of the chain of references below a clip: references are decoded first."""
    below = [task.reference for task in per_clip[owner] if task.reference and task.reference not in above | {owner}]
    return max((1 + _reference_chain_length(reference, per_clip, above | {owner}) for reference in below), default=0)
