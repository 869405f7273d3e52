"""Models of runs beside each other: what they must have in common before their numbers are subtracted, by how much
they differ, and whether one is worse.

That is the gate of `revisit compare --gate`. A gate that saw nothing is not passed: memory must have been tested
somewhere, or gained, or be the same answer by answer. A model that cannot be tested on either side, such as one whose
camera never looks away, is named in a warning beside others that were; one that *lost* what the first side could be
tested by fails.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from revisit.core import METRICS, SUITES, UsageError
from revisit.core.grouping import group_items
from revisit.core.text import count_and_noun, did_you_mean_question, join_names, suggest_names
from revisit.engine.dependencies import observed_ids_needed_by
from revisit.results.ceilings import counts_as_memory, metrics_changed_by_truth
from revisit.results.compare import (
    Contender,
    Coverage,
    Delta,
    compare_coverage,
    compare_with_first,
    correct_coverage_p_values_by_holm,
    correct_p_values_by_holm,
)
from revisit.results.display import reason_title, score_title
from revisit.results.file_types import ObserverEntry, ProtocolEntry, RunFile
from revisit.results.leaderboards import evidence_makers, reference_digests
from revisit.results.question_ranking import read_suite_questions
from revisit.results.results import Results
from revisit.results.run import Run
from revisit.results.score_names import add_held_suffix, strip_held_suffix
from revisit.runs.group_by import group_name_function


@dataclass(frozen=True)
class Side:
    """A model of a run, with what the run says of its protocol."""

    entry: Contender
    run: Run
    model: str
    named: bool = False  # by its model, and not with all models of its run

    @property
    def facts(self) -> RunFile:
        return self.run.facts


def read_sides(run_arguments: Sequence[str]) -> list[Side]:
    """What to compare: runs (all their models), RUN:MODEL, or a run followed by names of its models."""
    runs: dict[str, Run] = {}
    words_read: list[tuple[str, str | None]] = []  # runs, and the model that was named of each
    for word in run_arguments:
        parts = word.split(":")  # names of models may have colons, too
        with_model = [(":".join(parts[:k]), ":".join(parts[k:])) for k in range(len(parts) - 1, 0, -1)]
        places: list[tuple[str, str | None]] = [(word, None), *with_model]
        at = next((at for at in places if at[0] and (Path(at[0]) / "run.json").is_file()), None)
        if at is not None:
            runs[at[0]] = Run(Path(at[0]))
            words_read.append(at)
        else:
            having = [name for name, run in runs.items() if word in run.results.models]
            if not having:
                near = did_you_mean_question(word, [model for run in runs.values() for model in run.results.models])
                raise UsageError(
                    f"{word!r} is neither a run directory nor a model of the runs before it; {near}{near and ' '}"
                    "give runs, RUN:MODEL, or a run and names of its models"
                )
            words_read = [(name, named) for name, named in words_read if name != having[-1] or named is not None]
            words_read.append((having[-1], word))
    results = {name: run.results for name, run in runs.items()}
    chosen = [
        (name, model, named is not None)
        for name, named in words_read
        for model in ([named] if named is not None else results[name].models)
    ]
    sides = []
    labels = _shortest_side_labels([(name, model) for name, model, _ in chosen])
    for (name, model, named), label in zip(chosen, labels, strict=True):
        if model not in results[name].models:
            raise UsageError(f"{name} has no model {model!r}; {suggest_names(model, results[name].models)}")
        sides.append(Side(Contender(label, results[name].where(model=model)), runs[name], model, named))
    return sides


def _shortest_side_labels(chosen: Sequence[tuple[str, str]]) -> list[str]:
    """The shortest names that tell the sides apart: models, runs, or both."""
    models = [model for _, model in chosen]
    if len(set(models)) == len(models):
        return models
    runs = _shortest_run_names([Path(name).resolve() for name, _ in chosen])
    return runs if len(set(runs)) == len(runs) else [f"{run}:{model}" for run, model in zip(runs, models, strict=True)]


def _shortest_run_names(paths: Sequence[Path]) -> list[str]:
    """The names of folders, with as many of those above as tell them apart: `main/run` and `branch/run`."""
    names = [tuple(path.parts) for path in paths]
    depths = range(1, max(map(len, names)) + 1)
    depth = next(depth for depth in depths if len({name[-depth:] for name in names}) == len(set(names)))
    return ["/".join(name[-depth:]) for name in names]


def pair_sides(sides: Sequence[Side]) -> list[tuple[Side, Side]]:
    """Who is compared with whom: whole runs model by model, where they have models in common; else all with the first.

    Raises
    ------
    UsageError
        If the first run has several models, and another whole run has none of them.
    """
    first, *others = _sides_by_run(sides)
    same = [(mine, yours) for mine in first for own in others for yours in own if yours.model == mine.model]
    whole = not any(side.named for side in sides)
    if same and (whole or (len(first) > 1 and len(same) == len(first) * len(others) == len(sides) - len(first))):
        return same
    if whole and others and len(first) > 1:
        models = " and ".join(join_names([side.model for side in own]) for own in (first, *others))
        raise UsageError(f"the runs have no model in common ({models}); name whom to compare: RUN:MODEL RUN:MODEL")
    return [(sides[0], other) for other in sides[1:]]


def unpaired_models(sides: Sequence[Side], pairs: Sequence[tuple[Side, Side]]) -> tuple[list[str], list[str]]:
    """Sentences on models that `pair_sides` had to leave out: those that another run lost, and those new in it.

    Where runs are not compared model by model there are none.
    """
    lost: list[str] = []
    new: list[str] = []
    if any(one.model != other.model for one, other in pairs):
        return lost, new
    by_run = _sides_by_run(sides)
    names = _shortest_run_names([own[0].run.path.resolve() for own in by_run])
    models = [[side.model for side in own] for own in by_run]
    for name, own in zip(names[1:], models[1:], strict=True):
        if missing := [model for model in models[0] if model not in own]:
            lost.append(f"{name} has no clips of {join_names(missing)}, which {names[0]} has")
        if more := [model for model in own if model not in models[0]]:
            new.append(f"{join_names(more)} of {name}: not compared, for {names[0]} has no such model")
    return lost, new


def _sides_by_run(sides: Sequence[Side]) -> list[list[Side]]:
    """The sides of each run by its mentions: a run that is named twice is compared with itself."""
    parts: list[list[Side]] = []
    for own in group_items(sides, lambda side: side.run.path).values():
        for number, side in enumerate(own):
            if not number or side.model in {other.model for other in parts[-1]}:
                parts.append([])
            parts[-1].append(side)
    return parts


@dataclass(frozen=True)
class SideComparison:
    """Two sides, metric by metric, and what must not be subtracted."""

    first: Side
    second: Side
    metrics: tuple[str, ...]  # those whose numbers compare
    refusals: Mapping[str, str]  # metric -> why its two numbers must not be subtracted
    deltas: tuple[Delta, ...]  # of the metrics that have a clip in common
    coverage: Coverage

    @property
    def both_names_text(self) -> str:
        return f"{self.first.entry.name} and {self.second.entry.name}"


def compare_sides(
    pairs: Iterable[tuple[Side, Side]],
    metrics: Sequence[str] = (),
    by: Sequence[str] = (),
    *,
    every_metric: bool = False,
) -> list[SideComparison]:
    """Compare the sides of each pair clip by clip; p is corrected over everything that is compared here.

    Parameters
    ----------
    pairs
        Each with what the other is compared with first.
    metrics
        Names of scores; those of the verdict by default.
    by
        Expressions of groups of clips that are compared by themselves, too.
    every_metric
        All metrics that the first run asked, where none is named.
    """
    comparisons = []
    for first, second in pairs:
        asked_ids = list(first.facts["protocol"]["metrics"]) if every_metric else question_metrics_of_run(first.facts)
        names = metrics or ranking_score_ids([first, second], asked_ids)
        refused = reasons_not_to_compare(first, second, names)
        comparable = tuple(name for name in names if name not in refused)
        groups = {text: group_name_function(first.entry.results, first.facts["suite"], text) for text in by}
        deltas = compare_with_first(first.entry, [second.entry], comparable, groups)
        coverage = compare_coverage(first.entry, second.entry)
        comparisons.append(SideComparison(first, second, comparable, refused, tuple(deltas), coverage))
    corrected = iter(correct_p_values_by_holm([delta for one in comparisons for delta in one.deltas]))
    coverages = correct_coverage_p_values_by_holm([one.coverage for one in comparisons])
    return [
        replace(one, deltas=tuple(next(corrected) for _ in one.deltas), coverage=coverage)
        for one, coverage in zip(comparisons, coverages, strict=True)
    ]


def question_metrics_of_run(facts: RunFile) -> list[str]:
    """The metrics that answer the questions of a run's suite, of those that the run asked."""
    card = SUITES[facts["suite"]].card if facts["suite"] in SUITES else {}
    metrics = [id for question in read_suite_questions(card) for id in question.metrics]
    return [id for id in dict.fromkeys(metrics) if id in facts["protocol"]["metrics"]]


