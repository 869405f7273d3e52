"""Runs in a browser while they go on: the same pages as on disk, made when they are asked for, with videos by ranges.

Nothing is written into the run. What can be read is a fixed list: the page, its scenes, pictures out of the evidence
of this run, its clips and references by name, and three files of the run. Several runs are a list on one page, and two
of them stand beside each other on another: what `revisit view RUN RUN …` opens with.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from revisit.core import EVIDENCE, Clip, MediaError, RevisitError, UsageError, digest, import_registering_modules
from revisit.core.grouping import group_items
from revisit.core.optional import import_optional
from revisit.core.text import printable_text
from revisit.engine.run_summary import current_results
from revisit.report.pages import Rows, RunPages
from revisit.report.standalone import html_and_policy_of_template
from revisit.report.videos import Placed, Videos, safe_evidence_key
from revisit.report.write_html import page_html_and_policy, scene_script
from revisit.results.display import observed_by_or_set, score_title_with_arrow
from revisit.results.run import Run
from revisit.results.verdict import load_verdict
from revisit.runs.comparability import Side, compare_sides, read_sides
from revisit.web.media import media_response, playable_file
from revisit.web.server import Application
from revisit.web.templates import Context

FILES = {"summary.json": "application/json", "run.json": "application/json", "records.jsonl": "text/plain"}
WATCHED = ("run.json", "plan.json", "records.jsonl", "summary.json")
PICTURES = ("thumbnails", "judge_frames")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Served(Videos):
    """Clips under names of their own; pictures are taken from the evidence when they are asked for."""

    clips: dict[str, Clip] = field(default_factory=dict)

    def keep_picture(self, address: str, picture: Callable[[], bytes]) -> None:
        pass

    def video_address(self, clip: Clip) -> Placed:
        if not clip.path.exists():
            return {"src": None, "note": f"The video is no longer at {clip.path}."}
        name = digest([str(clip.path), clip.fps, clip.start, clip.count], 20)
        self.clips[name] = clip
        return {"src": f"media/{name}", "start": 0, "note": None}


class LiveRun:
    """One run, and the newest pages of it."""

    def __init__(self, run: Run, copies: Path) -> None:
        self.run, self.copies = run, copies
        self.videos = Served(copies)
        self.rows: Rows = {}
        self.lock = threading.Lock()  # pages are made by one request; the others wait for it
        self._book: tuple[str, RunPages] | None = None

    def state_digest(self) -> str:
        """Changes when the run has gone on."""
        paths = [self.run.path / name for name in WATCHED]
        return digest([[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in paths if path.is_file()])

    def stamp_and_pages(self) -> tuple[str, RunPages]:
        """Stamp and pages, made anew where the run has gone on."""
        with self.lock:
            stamp = self.state_digest()
            if self._book is None or self._book[0] != stamp:
                self._book = stamp, RunPages(self.run, current_results(self.run), self.videos, self.rows)
            return self._book

    def html_and_policy(self) -> tuple[str, str]:
        stamp, pages = self.stamp_and_pages()
        with self.lock:
            return page_html_and_policy(pages, {}, live={"stamp": stamp})

    def scene_script_or_none(self, key: str) -> str | None:
        _, pages = self.stamp_and_pages()
        with self.lock:
            return scene_script(pages.scene_content(key)) if key in pages.scenes else None

    def progress_state(self) -> Context:
        """How far the run is. No pages are made for it: this is asked every few seconds."""
        facts = self.run.facts
        finished = bool(facts["invocations"]) and bool(facts["invocations"][-1]["finished"])
        done = len(self._book[1].results.cases) if self._book else 0
        expected = sum(not case.get("truth") for case in self.run.plan["cases"])
        return {"stamp": self.state_digest(), "going": not finished, "done": done, "of": expected}

    def find_picture(self, name: str, frame: int) -> bytes | None:
        """The picture of a frame, out of evidence of this run whose key starts so."""
        _, pages = self.stamp_and_pages()
        for kind, key in _picture_keys_by_name(pages).get(name, ()):
            pictures = _load_evidence(pages, kind, key)
            if pictures is not None and frame in pictures.index:
                jpeg: bytes = pictures.picture(pictures.index.tolist().index(frame))
                return jpeg
        return None

    def playable_path(self, name: str) -> Path | None:
        """The file of a clip as a browser can show it; made once where it is none."""
        clip = self.videos.clips.get(name)
        return None if clip is None else _playable_file(clip, self.copies).path


@lru_cache(maxsize=8)
def _picture_keys_by_name(pages: RunPages) -> dict[str, list[tuple[str, str]]]:
    entries = pages.plan["cases"]
    evidence = [part for one in entries for part in (one.get("evidence", {}), one.get("reference_evidence", {}))]
    pictures = [(kind, key) for part in evidence for kind in PICTURES if (key := safe_evidence_key(part, kind))]
    return group_items(pictures, lambda picture: picture[1][:16])


@lru_cache(maxsize=48)
def _load_evidence(pages: RunPages, kind: str, key: str) -> Any:
    return pages.cache.load(EVIDENCE[kind], key)


_playable_file = lru_cache(maxsize=4096)(playable_file)


def make_live_application(runs: Sequence[Path], copies: Path) -> Application:
    """The server of these runs; `copies` is a folder for what browsers cannot play as it is."""
    import_optional("starlette", "annotate")
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
    from starlette.routing import Route

    import_registering_modules()
    live_runs = _runs_by_address([LiveRun(Run(path), copies) for path in runs])

    def value_or_404(value: Value | None, what: str) -> Value:
        """The value; the page that it is not there where it is None."""
        if value is None:
            raise HTTPException(404, f"There is no such {what}.")
        return value

    def run_of_request(request: Any) -> LiveRun:
        return value_or_404(live_runs.get(request.path_params["run"]), "run")

    def html_response(html: str, policy: str) -> Response:
        headers = {"content-security-policy": f"{policy}; frame-ancestors 'none'", "cache-control": "no-store"}
        return HTMLResponse(html.encode(errors="replace"), headers=headers)

    def home_response(request: Any) -> Response:
        if len(live_runs) == 1:
            return RedirectResponse(f"/{next(iter(live_runs))}/")
        lines = run_entries_newest_first([(name, live_run.run) for name, live_run in live_runs.items()])
        scripts = ("sort.js", "runs.js")
        return html_response(*html_and_policy_of_template("runs.html", f"{len(lines)} runs", scripts, {"runs": lines}))

    def diff_response(request: Any) -> Response:
        names = [request.query_params.get(side, "") for side in ("a", "b")]
        if names[0] == names[1] or any(name not in live_runs for name in names):
            raise HTTPException(404, "Two different runs of the list are compared: /diff?a=NAME&b=NAME.")
        try:
            return html_response(*diff_page({name: live_runs[name].run for name in names}))
        except RevisitError as error:
            raise HTTPException(409, f"These runs cannot be compared: {error}.") from None

    def page_response(request: Any) -> Response:
        return html_response(*run_of_request(request).html_and_policy())

    def scene_response(request: Any) -> Response:
        text = value_or_404(run_of_request(request).scene_script_or_none(request.path_params["key"]), "scene")
        headers = {"cache-control": "no-store"}
        return Response(text.encode(errors="replace"), media_type="text/javascript", headers=headers)

    def picture_response(request: Any) -> Response:
        frame = request.path_params["frame"]
        sound = frame.isascii() and frame.isdecimal() and len(frame) < 10
        jpeg = run_of_request(request).find_picture(request.path_params["name"], int(frame)) if sound else None
        headers = {"cache-control": "private, max-age=3600"}
        return Response(value_or_404(jpeg, "picture"), media_type="image/jpeg", headers=headers)

    def clip_file_response(request: Any) -> Any:
        name = request.path_params["name"]
        try:
            path = run_of_request(request).playable_path(name)
            return media_response({} if path is None else {name: path}, name)
        except MediaError as error:
            raise HTTPException(404, str(error)) from None

    def run_file_response(request: Any) -> Response:
        name = request.path_params["name"]
        path = run_of_request(request).run.path / name
        content = path.read_bytes() if name in FILES and path.is_file() else None
        return PlainTextResponse(value_or_404(content, "file"), media_type=FILES[name])

    return Starlette(
        routes=[
            Route("/", home_response),
            Route("/diff", diff_response),
            Route("/{run}/", page_response),
            Route("/{run}/state", lambda request: JSONResponse(run_of_request(request).progress_state())),
            Route("/{run}/scenes/{key}.js", scene_response),
            Route("/{run}/frames/{name}/{frame}.jpg", picture_response),
            Route("/{run}/media/{name}", clip_file_response),
            Route("/{run}/files/{name}", run_file_response),
        ]
    )


def _runs_by_address(live_runs: Sequence[LiveRun]) -> dict[str, LiveRun]:
    """Runs by a name that can stand in an address: a number, and the folder of the run as far as it is plain."""
    runs_by_name = {}
    for k, live_run in enumerate(live_runs, 1):
        plain = "".join(c for c in live_run.run.path.resolve().name if c.isascii() and (c.isalnum() or c in "-_"))
        runs_by_name[f"{k}-{plain}" if plain else str(k)] = live_run
    if not runs_by_name:
        raise UsageError("name a run directory to view; `revisit eval SOURCE --out DIR` makes one")
    return runs_by_name


def run_entries_newest_first(runs: Sequence[tuple[str, Run]]) -> list[Context]:
    """What the list says of each run, by the name that it has in an address; the newest first."""
    return sorted((_run_entry(key, run) for key, run in runs), key=lambda line: str(line["started"]), reverse=True)


def _run_name(run: Run) -> str:
    """The name of its folder; one that is called `run`, as `eval` calls it beside the videos, with the folder above."""
    path = run.path.resolve()
    return f"{path.parent.name}/{path.name}" if path.name == "run" else path.name


def _run_entry(key: str, run: Run) -> Context:
    """What the list says of a run; of one that cannot be read, why."""
    line: Context = {"key": key, "name": printable_text(_run_name(run)), "path": printable_text(str(run.path))}
    try:
        calls = run.facts["invocations"]
        started = str(calls[0]["started"]) if calls else ""
        cases = [case for case in run.plan["cases"] if not case.get("truth")]
        going = not (calls and calls[-1]["finished"])
        return {
            **line,
            "started": started,
            "date": started[:16].replace("T", " "),
            "going": going,
            "suite": printable_text(run.facts["suite"]),
            "clips": len(cases),
            "models": printable_text(", ".join(sorted({case["model"] for case in cases}))),
            "verdict": "" if going else printable_text(_verdict_sentence(run)),
        }
    except RevisitError as error:
        unread: Context = dict.fromkeys(("started", "date", "suite", "clips", "models"), "")
        return {**line, **unread, "going": True, "verdict": printable_text(str(error))}


def _verdict_sentence(run: Run) -> str:
    sentence = str(load_verdict(run)["sentence"]) or "one model alone: nothing to compare it with"
    return sentence[:1].upper() + sentence[1:]


def diff_page(runs: Mapping[str, Run]) -> tuple[str, str]:
    """Two runs beside each other: how they were made, and every model of the second against one of the first."""
    both = list(runs.values())
    comparisons = compare_sides(_sides_to_compare(read_sides([str(run.path) for run in both]), both[0]))
    refused = [(why, score_title_with_arrow(metric)) for one in comparisons for metric, why in one.refusals.items()]
    names = [_run_name(run) for run in both]
    content: Context = {
        "keys": list(runs),
        "names": names,
        "settings": _differing_settings(*both),
        "comparisons": comparisons,
        "refused": group_items(refused, lambda one: one[0]),
    }
    return html_and_policy_of_template("diff.html", f"{names[1]} against {names[0]}", ("sort.js",), content)


def _sides_to_compare(sides: Sequence[Side], first: Run) -> list[tuple[Side, Side]]:
    """Models of one name; where the runs share none, all of the second against the first of the first."""
    mine = [side for side in sides if side.run.path == first.path]
    yours = [side for side in sides if side.run.path != first.path]
    same = [(one, other) for other in yours for one in mine if one.model == other.model]
    return same or [(mine[0], other) for other in yours]


def _differing_settings(first: Run, second: Run) -> list[tuple[str, str, str]]:
    """What two runs say differently of how they were made."""

    def settings_of_run(run: Run) -> dict[str, str]:
        facts, request = run.facts, run.facts.get("request") or {}
        judge = facts["protocol"].get("judge") or {}
        return {
            "Revisit": facts["revisit"],
            "Source": str(request.get("source", "")),
            "Suite": facts["suite"],
            "Protocol": f"{facts['protocol']['name']}:{facts['protocol']['hash']}",
            "Observers": observed_by_or_set(facts),
            "Judge": str(judge.get("model", "none")),
            "Models": ", ".join(sorted({case["model"] for case in run.plan["cases"] if not case.get("truth")})),
            "Clips": str(sum(not case.get("truth") for case in run.plan["cases"])),
            "Started": str(facts["invocations"][0]["started"])[:16].replace("T", " ") if facts["invocations"] else "",
        }

    one, other = settings_of_run(first), settings_of_run(second)
    return [(name, one[name], other[name]) for name in one if one[name] != other[name]]
