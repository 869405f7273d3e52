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

import msgspec

from revisit.core import MissingPrerequisite, RevisitError, UsageError
from revisit.http_client import Progress, Unavailable, download, ignore_progress, url_without_secrets
from revisit.media.digest import file_digest
from revisit.weights import archives, convert, registries
from revisit.weights.lock import LockedFile, LockedWeights, Source, require_lock_entry
from revisit.weights.weights_folder import (
    DAMAGED,
    RECEIPT,
    FileRecord,
    Receipt,
    WeightsProblem,
    find_local_weights,
    read_receipt,
    weights_problem_text,
    weights_root,
)

MIRROR, OFFLINE = "REVISIT_MIRROR", "REVISIT_OFFLINE"
WORK = ".pulling"  # downloads and unfinished folders, below the root
REGISTRIES = ("pypi", "npm")


@dataclass(frozen=True)
class PullResult:
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
    progress: Progress = ignore_progress
    mirror: str = ""  # a folder or an address that is asked first
    work: Path = field(default_factory=lambda: weights_root() / WORK)
    archives: dict[str, Path] = field(default_factory=dict)


def pull_weights(
    ids: Sequence[str],
    *,
    offline: bool = False,
    again: bool = False,
    mirror: str = "",
    progress: Progress = ignore_progress,
    say: Callable[[str], None] = lambda text: None,
) -> list[PullResult]:
    """Bring the weights of these ids here; what is here and whole is left alone unless it is wanted `again`.

    A `mirror` takes the place of the one that the environment names.
    """
    locked_entries = [require_lock_entry(id) for id in dict.fromkeys(ids)]
    if not again and all(not isinstance(find_local_weights(one), str) for one in locked_entries):
        return [_pull_entry(one, Pull(), again) for one in locked_entries]
    with _disk_errors_as_sentences(), _hold_pull_lock(say):
        offline = offline or os.environ.get(OFFLINE, "") not in ("", "0")
        batch = Pull(offline, progress, mirror or os.environ.get(MIRROR, ""))
        try:
            outcomes = []
            for one in locked_entries:
                outcomes.append(_pull_entry(one, batch, again))
                if outcomes[-1].state == "pulled":
                    say(f"{one.id}: pulled from {outcomes[-1].said}")
            return outcomes
        finally:
            for archive in batch.archives.values():
                archive.unlink(missing_ok=True)


def forecast_pull(ids: Sequence[str], *, again: bool = False) -> list[dict[str, Any]]:
    """What a pull would fetch: id, state, bytes, licence and the first source.

    An archive counts once: others that lie in it name the id that brings it in `archive_of`.
    """
    rows = []
    archives_of: dict[str, str] = {}
    for id in dict.fromkeys(ids):
        locked, local = require_lock_entry(id), find_local_weights(require_lock_entry(id))
        source = locked.sources[0] if locked.sources else None
        row: dict[str, Any] = {"id": id, "title": locked.title, "licence": locked.licence, "gated": locked.gated}
        row["archive_of"] = ""
        if not isinstance(local, str) and (local.receipt is None or not again):
            row |= {"state": local.state, "bytes": 0, "source": str(local.first_file)}
        elif source is None:
            row |= {"state": "by hand only", "bytes": 0, "source": locked.note or "no source; install it by hand"}
        else:
            row |= {"state": "gated" if locked.gated else "to fetch", "source": str(source), "bytes": locked.size}
            if source.kind in REGISTRIES:
                first = archives_of.setdefault(str(source), id)
                row |= {"bytes": source.size} if first == id else {"bytes": 0, "archive_of": first}
        rows.append(row)
    return rows


def _pull_entry(locked: LockedWeights, batch: Pull, again: bool) -> PullResult:
    local = find_local_weights(locked, read_bytes=again)
    if not isinstance(local, str) and (local.receipt is None or not again):
        return PullResult(locked.id, local.state, str(local.first_file))
    was_damaged = isinstance(local, WeightsProblem) and local.state == DAMAGED
    started = time.monotonic()
    try:
        source = fetch_from_first_source(locked, batch)
    except RevisitError as error:
        return PullResult(locked.id, "failed", str(error), time.monotonic() - started, error.exit_code)
    return PullResult(locked.id, "pulled", source, time.monotonic() - started, mended=was_damaged)


