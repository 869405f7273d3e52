"""The verdict: who is best, how sure, and that nothing is claimed which the clips cannot carry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from revisit.cli.run_summary import print_verdict
from revisit.core import (
    METRICS,
    SUITES,
    Case,
    Clip,
    Reason,
    Record,
    Rejected,
    Target,
    UsageError,
    import_registering_modules,
)
from revisit.results import Results
from revisit.results.ceilings import held_to_truth
from revisit.results.display import interval_ends_text
from revisit.results.question_ranking import ClipsNeeded, SuiteQuestion, rank_question, read_suite_questions
from revisit.results.verdict import make_verdict, metrics_deciding_questions
from tests.stats.test_stats import by_scipy

import_registering_modules()
METRIC = "event_outcome"
ASK = SuiteQuestion("Did it go on as it should?", (METRIC,))


def made(scores: Mapping[str, Mapping[str, Sequence[float | None]]], per_scene: int = 1) -> Results:
    """Results of {metric: {model: a score per clip}}; None is a clip that could not be scored."""
    cases: dict[tuple[str, int], Case] = {}
    records = []
    for metric, models in scores.items():
        for model, values in models.items():
            for k, value in enumerate(values):
                one = cases.setdefault(
                    (model, k),
                    Case(f"{k}@{model}", "folder", model, f"s{k // per_scene}", Clip(Path("x")), seed=k % per_scene),
                )
                if value is None:
                    records.append(Record(one, metric, False, "unscored", reason=Reason("gate_closed", "not posed")))
                else:
                    records.append(Record(one, metric, False, "scored", float(value)))
    return Results(list(cases.values()), records)


def _noisy(mean: float, seed: int, n: int = 14, spread: float = 0.02) -> list[float]:
    scene = np.random.default_rng(99).normal(0, 0.1, n)
    return list(np.clip(mean + scene + np.random.default_rng(seed).normal(0, spread, n), 0, 1))


def test_the_best_is_named_with_its_evidence() -> None:
    a, b, c = _noisy(0.7, 1), _noisy(0.5, 2), _noisy(0.3, 3)
    answer = rank_question(made({METRIC: {"c": c, "a": a, "b": b}}), ASK)
    assert answer.best == ("a",) and [place.model for place in answer.places] == ["a", "b", "c"]
    change = np.array(a) - np.array(b)
    low, high = by_scipy(change)[0]
    expected = (
        f"a beats b on {(change > 0).sum()} of 14 clips: +{change.mean():.2f} (95 % CI {low:.2f} to {high:.2f}); "
        "it also beats c"
    )
    assert answer.sentence == expected
    plain = [by_scipy(np.subtract(x, y))[1] for x, y in ((a, b), (a, c), (b, c))]
    assert [pair.uncorrected for pair in answer.pairs] == pytest.approx(plain)
    floor = 0.0005 + np.sqrt(0.0005 * 0.9995 / 999)  # no p is below that of the test of all models
    assert [pair.p for pair in answer.pairs] == pytest.approx([floor] * 3)
    assert [(place.low, place.high) for place in answer.places] == [(1, 1), (2, 2), (3, 3)]


def test_what_clips_cannot_decide_is_said_with_how_many_more_would() -> None:
    answer = rank_question(made({METRIC: {"a": _noisy(0.51, 1, spread=0.1), "b": _noisy(0.5, 2, spread=0.1)}}), ASK)
    assert set(answer.best) == {"a", "b"}
    assert answer.sentence.startswith("a is ahead of b on ") and "not significant" in answer.sentence
    assert "more clips would decide" in answer.sentence and "beats" not in answer.sentence
    assert [(place.low, place.high) for place in answer.places] == [(1, 2), (1, 2)]


@pytest.mark.parametrize("seed", range(40))
def test_a_decided_difference_never_seems_to_touch_0_and_an_undecided_one_never_to_leave_it_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scene, spread = rng.normal(0.5, 0.1, 8), 10.0 ** rng.integers(-4, 0)
    shift = rng.uniform(0.6, 1.2) * spread  # about as large as can just be told
    a, b = (list(np.clip(scene + level + rng.normal(0, spread, 8), 0, 1)) for level in (shift, 0.0))
    (pair,) = rank_question(made({METRIC: {"a": a, "b": b}}), ASK).pairs
    low, high = (float(end) for end in pair.evidence_text.partition("CI ")[2][:-1].replace("−", "-").split(" to "))
    assert (low > 0) if pair.decided else (low < 0 < high), pair.evidence_text


def test_an_end_next_to_0_has_the_digits_that_tell_its_side() -> None:
    assert interval_ends_text((0.0004, 0.37), of_difference=True) == "0.0004 to 0.37"
    assert interval_ends_text((-0.37, -0.0004), of_difference=True) == "−0.37 to −0.0004"
    assert interval_ends_text((-0.0049, 0.37), of_difference=True) == "−0.005 to 0.37"
    assert interval_ends_text((3e-7, 0.37), of_difference=True) == "3.0e-07 to 0.37"
    assert interval_ends_text((0.0, 0.37), of_difference=True) == "0.00 to 0.37"
    assert interval_ends_text((0.0151, 0.37), of_difference=True) == "0.02 to 0.37"
    assert interval_ends_text((-0.2, -0.2), of_difference=True) == "all equal"
    assert interval_ends_text((None, None)) == "all equal"  # type: ignore[arg-type]  # a file with nulls


def test_numbers_of_clips_are_told_with_a_range() -> None:
    assert str(ClipsNeeded(40, 25, 80)) == "about 40 more clips would decide (25 to 80)"
    assert str(ClipsNeeded(40, 25, None)) == "about 40 more clips would decide (25 or more)"
    assert str(ClipsNeeded(None, 60, None)) == "more than 60 more clips would be needed"
    assert str(ClipsNeeded(None, None, None)) == "no difference is in sight"
    assert str(ClipsNeeded(1, 1, 1)) == "about 1 more clip would decide"
    assert str(ClipsNeeded(2, 1, 4)) == "about 2 more clips would decide (1 to 4)"


def test_no_false_best_among_equals() -> None:
    """Of models that are equal in truth, some pair is told apart in hardly more than 5 % of datasets."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(60):
        scene = rng.normal(0.5, 0.1, 12)
        scores = {name: np.clip(scene + rng.normal(0, 0.05, 12), 0, 1).tolist() for name in "abcde"}
        wrong += any(pair.decided for pair in rank_question(made({METRIC: scores}), ASK).pairs)
    assert wrong / 60 <= 0.12


