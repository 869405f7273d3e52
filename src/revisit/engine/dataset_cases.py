"""The cases of a dataset: read by its suite, each once; a stratified part of them; baselines and the truth marked.

With the truth, every reference is scored like a clip of a model, as a row of its own outside the ranking.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from revisit.core import Case, Clip, Rejected, Remark, RevisitError, Suite, UsageError, digest
from revisit.core.cases import CATEGORY, CEILING
from revisit.core.grouping import group_items
from revisit.core.text import count_and_noun, format_error_on_one_line, join_names, parse_json, replace_surrogates
from revisit.results.record_files import case_to_json

TRUTH = "truth"  # the name of the row
OF_THE_TRUTH = ("true_poses",)  # files that came with a clip and say what the truth is
PROVENANCE = ".provenance.json"  # what `revisit generate` writes beside a clip
FileDigest = Callable[[Clip | Path], str]  # of what is in a file
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def read_cases(
    suite: Suite,
    source: Path,
    roots: Sequence[Path],
    options: Mapping[str, str],
    *,
    limit: int | None = None,
    truth: bool = False,
) -> tuple[list[Case], tuple[Rejected, ...], tuple[str, ...], int]:
    """The cases of a dataset, at least one; with `limit` a part of them, with `truth` also the references.

    Behind them what cannot be used, remarks on how it was read, and how many cases of models there are without `limit`.
    """
    try:
        entries = [ensure_writable_entry(entry) for entry in list(suite.read(source, roots, **options))]
    except RevisitError:
        raise
    except Exception as error:  # whatever goes wrong in a reader is one sentence
        raise UsageError(f"{source}: cannot be read as {suite.id} ({format_error_on_one_line(error)})") from error
    first, twice = _reject_repeated_ids([entry for entry in entries if isinstance(entry, Case)], source)
    rejected = (*(entry for entry in entries if isinstance(entry, Rejected)), *twice)
    if not first and not rejected:
        raise UsageError(
            f"{source}: no videos found; expected mp4, mov, mkv, webm, avi, gif or animated webp files, "
            "arrays of frames (npy, npz), or folders of frames"
        )
    refused = [entry for entry in rejected if not entry.missing]
    if not first and refused:
        further = f"; and {len(refused) - 3} more" if len(refused) > 3 else ""
        reasons = "; ".join(f"{entry.id}: {entry.reason}" for entry in refused[:3])
        raise UsageError(f"{source}: nothing in it can be used: {reasons}{further}")
    of_models = [case for case in first if case.category != CEILING]
    cases = of_models if limit is None else select_stratified_cases(of_models, limit)
    if truth:
        cases = mark_and_add_truth_cases(cases, [case for case in first if case.category == CEILING])
    remarks = tuple(entry.sentence for entry in entries if isinstance(entry, Remark))
    return [_add_category_from_provenance(case) for case in cases], rejected, remarks, len(of_models)


def ensure_writable_entry(entry: Case | Rejected | Remark) -> Case | Rejected | Remark:
    """The entry, or a refusal of a case that holds what no file of a run can: it must not cost the others theirs."""
    if not isinstance(entry, Case):
        return replace(entry, **{name: replace_surrogates(value) for name, value in vars(entry).items()})
    try:
        paths = [str(clip.path) for clip in (entry.clip, entry.reference) if clip is not None]
        content = {**vars(entry), "clip": paths, "reference": None, "target": None, "artifacts": None}
        _ENCODER.encode(content).encode()
        case_to_json(entry)
    except UnicodeEncodeError:
        why = "a name or text of it is not UTF-8; rename the file, or mend the text"
    except RecursionError:
        why = "its annotations are nested too deeply"
    except (ValueError, TypeError) as error:
        why = f"its annotations hold what JSON cannot say ({error}); leave it out, or write null"
    else:
        return entry
    return Rejected(*(replace_surrogates(text) for text in (entry.id, why, entry.model, entry.subset, entry.condition)))


def _reject_repeated_ids(cases: Sequence[Case], source: Path) -> tuple[list[Case], list[Rejected]]:
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


def find_copies_under_other_samples(
    cases: Sequence[Case], digests: Mapping[str, str], digest_of: FileDigest
) -> dict[str, str]:
    """Cases that repeat another one of their model under another scene's name -> the case that they repeat.

    Everything that could tell a scene apart is the same: clip, reference, target, prompt, camera and further files.
    What is held in memory is never taken for a copy, and samples of one scene may be alike.
    """
    of_files = (case for case in cases if not case.truth and case.id in digests and case.clip.frames is None)
    groups = group_items(of_files, lambda case: (case.model, digests[case.id], case.clip.start, case.clip.count))
    repeated = {}
    for group in groups.values():
        first: dict[str, Case] = {}
        for case in group if len({case.sample for case in group}) > 1 else ():
            original = first.setdefault(_case_content_digest(case, digest_of), case)
            if original.sample != case.sample:
                repeated[case.id] = original.id
    return repeated


def _case_content_digest(case: Case, digest_of: FileDigest) -> str:
    """A digest of all that is known of a case but its names."""

    def digest_or_path(file: Clip | Path | None) -> object:
        try:
            return None if file is None else digest_of(file)
        except (RevisitError, OSError):
            return str(file)  # what cannot be read is like nothing else

    names = ("subset", "condition", "prompt", "camera", "target_name", "phases", "align", "annotations")
    reference = case.reference and (digest_or_path(case.reference), case.reference.start, case.reference.count)
    artifacts = {name: digest_or_path(path) for name, path in case.artifacts.items()}
    target = None if case.target is None else vars(case.target)
    facts = {name: getattr(case, name) for name in names}
    return digest({**facts, "target": target, "reference": reference, "artifacts": artifacts})


def identical_clip_sentences(
    cases: Sequence[Case], digests: Mapping[str, str], repeated: Mapping[str, str]
) -> list[str]:
    """Sentences on clips that are copies, byte for byte: those that are left out (`repeated`), and those that count."""
    others = (case for case in cases if not case.truth and case.id in digests and case.id not in repeated)
    groups = group_items(others, lambda case: (digests[case.id], case.clip.start, case.clip.count))
    counted = {case.id: group[0].id for group in groups.values() for case in group[1:]}
    of_models = sum(not case.truth for case in cases)
    sentences = []
    once, twice = "it counts once: the others are left out", "remove it unless this is meant"
    for copies, what in ((repeated, once), (counted, twice)):
        if copies:
            names = join_names([f"{id} is {original}" for id, original in copies.items()])
            verb = "is a copy of another one" if len(copies) == 1 else "are copies of others"
            clips = f"{len(copies)} of {count_and_noun(of_models, 'clip')} {verb}, byte for byte"
            sentences.append(f"{clips}: {names}; a copy tells nothing new, so {what}")
    return sentences


def select_stratified_cases(cases: Sequence[Case], limit: int) -> list[Case]:
    """At most `limit` cases, spread evenly over models, then over subsets and conditions.

    Within a stratum cases are taken in the order of a hash of the sample's name, so that different
    models are judged on the same samples and the choice does not depend on file order.
    """
    if limit < 1:
        raise UsageError(f"--limit takes a positive number of cases, not {limit}")
    strata = group_items(cases, lambda case: (case.subset, case.condition, case.model))
    turns = []  # every stratum has its first turn before any has its second
    for stratum, members in strata.items():
        members.sort(key=lambda case: (digest([case.sample, case.seed]), case.id))
        turns += [(turn, stratum, case.id) for turn, case in enumerate(members)]
    picked = {id for _, _, id in sorted(turns)[:limit]}
    return [case for case in cases if case.id in picked]


def _add_category_from_provenance(case: Case) -> Case:
    """The case with the category that the record of its clip says, such as a baseline; most have none."""
    if CATEGORY in case.annotations or case.clip.frames is not None:
        return case
    try:
        provenance = parse_json(case.clip.path.with_suffix(PROVENANCE).read_text(encoding="utf-8"))
        category = provenance.get(CATEGORY)
    except (OSError, ValueError, AttributeError):
        return case
    return replace(case, annotations={**case.annotations, CATEGORY: str(category)}) if category else case


def mark_and_add_truth_cases(cases: Sequence[Case], ceilings: Sequence[Case] = ()) -> list[Case]:
    """The cases, and behind them the reference of each sample as a case, marked as the truth.

    A clip of the dataset that is the reference of others (`gt` beside the models) is marked instead.
    The truth has no reference: what compares with one says nothing of it. Where there is no reference at all,
    `ceilings` stand for the truth, those of the parts of the dataset that the cases are of.
    """
    references = {_path_and_frame_range(case.reference) for case in cases if case.reference is not None}
    marked = [
        replace(case, truth=True) if case.reference is None and _path_and_frame_range(case.clip) in references else case
        for case in cases
    ]
    of_truths = {_path_and_frame_range(case.clip) for case in marked if case.truth}
    truths: dict[tuple[object, ...], Case] = {}
    for case in marked:
        if case.reference is not None and _path_and_frame_range(case.reference) not in of_truths:
            truths.setdefault(_path_and_frame_range(case.reference), _reference_as_truth_case(case))
    used_ids = {case.id for case in marked}
    for stretch, case in truths.items():  # a sample may have several references, each with an id of its own
        ids = (f"{case.id}#{number}" if number > 1 else case.id for number in count(1))
        truths[stretch] = replace(case, id=next(id for id in ids if id not in used_ids))
        used_ids.add(truths[stretch].id)
    if not references:
        parts = {(case.subset, case.condition) for case in cases}
        return [*marked, *(replace(case, truth=True) for case in ceilings if (case.subset, case.condition) in parts)]
    return [*marked, *truths.values()]


def _reference_as_truth_case(case: Case) -> Case:
    assert case.reference is not None
    place = "/".join(dict.fromkeys(filter(None, (case.subset, case.condition, case.sample))))
    return replace(
        case,
        id=f"{place}@{TRUTH}",
        model=TRUTH,
        clip=case.reference,
        reference=None,
        seed=0,
        align="",
        artifacts={name: path for name, path in case.artifacts.items() if name in OF_THE_TRUTH},
        truth=True,
    )


def _path_and_frame_range(clip: Clip) -> tuple[object, ...]:
    return clip.path, clip.start, clip.count
