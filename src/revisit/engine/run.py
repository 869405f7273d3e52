"""A run: plan → observe → score → record, in a directory that every other command reads.

Killing the process at any moment loses at most the answers being written; the same command goes on
where it stopped, and its summary is the same to the byte.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import revisit
from revisit.core import SUITES, Case, Gate, Metric, Rejected, RevisitError, UsageError
from revisit.diagnosis.summary import diagnosed, taxonomy_table
from revisit.engine.adding import earlier_plan, hash_of, joined, left_to_earlier, stale
from revisit.engine.asking import Asking
from revisit.engine.cache import EvidenceCache, cache_root
from revisit.engine.needs import observer_facts
from revisit.engine.observe import Outcome
from revisit.engine.plan import Plan
from revisit.engine.score import Bench, score_case
from revisit.engine.workers import run_jobs
from revisit.judges.settings import ChosenJudge
from revisit.media import Limits
from revisit.results import Results
from revisit.results.files import (
    SCHEMA,
    RecordWriter,
    case_from_json,
    from_line,
    latest,
    question,
    write_json,
    write_text,
)

LIBRARIES = ("numpy", "opencv-python-headless", "av", "torch", "transformers", "onnxruntime")
OURS = (
    "run.json",
    "plan.json",
    "records.jsonl",
    "answers.jsonl",
    "summary.json",
    "diagnosis.json",
    "units",
    "report",
    ".lock",
)


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


@dataclass(frozen=True)
class Run:
    """A run directory, read back."""

    path: Path

    def __post_init__(self) -> None:
        if not (self.path / "run.json").is_file():
            raise UsageError(f"{self.path} is not a run (no run.json in it); `revisit eval SOURCE --out DIR` makes one")

    @property
    def facts(self) -> dict[str, Any]:
        return self._json("run.json")

    @property
    def plan(self) -> dict[str, Any]:
        return self._json("plan.json")

    @property
    def summary(self) -> dict[str, Any]:
        return self._json("summary.json")

    @property
    def diagnosis(self) -> dict[str, Any]:
        """What each clip is found to show; empty where the suite does not ask for what a diagnosis rests on."""
        return self._json("diagnosis.json") if (self.path / "diagnosis.json").is_file() else {}

    @property
    def results(self) -> Results:
        """The newest answer to each question, in the order of the plan."""
        return results_of(self.path, self.plan)

    @property
    def exit_code(self) -> int:
        results = self.results
        return 1 if results.failures or any(not entry.missing for entry in results.rejected) else 0

    def _json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        if not path.is_file():
            raise UsageError(f"{self.path} has no {name}: the run was stopped early; run the same eval command again")
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content


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
    request: Mapping[str, Any] | None = None,
    judge: ChosenJudge | None = None,
    adds: Collection[str] | None = None,
    exported: Callable[[Path], None] | None = None,
) -> Run:
    """Answer every question of the plan that has no answer yet; return the finished run.

    With `adds`, the ids of all cases that the dataset has, what earlier calls into this folder asked of them stays part
    of the run (`revisit.engine.adding`).

    `request` is what the plan was made from; it is kept in run.json, so that the run can be scored again.
    `judge` is asked what only a judge can tell; the plan was made for it.
    `exported` is called with the folder of the run whenever the files that its suite exports were written.
    """
    limits, cache, progress = limits or Limits(), cache or EvidenceCache(cache_root()), progress or Silent()
    out.mkdir(parents=True, exist_ok=True)
    with _locked(out):
        if fresh:
            _clear(out, plan.suite.exports)
        _same_source(out, request)
        started = time.time()
        earlier = None if adds is None else earlier_plan(out, plan, adds)
        if earlier is not None:
            plan = left_to_earlier(plan, earlier)
        _forget(out, stale(earlier, plan.as_json()))
        whole = joined(earlier, plan.as_json())
        write_json(out / "plan.json", whole)
        open_questions = _open_questions(plan, out)
        missing = list(_missing_evidence(plan, open_questions, cache))
        jobs = plan.jobs(missing)
        counters = _Counters(plan, cached=len(_all_evidence(plan, open_questions)) - len(missing))
        _write_run(out, plan, whole, cache, command, request, started, None, counters, adds is not None)

        workers = _workers(workers, len(jobs))
        progress.start(len(plan.clips), len(plan.cases), len(plan.clips) - sum(len(job.clips) for job in jobs))
        failures: dict[str, str] = {}
        broken: dict[str, str] = {}
        ready = _ReadyCases(plan, open_questions, missing)
        growing = _Growing(
            plan, whole, out, {id for id, questions in open_questions.items() if not questions}, exported
        )
        try:
            with (
                RecordWriter(out / "records.jsonl") as writer,
                Asking(plan, missing, cache, judge, out / "answers.jsonl") as asking,
            ):

                def record(cases: Iterable[Case]) -> int:
                    failed = 0
                    for case in cases:
                        known = {**failures, **asking.failures, **broken_keys(plan, case, broken)}
                        bench = Bench(plan, case, cache, known)
                        answers = score_case(bench, open_questions[case.id], out / "units")
                        failed += any(answer.failed for answer in answers)
                        for answer in answers:
                            writer.append(answer)
                        growing.after(case)
                    return failed

                def hear(keys: Iterable[str]) -> int:
                    failed = 0
                    for key in keys:
                        failed += record(ready.after({key}))
                        progress.asked(asking.done, asking.total, asking.said)
                    return failed

                asking.recall(plan.tasks[key][2] for key in sorted(_all_evidence(plan, open_questions)))
                failed = record(ready.now()) + hear(asking.begin(None, {}))
                for clip, outcome in run_jobs(jobs, cache, limits, workers):
                    counters.add(outcome)
                    failures.update(outcome.failed)
                    broken.update(outcome.broken)
                    made = {task.key for task in clip.observers}
                    failed += record(ready.after(made)) + hear(asking.begin(made, failures))
                    progress.advance(clip.clip.path.name, failed)
                hear(asking.heard())
                counters.asked = asking.counters()
        finally:
            progress.finish()
        write_summary(plan, out, whole)
        if exported is not None:
            exported(out)
        _write_run(out, plan, whole, cache, command, request, started, time.time(), counters, adds is not None)
        return Run(out)


def rescore(plan: Plan, out: Path, cache: EvidenceCache | None = None) -> Run:
    """Answer every question of the plan again from cached evidence; nothing is decoded."""
    cache = cache or EvidenceCache(cache_root())
    with _locked(out):
        earlier = earlier_plan(out, plan) if Run(out).facts.get("adds") else None
        whole = joined(earlier, plan.as_json())
        write_json(out / "plan.json", whole)
        with RecordWriter(out / "records.jsonl") as writer:
            for case in plan.cases:
                for answer in score_case(Bench(plan, case, cache, {}), plan.askers_of(case), out / "units"):
                    writer.append(answer)
        write_summary(plan, out, whole)
    return Run(out)


def write_summary(plan: Plan, out: Path, whole: Mapping[str, Any]) -> None:
    """summary.json: the suite's own tables. Holds no times and no paths, so equal work gives equal bytes.

    `whole` is the content of plan.json: this plan, and what earlier calls asked besides.
    """
    results = results_of(out, whole, plan.cases)
    summary = plan.suite.summarise(results)
    found = diagnosed(results)
    if found:
        write_json(out / "diagnosis.json", found)
        words = {case: diagnosis["words"] for case, diagnosis in found["cases"].items()}
        summary["diagnosis"] = {"fitted": found["fitted"], "models": found["models"], "cases": words}
        if taxonomy := plan.suite.card.get("taxonomy"):
            groups = {case.id: (case.model, case.subset) for case in results.cases}
            summary["tables"] = [*summary.get("tables", ()), taxonomy_table(found, taxonomy, groups)]
    else:
        (out / "diagnosis.json").unlink(missing_ok=True)
    write_json(out / "summary.json", {**_facts(plan, whole), **summary})
    _drop_stale(out, plan.suite.exports, _export(plan, whole, out, results))


def _export(plan: Plan, whole: Mapping[str, Any], out: Path, results: Results) -> set[Path]:
    """Write the files that the suite makes of these results; return where they are."""
    if plan.suite.export is None:
        return set()
    finished = len(results.cases) == len(whole["cases"])
    models = sorted({entry["model"] for entry in (*whole["cases"], *whole["rejected"])} - {""})
    more = {"made_by": whole["made_by"], "parameters": plan.parameters, "finished": finished, "models": models}
    made = plan.suite.export(out, {**_facts(plan, whole), **more}, results)
    for name, content in made.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (write_text if isinstance(content, str) else write_json)(out / name, content)
    return {out / name for name in made}


def _facts(plan: Plan, whole: Mapping[str, Any]) -> dict[str, Any]:
    """What the summary and the exported files say of the run."""
    return {
        "suite": plan.suite.id,
        "protocol": f"{plan.protocol}:{hash_of(whole)}",
        "set": " + ".join(dict.fromkeys(made["set"] for made in whole["made_by"].values())) or plan.observers.id,
        "partial": whole["partial"],
        "total_cases": whole["total_cases"],
    }


class _Growing:
    """Exported files while the answers come in, for suites whose card says `grows`: rows of the cases that are done.

    They are written anew at most a tenth of the time, so that a long list of clips does not slow a run down.
    """

    def __init__(
        self,
        plan: Plan,
        whole: Mapping[str, Any],
        out: Path,
        done: set[str],
        exported: Callable[[Path], None] | None,
    ) -> None:
        self.plan, self.whole, self.out, self.done, self.exported = plan, whole, out, done, exported
        self.wanted = plan.suite.export is not None and bool(plan.suite.card.get("grows"))
        self.due = 0.0

    def after(self, case: Case) -> None:
        self.done.add(case.id)
        begun = time.monotonic()
        if not self.wanted or begun < self.due:
            return
        so_far = results_of(self.out, self.whole, self.plan.cases).only(
            lambda entry: isinstance(entry, Rejected) or entry.id in self.done
        )
        _export(self.plan, self.whole, self.out, so_far)
        if self.exported is not None:
            self.exported(self.out)
        now = time.monotonic()
        self.due = now + 9 * (now - begun)


def results_of(out: Path, plan: Mapping[str, Any], known: Iterable[Case] = ()) -> Results:
    """The results in a folder, in the order of its plan: case by case, gates before metrics.

    `known` are cases that need not be read back from the plan.
    """
    now = {case.id: case for case in known}
    cases = [now.get(entry["id"]) or case_from_json(entry) for entry in plan["cases"]]
    questions = [("gate", id) for id in plan["gates"]] + [("metric", id) for id in plan["metrics"]]
    lines = latest(out / "records.jsonl")
    return Results(
        cases,
        [
            from_line(lines[case.id, kind, id], case)
            for case in cases
            for kind, id in questions
            if (case.id, kind, id) in lines
        ],
        [Rejected(**entry) for entry in plan["rejected"]],
        asks=SUITES[plan["suite"]].asks if plan["suite"] in SUITES else lambda question, entry: True,
        folder=out,
        name=out.resolve().name,
    )


class _ReadyCases:
    """Tells which cases can be scored once some evidence has been made or given up."""

    def __init__(self, plan: Plan, questions: Mapping[str, Sequence[Any]], missing: Sequence[str]) -> None:
        missing_keys = set(missing)
        self.waiting = {
            case.id: (case, missing_keys & set(plan.wanted[case.id].all_keys))
            for case in plan.cases
            if questions[case.id]
        }

    def now(self) -> Iterator[Case]:
        return self.after(set())

    def after(self, keys: set[str]) -> Iterator[Case]:
        for id, (case, missing) in list(self.waiting.items()):
            missing -= keys
            if not missing:
                del self.waiting[id]
                yield case


class _Counters:
    """Proof of how often things were done in this invocation; goes to run.json."""

    def __init__(self, plan: Plan, cached: int) -> None:
        self.plan, self.cached = plan, cached
        self.decodes: Counter[str] = Counter()
        self.frames = 0
        self.runs: Counter[tuple[str, str]] = Counter()
        self.seconds: dict[str, float] = {}
        self.notes: dict[str, tuple[str, ...]] = {}
        self.devices: set[str] = set()
        self.asked: dict[str, Any] = {}  # what a judge was asked, and what it cost

    def add(self, outcome: Outcome) -> None:
        self.decodes.update(outcome.decoded)
        self.frames += outcome.frames
        self.devices |= {outcome.device} - {""}
        for clip, runs in outcome.runs.items():
            self.runs.update({(clip, key): count for key, count in runs.items()})
        for key, seconds in outcome.made.items():
            observer = self.plan.tasks[key][2].observer
            self.seconds[observer] = self.seconds.get(observer, 0.0) + seconds
        self.notes.update({clip: notes for clip, notes in outcome.notes.items() if notes})

    def as_json(self) -> dict[str, Any]:
        per_observer: Counter[str] = Counter()
        for (_, key), count in self.runs.items():
            per_observer[self.plan.tasks[key][2].observer] += count
        return {
            "clips_decoded": len(self.decodes),
            "decodes": sum(self.decodes.values()),
            "frames_decoded": self.frames,
            "most_decodes_of_one_clip": max(self.decodes.values(), default=0),
            "observer_runs": dict(sorted(per_observer.items())),
            "most_runs_of_one_observer_on_one_clip": max(self.runs.values(), default=0),
            "evidence_from_cache": self.cached,
            "observer_seconds": {id: round(seconds, 3) for id, seconds in sorted(self.seconds.items())},
            **({"networks_on": sorted(self.devices)} if self.devices else {}),
            **({"judge": self.asked} if self.asked else {}),
        }


def _open_questions(plan: Plan, out: Path) -> dict[str, list[Metric | Gate]]:
    """Questions without a valid answer, per case; failures are asked again."""
    known = latest(out / "records.jsonl")
    todo: dict[str, list[Metric | Gate]] = {}
    for case in plan.cases:
        todo[case.id] = []
        for asker in plan.askers_of(case):
            kind = "metric" if isinstance(asker, Metric) else "gate"
            line = known.get((case.id, kind, asker.id))
            valid = (
                line is not None
                and line.get("schema") == SCHEMA  # earlier answers have no kinds of reasons
                and line["status"] != "failed"
                and line["key"] == plan.record_key(case, asker)
            )
            if not valid:
                todo[case.id].append(asker)
    return todo


def _all_evidence(plan: Plan, questions: Mapping[str, Sequence[Any]]) -> set[str]:
    return {key for case in plan.cases if questions[case.id] for key in plan.wanted[case.id].all_keys}


def _missing_evidence(plan: Plan, questions: Mapping[str, Sequence[Any]], cache: EvidenceCache) -> Iterator[str]:
    wanted = _all_evidence(plan, questions)
    return (key for key in plan.tasks if key in wanted and key not in cache)


def broken_keys(plan: Plan, case: Case, broken: Mapping[str, str]) -> dict[str, str]:
    """The sentence for each piece of evidence that a broken clip or reference leaves unmade."""
    found = {}
    for key in plan.wanted[case.id].keys.values():
        owner, _, task = plan.tasks[key]
        if owner in broken:
            found[key] = broken[owner]
        elif task.reference is not None and task.reference in broken:
            found[key] = f"the reference cannot be read: {broken[task.reference]}"
    return found


def _workers(asked: int | None, jobs: int) -> int:
    if asked is not None:
        if asked < 0:
            raise UsageError(f"--workers takes 0 (in this process) or a number of processes, not {asked}")
        return min(asked, jobs) if jobs else 0
    return max(1, min(os.cpu_count() or 1, jobs, 16)) if jobs else 0


def _forget(out: Path, questions: set[tuple[str, str]]) -> None:
    """Take answers that do not hold any more out of the records."""
    if not questions:
        return
    lines = (out / "records.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if question(json.loads(line))[::2] not in questions]
    write_text(out / "records.jsonl", "".join(kept))


def _write_run(
    out: Path,
    plan: Plan,
    whole: Mapping[str, Any],
    cache: EvidenceCache,
    command: str,
    request: Mapping[str, Any] | None,
    started: float,
    finished: float | None,
    counters: _Counters,
    adds: bool = False,
) -> None:
    path = out / "run.json"
    earlier = json.loads(path.read_text(encoding="utf-8")).get("invocations", []) if path.is_file() else []
    earlier = [entry for entry in earlier if entry["started"] != _clock(started)]
    invocation: dict[str, Any] = {
        "command": command,
        "started": _clock(started),
        "finished": None if finished is None else _clock(finished),
        "seconds": None if finished is None else round(finished - started, 2),
        "counters": counters.as_json(),
    }
    write_json(
        path,
        {
            "revisit": revisit.__version__,
            "suite": plan.suite.id,
            "set": plan.observers.id,
            "request": request,
            **({"adds": True} if adds else {}),
            "protocol": {
                "name": plan.protocol,
                "hash": hash_of(whole),
                "parameters": plan.parameters,
                "align": plan.align,
                "judge": plan.observers.judge,
                "metrics": whole["metrics"],
                "gates": whole["gates"],
                "made_by": whole["made_by"],
                "observers": {
                    id: observer_facts(observer, plan.parameters)
                    for id, observer in sorted(plan.observers.roles.items())
                },
            },
            "environment": environment(),
            "cache": str(cache.root.resolve()),
            "notes": {clip: list(notes) for clip, notes in sorted(counters.notes.items())},
            "counters": invocation["counters"],
            "invocations": [*earlier, invocation][-50:],
        },
    )


def environment() -> dict[str, Any]:
    """Versions and host, for whoever must explain a difference later."""
    libraries = {}
    for name in LIBRARIES:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            libraries[name] = "not installed"
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": platform.node(),
        "cores": os.cpu_count(),
        "libraries": libraries,
        "executable": sys.executable,
    }


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Only one process writes to a run at a time; the lock goes with the process."""
    with (out / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RevisitError(f"{out}: another process writes to this run; wait, or choose another --out") from error
        yield


def _same_source(out: Path, request: Mapping[str, Any] | None) -> None:
    """Refuse to mix the answers of two datasets in one run."""
    path = out / "run.json"
    if request is None or not path.is_file():
        return
    earlier = json.loads(path.read_text(encoding="utf-8")).get("request") or {}
    if earlier and earlier["source"] != request["source"]:
        raise UsageError(f"{out} holds a run of {earlier['source']}; choose another --out, or --fresh to replace it")


def _drop_stale(out: Path, exports: Sequence[str], current: set[Path]) -> None:
    """Remove from exported folders what this invocation did not write: files of models or protocols now gone."""
    for folder in [found for pattern in exports for found in out.glob(pattern) if found.is_dir()]:
        for path in folder.rglob("*"):
            if path.is_file() and path not in current:
                path.unlink()


def _clear(out: Path, exports: Sequence[str]) -> None:
    """Remove what earlier invocations wrote, and nothing else."""
    for path in [out / name for name in OURS] + [found for pattern in exports for found in out.glob(pattern)]:
        if path.name == ".lock":
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
