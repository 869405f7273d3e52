"""Analysis of the scores of a grid: AUC, effect and tau of every metric on every kind of failure.

All comparisons (AUC, effect and tau: docs/audit.md) are with the same scenes under perfect memory. A metric that
describes without saying what is better is read in the direction that separates better, which is said. An unscored clip
is neither good nor bad: it is counted, and left out of all three.

Claims are what the cards of the metrics promise, in terms of the failures that worlds can show. A metric says in
`responds_to` what it is meant to notice. The words are for readers; claims.yaml says which failures test them. A word
that no failure of ours shows is reported as not tested: a claim is never counted as kept because nobody looked. The id
or the title of a failure stands for itself.

Kinds are scored, too: how well a diagnosis finds each kind of failure, as F1 by kind, their mean, and the confusions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from revisit.audit.schema import Content
from revisit.core import METRICS, Case, Metric, Record
from revisit.core.grouping import group_items
from revisit.core.text import read_package_yaml
from revisit.diagnosis.diagnose import SURE_ENOUGH, diagnose
from revisit.diagnosis.kinds import KINDS
from revisit.results import Results
from revisit.results.display import reason_title
from revisit.stats.correlation import auc, kendall_tau, paired_cohen_d
from revisit.stats.intervals import mean_interval
from revisit.worlds.failures import FAILURES, FLOORS

RESPONDS = 0.95  # AUC at full strength from which a metric is said to respond
MONOTONE = 0.8  # tau from which it is said to follow the strength
QUIET = 0.75  # AUC below which, and above 1 minus it, it is said to stay quiet: closer to chance than to a response
LEAST_SCORED = 0.5  # of the clips; with less, a metric is said not to be asked
LEAST_CEILING = 0.8  # of its range that a bounded metric should give the truth itself
FROZEN, PERFECT = "frozen_camera", "perfect"
IDENTITY = ("colour_drift", "texture_drift", "shape_drift")
MEANS: Mapping[str, Sequence[str]] = read_package_yaml(__package__, "claims.yaml")
# Where one word means another thing in one metric: colours of the whole picture, not of the target.
OWN_MEANING = {("lighting_consistency", "colour drift"): ["lighting"]}
RETURN_GATES = {"view_return", "target_return"}
# Signs of one fault each, which only the diagnosis reads together: no second target is no proof of memory.
SIGNS = ("target_departure", "camera_departure", "look_departure")
OF_MEMORY = {"vanish", *IDENTITY, "state_reset", "state_frozen", "teleport", "duplicate", "background"}

Answers = Mapping[tuple[str, float], Mapping[int, Record]]  # (kind, strength) -> seed -> record


def analyse_grid_results(results: Results, kinds: Sequence[str], floors: Sequence[str]) -> Content:
    """The audit of all metrics and gates in the results of a grid."""
    gates = {}
    for gate in results.gates:
        records = [record for record in results.records_for(gate) if _fault_and_strength(record.case)[1] in (0.0, 1.0)]
        by_kind = group_items(records, lambda record: _fault_and_strength(record.case)[0])
        if by_kind:
            gates[gate] = {kind: dict(Counter[str](record.status for record in some)) for kind, some in by_kind.items()}
    metrics: dict[str, Content] = {}
    not_asked: dict[str, str] = {}
    for metric_id in results.metrics:
        answers: dict[tuple[str, float], dict[int, Record]] = defaultdict(dict)
        for record in results.records_for(metric_id):
            answers[_fault_and_strength(record.case)][record.case.seed] = record
        reason = _reason_never_scored(answers)
        if reason is not None:
            not_asked[metric_id] = reason
        else:
            metrics[metric_id] = audit_metric(METRICS[metric_id], answers, kinds, floors)
    return {
        "kinds": {kind: {"title": FAILURES[kind].title, "what": FAILURES[kind].what} for kind in kinds},
        "floors": {kind: {"title": FLOORS[kind].title, "what": FLOORS[kind].what} for kind in floors},
        "metrics": metrics,
        "gates": gates,
        "diagonal": {kind: _metrics_responding_to_kind(kind, metrics) for kind in kinds},
        "failing": [
            {"metric": metric_id, **counts} for metric_id, metric in metrics.items() for counts in metric["failing"]
        ],
        "not_asked": not_asked,
        "rules": {
            "responds": RESPONDS,
            "monotone": MONOTONE,
            "quiet": QUIET,
            "least_scored": LEAST_SCORED,
            "least_ceiling": LEAST_CEILING,
        },
    }


def _fault_and_strength(case: Case) -> tuple[str, float]:
    """The fault of the model that made a clip, and its strength."""
    return case.annotations["kind"], float(case.annotations["strength"])


def audit_metric(metric: Metric, answers: Answers, kinds: Sequence[str], floors: Sequence[str]) -> Content:
    """What one metric does on every kind of failure and every floor."""
    claims = claimed_failures(metric)
    cells = {kind: _audit_failure_kind(metric, answers, kind, kind in claims) for kind in kinds}
    grounds = {kind: _floor_level(metric, answers, kind) for kind in floors}
    if FROZEN in kinds:
        grounds[FROZEN] = _floor_level(metric, answers, FROZEN)
    unclaimed = {kind: cell for kind, cell in cells.items() if not cell["claimed"] and cell["response"] != "unscored"}
    quiet = [kind for kind, cell in unclaimed.items() if cell["response"] == "quiet"]
    audit: Content = {
        "title": metric.title,
        "family": metric.family,
        "version": metric.version,
        "higher_is_better": metric.higher_is_better,
        "memory": is_memory_metric(metric),
        "claims": claims,
        "untested_claims": [word for word, failures in failures_by_claim(metric).items() if not failures],
        "blind_to": list(metric.blind_to),
        "ceiling": _mean_with_interval(answers.get(("truth", 0.0), {})),
        "perfect": _mean_with_interval(answers.get(("perfect", 0.0), {})),
        "floors": grounds,
        "kinds": cells,
        "specificity": {
            "quiet": quiet,
            "of": len(unclaimed),
            "share": len(quiet) / len(unclaimed) if unclaimed else None,
        },
    }
    audit["failing"] = list(_metric_problems(metric, audit))
    return audit


def _audit_failure_kind(metric: Metric, answers: Answers, kind: str, claimed: bool) -> Content:
    """AUC, effect and tau of a metric on one kind of failure, and what they amount to."""
    perfect, full = _scores_by_seed(answers, "perfect", 0.0), _scores_by_seed(answers, kind, 1.0)
    sign, side = _score_sign_and_reading(metric, perfect, full)
    both = sorted(set(perfect) & set(full))
    effect = paired_cohen_d([perfect[seed] for seed in both], [full[seed] for seed in both])
    points = []
    for strength in sorted({at for name, at in answers if name == kind} | {0.0}):
        scored = _scores_by_seed(answers, kind, strength) if strength else perfect
        # A scene that is unscored at full strength says nothing of how the score gets there.
        points += [(strength, -sign * value, seed) for seed, value in scored.items() if seed in full]
    records = answers.get((kind, 1.0), {})
    separation = auc([sign * value for value in perfect.values()], [sign * value for value in full.values()])
    tau = kendall_tau(*zip(*points, strict=True)) if separation is not None else None
    reasons = Counter(record.reason.kind for record in records.values() if record.reason is not None)
    return {
        "claimed": claimed,
        "n": len(full),
        "of": len(records),
        "auc": separation,
        "tau": tau,
        "effect": effect,
        "read": side,
        "means": {f"{at:g}": _mean_with_interval(answers[kind, at]) for name, at in sorted(answers) if name == kind},
        "unscored": dict(reasons.most_common()),
        "response": _response_word(len(full), len(records), separation, tau),
    }


def _score_sign_and_reading(metric: Metric, perfect: Mapping[int, float], full: Mapping[int, float]) -> tuple[int, str]:
    """1 where more is better, and how that is known."""
    if metric.higher_is_better is not None:
        return (1, "higher is better") if metric.higher_is_better else (-1, "lower is better")
    rises = auc(list(full.values()), list(perfect.values()))
    if rises is None or rises < 0.5:
        return 1, "describes; read as: falls"
    return -1, "describes; read as: rises"


def _response_word(scored: int, clips: int, separation: float | None, tau: float | None) -> str:
    """The finding for one kind of failure, as a word."""
    if not clips:
        return "no clips"
    if separation is None or scored < LEAST_SCORED * clips:
        return "unscored"
    if separation >= RESPONDS:
        return "responds" if tau is not None and tau >= MONOTONE else "responds, not in order"
    if separation >= QUIET:
        return "in part"
    return "quiet" if separation > 1 - QUIET else "rewards"


def _floor_level(metric: Metric, answers: Answers, kind: str) -> Content:
    """Where a floor lies, and the chance that perfect memory scores better."""
    perfect, scored = _scores_by_seed(answers, "perfect", 0.0), _scores_by_seed(answers, kind, 1.0)
    sign = {True: 1, False: -1, None: 0}[metric.higher_is_better]
    better = auc([sign * v for v in perfect.values()], [sign * v for v in scored.values()]) if sign else None
    return {**_mean_with_interval(answers.get((kind, 1.0), {})), "auc": better}


def _metric_problems(metric: Metric, audit: Content) -> Iterator[Content]:
    """What a metric does that it should not, or does not do that it should, as sentences."""
    yield from _broken_claim_problems(audit)
    yield from _ceiling_and_floor_problems(metric, audit)
    specific = audit["specificity"]
    if specific["of"] and not specific["quiet"]:
        text = (
            f"responds to all {specific['of']} failures it does not claim: it shows that something is wrong, not what"
        )
        yield {"problem": "quiet nowhere", "kind": None, "sentence": text}


def _broken_claim_problems(audit: Content) -> Iterator[Content]:
    for kind, cell in audit["kinds"].items():
        if not cell["claimed"] or not cell["of"]:
            continue
        title = FAILURES[kind].title
        if cell["response"] == "unscored":
            why = next(map(reason_title, cell["unscored"]), "no reason given")
            text = f"claims to notice '{title}', but scored {cell['n']} of {cell['of']} such clips ({why})"
            if not audit["perfect"]["n"]:
                text = f"claims to notice '{title}', but scored no clip of perfect memory to compare with"
            yield {"problem": "claimed, not asked", "kind": kind, "sentence": text}
        elif cell["auc"] < RESPONDS:
            text = f"claims to notice '{title}', but at full strength its AUC is {cell['auc']:.2f}"
            yield {"problem": "claimed, not noticed", "kind": kind, "sentence": text}
        elif cell["response"] != "responds":
            tau = "unknown" if cell["tau"] is None else f"{cell['tau']:.2f}"
            text = f"notices '{title}', but does not follow its strength: tau is {tau}"
            yield {"problem": "claimed, not in order", "kind": kind, "sentence": text}


def _ceiling_and_floor_problems(metric: Metric, audit: Content) -> Iterator[Content]:
    low, high = metric.range
    ceiling = audit["ceiling"].get("mean")
    if low is None or high is None or ceiling is None or not metric.higher_is_better:
        pass
    elif (ceiling - low) / (high - low) < LEAST_CEILING:
        text = f"gives the truth only {ceiling:.2f} on average, on a scale up to {high:g}"
        yield {"problem": "low ceiling", "kind": None, "sentence": text}
    for kind, level in audit["floors"].items():
        if level["auc"] is not None and level["auc"] <= 0.5 and level["n"]:
            title = {**FLOORS, **FAILURES}[kind].title
            names = (kind.replace("_", " "), title)
            admits = any(name in phrase for phrase in metric.blind_to for name in names)
            admission = " (its card says that it is blind to this)" if admits else ""
            beats = "scores no worse than" if level["auc"] > 0.05 else "scores better than"
            text = f"{title}: {beats} perfect memory, AUC {level['auc']:.2f}{admission}"
            yield {"problem": "a floor wins", "kind": kind, "sentence": text, "admitted": bool(admission)}
    frozen = audit["floors"].get(FROZEN)
    if audit["memory"] and frozen and frozen["n"] and (frozen["auc"] is None or frozen["auc"] < RESPONDS):
        text = f"measures memory, but scores a frozen camera ({frozen['n']} of {frozen['of']} clips) as good memory"
        yield {"problem": "frozen camera scored as memory", "kind": FROZEN, "sentence": text}


def _metrics_responding_to_kind(kind: str, metrics: Mapping[str, Content]) -> Content:
    """The metrics that respond to a kind in the order of its strength, those that claim it first, and the nearest."""
    cells = [{"metric": metric_id, **metric["kinds"][kind]} for metric_id, metric in metrics.items()]
    asked = [cell for cell in cells if cell["response"] not in ("unscored", "no clips")]
    passing = [cell for cell in asked if cell["response"] == "responds"]
    claimed = [cell["metric"] for cell in passing if cell["claimed"]]
    ranked = sorted(asked, key=lambda cell: (-cell["auc"], 2 if cell["tau"] is None else -cell["tau"], cell["metric"]))
    return {
        "passes": bool(passing),
        "metrics": [*claimed, *(cell["metric"] for cell in passing if not cell["claimed"])],
        "claimed": claimed,
        "best": {name: ranked[0][name] for name in ("metric", "auc", "tau")} if ranked else None,
    }


def _scores_by_seed(answers: Answers, kind: str, strength: float) -> dict[int, float]:
    records = answers.get((kind, strength), {})
    return {seed: record.value for seed, record in sorted(records.items()) if record.value is not None}


def _mean_with_interval(records: Mapping[int, Record]) -> Content:
    scores = [record.value for _, record in sorted(records.items()) if record.value is not None]
    if not scores:
        return {"n": 0, "of": len(records)}
    mean, interval = sum(scores) / len(scores), mean_interval(scores)
    return {"n": len(scores), "of": len(records), "mean": mean, "interval": interval}


def _reason_never_scored(answers: Answers) -> str | None:
    """Why a metric was scored on no clip at all, not even the truth."""
    records = [record for by_seed in answers.values() for record in by_seed.values()]
    if any(record.scored for record in records):
        return None
    return Counter(record.sentence for record in records).most_common(1)[0][0]


def failures_by_claim(metric: Metric) -> dict[str, Sequence[str]]:
    """What the card of a metric promises to notice: each of its words with the failures that test it, if any does."""
    failures = {}
    for word in metric.responds_to:
        called_so = [kind for kind, failure in FAILURES.items() if word in (kind, failure.title)]
        failures[word] = OWN_MEANING.get((metric.id, word)) or MEANS.get(word) or called_so
    return failures


def claimed_failures(metric: Metric) -> list[str]:
    """The failures that a metric says it notices."""
    claimed = {kind for kinds in failures_by_claim(metric).values() for kind in kinds}
    return [kind for kind in FAILURES if kind in claimed]


def is_memory_metric(metric: Metric) -> bool:
    """Whether a good score can be read as: the world was remembered.

    It can where only a clip that looked away and back is scored at all, where only what came back is looked at, and
    where the card claims that a lost, changed or misplaced target, or another place, would be noticed. A sign of one
    fault is none: its absence says nothing of the others.
    """
    if metric.higher_is_better is None or metric.family in SIGNS:
        return False
    gated = bool(set(metric.gates) & RETURN_GATES) or metric.id.endswith("_returned")
    return gated or not OF_MEMORY.isdisjoint(claimed_failures(metric))


def score_kinds(kinds: Sequence[str], clips: Sequence[tuple[str, Collection[str]]]) -> Content:
    """F1 of every kind, their mean, and how often clips of a kind (rows) were found to show each kind (columns).

    Parameters
    ----------
    kinds
        All kinds of failure.
    clips
        For each clip, its failure (or `perfect`) and the kinds that were found.
    """
    of_kind, counts = Counter(kind for kind, _ in clips), Counter(kind for _, ids in clips for kind in ids)
    pairs = Counter((row, kind) for row, ids in clips for kind in ids or ("",))
    scores: dict[str, Content] = {}
    for kind in kinds:
        right = pairs[kind, kind]
        f1 = round(2 * right / (of_kind[kind] + counts[kind]), 3) if of_kind[kind] else None
        scores[kind] = {"clips": of_kind[kind], "found": right, "wrongly": counts[kind] - right, "f1": f1}
    confusion = {
        row: {
            "clips": of_kind[row],
            "found": {kind: n for kind in kinds if (n := pairs[row, kind])},
            "nothing": pairs[row, ""],
        }
        for row in (PERFECT, *kinds)
    }
    values = [score["f1"] for score in scores.values() if score["f1"] is not None]
    return {"macro_f1": round(float(np.mean(values)), 3) if values else None, "kinds": scores, "confusion": confusion}


def score_diagnoses(results: Results) -> Content:
    """How well the diagnosis, rules included, finds the failures of a grid; a kind counts as found from 0.5 on."""
    clips = []
    for case in results.cases:
        kind, strength = _fault_and_strength(case)
        if kind == PERFECT or (kind in KINDS and strength >= SURE_ENOUGH):
            diagnosis = diagnose(results.of(case))
            findings = (*diagnosis.findings, *diagnosis.doubtful)
            clips.append((kind, {finding.kind for finding in findings if finding.confidence >= SURE_ENOUGH}))
    return score_kinds(list(KINDS), clips)
