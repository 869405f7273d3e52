"""Executors: who observes the clips of a run. The processes of this machine (`Local`), or `on_ray.OnRay`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from revisit.core import UsageError
from revisit.engine.cache import EvidenceCache
from revisit.engine.jobs import ClipTask, ObserverTask, ObservingJob
from revisit.engine.observe import Outcome
from revisit.engine.worker_processes import run_jobs
from revisit.media import Limits

NAMES = ("local", "ray")


class Executor(Protocol):
    """Takes jobs as it has room for them, and tells what became of each clip as they get done.

    Evidence goes into the cache, which all machines must reach. `networks` are the tasks with networks, one for each
    observer.
    """

    def __call__(
        self, jobs: Iterator[ObservingJob], cache: EvidenceCache, limits: Limits, *, networks: Sequence[ObserverTask]
    ) -> Iterator[tuple[ClipTask, Outcome]]: ...

    def hands(self) -> int:
        """How many jobs it works on at a time; asked only when there is one."""
        ...


@dataclass(frozen=True)
class Local:
    """So many processes of this machine; with 0, this one."""

    workers: int

    def __call__(
        self, jobs: Iterator[ObservingJob], cache: EvidenceCache, limits: Limits, *, networks: Sequence[ObserverTask]
    ) -> Iterator[tuple[ClipTask, Outcome]]:
        return run_jobs(jobs, cache, limits, self.workers, networks)

    def hands(self) -> int:
        return max(1, self.workers)


def find_executor(name: str, address: str = "", workers: int | None = None) -> Executor | None:
    """The executor of this name; None for the one that a run has by default."""
    if name not in NAMES:
        raise UsageError(f"--executor takes {' or '.join(NAMES)}, not {name!r}")
    if name == "local":
        if address:
            raise UsageError("--address is that of a Ray cluster; add --executor ray")
        return None
    from revisit.engine.ray_executor import OnRay

    return OnRay(address, workers)
