"""Several calls into one run: answers of earlier calls stay beside those of the last one.

For those who run networks on one machine and a judge on another. What an earlier call asked and this one does not is
kept as it was answered; so is what this machine could not answer. A clip that has changed since loses its earlier
answers, one that the dataset has no more is forgotten, and a run of another protocol is refused: its numbers do not go
beside these.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from revisit.core import UsageError, evidence_id
from revisit.engine.needs import observed_kinds, short_hash
from revisit.engine.plan import Plan

Content = Mapping[str, Any]  # of a plan.json


def earlier_plan(out: Path, plan: Plan, present: Collection[str] | None = None) -> dict[str, Any] | None:
    """What earlier calls into this folder asked, if it can stay beside this plan.

    `present` are ids of the cases that the dataset has now; earlier ones that it has no more are left out.
    """
    path = out / "plan.json"
    if not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for name, mine in (("suite", plan.suite.id), ("protocol", plan.protocol), ("align", plan.align)):
        if found[name] != mine:
            raise UsageError(
                f"{out} holds answers of the {name} {found[name]!r}, and this call has {mine!r}; choose another "
                "folder, or --fresh to replace them"
            )
    found.setdefault("made_by", {})
    if present is not None:
        for name in ("cases", "rejected"):
            found[name] = [entry for entry in found[name] if entry["id"] in present]
    return found


def left_to_earlier(plan: Plan, earlier: Content) -> Plan:
    """The plan without metrics that cannot be answered here for any clip, where an earlier call answered them."""

    def lacks(metric: Any) -> bool:
        kinds = {evidence_id(kind) for kind in observed_kinds(metric, optional=False)}
        asked = [case for case in plan.cases if metric in plan.askers_of(case) and case.id not in plan.unreadable]
        return all(kinds & plan.wanted[case.id].absent.keys() for case in asked)

    known = [metric for metric in plan.metrics if metric.id in earlier["metrics"] and lacks(metric)]
    return replace(plan, metrics=tuple(metric for metric in plan.metrics if metric not in known))


def joined(earlier: Content | None, now: Content) -> dict[str, Any]:
    """The content of plan.json for all calls together."""
    if earlier is None:
        return dict(now)
    before = {case["id"]: case for case in earlier["cases"]}
    mine = {case["id"]: case for case in now["cases"]}
    for id, case in mine.items():
        other = before.get(id)
        if other is not None and other["digest"] == case["digest"]:
            for part in ("absent", "evidence", "reference_evidence"):
                case[part] = {**other[part], **case[part]}
            case["absent"] = {kind: why for kind, why in case["absent"].items() if kind not in case["evidence"]}
    cases = {**before, **mine}
    rejected = {entry["id"]: entry for entry in [*earlier["rejected"], *now["rejected"]]}
    whole = before.keys() <= mine.keys()  # this call looked at every clip of the earlier ones
    return {
        **now,
        "partial": now["partial"] if whole else now["partial"] or earlier["partial"],
        "total_cases": max(len(cases), now["total_cases"], 0 if whole else earlier["total_cases"]),
        **{name: {**earlier[name], **now[name]} for name in ("gates", "metrics", "made_by")},
        "cases": list(cases.values()),
        "rejected": [entry for id, entry in rejected.items() if id not in cases],
    }


def stale(earlier: Content | None, now: Content) -> set[tuple[str, str]]:
    """Clips and questions of earlier calls whose answers do not hold any more, because the clip is another one."""
    if earlier is None:
        return set()
    before = {case["id"]: case["digest"] for case in earlier["cases"]}
    changed = [case["id"] for case in now["cases"] if before.get(case["id"], case["digest"]) != case["digest"]]
    others = [id for kind in ("gates", "metrics") for id in earlier[kind] if id not in now[kind]]
    return {(case, id) for case in changed for id in others}


def hash_of(content: Content) -> str:
    """One hash over all metrics and gates of a run."""
    return short_hash(sorted([*content["gates"].values(), *content["metrics"].values()]))
