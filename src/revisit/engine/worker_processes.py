"""Worker processes: jobs in, outcomes out; a worker that dies loses only its current job.

A host of networks that dies loses the clips that it was shown, and is started again. A process that somebody stopped is
told to go on: nobody else would tell it, and all would wait for it.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import cycle
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

from revisit.core import RevisitError, UsageError
from revisit.core.concurrency import signal_name, start_thread
from revisit.engine.cache import EvidenceCache
from revisit.engine.inference_client import Address, HostConnection, runs_at_host
from revisit.engine.jobs import ClipTask, ObserverTask, ObservingJob, observer_of
from revisit.engine.observe import Outcome, observe_job
from revisit.media import Limits
from revisit.networks import settings
from revisit.networks.settings import DEVICE

AWAKE = 2.0  # seconds after which processes that were stopped go on
RESTARTS = 3  # of a host; one that dies more often would go on so
COURTESY = 5  # added to the niceness of workers that feed a host: it must never wait for a core, or its GPU waits
# Spawned, not forked: a forked child inherits the locks of OpenCV's and libav's threads.
SPAWN = multiprocessing.get_context("spawn")
_environment = threading.RLock()
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class Executor(Protocol):
    """Takes jobs as it has room for them, and tells what became of each clip as they get done.

    Evidence goes into the cache, which all machines must reach. `networks` are the tasks with networks, one for each
    observer. There are the processes of this machine (`Local`), and `ray_executor.OnRay`.
    """

    def __call__(
        self, jobs: Iterator[ObservingJob], cache: EvidenceCache, limits: Limits, *, networks: Sequence[ObserverTask]
    ) -> Iterator[tuple[ClipTask, Outcome]]: ...

    def jobs_at_a_time(self) -> int:
        """How many jobs it works on at a time; asked only when there is one."""
        ...


@dataclass(frozen=True)
class Local:
    """So many processes of this machine; with 0 the jobs run in this one, one after another."""

    workers: int

    def __call__(
        self, jobs: Iterator[ObservingJob], cache: EvidenceCache, limits: Limits, *, networks: Sequence[ObserverTask]
    ) -> Iterator[tuple[ClipTask, Outcome]]:
        if self.workers == 0:
            for job in jobs:
                yield from observe_job(job, cache, limits)
            return
        with _continue_stopped_processes() as children, _start_network_hosts(networks, self.workers, children) as hosts:
            yield from _run_jobs_on_workers(jobs, cache, limits, self.workers, hosts, children)

    def jobs_at_a_time(self) -> int:
        return max(1, self.workers)


def one_network_task_per_observer(jobs: Iterable[ObservingJob]) -> list[ObserverTask]:
    """A task of each observer that runs networks."""
    task_by_observer = {task.observer: task for job in jobs for clip in job.clips for task in clip.observers}
    return [task for task in task_by_observer.values() if runs_at_host(task)]


def _run_jobs_on_workers(
    jobs: Iterator[ObservingJob],
    cache: EvidenceCache,
    limits: Limits,
    workers: int,
    hosts: Sequence[_Host],
    children: set[Any],
) -> Iterator[tuple[ClipTask, Outcome]]:
    # Workers share the hosts out among themselves.
    addresses: Iterator[Address | None] = cycle([host.address for host in hosts] or [None])
    busy: dict[Connection, tuple[Any, list[ClipTask]]] = {}  # with the clips that are still to come
    idle: list[tuple[Any, Connection]] = []
    try:
        while True:
            while len(busy) < workers and (job := next(jobs, None)) is not None:
                if not idle:
                    arguments = (cache, limits, os.getpid(), next(addresses))
                    idle.append(_start_child(_observe_jobs_in_child, arguments, children))
                process, connection = idle.pop()
                with suppress(OSError):  # of one that died: it is told below
                    connection.send(job)
                busy[connection] = (process, list(job.clips))
            if not busy:
                return
            alive = {host.process.sentinel: host for host in hosts if host.restarts}
            for ready in wait([*busy, *alive]):
                if not isinstance(ready, Connection):
                    alive[ready].restart(children)
                    continue
                process, to_come = busy[ready]
                try:
                    outcome = ready.recv()
                except (EOFError, OSError):
                    children.discard(process)
                    process.join()
                    del busy[ready]
                    code = process.exitcode or 0
                    how = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with code {code}"
                    yield from broken_outcomes(
                        to_come,
                        f"the process that observed this clip {how}; run the same command again, with --workers 1 if "
                        "memory is low",
                    )
                    continue
                if isinstance(outcome, ObservingJob):  # a worker cannot import its observers
                    to_come.clear()
                    yield from observe_job(outcome, cache, limits)
                elif outcome is not None:
                    yield to_come.pop(0), outcome
                else:
                    del busy[ready]
                    idle.append((process, ready))
    finally:
        for process, connection in [*idle, *((process, c) for c, (process, _) in busy.items())]:
            connection.close()
            process.kill()  # what it writes is whole or not there, and a stopped one is deaf to anything less
        for process, _ in [*idle, *busy.values()]:
            children.discard(process)
            process.join(5)


@contextmanager
def _continue_stopped_processes() -> Iterator[set[Any]]:
    """A set of processes that go on when somebody stops them."""
    children: set[Any] = set()
    over = threading.Event()

    def send_continue_signals() -> None:
        while not over.wait(AWAKE):
            for process in tuple(children):
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGCONT)

    thread = start_thread(send_continue_signals, name="awake")
    try:
        yield children
    finally:
        over.set()
        thread.join()


@contextmanager
def _start_network_hosts(tasks: Sequence[ObserverTask], workers: int, children: set[Any]) -> Iterator[list[_Host]]:
    """Where the networks are, if processes of their own run them: one for each GPU that a worker sends frames to."""
    with ExitStack() as stack:
        devices = host_devices()[:workers] if tasks else []
        hosts = [stack.enter_context(_host(device, tasks, children)) for device in devices]
        by_mistake = settings.process_of_networks() == "auto" and all(
            host.address.device.startswith("cpu") for host in hosts
        )
        yield [] if by_mistake else hosts  # a GPU that torch cannot use: the workers' cores are more than one


@dataclass
class _Host:
    """A process that runs networks on one device."""

    address: Address
    device: str  # as the user named it; "" where the host chooses
    tasks: Sequence[ObserverTask]
    process: Any = field(init=False)
    connection: Connection = field(init=False)
    restarts: int = RESTARTS

    def start(self, children: set[Any]) -> None:
        arguments = (self.address, self.device, self.tasks, os.getpid())
        self.process, self.connection = _start_child(_serve_networks_in_child, arguments, children)

    def restart(self, children: set[Any]) -> None:
        """Begin anew after a death; workers find the new process where the old one was."""
        self.restarts -= 1
        children.discard(self.process)
        self.process.join()
        self.connection.close()
        self.start(children)


@contextmanager
def _host(device: str, tasks: Sequence[ObserverTask], children: set[Any]) -> Iterator[_Host]:
    with _listening_address() as place:
        host = _Host(Address(place, os.urandom(16)), device, tasks)
        host.start(children)
        try:
            try:
                answer = host.connection.recv()
            except EOFError:
                raise RevisitError("the process that runs the networks did not start; try --device cpu") from None
            if isinstance(answer, UsageError):
                raise answer
            host.address = host.address._replace(device=answer)
            yield host
        finally:
            host.connection.close()
            host.process.join(5)
            children.discard(host.process)
            host.process.kill()


@contextmanager
def _listening_address() -> Iterator[str]:
    """An address for a host. Linux has some that are no files, so that a kill leaves nothing behind."""
    if sys.platform == "linux":
        yield f"\0revisit-{os.urandom(8).hex()}"
    else:
        with tempfile.TemporaryDirectory(prefix="revisit-") as folder:
            yield str(Path(folder) / "host")


def runs_networks_in_host() -> bool:
    """Whether one process runs the networks: on a GPU, unless `REVISIT_NETWORKS` (host or workers) says otherwise."""
    chosen, devices = settings.process_of_networks(), settings.requested_devices()
    gpu = devices[0].startswith("cuda") if devices else Path("/dev/nvidiactl").exists()
    return gpu if chosen == "auto" else chosen == "host"


def host_devices() -> list[str]:
    """The devices with a host each, as the user named them; none where workers run the networks themselves."""
    return (settings.requested_devices() or [""]) if runs_networks_in_host() else []


def _serve_networks_in_child(
    connection: Connection, address: Address, device: str, tasks: Sequence[ObserverTask], parent: int
) -> None:
    ignore_interrupt_and_end_with_parent(parent)
    if device:
        os.environ[DEVICE] = device
    from revisit.engine.inference_host import run_network_host

    run_network_host(address, connection, tasks)
    os._exit(0)  # threads still wait for workers that are gone


def _start_child(target: Any, args: tuple[Any, ...], children: set[Any]) -> tuple[Any, Connection]:
    """A process whose main function is given a connection to us, and these arguments."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=target, args=(theirs, *args), daemon=True)
    with guard_child_start():
        process.start()
    children.add(process)
    theirs.close()
    return process, ours


