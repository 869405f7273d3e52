"""Units of work: one observer on one clip, one decode of a clip, and jobs of clips that are tied together.

Clips that are tied by a reference go to one worker, the reference first, so that its frames are decoded once and
compared with every clip that needs them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from revisit.core import Clip


class ObserverTask(msgspec.Struct, frozen=True):
    """One observer on one clip; `key` is the address of its evidence. A struct, because a plan has many."""

    key: str
    observer: str
    module: str  # imported in the worker, so that plugins are found there too
    params: Mapping[str, Any]
    inputs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    reference: str | None = None  # digest of the other clip, for observers of pairs
    file: Path | None = None  # what an importer reads, instead of frames
    files: Mapping[Path, str] = msgspec.field(
        default_factory=dict
    )  # all files that are read besides the clip, with digests
    shown: ObserverTask | None = None  # makes the pictures that a judge is asked about


@dataclass(frozen=True)
class ClipTask:
    """One decode: a clip and everything that has to be observed in it."""

    digest: str
    clip: Clip
    observers: tuple[ObserverTask, ...]


@dataclass(frozen=True)
class Job:
    """Clips for one worker, in order: a reference comes before the clips compared with it."""

    clips: tuple[ClipTask, ...]
    references: frozenset[str]  # digests whose frames later clips of this job need


def jobs_of(
    keys: Iterable[str], tasks: Mapping[str, tuple[str, Clip, ObserverTask]], clips: Mapping[str, Clip]
) -> list[Job]:
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
    for component in _components(per_clip):
        members = sorted(component, key=lambda owner: (_depth(owner, per_clip), order[owner]))
        decodes = tuple(ClipTask(owner, clips[owner], tuple(per_clip[owner])) for owner in members)
        needed = frozenset(t.reference for owner in members for t in per_clip[owner] if t.reference)
        jobs.append(Job(decodes, needed))
    return sorted(jobs, key=lambda job: min(order[clip.digest] for clip in job.clips))


def _components(per_clip: Mapping[str, Sequence[ObserverTask]]) -> list[list[str]]:
    """Clips connected by references, as groups."""
    parent = {owner: owner for owner in per_clip}

    def root(owner: str) -> str:
        while parent[owner] != owner:
            parent[owner] = parent[parent[owner]]
            owner = parent[owner]
        return owner

    for owner, tasks in per_clip.items():
        for task in tasks:
            if task.reference:
                parent[root(owner)] = root(task.reference)
    groups: dict[str, list[str]] = defaultdict(list)
    for owner in per_clip:
        groups[root(owner)].append(owner)
    return list(groups.values())


def _depth(owner: str, per_clip: Mapping[str, Sequence[ObserverTask]], seen: frozenset[str] = frozenset()) -> int:
    """Length of the chain of references below a clip: references are decoded first."""
    below = [task.reference for task in per_clip[owner] if task.reference and task.reference not in seen | {owner}]
    return max((1 + _depth(reference, per_clip, seen | {owner}) for reference in below), default=0)
