"""Which metrics count as memory, and what their scores are worth beside those of the truth.

A score that is held to the truth has a name of its own, `<metric>.held` (`score_names.py`), and is what rankings take;
the metric's name is what was measured. Five rules hold scores:

- *A camera that rests remembers nothing.* Where the gate `look_away` is not open, a score of memory is not ranked,
  whatever the metric makes of the clip. The protocols of a benchmark's paper and public code, which score all clips,
  are left as they are.
- *A return that the truth does not make is no merit.* Where the truth never leaves, or never comes back, neither.
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

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeVar

from revisit.core import METRICS, SUITES, Case, Metric, Reason, Record
from revisit.results.clip_answers import ClipAnswers
from revisit.results.display import number_text
from revisit.results.funnel import RETURN_GATES, looks_away_and_returns
from revisit.results.metric_columns import NO_ANSWER
from revisit.results.score_names import add_held_suffix, find_metric_of_score, strip_held_suffix

SomeAnswers = TypeVar("SomeAnswers", bound=ClipAnswers)

LOW = 0.5  # of the range: a truth below it is not recognised as the truth
LESS_CHANGED = 0.05  # of the range, above the truth's own score: more than a steadier picture explains
OUTCOME = "event_outcome"
NEARER_TO_FIRST = 0.5  # outcome below which a return is more like the first view than like the truth's
RESET, WENT_ON = 0.25, 0.6  # outcomes up to and from which a world is called so (`look_away_counts.py` says why)
IS_BACK = {"target_reappearance", "memo_ors"}  # ask whether something is back, in whatever state
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


def counts_as_memory(metric_id: str) -> bool:
    """Whether a good score can be read as: what was out of view was remembered. docs/truth.md lists them, and why.

    A plugin's metric counts if it stands behind a gate of return.
    """
    if metric_id in MEMORY or metric_id in NOT_MEMORY or metric_id not in METRICS:
        return metric_id in MEMORY
    metric = METRICS[metric_id]
    gated = bool(RETURN_GATES & set(metric.gates)) and metric.higher_is_better is not None
    return gated and not metric.fn.__module__.startswith("revisit.")


def expects_event(case: Case) -> bool:
    """Whether something was to change in the clip: its dataset, or its annotation `event`, says so."""
    noted = case.annotations.get("event")
    if noted is not None:
        return bool(noted)
    return bool(case.suite in SUITES and SUITES[case.suite].card.get("expects_event"))


def held_to_truth(results: SomeAnswers) -> SomeAnswers:
    """The same clips with scores that can be ranked; facts keep what was measured (`own`) and the truth's (`truth`).

    Worked out once. A single number of them is also `results.mean("return_consistency.held")`.
    """
    if results.is_held:
        return results
    return results.once("held to the truth", lambda: _adjust_all_scores_by_truth(results))


def metrics_changed_by_truth(results: ClipAnswers) -> frozenset[str]:
    """The metrics whose scores, held to the truth, are other numbers in the run, and so have a name of their own.

    Metrics that the truth may always change are among them, so that names do not come and go with the clips.
    """
    return results.whole.once("held metrics", lambda: _find_metrics_changed_by_truth(results.whole))


def ranking_score_id(results: ClipAnswers, metric: str) -> str:
    """The name of the score by which a metric ranks: `<metric>.held` where that is another number, else its own."""
    return add_held_suffix(metric) if metric in metrics_changed_by_truth(results) else metric


def _find_metrics_changed_by_truth(results: ClipAnswers) -> frozenset[str]:
    if carried := {strip_held_suffix(id) for id in results.metrics if id != strip_held_suffix(id)}:
        return frozenset(carried)
    held = held_to_truth(results)
    has_outcome = bool(results.scores(OUTCOME))
    return frozenset(
        id
        for id in results.metrics
        if (
            id in METRICS
            and (METRICS[id].rewards_unchanged or (id in IS_BACK and has_outcome))
            and results.truths
            and results.scores(id)
        )
        or [(record.status, record.value) for record in results.records_for(id)]
        != [(record.status, record.value) for record in held.records_for(id)]
    )


def _adjust_all_scores_by_truth(results: SomeAnswers) -> SomeAnswers:
    unposed = any(record.status in ("closed", "unsure") for record in results.records_for(LOOK_AWAY))
    if results.is_truth:
        held = results.mapped(_set_truth_to_best_if_rewards_unchanged)
    elif any(
        id != strip_held_suffix(id) for id in results.metrics
    ):  # what was held elsewhere, as joint bundles have it
        held = results.expanded(lambda record: _drop_measured_or_rename_held(results, record))
    elif unposed or results.truths or results.scores(OUTCOME) or any(map(expects_event, results.cases)):
        held = results.mapped(lambda record: _adjust_record_by_truth(results, record))
    else:
        held = results  # nothing to hold them to
    held.is_held = True
    return held


def _drop_measured_or_rename_held(results: ClipAnswers, record: Record) -> Iterable[Record]:
    """The answer that is held to the truth, under the metric's name; nothing of one that was measured beside it."""
    id = strip_held_suffix(record.question)
    if id == record.question and add_held_suffix(id) in results.of(record.case):
        return ()
    return (record.with_changed_fields(question=id),)


