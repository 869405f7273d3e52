"""Summary: the diagnoses of a run, clip by clip and counted by model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from revisit.diagnosis.diagnose import can_diagnose, diagnose
from revisit.diagnosis.responses import responses
from revisit.diagnosis.signs import Record


def diagnosed(models: Mapping[str, str], records: Iterable[Record]) -> dict[str, Any]:
    """Diagnoses of all cases (`models` names the model of each); empty where nobody asked what they rest on."""
    by_case: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_case[record["case"]].append(record)
    made = {case: diagnose(found) for case, found in by_case.items() if case in models and can_diagnose(found)}
    if not made:
        return {}
    counts: dict[str, Counter[str]] = {model: Counter() for model in sorted({models[case] for case in made})}
    clips: Counter[str] = Counter(models[case] for case in made)
    for case, diagnosis in made.items():
        counts[models[case]].update(finding.title for finding in diagnosis.findings)
    return {
        "fitted": responses()["provenance"]["fitted"],
        "models": {
            model: {
                "clips": clips[model],
                "findings": dict(sorted(count.items(), key=lambda item: (-item[1], item[0]))),
            }
            for model, count in counts.items()
        },
        "cases": {case: diagnosis.as_json() for case, diagnosis in made.items()},
    }
