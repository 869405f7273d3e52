"""Writes the results of a run: summary.json, diagnosis.json, and the files that its suite exports."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from revisit.core import SUITES, Case, Rejected, Suite
from revisit.engine.availability import observed_by_sets_text
from revisit.engine.resume import ResumedRun, hash_of_metrics_and_gates
from revisit.media.files import write_text_atomically
from revisit.results import Results, stand_ins
from revisit.results.diagnoses import summarise_diagnoses, taxonomy_table
from revisit.results.display import observed_by_or_set
from revisit.results.distances import distance_sentences, distance_table, model_to_truth_distances
from revisit.results.file_types import Details, PlanFile, RunFile
from revisit.results.record_files import write_json, write_json_rows
from revisit.results.run import Run, load_results
from revisit.results.tables import drift_curves, drift_table
from revisit.results.verdict import make_verdict
from revisit.weights import lock


@dataclass
class RunSummary:
    """What summary.json and diagnosis.json say of a run, made part by part."""

    results: Results
    suite: Suite
    plan: PlanFile
    content: dict[str, Any] = field(default_factory=dict)
    diagnoses: Details = field(default_factory=dict)  # of all clips


def write_result_files(resumed: ResumedRun) -> Results:
    """The results; summary.json has the suite's own tables, no times and no paths: equal work gives equal bytes."""
    out, suite = resumed.folder, resumed.plan.suite
    results = load_results(out, resumed.whole, resumed.plan.cases, resumed.lines)
    summary = summarise_results(results, suite, resumed.whole)
    if summary.diagnoses:
        write_json_rows(out / "diagnosis.json", summary.diagnoses)
    else:
        (out / "diagnosis.json").unlink(missing_ok=True)
    write_json(out / "summary.json", {**_run_details(resumed.whole), **summary.content})
    _remove_stale_exports(out, suite.exports, _write_exported_files(resumed, results))
    return results


def summarise_results(results: Results, suite: Suite, plan: PlanFile) -> RunSummary:
    """The suite's own tables with diagnosis, distances, drift and verdict, and the diagnoses of all clips."""
    summary = RunSummary(results, suite, plan)
    for add_part in PARTS:
        add_part(summary)
    return summary


def _add_tables_of_suite(summary: RunSummary) -> None:
    summary.content |= summary.suite.summarise(summary.results)


def _add_diagnoses(summary: RunSummary) -> None:
    diagnoses, content = summarise_diagnoses(summary.results), summary.content
    if not diagnoses:
        return
    summary.diagnoses = dict(diagnoses)
    words = {case: diagnosis["words"] for case, diagnosis in diagnoses["cases"].items()}
    content["diagnosis"] = {"fitted": diagnoses["fitted"], "models": diagnoses["models"], "cases": words}
    if taxonomy := summary.suite.card.get("taxonomy"):
        groups = {case.id: (case.model, case.subset) for case in summary.results.cases}
        content["tables"] = [*content.get("tables", ()), taxonomy_table(diagnoses, taxonomy, groups)]


def _add_notes(summary: RunSummary) -> None:
    """Whose truth was measured otherwise, what stands in for published measures, and how the source was read."""
    results, suite = summary.results, summary.suite
    notes = [*stand_ins.truth_of_other_makers_sentences(results)]
    if suite.export is not None and (others := stand_ins.list_stand_ins(results)):
        notes.append(stand_ins.stand_ins_sentence(others, suite.title))
    if notes := [*notes, *summary.plan.get("remarks", ())]:
        summary.content["notes"] = [*notes, *summary.content.get("notes", ())]


def _add_distances(summary: RunSummary) -> None:
    digests = {id: entry.files[0].sha256 for id, entry in lock.read_lock_entries().items()}  # of each network's weights
    content, distances = summary.content, model_to_truth_distances(summary.results, digests)
    if distances:
        content["distances"] = distances
        content["tables"] = [*content.get("tables", ()), distance_table(distances)]
        content["sentences"] = [*content.get("sentences", ()), *distance_sentences(distances)]


def _add_drift(summary: RunSummary) -> None:
    content, curves = summary.content, drift_curves(summary.results)
    if curves:
        content["drift"] = curves
        content["tables"] = [*content.get("tables", ()), *map(drift_table, curves)]