def ranking_score_ids(sides: Sequence[Side], metrics: Sequence[str]) -> list[str]:
    """The names of the scores by which metrics rank: held to the truth, where some run has other numbers there."""
    held = frozenset[str]().union(*(metrics_changed_by_truth(side.entry.results) for side in sides))
    return [add_held_suffix(metric) if metric in held else metric for metric in metrics]


def reasons_not_to_compare(one: Side, other: Side, metrics: Sequence[str]) -> dict[str, str]:
    """Metric -> why its two numbers must not be subtracted."""
    reasons = {}
    for id in metrics:
        if strip_held_suffix(id) not in METRICS:
            reasons[id] = "it is not installed here"
        elif why := protocol_difference_text(one, other, id):
            reasons[id] = why
    return reasons


def protocol_difference_text(one: Side, other: Side, metric: str) -> str:
    """In what the protocols of two runs differ for a metric; nothing where its numbers compare."""
    if one.run.path == other.run.path:
        return ""
    metric = strip_held_suffix(metric)
    if one.facts["suite"] != other.facts["suite"]:
        return f"the suites differ ({one.facts['suite']} and {other.facts['suite']})"
    tag, other_tag = (side.facts["protocol"]["metrics"].get(metric) for side in (one, other))
    if tag is None or other_tag is None:
        return "only one of the runs asked it"
    sentences = []
    if tag.partition(":")[2] != other_tag.partition(":")[2]:
        sentences = _protocol_difference_sentences(one.facts["protocol"], other.facts["protocol"], metric) or [
            "the versions of its code differ"
        ]
    makers = [evidence_makers(side.entry.results.scores(metric)) for side in (one, other)]
    if all(makers) and makers[0] != makers[1]:
        sentences.append(f"made by {' and '.join(makers[0])}, against {' and '.join(makers[1])}")
    if clip := _clip_with_other_reference(one, other):
        sentences.append(f"the reference of {clip} is not the same file")
    return "; ".join(sentences)


