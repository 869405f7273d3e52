"""A run: plan → observe → score → record, in a directory that every other command reads.

Killing the process at any moment loses at most the answers being written; the same command goes on
where it stopped, and its summary is the same to the byte.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from revisit._version import __version__
from revisit.core import Case, MissingPrerequisite, Record, UsageError
from revisit.core.concurrency import cores
from revisit.engine.cache import EvidenceCache, cache_root
from revisit.engine.costs import load_costs, merge_into_saved_costs
from revisit.engine.dependencies import observed_ids_needed_by
from revisit.engine.jobs import ClipTask, ObserverTask, ObservingJob
from revisit.engine.judging import JudgeSession
from revisit.engine.leases import POLL, Claims, RunInUse, lock_run
from revisit.engine.observe import Outcome
from revisit.engine.plan import Plan
from revisit.engine.provenance import InvocationLog, RunLog
from revisit.engine.resume import ResumedRun, read_json_object_or_empty, reopen_finished_run, resume_run
from revisit.engine.run_summary import IncrementalExport, write_result_files
from revisit.engine.score import Scorers, make_scoring_input
from revisit.engine.worker_count import observing_worker_count, require_worker_count, scoring_worker_count
from revisit.engine.worker_processes import Executor, Local, host_devices, one_network_task_per_observer
from revisit.media import Limits
from revisit.results.file_types import Details
from revisit.results.record_files import RecordLines, RecordWriter
from revisit.results.run import Run

if TYPE_CHECKING:
    from revisit.judges.settings import ChosenJudge

CLOSED = ("gate_closed", "undecided")  # why a metric was not even asked for its evidence


class Progress:
    """Who is told how the work goes; this one shows nothing. See `cli.console` for a bar and for plain lines."""

    def start(self, clips: int, cases: int, observed: int) -> None: ...

    def advance(self, what: str, failed: int) -> None: ...

    def show_judge_progress(self, done: int, total: int, said: str) -> None: ...

    def finish(self) -> None: ...


def evaluate(
    plan: Plan,
    out: Path,
    *,
    fresh: bool = False,
    workers: int | None = None,
    limits: Limits | None = None,
    cache: EvidenceCache | None = None,
    progress: Progress | None = None,
    command: str = "",
    request: Details | None = None,
    judge: ChosenJudge | None = None,
    dataset_case_ids: Collection[str] | None = None,
    on_export: Callable[[Path], None] | None = None,
    executor: Executor | None = None,
) -> Run:
    """Answer every question of the plan that has no answer yet; return the finished run.

    With `dataset_case_ids`, the ids of all cases that the dataset has, what earlier calls into this folder asked of
    them stays part of the run (`engine.resume` says how).

    `request` is what the plan was made from; it is kept in run.json, so that the run can be scored again.
    `judge` is asked what only a judge can tell; the plan was made for it.
    `executor` observes the clips; by default `workers` processes of this machine do. Several processes, on machines
    that share the folder of the run and the evidence cache, may call this at once: each does a part.
    `on_export` is called with the folder of the run whenever the files that its suite exports were written.
    """
    limits, cache, progress = limits or Limits(), cache or EvidenceCache(cache_root()), progress or Progress()
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; --out takes a folder")
    require_worker_count(workers)
    cache.require_usable(writable=False)
    out.mkdir(parents=True, exist_ok=True)
    with lock_run(out, alone=judge is not None) as entry, _spare_folder(executor) as spare:
        cache = replace(cache, spare=cache.spare or spare, problems={})
        if fresh and not entry.first:
            raise RunInUse(out)
        resumed = resume_run(
            out, plan, fresh=fresh, request=request, dataset_case_ids=dataset_case_ids, others_at_work=not entry.first
        )
        if judge is None:
            entry.acquire_shared_lock(out / "plan.json")
        plan, claims = resumed.plan, entry.claims
        needed = resumed.needed_evidence_keys()
        missing = [key for key in plan.tasks if key in needed and not cache.verify_or_drop(key)]
        jobs = plan.observing_jobs_for(missing)
        account = InvocationLog(
            resumed, cache, command, request, len(needed) - len(missing), dataset_case_ids is not None
        )
        with claims.hold_write_lock():
            account.write_run_json()

        networks = one_network_task_per_observer(jobs)
        parts = sum(job.max_split_parts for job in jobs)
        observing = executor or Local(observing_worker_count(workers, parts, len(host_devices()) if networks else 0))
        here = observing.workers if isinstance(observing, Local) else cores()  # one scores beside four that observe
        progress.start(len(plan.clips), len(plan.cases), len(plan.clips) - sum(len(job.clips) for job in jobs))
        try:
            with (
                RecordWriter(out / "records.jsonl", claims.hold_write_lock, resumed.lines.read) as writer,
                JudgeSession(plan, missing, cache, judge, out / "answers.jsonl") as asking,
                Scorers(scoring_worker_count(here // 4, len(plan.cases)), cache, out / "units") as scorers,
            ):
                export = IncrementalExport(resumed, on_export)
                work = _Work(resumed, cache, claims, observing, account, progress, export, writer, asking, scorers)
                asking.copy_recorded_answers(plan.tasks[key][2] for key in sorted(needed))
                work.answer_everything_left(limits, networks)
        except BaseException as error:
            account.log_early_end(error)
            raise
        finally:
            progress.finish()
        with claims.hold_write_lock():
            results = write_result_files(resumed)
            if on_export is not None:
                on_export(out)
            account.write_run_json(finished=time.time())
        merge_into_saved_costs(cache, account.costs)
        return Run(out, resumed.lines, results)


@contextmanager
def _spare_folder(executor: Executor | None) -> Iterator[Path | None]:
    """A folder for evidence that the cache does not take, which all processes of the run reach; None where none can.

    The first evidence makes it: a run that is killed leaves nothing behind where the cache took everything.
    """
    spare = None
    if executor is None or isinstance(executor, Local):
        with suppress(OSError):  # no folder for temporary files
            spare = Path(gettempdir(), f"revisit-evidence-{uuid4().hex}")
    try:
        yield spare
    finally:
        if spare is not None:
            rmtree(spare, ignore_errors=True)


@dataclass
class _WorkUnit:
    """What one process does at a time."""

    names: frozenset[str]  # digests of the clips
    cases: list[Case] = field(default_factory=list)
    to_come: int = 0  # clips to be observed, and cases to be scored


@dataclass
class _Work:
    """The work of one invocation, unit by unit: clips that are tied together by references, and the cases about them.

    This process claims a unit, looks what others have done of it since, observes what is missing, scores as evidence
    comes, has the judge asked, and gives the unit back. What another process holds is looked at again later; if that
    process was killed, its claim is free by then.
    """

    resumed: ResumedRun
    cache: EvidenceCache
    claims: Claims
    executor: Executor
    account: InvocationLog
    progress: Progress
    export: IncrementalExport
    writer: RecordWriter
    asking: JudgeSession
    scorers: Scorers
    failures: dict[str, str] = field(default_factory=dict)  # evidence key -> why it could not be made
    broken: dict[str, str] = field(default_factory=dict)  # digest of a clip -> why it cannot be read
    failed_cases: int = 0

    def __post_init__(self) -> None:
        self.plan, self.costs = self.resumed.plan, load_costs(self.cache)
        self._to_do = self._to_take = 0.0  # seconds that one processor needs for all that is missing; for what is left
        self._opened_at = self.resumed.lines.file_and_bytes_read
        self._left = self._make_work_units()
        self._of_clip: dict[str, _WorkUnit] = {}  # of the units that are being worked on
        self._of_case: dict[str, _WorkUnit] = {}
        self._lacks: dict[str, tuple[Case, set[str]]] = {}  # case -> evidence it waits for
        self._waiting: dict[str, list[str]] = {}  # evidence -> cases
        self._settled_keys: set[str] = set()  # evidence that was made or given up
        self._busy = True

    def answer_everything_left(self, limits: Limits, networks: Sequence[ObserverTask]) -> None:
        """Answer everything that is left to do of a run."""
        while (todo := self._claim_jobs()) is not None:
            self._process_judged_evidence(self.asking.begin_ready_clips(None, {}))
            for clip, outcome in self.executor(todo, cache=self.cache, limits=limits, networks=networks):
                self._process_outcome(clip, outcome)
            self.scorers.collect(all=True)
        self._process_judged_evidence(self.asking.collect_finished_keys())
        self.scorers.collect(all=True)
        self.account.asked = self.asking.usage_counters()

    def _submit_case_for_scoring(self, case: Case) -> None:
        """Have a case scored whose evidence is made or given up."""
        failures = {**self.failures, **self.asking.failures, **self.plan.failed_evidence_sentences(case, self.broken)}
        checks = self.resumed.questions[case.id]
        scoring_input = make_scoring_input(self.plan, case, checks, failures, self.resumed.earlier_gate_results(case))
        self.scorers.submit_case(scoring_input, checks, partial(self._record_answers, case))

    def _record_answers(self, case: Case, answers: list[Record]) -> None:
        self.writer.append(*answers)
        self.account.add_scoring_seconds(case, answers)
        self.export.export_if_due(case)
        self._count_down_unit(self._of_case.pop(case.id))
        self.failed_cases += any(answer.failed for answer in answers)

    def _process_outcome(self, clip: ClipTask, outcome: Outcome) -> None:
        """Go on with what became of a clip."""
        self.account.add_outcome(outcome)
        self.account.log_observed_clip(clip, outcome)
        self.failures.update(outcome.failed)
        self.broken.update(outcome.broken)
        keys = {task.key for task in clip.observers}
        self._score_unblocked_cases(keys)
        self._process_judged_evidence(self.asking.begin_ready_clips(keys, self.failures))
        self._count_down_unit(self._of_clip[clip.digest])
        self.scorers.collect()
        if not clip.again:
            self.progress.advance(clip.clip.path.name, self.failed_cases)

    def _process_judged_evidence(self, keys: Iterable[str]) -> None:
        """Go on with evidence that the judge's answers made, or that was given up."""
        for key in keys:
            self._score_unblocked_cases({key})
            self.progress.show_judge_progress(self.asking.done, self.asking.total, self.asking.usage_text)

    def _claim_jobs(self) -> Iterator[ObservingJob] | None:
        """What is to be observed, claimed job by job as it is taken; None when nothing is left.

        Called again for what others held at first, after a moment where they hold all that is left.
        """
        if not self._left:
            return None
        if not self._busy:
            time.sleep(POLL)
        todo, self._left, self._busy = self._left, [], False
        # The longest comes first; what needs no observing comes last, while the others are observed.
        missing = [self._missing_evidence_keys(unit.cases) for unit in todo]
        cost = [self._estimated_seconds_of_evidence(keys) if keys else -1.0 for keys in missing]
        self._to_do = self._to_take = sum(max(seconds, 0.0) for seconds in cost)
        order = sorted(range(len(todo)), key=lambda k: -cost[k])
        return self._claim_units_and_yield_jobs([todo[k] for k in order])

    def _score_unblocked_cases(self, keys: Collection[str]) -> None:
        """Score the cases that waited for this evidence, made or given up, and for nothing else."""
        self._settled_keys.update(keys)
        for key in keys:
            for id in self._waiting.pop(key, ()):
                case, lacks = self._lacks[id]
                lacks.discard(key)
                if not lacks:
                    del self._lacks[id]
                    self._submit_case_for_scoring(case)

    def _count_down_unit(self, unit: _WorkUnit) -> None:
        """When all of a unit is done, others may look at it."""
        unit.to_come -= 1
        if not unit.to_come:
            self.claims.release(unit.names)

    def _make_work_units(self) -> list[_WorkUnit]:
        units, of_clip = [], {}
        for job in self.plan.observing_jobs_for(self.resumed.needed_evidence_keys()):
            unit = _WorkUnit(frozenset(clip.digest for clip in job.clips))
            units.append(unit)
            of_clip.update(dict.fromkeys(unit.names, unit))
        for case in self.plan.cases:
            if self.resumed.questions[case.id]:
                name = self.plan.digests.get(case.id, case.id)
                if name not in of_clip:
                    of_clip[name] = _WorkUnit(frozenset([name]))
                    units.append(of_clip[name])
                of_clip[name].cases.append(case)
        return [unit for unit in units if unit.cases]

    def _claim_units_and_yield_jobs(self, units: list[_WorkUnit]) -> Iterator[ObservingJob]:
        for unit in units:
            if not self.claims.claim_all_or_none(unit.names):
                self._left.append(unit)
                continue
            self._busy = True
            cases = self._unanswered_cases(unit)
            missing = self._missing_evidence_keys(cases)
            jobs = [part for job in self.plan.observing_jobs_for(sorted(missing)) for part in self._split_job(job)]
            unit.to_come = sum(len(job.clips) for job in jobs) + len(cases)
            self._of_clip.update({clip.digest: unit for job in jobs for clip in job.clips})
            self._of_case.update({case.id: unit for case in cases})
            if not unit.to_come:
                self.claims.release(unit.names)
            for case in cases:
                lacks = self.resumed.needed_evidence_keys_of_case(case) & missing - self._settled_keys
                if not lacks:
                    self._submit_case_for_scoring(case)
                    continue
                self._lacks[case.id] = case, lacks
                for key in lacks:
                    self._waiting.setdefault(key, []).append(case.id)
            yield from jobs

    def _split_job(self, job: ObservingJob) -> list[ObservingJob]:
        """The job, split where it is as much as several workers would do of all there is, or of what is left."""
        mine = sum(map(self._estimated_seconds_of_clip, job.clips))
        rest, self._to_take = max(self._to_take, mine), self._to_take - mine
        if job.max_split_parts == 1 or not mine:
            return [job]
        hands = self.executor.jobs_at_a_time()
        of_all, of_rest = (int(round(hands * mine / whole, 6)) for whole in (max(self._to_do, mine), rest))
        return job.split(of_all if of_all > 1 else of_rest, self._estimated_seconds_of_clip)

    def _estimated_seconds_of_clip(self, clip: ClipTask) -> float:
        return self.costs.estimate_total_seconds((clip.clip, task) for task in clip.observers)

    def _missing_evidence_keys(self, cases: Collection[Case]) -> set[str]:
        keys = {key for case in cases for key in self.resumed.needed_evidence_keys_of_case(case)}
        return {key for key in keys if key not in self.cache}

    def _estimated_seconds_of_evidence(self, keys: Collection[str]) -> float:
        """About how long it takes to make this evidence."""
        tasks = (self.plan.tasks[key] for key in keys)
        return self.costs.estimate_total_seconds((clip, task) for _, clip, task in tasks if task.shown is None)

    def _unanswered_cases(self, unit: _WorkUnit) -> list[Case]:
        """The cases that nobody has answered since the run was opened."""
        lines = self.resumed.lines  # our own answers, thousands, need no reading
        if not self.writer.is_only_writer() and lines.read_appended_lines().file_and_bytes_read != self._opened_at:
            for case in unit.cases:
                self.resumed.questions[case.id] = self.resumed.unanswered_checks(case, self.resumed.failed)
        return [case for case in unit.cases if self.resumed.questions[case.id]]