def fetch_from_first_source(locked: LockedWeights, batch: Pull) -> str:
    """The source that gave all files of an entry, which now lie in their place; raises where none did."""
    for file in locked.files:
        if file.is_pickle and not file.sha256 and locked.sources:
            raise UsageError(f"{locked.id}: {file.name} is a pickle without a digest in the lock, so it is not used")
        if reason := convert.why_cannot_convert(file.convert):
            raise MissingPrerequisite(f"{locked.id}: {reason}")
    place = weights_root() / locked.id
    if read_receipt(place) is None and place.is_dir() and any(place.iterdir()):
        raise RevisitError(f"{place}: it has files that were not pulled; move them away, or complete them by hand")
    reasons: list[str] = []
    code = MissingPrerequisite.exit_code
    for label, get in _download_attempts(locked, batch):
        try:
            with _staging_folder(batch.work / locked.id, locked) as staging:
                archive = get(staging)
                _move_into_place(staging, place, _verify_and_convert(locked, staging, label, archive))
            return label
        except Unavailable as error:
            refused = error.status in registries.DENIED and label.startswith("hub")
            reasons.append(f"{label}: {registries.access_denied_text(locked, error) if refused else error}")
        except RevisitError as error:
            reasons.append(f"{label}: {error}")
            code = min(code, error.exit_code)
    failed = RevisitError(_failed_pull_text(locked, batch, reasons))
    failed.exit_code = code
    raise failed


def _failed_pull_text(locked: LockedWeights, batch: Pull, reasons: list[str]) -> str:
    """The sentence for an entry that no source gave, after what was said of those that were tried."""
    local = find_local_weights(locked)
    if not locked.sources and not reasons and isinstance(local, str):
        return weights_problem_text(locked, local)
    tried = f": {'; '.join(reasons)}" if reasons else ""
    if not batch.offline:
        return f"{locked.id}{tried or ': the lock names no source; existing files are kept'}"
    state = f"is {local.state}: {local}" if isinstance(local, str) else "is kept as it is"
    return f"{locked.id} {state}, and nothing is fetched offline{tried}"


Getter = Callable[[Path], "dict[str, str] | None"]  # fills a folder with the files; tells the archive they came from


def _download_attempts(locked: LockedWeights, batch: Pull) -> Iterator[tuple[str, Getter]]:
    """Ways to get an entry, in the order in which they are tried."""
    mirror = batch.mirror
    if mirror and not (batch.offline and _is_url(mirror)):
        below = Source(folder=f"{mirror.rstrip('/')}/{locked.id}/")
        where = url_without_secrets(mirror) if _is_url(mirror) else mirror
        yield f"mirror {where}", partial(_copy_or_download_files, locked, below, batch)
    for source in locked.sources:
        if source.folder:
            yield str(source), partial(_copy_or_download_files, locked, source, batch)
        elif all(any(True for _ in registries.find_cached_files(source, file)) for file in locked.files):
            yield f"cache of {source}", partial(_copy_or_download_files, locked, source, batch, cached=True)
    for source in () if batch.offline else locked.sources:
        if not source.folder:
            get = _extract_files_from_archive if source.kind in REGISTRIES else _copy_or_download_files
            yield str(source), partial(get, locked, source, batch)


def _is_url(place: str) -> bool:
    return "://" in place


def _copy_or_download_files(
    locked: LockedWeights, source: Source, batch: Pull, staging: Path, cached: bool = False
) -> None:
    """From a hub, a folder or an address, where the files lie by their names, or as others have cached them here."""
    where = source.location
    for file in locked.files:
        path, to = source.path_in_source(file), _path_with_parent_folder(staging, file.name)
        if cached or not (source.hub or _is_url(where)):
            local = next(registries.find_cached_files(source, file)) if cached else Path(where).expanduser() / path
            if not local.is_file():
                raise Unavailable(f"{local}: there is no such file")
            shutil.copyfile(local, to)
        elif not _is_staged_and_verified(staging, file):
            url = where + urllib.parse.quote(path) if where.endswith("/") else where
            remote = registries.hub_download_address(source, path) if source.hub else registries.RemoteFile(url)
            _download_verified(remote, to, file.sha256, file.size, batch, f"{locked.id}/{file.name}")


def _extract_files_from_archive(locked: LockedWeights, source: Source, batch: Pull, staging: Path) -> dict[str, str]:
    path, digest = _fetch_archive(source, batch)
    places = {source.path_in_source(file): _path_with_parent_folder(staging, file.name) for file in locked.files}
    archives.extract_and_hash_members(path, places, {source.path_in_source(file): file.size for file in locked.files})
    return {"name": path.name, "sha256": digest}


def _fetch_archive(source: Source, batch: Pull) -> tuple[Path, str]:
    """An archive of a registry and its digest, verified before anybody opens it; each is fetched once in a round."""
    package, _, version = source.location.rpartition("@" if source.kind == "npm" else "==")
    name = source.archive or f"{package.replace('/', '-').lstrip('@')}-{version}.tgz"
    path = batch.work / name
    if str(source) in batch.archives:
        return path, source.sha256 or file_digest(path)
    if source.npm:
        remote = registries.find_npm_archive(package, version)
    else:
        remote = registries.find_pypi_archive(package, source.archive)
    digest = _download_verified(remote, path, source.sha256, source.size, batch, name)
    batch.archives[str(source)] = path
    return path, digest