def _set_truth_to_best_if_rewards_unchanged(record: Record) -> Record:
    """What the truth scores beside itself: of a metric by nearness to it, the best there is."""
    metric = find_metric_of_score(record.question)
    if not record.scored or metric is None or not metric.rewards_unchanged:
        return record
    return record.with_changed_fields(
        value=_require_metric_range(metric)[1], facts={**record.facts, "own": record.value}
    )


def explain_held_score(held_record: Record) -> str:
    """Of a score that counts for something else, how it came about; `measured 0.31, the truth 0.60: 0.29 apart`.

    Of a score that counts as it is, the truth's beside it, where that is known; else nothing.
    """
    own, truth, outcome = (held_record.facts.get(name) for name in ("own", "truth", "outcome"))
    beside = "" if truth is None else f"the truth {number_text(truth)}"
    if own is None or (own == held_record.value and outcome is None):
        return beside
    measured = f"measured {number_text(own)}"
    if not held_record.scored:
        return f"{measured}; {held_record.sentence}"
    metric = find_metric_of_score(held_record.question)
    if truth is not None and metric is not None and metric.rewards_unchanged:
        closeness = number_text(_score_by_distance_to_truth(metric, own, truth))
        measured = f"{measured}, {beside}: {number_text(abs(own - truth))} apart, which counts {closeness}"
    if outcome is None:
        return measured
    if outcome <= RESET:
        return f"{measured}, but the unseen event is undone (outcome {number_text(outcome)}): a reset"
    best = 1.0 if metric is None else _require_metric_range(metric)[1]
    share = number_text(outcome) if best == 1 else f"{number_text(outcome)} of {number_text(best)}"
    return f"{measured}, but no more than the outcome of the unseen event, {share}"


def count_low_truth_scores(results: ClipAnswers) -> dict[str, int]:
    """Metric of memory -> samples on which the truth itself scores low: what to warn of."""
    scores = [(one.question, one.value) for one in results.truth.records if one.scored and one.value is not None]
    return dict(Counter(question for question, value in scores if _truth_score_is_low(question, value)))


