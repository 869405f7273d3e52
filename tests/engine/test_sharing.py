"""Several processes on one run directory share the work, also when one of them is killed."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

import revisit
from revisit.core import RevisitError, UsageError
from revisit.engine.cache import EvidenceCache, open_shared_evidence
from revisit.engine.leases import Claims, lock_run
from revisit.engine.request import Request

FEW = ("flicker", "lighting_consistency", "camera_moved", "frozen_camera")
ASKED = len(FEW) + 1  # with the gate that one of them stands behind


def command(out):
    few = [word for id in FEW for word in ("-m", id)]
    return [sys.executable, "-m", "revisit", "eval", "videos", "--workers", "0", "--quiet", "--out", out, *few]


def start(tmp_path, out, cache):
    return subprocess.Popen(
        command(out), cwd=tmp_path, env={**os.environ, "REVISIT_CACHE": str(tmp_path / cache)},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip


def lines(run):
    return [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.long
@pytest.mark.parametrize("killed", [False, True])
def test_processes_share_a_run_and_score_nothing_twice(make_clip, tmp_path, killed):
    for i in range(14):
        make_clip(tmp_path / f"videos/{'ab'[i % 2]}/clip{i // 2}.mp4", seed=i, size=(96, 128), count=9)
    (tmp_path / "videos/a/broken.mp4").write_text("not a video")
    both = [start(tmp_path, "shared", "cache") for _ in range(2)]
    if killed:
        wait_for(lambda: (tmp_path / "shared/records.jsonl").is_file() and len(lines(tmp_path / "shared")) > 8)
        both[0].send_signal(signal.SIGKILL)
    codes = [process.wait(300) for process in both]
    assert codes == ([-9, 1] if killed else [1, 1]), [process.stderr.read() for process in both]  # one clip is broken

    asked = Counter((line["case"], line.get("metric") or line.get("gate")) for line in lines(tmp_path / "shared"))
    assert set(asked.values()) == {1} and len(asked) == 15 * ASKED
    counters = [entry["counters"] for entry in json.loads((tmp_path / "shared/run.json").read_text())["invocations"]]
    if not killed:
        assert sum(entry["clips_decoded"] for entry in counters) == 14
        assert all(entry["clips_decoded"] for entry in counters)  # both did some

    whole = Request.from_options(tmp_path / "videos", metrics=FEW).run(
        tmp_path / "whole", workers=0, cache=EvidenceCache(tmp_path / "other")
    )
    assert (tmp_path / "shared/summary.json").read_bytes() == (whole.path / "summary.json").read_bytes()


def test_a_clip_is_claimed_once_and_free_when_its_process_is_killed(tmp_path):
    script = (
        "import sys, time; from pathlib import Path; from revisit.engine.leases import Claims\n"
        "claims = Claims(Path(sys.argv[1])); print(claims.claim_all_or_none(['one', 'two']), flush=True)\n"
        "time.sleep(600)"
    )
    other = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "True\n"
    claims = Claims(tmp_path)
    assert not claims.claim_all_or_none(["two", "three"]) and not claims.claim_all_or_none(["one"])
    assert claims.claim_all_or_none(["three"])  # was given back with the refusal, and is free
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert claims.claim_all_or_none(["one", "two"])
    claims.close()


def test_other_questions_do_not_mix_with_a_run_that_goes_on(make_clip, tmp_path):
    make_clip(tmp_path / "videos/m/a.mp4")
    request = Request.from_options(tmp_path / "videos", metrics=["flicker"])
    run = request.run(tmp_path / "run", workers=0)
    script = (
        "import sys, time; from pathlib import Path; from revisit.engine.leases import lock_run\n"
        "with lock_run(Path(sys.argv[1]), alone=False) as entry:\n"
        "    entry.acquire_shared_lock(); print(1, flush=True); time.sleep(600)"
    )
    other = subprocess.Popen([sys.executable, "-c", script, str(run.path)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "1\n"
        assert request.run(tmp_path / "run", workers=0).results.metrics == ["flicker"]  # the same plan joins
        with pytest.raises(RevisitError, match="another process is writing to this run with other clips or questions"):
            Request.from_options(tmp_path / "videos", metrics=["frozen_camera"]).run(tmp_path / "run", workers=0)
        with pytest.raises(RevisitError, match="another process is writing"):
            request.run(tmp_path / "run", workers=0, fresh=True)
    finally:
        other.kill()
        other.wait()


def test_a_run_that_was_in_use_can_be_written_once_it_is_free(tmp_path):
    script = (
        "import sys, time; from pathlib import Path; from revisit.engine.leases import lock_run\n"
        "with lock_run(Path(sys.argv[1]), alone=True): print(1, flush=True); time.sleep(600)"
    )
    other = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "1\n"
        with pytest.raises(RevisitError, match="another process"), lock_run(tmp_path, alone=True):
            pass
    finally:
        other.kill()
        other.wait()
    with lock_run(tmp_path, alone=True) as entry:
        assert entry.first


def test_a_process_does_not_share_a_run_with_itself(tmp_path):
    with (
        lock_run(tmp_path, alone=False),
        pytest.raises(RevisitError, match="another process"),
        lock_run(tmp_path, alone=False),
    ):
        pass


def test_evidence_through_a_url_is_made_once_for_machines_that_share_no_folder(make_clip, tmp_path):
    pytest.importorskip("fsspec", reason="needs fsspec: pip install 'revisit-bench[ray]'")
    make_clip(tmp_path / "videos/m/a.mp4", size=(32, 48), count=5)
    request = Request.from_options(tmp_path / "videos", metrics=["flicker"])
    url = "memory://evidence-of-a-test"
    here, there = (EvidenceCache(tmp_path / name, url) for name in ("here", "there"))
    first = request.run(tmp_path / "first", workers=0, cache=here)
    assert first.facts["counters"]["clips_decoded"] == 1
    second = request.run(tmp_path / "second", workers=0, cache=there)
    assert second.facts["counters"]["clips_decoded"] == 0
    made = {path.relative_to(here.root): path.read_bytes() for path in here.files()}
    assert made and {path.relative_to(there.root): path.read_bytes() for path in there.files()} == made
    assert (first.path / "summary.json").read_bytes() == (second.path / "summary.json").read_bytes()
    key = next(here.files()).stem
    open_shared_evidence(url).upload(key, tmp_path / "videos/m/a.mp4")  # damaged on its way
    third = EvidenceCache(tmp_path / "third", url)
    assert (
        key in third and not third.verify_or_drop(key) and key not in third
    )  # dropped, and made again by who needs it
    with pytest.raises(RevisitError, match="cannot be opened"):
        EvidenceCache(tmp_path, "nothing-of-the-kind://x").verify_or_drop("k")


def test_a_file_system_without_locks_is_told(make_clip, tmp_path, monkeypatch):
    """It waited for ever for nobody."""

    def refuse_lock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    make_clip(tmp_path / "videos" / "a.mp4")
    for name in ("flock", "lockf"):
        with monkeypatch.context() as patch:
            patch.setattr(f"revisit.engine.leases.fcntl.{name}", refuse_lock)
            with pytest.raises(UsageError, match="No locks available"):
                revisit.evaluate(tmp_path / "videos", metrics=["flicker"], out=tmp_path / "run", workers=0)
    revisit.evaluate(tmp_path / "videos", metrics=["flicker"], out=tmp_path / "run", workers=0)
