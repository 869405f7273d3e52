"""Alignment: do the metrics and gates of a run go with what people say (docs/labels.md)?

Win ratios, bridges, triggers, answers and strengths. People are the majority of their votes; full ties are left out and
counted. "Both bad" is a tie. "Cannot judge" is no vote. The tie region is fitted on half of the scenes, drawn without a
look at any label, and all figures that use it are of the other half.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from revisit.core import METRICS, UsageError
from revisit.core.grouping import group_items
from revisit.core.text import count_and_noun
from revisit.labels.agreement import ratings_and_scenes
from revisit.labels.formats import SIGNS
from revisit.labels.items import ComparedDimension, compared_dimensions, people_settings
from revisit.labels.label import CANNOT, JUDGEABLE, Label, pair_and_question
from revisit.results import Results
from revisit.results.display import reason_title
from revisit.stats import agreement as coefficients
from revisit.stats import alignment
from revisit.stats.alignment import Preference, fit_bradley_terry, half_preferences_of_tie

Figures = dict[str, float | None]
HALF = 0.5
FEWEST = 4  # scenes below which no tie region is fitted


@dataclass(frozen=True)
class Vote:
    """A pair of clips in one dimension, and what people make of it."""

    case: str
    other: str
    model: str
    other_model: str
    dimension: str
    scene: str
    verdict: int | None  # None: a full tie


@dataclass(frozen=True)
class Bridge:
    """One metric against people in one dimension."""

    dimension: str
    metric: str
    pairs: int  # with a verdict of people
    bridged: int  # of these, with a score of both clips
    win_ratios: alignment.WinRatios | None
    rho: float | None
    fitted_on: int  # pairs of the scenes on which the tie region was fitted
    holdout_rho: float | None
    holdout: Mapping[str, float | None] | None  # decisions on the other scenes
    agreement: float | None  # AC1 of the raters
    judgeable: Mapping[str, float | int | None] | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)  # why pairs have no score of both clips -> how many


@dataclass(frozen=True)
class PeopleAlignment:
    """What `revisit align` says."""

    bridges: tuple[Bridge, ...] = ()
    triggers: Mapping[str, Figures] = field(default_factory=dict)  # subset -> agreement with people
    trigger_gate: str = ""
    answers: Mapping[str, Any] | None = None  # people's majority against the bank's own answers, on the truth
    strengths: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # dimension -> models
    split_votes: int = 0  # full ties that were left out
    notes: tuple[str, ...] = ()


def people_alignment(
    results: Results, labels: Sequence[Label], metrics: Mapping[str, Sequence[str]] | None = None, seed: int = 0
) -> PeopleAlignment:
    """A run's metrics and gates against people's labels. `metrics` says which metrics go with which dimension."""
    if not results.cases:
        raise UsageError("the run has no clips")
    rated = [label for label in labels if not label.example]
    cases = {case.id for case in results.cases}
    ours = [label for label in rated if label.case in cases or label.model == "reference"]
    notes = []
    if len(ours) < len(rated):
        notes.append(f"{len(rated) - len(ours)} of {len(rated)} labels are about clips that are not in the run")
    if not ours:
        raise UsageError("none of the labels is about a clip of this run; clips are matched by id, such as cup@model")
    suite = results.cases[0].suite
    dimensions = {dimension.id: dimension for dimension in compared_dimensions(suite)}
    votes = majority_votes(ours)
    pairs = group_items((label for label in ours if label.is_preference), pair_and_question)
    if nobody := sum(all(label.answer not in SIGNS for label in ratings) for ratings in pairs.values()):
        notes.append(f"{nobody} of {count_and_noun(len(pairs), 'question')} about pairs: nobody could judge them")
    gate = next((gate for gate in people_settings(suite)["gates"] if results.was_asked(gate)), "")
    judged = judgeable_by_gate_and_people(results, ours, gate)
    bridges: list[Bridge] = []
    for name in dict.fromkeys(vote.dimension for vote in votes):
        dimension = dimensions.get(name) or ComparedDimension(name, "")
        metric_ids = list((metrics or {}).get(name, dimension.metrics))
        own = [label for label in ours if label.task == "pairwise" and label.question == name]
        votes_of_dimension = [vote for vote in votes if vote.dimension == name]
        judged_clips = judged if dimension.returned else {}
        left_out: list[str] = []
        for metric in metric_ids:
            if metric not in results.metrics:
                notes.append(f"{name}: the run did not ask {metric}")
            elif METRICS[metric].higher_is_better is None:
                notes.append(f"{name}: {metric} has no better end, and cannot prefer a clip")
            else:
                bridge = _compare_metric_with_votes(results, votes_of_dimension, own, metric, judged_clips, seed)
                bridges += [bridge] if bridge.bridged else []
                left_out += [_left_out_sentence(bridge)] if bridge.left_out else []
        notes += left_out
        if not metric_ids:
            notes.append(f"{name}: no metric goes with it; -m {name}=METRIC names one")
    if gate and any(bridge.judgeable for bridge in bridges):
        notes.append(f"judgeable or not: people against the gate {gate}")
    triggers = _gate_agreement_by_subset(results, ours, gate)
    if not triggers and any(label.task == "trigger" for label in ours):
        why = f"the gate {gate} decided none of these clips" if gate else "the run asked no gate to compare them with"
        notes.append(f"labels of the task trigger are not compared: {why}, or people are split on all of them")
    return PeopleAlignment(
        tuple(bridges), triggers, gate, _bank_answer_agreement(ours), _model_strengths_by_dimension(votes),
        sum(vote.verdict is None for vote in votes), tuple(notes),
    )  # fmt: skip


def majority_votes(labels: Sequence[Label]) -> list[Vote]:
    """The verdict of people on every pair and dimension that somebody could judge."""
    judged = (label for label in labels if label.is_preference and label.answer in SIGNS)
    votes = []
    for (case, other, dimension), ratings in group_items(judged, pair_and_question).items():
        verdict, first = coefficients.most_frequent_vote([SIGNS[label.answer] for label in ratings]), ratings[0]
        votes.append(Vote(case, other, first.model, first.other_model, dimension, first.scene, verdict))
    return votes


def judgeable_by_gate_and_people(results: Results, labels: Sequence[Label], gate: str) -> dict[str, tuple[bool, bool]]:
    """Clip -> (the gate lets it pass, people can judge its return), where both are known."""
    votes_by_clip: dict[str, list[bool]] = defaultdict(list)
    for label in labels:
        if label.task == "pairwise" and label.question == JUDGEABLE:
            votes_by_clip[label.case].append(label.answer in ("both", "a"))
            votes_by_clip[label.other].append(label.answer in ("both", "b"))
    judgeable = {}
    for case, votes in votes_by_clip.items():
        most, is_open = coefficients.most_frequent_vote(votes), _gate_decision(results, case, gate)
        if most is not None and is_open is not None:
            judgeable[case] = (is_open, bool(most))
    return judgeable


def _gate_decision(results: Results, case: str, gate: str) -> bool | None:
    """Whether a gate is open for a clip; None where it could not decide, or where there is no gate."""
    record = results.answer(case, gate) if gate else None
    return record.status == "open" if record is not None and record.status in ("open", "closed") else None


def _compare_metric_with_votes(
    results: Results,
    votes: Sequence[Vote],
    labels: Sequence[Label],
    metric: str,
    judged: Mapping[str, tuple[bool, bool]],
    seed: int,
) -> Bridge:
    sign = 1 if METRICS[metric].higher_is_better else -1
    decided = [vote for vote in votes if vote.verdict is not None]
    pairs, left_out = [], Counter[str]()
    for vote in decided:
        one, other = results.score(vote.case, metric), results.score(vote.other, metric)
        if one is not None and other is not None and vote.verdict is not None:
            pairs.append(
                alignment.Comparison(vote.model, vote.other_model, vote.verdict, sign * (one - other), vote.scene)
            )
        else:
            without = [id for id, score in ((vote.case, one), (vote.other, other)) if score is None]
            left_out[" and ".join(dict.fromkeys(_reason_without_score(results, id, metric) for id in without))] += 1
    ratios, rho = alignment.compare_win_ratios(pairs, seed), alignment.spearman_of_pairs(pairs)
    scenes = {pair.scene for pair in pairs}
    fitted_on, holdout, holdout_rho = 0, None, None
    if len(scenes) >= FEWEST:
        fitting_scenes = alignment.draw_fit_scenes(list(scenes), HALF, seed)
        calibration = [pair for pair in pairs if pair.scene in fitting_scenes]
        reported = [pair for pair in pairs if pair.scene not in fitting_scenes]
        fitted_on = len(calibration)
        holdout = alignment.evaluate_decisions(reported, alignment.fit_tie_region(calibration))
        correlation = alignment.spearman_of_pairs(reported)
        holdout_rho = correlation[0] if correlation else None
    of_raters = coefficients.agreement_with_jackknife_interval(
        partial(coefficients.gwet_ac, categories=[-1, 0, 1]), ratings_and_scenes(labels)[0]
    )
    return Bridge(
        votes[0].dimension, metric, len(decided), len(pairs), ratios, rho[0] if rho else None, fitted_on, holdout_rho,
        holdout, of_raters.value, alignment.gate_judgeability(*zip(*judged.values(), strict=True)) if judged else None,
        dict(left_out.most_common()),
    )  # fmt: skip


def _reason_without_score(results: Results, case: str, metric: str) -> str:
    """Why a clip has no score."""
    record = results.answer(case, metric)
    if record is None:
        is_here = any(one.id == case for one in results.cases)
        return "not asked of a clip" if is_here else "a clip that is not in the run"
    return reason_title(record.reason.kind if record.reason is not None else record.status)


def _left_out_sentence(bridge: Bridge) -> str:
    """What was not compared of the pairs of a dimension, and why."""
    reasons = ", ".join(f"{why} {count}" for why, count in bridge.left_out.items())
    compared = f"{bridge.metric} compares {bridge.bridged} of {count_and_noun(bridge.pairs, 'pair')}"
    return f"{bridge.dimension}: {compared} with a verdict of people; left out, a clip without a score: {reasons}"


def _gate_agreement_by_subset(results: Results, labels: Sequence[Label], gate: str) -> dict[str, Figures]:
    """A gate against people's majority on whether a clip poses the test, by subset and in all."""
    ratings = (label for label in labels if label.task == "trigger" and label.answer != CANNOT)
    ratings_by_clip = group_items(ratings, lambda label: label.case)
    rows: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    unknown = 0
    for case, votes in ratings_by_clip.items():
        most = coefficients.most_frequent_vote([label.answer for label in votes])
        is_open = _gate_decision(results, case, gate)
        if most is not None and is_open is None:
            unknown += 1
        elif most is not None and is_open is not None:
            for name in dict.fromkeys((votes[0].subset or "clips", "all")):
                rows[name].append((is_open, most == "yes"))
    figures: dict[str, Figures] = {
        name: coefficients.yes_no_agreement(*zip(*pairs, strict=True)) for name, pairs in rows.items()
    }
    if "all" in figures:
        figures["all"]["undecided"] = unknown
    if len(figures) == 2:
        figures = {"all": figures["all"]}
    return dict(sorted(figures.items(), key=lambda item: item[0] == "all"))