def _protocol_difference_sentences(mine: ProtocolEntry, yours: ProtocolEntry, metric: str) -> list[str]:
    sentences = []
    for kind in observed_ids_needed_by(METRICS[metric]) if metric in METRICS else ():
        a, b = (side["observers"].get(kind) for side in (mine, yours))
        if a != b:
            sentences.append(f"{kind} by {_maker_text(a)}, against {_maker_text(b)}")
    for name in ("name", "align", "judge"):
        if mine.get(name) != yours.get(name):
            sentences.append(f"{'protocol' if name == 'name' else name} {mine.get(name)}, against {yours.get(name)}")
    one, other = (side["parameters"].get(metric) for side in (mine, yours))
    if one != other:
        sentences.append(f"parameters {one or 'by default'}, against {other or 'by default'}")
    return sentences


def _maker_text(facts: ObserverEntry | None) -> str:
    if facts is None:
        return "nobody"
    changed = f" with {facts['params']}" if facts.get("params") else ""
    return f"{facts['observer']} (version {facts['version']}{changed})"


def _clip_with_other_reference(one: Side, other: Side) -> str:
    mine, yours = (
        reference_digests(case for case in side.run.plan["cases"] if case["model"] == side.model)
        for side in (one, other)
    )
    return next((" ".join(key) for key in sorted(mine.keys() & yours.keys()) if mine[key] != yours[key]), "")


def order_sides(sides: Sequence[Side], by: str) -> list[tuple[str, Side]]:
    """Sides with their labels, each its own, by `step`, by `date`, or in the `order` in which they are given."""
    if by not in ("step", "date", "order"):
        raise UsageError(f"--by takes step, date or order, not {by!r}")
    if by == "order":
        ordered, labels = list(sides), [side.entry.name for side in sides]
    elif by == "date":
        ordered = sorted(sides, key=_earliest_start_date)
        labels = [_earliest_start_date(side)[:16] for side in ordered]
    else:
        _require_one_unnumbered_model_of_each_run(sides)
        ordered = sorted(sides, key=_checkpoint_number)
        labels = [str(_checkpoint_number(side)) for side in ordered]
    for more in ([side.entry.name for side in ordered], range(1, len(ordered) + 1)):
        labels = [
            f"{label} ({one})" if labels.count(label) > 1 and label != one else label
            for label, one in zip(labels, more, strict=True)
        ]
    return list(zip(labels, ordered, strict=True))


def _require_one_unnumbered_model_of_each_run(sides: Sequence[Side]) -> None:
    """The number of a run is that of one checkpoint; several models of it are several trainings."""
    unnumbered = [side for side in sides if not re.search(r"\d", side.model)]
    for own in group_items(unnumbered, lambda side: side.run.path).values():
        if len(own) > 1:
            raise UsageError(
                f"{join_names([side.model for side in own])} have no number in their names, and are of one run: which "
                "are checkpoints of one training? Name one model of each run (RUN:MODEL), or take --by order"
            )


def _checkpoint_number(side: Side) -> int:
    """The number of a checkpoint: the last one in the name of the model, else of the run."""
    for text in (side.model, side.run.path.resolve().name):
        if numbers := re.findall(r"\d+", text):
            return int(numbers[-1])
    raise UsageError(f"{side.entry.name!r} has no number in its name; --by date or --by order takes another order")


def _earliest_start_date(side: Side) -> str:
    """When a run was begun."""
    started = [str(call["started"]) for call in side.facts.get("invocations", ()) if call.get("started")]
    return min(started, default="")


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
