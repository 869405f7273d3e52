"""Real clips: gates, metrics and the diagnosis against what people saw (`revisit audit --real`).

Every verdict is right, wrong or undecided; "cannot tell" is never wrong. Counted by clips and by scenes, since clips of
one scene fail together: a scene is wrong if any of its clips is. Beside it, what always saying "never hidden" gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from revisit.audit.labelled import UNSURE, VERDICTS, Labelled, read_labelled
from revisit.audit.schema import ByClipAndScene, ConfidenceLevel, FrameErrors, LabelledRow, Outcomes, RealContent
from revisit.audit.steadiness import disturbed_cases, encode_for, flips
from revisit.core import GATES, METRICS, SUITES, Case, Clip, Rejected, Target
from revisit.core.grouping import group_items
from revisit.diagnosis.diagnose import diagnose
from revisit.diagnosis.signs import READ
from revisit.engine.plan import make_plan
from revisit.engine.request import observer_set
from revisit.engine.run import Progress as Watching
from revisit.engine.run import evaluate
from revisit.results import Results
from revisit.results.record_files import write_json
from revisit.stats.intervals import share_interval

TARGET, VIEW = "target_return", "view_return"
NEVER, RETURNED, AWAY = VERDICTS
CLOSE = 0.3  # seconds: frames of leaving and returning that far from people's count as found
RIGHT, WRONG, UNDECIDED = "right", "wrong", "undecided"


def real(
    folders: Sequence[Path],
    out: Path,
    *,
    set: str = "lite",
    questions: Sequence[str] = (),
    with_flips: bool = False,
    workers: int | None = None,
    fresh: bool = False,
    observed: Watching | None = None,
) -> RealContent:
    """Evaluate the clips of labelled folders; return the content of real.json.

    `questions` are the gates and metrics asked, by default all that the diagnosis reads.
    """
    clips = read_labelled(folders)
    cases = [_case(clip) for clip in clips]
    if with_flips:
        encode_for(cases, out / "encoded", workers, fresh)

    def read(source: Path, roots: Sequence[Path] = ()) -> Iterator[Case | Rejected]:
        for case in cases:
            yield case
            if with_flips:
                yield from disturbed_cases(case, out / "encoded")

    question_ids = list(questions) or [question for question in (*GATES, *METRICS) if question in READ]
    plan = make_plan(replace(SUITES["folder"], read=read), folders[0], observer_set(set), metrics=question_ids)
    run = evaluate(plan, out / "run", workers=workers, fresh=fresh, progress=observed)
    results = run.results.only(lambda entry: isinstance(entry, Case) and not entry.annotations.get("disturbed"))
    content: RealContent = {"set": plan.observers.id, "folders": [str(folder) for folder in folders]}
    content.update(against(clips, results))
    if with_flips:
        content["flips"] = flips(run.results)
    write_json(out / "real.json", content)
    return content


def _case(clip: Labelled) -> Case:
    return Case(
        clip.name, "folder", "labelled", clip.scene, Clip(clip.clip),
        reference=None if clip.reference is None else Clip(clip.reference),
        target=None if clip.box is None else Target(clip.target, clip.box),
    )  # fmt: skip


def against(clips: Sequence[Labelled], results: Results) -> RealContent:
    """Gates, metrics and diagnosis against the labels."""
    records = {clip.name: results.answer(clip.name, TARGET) for clip in clips}
    verdicts = {
        name: UNSURE if record is None or not record.label else record.label for name, record in records.items()
    }
    clear = [clip for clip in clips if clip.verdict]
    rows: list[LabelledRow] = [
        {
            "clip": clip.name, "scene": clip.scene, "kind": clip.kind, "label": clip.verdict or "borderline",
            "said": verdicts[clip.name], "outcome": outcome(clip.verdict, verdicts[clip.name]) if clip.verdict else "",
            "source": clip.source,
            "confidence": record.facts.get("confidence") if (record := records[clip.name]) else None,
            "why": record.facts.get("sentence") if record else None,
        }
        for clip in clips
    ]  # fmt: skip
    kinds = sorted({clip.kind for clip in clear})
    sources = sorted({clip.source for clip in clear})
    facts = {name: record.facts if record else {} for name, record in records.items()}
    return {
        "clips": rows,
        "target": {
            "all": count_outcomes(clear, lambda clip: verdicts[clip.name]),
            "kinds": {
                kind: count_outcomes([c for c in clear if c.kind == kind], lambda c: verdicts[c.name]) for kind in kinds
            },
            "sources": {
                source: count_outcomes([c for c in clear if c.source == source], lambda c: verdicts[c.name])
                for source in sources
            },
            "hides": count_outcomes([c for c in clear if c.verdict != NEVER], lambda c: verdicts[c.name]),
            "always never hidden": count_outcomes(clear, lambda clip: NEVER),
            "confusion": {
                label: dict(Counter(verdicts[c.name] for c in clear if c.verdict == label)) for label in VERDICTS
            },
            "calibration": calibration(rows),
        },
        "frames": {
            "gone": _frames(clips, facts, "first_hidden_frame", lambda clip: clip.gone, results),
            "back": _frames(clips, facts, "first_return_frame", lambda clip: clip.back, results),
        },
        "view": count_outcomes(
            [clip for clip in clips if clip.view and results.answer(clip.name, VIEW) is not None],
            lambda clip: _label(results, clip, VIEW),
            "view",
        ),
        "target_reappearance": _reappearance(clear, results),
        "diagnosis": _diagnosis(clips, results),
    }


def outcome(label: str, verdict: str) -> str:
    """Right, wrong, or undecided."""
    return UNDECIDED if verdict == UNSURE else RIGHT if verdict == label else WRONG


def count_outcomes(
    clips: Sequence[Labelled], verdict_of: Callable[[Labelled], str], label: str = "verdict"
) -> ByClipAndScene:
    """Right, wrong and undecided by clips and by scenes, with Wilson's interval of the share that is wrong."""
    outcomes = [(clip.scene, outcome(getattr(clip, label), verdict_of(clip))) for clip in clips]
    scenes = group_items(outcomes, lambda one: one[0]).values()
    worst = [
        next(one for one in (WRONG, UNDECIDED, RIGHT) if one in {verdict_of for _, verdict_of in some})
        for some in scenes
    ]
    return {"clips": _shares([one for _, one in outcomes]), "scenes": _shares(worst)}


