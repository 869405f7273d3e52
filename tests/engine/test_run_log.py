"""run.log: what was run, by which versions, when and with what result; appended, also by several processes at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest

from revisit import __version__
from revisit.engine.cache import EvidenceCache
from revisit.engine.provenance import RunLog
from revisit.engine.request import Request
from revisit.engine.run import rescore

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00 \S+:\d+ ([a-z]+)(?:: (.*))?")


def events(folder: Path) -> list[tuple[str, str]]:
    lines = (folder / "run.log").read_text(encoding="utf-8").splitlines()
    matches = [LINE.fullmatch(line) for line in lines]
    assert all(matches), lines
    return [(match[1], match[2] or "") for match in matches if match is not None]


def test_a_run_logs_what_it_does_and_goes_on_in_the_same_file(tmp_path: Path, make_clip: Callable[..., Path]) -> None:
    make_clip(tmp_path / "videos/m/a.mp4", count=6)
    (tmp_path / "videos/m/b.mp4").write_bytes(b"no video")
    request, cache = Request.from_options(tmp_path / "videos", metrics=["flicker"]), EvidenceCache(tmp_path / "cache")
    run = request.run(tmp_path / "run", workers=0, cache=cache, command="revisit eval videos\n--evil")
    told = events(run.path)
    names = [name for name, _ in told if name != "note"]
    assert (names[:3], sorted(names[3:5]), names[5:]) == (
        ["started", "versions", "plan"], ["failed", "observed"], ["finished"],
    )  # fmt: skip
    facts = dict(told)
    assert facts["started"] == "revisit eval videos --evil"  # a line end in a command makes no line
    assert f"revisit {__version__}" in facts["versions"] and "numpy" in facts["versions"]
    assert "2 cases" in facts["plan"] and "b.mp4" in facts["failed"]
    assert any(name == "observed" and "a.mp4, 6 frames" in text for name, text in told)
    request.run(tmp_path / "run", workers=0, cache=cache)
    again = events(run.path)
    assert again[: len(told)] == told and again[len(told)] == ("started", "from Python")
    rescore(request.plan(), run.path, cache)
    assert [name for name, _ in events(run.path)[len(again) :]] == ["started", "finished"]


def test_an_interruption_is_logged(tmp_path: Path, make_clip: Callable[..., Path]) -> None:
    make_clip(tmp_path / "videos/m/a.mp4", count=6)

    class Impatient:
        def start(self, clips: int, cases: int, done: int) -> None: ...
        def advance(self, what: str, failed: int) -> None:
            raise KeyboardInterrupt

        def show_judge_progress(self, done: int, total: int, said: str) -> None: ...
        def finish(self) -> None: ...

    request = Request.from_options(tmp_path / "videos", metrics=["flicker"])
    with pytest.raises(KeyboardInterrupt):
        request.run(tmp_path / "run", workers=0, cache=EvidenceCache(tmp_path / "cache"), progress=Impatient())
    assert events(tmp_path / "run")[-1] == ("stopped", "interrupted")


def _write(folder: Path, name: str) -> None:
    log = RunLog(folder)
    for k in range(200):
        log.write("note", f"{name}{k} " + name * 3000)


def test_lines_of_several_processes_never_mix(tmp_path: Path) -> None:
    processes = [get_context("fork").Process(target=_write, args=(tmp_path, name)) for name in "abc"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    told = events(tmp_path)
    assert len(told) == 600
    assert all(re.fullmatch(r"([abc])(\d+) \1{3000}", text) for _, text in told)
