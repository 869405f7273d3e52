"""Bundles: a run as one file that somebody else can check, scoring it again from its own evidence.

A bundle is a zip of bundle.json (what it is, and the digest of every other file), plan.json, planned.json, run.json,
records.jsonl and evidence/<key>.npz. planned.json says what was to be answered: `questions` are the metrics and
gates, each of which kind, version and protocol, with all `facts` that the protocol covers where they are known here;
`asked` which of them each case is asked; and the cases that were rejected, and digests of files beside clips. Paths of
this machine stay here. Checking proves that every planned answer is
there, and that it follows from the evidence by this version's rules; that the evidence was made from the clips it
names, nobody can prove without them. `bundle_check` does that.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from revisit.core import Case, MediaError, Rejected, RevisitError, UsageError, digest
from revisit.core.cases import case_id
from revisit.core.text import join_names, parse_json
from revisit.engine.cache import EvidenceCache
from revisit.engine.resume import hash_of_metrics_and_gates
from revisit.engine.run import way_to_make_evidence_again
from revisit.media import file_digest
from revisit.results import Results
from revisit.results.ceilings import held_to_truth, metrics_changed_by_truth
from revisit.results.file_types import CaseEntry, Details, PlanFile, RunFile
from revisit.results.leaderboards import reference_digests
from revisit.results.pairing import ClipKey, clip_key_without_seed
from revisit.results.record_files import Line, case_from_json, decode_line, record_from_line, record_to_line
from revisit.results.run import Run, assemble_results
from revisit.results.score_names import add_held_suffix
from revisit.runs.expected_answers import PlannedAnswers, dataset_slots_by_model

SCHEMA, WITHOUT_PLAN = 2, 1  # as they are written; as they were before planned.json
LARGEST = 4 << 30  # bytes of all files together
MOST_FILES = 200_000
NAMES = re.compile(r"(plan|planned|run)\.json|records\.jsonl|evidence/[0-9a-f]{8,64}\.npz")
PRIVATE = ("host", "executable")
PLANNED = ("questions", "asked", "rejected", "files")  # what planned.json has
PROTOCOL = ("parameters", "observers", "judge")  # what a check needs of the protocol in run.json


@dataclass(frozen=True)
class Bundle:
    """What a bundle says, read and checked for its form alone."""

    path: Path
    about: Details  # bundle.json
    run: RunFile
    plan: PlanFile
    lines: tuple[Line, ...]
    promises: Details | None = None  # planned.json; None where the bundle is from before it

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def planned(self) -> PlannedAnswers:
        """What was to be answered, by plan.json and run.json."""
        return PlannedAnswers(self.plan, self.run, self.promises["files"] if self.promises else {})

    @cached_property
    def results(self) -> Results:
        cases = {entry["id"]: case_from_json(entry) for entry in self.plan["cases"]}
        records = [
            record_from_line(decode_line(line), cases[line["case"]]) for line in self.lines if line["case"] in cases
        ]
        return assemble_results(self.plan, list(cases.values()), records, name=self.name)

    @cached_property
    def references_by_clip(self) -> dict[ClipKey, set[str]]:
        """All clips of models, each with the digests of its references."""
        clips = {clip_key_without_seed(case): set[str]() for case in self.results.cases}
        return {**clips, **reference_digests(case for case in self.plan["cases"] if not case.get("truth"))}


def dataset_fingerprint(*plans: PlanFile) -> str:
    """One digest for a dataset: the samples of all plans, and the content of what each is compared with."""
    cases = [case for plan in plans for case in plan["cases"]]
    return digest(sorted({(case["sample"], case.get("reference_digest") or "") for case in cases}), 12)


def write_bundle(run: Run, out: Path) -> Path:
    """The bundle of a finished run."""
    facts, plan, results = run.facts.copy(), run.plan, run.results
    cache = EvidenceCache(Path(facts["cache"]))
    # As they were answered: results leave out scores of the truth that are no ceiling of the models' scores.
    newest, planned_ids = run.lines.newest, {*plan["gates"], *plan["metrics"]}
    records = {
        (case.id, question): record_from_line(line, case)
        for case in (*results.cases, *results.truth.cases)
        for question, line in newest.get(case.id, {}).items()
        if question in planned_ids
    }
    keys = sorted({key for case in plan["cases"] for key in case["evidence"].values()})
    failed = {case for (case, _), record in records.items() if record.failed}
    excused = {key for case in plan["cases"] if case["id"] in failed for key in case["evidence"].values()}
    present = [key for key in keys if cache.verify_or_drop(key)]
    lost = set(keys) - set(present) - excused  # what failed left no evidence, and is handed in as failed
    if lost:
        raise UsageError(
            f"{len(lost)} of {len(keys)} pieces of evidence are no longer in the cache; "
            + (cache.problems.get("read") or way_to_make_evidence_again(facts))
        )
    files = {case["id"]: _artifact_digests(case["artifacts"]) for case in plan["cases"] if case["artifacts"]}
    planned = PlannedAnswers(plan, facts, files)
    questions = {case["id"]: planned.questions_for(case) for case in plan["cases"]}
    missing = [(case, id) for case, ids in questions.items() for id in ids if (case, id) not in records]
    if missing:
        raise UsageError(
            f"the run lacks {len(missing)} of the {sum(map(len, questions.values()))} answers that were planned, such "
            f"as {missing[0][1]} of {missing[0][0]}; run the same eval command again"
        )
    answers = [records[case, id] for case, ids in questions.items() for id in ids]
    lines = [record_to_line(answer.with_changed_fields(units="", n_units=0, seconds=0.0)) for answer in answers]
    facts["environment"] = {name: value for name, value in facts["environment"].items() if name not in PRIVATE}
    facts["invocations"] = [{"started": call["started"]} for call in facts.get("invocations", ())]
    public = ("revisit", "suite", "set", "observed_by", "adds", "protocol", "environment", "invocations")
    content = {
        "plan.json": _json_bytes({**plan, "cases": [_without_paths(case) for case in plan["cases"]]}),
        "planned.json": _json_bytes(
            {
                "questions": _promised_questions(planned, records),
                "asked": questions,
                "rejected": [entry["id"] for entry in plan["rejected"]],
                "files": files,
            }
        ),
        "run.json": _json_bytes({name: value for name, value in facts.items() if name in public}),
        "records.jsonl": "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode(),
        **{f"evidence/{key}.npz": cache.path(key).read_bytes() for key in present},
    }
    about = {
        "schema": SCHEMA, **bundle_summary(plan, facts), "revisit": facts["revisit"],
        "files": {name: hashlib.sha256(part).hexdigest() for name, part in content.items()},
    }  # fmt: skip
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, part in {"bundle.json": _json_bytes(about), **content}.items():
            archive.writestr(zipfile.ZipInfo(name), part)  # without dates: the same run gives the same bytes
    return out


def bundle_summary(plan: PlanFile, run: RunFile) -> dict[str, object]:
    """What bundle.json says of a run: all of it follows from plan.json and run.json."""
    own = [case for case in plan["cases"] if not case.get("truth")]
    return {
        "suite": plan["suite"], "protocol": plan["protocol"], "set": run["set"],
        "hash": hash_of_metrics_and_gates(plan),
        "dataset": dataset_fingerprint(plan), "models": sorted({case["model"] for case in own}), "clips": len(own),
    }  # fmt: skip


def _promised_questions(planned: PlannedAnswers, records: Mapping[tuple[str, str], Any]) -> dict[str, Details]:
    """Metric or gate -> its kind, version and protocol, with all that the protocol covers where that is known here."""
    versions: dict[str, set[int]] = {}
    for (_, id), record in records.items():
        versions.setdefault(id, set()).add(record.version)
    mixed = [id for id, several in versions.items() if len(several) > 1]
    if mixed:
        raise UsageError(f"{mixed[0]} was answered by several versions; run the same eval command again")
    promised: dict[str, Details] = {}
    for id, tag in planned.protocol_tags.items():
        facts = planned.protocol_facts_of(id)
        is_known = facts is not None and planned.protocol_tag_of(facts) == tag
        promised[id] = {
            "kind": "gate" if planned.is_gate(id) else "metric",
            "version": next(iter(versions.get(id, ())), None),
            "protocol": tag,
            "facts": facts if is_known else None,
        }
    return promised


def _artifact_digests(artifacts: Mapping[str, str]) -> dict[str, str]:
    """Artifact -> the digest of its file; one that is gone is left out."""
    digests = {}
    for name, path in artifacts.items():
        with suppress(MediaError, OSError):
            digests[name] = file_digest(Path(path))
    return digests


def _without_paths(case: CaseEntry) -> Details:
    """An entry of plan.json with names of files in the place of paths, after the digests that tell them apart."""

    entry: dict[str, Any] = {**case, "artifacts": {name: Path(path).name for name, path in case["artifacts"].items()}}
    for name, digest_of_file in (("clip", case.get("digest")), ("reference", case.get("reference_digest"))):
        if clip := entry.get(name):
            path = f"{(digest_of_file or '')[:12]}/{Path(clip['path']).name}"
            entry[name] = {**clip, "path": path, "frames": None}
    return entry


def _json_bytes(content: Any) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n").encode()


class DamagedBundle(UsageError):
    """A bundle that is not as it was written: changed, cut off or damaged."""


def read_bundle(path: Path) -> Bundle:
    """What a bundle says; its names, sizes and digests are checked, its evidence is not opened."""
    if not path.is_file():
        raise UsageError(f"{path}: no such bundle; `revisit bundle write RUN` makes one")
    if not zipfile.is_zipfile(path):
        raise DamagedBundle(f"{path.name}: this is not a zip file, as a bundle is, or it was cut off")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > LARGEST:
                raise UsageError(f"{path.name}: larger than a bundle may be")
            if len(set(names)) < len(names) or "bundle.json" not in names:
                raise UsageError(f"{path.name}: not a bundle (no bundle.json, or a name twice)")
            about = parse_json(archive.read("bundle.json"))
            if not isinstance(about, dict) or about.get("schema") not in (SCHEMA, WITHOUT_PLAN):
                raise UsageError(f"{path.name}: its schema is not {SCHEMA}; a newer Revisit may read it")
            strange = [name for name in names if name != "bundle.json" and not NAMES.fullmatch(name)]
            if strange or set(about["files"]) != set(names) - {"bundle.json"}:
                raise DamagedBundle(f"{path.name}: holds files that a bundle does not have, or lacks some")
            for name, digest_claimed in about["files"].items():
                if _sha256_of_member(archive, name) != digest_claimed:
                    raise DamagedBundle(f"{path.name}: {name} is not what bundle.json says; it was changed or damaged")
            plan, run = (parse_json(archive.read(name)) for name in ("plan.json", "run.json"))
            if about["schema"] != WITHOUT_PLAN and "planned.json" not in names:
                raise DamagedBundle(f"{path.name}: it lacks planned.json, which says what was to be answered")
            promises = None if about["schema"] == WITHOUT_PLAN else parse_json(archive.read("planned.json"))
            lacking = [name for name in PROTOCOL if name not in run["protocol"]]
            lacking += [name for name in PLANNED if promises is not None and name not in promises]
            if lacking:
                raise DamagedBundle(f"{path.name}: its run.json and planned.json do not say {join_names(lacking)}")
            lines = tuple(parse_json(line) for line in archive.read("records.jsonl").decode().split("\n") if line)
            for line in lines:
                decode_line(line)  # a damaged one is told here
            for name, expected in bundle_summary(plan, run).items():
                if about.get(name) != expected:
                    raise DamagedBundle(
                        f"{path.name}: bundle.json has {name} {about.get(name)!r}, and its plan {expected!r}; it was "
                        "changed by hand"
                    )
            return Bundle(path, about, run, plan, lines, promises)
    except RevisitError:
        raise
    except Exception as error:  # a damaged zip file fails in many ways
        raise DamagedBundle(f"{path.name}: cannot be read as a bundle ({type(error).__name__})") from None


def _sha256_of_member(archive: zipfile.ZipFile, name: str) -> str:
    sha = hashlib.sha256()
    with archive.open(name) as file:
        while part := file.read(1 << 20):
            sha.update(part)
    return sha.hexdigest()


def group_comparable_bundles(bundles: Sequence[Bundle]) -> list[list[Bundle]]:
    """Bundles whose numbers compare: one suite, one hash of all metrics, and the same references of common clips.

    A bundle may lack clips of the others; one without a clip in common with any is of another dataset.
    """
    groups: list[list[Bundle]] = []
    for bundle in bundles:
        joined, others = [bundle], []
        for group in groups:  # those that the bundle links become one
            if _groups_are_comparable(group, joined):
                joined = [*joined[:-1], *group, bundle]
            else:
                others.append(group)
        groups = sorted([*others, joined], key=lambda group: bundles.index(group[0]))
    return groups


def _groups_are_comparable(one: Sequence[Bundle], other: Sequence[Bundle]) -> bool:
    """Whether no common clip has other references, and there is a common clip, or the datasets are the same."""
    mine, yours = ({k: v for bundle in group for k, v in bundle.references_by_clip.items()} for group in (one, other))
    both = mine.keys() & yours.keys()
    return (
        all(one[0].about[name] == other[0].about[name] for name in ("suite", "hash"))
        and all(mine[clip] == yours[clip] for clip in both)
        and (bool(both) or dataset_name(one) == dataset_name(other))
    )


def dataset_name(group: Sequence[Bundle]) -> str:
    """What the dataset of comparable bundles is called, with the clips of all of them."""
    names = {str(bundle.about["dataset"]) for bundle in group}
    return names.pop() if len(names) == 1 else dataset_fingerprint(*(bundle.plan for bundle in group))


def join_bundles(group: Sequence[Bundle]) -> tuple[Results, dict[str, str]]:
    """The results of comparable bundles as one, and the bundle of each row; a name in two bundles gets the bundle's.

    Scores held to the truth are carried under names of their own, because the truth is not. What one model has clips of
    and another lacks is missing there, and counts in its coverage.
    """
    names = [model for bundle in group for model in bundle.about["models"]]
    cases: list[Case] = []
    records = []
    rejected = []
    rows: dict[str, str] = {}
    held = sorted(frozenset[str]().union(*(metrics_changed_by_truth(bundle.results) for bundle in group)))
    for bundle in group:
        results = bundle.results
        label = {model: f"{model} ({bundle.name})" if names.count(model) > 1 else model for model in results.models}
        rows.update({label[model]: bundle.name for model in results.models})
        own = {case.id: _case_of_model(case, label[case.model], bundle.name) for case in results.cases}
        cases += own.values()
        records += [record.with_changed_fields(case=own[record.case.id]) for record in results.records]
        records += [
            record.with_changed_fields(case=own[record.case.id], question=add_held_suffix(metric))
            for metric in held
            for record in held_to_truth(results).records_for(metric)
        ]
        rejected += [replace(entry, model=label.get(entry.model, entry.model)) for entry in results.rejected]
    rejected += _clips_missing_by_model(cases, rejected)
    return Results(cases, records, rejected, asks=group[0].results.asks), rows


def _case_of_model(case: Case, model: str, bundle: str) -> Case:
    """The case under another name of its model; its clip keeps its own name, by which it is paired with others'."""
    id = f"{bundle}/{case.id}" if case.clip_name is None else case_id(case.clip_name, model, case.seed)
    return replace(case, id=id, model=model)


def _clips_missing_by_model(cases: Sequence[Case], rejected: Sequence[Rejected]) -> list[Rejected]:
    """What other models have clips of, and a model has neither a clip of nor an entry that says why."""
    own = dataset_slots_by_model(cases)
    everything = set().union(*own.values())
    missing = []
    for model, mine in own.items():
        excused = [(entry.subset, entry.condition) for entry in rejected if entry.model == model]
        for place in sorted(everything - mine, key=str):
            if place[:2] in excused:
                excused.remove(place[:2])
                continue
            subset, condition, sample, seed = place
            missing.append(
                Rejected(f"{sample}@{model}#{seed}", "its bundle has no such clip", model, subset, condition, True)
            )
    return missing
