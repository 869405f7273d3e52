"""Analyse: from the scores of a grid to what each metric does, kind of failure by kind of failure.

All comparisons (AUC, effect and tau: docs/audit.md) are with the same scenes under perfect memory. A metric that
describes without saying what is better is read in the direction that separates better, which is said. An unscored clip
is neither good nor bad: it is counted, and left out of all three.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from revisit.audit.claims import claims_of, is_memory
from revisit.core import METRICS, Case, Metric, Record
from revisit.results import Results
from revisit.results.display import reason_title as reason_title
from revisit.stats.intervals import mean_interval
from revisit.stats.ranks import auc, kendall_tau, paired_effect
from revisit.worlds.failures import FAILURES, FLOORS

RESPONDS = 0.95  # AUC at full strength from which a metric is said to respond
MONOTONE = 0.8  # tau from which it is said to follow the strength
QUIET = 0.75  # AUC below which, and above 1 minus it, it is said to stay quiet: closer to chance than to a response
LEAST_SCORED = 0.5  # of the clips; with less, a metric is said not to be asked
LEAST_CEILING = 0.8  # of its range that a bounded metric should give the truth itself
FROZEN = "frozen_camera"

Answers = Mapping[tuple[str, float], Mapping[int, Record]]  # (kind, strength) -> seed -> record


def analyse(results: Results, kinds: Sequence[str], floors: Sequence[str]) -> dict[str, Any]:
    """The audit of all metrics and gates in the results of a grid."""
    by_gate: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for gate in results.gates:
        for record in results.about(gate):
            kind, strength = _fault(record.case)
            if strength in (0.0, 1.0):
                by_gate[gate][kind][record.status] += 1
    metrics, not_asked = {}, {}
    for id in results.metrics:
        answers: dict[tuple[str, float], dict[int, Record]] = defaultdict(dict)
        for record in results.about(id):
            answers[_fault(record.case)][record.case.seed] = record
        reason = _never_scored(answers)
        if reason is not None:
            not_asked[id] = reason
        else:
            metrics[id] = audit_metric(METRICS[id], answers, kinds, floors)
    return {
        "kinds": {kind: {"title": FAILURES[kind].title, "what": FAILURES[kind].what} for kind in kinds},
        "floors": {kind: {"title": FLOORS[kind].title, "what": FLOORS[kind].what} for kind in floors},
        "metrics": metrics,
        "gates": {gate: {kind: dict(found) for kind, found in kinds.items()} for gate, kinds in by_gate.items()},
        "diagonal": {kind: _diagonal(kind, metrics) for kind in kinds},
        "failing": [{"metric": id, **found} for id, metric in metrics.items() for found in metric["failing"]],
        "not_asked": not_asked,
        "rules": {
            "responds": RESPONDS,
            "monotone": MONOTONE,
            "quiet": QUIET,
            "least_scored": LEAST_SCORED,
            "least_ceiling": LEAST_CEILING,
        },
    }


def _fault(case: Case) -> tuple[str, float]:
    """The fault of the model that made a clip, and its strength."""
    return case.annotations["kind"], float(case.annotations["strength"])


def audit_metric(metric: Metric, answers: Answers, kinds: Sequence[str], floors: Sequence[str]) -> dict[str, Any]:
    """What one metric does on every kind of failure and every floor."""
    claims = claims_of(metric)
    cells = {kind: _cell(metric, answers, kind, kind in claims.kinds) for kind in kinds}
    grounds = {kind: _level(metric, answers, kind) for kind in floors}
    if FROZEN in kinds:
        grounds[FROZEN] = _level(metric, answers, FROZEN)
    asked = {kind: cell for kind, cell in cells.items() if not cell["claimed"] and cell["response"] != "unscored"}
    quiet = [kind for kind, cell in asked.items() if cell["response"] == "quiet"]
    found: dict[str, Any] = {
        "title": metric.title,
        "family": metric.family,
        "version": metric.version,
        "higher_is_better": metric.higher_is_better,
        "memory": is_memory(metric),
        "claims": list(claims.kinds),
        "untested_claims": list(claims.untested),
        "blind_to": list(metric.blind_to),
        "ceiling": _mean(answers.get(("truth", 0.0), {})),
        "perfect": _mean(answers.get(("perfect", 0.0), {})),
        "floors": grounds,
        "kinds": cells,
        "specificity": {"quiet": quiet, "of": len(asked), "share": len(quiet) / len(asked) if asked else None},
    }
    return {**found, "failing": list(_failing(metric, found))}


def _cell(metric: Metric, answers: Answers, kind: str, claimed: bool) -> dict[str, Any]:
    """AUC, effect and tau of a metric on one kind of failure, and what they amount to."""
    perfect, full = _scores(answers, "perfect", 0.0), _scores(answers, kind, 1.0)
    sign, side = _direction(metric, perfect, full)
    both = sorted(set(perfect) & set(full))
    effect = paired_effect([perfect[seed] for seed in both], [full[seed] for seed in both])
    strengths, worse, scenes = [], [], []
    for strength in sorted({at for name, at in answers if name == kind} | {0.0}):
        scored = perfect if strength == 0 else _scores(answers, kind, strength)
        for seed, value in scored.items():
            if seed in full:  # a scene that is unscored at full strength says nothing of how the score gets there
                strengths.append(strength)
                worse.append(-sign * value)
                scenes.append(seed)
    asked = answers.get((kind, 1.0), {})
    separation = auc([sign * value for value in perfect.values()], [sign * value for value in full.values()])
    tau = kendall_tau(strengths, worse, scenes) if separation is not None else None
    reasons = Counter(record.reason.kind for record in asked.values() if record.reason is not None)
    cell: dict[str, Any] = {
        "claimed": claimed,
        "n": len(full),
        "of": len(asked),
        "auc": separation,
        "tau": tau,
        "effect": None if effect is None else effect.__dict__,
        "read": side,
        "means": _by_strength(answers, kind),
        "unscored": dict(reasons.most_common()),
    }
    return {**cell, "response": _response(cell)}


def _direction(metric: Metric, perfect: Mapping[int, float], full: Mapping[int, float]) -> tuple[int, str]:
    """1 where more is better, and how that is known."""
    if metric.higher_is_better is not None:
        return (1, "higher is better") if metric.higher_is_better else (-1, "lower is better")
    rises = auc(list(full.values()), list(perfect.values()))
    if rises is None or rises < 0.5:
        return 1, "describes; read as: falls"
    return -1, "describes; read as: rises"


def _response(cell: Mapping[str, Any]) -> str:
    if not cell["of"]:
        return "no clips"
    if cell["auc"] is None or cell["n"] < LEAST_SCORED * cell["of"]:
        return "unscored"
    if cell["auc"] >= RESPONDS:
        return "responds" if cell["tau"] is not None and cell["tau"] >= MONOTONE else "responds, not in order"
    if cell["auc"] >= QUIET:
        return "in part"
    return "quiet" if cell["auc"] > 1 - QUIET else "rewards"


def _level(metric: Metric, answers: Answers, kind: str) -> dict[str, Any]:
    """Where a floor lies, and the chance that perfect memory scores better."""
    perfect, scored = _scores(answers, "perfect", 0.0), _scores(answers, kind, 1.0)
    sign = {True: 1, False: -1, None: 0}[metric.higher_is_better]
    better = auc([sign * v for v in perfect.values()], [sign * v for v in scored.values()]) if sign else None
    return {**_mean(answers.get((kind, 1.0), {})), "auc": better}


def _failing(metric: Metric, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What a metric does that it should not, or does not do that it should, as sentences."""
    yield from _broken_claims(found)
    yield from _wrong_levels(metric, found)
    specific = found["specificity"]
    if specific["of"] and not specific["quiet"]:
        text = (
            f"responds to all {specific['of']} failures it does not claim: it shows that something is wrong, not what"
        )
        yield {"problem": "quiet nowhere", "kind": None, "sentence": text}


