"""Real clips: gates, metrics and the diagnosis against what people saw (`revisit audit --real`).

Every verdict is right, wrong or undecided; "cannot tell" is never wrong. Counted by clips and by scenes, since clips of
one scene fail together: a scene is wrong if any of its clips is. Beside it, what always saying "never hidden" gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from revisit.audit.labelled import UNSURE, VERDICTS, Labelled, read_labelled_clips
from revisit.audit.schema import AuditOptions, Content
from revisit.audit.steadiness import (
    DIAGNOSIS,
    count_flips,
    evaluate_clips,
    unread_and_failed,
    verdicts_by_question,
)
from revisit.core import Case, Clip, Target
from revisit.core.grouping import group_items
from revisit.results import Results
from revisit.results.record_files import write_json
from revisit.stats.intervals import wilson_interval

TARGET, VIEW = "target_return", "view_return"
NEVER, RETURNED, AWAY = VERDICTS
CLOSE = 0.3  # seconds: frames of leaving and returning that far from people's count as found
RIGHT, WRONG, UNDECIDED = "right", "wrong", "undecided"


def audit_real_clips(
    folders: Sequence[Path],
    out: Path,
    *,
    with_flips: bool = False,
    options: AuditOptions = AuditOptions(),
) -> Content:
    """Evaluate the clips of labelled folders; return the content of real.json.

    Asked are the gates and metrics of the options, by default all that the diagnosis reads.
    """
    clips = read_labelled_clips(folders)
    cases = [
        Case(
            clip.name,
            "folder",
            "labelled",
            clip.scene,
            Clip(clip.clip),
            reference=None if clip.reference is None else Clip(clip.reference),
            target=None if clip.box is None else Target(clip.target, clip.box),
        )
        for clip in clips
    ]
    plan, run = evaluate_clips(cases, folders[0], out, options, questions=options.metrics, disturbed=with_flips)
    results = run.results.only(lambda entry: isinstance(entry, Case) and not entry.annotations.get("disturbed"))
    content = {
        "set": plan.observers.id,
        "folders": [str(folder) for folder in folders],
        **compare_with_labels(clips, results),
        **unread_and_failed(plan, run.results),
    }
    if with_flips:
        content["flips"] = count_flips(run.results)
    write_json(out / "real.json", content)
    return content


def compare_with_labels(clips: Sequence[Labelled], results: Results) -> Content:
    """Gates, metrics and diagnosis against the labels."""
    verdicts = {clip.name: _gate_label_or_unsure(results, clip, TARGET) for clip in clips}
    records = {clip.name: results.answer(clip.name, TARGET) for clip in clips}
    facts = {name: record.facts if record else {} for name, record in records.items()}
    clear = [clip for clip in clips if clip.verdict and _is_answered(results, clip, TARGET)]
    with_view = [clip for clip in clips if clip.view and _is_answered(results, clip, VIEW)]
    rows = [
        {
            "clip": clip.name,
            "scene": clip.scene,
            "kind": clip.kind,
            "label": clip.verdict or "borderline",
            "said": verdicts[clip.name],
            "outcome": verdict_outcome(clip.verdict, verdicts[clip.name]) if clip in clear else "",
            "source": clip.source,
            "confidence": facts[clip.name].get("confidence"),
            "why": facts[clip.name].get("sentence"),
        }
        for clip in clips
    ]

    def count_target_outcomes(some: Sequence[Labelled]) -> Content:
        return count_outcomes(some, lambda clip: verdicts[clip.name])

    return {
        "clips": rows,
        "target": {
            "all": count_target_outcomes(clear),
            "kinds": {
                kind: count_target_outcomes(some) for kind, some in sorted(group_items(clear, lambda c: c.kind).items())
            },
            "sources": {
                name: count_target_outcomes(some)
                for name, some in sorted(group_items(clear, lambda c: c.source).items())
            },
            "hides": count_target_outcomes([clip for clip in clear if clip.verdict != NEVER]),
            "always never hidden": count_outcomes(clear, lambda clip: NEVER),
            "confusion": {v: dict(Counter(verdicts[c.name] for c in clear if c.verdict == v)) for v in VERDICTS},
            "calibration": confidence_calibration(rows),
        },
        "frames": {
            "gone": _frame_errors(clips, facts, "first_hidden_frame", "gone", results),
            "back": _frame_errors(clips, facts, "first_return_frame", "back", results),
        },
        "view": count_outcomes(with_view, lambda clip: _gate_label_or_unsure(results, clip, VIEW), "view"),
        "target_reappearance": _count_reappearance_outcomes(clear, results),
        "diagnosis": _count_diagnosis_answers(clips, results),
    }


def verdict_outcome(label: str, verdict: str) -> str:
    """Right, wrong, or undecided."""
    return UNDECIDED if verdict == UNSURE else RIGHT if verdict == label else WRONG


def count_outcomes(clips: Sequence[Labelled], verdict_of: Callable[[Labelled], str], label: str = "verdict") -> Content:
    """Right, wrong and undecided by clips and by scenes, with Wilson's interval of the share that is wrong."""
    outcomes = [(clip.scene, verdict_outcome(getattr(clip, label), verdict_of(clip))) for clip in clips]
    scenes = group_items(outcomes, lambda one: one[0]).values()
    order = (WRONG, UNDECIDED, RIGHT)
    worst = [min((one for _, one in some), key=order.index) for some in scenes]
    return {"clips": _outcome_counts([one for _, one in outcomes]), "scenes": _outcome_counts(worst)}


