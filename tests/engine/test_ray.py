"""A Ray cluster of three nodes on this machine: the summary of a local run, also when a node is lost."""

from __future__ import annotations

import json
import multiprocessing
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from revisit.core import OBSERVERS, Clip, UsageError
from revisit.engine.cache import EvidenceCache
from revisit.engine.jobs import ClipTask, ObserverTask, ObservingJob
from revisit.engine.ray_executor import UNKNOWN, OnRay
from revisit.engine.request import Request, find_executor
from revisit.media import Limits, clip_digest

FEW = ("flicker", "lighting_consistency", "camera_moved", "frozen_camera")
ASKED = len(FEW) + 1  # with the gate that one of them stands behind


def ports():
    """Ports of a node's agents, chosen here: a node waits 15 s for agents that choose theirs, too short when busy."""
    names = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in names]
        return {name: one.getsockname()[1] for name, one in zip(names, sockets, strict=True)}


@pytest.fixture
def cluster():
    ray = pytest.importorskip("ray", reason="Ray is not installed")  # here: it takes seconds to import
    from ray.cluster_utils import Cluster

    made = Cluster()
    try:
        made.add_node(num_cpus=1, include_dashboard=False, **ports())
        made.others = [made.add_node(num_cpus=1, **ports()) for _ in range(2)]
    except Exception as error:  # a node that needs more than half a minute is given up by Ray
        made.shutdown()
        pytest.skip(f"Ray could not start three nodes on this machine: {str(error)[:120]}")
    yield made
    ray.shutdown()
    made.shutdown()


def evaluated(tmp_path, out, executor, cache):
    request = Request.from_options(tmp_path / "videos", metrics=FEW)
    return request.run(tmp_path / out, workers=1, executor=executor, cache=EvidenceCache(tmp_path / cache))


def checked(tmp_path, run, clips):
    """The run on the cluster has each answer once, and the summary of a local one."""
    found = [json.loads(line) for line in (run.path / "records.jsonl").read_text().splitlines()]
    asked = Counter((line["case"], line.get("metric") or line.get("gate")) for line in found)
    assert set(asked.values()) == {1} and len(asked) == clips * ASKED
    counters = run.facts["counters"]
    assert counters["clips_decoded"] == clips and counters["most_decodes_of_one_clip"] == 1
    local = evaluated(tmp_path, "local", None, "local cache")
    assert (run.path / "summary.json").read_bytes() == (local.path / "summary.json").read_bytes()


@pytest.mark.slow
def test_twelve_clips_on_three_nodes(make_clip, tmp_path, cluster):
    for i in range(12):
        make_clip(tmp_path / f"videos/{'ab'[i % 2]}/clip{i // 2}.mp4", seed=i, size=(48, 64), count=9)
    run = evaluated(tmp_path, "ray", find_executor("ray", cluster.address), "cache")
    checked(tmp_path, run, 12)
    again = evaluated(tmp_path, "ray", find_executor("ray", cluster.address), "cache")
    assert again.facts["counters"]["clips_decoded"] == 0


@pytest.mark.long
def test_two_hundred_clips_and_a_node_killed_on_the_way(make_clip, tmp_path, cluster):
    for i in range(200):
        make_clip(tmp_path / f"videos/m{i % 4}/clip{i // 4}.mp4", seed=i, size=(48, 64), count=9)
    killed = threading.Event()

    def kill():
        while len(list((tmp_path / "cache").rglob("*.npz"))) < 200:  # about a tenth of the evidence
            time.sleep(0.1)
        cluster.remove_node(cluster.others[0], allow_graceful=False)
        killed.set()

    threading.Thread(target=kill, daemon=True).start()
    run = evaluated(tmp_path, "ray", find_executor("ray", cluster.address), "cache")
    assert killed.is_set()
    checked(tmp_path, run, 200)


class RayOfOneProcess:
    """As much of Ray as `OnRay` calls, with a process for the cluster."""

    exceptions = SimpleNamespace(RayTaskError=KeyError, RuntimeEnvSetupError=KeyError, RayError=KeyError)
    cluster_resources = staticmethod(lambda: {"CPU": 1})
    cancel = staticmethod(lambda task, force: task.cancel())

    def __init__(self, pool):
        self.remote = lambda **_: lambda fn: SimpleNamespace(remote=partial(pool.submit, fn))

    def wait(self, tasks, num_returns):
        return [next(as_completed(tasks))], []

    def get(self, task):
        return task.result()


def test_what_a_function_registered_is_observed_by_the_process_that_knows_it(make_clip, tmp_path, monkeypatch):
    """Nodes did not know it: all clips failed. Workers of this machine hand such jobs back, too."""
    known = OBSERVERS["lite.lab"]
    monkeypatch.setitem(OBSERVERS._things, "own.lab", replace(known, id="own.lab"))
    tasks = [
        ObserverTask("ab" * 20, "own.lab", "no_such_module", {}),
        ObserverTask("cd" * 20, known.id, known.fn.__module__, {}),
    ]
    clip = Clip(make_clip(tmp_path / "a.mp4"))
    digest = clip_digest(clip)
    jobs = [ObservingJob((ClipTask(digest, clip, (task,)),), frozenset()) for task in tasks]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        monkeypatch.setattr("revisit.engine.ray_executor._connect_to_ray", lambda address: RayOfOneProcess(pool))
        cache = EvidenceCache(tmp_path / "cache")
        outcomes = [outcome for _, outcome in OnRay()(iter(jobs), cache, Limits(), networks=[])]
    assert not any(outcome.failed or outcome.broken for outcome in outcomes)
    by_key = {key: outcome for outcome in outcomes for key in outcome.made}
    assert [UNKNOWN in by_key[task.key].notes[digest] for task in tasks] == [True, False]
    assert all(task.key in cache for task in tasks)


def test_a_cluster_is_not_asked_for_what_a_script_registers(make_clip, tmp_path, monkeypatch):
    make_clip(tmp_path / "videos/m/a.mp4")
    known = OBSERVERS["lite.frames"]
    said: list[str] = []
    monkeypatch.setattr(known.fn, "__module__", "__main__")
    request = Request.from_options(tmp_path / "videos", metrics=["flicker"])
    run = request.run(tmp_path / "run", warned=said.append, executor=OnRay("nowhere"))
    assert run.results.scores("flicker") and "lite.frames: what a script registers is unknown" in said[0]


def test_what_is_wrong_with_an_executor_is_said():
    with pytest.raises(UsageError, match="--executor takes local or ray, not 'slurm'"):
        find_executor("slurm")
    with pytest.raises(UsageError, match="add --executor ray"):
        find_executor("local", "auto")
