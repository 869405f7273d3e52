"""Checks a bundle: whether all that was planned is there, and comes out again from the evidence.

Three outcomes, told apart metric by metric: an answer that came out again; a problem, where something is missing,
doubled or changed; and what cannot be checked here, because the metric is not installed or has another version.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from revisit.core import GATES, METRICS, SUITES, Case, GateResult, Reason
from revisit.core.grouping import group_items
from revisit.core.scores import Score, Unscored
from revisit.core.text import convert_read_errors, count_and_noun, join_names
from revisit.engine.cache import EvidenceCache
from revisit.engine.dependencies import observed_ids_needed_by
from revisit.engine.evidence_plan import CaseEvidence
from revisit.engine.plan import compute_answer_keys
from revisit.engine.score import CaseScorer, CheckFailed, ScoringInput, to_json_value
from revisit.results.file_types import CaseEntry, Details
from revisit.results.leaderboards import MAKERS
from revisit.results.record_files import FACTS_OF_CASE, Line
from revisit.runs.bundles import Bundle, read_bundle
from revisit.runs.expected_answers import changed_fact_paths, dataset_slots_by_model

CLOSE = 1e-6  # by how much a score may differ between machines, in units of its size
FAILED = "it failed when it was made, and left no evidence"
NO_PLAN = (
    "it was written before bundles said what was planned: the versions of its metrics and the files beside its clips "
    "are not in it, and its plan.json stands for what was asked"
)


@dataclass(frozen=True)
class BundleCheck:
    """What came of checking a bundle."""

    scores: int  # answers that were made again and agree
    problems: tuple[str, ...] = ()
    unchecked: Mapping[str, int] = field(default_factory=dict)  # why -> answers that could not be made again here
    planned: int = 0  # answers that were to be there
    not_checked: Mapping[str, str] = field(default_factory=dict)  # metric or gate -> why none of its answers count
    remarks: tuple[str, ...] = ()  # what the bundle does not carry or cover

    @property
    def state(self) -> str:
        """`does not hold`, `holds`, or `holds in part` where something could not be checked here."""
        if self.problems:
            return "does not hold"
        return "holds in part" if self.not_checked or not self.scores else "holds"


def check_bundle(path: Path) -> BundleCheck:
    """Look for everything that was planned, score it again from the evidence, and compare with what is claimed."""
    bundle = read_bundle(path)
    with convert_read_errors(path, "a bundle of a run"):
        return _Check(bundle).run()


class _Check:
    """The check of one bundle."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle, self.planned = bundle, bundle.planned
        self.entries: dict[str, CaseEntry] = {entry["id"]: entry for entry in bundle.plan["cases"]}
        self.problems: list[str] = []
        self.unchecked: Counter[str] = Counter()
        self.taken_as_is: Counter[tuple[str, str]] = Counter()  # kind of evidence, why its address cannot be checked
        self.scores = 0
        self.unknown: dict[str, str] = {}  # metric or gate -> why it cannot be asked again here
        self.versions: dict[str, int | None] = {}  # metric or gate -> the version that was planned

    def run(self) -> BundleCheck:
        questions = self._planned_questions_by_case()
        self._check_plan(questions)
        self._check_questions()
        lines = self._match_lines_to_questions(questions)
        results = self.bundle.results
        with TemporaryDirectory(prefix="revisit-") as folder, zipfile.ZipFile(self.bundle.path) as archive:
            cache = EvidenceCache(Path(folder))
            members = set(archive.namelist())
            for case in (*results.cases, *results.truths):
                for key in set(self.entries[case.id]["evidence"].values()):
                    if (name := f"evidence/{key}.npz") in members:
                        target = cache.path(key)
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.write_bytes(archive.read(name))
                self._check_case(
                    case, {id: lines[case.id, id] for id in questions[case.id] if (case.id, id) in lines}, cache
                )
                for file in cache.files():
                    file.unlink()
        total = sum(map(len, questions.values()))
        return BundleCheck(
            self.scores, tuple(self.problems), dict(self.unchecked), total, self.unknown,
            tuple(self._coverage_remarks()),
        )  # fmt: skip

    def _planned_questions_by_case(self) -> dict[str, list[str]]:
        """Case -> what was to be answered of it; of a suite that is not installed here, what the bundle says."""
        if self.bundle.plan["suite"] in SUITES:
            return {id: self.planned.questions_for(entry) for id, entry in self.entries.items()}
        if self.bundle.promises is not None:
            return {id: list(self.bundle.promises["asked"].get(id, ())) for id in self.entries}
        answered: dict[str, dict[str, None]] = {id: {} for id in self.entries}
        for line in self.bundle.lines:
            answered.setdefault(line["case"], {})[_question_of_line(line)] = None
        return {id: list(answered[id]) for id in self.entries}

    def _check_plan(self, questions: Mapping[str, list[str]]) -> None:
        """Report what is wrong with the plan itself: cases that are there twice, or fewer than it counts."""
        plan, promises = self.bundle.plan, self.bundle.promises
        ids = Counter(entry["id"] for entry in (*plan["cases"], *plan["rejected"]))
        self.problems += [f"plan.json has {id} {n} times" for id, n in ids.items() if n > 1]
        own = [entry for entry in plan["cases"] if not entry.get("truth")]
        if plan["partial"] is None and len(own) != plan["total_cases"]:
            self.problems.append(
                f"plan.json counts {count_and_noun(plan['total_cases'], 'clip')} of models, and has {len(own)}"
            )
        if promises is not None:
            before = {id: set(ids) for id, ids in promises["asked"].items()}
            before |= {id: set() for id in promises["rejected"]}
            now = {id: set(ids) for id, ids in questions.items()} | {entry["id"]: set() for entry in plan["rejected"]}
            changed = [id for id in sorted({*before, *now}) if before.get(id) != now.get(id)]
            self.problems += [f"planned.json and plan.json do not agree on {id}" for id in changed]

    def _match_lines_to_questions(self, questions: Mapping[str, list[str]]) -> dict[tuple[str, str], Line]:
        """The claimed answer to each planned question; what is missing, doubled or was never planned is a problem."""
        lines: dict[tuple[str, str], Line] = {}
        for line in self.bundle.lines:
            id = _question_of_line(line)
            at = line["case"], id
            if id not in questions.get(line["case"], ()) or self.planned.is_gate(id) != ("gate" in line):
                self.problems.append(f"{line['case']}: {id} was not planned, and is answered")
            elif at in lines:
                self.problems.append(f"{line['case']}: {id} is answered twice")
            else:
                lines[at] = line
        missing = [(id, case) for case, ids in questions.items() for id in ids if (case, id) not in lines]
        for id, some in group_items(missing, lambda one: one[0]).items():
            cases = [case for _, case in some]
            self.problems.append(
                f"{id} was planned for {count_and_noun(len(cases), 'clip')} that it has no answer for: "
                f"{join_names(cases)}"
            )
        return lines

    def _check_case(self, case: Case, lines: Mapping[str, Line], cache: EvidenceCache) -> None:
        entry = self.entries[case.id]
        evidence = CaseEvidence(entry["evidence"], {id: Reason(**why) for id, why in entry["absent"].items()})
        bench = CaseScorer(ScoringInput(case, evidence, self.planned.parameters), cache)
        installed = [id for id in lines if id not in self.unknown]
        kinds = {id: observed_ids_needed_by(GATES[id] if self.planned.is_gate(id) else METRICS[id]) for id in installed}
        tags_and_kinds = {id: (self.planned.protocol_tags[id], kinds[id]) for id in installed}
        # Addresses once left out the target of a case, and still do where evidence was made of it.
        keys = [compute_answer_keys(case, evidence, tags_and_kinds, reading) for reading in ((), installed)]
        all_kinds = {kind for id in installed for kind in kinds[id]}
        strange = {kind for kind in all_kinds if self._evidence_is_of_other_clip(entry, case, kind)}
        for id, line in lines.items():
            if (claim := self._wrong_claim_text(id, line, case)) is not None:
                self.problems.append(f"{case.id}: {claim}")
                continue
            if id in self.unknown:
                self.unchecked[f"{id}: {self.unknown[id]}"] += 1
                continue
            if wrong := strange & set(kinds[id]):
                difference = f"{id} rests on {sorted(wrong)[0]} that was not made of this clip"
            elif line["key"] not in (key[id] for key in keys) and not self.bundle.run.get("adds"):
                difference = f"{id} was not answered from this clip, its evidence and its protocol"
            else:
                difference = difference_from_rescored_text(bench, id, line, is_gate=self.planned.is_gate(id))
            if not difference:
                self.scores += 1
            elif difference == FAILED:
                self.unchecked[f"{id}: {FAILED}"] += 1
            else:
                self.problems.append(f"{case.id}: {difference}")

    def _wrong_claim_text(self, id: str, line: Line, case: Case) -> str | None:
        """What a line says of itself and should not: another clip, protocol or version than was planned."""
        for name in FACTS_OF_CASE:
            if name in line and line[name] != getattr(case, name):
                return f"{id} is answered for the {name} {line[name]!r}, and the clip is of {getattr(case, name)!r}"
        if line["protocol"] != self.planned.protocol_tags[id]:
            return f"{id} was answered under {line['protocol']}, and {self.planned.protocol_tags[id]} was planned"
        version = self.versions.get(id)
        if version is not None and line["version"] != version:
            return f"{id} was answered by version {line['version']}, and version {version} was planned"
        return None

    def _evidence_is_of_other_clip(self, entry: CaseEntry, case: Case, kind: str) -> bool:
        """Whether evidence has an address that this clip, its inputs and its observer do not lead to."""
        key = entry["evidence"].get(kind)
        if key is None or self.bundle.run.get("adds"):
            return False
        possible = self.planned.possible_evidence_keys(entry, case, kind)
        if isinstance(possible, str):
            self.taken_as_is[kind, possible] += 1
            return False
        return key not in possible

    def _coverage_remarks(self) -> list[str]:
        plan = self.bundle.plan
        remarks = [] if self.bundle.promises is not None else [NO_PLAN]
        remarks += [
            f"that {kind} belongs to its clip is not checked for {count_and_noun(n, 'clip')}: {why}"
            for (kind, why), n in self.taken_as_is.items()
        ]
        if plan["suite"] not in SUITES:
            remarks.append(
                f"the suite {plan['suite']} is not installed here: what it asks of which clip is not checked"
            )
        if plan["partial"] is not None:
            remarks.append(f"it is of a part of the dataset: {len(plan['cases'])} of {plan['total_cases']} clips")
        own = dataset_slots_by_model(plan["cases"])
        everything: set[tuple[Any, ...]] = set().union(*own.values())
        excused = Counter(entry["model"] for entry in plan["rejected"])
        for model, mine in own.items():
            lacking = len(everything - mine) - excused[model]
            if lacking > 0:
                remarks.append(f"{model} has no clip of {lacking} of the {len(everything)} that other models have")
        if plan["rejected"]:
            missing = sum(bool(entry.get("missing")) for entry in plan["rejected"])
            counts = {"missing": missing, "rejected": len(plan["rejected"]) - missing}
            remarks += [f"{count_and_noun(n, 'clip')} {what}, and not scored" for what, n in counts.items() if n]
        clips = Counter((e["model"], e["digest"]) for e in self.entries.values() if e["digest"] and not e.get("truth"))
        again = Counter(model for (model, _), n in clips.items() if n > 1)
        remarks += [
            f"{model} hands in {count_and_noun(n, 'clip')} for several samples each" for model, n in again.items()
        ]
        return remarks

    def _check_questions(self) -> None:
        """Find the versions of metrics and gates that were planned, and why one cannot be asked again here."""
        tags = self.planned.protocol_tags
        promised = {} if self.bundle.promises is None else self.bundle.promises["questions"]
        if self.bundle.promises is not None and (other := sorted(promised.keys() ^ tags.keys())):
            self.problems.append(f"planned.json and plan.json do not agree on {join_names(other)}")
        for id, tag in tags.items():
            self._check_question(id, tag, promised.get(id))

    def _check_question(self, id: str, tag: str, promised: Details | None) -> None:
        facts, check = self.planned.protocol_facts_of(id), self.planned.installed_metric_or_gate(id)
        if promised is not None:
            self.versions[id] = promised["version"]
            if promised["protocol"] != tag:
                self.problems.append(f"{id} was planned under {promised['protocol']}, and plan.json has {tag}")
            if promised["facts"] is not None and self.planned.protocol_tag_of(promised["facts"]) != tag:
                self.problems.append(f"the protocol {tag} of {id} is not that of the parameters and observers it names")
        if check is None:
            self.unknown[id] = "it is not installed here"
            return
        if facts is not None and self.planned.protocol_tag_of(facts) == tag:
            self.versions[id] = check.version  # the protocol names it, whatever the answers say
            return
        claimed = [promised] if promised else [line for line in self.bundle.lines if _question_of_line(line) == id]
        versions_claimed = {line["version"] for line in claimed if line["version"] is not None}
        if versions_claimed - {check.version}:
            versions = " and ".join(map(str, sorted(versions_claimed)))
            self.unknown[id] = f"it was answered by version {versions}, and version {check.version} is installed here"
            return
        if promised and promised["facts"] and facts:
            places = changed_fact_paths(promised["facts"], facts)
            # What depends on the code that is installed may differ; the rest is of the run.
            if edited := [place for place in places if place.rpartition(".")[2] not in ("version", "decoding")]:
                self.problems.append(f"{edited[0]} of {id} in run.json is not what its protocol {tag} was made with")
        self.unknown[id] = f"its protocol {tag} cannot be made again from its parameters and observers here"


