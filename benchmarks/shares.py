"""Whose processor time it is: decoding, observers, metrics, and the parts of the engine, in all processes of a run."""

from __future__ import annotations

import functools
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import processor_time

FOLDER = "REVISIT_SHARES"  # where workers write what they spent


class Shares:
    """Seconds of this process by name: what is called within something else is charged to the inner of the two."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._within: list[str] = []
        self._since = 0.0

    def _charge(self) -> None:
        now = time.process_time()
        if self._within:
            self.spent[self._within[-1]] += now - self._since
        self._since = now

    def of(self, name: str, fn: Any) -> Any:
        """The same function, whose time is added up under a name."""

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._charge()
            self._within.append(name)
            try:
                return fn(*args, **kwargs)
            finally:
                self._charge()
                self._within.pop()

        return call


def measured_here() -> Shares:
    """Measure decoding, observers, packing and reading of evidence in this process from now on."""
    from revisit.engine import observe
    from revisit.engine.cache import EvidenceCache

    shares = Shares()
    opening, starting = observe.open_clip, observe.start_observer

    class Opened:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.stream = shares.of("decoding", opening)(*args, **kwargs)

        def __enter__(self) -> Any:
            shares.of("decoding", self.stream.__enter__)()
            return self

        def __exit__(self, *error: Any) -> Any:
            return shares.of("decoding", self.stream.__exit__)(*error)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.stream, name)

        def __iter__(self) -> Iterator[Any]:
            frames = iter(self.stream)
            following = shares.of("decoding", next)
            while (frame := following(frames, None)) is not None:
                yield frame

    class Started:
        def __init__(self, running: Any) -> None:
            self.see = shares.of("observers", running.see)
            self.finish = shares.of("observers", running.finish)

    observe.open_clip = Opened  # type: ignore[assignment]
    observe.start_observer = lambda *args: Started(shares.of("observers", starting)(*args))
    for part, name in (
        ("packing evidence", "save"),
        ("reading evidence", "load"),
        ("reading evidence", "verify_or_drop"),
    ):
        setattr(EvidenceCache, name, shares.of(part, getattr(EvidenceCache, name)))
    return shares


def measured_scoring() -> Shares:
    """Measure metrics, and what they leave behind, too."""
    from revisit.core import DERIVED, GATES, METRICS, import_registering_modules
    from revisit.engine import score

    import_registering_modules()
    shares = measured_here()
    for registry in (METRICS, GATES, DERIVED):
        for entry in registry.values():
            object.__setattr__(entry, "fn", shares.of("metrics", entry.fn))
    score.save_npz = shares.of("values behind scores", score.save_npz)
    shares.spent["start"] = time.process_time()
    return shares


@functools.cache
def of_this_scorer() -> Shares:
    return measured_scoring()


def scored(*args: Any) -> Any:
    """A case as a scorer scores it, who tells after each one what it has spent."""
    from revisit.engine import score as scoring

    shares = of_this_scorer()
    found = scoring._score_case_in_worker(*args)
    (Path(os.environ[FOLDER]) / f"{os.getpid()}.json").write_text(json.dumps(shares.spent))
    return found


def work(*args: Any) -> None:
    """A worker that measures itself, and tells after each job what it has spent."""
    started = time.process_time()
    from revisit.engine import worker_processes

    shares, observing = measured_here(), worker_processes.observe_job
    shares.spent["start of workers"] = time.process_time()  # of the process: Python and imports, too
    shares._since = started

    def told(*job: Any) -> Iterator[Any]:
        yield from observing(*job)
        path = Path(os.environ[FOLDER]) / f"{os.getpid()}.json"
        path.write_text(json.dumps(_with_children(shares.spent)))

    worker_processes.observe_job = told  # type: ignore[assignment]
    worker_processes._observe_jobs_in_child(*args)


def _with_children(spent: dict[str, float]) -> dict[str, float]:
    """The same, where the processes that this one started decode."""
    return {**spent, "decoding": spent.get("decoding", 0.0) + processor_time.of_children()}


def run_apart(videos: Path, run: Path, without: Sequence[str] = (), workers: int = 0, **options: Any) -> None:
    """Evaluate as the command does; print what each part took, in this process and those it started.

    Options go to the request. `all` is the processor time of all processes, from the start of each to its end.
    """
    from revisit.core import SUITES
    from revisit.engine import run as running
    from revisit.engine import score as scoring
    from revisit.engine import worker_processes as processes
    from revisit.engine.request import Request
    from revisit.media import decoder_process
    from revisit.report.write_html import write_report

    processor_time.adopt()
    shares = measured_scoring()
    running.write_result_files = shares.of("summary", running.write_result_files)
    processes._observe_jobs_in_child = work  # type: ignore[assignment]
    scoring._score_case_in_worker = scored  # type: ignore[assignment]
    folder = run.parent / "shares"
    folder.mkdir(exist_ok=True)
    os.environ[FOLDER] = str(folder)
    suite = SUITES["folder"]
    if without:
        options["metrics"] = [id for id in (*suite.metrics(), *suite.card.get("gates", ())) if id not in without]
    request = Request.from_options(videos, **options)
    plan = shares.of("plan", type(request).plan)
    type(request).plan = plan  # type: ignore[method-assign]
    made = request.run(run, workers=workers)
    shares.of("page", write_report)(made)
    parts = [shares.spent if workers else _with_children(shares.spent)]
    for path in folder.iterdir():
        parts.append(json.loads(path.read_text()))
        path.unlink()
    spent = {name: sum(part.get(name, 0.0) for part in parts) for name in dict.fromkeys(n for p in parts for n in p)}
    for server in decoder_process._servers.values():  # processor time of those that have ended counts as ours
        server._requests.close()
        server._process.wait()
    processor_time.wait_for_decoders()
    print(json.dumps({**spent, "all": processor_time.so_far()}))
