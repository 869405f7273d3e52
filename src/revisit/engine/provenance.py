"""run.json: what was evaluated, by which version on which machine, and how much work was done."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections import Counter
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version

from revisit._version import __version__
from revisit.core.text import parse_json
from revisit.engine.availability import caption
from revisit.engine.cache import EvidenceCache
from revisit.engine.dependencies import observer_facts
from revisit.engine.observe import Outcome
from revisit.engine.resume import ResumedRun
from revisit.media import decoding_build
from revisit.networks import settings
from revisit.results.file_types import Details, Invocation, ProtocolEntry, RunFile
from revisit.results.record_files import write_json

LIBRARIES = ("numpy", "opencv-python-headless", "av", "torch", "transformers", "onnxruntime", "openvino")


class InvocationLog:
    """The account of one invocation: what was asked, and proof of how often things were done."""

    def __init__(
        self,
        begun: ResumedRun,
        cache: EvidenceCache,
        command: str,
        request: Details | None,
        *,
        cached: int,
        adds: bool,
    ) -> None:
        self.begun, self.plan, self.cache = begun, begun.plan, cache
        self.command, self.request, self.cached, self.adds = command, request, cached, adds
        self.started = time.time()
        self.decodes: Counter[str] = Counter()
        self.frames = 0
        self.runs: Counter[tuple[str, str]] = Counter()
        self.seconds: dict[str, float] = {}  # by observer, as is the next
        self.watched: Counter[str] = Counter()  # frames of the clips that it was shown
        self.notes: dict[str, tuple[str, ...]] = {}
        self.devices: set[str] = set()
        self.asked: Details = {}  # what a judge was asked, and what it cost

    def add(self, outcome: Outcome) -> None:
        self.decodes.update(outcome.decoded)
        self.frames += outcome.frames
        self.devices |= {outcome.device} - {""}
        for clip, runs in outcome.runs.items():
            self.runs.update({(clip, key): count for key, count in runs.items()})
        for key, seconds in outcome.made.items():
            observer = self.plan.tasks[key][2].observer
            self.seconds[observer] = self.seconds.get(observer, 0.0) + seconds
            self.watched[observer] += outcome.frames
        self.notes.update({clip: notes for clip, notes in outcome.notes.items() if notes})

    def counters(self) -> dict[str, object]:
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
            "observer_seconds": {id: round(seconds, 3) for id, seconds in sorted(self.seconds.items())},
            **({"networks_on": sorted(self.devices)} if self.devices else {}),
            **({"judge": self.asked} if self.asked else {}),
        }

    def write(self, finished: float | None = None) -> None:
        """Write run.json; it keeps the accounts of earlier invocations."""
        path, plan, whole = self.begun.folder / "run.json", self.plan, self.begun.whole
        earlier = parse_json(path.read_text(encoding="utf-8")).get("invocations", []) if path.is_file() else []
        earlier = [entry for entry in earlier if entry["started"] != _clock(self.started)]
        counters = self.counters()
        invocation: Invocation = {
            "command": self.command,
            "started": _clock(self.started),
            "finished": None if finished is None else _clock(finished),
            "seconds": None if finished is None else round(finished - self.started, 2),
            "counters": counters,
        }
        decoding = plan.observers.decoding
        protocol: ProtocolEntry = {
            "name": plan.protocol,
            "hash": self.begun.hash(),
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
            "observed_by": caption(whole),
            "request": self.request,
            **({"adds": True} if self.adds else {}),
            "protocol": protocol,
            "environment": environment(),
            "cache": str(self.cache.root.resolve()),
            "notes": {clip: list(notes) for clip, notes in sorted(self.notes.items())},
            "counters": counters,
            "invocations": [*earlier, invocation][-50:],
        }
        write_json(path, content)


def environment() -> dict[str, object]:
    """Versions and host, for whoever must explain a difference later."""
    libraries = {}
    for name in LIBRARIES:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            libraries[name] = "not installed"
    if settings.openvino() == "off":
        libraries["openvino"] = "not used"
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