def test_pairs_are_compared_on_their_common_clips_and_who_was_scored_rarely_is_left_out() -> None:
    hard = [0.1, 0.1, *_noisy(0.5, 1, 12)]
    skips: list[float | None] = [None, None, *_noisy(0.45, 2, 12)]  # would look better without the two hard clips
    rare: list[float | None] = [0.99, 0.99, *[None] * 12]
    answer = rank_question(made({METRIC: {"all": hard, "skips": skips, "rare": rare}}), ASK)
    assert answer.clips == 12 and answer.left_out == {"rare": (2, 14)}
    assert [place.model for place in answer.places] == ["all", "skips"]
    assert "too few clips to compare: rare 2 of 14" in answer.sentence
    assert answer.unranked["rare"].mean == 0.99 and answer.places[0].cell.n == 14 and answer.places[0].common.n == 12
    never = rank_question(made({METRIC: {"all": hard, "never": [None] * 14}}), ASK)
    assert never.sentence.endswith("; no score (test not posed): never")


def test_few_scenes_decide_nothing() -> None:
    answer = rank_question(made({METRIC: {"a": [0.9, 0.91], "b": [0.1, 0.1]}}), ASK)
    assert answer.best == ("a", "b") and "2 scenes in common, a test needs 3" in answer.sentence
    seeds = rank_question(made({METRIC: {"a": [0.9] * 9, "b": [0.1] * 9}}, per_scene=9), ASK)
    assert "1 scene in common, a test needs 3" in seeds.sentence  # nine seeds of it are one scene


