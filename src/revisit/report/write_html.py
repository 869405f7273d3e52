"""The HTML report: a folder that opens from disk, loads nothing from elsewhere and runs no script but its own.

Text from outside (file names, prompts, models, reasons, what a judge said) meets the page in two ways only: through
Jinja with autoescaping, and as JSON whose script writes it with `textContent`. What the list of clips needs is in the
page itself; each scene lies in a small file beside it, which is loaded when the scene is opened. Pages on disk may not
fetch files, so these are scripts that hold one text of JSON; the policy lets only our own script load them.

A run that grew by one clip is described one clip more. Beside the page lies `made.json`: for each scene the digest of
everything it was made from, the rows of its clips and the pictures it shows. A scene whose digest is the same is left
as it is. The file is taken away while a page is written, so that it never speaks of a page that a kill left half done.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import FileSystemBytecodeCache
from markupsafe import Markup

from revisit.core import Case, digest, import_registering_modules
from revisit.engine.leases import Claims
from revisit.engine.run_summary import CurrentResults
from revisit.media.files import atomic_write_path
from revisit.report.page_data import page_content
from revisit.report.pages import RunPages
from revisit.report.standalone import csp_source_hash, page_templates, read_asset
from revisit.report.videos import SHOWN, Videos
from revisit.results.record_files import RecordLines
from revisit.results.run import Run
from revisit.web.templates import Context

MADE = "made.json"  # what the page was made from
ROOMS = ("core", "evidence", "media", "report", "results", "web")  # whose code decides what a scene looks like


@dataclass(frozen=True)
class ScenePart:
    """A scene that was made: of what, how large its file is, the rows of its clips and the pictures it shows."""

    made_of: str
    size: int
    rows: Mapping[str, Context]  # by case
    pictures: tuple[str, ...]  # addresses


def write_report(run: Run, *, copy_clips: bool = False, by: Mapping[str, Mapping[str, Any]] | None = None) -> Path:
    """Write RUN/report/index.html with its pictures and scenes beside it; return its path.

    With `copy_clips` the videos go into the folder too, so that it can be sent to someone. `by` holds tables of
    groups of clips (runs/group_by.py), by the expression that made them.
    """
    import_registering_modules()
    claims = Claims(run.path)
    try:
        with claims.hold_write_lock():  # several processes may have shared the run, and end at once
            return _write_report_files(run, copy_clips, by or {})
    finally:
        claims.close()


def _write_report_files(run: Run, copy_clips: bool, by: Mapping[str, Mapping[str, Any]]) -> Path:
    folder = run.path / "report"
    shutil.rmtree(folder / "clips", ignore_errors=True)
    (folder / "scenes").mkdir(parents=True, exist_ok=True)
    videos = Videos(folder, copy_clips)
    pages = RunPages(run, CurrentResults(run.results, run.summary, run.diagnosis), videos)
    basis, lines, missing = _digest_shared_by_scenes(pages), run.lines, _missing_unit_files(pages)
    there = {*_addresses_of_files(folder, "frames"), *_addresses_of_files(folder, "scenes")}
    earlier = _take_intact_scene_parts(folder, basis, there)
    parts: dict[str, ScenePart] = {}
    for key, cases in pages.scenes.items():
        made_from, part = _scene_digest(pages, cases, lines, missing), earlier.get(key)
        if part is None or part.made_of != made_from or copy_clips:  # a clip is copied anew
            videos.used.clear()
            content = scene_script(pages.scene_content(key)).encode(errors="replace")
            (folder / "scenes" / f"{key}.js").write_bytes(content)
            rows = {case.id: pages.list_row(case) for case in cases}  # while its pictures are in memory
            part = ScenePart(made_from, len(content), rows, tuple(videos.used))
        pages.rows.update({case.id: (pages.count_answers_with_truth(case), part.rows[case.id]) for case in cases})
        parts[key] = part
    videos.used.clear()
    html, _ = page_html_and_policy(pages, by)
    pictures = {*videos.used, *(picture for part in parts.values() for picture in part.pictures)}
    _remove_page_files(folder, there.difference(pictures, (f"scenes/{key}.js" for key in parts)))
    with atomic_write_path(folder / "index.html") as temporary:
        temporary.write_text(html, encoding="utf-8", errors="replace")
    if not copy_clips:
        with atomic_write_path(folder / MADE) as temporary:
            record = {"basis": basis, "scenes": {key: vars(part) for key, part in parts.items()}}
            temporary.write_bytes(msgspec.json.encode(record))
    return folder / "index.html"


def page_html_and_policy(
    pages: RunPages, by: Mapping[str, Mapping[str, Any]], live: Mapping[str, object] | None = None
) -> tuple[str, str]:
    """The page, and the policy that it is under. `live` is what a server says of a run that may still be going."""
    style = "".join(map(read_asset, ("base.css", "tables.css", "report.css")))
    style += (files("revisit.web") / "static" / "player.css").read_text(encoding="utf-8")
    scripts = ("common.js", "sort.js", "list.js", "scene.js", *(("live.js",) if live is not None else ()))
    player = (files("revisit.web") / "static" / "player.js").read_text(encoding="utf-8")
    script = "\n".join([player, *map(read_asset, scripts)])
    # 'self' covers a page on a web server, `file:` one on disk, where browsers do not agree on what 'self' is.
    # 'strict-dynamic': the one script that is allowed by its digest may load the scenes, and no markup may.
    policy = (
        f"default-src 'none'; img-src 'self' file: data:; media-src 'self' file:; style-src "
        f"'{csp_source_hash(style)}'; "
        f"script-src '{csp_source_hash(script)}' 'strict-dynamic'; "
        f"connect-src '{'none' if live is None else 'self'}'; base-uri 'none'; form-action 'none'"
    )
    content = {
        **page_content(pages, by),
        "live": live,
        "files": "files" if live is not None else "..",
        "index": json_for_script({**pages.index_content(), "live": live}),
    }
    page = page_templates(_template_cache_if_writable()).get_template("page.html")
    return page.render(policy=policy, style=Markup(style), script=Markup(script), **content), policy


def scene_script(content: Any) -> str:
    """A script that hands one text of JSON to the page; a text, so that no name in it can mean anything to a script."""
    return f"revisitScene({json_for_script(json.dumps(content, ensure_ascii=False, allow_nan=False))});\n"


def json_for_script(content: Any) -> Markup:
    """JSON that cannot end the script element it stands in, nor be taken for markup or code."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _template_cache_if_writable() -> FileSystemBytecodeCache | None:
    """Compiled templates lie where Python keeps compiled modules, if it may keep them: to compile takes longest."""
    place = Path(cache_from_source(__file__)).parent
    may = not sys.dont_write_bytecode and os.access(place, os.W_OK)
    return FileSystemBytecodeCache(str(place), "page-%s.cache") if may else None