def _adjust_record_by_truth(results: ClipAnswers, record: Record) -> Record:
    metric = find_metric_of_score(record.question)
    if not record.scored or record.value is None or metric is None:
        return record
    if reason := _reason_memory_is_untestable(results, record, metric):
        return make_unscored(record, reason.kind, reason.sentence, facts={**record.facts, "own": record.value})
    true_clip, outcome = results.truth_of(record.case), results.score(record.case, OUTCOME)
    truth = None if true_clip is None else results.score(true_clip, record.question)
    if truth is None:
        if metric.rewards_unchanged and expects_event(record.case):
            why = "scores an unchanged look best, but something should have changed here; it can only be ranked"
            return make_unscored(record, "no_reference", f"{metric.title} {why} with a reference")
        return _cap_score_by_event_outcome(record, metric, outcome)
    record = record.with_changed_fields(facts={**record.facts, "own": record.value, "truth": truth})
    if _truth_score_is_low(metric.id, truth):
        return make_unscored(record, "low_ceiling", f"the truth itself scores only {truth:.2f} in {metric.title}")
    if not metric.rewards_unchanged:
        return _cap_score_by_event_outcome(record, metric, outcome)
    low, high = _require_metric_range(metric)
    own = float(record.value or 0)
    if own - truth > LESS_CHANGED * (high - low) and (outcome is None or outcome >= NEARER_TO_FIRST):
        scores = f"{own:.2f} against {truth:.2f} in {metric.title}"
        why = f"it looks less changed than the truth ({scores}): that may be a reset, and is no merit"
        return make_unscored(record, "undecided", why)
    record = record.with_changed_fields(value=_score_by_distance_to_truth(metric, own, truth))
    return _cap_score_by_event_outcome(record, metric, outcome)


def _score_by_distance_to_truth(metric: Metric, own: float, truth: float) -> float:
    """What a score counts beside the truth's: the top of the range minus the distance between both."""
    return _require_metric_range(metric)[1] - abs(own - truth)


def _reason_memory_is_untestable(results: ClipAnswers, record: Record, metric: Metric) -> Reason | None:
    """Why a score is no answer to a question of memory: the camera never looked away, or nobody can tell; or it
    came back where the truth does not.
    """
    if record.protocol.partition(":")[0] not in OWN_PROTOCOLS or not counts_as_memory(metric.id):
        return None
    answer = results.answer(record.case, LOOK_AWAY) or NO_ANSWER
    if answer.status in ("closed", "unsure"):
        return answer.reason
    truth = results.truth_of(record.case)
    gate = None if truth is None else results.answer(truth, LOOK_AWAY)
    # What the truth's own scene hides and shows again is no such case.
    if truth is None or gate is None or gate.label == "hidden in the scene":
        return None
    if looks_away_and_returns(results, truth) is not False:
        return None
    return Reason("does_not_apply", "the truth does not look away and come back here, so a return is no merit")


def _cap_score_by_event_outcome(record: Record, metric: Metric, outcome: float | None) -> Record:
    """The score, no better than what became of the event, where one is known and the metric does not see it."""
    if outcome is None or record.value is None:
        return record
    if not (metric.rewards_unchanged or (metric.id in IS_BACK and outcome < NEARER_TO_FIRST)):
        return record
    low, high = _require_metric_range(metric)
    most = low + (high - low) * outcome
    if record.value <= most:
        return record
    facts = {"own": record.value, **record.facts, "outcome": outcome}
    return record.with_changed_fields(value=most, facts=facts)


def _require_metric_range(metric: Metric) -> tuple[float, float]:
    low, high = metric.range
    assert low is not None and high is not None, f"{metric.id} is held to the truth and needs a range"
    return float(low), float(high)


def _truth_score_is_low(id: str, truth: float) -> bool:
    """Whether a truth that scores so is not recognised as the truth."""
    if not counts_as_memory(id) or METRICS[id].rewards_unchanged or None in METRICS[id].range:
        return False
    metric = METRICS[id]
    low, high = (float(end or 0) for end in metric.range)
    share = (truth - low) / (high - low)
    return (share if metric.higher_is_better else 1 - share) < LOW


def make_unscored(record: Record, reason_kind: str, sentence: str, **changes: Any) -> Record:
    """The record without its score, with the reason why, and other fields changed."""
    reason = Reason(reason_kind, sentence)
    return record.with_changed_fields(status="unscored", value=None, raw=None, reason=reason, **changes)
