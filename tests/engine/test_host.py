"""One process runs all networks: batches across clips, frames sent once, failures that stay where they belong."""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from collections.abc import Callable
from multiprocessing.reduction import recv_handle
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from revisit.core import Clip, evidence_id
from revisit.engine.cache import EvidenceCache
from revisit.engine.inference_client import Address
from revisit.engine.jobs import ClipTask, ObserverTask, ObservingJob, observer_of
from revisit.engine.worker_processes import Local, one_network_task_per_observer
from revisit.media import Limits, clip_digest
from tests import hosted

pytest.importorskip("torch", reason="the host runs networks on torch")
pytestmark = pytest.mark.slow

LOCK = """
weights:
  toy:
    title: Nothing
    licence: none
    needs: [torch]
    files: [{name: toy.safetensors}]
    sources: [{folder: /nowhere}]
"""


@pytest.fixture(autouse=True)
def toy_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lock.yaml").write_text(LOCK)
    monkeypatch.setenv("REVISIT_WEIGHTS_LOCK", str(tmp_path / "lock.yaml"))
    monkeypatch.setenv("REVISIT_DEVICE", "cpu")


def task(observer: str, clip: str, reference: str | None = None) -> ObserverTask:
    inputs = {"prompt": clip, "align": "index"} if reference else {"prompt": clip}
    return ObserverTask(f"{observer}-{clip}", observer, "tests.hosted", {}, inputs, reference)


def digest(path: Path) -> str:
    return clip_digest(Clip(path))


def made(cache: EvidenceCache, key: str) -> object:
    observer = key.split("-")[0]
    kind = observer_of(task(observer, "")).makes
    found = cache.load(kind, key)
    assert found is not None, f"no {evidence_id(kind)} under {key}"
    return found


def run(jobs: list[ObservingJob], cache: EvidenceCache, workers: int = 2) -> dict[str, str]:
    failed: dict[str, str] = {}
    for _, outcome in Local(workers)(iter(jobs), cache, Limits(), networks=one_network_task_per_observer(jobs)):
        failed.update(outcome.failed)
        failed.update(outcome.broken)
    return failed


@pytest.fixture
def clips(tmp_path: Path, make_clip: Callable[..., Path]) -> list[Path]:
    sizes = [(48, 64), (48, 64), (48, 64), (64, 48)]
    return [make_clip(tmp_path / f"{n}.mp4", count=24, seed=n, size=size) for n, size in enumerate(sizes)]


def jobs_of(clips: list[Path], *observers: str) -> list[ObservingJob]:
    return [
        ObservingJob((ClipTask(digest(path), Clip(path), tuple(task(id, path.stem) for id in observers)),), frozenset())
        for path in clips
    ]


def test_the_host_gives_what_workers_give(clips, tmp_path, monkeypatch) -> None:
    caches = {}
    for where in ("workers", "host"):
        monkeypatch.setenv("REVISIT_NETWORKS", where)
        caches[where] = EvidenceCache(tmp_path / where)
        workers = 1 if where == "workers" else 2  # each of the former imports torch
        assert run(jobs_of(clips, "toy.rows", "toy.walk"), caches[where], workers) == {}
    processes = set()
    for path in clips:
        alone, served = (made(caches[where], f"toy.rows-{path.stem}") for where in ("workers", "host"))
        assert isinstance(alone, hosted.ToyRows) and isinstance(served, hosted.ToyRows)
        assert np.array_equal(alone.index, served.index) and len(alone.index) > 5
        assert np.array_equal(alone.mean, served.mean)
        assert np.array_equal(served.told, np.full(len(served.index), len(path.stem)))
        processes |= set(served.process.tolist())
        walks = [made(caches[where], f"toy.walk-{path.stem}") for where in ("workers", "host")]
        assert np.array_equal(walks[0].step, walks[1].step)
        assert np.array_equal(walks[0].digest, walks[1].digest) and len(set(walks[1].digest.tolist())) > 20
        assert walks[1].process in processes, "sequence observers run at the host, too"
    assert len(processes) == 1, "one process holds the networks"