def test_a_pair_without_a_test_is_not_called_alike() -> None:
    """It said that `far` cannot be told from `a`, half a point below it on the two clips that it has."""
    scores: dict[str, list[float | None]] = {
        "a": [0.97, 0.934, 0.961],
        "near": [0.9, 0.95, 0.93],
        "far": [0.41, 0.45, None],
    }
    sentence = rank_question(made({METRIC: scores}), ASK).sentence
    assert "far has too few scenes in common with a for a test" in sentence and "cannot be told" not in sentence


def test_a_mean_that_one_clip_made_is_not_called_ahead_and_a_clear_loser_not_alike() -> None:
    """It said *a is ahead of b on 1 of 4 clips*, and of a model that lost every clip *cannot be told from a either*."""
    scores: dict[str, list[float | None]] = {
        "a": [0.95, 0.40, 0.50, 0.60],
        "b": [0.40, 0.45, 0.52, 0.61],
        "far": [0.30, 0.35, 0.05, 0.58],
    }
    sentence = rank_question(made({METRIC: scores}), ASK).sentence
    assert sentence.startswith("a has a better mean than b, +0.12 (95 % CI ") and "ahead" not in sentence
    assert "but is better on only 1 of 4 clips, not significant" in sentence
    assert sentence.endswith("far is behind a on every clip, too few to prove it")


def test_equal_scores_are_alike_and_three_of_three_is_no_proof() -> None:
    came = rank_question(
        made({"target_reappearance": {"a": [1] * 4, "b": [1] * 4}}), SuiteQuestion("?", ("target_reappearance",))
    )
    assert came.sentence == "a and b score the same on all 4 clips"
    turned = replace(came, places=came.places[::-1])  # as the page orders models that share a rank
    assert turned.sentence == "b and a score the same on all 4 clips"
    swept = rank_question(
        made({"target_reappearance": {"a": [1] * 3, "b": [0] * 3}}), SuiteQuestion("?", ("target_reappearance",))
    )
    assert swept.best == ("a", "b")
    many = rank_question(
        made({"target_reappearance": {"a": [1] * 14, "b": [0] * 14}}), SuiteQuestion("?", ("target_reappearance",))
    )
    assert many.best == ("a",)


def test_lower_is_better_where_the_metric_says_so() -> None:
    answer = rank_question(
        made({"camera_standstill": {"still": [0.9, 0.8, 0.95, 0.9], "moves": [0.0, 0.1, 0.05, 0.02]}}),
        SuiteQuestion("?", ("camera_standstill",)),
    )
    assert answer.best == ("moves",)
    assert answer.sentence == "moves beats still on 4 of 4 clips: −0.84 (95 % CI −1.00 to −0.69; lower is better)"


def test_overall_only_by_dominance() -> None:
    card = {"questions": [{"ask": "one", "metrics": [METRIC]}, {"ask": "two", "metrics": ["return_consistency"]}]}
    ahead = make_verdict(
        made({METRIC: {"a": _noisy(0.7, 1), "b": _noisy(0.5, 2)},
              "return_consistency": {"a": _noisy(0.7, 3), "b": _noisy(0.69, 3)}}), card
    )  # fmt: skip
    assert ahead.overall == "a" and ahead.sentence.startswith("a is ahead: it loses to no model")
    crossed = make_verdict(
        made({METRIC: {"a": _noisy(0.7, 1), "b": _noisy(0.5, 2)},
              "return_consistency": {"a": _noisy(0.4, 3), "b": _noisy(0.6, 4)}}), card
    )  # fmt: skip
    assert crossed.overall == "" and crossed.sentence == "a beats b in “one”"
    assert "a is first in “one” and last in “two”" in crossed.trade_offs


