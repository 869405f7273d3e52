"""How one kind of evidence is made for one case, or the reason why it cannot be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from revisit.core import NEEDS_BOX, OBSERVERS, Case, Clip, MediaError, Observer, Reason, digest, evidence_id
from revisit.engine.dependencies import ObserverSet, Parameters, judge_facts_for_observer, why_unavailable
from revisit.engine.jobs import ObserverTask
from revisit.observers.sets import sets_that_make
from revisit.results.file_types import ObserverEntry

BESIDE = "artifacts."  # an observer's input that is a file beside the clip, such as artifacts.da3
LACKING = {"target": "no_target", "target_or_name": "no_target", "camera": "no_camera"}  # input -> kind of reason
OPTIONAL = "?"  # behind an input without which an observer can do its work, too
DigestOf = Callable[[Clip | Path], str]


def observer_task_or_reason(
    case: Case,
    kind: type,
    observers: ObserverSet,
    parameters: Parameters,
    clip_digest: str,
    align: str,
    digest_of: DigestOf,
) -> ObserverTask | Reason:
    """How to make one kind of evidence for one case, or the reason why it cannot be made."""
    maker = observers.maker(kind)
    if maker is None:
        return _not_in_set_reason(evidence_id(kind), observers.id)
    if case.truth and maker.shows is not None:
        return Reason("no_judge", "the truth is not put to the judge, whose answers cost")
    read = _observer_inputs_or_reason(case, maker, digest_of)
    if isinstance(read, Reason):
        return read
    inputs, hashed_inputs, files = read
    params, observer_entry = observers.parameters_and_facts_of(maker, parameters)
    make = partial(
        ObserverTask, observer=maker.id, module=maker.fn.__module__, params=params, inputs=inputs, files=files
    )
    facts: ObserverEntry = {**observer_entry, "inputs": hashed_inputs}
    if maker.kind == "file":
        imported = _artifact_file_or_reason(case, maker.artifact, digest_of)
        if isinstance(imported, Reason):
            makers = sets_that_make(evidence_id(kind)).items()
            able = [name for name, other in makers if other.kind != "file" and _has_required_fields(case, other)]
            if able and maker.artifact not in case.artifacts:
                hint = f"; --set {' or '.join(able)} makes it from the frames"
                return replace(imported, sentence=imported.sentence + hint)
            return imported
        file, facts["file"] = imported
        files[file] = imported[1]
        return make(digest(facts, 40), file=file)
    facts["clip"] = clip_digest
    if maker.shows is not None:
        if observers.judge is None:
            return Reason("no_judge", "no judge was given; pass --judge, see docs/judges.md")
        pictures = observer_task_or_reason(case, maker.shows, observers, parameters, clip_digest, align, digest_of)
        if isinstance(pictures, Reason):
            return pictures
        facts["judge"], facts["shown"] = judge_facts_for_observer(observers.judge, maker.id), pictures.key
        return make(digest(facts, 40), shown=pictures)
    align = case.align or align
    reference = None
    if maker.pairs:
        if case.reference is None:
            return Reason("no_reference", "no reference video was given for this case")
        try:
            reference = digest_of(case.reference)
        except MediaError as error:
            return Reason("unreadable", f"the reference cannot be read: {error}")
        facts["reference"], facts["align"] = reference, align
        inputs["align"] = align
    if why := why_unavailable(maker):
        return Reason("not_installed", why)
    alone = not hashed_inputs and reference is None  # thousands of clips differ in nothing but themselves
    key = observers.evidence_key_for_clip(maker.id, clip_digest) if alone else digest(facts, 40)
    return make(key, reference=reference)


Inputs = tuple[dict[str, object], dict[str, object], dict[Path, str]]  # values, as hashed, and files with digests


def _observer_inputs_or_reason(case: Case, maker: Observer, digest_of: DigestOf) -> Inputs | Reason:
    """The inputs of an observer from a case, or the reason why one is missing; of a file the content is hashed."""
    inputs: dict[str, object] = {}
    hashed: dict[str, object] = {}
    files: dict[Path, str] = {}
    for name in maker.inputs:
        field, optional = name.removesuffix(OPTIONAL), name.endswith(OPTIONAL)
        if field.startswith(BESIDE):
            artifact = field.removeprefix(BESIDE)
            inputs[name], hashed[name] = None, ""
            if artifact in case.artifacts or not optional:
                beside = _artifact_file_or_reason(case, artifact, digest_of)
                if isinstance(beside, Reason):
                    return beside
                inputs[name], hashed[name] = beside
                files[beside[0]] = beside[1]
            continue
        value = getattr(case, field)
        if value in (None, "") and not optional:
            if field == "target" and case.target_name:
                return NEEDS_BOX
            words = f"{field.replace('_', ' ')} {'were' if field.endswith('s') else 'was'}"
            return Reason(LACKING.get(field, "no_file"), f"no {words} given for this case")
        inputs[name], hashed[name] = value, to_dict_if_dataclass(value)
    return inputs, hashed, files


@lru_cache(maxsize=256)
def _not_in_set_reason(kind: str, observers: str) -> Reason:
    others = " or ".join(sets_that_make(kind))
    hint = f"; --set {others} has one" if others else ""
    return Reason("not_in_set", f"needs {kind}, which no observer in the set {observers!r} makes{hint}")


def _has_required_fields(case: Case, maker: Observer) -> bool:
    """Whether a case has the fields without which an observer can do nothing."""
    needed = [name for name in maker.inputs if not name.startswith(BESIDE) and not name.endswith(OPTIONAL)]
    return all(getattr(case, name) not in (None, "") for name in needed)


def _artifact_file_or_reason(case: Case, artifact: str, digest_of: DigestOf) -> tuple[Path, str] | Reason:
    """A file that came with the clip and the digest of its content, or the reason why there is none."""
    words = artifact.replace("_", " ")
    file = case.artifacts.get(artifact)
    if file is None:
        command = next((maker.made_by for maker in OBSERVERS.values() if maker.artifact == artifact), "")
        hint = f"; `{command}` makes one" if command else ""
        return Reason("no_file", f"no {words} file was given for this case{hint}")
    try:
        return file, digest_of(file)
    except MediaError as error:
        return Reason("unreadable", f"the {words} file cannot be read: {error}")


def to_dict_if_dataclass(value: Any) -> Any:
    """An input of an observer, as the address of its evidence says it."""
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value