def difference_from_rescored_text(bench: CaseScorer, id: str, line: Line, *, is_gate: bool) -> str:
    """How a claimed answer is another than what comes out here; nothing where it is the same."""
    status = line["status"]
    try:
        answer = bench.gate_result(GATES[id]) if is_gate else bench.score(METRICS[id])
    except Exception as error:  # as a run takes it: a fault in one metric costs the others nothing
        if status == "failed":
            return FAILED if isinstance(error, CheckFailed) else ""
        return f"{id} cannot be made from the evidence ({error})"
    if isinstance(answer, Unscored):
        if status != "unscored":
            return f"{id} is claimed as {status}, and has no score"
        kind = (line.get("reason") or asdict(answer.reason))["kind"]
        same = kind == answer.reason.kind
        return "" if same else f"{id} is claimed as unscored for {kind}, and is for {answer.reason.kind}"
    if isinstance(answer, GateResult):
        same = status == answer.state and line.get("label", "") == answer.label
        return "" if same else f"{id} is claimed as {status}, and is {answer.state}"
    assert isinstance(answer, Score)
    if status != "scored":
        return f"{id} is claimed as {status}, and scores {answer.value:.6g}"
    for name, claimed, value in (("", line["score"], answer.value), (" (raw)", line.get("raw"), answer.raw)):
        if claimed != value and (
            claimed is None or value is None or not isclose(claimed, value, rel_tol=CLOSE, abs_tol=CLOSE)
        ):
            numbers = ["nothing" if number is None else f"{number:.6g}" for number in (claimed, value)]
            return f"{id}{name} is claimed as {numbers[0]}, and scores {numbers[1]}"
    facts, facts_here = line.get("facts") or {}, to_json_value(answer.facts)
    makers = ((facts.get(name), facts_here.get(name)) for name in MAKERS)
    other = next(((claimed, maker) for claimed, maker in makers if claimed != maker), None)
    return "" if other is None else f"{id} is claimed as made by {other[0]}, and was by {other[1]}"


def _question_of_line(line: Line) -> str:
    """The metric or gate that a line answers."""
    return line.get("metric") or line["gate"]