def _take_intact_scene_parts(folder: Path, basis: str, there: Set[str]) -> dict[str, ScenePart]:
    """Scenes of an earlier page that are whole, by key; none where the page was made on another basis."""
    path = folder / MADE
    try:
        content = msgspec.json.decode(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    path.unlink()
    if content.get("basis") != basis:
        return {}
    sizes = {entry.name: entry.stat().st_size for entry in os.scandir(folder / "scenes")}
    parts = {key: ScenePart(**{**part, "pictures": tuple(part["pictures"])}) for key, part in content["scenes"].items()}
    whole = {key for key, part in parts.items() if sizes.get(f"{key}.js") == part.size and there >= {*part.pictures}}
    return {key: parts[key] for key in whole}


def _remove_page_files(folder: Path, addresses: Iterable[str]) -> None:
    """Remove scenes and pictures that no page shows any more."""
    for address in addresses:
        path = folder / address
        path.unlink()
        if path.parent.name != "scenes" and not any(path.parent.iterdir()):
            path.parent.rmdir()


def _digest_shared_by_scenes(pages: RunPages) -> str:
    """What all scenes are made from: the code, the cards of what is asked, and where things lie."""
    places = [pages.facts["protocol"]["align"], str(pages.cache.root), str(pages.videos.folder)]
    return digest([_page_code_digest(), pages.cards, pages.gates, *places], 40)


def _missing_unit_files(pages: RunPages) -> set[str]:
    """The files of values per frame that answers name and the run has not."""
    cases = (*pages.results.cases, *pages.results.truths)
    unit_files = {record.units for case in cases for record in pages.results.of(case).values()}
    return unit_files.difference(_addresses_of_files(pages.run.path, "units"), {""})


def _scene_digest(pages: RunPages, cases: Sequence[Case], lines: RecordLines, lost: Collection[str]) -> str:
    """The digest of everything that only this scene is made from; `lost` are files of values per frame."""
    sha = hashlib.sha256()
    truths = (pages.results.truth_of(case) for case in cases)
    for case in {case.id: case for case in (*cases, *truths) if case is not None}.values():
        planned = pages.planned[case.id]
        sha.update(msgspec.json.encode([planned, pages.diagnoses.get(case.id), lines.digest_of_case_lines(case.id)]))
        parts = (planned.get("evidence", {}), planned.get("reference_evidence", {}))
        evidence = [key for part in parts for kind, key in part.items() if kind in SHOWN]
        sha.update(bytes(key in pages.cache for key in evidence))
        if lost:
            sha.update(bytes(record.units in lost for record in pages.results.of(case).values()))
        for clip in filter(None, (case.clip, case.reference)):
            sha.update(
                f"{pages.videos.resolve_path(clip.path)} {_file_mode_size_and_time(clip.path)}".encode(errors="replace")
            )
    return sha.hexdigest()


def _file_mode_size_and_time(path: Path) -> str:
    """Of a video or a folder of frames: whether it is there, and its size and time, as a header is read from it."""
    try:
        status = path.stat()
    except OSError:
        return "none"
    return f"{status.st_mode} {status.st_size} {status.st_mtime_ns}"


def _addresses_of_files(folder: Path, name: str) -> Iterable[str]:
    """Addresses of the files in a folder and the folders in it."""
    if not (folder / name).is_dir():
        return
    for entry in os.scandir(folder / name):
        address = f"{name}/{entry.name}"
        yield from [f"{address}/{file}" for file in os.listdir(entry)] if entry.is_dir() else [address]  # noqa: PTH208


@lru_cache(maxsize=1)
def _page_code_digest() -> str:
    """A digest of the code that describes clips: a page of other code is made anew."""
    sha = hashlib.sha256()
    for room in ROOMS:
        for file in sorted((Path(__file__).parents[1] / room).rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                sha.update(file.read_bytes())
    return sha.hexdigest()
