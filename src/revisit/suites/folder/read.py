"""Cases from a folder of videos or from a JSONL manifest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from revisit.core import Case, Clip, Rejected, Remark, UsageError
from revisit.media import VIDEO_SUFFIXES
from revisit.suites.clips import MANIFEST, case_id, find_clips, named_apart, passed_over, read_manifest
from revisit.suites.folder.names import guessed


def recognises(source: Path) -> bool:
    """True for anything: this suite is the fallback for what no benchmark claims."""
    return source.exists()


def read(source: Path, roots: Sequence[Path] = ()) -> Iterator[Case | Rejected | Remark]:
    """Cases of a manifest file, of a folder with a manifest.jsonl, or of a plain folder, with remarks on the latter."""
    if not source.exists():
        raise UsageError(f"{source}: no such file or folder")
    if source.is_file() and source.suffix.lower() in VIDEO_SUFFIXES:
        yield _case(source.stem, source.resolve().parent.name, source)
    elif source.is_file():
        yield from read_manifest(source, roots)
    elif (source / MANIFEST).is_file():
        yield from read_manifest(source / MANIFEST, roots)
    else:
        plain = list(find_clips(source))
        found = named_apart(plain)
        renamed = [sample for (_, sample, _), before in zip(found, plain, strict=True) if sample != before[1]]
        guess = guessed(source, found)
        for model, sample, path in guess.clips if guess else found:
            yield _case(sample, model, path)
        if guess:
            yield Remark(guess.sentence)
        if renamed:
            yield Remark(f"clips that differ only in their endings keep them in their names: {', '.join(renamed[:5])}")
        yield from passed_over(source)


def _case(sample: str, model: str, path: Path) -> Case:
    return Case(id=case_id(sample, model, 0), suite="folder", model=model, sample=sample, clip=Clip(path))
