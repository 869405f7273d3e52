"""Which metrics count as memory, and what their scores are worth beside those of the truth.

Four rules hold scores, for rankings. Tables show scores as measured, with the truth as a row beside.

- *A camera that rests remembers nothing.* Where the gate `look_away` is not open, a score of memory is not ranked,
  whatever the metric makes of the clip. The protocols of a benchmark's paper and public code, which score all clips,
  are left as they are.
- *An unchanged look is no merit.* A metric that is marked `rewards_unchanged` gives its best score to a clip in which
  nothing changed, also where something should have: a reset beats the truth. Beside a truth, the score becomes its
  closeness to what the truth scores, and one clearly above the truth's is not ranked; without a truth, where an event
  is expected, it is left out.
- *A reset is no return as it should be.* Where an unseen event was to change something, an unchanged look counts for no
  more than the outcome of that event; and what is back as if nothing had happened (an outcome nearer to the first view
  than to the truth) is back for no more than that.
- *A low ceiling decides nothing.* Where the truth itself scores low in a metric of memory, the metric does not see on
  this clip what it is meant to see, and is unscored.
"""

from __future__ import annotations

from revisit.core import METRICS, SUITES, Case, Metric, Reason, Record
from revisit.results.display import number
from revisit.results.results import Results

LOW = 0.5  # of the range: a truth below it is not recognised as the truth
LESS_CHANGED = 0.05  # of the range, above the truth's own score: more than a steadier picture explains
OUTCOME, RESET = "event_outcome", 0.5  # below it a return is more like the first view than like the truth's
IS_BACK = {"target_reappearance", "memo_ors"}  # ask whether something is back, in whatever state
RETURN_GATES = {"view_return", "target_return"}
LOOK_AWAY = "look_away"
OWN_PROTOCOLS = ("corrected", "default")  # the others follow a paper or public code to the letter
# Metrics that count as memory: scored only of what was out of view and came back, and good only if it came back as it
# should. Left out: pixels against the reference (a camera a little off costs more than a forgotten object), light and
# style of the whole picture, and signs of one fault each, whose absence says nothing of the others.
MEMORY = {
    "event_outcome", "target_reappearance", "target_identity", "return_consistency", "return_features",
    "memo_ors", "memo_identity", "memo_vqa_ob", "memo_vqa_cm",
    "mb_object_geometry", "mb_object_texture", "mb_human_identity", "mb_human_appearance",
    "mb_spatial_epipolar", "mb_spatial_reprojection",
    "wr_returned_spatial", "wr_returned_state",
}  # fmt: skip
NOT_MEMORY = {"lighting_consistency", "style_consistency"}  # behind a gate of return, and about the whole picture


def counts_as_memory(id: str) -> bool:
    """Whether a good score can be read as: what was out of view was remembered. docs/truth.md lists them, and why.

    A plugin's metric counts if it stands behind a gate of return.
    """
    if id in MEMORY or id in NOT_MEMORY or id not in METRICS:
        return id in MEMORY
    metric = METRICS[id]
    gated = bool(RETURN_GATES & set(metric.gates)) and metric.higher_is_better is not None
    return gated and not metric.fn.__module__.startswith("revisit.")


def expects_event(case: Case) -> bool:
    """Whether something was to change in the clip: its dataset, or its annotation `event`, says so."""
    noted = case.annotations.get("event")
    if noted is not None:
        return bool(noted)
    return bool(case.suite in SUITES and SUITES[case.suite].card.get("expects_event"))


def held_to_truth(results: Results) -> Results:
    """The same clips with scores that can be ranked; facts keep what was measured (`own`) and the truth's (`truth`).

    Worked out once: verdict and page ask for it.
    """
    unposed = any(record.status in ("closed", "unsure") for record in results.about(LOOK_AWAY))
    if not (unposed or results.truths or results.scores(OUTCOME) or any(map(expects_event, results.cases))):
        return results  # nothing to hold them to
    return results.once("held to the truth", lambda: results.mapped(lambda record: _hold_to_truth(results, record)))


def ceiling(results: Results, record: Record) -> float | None:
    """What the truth of a record's clip scores in the same metric, or None."""
    truth = results.truth_of(record.case)
    return None if truth is None else results.score(truth, record.question)


