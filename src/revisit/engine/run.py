"""A run: plan → observe → score → record, in a directory that every other command reads.

Killing the process at any moment loses at most the answers being written; the same command goes on
where it stopped, and its summary is the same to the byte.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from revisit._version import __version__
from revisit.core import Case, Record, UsageError
from revisit.engine.cache import EvidenceCache, cache_root
from revisit.engine.costs import load_costs, save_costs
from revisit.engine.executors import Executor, Local
from revisit.engine.judging import JudgeSession
from revisit.engine.leases import RunInUse, lock_run
from revisit.engine.plan import Plan
from revisit.engine.provenance import InvocationLog
from revisit.engine.resume import reopen_run, resume_run
from revisit.engine.run_log import RunLog
from revisit.engine.run_summary import IncrementalExport, write_summary
from revisit.engine.scheduling import SharedWork
from revisit.engine.score import scoring_input
from revisit.engine.scorer_processes import Scorers
from revisit.engine.worker_count import cores, observing_workers, scoring_workers
from revisit.engine.worker_processes import host_devices, network_tasks
from revisit.media import Limits
from revisit.results.file_types import Details
from revisit.results.record_files import RecordWriter
from revisit.results.run import Run

if TYPE_CHECKING:
    from revisit.judges.settings import ChosenJudge


class Progress(Protocol):
    """Who is told how the work goes. See `cli.console` for a bar and for plain lines."""

    def start(self, clips: int, cases: int, done: int) -> None: ...

    def advance(self, what: str, failed: int) -> None: ...

    def asked(self, done: int, total: int, said: str) -> None: ...

    def finish(self) -> None: ...


class Silent:
    """Progress that nobody watches."""

    def start(self, clips: int, cases: int, done: int) -> None: ...

    def advance(self, what: str, failed: int) -> None: ...

    def asked(self, done: int, total: int, said: str) -> None: ...

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
    adds: Collection[str] | None = None,
    exported: Callable[[Path], None] | None = None,
    executor: Executor | None = None,
) -> Run:
    """Answer every question of the plan that has no answer yet; return the finished run.

    With `adds`, the ids of all cases that the dataset has, what earlier calls into this folder asked of them stays part
    of the run (`opening` says how).

    `request` is what the plan was made from; it is kept in run.json, so that the run can be scored again.
    `judge` is asked what only a judge can tell; the plan was made for it.
    `executor` observes the clips; by default `workers` processes of this machine do. Several processes, on machines
    that share the folder of the run and the evidence cache, may call this at once: each does a part.
    `exported` is called with the folder of the run whenever the files that its suite exports were written.
    """
    limits, cache, progress = limits or Limits(), cache or EvidenceCache(cache_root()), progress or Silent()
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; --out takes a folder")
    out.mkdir(parents=True, exist_ok=True)
    with lock_run(out, alone=judge is not None) as entry:
        if fresh and not entry.first:
            raise RunInUse(out)
        resumed = resume_run(out, plan, fresh=fresh, request=request, adds=adds, joins=not entry.first)
        if judge is None:
            entry.share(resumed.plan_file)
        plan, claims = resumed.plan, entry.claims
        wanted = resumed.evidence()
        missing = [key for key in plan.tasks if key in wanted and not cache.sound(key)]
        jobs = plan.jobs(missing)
        account = InvocationLog(
            resumed, cache, command, request, cached=len(wanted) - len(missing), adds=adds is not None
        )
        with claims.writing():
            account.write()

        networks = network_tasks(jobs)
        parts = sum(job.most_parts for job in jobs)
        observing = executor or Local(observing_workers(workers, parts, len(host_devices()) if networks else 0))
        here = observing.workers if isinstance(observing, Local) else cores()  # one scores beside four that observe
        progress.start(len(plan.clips), len(plan.cases), len(plan.clips) - sum(len(job.clips) for job in jobs))
        failures: dict[str, str] = {}
        broken: dict[str, str] = {}
        growing = IncrementalExport(resumed, exported)
        failed = 0  # cases
        try:
            with (
                RecordWriter(out / "records.jsonl", claims.writing, resumed.lines.read) as writer,
                JudgeSession(plan, missing, cache, judge, out / "answers.jsonl") as asking,
                Scorers(scoring_workers(here // 4, len(plan.cases)), cache, out / "units") as scorers,
            ):

                def record(case: Case) -> None:
                    known = {**failures, **asking.failures, **plan.failed_evidence(case, broken)}
                    checks = resumed.questions[case.id]
                    scorers.score(
                        scoring_input(plan, case, checks, known, resumed.verdicts(case)),
                        checks,
                        partial(recorded, case),
                    )

                def recorded(case: Case, answers: list[Record]) -> None:
                    nonlocal failed
                    writer.append(*answers)
                    account.scored(case, answers)
                    growing.after(case)
                    shared.recorded(case)
                    failed += any(answer.failed for answer in answers)

                def hear(keys: Iterable[str]) -> None:
                    for key in keys:
                        shared.after({key})
                        progress.asked(asking.done, asking.total, asking.said)

                shared = SharedWork(resumed, cache, claims, record, load_costs(cache), writer.alone, observing.hands)
                asking.recall(plan.tasks[key][2] for key in sorted(wanted))
                while (todo := shared.jobs()) is not None:
                    hear(asking.begin(None, {}))
                    for clip, outcome in observing(todo, cache, limits, networks=networks):
                        account.add(outcome)
                        account.observed(clip, outcome)
                        failures.update(outcome.failed)
                        broken.update(outcome.broken)
                        made = {task.key for task in clip.observers}
                        shared.after(made)
                        hear(asking.begin(made, failures))
                        shared.seen(clip)
                        scorers.collect()
                        if not clip.again:
                            progress.advance(clip.clip.path.name, failed)
                    scorers.collect(all=True)
                hear(asking.heard())
                scorers.collect(all=True)
                account.asked = asking.counters()
        except BaseException as error:
            account.stopped(error)
            raise
        finally:
            progress.finish()
        with claims.writing():
            results = write_summary(resumed)
            if exported is not None:
                exported(out)
            account.write(finished=time.time())
        save_costs(cache, account.costs)
        return Run(out, resumed.lines, results)


def rescore(plan: Plan, out: Path, cache: EvidenceCache | None = None) -> Run:
    """Answer every question of the plan again from cached evidence; nothing is decoded."""
    cache = cache or EvidenceCache(cache_root())
    with lock_run(out, alone=True) as entry:
        if not entry.first:
            raise RunInUse(out)
        resumed, log = reopen_run(out, plan), RunLog(out)
        log.write("started", f"all questions again from cached evidence, by revisit {__version__}")
        processes = scoring_workers(cores(), len(plan.cases))
        with RecordWriter(out / "records.jsonl") as writer, Scorers(processes, cache, out / "units") as scorers:
            for case in plan.cases:
                checks = resumed.questions[case.id]
                scorers.score(scoring_input(plan, case, checks, {}), checks, lambda answers: writer.append(*answers))
            scorers.collect(all=True)
        results = write_summary(resumed)
        log.write("finished", f"{len(plan.cases)} cases scored again")
    return Run(out, resumed.lines, results)