@contextmanager
def guard_child_start() -> Iterator[None]:
    """What every process of ours is started under."""
    with single_thread_environment(), _defer_keyboard_interrupt(), _hide_main_module():
        yield


@contextmanager
def _defer_keyboard_interrupt() -> Iterator[None]:
    """Hold Ctrl-C back while a process is started: half a start leaves a child that complains about it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears Ctrl-C
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


@contextmanager
def _hide_main_module() -> Iterator[None]:
    """Keep a child from running the user's script again, which a script without a `__main__` guard would not survive.

    Nothing of it is wanted there: what runs in a child is imported by its name.
    """
    main = sys.modules["__main__"]
    hidden: dict[str, object] = {
        name: main.__dict__[name] for name in ("__file__", "__spec__") if name in main.__dict__
    }
    main.__dict__.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        main.__dict__.update(hidden)


def single_thread_environment() -> AbstractContextManager[None]:
    """Variables that a child's numpy reads when it starts: parallel are the clips, not the sums within one.

    Threads that wait for each other on busy cores cost more than they win (a factor of ten was seen on
    small matrices), and the last digit of a sum depends on their number.
    """
    return temporary_environment_variables(dict.fromkeys(BLAS_THREADS, "1"))


@contextmanager
def temporary_environment_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, which processes started meanwhile inherit, and restore them afterwards.

    One thread at a time does, for all threads share the variables.
    """
    with _environment if variables else nullcontext():
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                os.environ.update({} if value is None else {name: value})


