"""Observing on a Ray cluster: jobs are tasks with the processors, GPUs and memory that they need.

Paths travel, frames do not: a node decodes the clips itself and writes evidence into the cache, so that videos and
cache lie on a folder that all nodes reach. Ray places the tasks, and does those of a lost node again. Scoring stays
with the process that has the run. Jobs with networks go to actors that hold a GPU each and keep their weights.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from revisit.core import MissingPrerequisite, UsageError
from revisit.engine.cache import EvidenceCache
from revisit.engine.jobs import ClipTask, ObserverTask, ObservingJob
from revisit.engine.observe import Outcome, observe_job
from revisit.engine.worker_processes import (
    BLAS_THREADS,
    broken_outcomes,
    can_import_observers,
    one_network_task_per_observer,
)
from revisit.media import Limits
from revisit.networks import settings

GIB = 1 << 30
MEMORY = GIB  # of a task, in Ray's books: a worker that decodes 1080p stays below it
RETRIES = 3  # of a job whose node or process is lost; then it is the clip that kills them
AHEAD = 2  # tasks per processor that wait at the cluster: enough that none is idle, and few to lose
UNKNOWN = (
    "the nodes of the cluster cannot import what observes it, so that this process did; install its module on all nodes"
)
HINT = "start one with `ray start --head`, and see docs/scale.md"


@dataclass(frozen=True)
class OnRay:
    """An executor: the cluster at `address`, or one on this machine for this run; `workers` bounds tasks at a time."""

    address: str = ""
    workers: int | None = None

    def __call__(
        self, jobs: Iterator[ObservingJob], cache: EvidenceCache, limits: Limits, *, networks: Sequence[ObserverTask]
    ) -> Iterator[tuple[ClipTask, Outcome]]:
        first = next(jobs, None)  # a run that has all evidence needs no cluster
        if first is None:
            return
        ray = _connect_to_ray(self.address)
        pending: dict[Any, tuple[ObservingJob, Any]] = {}  # task -> its job, and its actor if it has one
        gpus = int(ray.cluster_resources().get("GPU", 0)) if networks else 0
        environment = _worker_environment()
        task = ray.remote(num_cpus=1, memory=MEMORY, max_retries=RETRIES, runtime_env=environment)(_observe_job)
        lost = {"max_restarts": -1, "max_task_retries": RETRIES}
        make_actor = ray.remote(num_gpus=1, num_cpus=1, runtime_env=environment, **lost)(_Observer).remote
        further = (make_actor() for _ in range(gpus))  # an actor for each GPU, made when there is work for it
        free: list[Any] = []
        waiting: list[ObservingJob] = [first]
        try:
            while True:
                most = self.workers or AHEAD * self.jobs_at_a_time()
                while len(pending) < most and (job := waiting.pop() if waiting else next(jobs, None)) is not None:
                    if gpus and one_network_task_per_observer([job]):
                        actor = free.pop() if free else next(further, None)
                        if actor is None:
                            waiting.append(job)
                            break
                        pending[actor.observed.remote(job, cache, limits)] = job, actor
                    else:
                        pending[task.remote(job, cache, limits)] = job, None
                if not pending:
                    return
                done, _ = ray.wait(list(pending), num_returns=1)
                job, actor = pending.pop(done[0])
                if actor is not None:
                    free.append(actor)
                yield from _outcomes_of_ray_task(ray, done[0], job, cache, limits)
        finally:
            for left in pending:
                ray.cancel(left, force=pending[left][1] is None)

    def jobs_at_a_time(self) -> int:
        return self.workers or max(1, int(_connect_to_ray(self.address).cluster_resources().get("CPU", 1)))


class _Observer:
    """Lives on a node, with the networks that it has loaded."""

    def observed(self, job: ObservingJob, cache: EvidenceCache, limits: Limits) -> list[Outcome] | None:
        return _observe_job(job, cache, limits)


def _observe_job(job: ObservingJob, cache: EvidenceCache, limits: Limits) -> list[Outcome] | None:
    """What became of the clips of a job; None where the node cannot import its observers."""
    if not can_import_observers(job):
        return None
    return [outcome for _, outcome in observe_job(job, cache, limits)]


def _outcomes_of_ray_task(
    ray: Any, task: Any, job: ObservingJob, cache: EvidenceCache, limits: Limits
) -> Iterator[tuple[ClipTask, Outcome]]:
    try:
        outcomes = ray.get(task)
        if outcomes is not None:
            yield from zip(job.clips, outcomes, strict=True)
            return
        for clip, outcome in observe_job(job, cache, limits):  # by this process, which knows them
            outcome.notes[clip.digest] = (*outcome.notes.get(clip.digest, ()), UNKNOWN)
            yield clip, outcome
    except (ray.exceptions.RayTaskError, ray.exceptions.RuntimeEnvSetupError):
        raise  # a fault of ours, or of the setup of the cluster: no clip is to blame
    except ray.exceptions.RayError as error:
        lost = type(error).__name__
        sentence = (
            f"the node or process that observed this clip was lost {RETRIES + 1} times ({lost}); run the same command "
            "again, and look at the memory of the nodes"
        )
        yield from broken_outcomes(job.clips, sentence)


def _connect_to_ray(address: str) -> Any:
    try:
        import ray
    except ImportError:
        raise MissingPrerequisite("--executor ray needs Ray: pip install 'revisit-bench[ray]'") from None
    if not ray.is_initialized():
        try:
            ray.init(address=address or None, log_to_driver=False, logging_level="error", include_dashboard=False)
        except (ConnectionError, ValueError) as error:
            where = f"--address {address}" if address else "this machine"
            raise UsageError(f"{where}: no Ray cluster answers there; {HINT}") from error
    return ray


def _worker_environment() -> dict[str, dict[str, str]]:
    """What workers on all nodes must have as this process has it: settings of networks, one thread for each sum."""
    names = [name for name in (*settings.NAMES, "REVISIT_CACHE") if os.environ.get(name)]
    return {"env_vars": {**{name: os.environ[name] for name in names}, **dict.fromkeys(BLAS_THREADS, "1")}}
