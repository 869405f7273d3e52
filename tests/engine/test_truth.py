"""The truth as a row of its own, and scores held to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from revisit.core import Case, Clip, Reason, Record
from revisit.engine.dataset_cases import TRUTH, mark_and_add_truth_cases
from revisit.results import Results
from revisit.results.ceilings import count_low_truth_scores, counts_as_memory, explain_held_score, held_to_truth
from revisit.results.leaderboards import (
    RunFacts,
    board_column_of_score,
    board_of_run,
    mark_best_and_second_rows,
    sort_rows_best_first,
)
from revisit.results.verdict import make_verdict


def case(model: str, sample: str = "cup", reference: str | None = "gt/cup.mp4", **facts: object) -> Case:
    return Case(
        f"{sample}@{model}", "folder", model, sample, Clip(Path(f"{model}/{sample}.mp4")),
        reference=None if reference is None else Clip(Path(reference)), **facts,  # type: ignore[arg-type]
    )  # fmt: skip


def answer(of: Case, metric: str, value: float) -> Record:
    return Record(of, metric, False, "scored", value)


def test_each_reference_becomes_one_case_outside_the_contest() -> None:
    made = mark_and_add_truth_cases([case("a"), case("b"), case("a", "door", reference=None)])
    assert [(one.id, one.truth) for one in made] == [
        ("cup@a", False), ("cup@b", False), ("door@a", False), (f"cup@{TRUTH}", True),
    ]  # fmt: skip
    assert made[-1].clip == Clip(Path("gt/cup.mp4")) and made[-1].reference is None


def test_a_truth_that_stands_beside_the_models_is_marked_and_not_made_again() -> None:
    made = mark_and_add_truth_cases([case("a"), case("gt", reference=None)])
    assert [(one.id, one.truth) for one in made] == [("cup@a", False), ("cup@gt", True)]


def test_who_is_compared_with_itself_stays_a_model() -> None:
    made = mark_and_add_truth_cases([case("gt", reference="gt/cup.mp4")])
    assert not made[0].truth and made[1].truth


def results() -> Results:
    """Three models and the truth: the model `reset` looks more like the first view than the truth does."""
    cases = mark_and_add_truth_cases([case("reset"), case("right"), case("other")])
    values = {"reset": 0.95, "right": 0.62, "other": 0.2, TRUTH: 0.6}
    return Results(
        cases,
        [answer(one, "target_identity", values[one.model]) for one in cases]
        + [answer(one, "target_reappearance", float(one.model != TRUTH)) for one in cases],
    )


def test_models_means_and_ranks_do_not_count_the_truth() -> None:
    made = results()
    assert made.models == ["other", "reset", "right"]
    assert made.cell("target_identity").n == 3
    assert made.truth.cell("target_identity").mean == pytest.approx(0.6)
    assert made.where(model="right").truth.cell("target_identity").n == 1  # it goes along with its models
    assert made.score(made.truths[0], "target_identity") == 0.6


def test_a_reset_never_ranks_above_what_the_truth_does() -> None:
    made = held_to_truth(results())
    value = {record.case.model: record.value for record in made.scores("target_identity")}
    assert value == pytest.approx({"right": 0.98, "other": 0.6})
    reset = next(record for record in made.records_for("target_identity") if record.case.model == "reset")
    assert reset.reason is not None and reset.reason.kind == "undecided"
    assert (reset.facts["own"], reset.facts["truth"]) == (0.95, 0.6)


def test_a_reset_is_no_return_as_it_should_be() -> None:
    cases = mark_and_add_truth_cases([case("reset"), case("right"), case("half")])
    rows = {
        "target_reappearance": {"reset": 1.0, "right": 1.0, "half": 1.0, TRUTH: 1.0},
        "target_identity": {"reset": 0.95, "right": 0.62, "half": 0.7, TRUTH: 0.6},
        "event_outcome": {"reset": 0.1, "right": 0.9, "half": 0.6},
    }
    answers = [
        answer(one, id, values[one.model]) for id, values in rows.items() for one in cases if one.model in values
    ]
    made = held_to_truth(Results(cases, answers))
    back = {record.case.model: record.value for record in made.scores("target_reappearance")}
    assert back == {"reset": 0.1, "right": 1.0, "half": 1.0}  # half done is not reset, and it is back
    alike = {record.case.model: record.value for record in made.scores("target_identity")}
    assert alike == pytest.approx({"reset": 0.1, "right": 0.9})  # of half, nobody knows whether it was reset
    reset = next(record for record in made.scores("target_reappearance") if record.case.model == "reset")
    assert (reset.facts["own"], reset.facts["outcome"]) == (1.0, 0.1)
    assert explain_held_score(reset) == "measured 1.00, but the unseen event is undone (outcome 0.10): a reset"
    told = {record.case.model: explain_held_score(record) for record in made.records_for("target_identity")}
    assert told["right"] == (
        "measured 0.62, the truth 0.60: 0.020 apart, which counts 0.98, but no more than the outcome of the unseen "
        "event, 0.90"
    )
    assert told["half"].startswith("measured 0.70; it looks less changed than the truth")
    assert explain_held_score(next(iter(made.scores("event_outcome")))) == ""


def test_a_held_score_above_the_measured_one_is_explained_with_the_truths() -> None:
    cases = mark_and_add_truth_cases([case("near"), case("capped")])
    looks = {"near": 0.31, "capped": 0.31, TRUTH: 0.7}
    answers = [answer(one, "return_consistency", looks[one.model]) for one in cases]
    answers += [answer(one, "event_outcome", 0.52) for one in cases if one.model == "capped"]
    made = held_to_truth(Results(cases, answers))
    held = {record.case.model: record for record in made.scores("return_consistency")}
    assert (held["near"].value, held["capped"].value) == pytest.approx((0.61, 0.52))
    assert explain_held_score(held["near"]) == "measured 0.31, the truth 0.70: 0.39 apart, which counts 0.61"
    assert explain_held_score(held["capped"]).endswith(
        "counts 0.61, but no more than the outcome of the unseen event, 0.52"
    )


def test_where_the_truth_scores_low_nobody_is_ranked() -> None:
    made = held_to_truth(results())
    assert not made.scores("target_reappearance")
    assert {record.reason.kind for record in made.records_for("target_reappearance") if record.reason} == {
        "low_ceiling"
    }
    assert count_low_truth_scores(results()) == {"target_reappearance": 1}


def test_an_unchanged_look_is_not_ranked_without_a_reference_where_an_event_is_expected() -> None:
    event, still = (case("a", name, None, annotations={"event": name == "event"}) for name in ("event", "still"))
    made = held_to_truth(Results([event, still], [answer(one, "return_consistency", 0.9) for one in (event, still)]))
    assert [record.case.sample for record in made.scores("return_consistency")] == ["still"]


def test_what_counts_as_memory() -> None:
    assert counts_as_memory("target_reappearance") and counts_as_memory("memo_ors")
    assert not any(map(counts_as_memory, ("psnr_returned", "lighting_consistency", "motion_amount", "nobody")))


def test_the_truth_is_not_put_to_a_judge() -> None:
    from revisit.core import OBSERVERS, SUITES, Reason, evidence_id
    from revisit.engine.dependencies import ObserverSet
    from revisit.engine.evidence_plan import EvidencePlanner

    asks = next(observer for observer in OBSERVERS.values() if observer.shows is not None)
    truth = mark_and_add_truth_cases([case("a")])[-1]
    judged = ObserverSet("lite", {evidence_id(asks.makes): asks}, {"model": "j"})
    answer = EvidencePlanner(SUITES["folder"], [], judged, {}, "auto", Path()).task_or_reason(truth, asks.makes)
    assert isinstance(answer, Reason) and answer.kind == "no_judge"


def test_floors_stand_beside_the_truth_and_have_no_place() -> None:
    floor = {"annotations": {"category": "floor"}}
    cases = mark_and_add_truth_cases([case(model, f"s{k}", f"gt/s{k}.mp4", **(floor if model == "pan" else {}))
                        for model in ("a", "b", "pan") for k in range(4)])  # fmt: skip
    values = {"a": 0.5, "b": 0.4, "pan": 0.9, TRUTH: 1.0}
    made = Results(cases, [answer(one, "target_reappearance", values[one.model]) for one in cases])
    assert made.floors == {"pan"} and made.ranked.models == ["a", "b"]
    question = {"questions": [{"ask": "Back?", "metrics": ["target_reappearance"], "memory": True}]}
    told = make_verdict(made, question).answers[0]
    assert [place.model for place in told.places] == ["a", "b"]
    assert {model: cell.mean for model, cell in told.floors.items()} == {"pan": 0.9}
    facts = {"suite": "folder", "set": "lite", "protocol": {"name": "p", "hash": "h", "metrics": {}}}
    run = RunFacts("run", facts, {"cases": [], "total_cases": 0}, made)
    board = board_of_run(run, [board_column_of_score("target_reappearance")])
    rows = sort_rows_best_first(board, "target_reappearance")
    assert [row.label for row in rows] == ["a", "b", "pan (floor)", "truth (ceiling)"]
    assert set(mark_best_and_second_rows(board, rows, board.columns[-1])) <= {0, 1}
    assert made.where(model="pan").ranked.models == ["pan"]  # floors alone are compared with each other


def stood_still(protocol: str = "corrected:1", state: str = "closed") -> Results:
    """Two models of a benchmark: the camera of one stands still, and the published formula likes it better."""
    cases = [case("stands", reference=None), case("turns", reference=None)]
    records = [Record(one, "look_away", True, "open", label="looks away", protocol=protocol) for one in cases[1:]]
    reason = Reason("gate_closed" if state == "closed" else "undecided", "the camera never looks away: it rests")
    records.append(Record(cases[0], "look_away", True, state, label="never looks away", reason=reason))
    for one, value in zip(cases, (1.0, 0.4), strict=True):
        records += [Record(one, id, False, "scored", value, protocol=protocol) for id in ("memo_ors", "psnr")]
    return Results(cases, records)


@pytest.mark.parametrize("state, kind", [("closed", "gate_closed"), ("unsure", "undecided")])
def test_a_camera_that_never_looked_away_is_not_ranked_by_memory(state: str, kind: str) -> None:
    made = held_to_truth(stood_still(state=state))
    assert [record.case.model for record in made.scores("memo_ors")] == ["turns"]
    [still] = [record for record in made.records_for("memo_ors") if record.case.model == "stands"]
    assert still.reason is not None and still.reason.kind == kind and still.facts["own"] == 1.0
    assert "measured 1" in explain_held_score(still) and "never looks away" in explain_held_score(still)
    assert len(made.scores("psnr")) == 2  # not memory


def test_the_published_protocol_of_a_benchmark_ranks_all_clips() -> None:
    assert len(held_to_truth(stood_still("upstream:1")).scores("memo_ors")) == 2