def _download_verified(
    remote: registries.RemoteFile, to: Path, pin: str, size: int | None, batch: Pull, label: str
) -> str:
    """SHA-256 of a file that was fetched and is what the lock says."""
    # Where a download grows: a later pull takes it up only where the digest tells whether the whole is right.
    part = batch.work / f"{label.replace('/', '--')}{'-' + pin[:16] if pin else ''}.part"
    if not pin:
        part.unlink(missing_ok=True)
    is_resumed = part.exists()

    def download_and_hash() -> str:
        download(remote.url, part, headers=remote.headers, most=size, progress=batch.progress, what=label)
        return file_digest(part)

    digest = download_and_hash()
    if is_resumed and not digest.startswith(pin):  # what an earlier pull left may not belong to this file
        part.unlink()
        digest = download_and_hash()
    _require_digest(digest, pin, label, part)
    part.replace(to)
    return digest


def _require_digest(digest: str, pin: str, name: str, path: Path) -> None:
    """Refuse and remove a file that is not what the lock says."""
    if not digest.startswith(pin):
        path.unlink(missing_ok=True)
        raise RevisitError(f"{name}: its SHA-256 is {digest}, but the lock says {pin}; it was not used")


def _path_with_parent_folder(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _verify_and_convert(locked: LockedWeights, staging: Path, label: str, archive: dict[str, str] | None) -> Receipt:
    """Verify and convert what lies in the staging folder; the receipt of it."""
    files: dict[str, FileRecord] = {}
    for file in locked.files:
        raw, final = staging / file.name, staging / file.becomes
        digest = file_digest(raw)
        _require_digest(digest, file.sha256, file.name, raw)
        earlier = (read_receipt(weights_root() / locked.id) or Receipt()).files.get(file.becomes)
        if not file.sha256 and earlier and digest != earlier.source_sha256:
            raise RevisitError(
                f"{file.name}: its SHA-256 is {digest}, but was {earlier.source_sha256} at the first pull; remove "
                f"{weights_root() / locked.id} to accept the new one"
            )
        if file.convert:
            converted = _path_with_parent_folder(staging, f".converted-{file.becomes}")
            convert.convert_to_safetensors(file.convert, raw, converted)
            raw.unlink()
            converted.replace(final)
        elif raw != final:
            raw.replace(_path_with_parent_folder(staging, file.becomes))
        files[file.becomes] = FileRecord(
            source=file.name,
            source_sha256=digest,
            sha256=file_digest(final) if file.convert else digest,
            size=final.stat().st_size,
            mtime_ns=final.stat().st_mtime_ns,
            convert=file.convert,
            converter=convert.VERSION if file.convert else 0,
        )
    return Receipt(locked.id, label, archive, locked.licence, files)


def _move_into_place(staging: Path, place: Path, receipt: Receipt) -> None:
    """Put the finished folder in its place; an older one there vanishes."""
    (staging / RECEIPT).write_text(json.dumps(msgspec.to_builtins(receipt), indent=1), encoding="utf-8")
    older = staging.with_name(f"{staging.name}-older")
    shutil.rmtree(older, ignore_errors=True)  # which a kill may have left
    if place.exists():
        place.replace(older)
    staging.replace(place)
    shutil.rmtree(older, ignore_errors=True)


@contextmanager
def _staging_folder(path: Path, locked: LockedWeights) -> Iterator[Path]:
    """A folder to fill. Files that are right stay in it when others cannot be had now, for the next attempt."""
    path.mkdir(parents=True, exist_ok=True)
    right = {path / file.name for file in locked.files if _is_staged_and_verified(path, file)}
    for other in [one for one in path.rglob("*") if one.is_file() and one not in right]:
        other.unlink()
    try:
        yield path
    except (Unavailable, KeyboardInterrupt):
        raise
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def _is_staged_and_verified(staging: Path, file: LockedFile) -> bool:
    """Whether a file that the lock pins is there already."""
    path = staging / file.name
    return bool(file.sha256) and path.is_file() and file_digest(path).startswith(file.sha256)


@contextmanager
def _disk_errors_as_sentences() -> Iterator[None]:
    """Turn what a disk may refuse into sentences."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            sentence = "the disk is full; free some space, or set REVISIT_WEIGHTS to another folder"
        else:
            cause = error.strerror or type(error).__name__
            sentence = f"it cannot be written to ({cause}); set REVISIT_WEIGHTS to a folder you can write to"
        raise RevisitError(f"{weights_root()}: {sentence}") from error


@contextmanager
def _hold_pull_lock(say: Callable[[str], None]) -> Iterator[None]:
    """Hold the root, so that two pulls at a time do not fetch the same; the second waits and finds the files there."""
    work = weights_root() / WORK
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another pull is running in {weights_root()}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks; files are still put in place whole
        yield