def test_consistency_bought_by_standing_still_is_told() -> None:
    card = {"questions": [], "standing_still": {"movement": "motion_amount", "against": ["return_consistency"]}}
    scores = {
        "motion_amount": {"still": [0.01] * 4, "a": [0.4] * 4, "b": [0.5] * 4},
        "return_consistency": {"still": [0.99] * 4, "a": [0.8] * 4, "b": [0.7] * 4},
    }
    told = make_verdict(made(scores), card).trade_offs
    assert told == (
        "still moves only 2 % as much as the others, probably why it is best in Same view after return (0.99)",
    )
    results = made(scores)
    floors = {c.id: replace(c, annotations={"category": "floor"}) for c in results.cases if c.model == "still"}
    cases = [floors.get(case.id, case) for case in results.cases]
    records = [one.with_changed_fields(case=floors.get(one.case.id, one.case)) for one in results.records]
    assert make_verdict(Results(cases, records), card).trade_offs == ()  # a baseline without memory is no model
    scores["return_consistency"]["b"] = [0.988] * 4  # as shown, so well does another, which moves
    assert make_verdict(made(scores), card).trade_offs == ()


def test_worst_moments_are_of_different_models_and_scenes() -> None:
    scores = {"a": [0.05, 0.9, 0.9], "b": [0.1, 0.2, 0.9], "c": [0.1, 0.9, 0.3]}
    moments = make_verdict(made({METRIC: scores}), {"questions": [{"ask": "?", "metrics": [METRIC]}]}).moments
    assert [(moment.model, moment.sample, moment.value) for moment in moments] == [
        ("a", "s0", 0.05), ("b", "s1", 0.2), ("c", "s2", 0.3)
    ]  # fmt: skip
    assert all(METRICS[METRIC].title in moment.why for moment in moments)


def test_worst_moments_of_one_model_are_of_different_scenes_before_other_seeds(capsys) -> None:
    values = {("s0", 0): 0.1, ("s0", 1): 0.11, ("s1", 0): 0.3, ("s1", 1): 0.4}
    cases = [Case(f"{s}#{n}", "folder", "a", s, Clip(Path(f"{s}{n}")), seed=n) for s, n in values]
    results = Results(cases, [Record(case, METRIC, False, "scored", values[case.sample, case.seed]) for case in cases])
    verdict = make_verdict(results, {"questions": [{"ask": "?", "metrics": [METRIC]}]})
    assert [(moment.sample, moment.seed) for moment in verdict.moments] == [("s0", 0), ("s1", 0), ("s0", 1)]
    other = make_verdict(results, {"questions": [{"ask": "Other?", "metrics": ["flicker"]}]}).as_json()
    assert other["answers"][0]["sentence"] == "not asked"
    print_verdict({**other, "moments": verdict.as_json()["moments"]}, {"models": {}, "metrics": {}})
    printed = " ".join(capsys.readouterr().out.split())
    assert "Other?" not in printed  # its metrics were not asked for
    assert "a, s0, seed 1 (" in printed and "a, s0 (" in printed


def test_a_reset_stands_neither_above_the_truth_nor_above_those_who_went_on() -> None:
    """A reset may come nearer to the truth's own likeness to the first view than a model that went on."""
    looks = {"truth": 0.72, "svc": 0.73, "lingbot": 0.51, "wan": 0.71}
    outcomes = {"svc": 0.11, "lingbot": 0.64, "wan": 0.64}
    cases, records = [], []
    for k in range(6):
        truth = Clip(Path(f"truth{k}"))
        for model, look in looks.items():
            is_truth = model == "truth"
            clip, reference = (truth, None) if is_truth else (Clip(Path(f"{model}{k}")), truth)
            one = Case(f"{k}@{model}", "folder", model, f"s{k}", clip, reference, truth=is_truth)
            cases.append(one)
            records.append(Record(one, "target_identity", False, "scored", look + 0.001 * k))
            if model in outcomes:
                records.append(Record(one, METRIC, False, "scored", outcomes[model] + 0.01 * (k % 3)))
    results = Results(cases, records)
    made = make_verdict(results, SUITES["folder"].card)
    for answer in made.answers:
        if answer.places:
            names = [place.model for place in answer.places]
            assert "truth" not in names and names[-1] == "svc"
            assert answer.is_decided_better("wan", "svc") and answer.is_decided_better("lingbot", "svc")
    undone = next(moment for moment in made.moments if moment.model == "svc")
    assert undone.value == pytest.approx(0.11) and undone.why.startswith(f"{METRICS[undone.metric].title}: 0.11")
    asked = next(answer for answer in made.answers if "target_identity" in answer.question.metrics)
    assert asked.sentence.startswith("see “Did it go on as it should?”")  # which caps it, and says the same
    same = rank_question(held_to_truth(results), asked.question)
    assert same.near_truth and same.truth.mean == 1.0 and all((place.cell.mean or 0) < 1 for place in same.places)


