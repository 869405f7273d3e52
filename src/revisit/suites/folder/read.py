"""Cases from a folder of videos or from a JSONL manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from revisit.core import Case, Clip, Rejected, Remark, Target, UsageError
from revisit.core.texts import counted
from revisit.media import VIDEO_SUFFIXES
from revisit.suites.clips import MANIFEST, case_id, find_clips, named_apart, passed_over, read_manifest, read_targets
from revisit.suites.folder.names import Found, guessed, the_truth
from revisit.suites.folder.scan import target_of

TARGETS = "targets.json"


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
        yield from _plain(source)


def _plain(source: Path) -> Iterator[Case | Rejected | Remark]:
    """Clips of a folder by their names, beside the truth and with the targets that lie there."""
    plain = list(find_clips(source))
    found: Sequence[Found] = named_apart(plain)
    renamed = [sample for (_, sample, _), before in zip(found, plain, strict=True) if sample != before[1]]
    if guess := guessed(source, found):
        found = guess.clips
        yield Remark(guess.sentence)
    truth = the_truth({model for model, _, _ in found})
    references = {sample: path for model, sample, path in found if model == truth}
    wanted = {sample for model, sample, _ in found if model != truth} & references.keys()
    if wanted:
        yield Remark(
            f"{truth} is taken as the truth of {counted(len(wanted), 'scene')}; a folder or file of another name, or a "
            f"manifest (`revisit import scan`), makes it a model like the others"
        )
    targets = {}
    if (source / TARGETS).is_file():
        try:
            targets = read_targets(source / TARGETS)
            yield Remark(f"targets were read from {TARGETS}")
        except UsageError as error:
            yield Remark(f"clips have no targets: {error}")
    for model, sample, path in found:
        if not (model == truth and sample in wanted):
            reference = references.get(sample) if model != truth else None
            yield _case(sample, model, path, reference, target_of(targets, source, sample, path))
    if renamed:
        yield Remark(f"clips that differ only in their endings keep them in their names: {', '.join(renamed[:5])}")
    yield from passed_over(source)


def _case(
    sample: str, model: str, path: Path, reference: Path | None = None, target: Mapping[str, Any] | None = None
) -> Case | Rejected:
    id = case_id(sample, model, 0)
    box = None
    if target is not None:
        from revisit.suites.manifest import TargetEntry

        try:
            checked = TargetEntry.model_validate(target)
        except ValueError:
            found = str(target["box"])[:80]
            return Rejected(
                id, f"its box in {TARGETS} must be x0, y0, x1, y1 as fractions of the frame ({found})", model
            )
        box = Target(checked.name, checked.box)
    truth = Clip(reference) if reference is not None else None
    return Case(id=id, suite="folder", model=model, sample=sample, clip=Clip(path), reference=truth, target=box)