@pytest.mark.long
def test_several_devices_share_the_clips(clips, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("REVISIT_NETWORKS", "host")
    monkeypatch.setenv("REVISIT_DEVICE", "cpu,cpu")
    cache = EvidenceCache(tmp_path / "host")
    assert run(jobs_of(clips, "toy.rows"), cache) == {}
    processes = {int(made(cache, f"toy.rows-{path.stem}").process[0]) for path in clips}
    assert len(processes) == 2


@pytest.mark.long
def test_a_reference_travels_with_its_clip(clips, tmp_path, monkeypatch) -> None:
    first, second = clips[:2]
    truth = digest(first)
    tasks = (task("toy.pairs", "1", reference=truth), task("toy.shares", "1", reference=truth), task("toy.rows", "1"))
    job = ObservingJob(
        (ClipTask(truth, Clip(first), ()), ClipTask(digest(second), Clip(second), tasks)), frozenset({truth})
    )
    found, shares = [], []
    for where in ("workers", "host"):
        monkeypatch.setenv("REVISIT_NETWORKS", where)
        cache = EvidenceCache(tmp_path / where)
        assert run([job], cache, workers=1) == {}
        found.append(made(cache, "toy.pairs-1"))
        shares.append(made(cache, "toy.shares-1"))
    assert np.array_equal(found[0].difference, found[1].difference) and found[0].difference.min() > 1
    assert np.array_equal(found[1].reference, np.arange(24))
    assert np.array_equal(shares[0].difference, shares[1].difference) and 0 < shares[1].difference.max() < 1


@pytest.mark.long
def test_pairs_of_two_sizes_are_followed_by_the_worker(clips, tmp_path, monkeypatch) -> None:
    first, last = clips[0], clips[3]
    truth = digest(first)
    beside = (task("toy.beside", "3", reference=truth),)
    job = ObservingJob(
        (ClipTask(truth, Clip(first), ()), ClipTask(digest(last), Clip(last), beside)), frozenset({truth})
    )
    found = []
    for where in ("workers", "host"):
        monkeypatch.setenv("REVISIT_NETWORKS", where)
        cache = EvidenceCache(tmp_path / where)
        assert run([job], cache, workers=1) == {}
        found.append(made(cache, "toy.beside-3").step)
    assert np.array_equal(*found) and len(found[0]) == 24


@pytest.mark.long
def test_one_observer_that_fails_costs_nobody_else(clips, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("REVISIT_NETWORKS", "host")
    cache = EvidenceCache(tmp_path / "host")
    failed = run(jobs_of(clips[:2], "toy.broken", "toy.rows"), cache, workers=1)
    assert set(failed) == {"toy.broken-0", "toy.broken-1"}
    assert "the network is upset" in failed["toy.broken-0"]
    assert made(cache, "toy.rows-1")


@pytest.mark.long
def test_many_sizes_of_pictures_do_not_wait_for_each_other(clips, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("REVISIT_NETWORKS", "host")
    cache = EvidenceCache(tmp_path / "host")
    ids = [observer.id for observer in hosted.SIZES]
    assert run(jobs_of(clips[:2], *ids), cache, workers=1) == {}
    assert all(len(made(cache, f"{id}-1").index) == 24 for id in ids)


@pytest.mark.long
def test_clips_that_break_off_and_observers_that_cannot_choose_cost_nobody_else(clips, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("REVISIT_NETWORKS", "host")
    cut = []
    for number in range(5):  # more than there are files in shared memory
        cut.append(tmp_path / f"cut{number}.mp4")
        cut[-1].write_bytes(clips[0].read_bytes()[: -800 - 10 * number])
    cache = EvidenceCache(tmp_path / "host")
    failed = run(jobs_of([*cut, clips[0]], "toy.fussy", "toy.rows", "toy.size20"), cache, workers=1)
    assert made(cache, "toy.rows-0") and made(cache, "toy.size20-0")
    assert "ZeroDivisionError" in failed["toy.fussy-0"]


def test_a_clip_that_is_given_up_gives_its_files_back(tmp_path) -> None:
    """The worker's end by itself: a clip of which something was put, and nothing sent."""
    from types import SimpleNamespace

    from revisit.core.observer import PreparedFrame
    from revisit.engine.inference_client import HostClip, _Stream

    host = SimpleNamespace(
        broken=False,
        clip=None,
        free=[],
        sent=set(),
        acquire_slot=lambda size: (tmp_path / "a", np.zeros(size, np.uint8)),
    )
    first = HostClip(host, None, [])
    first.streams[0] = _Stream(host, pairs=False)
    first.streams[0].append_picture(PreparedFrame(0, 0.0, np.zeros((2, 2, 3), np.uint8)), "key")
    host.clip = first
    HostClip(host, None, [])
    assert host.free == [tmp_path / "a"] and host.clip is None


@pytest.mark.long
def test_a_host_that_dies_costs_the_clips_it_was_shown_and_is_started_again(clips, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("REVISIT_NETWORKS", "host")
    monkeypatch.setenv("REVISIT_OPENVINO", "auto")  # where it is there, the device is told in more words than its name
    cache = EvidenceCache(tmp_path / "host")
    lite = ObserverTask("lite-facts", "lite.frames", "revisit.observers.frames", {}, {})
    deadly = (task("toy.deadly", "0"), task("toy.rows", "0"), lite)
    jobs = [
        ObservingJob((ClipTask(digest(clips[0]), Clip(clips[0]), deadly),), frozenset()),
        ObservingJob((ClipTask(digest(clips[1]), Clip(clips[1]), (task("toy.rows", "1"),)),), frozenset()),
    ]
    failed = run(jobs, cache, workers=1)
    assert set(failed) == {"toy.deadly-0", "toy.rows-0"}
    assert all("the process that runs the networks ended" in words for words in failed.values())
    assert "lite-facts" in cache and "toy.rows-1" in cache


@pytest.mark.long
def test_a_stopped_host_goes_on(clips, tmp_path, monkeypatch) -> None:
    import multiprocessing
    import signal

    monkeypatch.setenv("REVISIT_NETWORKS", "host")
    cache = EvidenceCache(tmp_path / "host")
    jobs = jobs_of(clips, "toy.rows")
    resumed = Local(1)(iter(jobs), cache, Limits(), networks=one_network_task_per_observer(jobs))
    next(resumed)
    host = int(made(cache, "toy.rows-0").process[0])
    assert host in {child.pid for child in multiprocessing.active_children()}
    os.kill(host, signal.SIGSTOP)
    assert all(not outcome.failed and not outcome.broken for _, outcome in resumed)
    assert all(f"toy.rows-{path.stem}" in cache for path in clips)


def test_frames_of_several_clips_share_a_batch_and_a_large_one_is_tried_in_parts(monkeypatch) -> None:
    """The host's queue by itself: it takes rows of several clips, in order, and puts back what did not fit."""
    import torch

    from revisit.engine.inference_client import FrameRow
    from revisit.engine.inference_host import Host
    from revisit.engine.inference_queues import Chunk, HostedClip, Queue

    observer = observer_of(task("toy.rows", ""))
    hosted_clips = [HostedClip(None, None, None, {f"toy.rows-{n}": task("toy.rows", "x" * n)}) for n in range(3)]
    host = Host()
    q = Queue(observer, {})
    q.most = 4
    for n, clip in enumerate(hosted_clips):
        rows = [FrameRow(k, k / 8, None, "", [f"toy.rows-{n}"]) for k in range(3)]
        chunk = Chunk(clip, torch.full((3, 4, 4, 3), 10 * n + 1, dtype=torch.uint8), None, rows, 144)
        host.memory.held += 144
        q.put(chunk, f"toy.rows-{n}", [0, 1, 2])
    refuse = iter([True, False, False, False, False, False])
    real = observer.fn

    def fussy(batch, **params):
        if next(refuse):
            raise torch.OutOfMemoryError("too large")
        return real(batch, **params)

    def batch() -> None:
        host._start_batch(q)
        host._handle_events(block=True)

    monkeypatch.setattr(q, "observer", type(observer)(**{**vars(observer), "fn": fussy}))
    batch()
    assert q.most == 2 and q.rows == 9, "a batch that did not fit waits to be tried in parts"
    while q.rows:
        batch()
    for n, clip in enumerate(hosted_clips):
        parts = [part for *_, part in clip.parts[f"toy.rows-{n}"]]
        assert np.concatenate([part.index for part in parts]).tolist() == [0, 1, 2]
        assert np.concatenate([part.mean for part in parts]).tolist() == [10 * n + 1] * 3
        assert clip.pending == 0
    assert host.memory.held == 0
    together = [part.together for clip in hosted_clips for parts in clip.parts.values() for *_, part in parts]
    assert np.concatenate(together).max() == 2


def test_batches_that_are_done_out_of_order_are_joined_in_order() -> None:
    """On a GPU two are under way at a time."""
    import torch

    from revisit.engine.inference_client import FrameRow
    from revisit.engine.inference_host import Host
    from revisit.engine.inference_queues import Chunk, HostedClip, Queue

    host, q, peer = Host(), Queue(observer_of(task("toy.rows", "")), {}), Peer()
    clip = HostedClip(peer, threading.Lock(), None, {"toy.rows-0": task("toy.rows", "")})
    q.most = 4
    for first in (0, 3, 6):
        rows = [FrameRow(k, k / 8, None, "", ["toy.rows-0"]) for k in range(first, first + 3)]
        chunk = Chunk(clip, torch.full((3, 4, 4, 3), first, dtype=torch.uint8), None, rows, 144)
        host.memory.held += 144
        q.put(chunk, "toy.rows-0", [0, 1, 2])
    while q.rows:
        host._start_batch(q)
    done = [host.events.get()[1] for _ in range(3)]
    clip.ended = True
    for one in reversed(done):
        host._distribute_batch_results(*one)
    ((record, sentence, _),) = peer.heard[0].values()
    assert not sentence and record.index.tolist() == list(range(9))
    assert record.mean.tolist() == [0, 0, 0, 3, 3, 3, 6, 6, 6] and host.memory.held == 0 and not host.at_work


def test_an_observer_that_returns_nothing_fails_and_is_not_asked_again(monkeypatch) -> None:
    import torch

    from revisit.engine.inference_client import FrameRow
    from revisit.engine.inference_host import Host
    from revisit.engine.inference_queues import Chunk, HostedClip, Queue

    host, q = Host(), Queue(observer_of(task("toy.rows", "")), {})
    clip = HostedClip(None, threading.Lock(), None, {"toy.rows-0": task("toy.rows", "")})
    rows = [FrameRow(k, k / 8, None, "", ["toy.rows-0"]) for k in range(3)]
    host.memory.held += 144
    q.put(Chunk(clip, torch.ones((3, 4, 4, 3), dtype=torch.uint8), None, rows, 144), "toy.rows-0", [0, 1, 2])
    monkeypatch.setattr(q, "observer", type(q.observer)(**{**vars(q.observer), "fn": lambda batch, **params: None}))
    host._start_batch(q)
    host._handle_events(block=True)
    assert not q.rows and clip.failed["toy.rows-0"].startswith("toy.rows failed: ")


class Peer:
    """The other end of a connection, which says what it is told to."""

    def __init__(self, *says: object) -> None:
        self.says = list(says)
        self.heard: list[object] = []

    def send(self, message: object) -> None:
        self.heard.append(message)

    def recv(self) -> object:
        if not self.says:
            raise EOFError
        return self.says.pop(0)

    def poll(self) -> bool:
        return bool(self.says)

    def close(self) -> None:
        pass


@pytest.fixture
def address(tmp_path) -> Address:
    (tmp_path / "memory").mkdir()
    return Address(str(tmp_path / "host"), b"key")


def test_where_shared_memory_is_small_ordinary_files_serve(address, tmp_path, monkeypatch) -> None:
    import multiprocessing

    from revisit.engine import inference_client

    ours, theirs = multiprocessing.Pipe()
    monkeypatch.setattr(inference_client, "Client", lambda *_, **__: ours)
    monkeypatch.setattr(inference_client, "SLOT_BYTES", 100)
    monkeypatch.setattr(inference_client, "MEMORY", tmp_path / "memory")
    allocate, asked = inference_client._allocate, []

    def little(file: IO[bytes], size: int) -> None:
        asked.append(size)
        if len(asked) == 2:
            raise OSError(errno.ENOSPC, "no room")
        allocate(file, size)

    monkeypatch.setattr(inference_client, "_allocate", little)
    host = inference_client.HostConnection(address)
    (first, one), (second, other) = host.acquire_slot(50), host.acquire_slot(60)
    assert host.folder is None and asked == [100, 100, 100] and first != second
    one[:3], other[:3] = 7, 9
    for number, level in ((first, 7), (second, 9)):
        assert theirs.recv() == ("memory", number)
        file = recv_handle(theirs)
        assert os.pread(file, 200, 0) == bytes([level] * 3) + bytes(97), "the host has the same memory"
        os.close(file)
    assert not list((tmp_path / "memory").iterdir()), "it has no name"
    host.close()


def test_a_host_that_breaks_off_has_the_last_word_and_is_called_again(address, monkeypatch) -> None:
    from revisit.engine import inference_client

    peers = [Peer(("free", "x"), "the GPU is full"), Peer()]
    monkeypatch.setattr(inference_client, "Client", lambda *_, **__: peers.pop(0))
    host = inference_client.HostConnection(address)
    host.handle_next_message()
    with pytest.raises(inference_client.HostGone, match="the GPU is full"):
        host.handle_next_message()
    inference_client.HostClip(host, None, [])
    assert not host.broken and not peers and not host.free
    with pytest.raises(inference_client.HostGone, match="ended; run the same command again"):
        host.handle_next_message()


def test_a_host_that_is_gone_for_good_is_waited_for_once(address, monkeypatch) -> None:
    """A worker may be started behind its end, and still makes what needs no network."""
    from revisit.engine import inference_client

    monkeypatch.setattr(inference_client, "PATIENCE", 0.2)
    host = inference_client.HostConnection(address)
    assert host.broken and host.patience == 0
    with pytest.raises(inference_client.HostGone, match="ended; run the same command again"):
        inference_client.HostClip(host, None, [task("toy.rows", "0")]).create_watcher(task("toy.rows", "0"))
    host.close()


def test_a_host_whose_command_ended_meanwhile_prints_no_traceback(address) -> None:
    """One that is started again near the end of a run has nobody to tell its device."""
    import multiprocessing

    from revisit.engine.inference_host import run_network_host

    ours, theirs = multiprocessing.Pipe()
    theirs.close()
    run_network_host(address, ours)


def test_a_chunk_that_cannot_be_uploaded_is_told_to_its_worker(clips, tmp_path, monkeypatch) -> None:
    from revisit.engine import inference_host as at_host
    from revisit.engine.inference_client import FrameRow

    host = at_host.Host()

    def full(there: object, size: int) -> None:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(host.memory, "copy", full)
    (tmp_path / "slot").write_bytes(bytes(48))
    monkeypatch.setattr(at_host, "recv_handle", lambda _: os.open(tmp_path / "slot", os.O_RDWR))
    rows = [FrameRow(0, 0.0, None, "", ["key"])]
    peer = Peer(("clip", None, []), ("memory", 0), ("frames", 0, (1, 4, 4, 3), "uint8", False, rows))
    host._receive_messages(peer)
    assert "could not receive the frames: RuntimeError: CUDA out of memory" in str(peer.heard[0])
    assert host.memory.held == 0 and [host.events.get()[0] for _ in range(2)] == ["clip", "gone"]


def test_every_thread_uses_the_device_of_its_host(monkeypatch) -> None:
    """Streams and figures of memory are those of a thread's current device, which is the first GPU by default."""
    from types import SimpleNamespace

    import torch

    from revisit.engine.inference_host import AHEAD, Host
    from revisit.networks import runtime

    chosen: list[int] = []
    monkeypatch.setattr(runtime, "device", lambda: "cuda:1")
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=1 << 30))
    host = Host()
    host._receive_messages(Peer())
    until = time.monotonic() + 30
    while len(chosen) < 2 + AHEAD and time.monotonic() < until:  # its own threads begin when they may
        time.sleep(0.001)
    assert chosen == [1] * (2 + AHEAD)


@pytest.mark.long
def test_nothing_of_a_run_has_a_name_in_temporary_places(clips, tmp_path, monkeypatch) -> None:
    """So nothing is left, whatever ends the processes."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("REVISIT_NETWORKS", "host")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    jobs = jobs_of(clips, "toy.rows", "toy.size20")
    resumed = Local(2)(
        iter(jobs), EvidenceCache(tmp_path / "host"), Limits(), networks=one_network_task_per_observer(jobs)
    )
    next(resumed)
    assert not list((tmp_path / "tmp").iterdir()) and not list(Path("/dev/shm").glob("revisit-*"))
    resumed.close()  # as an interrupt does, while the workers are busy


@pytest.mark.long
def test_reasons_do_not_depend_on_who_ran_the_observer(clips, tmp_path, monkeypatch) -> None:
    reasons = []
    for where in ("workers", "host"):
        monkeypatch.setenv("REVISIT_NETWORKS", where)
        reasons.append(run(jobs_of(clips[:1], "toy.refuses", "toy.stumbles"), EvidenceCache(tmp_path / where)))
    assert reasons[0] == reasons[1]
    stumbled = reasons[0].pop("toy.stumbles-0")
    assert reasons[0] == {"toy.refuses-0": "this clip is refused"}
    assert re.fullmatch(r"toy.stumbles failed on frame 1: ValueError: a stone \(tests/hosted.py:\d+\)", stumbled)


@pytest.mark.parametrize(
    ("device", "hosted_there"), [("cuda:0,cuda:1", True), ("mps", False), ("cpu", False), ("cuda", True)]
)
def test_a_host_is_for_cuda(device, hosted_there, monkeypatch) -> None:
    from revisit.engine import worker_processes

    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("REVISIT_DEVICE", device)
    assert worker_processes.runs_networks_in_host() is hosted_there


@pytest.mark.parametrize(
    ("requested", "jobs", "hosts", "workers"),
    [(None, 100, 0, 12), (None, 100, 2, 8), (None, 100, 8, 8), (None, 3, 8, 3), (1, 100, 4, 1), (None, 0, 2, 0)],
)
def test_every_gpu_has_a_worker(requested, jobs, hosts, workers, monkeypatch) -> None:
    from revisit.engine import worker_count

    monkeypatch.setattr(worker_count, "cores", lambda: 12)
    assert worker_count.observing_worker_count(requested, jobs, hosts) == workers


@pytest.mark.long
def test_no_gpu_is_started_that_nobody_sends_frames_to(clips, tmp_path, monkeypatch) -> None:
    """Two devices and one worker: the second process would only hold memory."""
    from revisit.engine import worker_processes

    started = []
    usual = worker_processes._host

    def noted(device, *rest):
        started.append(device)
        return usual(device, *rest)

    monkeypatch.setattr(worker_processes, "_host", noted)
    monkeypatch.setenv("REVISIT_NETWORKS", "host")
    monkeypatch.setenv("REVISIT_DEVICE", "cpu,cpu")
    assert run(jobs_of(clips[:1], "toy.rows"), EvidenceCache(tmp_path / "host"), workers=1) == {}
    assert started == ["cpu"]


def test_words_for_a_wrong_setting(clips, tmp_path, monkeypatch) -> None:
    from revisit.core import UsageError

    monkeypatch.setenv("REVISIT_NETWORKS", "everywhere")
    with pytest.raises(UsageError, match="host"):
        run(jobs_of(clips[:1], "toy.rows"), EvidenceCache(tmp_path / "x"), workers=1)


def test_a_batch_of_several_clips_is_checked_clip_by_clip() -> None:
    """Frame numbers begin anew with each clip of a batch, and a row that is wrong costs its own clip only."""
    import threading

    import torch

    from revisit.core import ClipInfo
    from revisit.engine.inference_client import FrameRow
    from revisit.engine.inference_host import Host
    from revisit.engine.inference_queues import Chunk, HostedClip, Queue

    host = Host()
    info = ClipInfo(8, 8, 5, 24.0, np.arange(5) / 24)
    shown = {"a": torch.full((5, 8, 8, 3), 9, dtype=torch.uint8), "b": torch.zeros((5, 8, 8, 3), dtype=torch.uint8)}
    clips = []
    queue = Queue(hosted.toy_dark, {})
    for name, pictures in [*shown.items(), ("c", shown["a"])]:
        asked = task("toy.dark", name)
        clip = HostedClip(None, threading.Lock(), info, {asked.key: asked})  # type: ignore[arg-type]
        rows = [FrameRow(n, n / 24, None, "", [asked.key]) for n in range(5)]
        queue.put(Chunk(clip, pictures, None, rows, 0), asked.key, list(range(5)))
        clips.append((clip, asked.key))
    queue.most = 15
    host._start_batch(queue)
    host._handle_events(block=True)
    (a, a_key), (b, b_key), (c, c_key) = clips
    assert not a.failed and not c.failed
    for clip, key in ((a, a_key), (c, c_key)):
        part = clip.parts[key][0][2]
        assert part.index.tolist() == [0, 1, 2, 3, 4] and part.together.tolist() == [15] * 5
    assert "ToyRows.mean has values that are not finite" in b.failed[b_key] and not b.parts[b_key]


@pytest.mark.parametrize(
    ("device", "resize", "shape", "sent"),
    [("cuda (H200)", "quick", (72, 128), (72, 128)), ("cpu", "quick", (72, 128), (45, 80)),
     ("cuda (H200)", "area", (72, 128), (45, 80)), ("cuda (H200)", "quick", (96, 128), (45, 80))],
)  # fmt: skip
def test_whole_pairs_go_to_a_gpu_that_brings_them_to_their_size(device, resize, shape, sent) -> None:
    from types import SimpleNamespace

    from revisit.core import OBSERVERS, Frame
    from revisit.engine.inference_client import HostWatcher
    from revisit.engine.jobs import ObserverTask

    id = "torch.lpips_alex"
    params = {**OBSERVERS[id].params, "resize": resize, "long_side": 80}
    task = ObserverTask("key", id, OBSERVERS[id].fn.__module__, params, {}, "reference")
    watcher = HostWatcher(SimpleNamespace(host=SimpleNamespace(device=device)), task)
    mine, other = Frame(0, 0.0, np.zeros((72, 128, 3), np.uint8)), Frame(0, 0.0, np.zeros((*shape, 3), np.uint8))
    picture = watcher._picture_to_send(mine, other)
    assert picture.rgb.shape[:2] == picture.reference.shape[:2] == sent
