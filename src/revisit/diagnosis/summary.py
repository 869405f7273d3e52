"""Summary: the diagnoses of a run, clip by clip and counted by model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from revisit.core import Case
from revisit.diagnosis.diagnose import can_diagnose, diagnose, enough
from revisit.diagnosis.kinds import KINDS
from revisit.diagnosis.responses import responses
from revisit.results import Results
from revisit.results.tables import table


def diagnosed(results: Results) -> dict[str, Any]:
    """Diagnoses of all cases; empty where nobody asked what they rest on."""
    asked = results.only(lambda entry: isinstance(entry, Case) and can_diagnose(results.of(entry)))
    if not asked.cases:
        return {}
    models = {case.id: case.model for case in asked.cases}
    broken = {
        case.id: next(record.sentence for record in asked.of(case).values() if record.failed)
        for case in asked.cases
        if asked.unreadable(case)
    }
    made = {id: diagnose(asked.of(id)) for id in models if id not in broken}
    counts: dict[str, Counter[str]] = {model: Counter() for model in asked.models}
    for case, diagnosis in made.items():
        counts[models[case]].update(finding.title for finding in diagnosis.findings)
    clips, unreadable = (Counter(models[case] for case in some) for some in (made, broken))
    told = Counter(models[case] for case, diagnosis in made.items() if len(diagnosis.untold) < len(KINDS))
    plenty = Counter(models[case] for case, diagnosis in made.items() if enough(diagnosis.untold))
    return {
        "fitted": responses()["provenance"]["fitted"],
        "models": {
            model: {
                "clips": clips[model],
                "told": told[model],  # clips of which anything could be told
                "enough": plenty[model],  # clips of which most kinds could be told
                "unreadable": unreadable[model],
                "findings": dict(sorted(counts[model].items(), key=lambda item: (-item[1], item[0]))),
            }
            for model in asked.models
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


def taxonomy_table(
    found: Mapping[str, Any], taxonomy: Mapping[str, Iterable[str]], groups: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    """In how many clips each kind of a benchmark's own taxonomy was found, by model and part of the dataset.

    `taxonomy` names our kinds of failure under each of its own; `groups` has the model and the part of each case. One
    clip may show several. Clips that could not be diagnosed are not counted, neither as failing nor as sound, and a
    kind that cannot be told of a clip leaves it out of that kind's clips.
    """
    rows = []
    for group in sorted({groups[case] for case in found["cases"]}):
        mine = [diagnosis for case, diagnosis in found["cases"].items() if groups[case] == group]
        cells = []
        for kinds in taxonomy.values():
            wanted = set(kinds)
            told = [one for one in mine if not wanted <= one["untold"].keys()]
            n = sum(bool(wanted & {finding["kind"] for finding in one["findings"]}) for one in told)
            cells.append({"n": n, "of": len(told), **({"mean": n / len(told)} if told else {})})
        rows.append((", ".join(filter(None, group)), cells))
    note = "share of the clips that show it (clips that show it/clips of which it can be told); not exclusive"
    return table("Failures by kind", note, taxonomy, rows)
