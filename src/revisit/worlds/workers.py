"""Jobs in parallel processes, with a progress message for every step."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any, TypeVar

from revisit.core.concurrency import cores

StepCallback = Callable[[str], None]
Progress = Callable[[int, int, str], None]  # (steps done, steps in all, what was done)
Job = TypeVar("Job")
Made = TypeVar("Made")


def run_in_processes(
    work: Callable[[Job, StepCallback], Made],
    jobs: Sequence[Job],
    workers: int | None,
    total_steps: int,
    progress: Progress | None,
) -> list[Made]:
    """What `work`, a function of a module, makes of each job, in their order; it tells of each of its steps.

    `workers` processes take a job each, by default as many as cores; below two, all is done in this process.
    """
    done = 0

    def count_step(what: str) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total_steps, what)

    workers = min(cores() if workers is None else workers, len(jobs))
    if workers < 2:
        return [work(job, count_step) for job in jobs]
    context = multiprocessing.get_context("spawn")  # OpenCV and libav do not survive a fork
    messages = context.SimpleQueue()
    with ProcessPoolExecutor(workers, context, _init_worker, (messages,)) as pool:
        futures = [pool.submit(_run_job_in_worker, work, job) for job in jobs]
        waiting: set[Future[Made]] = set(futures)
        try:
            while waiting:
                ended, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                while not messages.empty():  # what a job said is there before its result
                    count_step(messages.get())
                for future in ended:
                    future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return [future.result() for future in futures]


_said: Any = None  # a worker's line to the process that started it


def _init_worker(messages: Any) -> None:
    import cv2
    from threadpoolctl import threadpool_limits

    global _said
    _said = messages
    cv2.setNumThreads(1)
    threadpool_limits(1, "blas")


def _run_job_in_worker(work: Callable[[Job, StepCallback], Made], job: Job) -> Made:
    return work(job, _said.put)
