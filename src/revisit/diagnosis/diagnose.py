"""Diagnose: the failures that one clip shows, from the records of its metrics and gates.

Every kind is asked by itself, so a clip may show several. A kind whose signs are unknown is not guessed: it is
listed as untold, with the reason. A camera that never left closes the questions of memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TypedDict

from revisit.core import Record
from revisit.diagnosis.kinds import KINDS, KNOWN_BY, Scores, fitted_confidence, ramp, read_signs
from revisit.diagnosis.rules import (
    IN_VIEW,
    RuleAnswer,
    camera_asked_to_rest,
    camera_is_at_rest,
    camera_never_left,
    cues_disagree,
    has_neither_reference_nor_script,
    limit_fitted_answer,
    rule_answers,
)

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
    label: str = ""  # whether the clip returned, where that is known

    @property
    def words(self) -> str:
        """One line: whether the clip returned, each finding with its confidence, and what is more likely than not."""
        parts = [f"{finding.title} ({finding.confidence:.2f})" for finding in self.findings]
        parts += [f"perhaps {finding.title} ({finding.confidence:.2f})" for finding in self.likely_findings]
        if not parts:
            parts = [self._nothing_found_text()]
        return ", ".join([self.label, *parts] if self.label else parts)

    def _nothing_found_text(self) -> str:
        """What is said of a clip that shows no failure: that it is sound, or that too little is known."""
        unknown = f"{len(self.undecided_kinds)} of {len(KINDS)} kinds"
        if len(self.untold) == len(KINDS):
            return "nothing could be diagnosed"
        if not self.is_sound:
            remainder = ", nothing found in the others" if len(self.undecided_kinds) < len(KINDS) else ""
            return f"not enough to tell: {unknown} could not be asked{remainder}"
        return "no failure found" + (f", {unknown} could not be judged" if self.undecided_kinds else "")

    @property
    def likely_findings(self) -> tuple[Finding, ...]:
        """The doubtful ones that are more likely than not."""
        return tuple(finding for finding in self.doubtful if finding.confidence >= SURE_ENOUGH)

    @property
    def undecided_kinds(self) -> frozenset[str]:
        """Kinds that nobody can affirm or deny: those that cannot be told, and those too close to call."""
        return frozenset((*self.untold, *(finding.kind for finding in self.doubtful)))

    @property
    def is_mostly_decided(self) -> bool:
        """Whether more than half of all kinds, and of memory's, are told: then a clip without findings is sound."""
        return all(2 * len(kinds & self.undecided_kinds) < len(kinds) for kinds in (ALL, MEMORY))

    @property
    def is_sound(self) -> bool:
        """Whether no failure was found, nor is likely, and enough is known to say so."""
        return not self.findings and not self.likely_findings and self.is_mostly_decided

    def as_json(self) -> DiagnosisJson:
        findings, doubtful = ([asdict(finding) for finding in some] for some in (self.findings, self.doubtful))
        return {"words": self.words, "findings": findings, "doubtful": doubtful, "untold": self.untold}


def can_diagnose(metrics: Collection[str]) -> bool:
    """Whether the questions that a diagnosis rests on were asked at all."""
    return any(metric in metrics for metric in KNOWN_BY.values())


def diagnose(records: Mapping[str, Record]) -> Diagnosis:
    """The findings of one case, from its answers by metric and gate."""
    scores = Scores(records)
    signs_by_group = read_signs(scores)
    rests, stays, unclear = camera_asked_to_rest(scores), camera_never_left(scores), cues_disagree(scores)
    ruled = rule_answers(scores)
    findings: list[Finding] = []
    undecided: dict[str, str] = {}
    unknown = {group: str(scores.unscored_reason(by) or f"{by} was not asked") for group, by in KNOWN_BY.items()}
    for kind_id, kind in KINDS.items():
        answer = ruled.get(kind_id)
        if kind.memory and (rests or stays or unclear):
            if answer is None or kind_id not in IN_VIEW:
                why = "was asked to rest" if rests else "never left" if stays else "perhaps never left"
                undecided[kind_id] = f"the camera {why}, so memory was not tested"
                continue
        elif (fit := fitted_confidence(kind_id, signs_by_group)) is not None:
            strength = ramp(scores.get(kind.shown_by, default=kind.full[1]), *kind.full)
            fitted = RuleAnswer(fit, strength, tuple(scores.named_frames(kind.shown_by)))
            answer = limit_fitted_answer(kind_id, fitted, answer, scores)
        if answer is None:
            undecided[kind_id] = unknown[kind.needs]
        elif answer.sure > 1 - SURE:
            says = "the camera never left" if stays and kind_id in ("frozen_camera", "timid_camera") else kind.says
            strength, sure = round(answer.strength, 3), round(answer.sure, 3)
            findings.append(Finding(kind_id, kind.title, strength, sure, answer.frames, says))
    findings.sort(key=lambda finding: -finding.confidence)
    sure_ones = tuple(finding for finding in findings if finding.confidence >= SURE)
    doubtful = tuple(finding for finding in findings if finding.confidence < SURE)
    return Diagnosis(sure_ones, doubtful, undecided, _return_label(scores, stays, rests))


def _return_label(scores: Scores, stays: bool, rests: bool) -> str:
    """Whether the clip returned, in a word or two; nothing where nobody knows."""
    label = "asked to rest" if rests else "never left" if stays else RETURNED.get(scores.gate_label("view_return"), "")
    if label == "never left" and has_neither_reference_nor_script(scores) and camera_is_at_rest(scores):
        return "the camera rests"
    return label
