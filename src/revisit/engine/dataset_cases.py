"""The entries of a dataset: read by its suite, fit to be written down, each once; and a fair part of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from revisit.core import Case, Rejected, Remark, RevisitError, Suite, UsageError, digest
from revisit.core.text import mended
from revisit.results.record_files import case_to_json

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Entries:
    """What a suite read: cases, what cannot be used, and remarks on how it was read."""

    cases: list[Case]
    rejected: tuple[Rejected, ...]
    remarks: tuple[str, ...]


def read_entries(suite: Suite, source: Path, roots: Sequence[Path], options: Mapping[str, str]) -> Entries:
    """All entries of a dataset; at least one."""
    entries = [writable(entry) for entry in _read(suite, source, roots, options)]
    cases, twice = _each_once([entry for entry in entries if isinstance(entry, Case)], source)
    rejected = (*(entry for entry in entries if isinstance(entry, Rejected)), *twice)
    if not cases and not rejected:
        raise UsageError(f"{source}: no videos found; expected mp4, mkv, webm or mov files, or folders of frames")
    return Entries(cases, rejected, tuple(entry.sentence for entry in entries if isinstance(entry, Remark)))


def _read(
    suite: Suite, source: Path, roots: Sequence[Path], options: Mapping[str, str]
) -> Iterator[Case | Rejected | Remark]:
    """What a suite reads; whatever goes wrong in its reader is one sentence."""
    try:
        yield from suite.read(source, roots, **options)
    except RevisitError:
        raise
    except Exception as error:
        told = " ".join(str(error).split())[:200]
        raise UsageError(f"{source}: cannot be read as {suite.id} ({type(error).__name__}: {told})") from error


def writable(entry: Case | Rejected | Remark) -> Case | Rejected | Remark:
    """The entry, or a refusal of a case that holds what no file of a run can: it must not cost the others theirs."""
    if not isinstance(entry, Case):
        return replace(entry, **{name: mended(value) for name, value in vars(entry).items()})
    try:
        content = {**vars(entry), "clip": str(entry.clip.path), "reference": None, "target": None, "artifacts": None}
        _ENCODER.encode(content).encode()
        if entry.reference is not None:
            str(entry.reference.path).encode()
        case_to_json(entry)
    except UnicodeEncodeError:
        why = "a name or text of it is not UTF-8; rename the file, or mend the text"
    except RecursionError:
        why = "its annotations are nested too deeply"
    except (ValueError, TypeError) as error:
        why = f"its annotations hold what JSON cannot say ({error}); leave it out, or write null"
    else:
        return entry
    return Rejected(*(mended(text) for text in (entry.id, why, entry.model, entry.subset, entry.condition)))


def _each_once(cases: Sequence[Case], source: Path) -> tuple[list[Case], list[Rejected]]:
    """The cases by their ids, each once: everything of a clip is kept under its id, so a second one is refused."""
    first: dict[str, Case] = {}
    twice = []
    for case in cases:
        if first.setdefault(case.id, case) is not case:
            mine, other = (
                path.relative_to(source).as_posix() if path.is_relative_to(source) else path.name
                for path in (case.clip.path, first[case.id].clip.path)
            )
            why = f"{mine} and {other} have one id, {case.id}; rename one of them, or keep only one"
            twice.append(Rejected(f"{case.id} ({mine})", why, case.model, case.subset, case.condition))
    return list(first.values()), twice


def stratified(cases: Sequence[Case], limit: int) -> list[Case]:
    """At most `limit` cases, spread evenly over models, subsets and conditions.

    Within a stratum cases are taken in the order of a hash of the sample's name, so that different
    models are judged on the same samples and the choice does not depend on file order.
    """
    if limit < 1:
        raise UsageError(f"--limit takes a positive number of cases, not {limit}")
    strata: dict[tuple[str, str, str], list[Case]] = defaultdict(list)
    for case in cases:
        strata[case.model, case.subset, case.condition].append(case)
    for members in strata.values():
        members.sort(key=lambda case: (digest([case.sample, case.seed]), case.id))
    picked: set[str] = set()
    depth = 0
    while len(picked) < min(limit, len(cases)):
        for _, members in sorted(strata.items()):
            if depth < len(members) and len(picked) < limit:
                picked.add(members[depth].id)
        depth += 1
    return [case for case in cases if case.id in picked]