def test_what_is_refused_and_names_no_model_is_no_model() -> None:
    results = made({"event_outcome": {"a": _noisy(0.8, 1), "b": _noisy(0.4, 2)}})
    results = Results(results.cases, results.records, [Rejected("shard-7", "cannot be read")])
    card = {"questions": [{"ask": "Which?", "metrics": ["event_outcome"], "memory": True}]}
    verdict = make_verdict(results, card)
    assert verdict.overall == "a" and not verdict.not_compared and not verdict.answers[0].left_out
    assert list(results.mean("event_outcome")) == ["a", "b"] and results.cell("event_outcome").of == 29


def test_a_model_whose_clips_share_a_name_is_not_said_to_have_no_score() -> None:
    cases = [Case(f"{model}{k}", "folder", model, f"s{k // 2}", Clip(Path("x"))) for model in "ab" for k in range(4)]
    cases = [case for case in cases if case.model == "a" or case.id in ("b0", "b2")]  # one of a scene
    results = Results(cases, [Record(case, "event_outcome", False, "scored", 0.5) for case in cases])
    answer = rank_question(results, SuiteQuestion("Which?", ("event_outcome",)))
    assert answer.sentence == "4 clips share a name with another clip of their scene, so they cannot be paired; " + (
        "give each an id"
    )


def test_tables_have_the_columns_of_the_verdict_also_beside_a_floor() -> None:
    identity: dict[str, Sequence[float | None]] = {"a": [0.5] * 4, "b": [None] * 4, "still": [0.1] * 4}
    results = made({"target_identity": identity, "return_consistency": {"a": [0.7] * 4, "b": [0.6] * 4}})
    cases = {c.id: replace(c, annotations={"category": "floor"} if c.model == "still" else {}) for c in results.cases}
    results = Results(
        list(cases.values()), [one.with_changed_fields(case=cases[one.case.id]) for one in results.records]
    )
    answers = make_verdict(results, SUITES["folder"].card).answers
    assert [answer.metric for answer in answers if answer.metric] == ["return_consistency"]
    assert metrics_deciding_questions(results, "folder") == ["return_consistency"]


def test_the_order_of_clips_decides_no_rank() -> None:
    values = [0.1, 0.2, 0.3]
    ranks = made({"event_outcome": {"a": values, "b": values[::-1]}}).ranks("event_outcome")
    assert [rank.rank for rank in ranks] == [1, 1] and ranks[0].mean == ranks[1].mean


def test_the_truth_has_the_interval_of_its_metric_and_not_of_yes_and_no() -> None:
    cases, records = [], []
    for k, (view, back) in enumerate(zip(_noisy(0.5, 3, 9), [0, 1] * 5, strict=False)):
        truth = Case(f"{k}@truth", "folder", "truth", f"s{k}", Clip(Path(f"t{k}")), truth=True)
        clip = Case(f"{k}@a", "folder", "a", f"s{k}", Clip(Path(f"a{k}")), reference=truth.clip)
        cases += [truth, clip]
        for id, value in (("event_outcome", view), ("target_reappearance", float(back))):
            records += [Record(truth, id, False, "scored", 1.0), Record(clip, id, False, "scored", value)]
    results = Results(cases, records)
    continuous, yes_or_no = (results.truth.cell(id) for id in ("event_outcome", "target_reappearance"))
    assert continuous.interval is None and continuous.few_scenes
    assert yes_or_no.interval == pytest.approx((results.where(model="a").truth.cell("target_reappearance")).interval)
    assert yes_or_no.interval[0] < 0.8


def test_nothing_to_compare() -> None:
    alone = rank_question(made({METRIC: {"a": _noisy(0.7, 1)}}), ASK)
    assert alone.sentence.startswith("only a has a score: 0.")
    nothing = rank_question(made({METRIC: {"a": [None, None], "b": [None, None]}}), ASK)
    assert nothing.places == () and nothing.sentence == "no clip could be scored: test not posed on 4 of 4 clips"
    empty = make_verdict(Results([], []), SUITES["folder"].card)
    assert empty.sentence == "" and json.dumps(empty.as_json())


