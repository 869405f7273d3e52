"""The gate of `revisit compare --gate`: whether runs are worse than what they are compared with.

A gate that saw nothing is not passed: memory must have been tested somewhere, or gained, or be the same answer by
answer. A model that cannot be tested on either side, such as one whose camera never looks away, is named in a warning
beside others that were; one that *lost* what the first side could be tested by fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from revisit.core import SUITES
from revisit.core.text import count_and_noun
from revisit.results.ceilings import counts_as_memory
from revisit.results.display import reason_title, score_title
from revisit.results.question_ranking import read_suite_questions
from revisit.results.results import Results
from revisit.results.score_names import strip_held_suffix
from revisit.runs.comparability import SideComparison


@dataclass(frozen=True)
class RegressionGate:
    """What a gate found, as sentences."""

    worse: tuple[str, ...]  # what is worse than the first, was not delivered or can no longer be tested
    untested: tuple[str, ...]  # what could not be tested, where nothing else shows that memory is as good as before
    warnings: tuple[str, ...]  # what does not fail the gate: untested beside what was tested, not significant

    @property
    def problems(self) -> tuple[str, ...]:
        """All that fails the gate."""
        return (*self.worse, *self.untested)

    @property
    def passed(self) -> bool:
        """Whether nothing fails it."""
        return not self.problems


def check_regressions(comparisons: Sequence[SideComparison], lost: Sequence[str] = ()) -> RegressionGate:
    """Check whether the second side of any comparison is worse than the first.

    Parameters
    ----------
    comparisons
        As `compare_sides` makes them.
    lost
        Sentences on models that the first side has and another has not (`unpaired_models`).

    Returns
    -------
    RegressionGate
    """
    worse = [
        f"{delta.second} is worse than {delta.first} in {score_title(delta.metric)}"
        for one in comparisons
        for delta in one.deltas
        if delta.word == "worse"
    ]
    worse += [problem for one in comparisons for problem in one.coverage.problems]
    worse += lost
    warnings = [warning for one in comparisons for warning in one.coverage.warnings]
    untestable: list[str] = []  # on both sides
    untested: list[str] = []
    saw_memory = False
    for one in comparisons:
        first, second = one.first.entry, one.second.entry
        suites = {case.suite for case in (*first.results.cases, *second.results.cases)}
        metric_ids = [id for id in one.metrics if _is_metric_of_memory_question(strip_held_suffix(id), suites)]
        deltas = [delta for delta in one.deltas if delta.metric in metric_ids]
        before, after = (len(side.results.scored_cases(metric_ids)) for side in (first, second))
        between = f"memory was not tested between {one.both_names_text}:"
        if any(delta.p is not None for delta in deltas):
            saw_memory = True
        elif not one.refusals and have_same_answers(first.results, second.results):
            saw_memory = True
            why = deltas[0].method if deltas else _no_memory_score_text(second.results, metric_ids)
            warnings.append(f"{between} {why}; all their answers are the same")
        elif not metric_ids:
            untested.append(f"{between} no metric of it was compared")
        elif deltas:
            untested.append(f"{between} {deltas[0].method}")
        elif before and not after:
            scored = count_and_noun(before, "clip")
            worse.append(
                f"{second.name} can no longer be tested: {first.name} has a score of memory on {scored}, "
                f"{second.name} on none ({_most_frequent_reason_text(second.results, metric_ids)})"
            )
        elif before:
            untested.append(f"{between} they have no scored clip in common")
        elif after:
            saw_memory = True
            reason = _most_frequent_reason_text(first.results, metric_ids)
            scored = count_and_noun(after, "clip")
            warnings.append(f"{between} {first.name} has no score of it ({reason}), {second.name} has on {scored}")
        else:
            untestable.append(f"{between} {_no_memory_score_text(second.results, metric_ids)}")
    (warnings if saw_memory else untested).extend(untestable)
    return RegressionGate(tuple(worse), tuple(untested), tuple(warnings))


def _is_metric_of_memory_question(metric: str, suites: Collection[str]) -> bool:
    """Whether a metric answers one of the suites' questions of memory, or counts as memory anywhere."""
    questions = [question for id in suites if id in SUITES for question in read_suite_questions(SUITES[id].card)]
    return counts_as_memory(metric) or any(metric in question.metrics for question in questions if question.memory)


def have_same_answers(first: Results, second: Results) -> bool:
    """Whether two sides have the same clips, and the same answer to every question of each."""
    answers, others = (
        Counter(
            (case.pairing_key, id, record.status, record.value, record.label, record.reason and record.reason.kind)
            for case in results.cases
            for id, record in results.of(case).items()
        )
        for results in (first, second)
    )
    return len(first.entries) == len(second.entries) and answers == others


def _no_memory_score_text(results: Results, metrics: Sequence[str]) -> str:
    if not metrics:
        return "no metric of memory was asked"
    return f"neither has a score of it ({_most_frequent_reason_text(results, metrics)})"


def _most_frequent_reason_text(results: Results, metrics: Sequence[str]) -> str:
    """Why most clips have no score of memory: `test not posed on 9 of 9 clips`."""
    records = (record for id in metrics for record in results.records_for(id))
    clips = dict.fromkeys((record.reason.kind, record.case.id) for record in records if record.reason is not None)
    if not clips:
        return "not asked"
    ((kind, count),) = Counter(kind for kind, _ in clips).most_common(1)
    return f"{reason_title(kind)} on {count} of {count_and_noun(len(results.entries), 'clip')}"
