"""What tests of labels share: a small run, a project, raters who answer over HTTP, and a server of its own."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.core import Case, Clip, Record, Target
from revisit.labels.project import Project, ProjectSettings, make_project
from revisit.media import clip_digest, encode_mp4
from revisit.results.record_files import RecordWriter, case_to_json

PROJECT = Path(__file__).parents[1]
FRAMES, FPS = 25, 12.5
QUIET: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def clip(path: Path, seed: int, frames: int = FRAMES) -> Path:
    """A small clip of its own look; its size is odd in neither direction, its rate is no whole number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    wall = rng.integers(0, 255, (12, 40, 3), dtype=np.uint8).repeat(4, axis=0).repeat(4, axis=1)
    encode_mp4(path, [np.ascontiguousarray(wall[:, 2 * k : 2 * k + 64]) for k in range(frames)], FPS)
    return path


def tiny_run(
    folder: Path,
    models: Sequence[str] = ("alpha", "beta", "gamma"),
    samples: Sequence[str] = ("cup", "dog", "vase", "lamp"),
    *,
    suite: str = "folder",
    scores: Mapping[tuple[str, str, str], float] | None = None,
    gates: Mapping[tuple[str, str, str], str] | None = None,
    **facts: Any,
) -> Path:
    """A run directory with real clips; `scores` and `gates` by (sample, model, question)."""
    cases = []
    for model in models:
        for sample in samples:
            path = clip(folder / "videos" / model / f"{sample}.mp4", hash((model, sample)) % 1000)
            cases.append(
                Case(
                    f"{sample}@{model}#0", suite, model, sample, Clip(path), prompt=f"A {sample} <b>here</b>",
                    camera="yaw:right:60@12,yaw:left:60@12", target=Target(sample, (0.25, 0.25, 0.5, 0.75)), **facts,
                )
            )  # fmt: skip
    return write_run(folder / "run", cases, suite, scores or {}, gates or {})


def write_run(
    run: Path,
    cases: Sequence[Case],
    suite: str,
    scores: Mapping[tuple[str, str, str], float],
    gates: Mapping[tuple[str, str, str], str],
) -> Path:
    run.mkdir(parents=True)
    questions = list(dict.fromkeys(name for _, _, name in scores))
    asked = list(dict.fromkeys(name for _, _, name in gates))
    plan = {
        "suite": suite,
        "cases": [{**case_to_json(case), "digest": clip_digest(case.clip)} for case in cases],
        "gates": dict.fromkeys(asked, "p"),
        "metrics": dict.fromkeys(questions, "p"),
        "rejected": [],
    }
    (run / "plan.json").write_text(json.dumps(plan))
    (run / "run.json").write_text(json.dumps({"suite": suite}))
    with RecordWriter(run / "records.jsonl") as writer:
        for case in cases:
            for name in questions:
                value = scores.get((case.sample, case.model, name))
                status: Any = "unscored" if value is None else "scored"
                writer.append(Record(case, name, False, status, value))
            for name in asked:
                if (case.sample, case.model, name) in gates:
                    state: Any = gates[case.sample, case.model, name]
                    writer.append(Record(case, name, True, state, label=state))
    return run


def project(folder: Path, run: Path, **settings: Any) -> Project:
    return make_project(folder, [run], ProjectSettings(**settings))


@contextmanager
def running(*arguments: str, env: Mapping[str, str] | None = None) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """`revisit annotate` as a process of its own; yields it with what it printed at its start."""
    pytest.importorskip("starlette", reason="needs starlette (pip install 'revisit-bench[annotate]')")
    process = subprocess.Popen(
        [sys.executable, "-m", "revisit", "annotate", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT / "src"), **(env or {})},
    )  # fmt: skip
    assert process.stdout is not None
    said: list[str] = []
    try:
        for line in process.stdout:
            said.append(line.strip())
            if line.startswith("progress, links"):
                break
        else:
            raise AssertionError(said)
        yield process, said
    finally:
        process.kill()
        process.wait()


def address_in(said: Sequence[str]) -> str:
    return next(re.search(r"(http://\S+?)/admin", line)[1] for line in said if "/admin" in line)


class PostgresServer:
    """A PostgreSQL server of our own on a free port, which can be stopped and started again."""

    def __init__(self) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        self.binaries = found[-1].parent if found else Path(shutil.which("initdb") or "/nowhere").parent
        if not (self.binaries / "postgres").exists():
            pytest.skip("needs a PostgreSQL server (apt install postgresql)")
        pytest.importorskip("psycopg", reason="needs psycopg (pip install 'revisit-bench[postgres]')")
        self.user = as_postgres()
        self.folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/revisit-postgres-XXXXXX"], text=True).strip())
        if self.user:
            subprocess.run(["chown", "-R", self.user[1].partition("=")[2], str(self.folder)], check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"postgresql://revisit@127.0.0.1:{self.port}/postgres"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PostgresServer:
        data = str(self.folder / "data")
        made = [*self.user, str(self.binaries / "initdb"), "-D", data, "-A", "trust", "-U", "revisit", "-E", "UTF8"]
        subprocess.run(made, check=True, cwd="/tmp", **QUIET)
        self.start()
        return self

    def start(self) -> None:
        place = ["-D", str(self.folder / "data"), "-p", str(self.port), "-k", str(self.folder), "-h", "127.0.0.1"]
        self.process = subprocess.Popen([*self.user, str(self.binaries / "postgres"), *place], cwd="/tmp", **QUIET)
        for _ in range(200):
            asked = [str(self.binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
            if subprocess.run(asked, **QUIET).returncode == 0:
                return
            time.sleep(0.1)
        raise AssertionError("the server did not start")

    def stop(self) -> None:
        """End the server and every connection to it."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)
            self.process = None

    def __exit__(self, *ending: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def as_postgres() -> list[str]:
    """A PostgreSQL server refuses to run as root: the words that start it as somebody else."""
    if os.getuid():
        return []
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    pytest.skip("PostgreSQL does not run as root, and there is no other user")


class Person:
    """A rater or whoever runs the project, with a browser that keeps cookies and nothing else."""

    def __init__(self, address: str, link: str = "") -> None:
        import httpx

        self.address = address
        self.client = httpx.Client(base_url=address, follow_redirects=False, timeout=30, verify=False)
        self.origin = {"origin": address}
        if link:
            assert self.client.get(link).status_code == 303

    def page(self, path: str) -> Any:
        """A page, redirects followed."""
        answer = self.client.get(path)
        while answer.status_code == 303:
            answer = self.client.get(answer.headers["location"])
        return answer

    def post(self, path: str, fields: Mapping[str, Any], **headers: str) -> Any:
        return self.client.post(path, data=fields, headers={**self.origin, **headers})

    def next(self, task: str = "") -> tuple[str, dict[str, str], str] | None:
        """The next item, the fields of its form and its page; None when there is nothing left."""
        answer = self.client.get("/work", params={"task": task})
        if answer.status_code == 200:
            assert "Nothing left" in answer.text
            return None
        assert answer.status_code == 303, (answer.status_code, answer.text)
        page = self.client.get(answer.headers["location"])
        assert page.status_code == 200, page.text
        return answer.headers["location"].rpartition("/")[2], fields_in(page.text), page.text


def fields_in(page: str) -> dict[str, str]:
    """The hidden fields of the first form of a page."""
    form = page[page.index("<form") : page.index("</form>")]
    hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in hidden}


def questions_in(page: str) -> list[str]:
    return [unescape(name) for name in re.findall(r'data-question="([^"]+)"', page)]