def test_collapsed_clips_are_counted_in_the_verdict() -> None:
    results = made({"time_to_collapse": {"a": [1.0, 1.0], "b": [0.4, 1.0], "c": [0.2, 0.3]}})
    verdict = make_verdict(results, SUITES["folder"].card)
    assert verdict.details == ("both clips of c and 1 of 2 of b collapse",)
    assert verdict.as_json()["collapses"] == {"c": [2, 2], "b": [1, 2]}
    truth = replace(results.cases[0], id="gt", model="gt", truth=True)
    like_the_truth = [replace(case, reference=truth.clip) for case in results.cases]
    records = [record.with_changed_fields(case=like_the_truth[k]) for k, record in enumerate(results.records)]
    also = Record(truth, "time_to_collapse", False, "scored", 0.5)
    assert not make_verdict(Results([*like_the_truth, truth], [*records, also]), SUITES["folder"].card).picture_faults


def with_collapse_facts(results: Results, facts: Mapping[str, Mapping[str, object]]) -> Results:
    """The results with facts of the collapses of some clips, by their ids."""
    changed = [record.with_changed_fields(facts=facts.get(record.case.id, {})) for record in results.records]
    return Results(results.cases, changed)


def test_noise_and_oversharpened_pictures_are_told_apart() -> None:
    results = made({"time_to_collapse": {"wan": [0.4, 0.3, 1.0], "matrix": [0.6, 1.0, 1.0]}})
    facts = {"0@wan": {"by": "noise"}, "1@wan": {"by": "noise"}, "0@matrix": {"by": "sharpened"}}
    verdict = make_verdict(with_collapse_facts(results, facts), SUITES["folder"].card)
    assert verdict.details == ("2 of 3 clips of wan turn to noise", "1 of 3 clips of matrix is over-sharpened")
    assert verdict.as_json()["collapses"] == {"wan": [2, 3], "matrix": [1, 3]}


def test_a_black_model_is_said_to_be_black_and_not_praised() -> None:
    scores = {
        "time_to_collapse": {"good": [1.0] * 3, "black": [1.0] * 3},
        "motion_amount": {"good": [0.4] * 3, "black": [0.0] * 3},
        "visual_integrity_lite": {"good": [0.8] * 3, "black": [1.0] * 3},
        METRIC: {"good": [0.83] * 3},
    }
    facts = {f"{k}@black": {"blank": "black", "blank_from_frame": 0, "blank_share": 1.0} for k in range(3)}
    facts |= {"1@good": {"blank": "black", "blank_from_frame": 9, "blank_share": 0.5}}
    verdict = make_verdict(with_collapse_facts(made(scores), facts), SUITES["folder"].card)
    assert verdict.headline.startswith("all 3 clips of black are black")
    assert "1 of 3 clips of good goes black" in verdict.details and verdict.trade_offs == ()
    assert [(moment.model, moment.frame, moment.why) for moment in verdict.moments] == [
        ("black", 0, "the clip is black"), ("good", 9, "the clip goes black"), ("black", 0, "the clip is black")
    ]  # fmt: skip


def test_a_clip_that_went_on_is_no_bad_moment() -> None:
    moments = make_verdict(made({METRIC: {"a": [0.64, 0.3], "b": [0.9, 0.8]}}), SUITES["folder"].card).moments
    assert [(moment.model, moment.value) for moment in moments] == [("a", 0.3)]


