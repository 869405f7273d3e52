"""What of an earlier page still holds, so that a run that grew by one clip is described one clip more.

Beside the page lies `made.json`: for each scene the digest of everything it was made from, the rows of its clips and
the pictures it shows. A scene whose digest is the same is left as it is. The file is taken away while a page is
written, so that it never speaks of a page that a kill left half done.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

import revisit
from revisit.core import digest
from revisit.core.text import parse_json
from revisit.media.files import atomic_write_path
from revisit.report.film_strips import SHOWN
from revisit.report.pages import PageScene, RunPages
from revisit.results.record_files import RecordLines
from revisit.web.templates import Context

NAME = "made.json"
ROOMS = ("core", "evidence", "media", "report", "results", "web")  # whose code decides what a scene looks like


@dataclass(frozen=True)
class ScenePart:
    """A scene that was made: of what, how large its file is, the rows of its clips and the pictures it shows."""

    made_of: str
    size: int
    rows: Mapping[str, Context]  # by case
    pictures: tuple[str, ...]  # addresses


def addresses_of_page_files(folder: Path) -> set[str]:
    """Addresses of the scenes and pictures of an earlier page."""
    return {*_addresses_of_files(folder, "frames"), *_addresses_of_files(folder, "scenes")}


def take_intact_scene_parts(folder: Path, basis: str, there: Set[str]) -> dict[str, ScenePart]:
    """Scenes of an earlier page that are whole, by key; none where the page was made on another basis."""
    path = folder / NAME
    try:
        content = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    path.unlink()
    if content.get("basis") != basis:
        return {}
    sizes = {entry.name: entry.stat().st_size for entry in os.scandir(folder / "scenes")}
    parts = {key: ScenePart(**{**part, "pictures": tuple(part["pictures"])}) for key, part in content["scenes"].items()}
    whole = {key for key, part in parts.items() if sizes.get(f"{key}.js") == part.size and there >= {*part.pictures}}
    return {key: parts[key] for key in whole}


def write_scene_parts(folder: Path, basis: str, parts: Mapping[str, ScenePart]) -> None:
    with atomic_write_path(folder / NAME) as temporary:
        content = {"basis": basis, "scenes": {key: vars(part) for key, part in parts.items()}}
        temporary.write_bytes(msgspec.json.encode(content))


def remove_page_files(folder: Path, addresses: Iterable[str]) -> None:
    """Remove scenes and pictures that no page shows any more."""
    for address in addresses:
        path = folder / address
        path.unlink()
        if path.parent.name != "scenes" and not any(path.parent.iterdir()):
            path.parent.rmdir()


def digest_shared_by_scenes(pages: RunPages) -> str:
    """What all scenes are made from: the code, the cards of what is asked, and where things lie."""
    places = [pages.facts["protocol"]["align"], str(pages.cache.root), str(pages.videos.folder)]
    return digest([_page_code_digest(), pages.cards, pages.gates, *places], 40)


def missing_unit_files(pages: RunPages) -> set[str]:
    """The files of values per frame that answers name and the run has not."""
    cases = (*pages.results.cases, *pages.results.truths)
    unit_files = {record.units for case in cases for record in pages.results.of(case).values()}
    return unit_files.difference(_addresses_of_files(pages.run.path, "units"), {""})


def scene_digest(pages: RunPages, scene: PageScene, lines: RecordLines, lost: Collection[str]) -> str:
    """The digest of everything that only this scene is made from; `lost` are files of values per frame."""
    sha = hashlib.sha256()
    truths = (pages.results.truth_of(case) for case in scene.cases)
    for case in {case.id: case for case in (*scene.cases, *truths) if case is not None}.values():
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
        for file in sorted((Path(revisit.__file__).parent / room).rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                sha.update(file.read_bytes())
    return sha.hexdigest()