def _observe_jobs_in_child(
    connection: Connection, cache: EvidenceCache, limits: Limits, parent: int, address: Address | None
) -> None:
    ignore_interrupt_and_end_with_parent(parent)
    host = None if address is None else HostConnection(address)
    if host is not None:
        os.nice(COURTESY)
    while True:
        try:
            job = connection.recv()
        except EOFError:
            if host is not None:
                host.close()
            return
        if can_import_observers(job):
            for _, outcome in observe_job(job, cache, limits, host):
                connection.send(outcome)
        else:
            connection.send(job)  # back to the process that knows them
        connection.send(None)  # ready for the next job


def can_import_observers(job: ObservingJob) -> bool:
    """Whether this process knows all observers of a job; what a function registered is known where it was called."""
    try:
        return all(observer_of(task) for clip in job.clips for task in clip.observers)
    except Exception:  # whatever an import leads to
        return False


def ignore_interrupt_and_end_with_parent(parent_pid: int) -> None:
    """Leave Ctrl-C to the parent of this process, and ask Linux to end it when that is killed: it works for nobody."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; a stopped process hears nothing less
        if os.getppid() != parent_pid:
            os._exit(1)


def broken_outcomes(clips: Sequence[ClipTask], sentence: str) -> Iterator[tuple[ClipTask, Outcome]]:
    """The clips that a lost process did not get done, each with the sentence why."""
    broken = {clip.digest: sentence for clip in clips}
    return ((clip, Outcome(broken=broken)) for clip in clips)
