"""Does it look away and come back: who is asked, who counts, and that a return which is not due gains nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from revisit.core import SUITES, Case, Clip, Reason, Record, Rejected, Series, import_registering_modules
from revisit.geometry.camera_script import leaves_and_returns
from revisit.report.verdict import _look_away_parts
from revisit.results import Results
from revisit.results.ceilings import held_to_truth
from revisit.results.look_away_counts import LookAwayCounts, count_look_aways, diagnosis_of_case
from revisit.results.verdict import make_verdict
from tests.diagnosis.test_diagnosis import RESET, RESET_FACTS
from tests.diagnosis.test_diagnosis import records as answers_of

import_registering_modules()
BACK, AWAY, STAYED, UNSURE = "left, returned", "left, not returned", "never left", "cannot tell"
STATES = {BACK: "open", AWAY: "closed", STAYED: "closed", UNSURE: "unsure"}
OUT_AND_BACK, OUT = "yaw:right:60@40,yaw:left:60@41", "yaw:right:60@81"


def results_of(
    models: dict[str, list[str]], truth: list[str] | None = None, cameras: list[str] | None = None, **scores: Any
) -> Results:
    """Results of {model: what the view does on each clip}; scores are {metric: {model: a score per clip, or None}}."""
    cases, records = [], []
    for model, views in {**models, **({"gt": truth} if truth else {})}.items():
        for k, view in enumerate(views):
            clip, is_truth = Clip(Path(f"{model}/{k}")), model == "gt"
            reference = Clip(Path(f"gt/{k}")) if truth and not is_truth else None
            camera = cameras[k] if cameras else ""
            one = Case(f"{k}@{model}", "folder", model, f"s{k}", clip, reference, camera=camera, truth=is_truth)
            cases.append(one)
            away = {"unsure": "unsure"}.get(STATES[view], "open" if view.startswith("left") else "closed")
            label = {"open": "looks away", "closed": "never looks away", "unsure": UNSURE}[away]
            records.append(Record(one, "view_return", True, STATES[view], label=view))
            records.append(Record(one, "look_away", True, away, label=label))
            for metric, by_model in scores.items():
                value = by_model.get(model, [None] * len(views))[k]
                if value is not None:
                    records.append(Record(one, metric, False, "scored", value, protocol="corrected:1"))
    return Results(cases, records)


def counted(results: Results) -> LookAwayCounts:
    counts = count_look_aways(results)
    assert counts is not None
    return counts


def test_only_clips_count_on_which_the_truth_leaves_and_returns() -> None:
    truth = [BACK, BACK, AWAY, STAYED, UNSURE]
    counts = counted(results_of({"a": [BACK, AWAY, BACK, BACK, BACK], "b": [STAYED, UNSURE, BACK, BACK, BACK]}, truth))
    a, b = counts.count_of_model("a"), counts.count_of_model("b")
    assert a is not None and b is not None and counts.asked_by == "truth" and counts.truth_unclear == 1
    assert (a.asked, a.left, a.returned, a.unclear) == (2, 2, 1, 0)
    assert (b.asked, b.left, b.returned, b.unclear) == (2, 0, 0, 1)  # three returns that were not due
    assert counts.sentence == "a on 1 of 2 clips where the truth does; never seen to (1 clip unclear): b"


def test_without_a_truth_the_request_decides_and_without_either_all_clips_are_asked() -> None:
    views = {"a": [BACK, AWAY], "b": [BACK, BACK]}
    asked = counted(results_of(views, cameras=[OUT_AND_BACK, OUT]))
    assert asked.asked_by == "request" and [count.asked for count in asked.models] == [1, 1]
    assert asked.headline == "both models look away and come back on every clip where the camera was asked to"
    all_clips = counted(results_of(views))
    assert all_clips.asked_by == "all" and [(c.model, c.text) for c in all_clips.models] == [
        ("b", "2 of 2"), ("a", "1 of 2")
    ]  # fmt: skip
    assert count_look_aways(Results(results_of(views).cases, [])) is None  # no gate was asked


def test_scripts_that_leave_and_return() -> None:
    assert leaves_and_returns(OUT_AND_BACK) is True and leaves_and_returns(OUT) is False
    assert leaves_and_returns("yaw:right:10@20,yaw:left:10@20") is False  # a sixth of the view stays in sight
    assert leaves_and_returns("truck:right:1@20,truck:left:1@20") is True
    assert leaves_and_returns("hold@40") is False and leaves_and_returns("walk to the door") is None


def test_a_return_where_the_truth_does_not_return_gains_nothing() -> None:
    truth = [BACK] * 6 + [AWAY] * 6
    rng = np.random.default_rng(0)
    plain, best = rng.uniform(0.5, 0.6, 12).tolist(), rng.uniform(0.5, 0.6, 6).tolist() + [1.0] * 6
    scores = {"event_outcome": {"plain": plain, "returns": best}}
    results = results_of({"plain": [BACK] * 12, "returns": [BACK] * 12}, truth, **scores)
    held = held_to_truth(results)
    assert held.cell("event_outcome").n == 12 and held.where(model="returns").cell("event_outcome").n == 6
    reason = held.answer("11@returns", "event_outcome")
    assert reason is not None and reason.reason is not None and "a return is no merit" in reason.reason.sentence


def test_the_headline_is_the_strongest_statement_that_holds() -> None:
    card = SUITES["folder"].card
    some = make_verdict(results_of({"a": [BACK, BACK], "b": [STAYED, STAYED]}, [BACK, BACK]), card)
    assert some.headline == "1 of 2 models looks away and comes back: a on 2 of 2 clips"
    none = make_verdict(results_of({"a": [AWAY, AWAY], "b": [STAYED, STAYED]}, [BACK, BACK]), card)
    assert none.headline == "none of 2 models ever comes back where the truth does"
    rng = np.random.default_rng(1)
    scores = {"event_outcome": {"a": rng.uniform(0.8, 0.9, 8).tolist(), "b": rng.uniform(0.5, 0.6, 8).tolist()}}
    scores["event_outcome"]["c"] = rng.uniform(0.5, 0.9, 8).tolist()
    views = {"a": [BACK] * 8, "b": [BACK] * 8, "c": [BACK] * 8, "d": [STAYED] * 8}
    made = make_verdict(results_of(views, [BACK] * 8, **scores), card)
    # What they come back to is said before how often they do.
    assert made.headline.startswith("a (8 of 8 clips)") and "come back to a world that went on" in made.headline
    assert made.sentence.startswith(made.headline) and "a beats" in made.sentence
    assert "; 3 of 4 models look away and come back; " in made.sentence
    alike = make_verdict(results_of({"a": [BACK] * 3, "b": [BACK] * 3}, [BACK] * 3), card)
    assert alike.headline == "both models look away and come back on every clip where the truth does"


def test_what_happened_unseen_is_counted_among_the_returns() -> None:
    scores = {"event_outcome": {"goes": [0.9, 0.8, None], "resets": [0.1, 0.7, 0.2]}}
    counts = counted(results_of({"goes": [BACK] * 3, "resets": [BACK] * 3}, [BACK] * 3, **scores))
    assert counts.outcome_sentences == [
        "goes (2 of 2 clips) and resets (1 of 3) come back to a world that went on",
        "resets (2 of 3 clips) comes back with the world reset",
    ]


def test_a_clip_that_comes_back_without_the_target_is_no_reset() -> None:
    outcomes = {"forgets": [0.3, 0.6, None], "resets": [0.1, 0.1, 0.1]}
    back = {"forgets": [0.0, 0.0, 0.0], "resets": [1.0, 1.0, 1.0]}
    models, truth = {"forgets": [BACK] * 3, "resets": [BACK] * 3}, [BACK] * 3
    counts = counted(results_of(models, truth, event_outcome=outcomes, target_reappearance=back))
    assert counts.outcome_sentences == [
        "forgets (3 of 3 clips) comes back without the target",
        "resets (3 of 3 clips) comes back with the world reset",
    ]
    # A target that is gone in the truth, too, is what became of it.
    counts = counted(results_of(models, truth, event_outcome=outcomes, target_reappearance={**back, "gt": [0.0] * 3}))
    assert counts.outcome_sentences[0] == "forgets (1 of 2 clips) comes back to a world that went on"


def test_a_low_outcome_is_no_reset_where_nobody_can_tell_whether_the_target_is_back() -> None:
    models, truth = {"a": [BACK] * 3}, [BACK] * 3
    results = results_of(models, truth, event_outcome={"a": [0.48, 0.9, 0.1]})
    undecided = [Record(case, "target_return", True, "unsure", label=UNSURE) for case in results.cases[:2]]
    counts = counted(Results(results.cases, [*results.records, *undecided]))
    # The place of the first may be empty, and shows neither state at any rate; of the third the target is known.
    assert counts.outcome_sentences == [
        "a (1 of 2 clips) comes back to neither the first state nor the true one",
        "a (1 of 2 clips) comes back with the world reset",
        "a (1 of 3 clips) comes back, but whether the target does is unclear",
    ]
    undecided = [Record(case, "target_return", True, "unsure", label=UNSURE) for case in results.cases]
    counts = counted(Results(results.cases, [*results.records, *undecided]))
    assert counts.models[0].judged == 1 and counts.models[0].reset == 0  # an empty place may look as at first
    assert counts.models[0].target_unclear == 2


def test_a_world_went_on_by_its_outcome_alone_only_where_the_target_is_known_or_probably_back() -> None:
    """A candle that burnt down and one that is gone look alike: outcome 0.83, target undecided."""
    outcomes = {"a": [0.83, 0.83, 0.83, 0.83]}
    results = results_of({"a": [BACK] * 4}, [BACK] * 4, event_outcome=outcomes)
    first, second, third, _ = results.cases

    def undecided(case: Case, guess: str) -> Record:
        return Record(case, "target_return", True, "unsure", label=UNSURE, facts={"guess": guess, "confidence": 0.55})

    def diagnosed(case: Case) -> list[Record]:  # nothing is wrong to the diagnosis, which denies that anything vanished
        return [record.with_changed_fields(case=case) for record in answers_of().values()]

    answers = [
        undecided(first, "hidden, returned"),  # nobody denies that it vanished
        undecided(second, "hidden, not returned"), *diagnosed(second),  # the gate leans to its absence
        undecided(third, "hidden, returned"), *diagnosed(third),
    ]  # fmt: skip
    all_records = [*results.records, *_of_truths(results), *answers]
    counts = counted(Results([*results.cases, *results.truths], all_records))
    assert counts.outcome_sentences == [
        "a (2 of 2 clips) comes back to a world that went on",  # the third, and the fourth, of which nobody doubts it
        "a (2 of 4 clips) comes back, but whether the target does is unclear",
    ]
    assert counts.models[0].as_json()["target_unclear"] == 2


def test_what_looks_like_neither_state_is_no_world_that_went_on() -> None:
    """Bounds of docs/verdict.md: up to a quarter reset, from 0.6 on gone on."""
    outcomes = {"a": [0.25, 0.26, 0.52, 0.59, 0.6, 0.9]}
    count = counted(results_of({"a": [BACK] * 6}, [BACK] * 6, event_outcome=outcomes)).models[0]
    assert (count.judged, count.reset, count.neither, count.went_on) == (6, 1, 3, 2)
    assert count.as_json()["neither"] == 3


def test_a_clip_whose_object_vanished_is_no_world_that_went_on() -> None:
    results = results_of({"a": [BACK] * 3}, [BACK] * 3, event_outcome={"a": [0.7, 0.7, 0.7]})
    first, second, _ = (case for case in results.cases)
    # Of the first clip the diagnosis finds it, by the gate and a network; of the second the gate alone says so.
    by_network = {"confidence": 0.9, "by": "network"}
    gone = [
        Record(first, "target_return", True, "closed", label="hidden, not returned", facts=by_network),
        Record(first, "unsteady_light", False, "scored", 0.5),
        Record(second, "target_return", True, "closed", label="hidden, not returned"),
    ]
    count = counted(Results([*results.cases, *results.truths], [*results.records, *_of_truths(results), *gone])).models[
        0
    ]
    assert (count.gone, count.went_on, count.judged) == (1, 1, 2)
    words = diagnosis_of_case(Results(results.cases, [*results.records, *gone]), first).words
    assert "object vanishes" in words


def test_a_target_that_is_reset_or_elsewhere_is_no_world_that_went_on() -> None:
    """A diagnosis that the state was reset, and a verdict that the world went on, would contradict each other."""
    results = results_of({"a": [BACK]}, [BACK], event_outcome={"a": [0.65]})
    answers = [record.with_changed_fields(case=results.cases[0]) for record in answers_of(RESET, RESET_FACTS).values()]
    with_diagnosis = Results([*results.cases, *results.truths], [*results.records, *_of_truths(results), *answers])
    assert "state reset" in diagnosis_of_case(with_diagnosis, results.cases[0]).words
    assert counted(with_diagnosis).models[0].neither == 1 and counted(results).models[0].went_on == 1


def _of_truths(results: Results) -> list[Record]:
    return [record for truth in results.truths for record in results.of(truth).values()]


def broken(results: Results, *names: str) -> Results:
    """The same results, in which nothing of some clips could be answered."""
    answers = [*results.records, *_of_truths(results)]
    failed = [
        record.with_changed_fields(status="failed", label="", value=None, reason=Reason("failed", "it is cut off"))
        if record.case.id in names
        else record
        for record in answers
    ]
    return Results([*results.cases, *results.truths], failed)


def test_a_clip_that_cannot_be_read_is_none_that_never_looks_away() -> None:
    scores = {"return_consistency": {"alpha": [0.5, 0.6], "beta": [0.5, 0.6], "gamma": [0.5, 0.6]}}
    whole = results_of({"alpha": [BACK] * 2, "beta": [BACK] * 2, "gamma": [BACK] * 2}, [BACK] * 2, **scores)
    counts = counted(broken(whole, "0@beta", "1@beta", "0@gamma"))
    beta, gamma = counts.count_of_model("beta"), counts.count_of_model("gamma")
    assert beta is not None and gamma is not None and not counts.counts_without_return
    assert (beta.asked, beta.unreadable, beta.text) == (0, 2, "not read") and (gamma.text, gamma.unreadable) == (
        "1 of 1", 1
    )  # fmt: skip
    assert counts.sentence == (
        "alpha on 2 of 2 clips where the truth does; gamma on 1 of 1; 3 clips could not be read (gamma 1 and beta 2)"
    )
    verdict = make_verdict(broken(whole, "0@beta", "1@beta"), SUITES["folder"].card)
    assert verdict.details[-1] == "2 clips of beta could not be read" and verdict.unread == {"beta": 2}
    assert "never" not in verdict.sentence and verdict.as_json()["unread"] == {"beta": 2}
    look = next(answer for answer in verdict.answers if answer.metric == "return_consistency")
    assert "no score (could not be read): beta" in look.sentence
    nothing = broken(whole, *(case.id for case in (*whole.cases, *whole.truths)))
    assert counted(nothing).sentence == "not asked: the truth of 2 scenes could not be read"
    assert make_verdict(nothing, SUITES["folder"].card).headline == (
        "8 clips could not be read (alpha 2, beta 2, gamma 2 and truth 2)"
    )


def test_a_truth_that_is_unclear_is_not_said_to_stay() -> None:
    counts = counted(results_of({"a": [BACK]}, [UNSURE]))
    assert counts.sentence == "not asked: it is unclear whether the truth looks away and comes back (1 scene)"


def test_the_headline_has_the_count_of_each_model() -> None:
    views = {"lingbot": [BACK, BACK], "svc": [BACK, BACK], "wan": [BACK, AWAY]}
    three = counted(results_of(views, [BACK] * 2)).headline
    assert three == "all 3 models look away and come back: lingbot and svc on 2 of 2 clips and wan on 1 of 2"
    equal = counted(results_of({"a": [BACK, AWAY], "b": [AWAY, BACK]}, [BACK] * 2)).headline
    assert equal == "both models look away and come back: a and b on 1 of 2 clips"


def test_a_missing_clip_is_none_that_came_back() -> None:
    results = results_of({"a": [BACK] * 2, "b": [BACK] * 3, "c": [BACK] * 2}, [BACK, BACK, STAYED])
    cases = [case for case in (*results.cases, *results.truths) if case.id not in ("1@b", "2@b")]
    gone = [Rejected(f"{k}@b", "b has no clip", "b", missing=True) for k in (1, 2)]  # the truth of clip 2 never leaves
    counts = counted(Results(cases, [record for case in cases for record in results.of(case).values()], gone))
    b = counts.count_of_model("b")
    assert b is not None and (b.missing, b.text, b.as_json()["missing"]) == (1, "1 of 2, 1 missing", 1)
    assert counts.sentence == "a and c on 2 of 2 clips where the truth does; b on 1 of 2, 1 missing"
    assert counts.headline == "all 3 models look away and come back: a and c on 2 of 2 clips and b on 1 of 2, 1 missing"


def test_clips_that_end_before_the_truth_returns_are_not_said_to_stay_away() -> None:
    views = results_of({"a": [AWAY] * 2, "b": [AWAY] * 2}, [BACK] * 2)
    series = {}
    for case in (*views.cases, *views.truths):
        frame = np.arange(12 if case.model == "a" else 18)
        series[case.id, "view_return"] = Series(frame=frame, seconds=frame / 24, value=frame / 20)

    def with_return(record: Record) -> Record:
        back = record.case.truth and record.question == "view_return"
        return record.with_changed_fields(facts={"first_return_frame": 12}) if back else record

    clips = (*views.cases, *views.truths)
    records = [with_return(record) for case in clips for record in views.of(case).values()]
    results = Results(clips, records, series=series)
    assert counted(results).sentence == ("never where the truth does: b; both clips of a end before the truth returns")
    assert "both clips of a end before the truth returns" in make_verdict(results, SUITES["folder"].card).details


def test_a_target_that_is_gone_without_a_return_is_told_from_one_that_did_not_come_back() -> None:
    scores = {"target_reappearance": {"opensora": [0.0, 1.0], "forgets": [0.0, 1.0]}}
    results = results_of({"opensora": [AWAY, BACK], "forgets": [BACK, BACK]}, [BACK] * 2, **scores)
    assert make_verdict(results, SUITES["folder"].card).trade_offs == (
        "opensora has 0 in Target reappears on 1 clip without a return of the camera: the target's place was in view "
        "without it, but not after a return",
    )


def test_the_parts_of_a_bar_are_the_clips_that_were_asked() -> None:
    """A camera that leaves, while nobody can tell whether it comes back, is unclear, and counted once."""
    views = [BACK, AWAY, UNSURE, STAYED, UNSURE]
    results = results_of({"a": views}).mapped(
        lambda record: (
            record.with_changed_fields(status="open", label="looks away")
            if record.question == "look_away" and record.case.sample in ("s2", "s4")
            else record
        )
    )
    (count,) = counted(results).models
    assert (count.asked, count.left, count.returned, count.unclear) == (5, 4, 1, 2)
    assert _look_away_parts(count) == [("back", 1), ("away", 1), ("unclear", 2), ("stayed", 1)]
    assert "stayed_away" not in count.as_json()