def _broken_claims(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for kind, cell in found["kinds"].items():
        if not cell["claimed"] or not cell["of"]:
            continue
        title = FAILURES[kind].title
        if cell["response"] == "unscored":
            why = next(map(reason_title, cell["unscored"]), "no reason given")
            text = f"claims to notice '{title}', but scored {cell['n']} of {cell['of']} such clips ({why})"
            yield {"problem": "claimed, not asked", "kind": kind, "sentence": text}
        elif cell["auc"] < RESPONDS:
            text = f"claims to notice '{title}', but at full strength its AUC is {cell['auc']:.2f}"
            yield {"problem": "claimed, not noticed", "kind": kind, "sentence": text}
        elif cell["response"] != "responds":
            tau = "unknown" if cell["tau"] is None else f"{cell['tau']:.2f}"
            text = f"notices '{title}', but does not follow its strength: tau is {tau}"
            yield {"problem": "claimed, not in order", "kind": kind, "sentence": text}


def _wrong_levels(metric: Metric, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    low, high = metric.range
    ceiling = found["ceiling"].get("mean")
    if metric.higher_is_better and None not in (low, high, ceiling):
        reached = (ceiling - (low or 0)) / ((high or 0) - (low or 0))
        if reached < LEAST_CEILING:
            text = f"gives the truth only {ceiling:.2f} on average, on a scale up to {high:g}"
            yield {"problem": "low ceiling", "kind": None, "sentence": text}
    for kind, level in found["floors"].items():
        if level["auc"] is not None and level["auc"] <= 0.5 and level["n"]:
            title = {**FLOORS, **FAILURES}[kind].title
            said = " (its card says that it is blind to this)" if _admits(metric, kind, title) else ""
            beats = "scores no worse than" if level["auc"] > 0.05 else "scores better than"
            text = f"{title}: {beats} perfect memory, AUC {level['auc']:.2f}{said}"
            yield {"problem": "a floor wins", "kind": kind, "sentence": text, "admitted": bool(said)}
    frozen = found["floors"].get(FROZEN)
    if found["memory"] and frozen and frozen["n"] and (frozen["auc"] is None or frozen["auc"] < RESPONDS):
        text = f"measures memory, but scores a frozen camera ({frozen['n']} of {frozen['of']} clips) as good memory"
        yield {"problem": "frozen camera scored as memory", "kind": FROZEN, "sentence": text}


def _admits(metric: Metric, kind: str, title: str) -> bool:
    words = {kind.replace("_", " "), title, *kind.split("_")[:1]}
    return any(word in said for said in metric.blind_to for word in words)


def _diagonal(kind: str, metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The metrics that respond to a kind in the order of its strength, the most separate first."""
    found = [(id, metric["kinds"][kind]) for id, metric in metrics.items()]
    passing = [(id, cell) for id, cell in found if cell["response"] == "responds"]
    claimed = [id for id, cell in passing if cell["claimed"]]
    ranked = sorted(found, key=lambda item: (-(item[1]["auc"] or 0), -(item[1]["tau"] or -1), item[0]))
    best = next(((id, cell) for id, cell in ranked if cell["response"] != "unscored"), None)
    return {
        "passes": bool(passing),
        "metrics": [*claimed, *(id for id, _ in passing if id not in claimed)],
        "claimed": claimed,
        "best": None if best is None else {"metric": best[0], "auc": best[1]["auc"], "tau": best[1]["tau"]},
    }


def _scores(answers: Answers, kind: str, strength: float) -> dict[int, float]:
    found = answers.get((kind, strength), {})
    return {seed: record.value for seed, record in sorted(found.items()) if record.value is not None}


def _mean(found: Mapping[int, Record]) -> dict[str, Any]:
    scores = [record.value for _, record in sorted(found.items()) if record.value is not None]
    facts: dict[str, Any] = {"n": len(scores), "of": len(found)}
    if scores:
        facts |= {"mean": sum(scores) / len(scores), "interval": mean_interval(scores)}
    return facts


def _by_strength(answers: Answers, kind: str) -> dict[str, dict[str, Any]]:
    strengths = sorted(at for name, at in answers if name == kind)
    return {f"{at:g}": _mean(answers[kind, at]) for at in strengths}


def _never_scored(answers: Answers) -> str | None:
    """Why a metric was scored on no clip at all, not even the truth."""
    records = [record for found in answers.values() for record in found.values()]
    if any(record.scored for record in records):
        return None
    return Counter(record.sentence for record in records).most_common(1)[0][0]
