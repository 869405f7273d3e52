"""Diagnose: the failures that one clip shows, from the records of its metrics and gates.

Every kind is asked by itself, so a clip may show several. A kind whose signs are unknown is not guessed: it is
listed as untold, with the reason. A camera that never left closes the questions of memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypedDict

from revisit.core import Record
from revisit.diagnosis.kinds import KINDS, Kind
from revisit.diagnosis.responses import confidence
from revisit.diagnosis.rules import (
    IN_VIEW,
    RuleAnswer,
    asked_to_rest,
    by_rule,
    cues_disagree,
    held_back,
    is_at_rest,
    never_left,
    nothing_asked,
)
from revisit.diagnosis.signs import KNOWN_BY, Scores, between, signs

ALL, MEMORY = frozenset(KINDS), frozenset(id for id, kind in KINDS.items() if kind.memory)
SURE_ENOUGH = 0.5  # confidence from which a kind is more likely than not
SURE = 0.75  # and from which it is a finding; below 1 - SURE it is denied, and in between it is too close to call
RETURNED = {
    "left, returned": "returned",
    "left, not returned": "left, did not return",
    "never left": "never left",
    "covered, not left": "never left",
}


@dataclass(frozen=True)
class Finding:
    """A failure that a clip shows."""

    kind: str
    title: str
    strength: float  # 0 barely, 1 as strong as the failure gets
    confidence: float  # 0.75 to 1, or 0.25 to 0.75 of a doubtful one
    frames: tuple[int, ...]  # that show it; empty where the whole clip does
    sentence: str


class DiagnosisJson(TypedDict):
    """A diagnosis as the summary of a run writes it."""

    words: str
    findings: list[dict[str, object]]  # fields of `Finding`
    doubtful: list[dict[str, object]]
    untold: dict[str, str]


@dataclass(frozen=True)
class Diagnosis:
    """What a clip shows, surest first, what could not be told, and all of it in a line."""

    findings: tuple[Finding, ...]
    doubtful: tuple[Finding, ...]  # too close to call: a change of the clip that nobody sees could turn them
    untold: dict[str, str]  # kind -> why it cannot be told
    words: str

    def as_json(self) -> DiagnosisJson:
        findings, doubtful = ([asdict(finding) for finding in some] for some in (self.findings, self.doubtful))
        return {"words": self.words, "findings": findings, "doubtful": doubtful, "untold": self.untold}


def can_diagnose(metrics: Collection[str]) -> bool:
    """Whether the questions that a diagnosis rests on were asked at all."""
    return any(metric in metrics for metric in KNOWN_BY.values())


def diagnose(records: Mapping[str, Record]) -> Diagnosis:
    """The findings of one case, from its answers by metric and gate."""
    scores = Scores(records)
    signs_by_group = signs(scores)
    rests, stays, unclear = asked_to_rest(scores), never_left(scores), cues_disagree(scores)
    ruled = by_rule(scores)
    findings: list[Finding] = []
    undecided: dict[str, str] = {}
    unknown = {group: str(scores.reason(by) or f"{by} was not asked") for group, by in KNOWN_BY.items()}
    for kind_id, kind in KINDS.items():
        answer = ruled.get(kind_id)
        if kind.memory and (rests or stays or unclear):
            if answer is None or kind_id not in IN_VIEW:
                why = "was asked to rest" if rests else "never left" if stays else "perhaps never left"
                undecided[kind_id] = f"the camera {why}, so memory was not tested"
                continue
        elif (sure := confidence(kind_id, signs_by_group)) is not None:
            strength = between(scores.of(kind.shown_by, default=kind.full[1]), *kind.full)
            fitted = RuleAnswer(sure, strength, tuple(scores.frames(kind.shown_by)))
            answer = held_back(kind_id, fitted, answer, scores)
        if answer is None:
            undecided[kind_id] = unknown[kind.needs]
        elif answer.sure > 1 - SURE:
            findings.append(_finding(kind_id, kind, answer, stays))
    findings.sort(key=lambda finding: -finding.confidence)
    sure_ones = tuple(finding for finding in findings if finding.confidence >= SURE)
    doubtful = tuple(finding for finding in findings if finding.confidence < SURE)
    return Diagnosis(sure_ones, doubtful, undecided, _words(sure_ones, doubtful, undecided, scores, stays, rests))


def is_mostly_decided(undecided: Collection[str]) -> bool:
    """Whether a clip without findings may be called sound: more than half of all kinds, and of memory's, are told."""
    return all(2 * len(kinds.intersection(undecided)) < len(kinds) for kinds in (ALL, MEMORY))


def _finding(kind_id: str, kind: Kind, answer: RuleAnswer, stays: bool) -> Finding:
    sentence = kind.says
    if stays and kind_id in ("frozen_camera", "timid_camera"):
        sentence = "the camera never left"
    return Finding(kind_id, kind.title, round(answer.strength, 3), round(answer.sure, 3), answer.frames, sentence)


def _words(
    findings: Sequence[Finding],
    doubtful: Sequence[Finding],
    undecided: dict[str, str],
    scores: Scores,
    stays: bool,
    rests: bool,
) -> str:
    """One line: whether the clip returned, each finding with its confidence, and what is more likely than not."""
    label = RETURNED.get(scores.label("view_return"), "")
    label = "asked to rest" if rests else "never left" if stays else label
    if label == "never left" and nothing_asked(scores) and is_at_rest(scores):
        label = "the camera rests"
    parts = [f"{finding.title} ({finding.confidence:.2f})" for finding in findings]
    likely = [finding for finding in doubtful if finding.confidence >= SURE_ENOUGH]
    parts += [f"perhaps {finding.title} ({finding.confidence:.2f})" for finding in likely]
    open_kinds = {*undecided, *(finding.kind for finding in doubtful)}
    if not parts and len(undecided) == len(KINDS):
        parts = ["nothing could be diagnosed"]
    elif not parts and not is_mostly_decided(open_kinds):
        remainder = ", nothing found in the others" if len(open_kinds) < len(KINDS) else ""
        parts = [f"not enough to tell: {len(open_kinds)} of {len(KINDS)} kinds could not be asked{remainder}"]
    elif not parts:
        parts = [
            "no failure found"
            + (f", {len(open_kinds)} of {len(KINDS)} kinds could not be judged" if open_kinds else "")
        ]
    return ", ".join([label, *parts] if label else parts)