def measured_text(held: Record) -> str:
    """Of a score that counts for something else: `measured 1.00, but what happened unseen is undone`.

    Of a score that counts as it is, the truth's beside it, where that is known; else nothing.
    """
    own, truth = held.facts.get("own"), held.facts.get("truth")
    beside = "" if truth is None else f"the truth {number(truth)}"
    if own is None or own == held.value:
        return beside
    told = f"measured {number(own)}"
    if not held.scored:
        return f"{told}; {held.sentence}"
    if "outcome" not in held.facts:
        return f"{told}, {beside}"
    outcome = held.facts["outcome"]
    undone = "is undone" if _is_reset(outcome) else f"came out at {number(outcome)} only"
    return f"{told}, but what happened unseen {undone}"


def low_ceilings(results: Results) -> dict[str, int]:
    """Metric of memory -> samples on which the truth itself scores low: what to warn of."""
    counts: dict[str, int] = {}
    for record in results.truth.records:
        if record.scored and record.value is not None and _is_low(record.question, record.value):
            counts[record.question] = counts.get(record.question, 0) + 1
    return counts


def _hold_to_truth(results: Results, record: Record) -> Record:
    if not record.scored or record.value is None or record.question not in METRICS:
        return record
    metric = METRICS[record.question]
    if reason := _untestable_reason(results, record):
        return _unscored(record.changed(facts={**record.facts, "own": record.value}), reason.kind, reason.sentence)
    truth, outcome = ceiling(results, record), results.score(record.case, OUTCOME)
    if truth is None:
        if metric.rewards_unchanged and expects_event(record.case):
            return _unscored(
                record,
                "no_reference",
                f"{metric.title} scores an unchanged look best, but something should have changed here; it can only "
                "be ranked with a reference",
            )
        return _capped(record, outcome)
    record = record.changed(facts={**record.facts, "own": record.value, "truth": truth})
    if _is_low(metric.id, truth):
        return _unscored(record, "low_ceiling", f"the truth itself scores only {truth:.2f} in {metric.title}")
    if not metric.rewards_unchanged:
        return _capped(record, outcome)
    low, high = _ends(metric)
    own = float(record.value or 0)
    if own - truth > LESS_CHANGED * (high - low) and not _is_reset(outcome):
        return _unscored(
            record,
            "undecided",
            f"it looks less changed than the truth ({own:.2f} against {truth:.2f} in {metric.title}): "
            "that may be a reset, and is no merit",
        )
    return _capped(record.changed(value=high - abs(own - truth)), outcome)


def _untestable_reason(results: Results, record: Record) -> Reason | None:
    """Why a score is no answer to a question of memory: the camera never looked away, or nobody can tell."""
    if record.protocol.partition(":")[0] not in OWN_PROTOCOLS or not counts_as_memory(record.question):
        return None
    gate = results.answer(record.case, LOOK_AWAY)
    return gate.reason if gate is not None and gate.status in ("closed", "unsure") else None


def _capped(record: Record, outcome: float | None) -> Record:
    """The score, no better than what became of the event, where one is known and the metric does not see it."""
    metric = METRICS[record.question]
    blind = metric.rewards_unchanged or (metric.id in IS_BACK and _is_reset(outcome))
    if outcome is None or record.value is None or not blind:
        return record
    low, high = _ends(metric)
    most = low + (high - low) * outcome
    if record.value <= most:
        return record
    facts = {"own": record.value, **record.facts, "outcome": outcome}
    return record.changed(value=most, facts=facts)


def _is_reset(outcome: float | None) -> bool:
    return outcome is not None and outcome < RESET


def _ends(metric: Metric) -> tuple[float, float]:
    low, high = metric.range
    assert low is not None and high is not None, f"{metric.id} is held to the truth and needs a range"
    return float(low), float(high)


def _is_low(id: str, truth: float) -> bool:
    """Whether a truth that scores so is not recognised as the truth."""
    if not counts_as_memory(id) or METRICS[id].rewards_unchanged or None in METRICS[id].range:
        return False
    metric = METRICS[id]
    low, high = (float(end or 0) for end in metric.range)
    share = (truth - low) / (high - low)
    return (share if metric.higher_is_better else 1 - share) < LOW


def _unscored(record: Record, kind: str, sentence: str) -> Record:
    return record.changed(status="unscored", value=None, raw=None, reason=Reason(kind, sentence))
