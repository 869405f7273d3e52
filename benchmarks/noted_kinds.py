"""Diagnoses of real clips against what people noted of them, kind by kind.

A file of notes has an object per clip with three lists of kinds of failure: `first`, any of which is the first thing
noted; `shown`, all that was noted; `open`, what is arguable or was not noted either way. Any other kind that is found
is contradicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from revisit.core.text import parse_json
from revisit.diagnosis.diagnose import Diagnosis
from revisit.diagnosis.kinds import KINDS
from revisit.stats.intervals import wilson_interval


class NotedKinds(NamedTuple):
    """What people noted of a clip."""

    first: tuple[str, ...]
    shown: tuple[str, ...]
    open: tuple[str, ...]


class KindAgreement(NamedTuple):
    """How diagnoses agree with notes."""

    clips: int
    findings: int
    contradicted: list[tuple[str, str]]  # clip and kind
    contradicted_interval: tuple[float, float]
    first: int  # clips with a first thing noted
    first_missed: list[str]  # those of them in which it was neither found nor listed as doubtful
    decided: float  # share of all kinds that were found, denied or are doubtful
    clear: float  # share of all kinds that were found or denied


def read_noted_kinds(path: Path) -> dict[str, NotedKinds]:
    """The notes of a file, by clip; keys that begin with a line are remarks."""
    rows = parse_json(path.read_text(encoding="utf-8"))
    return {
        clip: NotedKinds(*(tuple(row[name]) for name in NotedKinds._fields))
        for clip, row in rows.items()
        if not clip.startswith("_")
    }


def compare(diagnoses: Mapping[str, Diagnosis], notes: Mapping[str, NotedKinds]) -> KindAgreement:
    """Diagnoses against notes, over the clips that have both."""
    findings, contradicted, with_first, missed, undecided, doubtful = 0, [], 0, [], 0, 0
    clips = [clip for clip in notes if clip in diagnoses]
    for clip in clips:
        note, diagnosis = notes[clip], diagnoses[clip]
        kinds = [finding.kind for finding in diagnosis.findings]
        perhaps = [finding.kind for finding in diagnosis.doubtful]
        findings += len(kinds)
        contradicted += [(clip, kind) for kind in kinds if kind not in (*note.shown, *note.open)]
        if note.first:
            with_first += 1
            missed += [] if {*kinds, *perhaps} & set(note.first) else [clip]
        undecided += len(diagnosis.untold)
        doubtful += len(perhaps)
    asked = max(len(clips) * len(KINDS), 1)
    low, high = wilson_interval(len(contradicted), findings) or (0.0, 1.0)
    return KindAgreement(
        len(clips), findings, contradicted, (round(low, 3), round(high, 3)), with_first, missed,
        round(1 - undecided / asked, 3), round(1 - (undecided + doubtful) / asked, 3),
    )  # fmt: skip