def test_a_closed_gate_does_not_hide_that_no_target_was_given() -> None:
    results = made({METRIC: {"a": [None, None], "b": [None, None]}})
    lacking = Reason("no_target", "no target was given for this case")
    mixed = [
        record.with_changed_fields(reason=lacking) if record.case.id != "0@a" else record for record in results.records
    ]
    not_asked = "not asked: no target was given; `revisit annotate RUN --task marks` draws its box"
    assert rank_question(Results(results.cases, mixed), ASK).sentence == not_asked
    alike = rank_question(Results(results.cases, [record.with_changed_fields(reason=lacking) for record in mixed]), ASK)
    assert alike.sentence == not_asked
    no_truth = Reason("no_reference", "no reference video was given for this case")
    unlike = [one.with_changed_fields(reason=no_truth) if one.reason == lacking else one for one in mixed]
    assert rank_question(Results(results.cases, unlike), ASK).sentence == "not asked: no reference video was given"
    without_box = Reason("no_target", "no target was given for this case, or not where it is")
    alike = rank_question(Results(results.cases, [one.with_changed_fields(reason=without_box) for one in mixed]), ASK)
    assert alike.sentence == not_asked, "one sentence for all clips, whatever those of single clips say"
    with_target = {case.id: replace(case, target=Target("cup", (0.1, 0.1, 0.2, 0.2))) for case in results.cases[:1]}
    cases = [with_target.get(case.id, case) for case in results.cases]
    some = [record.with_changed_fields(case=with_target.get(record.case.id, record.case)) for record in mixed]
    expected = "no clip could be scored: no target on 3 of 4 clips, test not posed on 1; "
    answer = rank_question(Results(cases, some), ASK)
    assert answer.sentence == expected + "`revisit annotate RUN --task marks` draws its box"


def test_printed_commands_name_the_run(capsys) -> None:
    sentence = "not asked; `revisit annotate RUN --task marks` draws its box"
    answer = {"question": {"ask": "Is it there?"}, "sentence": sentence, "metric": None}
    ranking = {"answers": [answer], "sentence": "", "trade_offs": [], "low_ceilings": {}, "moments": []}
    print_verdict(ranking, {"models": {}, "metrics": {}}, Path("my runs/a"))
    assert "`revisit annotate 'my runs/a' --task marks` draws its box" in capsys.readouterr().out


@pytest.mark.parametrize("suite", ["folder", "memobench", "wrbench", "mbench", "mind"])
def test_the_questions_of_every_suite_are_answered_by_its_own_metrics(suite: str) -> None:
    asked = read_suite_questions(SUITES[suite].card)
    assert len(asked) >= 4 and any(question.memory for question in asked)
    own = set(SUITES[suite].metrics())
    for question in asked:
        assert own & set(question.metrics), question
        for id in question.metrics:
            assert METRICS[id].higher_is_better is not None


def test_a_difference_on_every_clip_is_not_called_out_of_sight() -> None:
    models = {f"m{k}": [0.1 * k + 0.25] * 8 for k in range(6)}  # every pair differs by the same on every clip
    answer = rank_question(made({METRIC: models}), ASK)
    for pair in answer.pairs:
        assert pair.decided or "no difference" not in pair.undecided_text
        if not pair.decided and pair.uncorrected is not None and pair.uncorrected < 0.05:
            assert "significant alone (p 0.0" in pair.undecided_text
    assert any(not pair.decided for pair in answer.pairs)


def test_four_events_of_one_room_are_one_scene() -> None:
    rng = np.random.default_rng(0)
    rooms = rng.normal(0.3, 0.02, 2)
    cases, records = [], []
    for model, gain in (("a", rooms), ("b", np.zeros(2))):
        for room in range(2):
            for event in range(4):
                name = f"room{room}__T{event}"
                one = Case(
                    f"{name}@{model}", "wrbench", model, name, Clip(Path("x")), annotations={"family": f"r{room}"}
                )
                cases.append(one)
                records.append(Record(one, METRIC, False, "scored", float(0.4 + gain[room])))
    answer = rank_question(Results(cases, records), ASK)
    assert answer.pairs[0].scenes == 2 and answer.pairs[0].p is None  # a test needs three
    assert "beats" not in answer.sentence


def test_a_question_of_a_card_that_lacks_its_sentence_is_refused() -> None:
    for entry in ({"id": "q", "title": "Is it?", "metrics": ["psnr"]}, {"ask": "Is it?"}, "Is it?"):
        with pytest.raises(UsageError, match="needs `ask`"):
            read_suite_questions({"questions": [entry]})