def _add_verdict(summary: RunSummary) -> None:
    verdict = make_verdict(summary.results, summary.suite.card)
    summary.content["look_away"] = None if verdict.look_away is None else verdict.look_away.as_json()
    summary.content["verdict"] = verdict.as_json()


# In the order in which summary.json has them.
PARTS = (_add_tables_of_suite, _add_diagnoses, _add_notes, _add_distances, _add_drift, _add_verdict)


@dataclass(frozen=True)
class CurrentResults:
    """What a run says so far: of the clips that have answers."""

    results: Results
    summary: Details
    diagnosis: Details


def current_results(run: Run) -> CurrentResults:
    """A finished run as it was summed up; one that is still going, summed up now."""
    facts = run.facts
    if facts["invocations"] and facts["invocations"][-1]["finished"] and (run.path / "summary.json").is_file():
        return CurrentResults(run.results, run.summary, run.diagnosis)
    plan, everything = run.plan, run.results
    results = everything.only(lambda entry: isinstance(entry, Rejected) or bool(everything.of(entry)))
    summary = summarise_results(results, SUITES[plan["suite"]], plan)
    return CurrentResults(results, {**_run_details(plan, facts), **summary.content}, summary.diagnoses)


def _write_exported_files(resumed: ResumedRun, results: Results) -> set[Path]:
    """Write the files that the suite makes of these results; return where they are."""
    out, plan, whole = resumed.folder, resumed.plan, resumed.whole
    if plan.suite.export is None:
        return set()
    contest = [entry for entry in whole["cases"] if not entry.get("truth")]
    finished = len(results.cases) == len(contest)
    models = sorted({entry["model"] for entry in (*contest, *whole["rejected"])} - {""})
    more = {"made_by": whole["made_by"], "parameters": plan.parameters, "finished": finished, "models": models}
    content_by_name = plan.suite.export(out, {**_run_details(whole), **more}, stand_ins.separate_stand_ins(results))
    if stand_ins.list_stand_ins(results):
        content_by_name[stand_ins.FILE] = stand_ins.stand_in_scores_csv(results)
    else:
        (out / stand_ins.FILE).unlink(missing_ok=True)
    for name, content in content_by_name.items():
        (write_text_atomically if isinstance(content, str) else write_json)(out / name, content)
    return {out / name for name in content_by_name}


def _run_details(plan: PlanFile, facts: RunFile | None = None) -> dict[str, object]:
    """What the summary and the exported files say of the run; of one that goes on, by its run.json."""
    sets = dict.fromkeys(maker["set"] for maker in plan["made_by"].values()) if facts is None else [facts["set"]]
    return {
        "suite": plan["suite"],
        "protocol": f"{plan['protocol']}:{hash_of_metrics_and_gates(plan)}",
        "set": " + ".join(sets) or plan["set"],
        "observed_by": observed_by_sets_text(plan) if facts is None else observed_by_or_set(facts),
        "partial": plan["partial"],
        "total_cases": plan["total_cases"],
    }


class IncrementalExport:
    """Exported files while the answers come in, for suites whose card says `grows`: rows of cases done.

    They are written anew at most a tenth of the time, so that a long list of clips does not slow a run down.
    """

    def __init__(self, resumed: ResumedRun, exported: Callable[[Path], None] | None) -> None:
        self.resumed, self.exported = resumed, exported
        self.done = {id for id, questions in resumed.questions.items() if not questions}
        suite = resumed.plan.suite
        self.wanted = suite.export is not None and bool(suite.card.get("grows"))
        self.due = 0.0

    def export_if_due(self, case: Case) -> None:
        self.done.add(case.id)
        started = time.monotonic()
        if not self.wanted or started < self.due:
            return
        folder, plan = self.resumed.folder, self.resumed.plan
        results = load_results(folder, self.resumed.whole, plan.cases, self.resumed.lines)
        _write_exported_files(
            self.resumed, results.only(lambda entry: isinstance(entry, Rejected) or entry.id in self.done)
        )
        if self.exported is not None:
            self.exported(folder)
        now = time.monotonic()
        self.due = now + 9 * (now - started)


def _remove_stale_exports(out: Path, exports: Sequence[str], current: set[Path]) -> None:
    """Remove from exported folders what this invocation did not write: files of models or protocols now gone."""
    for folder in [place for pattern in exports for place in out.glob(pattern) if place.is_dir()]:
        for path in folder.rglob("*"):
            if path.is_file() and path not in current:
                path.unlink()