def _outcome_counts(outcomes: Sequence[str]) -> Content:
    right, wrong, undecided = (outcomes.count(name) for name in (RIGHT, WRONG, UNDECIDED))
    interval = wilson_interval(wrong, len(outcomes))
    return {"n": len(outcomes), "right": right, "wrong": wrong, "undecided": undecided, "wrong_interval": interval}


def confidence_calibration(rows: Iterable[Content]) -> list[Content]:
    """How often verdicts of about the same confidence are right: by tenths, each with its mean confidence."""
    decided = [row for row in rows if row["outcome"] in (RIGHT, WRONG) and row["confidence"] is not None]
    levels = []
    for _, some in sorted(group_items(decided, lambda row: min(int((row["confidence"] or 0.0) * 10), 9)).items()):
        right = sum(row["outcome"] == RIGHT for row in some)
        confidence = round(float(np.mean([row["confidence"] for row in some])), 3)
        interval = wilson_interval(right, len(some))
        levels.append({"confidence": confidence, "n": len(some), "right": right, "interval": interval})
    return levels


def _is_answered(results: Results, clip: Labelled, gate: str) -> bool:
    """Whether a gate was asked about a clip, and did not fail: only then its answer is right, wrong or undecided."""
    record = results.answer(clip.name, gate)
    return record is not None and not record.failed


def _gate_label_or_unsure(results: Results, clip: Labelled, gate: str) -> str:
    record = results.answer(clip.name, gate)
    return record.label if record is not None and record.label else UNSURE


def _frame_errors(
    clips: Sequence[Labelled],
    facts: Mapping[str, Mapping[str, object]],
    fact: str,
    label: str,
    results: Results,
) -> Content:
    """How far the frames of leaving or returning are from those that people saw, in seconds."""
    apart = []
    for clip in clips:
        true_frame, gate_frame = getattr(clip, label), facts[clip.name].get(fact)
        if true_frame is not None and isinstance(gate_frame, int | float):
            apart.append(abs(gate_frame - true_frame) * _seconds_per_frame(results, clip))
    return {
        "n": len(apart),
        "median_seconds": round(float(np.median(apart)), 3) if apart else None,
        "close": sum(value <= CLOSE for value in apart),
    }


def _seconds_per_frame(results: Results, clip: Labelled) -> float:
    """Seconds from frame to frame, by what the gate on the view says of the times it looked at."""
    series = results.series(clip.name, VIEW)
    if series is None or len(series) < 2 or "seconds" not in series.columns:
        return 1 / 24
    frames, seconds = series["frame"], series["seconds"]
    return float((seconds[-1] - seconds[0]) / max(int(frames[-1] - frames[0]), 1))


def _count_reappearance_outcomes(clips: Sequence[Labelled], results: Results) -> dict[str, int]:
    """1 of a target that returned, 0 or nothing of one that did not, nothing of one that was never hidden."""
    right: Counter[str] = Counter()
    for clip in clips:
        value = results.score(clip.name, "target_reappearance")
        allowed = {RETURNED: (1.0,), AWAY: (0.0,), NEVER: ()}[clip.verdict]
        right["unscored" if value is None else RIGHT if value in allowed else WRONG] += 1
    return dict(right)


def _count_diagnosis_answers(clips: Sequence[Labelled], results: Results) -> dict[str, dict[str, int]]:
    """Of each labelled kind of failure: how often it was found where it is, and where it is not."""
    counts_by_kind: dict[str, Counter[str]] = {}
    for clip in clips:
        records = results.of(clip.name)
        answers = verdicts_by_question(records).get(DIAGNOSIS) if records else None
        if answers is None:
            continue
        for kind, there in clip.failures.items():
            answer = answers.get(kind, "denied")
            answer = "untold" if answer == UNSURE else answer
            counts_by_kind.setdefault(kind, Counter())[f"{'there' if there else 'not there'}, {answer}"] += 1
    return {kind: dict(sorted(counts.items())) for kind, counts in sorted(counts_by_kind.items())}
