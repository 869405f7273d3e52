"""Summary: the diagnoses of a run, clip by clip and counted by model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from revisit.core import Case
from revisit.diagnosis.diagnose import DiagnosisJson, can_diagnose, diagnose, is_mostly_decided
from revisit.diagnosis.kinds import KINDS
from revisit.diagnosis.responses import responses
from revisit.results import Results
from revisit.results.tables import make_table


class ModelDiagnoses(TypedDict):
    """Counts of one model's clips."""

    clips: int
    told: int  # clips of which anything could be told
    enough: int  # clips of which most kinds could be told
    unreadable: int
    findings: dict[str, int]  # title of a kind -> clips that show it


class DiagnosisSummary(TypedDict, total=False):
    """The diagnoses of a run; empty where nobody asked what they rest on."""

    fitted: object
    models: dict[str, ModelDiagnoses]
    cases: dict[str, DiagnosisJson]


def summarise_diagnoses(results: Results) -> DiagnosisSummary:
    """Diagnoses of all cases; empty where nobody asked what they rest on."""
    diagnosable = results.only(lambda entry: isinstance(entry, Case) and can_diagnose(results.of(entry)))
    if not diagnosable.cases:
        return {}
    models = {case.id: case.model for case in diagnosable.cases}
    broken = {
        case.id: next(record.sentence for record in diagnosable.of(case).values() if record.failed)
        for case in diagnosable.cases
        if diagnosable.unreadable(case)
    }
    diagnoses = {case_id: diagnose(diagnosable.of(case_id)) for case_id in models if case_id not in broken}
    counts: dict[str, Counter[str]] = {model: Counter() for model in diagnosable.models}
    for case, diagnosis in diagnoses.items():
        counts[models[case]].update(finding.title for finding in diagnosis.findings)
    clips, unreadable = (Counter(models[case] for case in some) for some in (diagnoses, broken))
    decided = Counter(models[case] for case, diagnosis in diagnoses.items() if len(diagnosis.untold) < len(KINDS))
    plenty = Counter(models[case] for case, diagnosis in diagnoses.items() if is_mostly_decided(diagnosis.untold))
    return {
        "fitted": responses()["provenance"]["fitted"],
        "models": {
            model: {
                "clips": clips[model],
                "told": decided[model],
                "enough": plenty[model],
                "unreadable": unreadable[model],
                "findings": dict(sorted(counts[model].items(), key=lambda item: (-item[1], item[0]))),
            }
            for model in diagnosable.models
        },
        "cases": {
            **{case: diagnosis.as_json() for case, diagnosis in diagnoses.items()},
            **{case: unread(why) for case, why in broken.items()},
        },
    }


def unread(why: str) -> DiagnosisJson:
    """What is said of a clip that cannot be read: nothing was found, and nothing could be told."""
    undecided = dict.fromkeys(KINDS, why)
    return {"words": f"could not be read: {why}", "findings": [], "doubtful": [], "untold": undecided}


def taxonomy_table(
    diagnoses: DiagnosisSummary, taxonomy: Mapping[str, Iterable[str]], groups: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    """In how many clips each kind of a benchmark's own taxonomy was found, by model and part of the dataset.

    `taxonomy` names our kinds of failure under each of its own; `groups` has the model and the part of each case. One
    clip may show several. Clips that could not be diagnosed are not counted, neither as failing nor as sound, and a
    kind that cannot be told of a clip leaves it out of that kind's clips.
    """
    rows = []
    for group in sorted({groups[case] for case in diagnoses["cases"]}):
        mine = [diagnosis for case, diagnosis in diagnoses["cases"].items() if groups[case] == group]
        cells = []
        for kinds in taxonomy.values():
            kind_ids = set(kinds)
            decided = [one for one in mine if not kind_ids <= one["untold"].keys()]
            n = sum(bool(kind_ids & {finding["kind"] for finding in one["findings"]}) for one in decided)
            cells.append({"n": n, "of": len(decided), **({"mean": n / len(decided)} if decided else {})})
        rows.append((", ".join(filter(None, group)), cells))
    note = "share of the clips that show it (clips that show it/clips of which it can be told); not exclusive"
    return make_table("Failures by kind", note, taxonomy, rows)
