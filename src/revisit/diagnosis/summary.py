"""Summary: the diagnoses of a run, clip by clip and counted by model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from revisit.diagnosis.diagnose import can_diagnose, diagnose
from revisit.diagnosis.kinds import KINDS
from revisit.diagnosis.responses import responses
from revisit.diagnosis.signs import Record


def diagnosed(models: Mapping[str, str], records: Iterable[Record]) -> dict[str, Any]:
    """Diagnoses of all cases (`models` names the model of each); empty where nobody asked what they rest on."""
    by_case: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_case[record["case"]].append(record)
    asked = {case: found for case, found in by_case.items() if case in models and can_diagnose(found)}
    broken = {
        case: next(str(record["reason"]) for record in found if record["status"] == "failed")
        for case, found in asked.items()
        if _unreadable(found)
    }
    made = {case: diagnose(found) for case, found in asked.items() if case not in broken}
    if not asked:
        return {}
    names = sorted({models[case] for case in asked})
    counts: dict[str, Counter[str]] = {model: Counter() for model in names}
    for case, diagnosis in made.items():
        counts[models[case]].update(finding.title for finding in diagnosis.findings)
    clips, unreadable = (Counter(models[case] for case in some) for some in (made, broken))
    told = Counter(models[case] for case, diagnosis in made.items() if len(diagnosis.untold) < len(KINDS))
    return {
        "fitted": responses()["provenance"]["fitted"],
        "models": {
            model: {
                "clips": clips[model],
                "told": told[model],  # clips of which anything could be told
                "unreadable": unreadable[model],
                "findings": dict(sorted(counts[model].items(), key=lambda item: (-item[1], item[0]))),
            }
            for model in names
        },
        "cases": {
            **{case: diagnosis.as_json() for case, diagnosis in made.items()},
            **{case: unread(why) for case, why in broken.items()},
        },
    }


def unread(why: str) -> dict[str, Any]:
    """What is said of a clip that cannot be read: nothing was found, and nothing could be told."""
    untold = dict.fromkeys(KINDS, why)
    return {"words": f"could not be read: {why}", "findings": [], "doubtful": [], "untold": untold}


def _unreadable(records: Iterable[Record]) -> bool:
    """Whether nothing at all could be answered of a clip: all failed, but for what nobody could be asked anyway."""
    found = list(records)
    absent = [record["status"] == "unscored" and not record.get("facts") for record in found]
    failed = [record["status"] == "failed" for record in found]
    return any(failed) and all(one or other for one, other in zip(absent, failed, strict=True))