def rescore(plan: Plan, out: Path, cache: EvidenceCache | None = None) -> Run:
    """Answer every question of the plan again from cached evidence; nothing is decoded."""
    cache = cache or EvidenceCache(cache_root())
    with lock_run(out, alone=True) as entry:
        if not entry.first:
            raise RunInUse(out)
        unmade = _answers_whose_evidence_failed(plan, out, cache)
        resumed, log = reopen_finished_run(out, plan), RunLog(out)
        log.write("started", f"all questions again from cached evidence, by revisit {__version__}")
        processes = scoring_worker_count(cores(), len(plan.cases))
        with RecordWriter(out / "records.jsonl") as writer, Scorers(processes, cache, out / "units") as scorers:
            for case in plan.cases:
                checks = [check for check in resumed.questions[case.id] if (case.id, check.id) not in unmade]
                scorers.submit_case(
                    make_scoring_input(plan, case, checks, {}), checks, lambda answers: writer.append(*answers)
                )
            scorers.collect(all=True)
        results = write_result_files(resumed)
        log.write("finished", f"{len(plan.cases)} cases scored again")
    return Run(out, resumed.lines, results)


def _answers_whose_evidence_failed(plan: Plan, out: Path, cache: EvidenceCache) -> set[tuple[str, str]]:
    """Clips and questions whose evidence could not be made: their answers say why, and stay.

    Raises
    ------
    MissingPrerequisite
        Where evidence is gone that answers of the run rest on: failures would take their place.
    """
    lines, unmade, lost = RecordLines(out / "records.jsonl").newest, set(), {}
    for case in plan.cases:
        missing = {kind for kind, key in plan.wanted[case.id].keys.items() if not cache.verify_or_drop(key)}
        if not missing:
            continue
        answers, failed_kinds, used_kinds = lines.get(case.id, {}), set[str](), set[str]()
        for check in plan.checks_for(case):
            kinds = missing.intersection(observed_ids_needed_by(check, optional=False))
            answer = answers.get(check.id)
            if answer is not None and answer.status == "failed":
                failed_kinds |= kinds
                unmade |= {(case.id, check.id)} if kinds else set()
            elif answer is None or answer.reason is None or answer.reason.kind not in CLOSED:
                used_kinds |= kinds
        if (gone := used_kinds - failed_kinds) and case.id not in plan.unreadable:
            lost[case.id] = min(gone)
    if lost:
        case_id, kind = next(iter(lost.items()))
        raise MissingPrerequisite(
            f"{out} cannot be scored again and stays as it is: the cache ({cache.root}) has no evidence of "
            f"{len(lost)} of {len(plan.cases)} clips, such as {kind} of {case_id}; "
            + (cache.problems.get("read") or way_to_make_evidence_again(read_json_object_or_empty(out / "run.json")))
        )
    return unmade


def way_to_make_evidence_again(facts: Mapping[str, Any]) -> str:
    """What makes the evidence of a finished run again: its command alone finds all questions answered."""
    command = ((facts.get("invocations") or [{}])[-1]).get("command") or "the call that made it"
    if "--fresh" in command.split():
        return f"`{command}` makes it again"
    if not command.startswith("revisit "):
        return f"{command} makes it again with fresh=True or another folder"
    return f"`{command}` makes it again with --fresh or another --out"
