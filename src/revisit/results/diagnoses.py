"""The diagnoses of a run, clip by clip and counted by model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from revisit.core import Case
from revisit.diagnosis.diagnose import Diagnosis, DiagnosisJson, can_diagnose
from revisit.diagnosis.kinds import KINDS, load_response_models
from revisit.results.file_types import Details
from revisit.results.look_away_counts import diagnosis_of_case
from revisit.results.results import Results
from revisit.results.tables import make_table

# Of one model's clips: how many `clips` could be read, and how many were `unreadable`; of how many anything (`told`) or
# most kinds (`enough`) could be told; title of a kind -> clips that show it (`findings`) or perhaps do (`doubtful`);
# how many have no failure (`sound`) or too little is known of (`unknown`); all of it in words (`sentence`).
ModelDiagnoses = dict[str, Any]


def summarise_diagnoses(results: Results) -> dict[str, Any]:
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
    diagnoses = {case.id: diagnosis_of_case(results, case) for case in diagnosable.cases if case.id not in broken}
    unreadable = Counter(models[case] for case in broken)
    return {
        "fitted": load_response_models()["provenance"]["fitted"],
        "models": {
            model: _count_diagnoses_of_model(
                [diagnosis for case, diagnosis in diagnoses.items() if models[case] == model], unreadable[model]
            )
            for model in diagnosable.models
        },
        "cases": {
            **{case: diagnosis.as_json() for case, diagnosis in diagnoses.items()},
            **{case: _unreadable_clip_diagnosis_json(why) for case, why in broken.items()},
        },
    }


def _count_diagnoses_of_model(diagnoses: Collection[Diagnosis], unreadable: int) -> ModelDiagnoses:
    findings = Counter(finding.title for diagnosis in diagnoses for finding in diagnosis.findings)
    doubtful = Counter(finding.title for diagnosis in diagnoses for finding in diagnosis.likely_findings)
    nothing_found = [diagnosis for diagnosis in diagnoses if not diagnosis.findings and not diagnosis.likely_findings]
    sound = sum(diagnosis.is_sound for diagnosis in nothing_found)
    counts: ModelDiagnoses = {
        "clips": len(diagnoses),
        "told": sum(len(diagnosis.untold) < len(KINDS) for diagnosis in diagnoses),
        "enough": sum(diagnosis.is_mostly_decided for diagnosis in diagnoses),
        "unreadable": unreadable,
        "findings": _sort_by_frequency(findings),
        "doubtful": _sort_by_frequency(doubtful),
        "sound": sound,
        "unknown": len(nothing_found) - sound,
    }
    return {**counts, "sentence": _diagnosis_counts_text(counts)}


def _sort_by_frequency(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _diagnosis_counts_text(counts: ModelDiagnoses) -> str:
    """What the clips of a model show, in words: `state reset 1, no failure found in 2, 1 could not be read`.

    One clip may show several failures. A clip of which most kinds of failure could not be asked is not sound: it is
    unknown.
    """
    parts = [f"{title} {n}" for title, n in counts["findings"].items()]
    parts += [f"perhaps {title} {n}" for title, n in counts["doubtful"].items()]
    if counts["clips"] and not counts["told"]:
        parts.append("nothing could be told")
    else:
        for words, n in (("no failure found", counts["sound"]), ("not enough to tell", counts["unknown"])):
            if n:
                parts.append(words if n == counts["clips"] else f"{words} in {n}")
    parts += [f"{counts['unreadable']} could not be read"] if counts["unreadable"] else []
    return ", ".join(parts)


def _unreadable_clip_diagnosis_json(reason: str) -> DiagnosisJson:
    """What is said of a clip that cannot be read: nothing was found, and nothing could be told."""
    undecided = dict.fromkeys(KINDS, reason)
    return {"words": f"could not be read: {reason}", "findings": [], "doubtful": [], "untold": undecided}


def taxonomy_table(
    diagnoses: Details, taxonomy: Mapping[str, Iterable[str]], groups: Mapping[str, tuple[str, str]]
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
