"""What the tables say, in sentences: who posed the test, what came back, and which order of the models holds.

Two models are called apart only where the differences of their scores, clip by clip, have an interval that leaves out
zero; the intervals of all pairs hold together at 95 % (Bonferroni). A ranking of means alone is not an order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from revisit.core import METRICS, Case
from revisit.stats.intervals import mean_interval
from revisit.suites.tables import ByCase, clip

TARGET = {
    "never hidden": "The target was never hidden, so the clip does not pose the test",
    "hidden, not returned": "The target was hidden and did not come back",
    "hidden, returned": "The target was hidden and came back",
}
NEVER_LEFT = "The first view never left the frame"
OUTCOME = "event_outcome"
UNDONE, DONE = 1 / 3, 1 / 2  # below, twice as near to the first view as to the truth; above, nearer to the truth
MOST_PAIRS = 12


def sentences(cases: Sequence[Case], answers: ByCase, models: Sequence[str], fidelity: Sequence[str]) -> list[str]:
    """Sentences about all models together."""
    said = []
    for label, words in TARGET.items():
        found = _with_label(cases, answers, "target_return", label)
        if found:
            said.append(f"{words}: {found}.")
    never = _with_label(cases, answers, "view_return", "never left")
    if never:
        said.append(f"{NEVER_LEFT}: {never}.")
    outcome = _outcomes(cases, answers, models)
    if outcome:
        said.append(outcome)
    return said + [sentence for id in fidelity if (sentence := order(id, cases, answers, models))]


def order(id: str, cases: Sequence[Case], answers: ByCase, models: Sequence[str]) -> str | None:
    """The models by their mean with intervals and numbers of clips, and which of them are apart."""
    scores = {model: _scores(id, cases, answers, model) for model in models}
    scores = {model: mine for model, mine in scores.items() if mine}
    if len(scores) < 2:
        return None
    metric = METRICS[id]
    ranked = sorted(scores, key=lambda model: _mean(scores[model]), reverse=bool(metric.higher_is_better))
    shown = []
    for model in ranked:
        values = list(scores[model].values())
        found = mean_interval(values, [sample for sample, _ in scores[model]])
        span = "no interval" if found is None else "{:.3g} to {:.3g}".format(*clip(found, metric.range))
        shown.append(f"{model} {sum(values) / len(values):.4g} ({span}, {_clips(len(values))})")
    pairs = _apart(ranked, scores)
    if pairs:
        more = f" and {len(pairs) - MOST_PAIRS} more pairs" if len(pairs) > MOST_PAIRS else ""
        apart = (
            "Clip by clip and over all pairs together, "
            + ", ".join(f"{a} is ahead of {b}" for a, b in pairs[:MOST_PAIRS])
            + more
        )
    else:
        apart = "Clip by clip no two of them are apart at 95 %: these clips do not give an order"
    return f"{metric.title}, best mean first: {'; '.join(shown)}. {apart}."


def _apart(ranked: Sequence[str], scores: dict[str, dict[tuple[str, str], float]]) -> list[tuple[str, str]]:
    pairs = []
    level = 1 - 0.05 / max(len(ranked) * (len(ranked) - 1) // 2, 1)
    for k, better in enumerate(ranked):
        for worse in ranked[k + 1 :]:
            shared = [key for key in scores[better] if key in scores[worse]]
            differences = [scores[better][key] - scores[worse][key] for key in shared]
            found = mean_interval(differences, [sample for sample, _ in shared], level) if differences else None
            if found is not None and not found[0] <= 0 <= found[1]:
                pairs.append((better, worse))
    return pairs


def _outcomes(cases: Sequence[Case], answers: ByCase, models: Sequence[str]) -> str | None:
    """Whether the return shows what had happened meanwhile."""
    groups: dict[str, list[str]] = defaultdict(list)
    for model in models:
        mine = _scores(OUTCOME, cases, answers, model)
        if mine:
            value = _mean(mine)
            kind = "reset" if value < UNDONE else "nearer to the truth" if value > DONE else "in between"
            groups[kind].append(f"{model} {value:.2f} ({_clips(len(mine))})")
    if not groups:
        return None
    parts = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in groups.items())
    return f"After the return, from 0 (as if nothing had happened) to 1 (as in the truth): {parts}."


def _with_label(cases: Sequence[Case], answers: ByCase, gate: str, label: str) -> str:
    """Models and in how many of their clips a gate came to a finding."""
    counts: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for case in cases:
        found = answers.get(case.id, {}).get(gate, {}).get("label")
        asked[case.model] += found is not None
        counts[case.model] += found == label
    ranked = sorted((model for model in counts if counts[model]), key=lambda model: (-counts[model], model))
    return ", ".join(f"{model} {counts[model]} of {asked[model]}" for model in ranked)


def _scores(id: str, cases: Sequence[Case], answers: ByCase, model: str) -> dict[tuple[str, str], float]:
    """(sample, split) -> score of a model."""
    found: dict[tuple[str, str], float] = {}
    for case in cases:
        record: Any = answers.get(case.id, {}).get(id, {})
        if case.model == model and record.get("status") == "scored":
            found[case.sample, case.subset] = record["score"]
    return found


def _mean(scores: dict[tuple[str, str], float]) -> float:
    return sum(scores.values()) / len(scores)


def _clips(n: int) -> str:
    return f"{n} clip" if n == 1 else f"{n} clips"
