"""Opens the folder of a run: finds what is already answered and what is left to do.

Several calls may go into one run, for those who run networks on one machine and a judge on another. What an earlier
call asked and this one does not is kept as it was answered; so is what this machine could not answer. A clip that has
changed since loses its earlier answers, one that the dataset has no more is forgotten, and a run of another protocol is
refused: its numbers do not go beside these.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import cast

from revisit.core import Case, Gate, GateResult, Metric, Unscored, UsageError, digest
from revisit.core.records import GATE_STATES
from revisit.core.text import parse_json
from revisit.engine.dependencies import observed_ids_needed_by, short_hash
from revisit.engine.leases import RunInUse
from revisit.engine.plan import Plan
from revisit.media.files import UNFINISHED, atomic_write_path
from revisit.results.file_types import Details, PlanFile
from revisit.results.record_files import (
    SCHEMA,
    RecordLine,
    RecordLines,
    json_rows_text,
    parse_intact_lines,
    record_from_line,
    write_json_rows,
)

REQUIRED_OF_PLAN = {  # keys without which a plan.json cannot be gone on with
    "suite", "protocol", "align", "partial", "total_cases", "metrics", "gates", "made_by", "cases", "rejected",
}  # fmt: skip
FailedAnswers = Mapping[tuple[str, str], RecordLine]  # by case and question
RUN_FILES = (
    "run.json",
    "plan.json",
    "settled.json",
    "records.jsonl",
    "answers.jsonl",
    "summary.json",
    "diagnosis.json",
    "stand_ins.csv",
    "units",
    "report",
)


@dataclass(frozen=True)
class ResumedRun:
    """The folder of a run, ready for the answers of a plan."""

    folder: Path
    plan: Plan  # what this call asks
    whole: PlanFile  # of plan.json: this plan, and what earlier calls asked besides
    questions: dict[str, list[Metric | Gate]]  # case id -> what has no valid answer yet
    lines: RecordLines  # the answers there are
    failed: FailedAnswers  # what had failed when the run was opened

    def needed_evidence_keys(self) -> set[str]:
        """Keys of the evidence that the open questions need."""
        return {key for case in self.plan.cases for key in self.needed_evidence_keys_of_case(case)}

    def needed_evidence_keys_of_case(self, case: Case) -> set[str]:
        """Keys of the evidence that the open questions of a case need, with what a page shows of it."""
        return self.plan.evidence_keys_for(case, self.questions[case.id])

    def unanswered_checks(self, case: Case, failed: FailedAnswers) -> list[Metric | Gate]:
        """What has no valid answer yet; what had failed earlier is asked again."""

        checks = self.plan.checks_for(case)
        keys = self.plan.answer_keys_by_check(case, checks)
        newest, questions = self.lines.newest.get(case.id, {}), []
        for check in checks:
            line = newest.get(check.id)
            again = line is not None and line.status == "failed" and failed.get((case.id, check.id)) == line
            if line is None or line.key != keys[check.id] or again:
                questions.append(check)
        return questions

    def earlier_gate_results(self, case: Case) -> dict[str, GateResult | Unscored]:
        """What gates have said of a case that are not asked again, for the metrics behind them."""
        again = {check.id for check in self.questions[case.id]}
        results: dict[str, GateResult | Unscored] = {}
        for gate in self.plan.checks_for(case):
            line = self.lines.newest.get(case.id, {}).get(gate.id)
            if isinstance(gate, Metric) or gate.id in again or line is None or line.status == "failed":
                continue
            record = record_from_line(line, case)
            if record.status in GATE_STATES:
                results[gate.id] = GateResult(record.status, record.label, record.sentence, record.facts)
            elif record.reason is not None:
                results[gate.id] = Unscored(record.reason, facts=record.facts)
        return results


def resume_run(
    out: Path,
    plan: Plan,
    *,
    fresh: bool,
    request: Details | None,
    dataset_case_ids: Collection[str] | None,
    others_at_work: bool = False,
) -> ResumedRun:
    """The folder with the answers that still hold; with `dataset_case_ids` those of earlier calls stay part of the run.

    `dataset_case_ids` are the ids of all cases that the dataset has, `request` is what the plan was made from.
    With `others_at_work`, others are at work on the same plan: nothing is changed.
    """
    _refuse_run_files_without_run_record(out, plan.suite.exports)
    if fresh:
        _remove_run_files(out, plan.suite.exports)
    _require_same_source(out, request)
    earlier = None if dataset_case_ids is None else _read_compatible_earlier_plan(out, plan, dataset_case_ids)
    if earlier is not None:
        plan = _drop_unanswerable_answered_metrics(plan, earlier)
    now = plan.as_json()
    if earlier is not None and not others_at_work:
        _remove_stale_answers(out, earlier, now)
    whole = _merge_plans(earlier, now)
    if not others_at_work:
        _remove_unfinished_files(out)
        write_json_rows(out / "plan.json", whole)
    elif (out / "plan.json").read_bytes() != json_rows_text(whole).encode():
        raise RunInUse(out, " with other clips or questions")
    lines = RecordLines(out / "records.jsonl")
    # What failed may have failed a moment ago, with the others: who joins does not ask it again.
    asked_again = {} if others_at_work else lines.newest
    failed = {
        (case, id): line for case, mine in asked_again.items() for id, line in mine.items() if line.status == "failed"
    }
    resumed = ResumedRun(out, plan, whole, {}, lines, failed)
    _fill_in_open_questions(resumed, remember=not others_at_work)
    return resumed


def _fill_in_open_questions(resumed: ResumedRun, *, remember: bool) -> None:
    """Find what is open in each case, and `remember` cases of which everything is answered, in settled.json.

    Each has the digest of all that its answers depend on, and of their lines: to compare it is to ask 48 answers at
    once. Without the file, or with a damaged one, every answer is looked at.
    """
    path, plan = resumed.folder / "settled.json", resumed.plan
    content, ids_by_check = read_json_object_or_empty(path), plan.evidence_ids_by_check
    questions = [[check.id, plan.protocol_with_hash(check), ids_by_check[check.id]] for check in plan.checks]
    basis = digest([SCHEMA, questions], 40)
    cases = content.get("cases") if content.get("basis") == basis else None
    settled_before = cases if isinstance(cases, dict) else {}
    settled = {}
    for case in plan.cases:
        sha256 = hashlib.sha256(plan.encode_answer_dependencies(case))
        sha256.update(resumed.lines.digest_of_case_lines(case.id).encode())
        stamp = sha256.hexdigest()
        is_settled = settled_before.get(case.id) == stamp
        resumed.questions[case.id] = [] if is_settled else resumed.unanswered_checks(case, resumed.failed)
        if not resumed.questions[case.id]:
            settled[case.id] = stamp
    if remember and settled != settled_before:
        write_json_rows(path, {"basis": basis, "cases": settled})


def reopen_finished_run(out: Path, plan: Plan) -> ResumedRun:
    """The folder of a finished run, with every question open again."""
    facts = parse_json((out / "run.json").read_text(encoding="utf-8"))
    whole = _merge_plans(_read_compatible_earlier_plan(out, plan) if facts.get("adds") else None, plan.as_json())
    write_json_rows(out / "plan.json", whole)
    lines = RecordLines(out / "records.jsonl")
    return ResumedRun(out, plan, whole, {case.id: plan.checks_for(case) for case in plan.cases}, lines, {})


def hash_of_metrics_and_gates(content: PlanFile) -> str:
    """One hash over all metrics and gates of a plan.json."""
    return short_hash(sorted([*content["gates"].values(), *content["metrics"].values()]))


def _read_compatible_earlier_plan(out: Path, plan: Plan, present: Collection[str] | None = None) -> PlanFile | None:
    """What earlier calls into this folder asked, if it can stay beside this plan.

    `present` are ids of the cases that the dataset has now; earlier ones that it has no more are left out.
    """
    path = out / "plan.json"
    if not path.is_file():
        return None
    earlier = cast(PlanFile, dict(read_json_object_or_empty(path)))
    if not earlier.keys() >= REQUIRED_OF_PLAN:
        raise UsageError(f"{path} is damaged; add --fresh to start this run again, or choose another folder")
    for name, theirs, mine in (
        ("suite", earlier["suite"], plan.suite.id),
        ("protocol", earlier["protocol"], plan.protocol),
        ("align", earlier["align"], plan.align),
    ):
        if theirs != mine:
            raise UsageError(
                f"{out} holds answers of the {name} {theirs!r}, but this call uses {mine!r}; choose another "
                "folder, or --fresh to replace them"
            )
    earlier.setdefault("observers", {})
    if present is not None:
        earlier["cases"] = [entry for entry in earlier["cases"] if entry["id"] in present]
        earlier["rejected"] = [entry for entry in earlier["rejected"] if entry["id"] in present]
    return earlier


def _drop_unanswerable_answered_metrics(plan: Plan, earlier: PlanFile) -> Plan:
    """The plan without metrics that cannot be answered here for any clip, where an earlier call answered them."""

    def is_answerable(metric: Metric) -> bool:
        kinds = {*observed_ids_needed_by(metric, optional=False)}
        cases = [case for case in plan.cases if metric in plan.checks_for(case) and case.id not in plan.unreadable]
        return not all(kinds & plan.wanted[case.id].absent.keys() for case in cases)

    keep = (metric for metric in plan.metrics if metric.id not in earlier["metrics"] or is_answerable(metric))
    return replace(plan, metrics=tuple(keep))


def _merge_plans(earlier: PlanFile | None, now: PlanFile) -> PlanFile:
    """The content of plan.json for all calls together."""
    if earlier is None:
        return now
    before = {case["id"]: case for case in earlier["cases"]}
    mine = {case["id"]: case for case in now["cases"]}
    for id, case in mine.items():
        other = before.get(id)
        if other is not None and other["digest"] == case["digest"]:
            case["evidence"] = {**other["evidence"], **case["evidence"]}
            case["reference_evidence"] = {**other["reference_evidence"], **case["reference_evidence"]}
            absent = {**other["absent"], **case["absent"]}
            case["absent"] = {kind: why for kind, why in absent.items() if kind not in case["evidence"]}
    cases = {**before, **mine}
    rejected = {entry["id"]: entry for entry in [*earlier["rejected"], *now["rejected"]]}
    whole = before.keys() <= mine.keys()  # this call looked at every clip of the earlier ones
    return {
        **now,
        "partial": now["partial"] if whole else now["partial"] or earlier["partial"],
        "total_cases": max(len(cases), now["total_cases"], 0 if whole else earlier["total_cases"]),
        "gates": {**earlier["gates"], **now["gates"]},
        "metrics": {**earlier["metrics"], **now["metrics"]},
        "made_by": {**earlier["made_by"], **now["made_by"]},
        "observers": {**earlier["observers"], **now["observers"]},
        "cases": list(cases.values()),
        "rejected": [entry for id, entry in rejected.items() if id not in cases],
    }


def _remove_stale_answers(out: Path, earlier: PlanFile, now: PlanFile) -> None:
    """Take answers of earlier calls out of the records that do not hold any more, because the clip is another one."""
    before = {case["id"]: case["digest"] for case in earlier["cases"]}
    changed = {case["id"] for case in now["cases"] if before.get(case["id"], case["digest"]) != case["digest"]}
    others = {id for kind in ("gates", "metrics") for id in earlier[kind] if id not in now[kind]}
    if not changed or not others:
        return
    text, answers, ends = parse_intact_lines((out / "records.jsonl").read_bytes())
    remaining = [
        text[begin:end]
        for (begin, end), answer in zip(pairwise(ends), answers, strict=True)
        if answer.case not in changed or answer.question not in others
    ]
    with atomic_write_path(out / "records.jsonl") as temporary:
        temporary.write_bytes(b"".join(remaining))


def _require_same_source(out: Path, request: Details | None) -> None:
    """Refuse to mix the answers of two datasets in one run."""
    earlier = read_json_object_or_empty(out / "run.json").get("request")
    if request is not None and earlier and earlier.get("source") != request["source"]:
        raise UsageError(
            f"{out} holds a run of {earlier.get('source')}; choose another --out, or --fresh to replace it"
        )


def _refuse_run_files_without_run_record(out: Path, exports: Sequence[str]) -> None:
    """Refuse a folder that was never a run and holds files of the names that a run writes and removes."""
    if any({"suite", "protocol"} <= read_json_object_or_empty(out / name).keys() for name in ("run.json", "plan.json")):
        return
    if there := _existing_run_files(out, exports):
        raise UsageError(
            f"{out} was never a run, but holds {there[0].name}, which a run would replace; choose another --out, or "
            "move it"
        )


def read_json_object_or_empty(path: Path) -> Details:
    """The object in a JSON file; empty where there is none."""
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _existing_run_files(out: Path, exports: Sequence[str]) -> list[Path]:
    """What is there of the files that a run writes and removes."""
    return [path for pattern in (*RUN_FILES, *exports) for path in out.glob(pattern)]


def _remove_unfinished_files(out: Path) -> None:
    """Remove what earlier invocations had half written when they were killed; nobody else is in the run."""
    if all(one.get("finished") for one in read_json_object_or_empty(out / "run.json").get("invocations", [])):
        return  # looking through the values behind all answers takes a while
    for folder in (".", "units/*", "report/**"):
        for torn in out.glob(f"{folder}/{UNFINISHED}*"):
            torn.unlink(missing_ok=True)


def _remove_run_files(out: Path, exports: Sequence[str]) -> None:
    """Remove what earlier invocations wrote, and nothing else; last what says that the folder is a run."""
    for path in reversed(_existing_run_files(out, exports)):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
