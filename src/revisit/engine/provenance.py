"""The account of a run. run.json: what was evaluated, by which version on which machine, and how much work was done.

run.log: what was done in the run directory, when and by whom; a line per event, appended by every invocation. A line is
one write at the end of the file, so that those of several processes that share a run never mix.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from revisit._version import __version__
from revisit.core import Case, Record
from revisit.core.text import format_error_on_one_line, printable_text
from revisit.engine.availability import observed_by_sets_text
from revisit.engine.cache import EvidenceCache
from revisit.engine.costs import DECODING, SCORING, Costs, CostSums
from revisit.engine.dependencies import observer_facts
from revisit.engine.jobs import ClipTask
from revisit.engine.observe import Outcome
from revisit.engine.resume import ResumedRun, hash_of_metrics_and_gates, read_json_object_or_empty
from revisit.media import decoding_build
from revisit.networks import settings
from revisit.results.file_types import Details, Invocation, ProtocolEntry, RunFile
from revisit.results.record_files import write_json

LIBRARIES = ("numpy", "opencv-python-headless", "av", "torch", "transformers", "onnxruntime", "openvino")


@dataclass
class InvocationLog:
    """The account of one invocation: what was asked, and proof of how often things were done."""

    resumed: ResumedRun
    cache: EvidenceCache
    command: str
    request: Details | None
    cached: int  # pieces of evidence that were there
    adds: bool
    started: float = field(default_factory=time.time)
    decodes: Counter[str] = field(default_factory=Counter)
    frames: int = 0
    runs: Counter[tuple[str, str]] = field(default_factory=Counter)
    costs: CostSums = field(default_factory=lambda: defaultdict(lambda: np.zeros(4)))
    clip_costs: Costs = field(default_factory=lambda: Costs({}))
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    devices: set[str] = field(default_factory=set)
    cache_problems: dict[str, str] = field(default_factory=dict)  # kind -> sentence
    asked: Details = field(default_factory=dict)  # what a judge was asked, and what it cost

    def __post_init__(self) -> None:
        """Log what is run, by which versions, and on what."""
        self.plan, self.log = self.resumed.plan, RunLog(self.resumed.folder)
        plan, machine = self.plan, describe_environment()
        versions = ", ".join(f"{name} {number}" for name, number in machine["libraries"].items())
        self.log.write("started", self.command or "from Python")
        self.log.write(
            "versions", f"revisit {__version__}, Python {machine['python']}, {machine['platform']}, {versions}"
        )
        self.log.write(
            "plan",
            f"suite {plan.suite.id}, protocol {plan.protocol}:{hash_of_metrics_and_gates(self.resumed.whole)}, set "
            f"{plan.observers.id}, {len(plan.cases)} cases, {len(plan.clips)} clips, {self.cached} of "
            f"{len(plan.tasks)} pieces of evidence known, {len(plan.rejected)} entries rejected",
        )
        for sentence in (*plan.remarks, plan.availability.missing_observers_sentence, *plan.unreadable.values()):
            if sentence:
                self.log.write("note", sentence)

    def log_early_end(self, error: BaseException) -> None:
        """Log that the work ended early, and why."""
        self.log.write(
            "stopped", "interrupted" if isinstance(error, KeyboardInterrupt) else format_error_on_one_line(error)
        )

    def add_outcome(self, outcome: Outcome) -> None:
        self.decodes.update(outcome.decoded)
        self.runs.update(outcome.runs)
        self.frames += outcome.frames
        self.devices |= {outcome.device} - {""}
        self.log_cache_problems(outcome.cache_problems)
        for key, seconds in outcome.made.items():
            observer = self.plan.tasks[key][2].observer
            evidence = 0
            with suppress(OSError):  # a cache elsewhere
                evidence = self.cache.path(key).stat().st_size
            self.costs[observer] += seconds, outcome.frames, outcome.megapixels, evidence
        if outcome.frames:
            self.costs[DECODING] += outcome.decoding, outcome.frames, outcome.megapixels, 0
        self.notes.update({clip: notes for clip, notes in outcome.notes.items() if notes})
        for sentence in (*outcome.broken.values(), *outcome.failed.values()):
            self.log.write("failed", sentence)

    def log_cache_problems(self, problems: Mapping[str, str]) -> None:
        """Note each kind of trouble with the cache once."""
        for sentence in (text for kind, text in problems.items() if kind not in self.cache_problems):
            self.log.write("note", sentence)
        self.cache_problems = {**problems, **self.cache_problems}
        if self.cache_problems:
            self.notes["cache"] = tuple(self.cache_problems.values())

    def log_observed_clip(self, clip: ClipTask, outcome: Outcome) -> None:
        """Log a clip that was observed, and what it took."""
        if clip.digest in outcome.broken:
            return
        seconds = outcome.decoding + sum(outcome.made.values())
        remarks = "".join(f"; {note}" for note in outcome.notes.get(clip.digest, ()))
        self.log.write("observed", f"{clip.clip.path}, {outcome.frames} frames in {seconds:.1f} s{remarks}")

    def add_scoring_seconds(self, case: Case, answers: Sequence[Record]) -> None:
        """Count what the answers about a case took."""
        frames = self.clip_costs.frames(case.clip)
        if frames:
            self.costs[SCORING] += sum(answer.seconds for answer in answers), frames, 0, 0

    def work_counters(self) -> dict[str, object]:
        """How often things were done."""
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
            "observer_seconds": {
                id: round(float(sums[0]), 3) for id, sums in sorted(self.costs.items()) if id not in (DECODING, SCORING)
            },
            **({"networks_on": sorted(self.devices)} if self.devices else {}),
            **({"judge": self.asked} if self.asked else {}),
        }

    def write_run_json(self, finished: float | None = None) -> None:
        """Write run.json; it keeps the accounts of earlier invocations."""
        self.log_cache_problems(self.cache.problems)
        path, plan, whole = self.resumed.folder / "run.json", self.plan, self.resumed.whole
        earlier = read_json_object_or_empty(path).get("invocations", [])
        earlier = [entry for entry in earlier if entry.get("started") != utc_timestamp_text(self.started)]
        counters = self.work_counters()
        invocation: Invocation = {
            "command": self.command,
            "started": utc_timestamp_text(self.started),
            "finished": None if finished is None else utc_timestamp_text(finished),
            "seconds": None if finished is None else round(finished - self.started, 2),
            "counters": counters,
        }
        decoding = plan.observers.decoding
        protocol: ProtocolEntry = {
            "name": plan.protocol,
            "hash": hash_of_metrics_and_gates(whole),
            "parameters": dict(plan.parameters),
            "align": plan.align,
            "judge": plan.observers.judge,
            "metrics": whole["metrics"],
            "gates": whole["gates"],
            "made_by": whole["made_by"],
            "observers": {
                id: observer_facts(o, plan.parameters, decoding) for id, o in sorted(plan.observers.roles.items())
            },
            **({"decoded_by": decoding_build(decoding)} if decoding else {}),
        }
        content: RunFile = {
            "revisit": __version__,
            "suite": plan.suite.id,
            "set": plan.observers.id,
            "observed_by": observed_by_sets_text(whole),
            "request": self.request,
            **({"adds": True} if self.adds else {}),
            "protocol": protocol,
            "environment": describe_environment(),
            "cache": str(self.cache.root.resolve()),
            "notes": {clip: list(notes) for clip, notes in sorted(self.notes.items())},
            "counters": counters,
            "invocations": [*earlier, invocation][-50:],
        }
        write_json(path, content)
        if finished is not None:
            judged = f", judge {self.asked}" if self.asked else ""
            self.log.write(
                "finished",
                f"in {finished - self.started:.1f} s, {counters['clips_decoded']} clips and "
                f"{counters['frames_decoded']} frames decoded{judged}",
            )


def installed_version_or_empty(package: str) -> str:
    """The version of a package; nothing where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def describe_environment() -> dict[str, Any]:
    """Versions and host, for whoever must explain a difference later."""
    libraries = {name: installed_version_or_empty(name) or "not installed" for name in LIBRARIES}
    if settings.openvino_mode() == "off":
        libraries["openvino"] = "not used"
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": platform.node(),
        "cores": os.cpu_count(),
        "libraries": libraries,
        "executable": sys.executable,
    }


def utc_timestamp_text(seconds: float) -> str:
    """A time as files of a run say it."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")


class RunLog:
    """The log of a run directory.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> log = RunLog(Path(mkdtemp()))
    >>> log.write("note", "gt is taken as the truth")
    >>> log.path.read_text().split(" ", 2)[2]
    'note: gt is taken as the truth\\n'
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "run.log"
        self.process = f"{platform.node()}:{os.getpid()}"

    def write(self, event: str, text: str = "") -> None:
        """Append `time host:process event: text` as one line. A log that cannot be written costs the run nothing."""
        line = " ".join(
            [utc_timestamp_text(time.time()), self.process, f"{event}: {printable_text(text)}" if text else event]
        )
        with suppress(OSError), self.path.open("ab", buffering=0) as file:
            file.write(f"{line}\n".encode(errors="replace"))
