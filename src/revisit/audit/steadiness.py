"""Steadiness: do verdicts stay the same under changes that no viewer would notice?

Every clip of a folder is judged as it is and under each disturbance: a grey level more or less, a little noise,
another gamma, a shift by a pixel, a frame less at either end (of the reference, too), H.264 at crf 18. A verdict may
become "cannot tell"; where it becomes another one, it has flipped. For the diagnosis each kind of failure is a verdict:
found, denied or not told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from revisit.audit.schema import AuditOptions, Content
from revisit.core import GATES, METRICS, SUITES, Case, Clip, MediaError, Record, Rejected, Remark, UsageError, digest
from revisit.core.records import GATE_STATES
from revisit.core.text import read_package_yaml
from revisit.diagnosis.diagnose import diagnose
from revisit.diagnosis.kinds import KINDS, READ
from revisit.engine.plan import Plan, make_plan
from revisit.engine.request import load_observer_set
from revisit.engine.run import evaluate
from revisit.media import encode_mp4, open_clip, read_clip_info
from revisit.media.perturb import WORDS as CHANGED_FRAMES
from revisit.results import Results
from revisit.results.record_files import write_json
from revisit.results.run import Run
from revisit.stats.intervals import wilson_interval
from revisit.worlds.workers import StepCallback, run_in_processes

AS_IT_IS = ""
DISTURBANCES = {**CHANGED_FRAMES, **read_package_yaml("revisit.audit", "words.yaml")["other_frames"]}
DIAGNOSIS = "diagnosis"
UNSURE = "cannot tell"


def audit_steadiness(source: Path, out: Path, options: AuditOptions = AuditOptions()) -> Content:
    """Evaluate the clips of a folder, undisturbed and disturbed, and return the content of steadiness.json.

    Asked are the gates and all that the diagnosis reads, of every clip under every disturbance.
    """
    plan, run = evaluate_clips(list(SUITES["folder"].read(source, ())), source, out, options)
    content = {
        "set": plan.observers.id,
        "source": str(source),
        "verdicts": count_flips(run.results),
        **unread_and_failed(plan, run.results),
    }
    write_json(out / "steadiness.json", content)
    return content


def unread_and_failed(plan: Plan, results: Results) -> dict[str, dict[str, str]]:
    """What an audit could not use, by the id of a clip: why it could not be read, or what failed first."""
    failed: dict[str, str] = {}
    for record in results.failures:
        failed.setdefault(record.case.id, record.sentence)
    return {"unread": {entry.id: entry.reason for entry in plan.rejected}, "failed": failed}


def evaluate_clips(
    entries: Sequence[Case | Rejected | Remark],
    source: Path,
    out: Path,
    options: AuditOptions,
    *,
    questions: Sequence[str] = (),
    disturbed: bool = True,
) -> tuple[Plan, Run]:
    """The plan that asks clips all that the diagnosis reads, or some questions, and its run; also of disturbed ones."""
    encoded = out / "encoded"
    if disturbed:
        _encode_crf18_clips([entry for entry in entries if isinstance(entry, Case)], encoded, options)

    def read(source: Path, roots: Sequence[Path] = ()) -> Iterator[Case | Rejected | Remark]:
        for entry in entries:
            yield entry
            if disturbed and isinstance(entry, Case):
                yield from disturbed_cases(entry, encoded)

    question_ids = list(questions) or [question for question in (*GATES, *METRICS) if question in READ]
    plan = make_plan(replace(SUITES["folder"], read=read), source, load_observer_set(options.set), metrics=question_ids)
    if not plan.cases:
        reason = f": {plan.rejected[0].id}: {plan.rejected[0].reason}" if plan.rejected else ""
        raise UsageError(f"{source} has no clip that can be read{reason}")
    run = evaluate(plan, out / "run", workers=options.workers, fresh=options.fresh, progress=options.progress)
    return plan, run


def _encoded_path(case: Case, folder: Path) -> Path:
    return folder / f"{digest(case.id, 16)}.mp4"


def disturbed_cases(case: Case, encoded: Path) -> Iterator[Case | Rejected]:
    """The case under each disturbance, as a case of its own."""
    for name in DISTURBANCES:
        try:
            if name in CHANGED_FRAMES:
                clip = replace(case.clip, disturbed=name)
            elif name == "crf18":
                clip = Clip(_encoded_path(case, encoded))
            else:
                clip = _clip_without_end_frame(case.clip, name)
        except MediaError as error:
            yield Rejected(f"{case.id}~{name}", str(error), case.model)
            continue
        notes = {**case.annotations, "disturbed": name}
        reference, phases = _reference_of_disturbed_clip(case, name), _disturbed_phases(case, name)
        yield replace(case, id=f"{case.id}~{name}", clip=clip, reference=reference, phases=phases, annotations=notes)


def _reference_of_disturbed_clip(case: Case, disturbance: str) -> Clip | None:
    """The reference without the frame that the clip lacks, where both have the same number of frames."""
    if case.reference is None or disturbance not in ("first_less", "last_less"):
        return case.reference
    with suppress(MediaError):  # told of the undisturbed clip
        if read_clip_info(case.reference).count == read_clip_info(case.clip).count:
            return _clip_without_end_frame(case.reference, disturbance)
    return case.reference


def _disturbed_phases(case: Case, name: str) -> tuple[int, int] | None:
    if case.phases is None or name != "first_less":
        return case.phases
    hidden, returned = case.phases
    return max(hidden - 1, 0), max(returned - 1, 0)


def _clip_without_end_frame(clip: Clip, name: str) -> Clip:
    if name == "first_less":
        return replace(clip, start=clip.start + 1, count=None if clip.count is None else clip.count - 1)
    return replace(clip, count=(clip.count or read_clip_info(clip).count) - 1)


def _encode_crf18_clips(cases: Sequence[Case], folder: Path, options: AuditOptions) -> None:
    """Make the files of the disturbance `crf18` that are not there yet."""
    places = [(case.clip, _encoded_path(case, folder)) for case in cases]
    todo = [(clip, path) for clip, path in places if options.fresh or not path.exists()]
    run_in_processes(_encode_crf18, todo, options.workers, len(todo), None)


def _encode_crf18(job: tuple[Clip, Path], tell: StepCallback) -> None:
    """Write a clip as H.264 at crf 18, an odd row or column left out. One that cannot be read is told in its turn."""
    clip, path = job
    with suppress(MediaError), open_clip(clip) as stream:
        height, width = stream.info.height // 2 * 2, stream.info.width // 2 * 2
        encode_mp4(path, (frame.rgb[:height, :width] for frame in stream), fps=stream.info.fps, crf=18)


def count_flips(results: Results) -> dict[str, Content]:
    """By verdict: how often it was tried, how often it flipped, and how often it could not be told undisturbed."""
    cases_by_id = {case.id: case for case in results.cases if results.of(case)}
    verdicts_by_case = {case_id: verdicts_by_question(results.of(case_id)) for case_id in cases_by_id}
    rows: dict[str, Content] = {}
    for case_id, case in cases_by_id.items():
        name = str(case.annotations.get("disturbed", AS_IT_IS))
        before = verdicts_by_case[case_id.removesuffix(f"~{name}") if name else case_id]
        for question, answers in verdicts_by_case[case_id].items():
            if question not in before:
                continue  # it failed undisturbed
            counts: Content = dict.fromkeys(("clips", "asked", "untold", "tried"), 0)
            row = rows.setdefault(question, {**counts, "flips": [], "rate": 0.0, "interval": None})
            if not name:
                row["clips"] += 1
                row["asked"] += len(answers)
                row["untold"] += sum(answer == UNSURE for answer in answers.values())
                continue
            row["tried"] += 1
            turned = {
                topic: [before[question][topic], answer]
                for topic, answer in answers.items()
                if UNSURE not in (answer, before[question][topic]) and answer != before[question][topic]
            }
            if turned:
                row["flips"].append({"case": case_id.removesuffix(f"~{name}"), "disturbed": name, "from_to": turned})
    for row in rows.values():
        row["rate"] = len(row["flips"]) / max(row["tried"], 1)
        row["interval"] = wilson_interval(len(row["flips"]), row["tried"])
    return rows


def verdicts_by_question(records: Mapping[str, Record]) -> dict[str, dict[str, str]]:
    """Question -> what it is about -> answer: a gate has one answer, the diagnosis one for each kind of failure."""
    answers_by_question = {
        question: {"": UNSURE if record.status == "unsure" else record.label}
        for question, record in records.items()
        if record.status in GATE_STATES
    }
    if any(record.failed for record in records.values()):
        return answers_by_question  # what failed is no sign that all is well
    diagnosis = diagnose(records)
    answers = {finding.kind: "found" for finding in diagnosis.findings}
    answers |= dict.fromkeys([*diagnosis.untold, *(finding.kind for finding in diagnosis.doubtful)], UNSURE)
    answers_by_question[DIAGNOSIS] = {kind: answers.get(kind, "denied") for kind in KINDS}
    return answers_by_question