def _bank_answer_agreement(labels: Sequence[Label]) -> dict[str, Any] | None:
    """People's majority against the answer that the bank holds for right of the truth, by scene and dimension."""
    ratings = [one for one in labels if one.task == "answer" and one.answer != CANNOT and one.model == "reference"]
    groups = group_items(ratings, lambda label: (label.scene, label.dimension, f"{label.case} {label.question}"))
    cells: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    pairs = []
    for (scene, dimension, _), votes in groups.items():
        most = coefficients.most_frequent_vote([label.answer for label in votes])
        if most is not None:
            right = "yes" if votes[0].polarity == "positive" else "no"
            pairs.append((most, right))
            cells[scene][dimension].append(most == right)
    if not pairs:
        return None
    return {
        "questions": len(pairs),
        "agreement": sum(a == b for a, b in pairs) / len(pairs),
        "kappa": coefficients.cohen_kappa([a for a, _ in pairs], [b for _, b in pairs]),
        "left_out": len(groups) - len(pairs),
        "heat": {
            scene: {name: (sum(equal) / len(equal), len(equal)) for name, equal in row.items()}
            for scene, row in cells.items()
        },
    }


def _model_strengths_by_dimension(votes: Sequence[Vote]) -> dict[str, dict[str, Any]]:
    """Bradley-Terry strengths by dimension, from people's verdicts; clusters are scenes."""
    strengths: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(vote.dimension for vote in votes):
        some = [vote for vote in votes if vote.dimension == name and vote.verdict is not None]
        scenes = len({vote.scene for vote in some})
        preferences: list[Preference] = []
        for vote in some:
            cluster = vote.scene if scenes > 2 else None
            if vote.verdict == 0:
                preferences += half_preferences_of_tie(vote.model, vote.other_model, cluster)
            else:
                won = (vote.model, vote.other_model) if vote.verdict == 1 else (vote.other_model, vote.model)
                preferences.append(Preference(*won, cluster=cluster))
        for prior in (0.0, 0.5):
            try:
                fit = fit_bradley_terry(preferences, prior=prior)
            except UsageError:
                continue
            strengths[name] = {"prior": prior, "models": list(fit.strengths)}
            break
    return strengths
