"""Golden: small rendered clips with stored scores, replayed through the whole path to see how far a machine is off.

clips/        a room as it is, and as two models remember it, with a manifest (made by release/golden.py)
scores.json   by clip and question: the score, or why there is none, and the protocol under which it was made
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from revisit.audit.cards import NOT_COMPARED, score_tolerance
from revisit.core import KINDS, METRICS
from revisit.engine.cache import EvidenceCache
from revisit.engine.request import Request

SCORES = Path(__file__).with_name("scores.json")


Answers = dict[str, dict[str, dict[str, Any]]]  # clip -> question -> its answer, and the protocol it was made under


@dataclass(frozen=True)
class ScoreSpread:
    """How far the scores of one metric or gate are from the stored ones."""

    question: str
    clips: int  # compared
    largest: float  # difference; of answers in words 0 or infinity
    tolerance: float
    changed: int = 0  # clips whose answers are of another version than the stored ones, and cannot be compared

    @property
    def is_within_tolerance(self) -> bool:
        return self.largest <= self.tolerance


def rescore_and_compare_golden_clips(workers: int | None = None) -> list[ScoreSpread]:
    """Score the golden clips here, from their bytes on, and compare with what is stored."""
    return compare_answers(json.loads(SCORES.read_text(encoding="utf-8"))["answers"], score_golden_clips(workers))


def score_golden_clips(workers: int | None = None) -> Answers:
    """What the golden clips get on this machine, from their bytes on: evidence of earlier runs is not used."""
    with tempfile.TemporaryDirectory() as temporary, as_file(files(__package__) / "clips") as clips:
        source, cache = Path(temporary) / "golden", EvidenceCache(Path(temporary) / "cache")
        shutil.copytree(clips, source)
        run = Request.from_options(source).run(
            Path(temporary) / "run", workers=workers, cache=cache, command="revisit verify"
        )
        results = run.results
        answers_by_clip: Answers = {}
        for case in (*results.cases, *results.truths):
            for question, record in results.of(case).items():
                if record.reason is not None and KINDS[record.reason.kind].lacking:
                    continue  # cannot be asked of these clips, or not with this set
                why = record.label or (record.reason.kind if record.reason else record.status)
                clip_name = "truth" if case.truth else case.model
                answers_by_clip.setdefault(clip_name, {})[question] = {
                    "answer": record.value if record.scored else why,
                    "protocol": record.protocol,
                }
    return answers_by_clip


def compare_answers(stored: Answers, local: Answers) -> list[ScoreSpread]:
    """One spread for each question that was stored or is asked here, but those whose cards promise nothing."""
    questions = dict.fromkeys(question for by_clip in (stored, local) for clip in by_clip.values() for question in clip)
    return [
        _question_spread(question, stored, local)
        for question in questions
        if question not in NOT_COMPARED and not (question in METRICS and score_tolerance(question) is None)
    ]


def _question_spread(question: str, stored: Answers, local: Answers) -> ScoreSpread:
    pairs = [(stored.get(clip, {}).get(question), local.get(clip, {}).get(question)) for clip in {**stored, **local}]
    comparable = [
        (old["answer"], new["answer"]) for old, new in pairs if old and new and old["protocol"] == new["protocol"]
    ]
    allowed = (score_tolerance(question) if question in METRICS else None) or 0.0
    largest = max((_answer_difference(old, new) for old, new in comparable), default=0.0)
    return ScoreSpread(question, len(comparable), largest, allowed, changed=sum(map(any, pairs)) - len(comparable))


def _answer_difference(old: float | str | None, new: float | str | None) -> float:
    if isinstance(old, int | float) and isinstance(new, int | float):
        return abs(old - new)
    return 0.0 if old == new else float("inf")