def _shares(outcomes: Sequence[str]) -> Outcomes:
    right, wrong, undecided = (outcomes.count(name) for name in (RIGHT, WRONG, UNDECIDED))
    interval = share_interval(wrong, len(outcomes))
    return {"n": len(outcomes), "right": right, "wrong": wrong, "undecided": undecided, "wrong_interval": interval}


def calibration(rows: Iterable[LabelledRow]) -> list[ConfidenceLevel]:
    """How often verdicts of about the same confidence are right: by tenths, each with its mean confidence."""
    decided = [row for row in rows if row["outcome"] in (RIGHT, WRONG) and row["confidence"] is not None]
    levels: list[ConfidenceLevel] = []
    for _, some in sorted(group_items(decided, lambda row: min(int((row["confidence"] or 0.0) * 10), 9)).items()):
        right = sum(row["outcome"] == RIGHT for row in some)
        confidence = round(float(np.mean([row["confidence"] for row in some])), 3)
        interval = share_interval(right, len(some))
        levels.append({"confidence": confidence, "n": len(some), "right": right, "interval": interval})
    return levels


def _label(results: Results, clip: Labelled, gate: str) -> str:
    record = results.answer(clip.name, gate)
    return record.label if record is not None and record.label else UNSURE


def _frames(
    clips: Sequence[Labelled],
    facts: Mapping[str, Mapping[str, object]],
    name: str,
    frame: Callable[[Labelled], int | None],
    results: Results,
) -> FrameErrors:
    """How far the frames of leaving or returning are from those that people saw, in seconds."""
    apart = []
    for clip in clips:
        true_frame, gate_frame = frame(clip), facts[clip.name].get(name)
        if true_frame is not None and isinstance(gate_frame, int | float):
            apart.append(abs(gate_frame - true_frame) * _step(results, clip))
    return {
        "n": len(apart),
        "median_seconds": round(float(np.median(apart)), 3) if apart else None,
        "close": sum(value <= CLOSE for value in apart),
    }


def _step(results: Results, clip: Labelled) -> float:
    """Seconds from frame to frame, by what the gate on the view says of the times it looked at."""
    series = results.series(clip.name, VIEW)
    if series is None or len(series) < 2 or "seconds" not in series.columns:
        return 1 / 24
    frames, seconds = series["frame"], series["seconds"]
    return float((seconds[-1] - seconds[0]) / max(int(frames[-1] - frames[0]), 1))


def _reappearance(clips: Sequence[Labelled], results: Results) -> dict[str, int]:
    """1 of a target that returned, 0 or nothing of one that did not, nothing of one that was never hidden."""
    right: Counter[str] = Counter()
    for clip in clips:
        value = results.score(clip.name, "target_reappearance")
        allowed = {RETURNED: (1.0,), AWAY: (0.0,), NEVER: ()}[clip.verdict]
        right["unscored" if value is None else RIGHT if value in allowed else WRONG] += 1
    return dict(right)


def _diagnosis(clips: Sequence[Labelled], results: Results) -> dict[str, dict[str, int]]:
    """Of each labelled kind of failure: how often it was found where it is, and where it is not."""
    counts_by_kind: dict[str, Counter[str]] = {}
    for clip in clips:
        if not clip.failures or not results.of(clip.name):
            continue
        diagnosis = diagnose(results.of(clip.name))
        kinds = {finding.kind for finding in diagnosis.findings}
        for kind, there in clip.failures.items():
            open_question = kind in diagnosis.untold or kind in {finding.kind for finding in diagnosis.doubtful}
            answer = "found" if kind in kinds else "untold" if open_question else "denied"
            counts_by_kind.setdefault(kind, Counter())[f"{'there' if there else 'not there'}, {answer}"] += 1
    return {kind: dict(sorted(counts.items())) for kind, counts in sorted(counts_by_kind.items())}
