"""MBench's scores: the algebra of the M-Score, unknown triggers as intervals, and who may be ranked."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revisit.core import METRICS, SUITES, Case, Clip, Reason, Record, Rejected, UsageError
from revisit.engine.plan import make_plan
from revisit.results import Results
from revisit.results.leaderboards import RunFacts
from revisit.suites.mbench.leaderboard import boards_of
from revisit.suites.mbench.names import (
    BY_ID,
    DIMENSIONS,
    JUDGED,
    MOVED,
    TRIGGER,
    dimensions_by_upstream_name,
    dimensions_of_setting,
    named_dimensions_or_all,
)
from revisit.suites.mbench.scoring import (
    ItemOutcome,
    answers_with_counting_rule,
    axis_and_total_means,
    harmonic_mean_or_zero,
    model_standing,
)
from revisit.suites.mbench.submission import submission_content
from revisit.suites.mbench.summary import summarise

share = st.floats(0, 1, allow_subnormal=False)
some = st.one_of(st.none(), share)


# The algebra


@given(share, share)
@settings(deadline=None)
def test_the_m_score_is_a_harmonic_mean(s: float, c: float):
    m = harmonic_mean_or_zero(s, c)
    assert m == harmonic_mean_or_zero(c, s)
    assert min(s, c) - 1e-12 <= m <= max(s, c) + 1e-12
    assert m <= 2 * min(s, c) + 1e-12 and m <= (s + c) / 2 + 1e-12
    assert harmonic_mean_or_zero(s, s) == pytest.approx(s)
    assert harmonic_mean_or_zero(s, 0) == 0


@given(share, share, share)
@settings(deadline=None)
def test_the_m_score_grows_with_both(s: float, c: float, more: float):
    assert harmonic_mean_or_zero(max(s, more), c) >= harmonic_mean_or_zero(s, c) - 1e-12
    assert harmonic_mean_or_zero(s, max(c, more)) >= harmonic_mean_or_zero(s, c) - 1e-12


@given(st.lists(st.tuples(some, st.sampled_from([True, False, None])), max_size=6), st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_unknown_triggers_give_exactly_the_range_of_what_a_judge_might_have_said(items, missing: int):
    outcomes = [ItemOutcome(score, posed=posed) for score, posed in items]
    of = len(outcomes) + missing
    made = model_standing(outcomes, of, with_coverage=True)
    unknown = [k for k, outcome in enumerate(outcomes) if outcome.posed is None]
    found = []
    for said in product([True, False], repeat=len(unknown)):
        posed = [outcome.posed for outcome in outcomes]
        for k, yes in zip(unknown, said, strict=True):
            posed[k] = yes
        scores = [o.score for o, yes in zip(outcomes, posed, strict=True) if yes and o.score is not None]
        found.append((sum(scores) / len(scores) if scores else None, sum(map(bool, posed)) / of if of else None))
    assert made.posed + made.not_posed + made.unknown == of
    if not of:
        assert made.coverage is None and made.m_interval is None
        return
    shares = [c for _, c in found if c is not None]
    assert made.coverage == (min(shares), max(shares))
    reliable = [s for s, _ in found if s is not None]
    if reliable:
        assert made.reliability_interval == pytest.approx((min(reliable), max(reliable)), abs=1e-12)
        scores = [harmonic_mean_or_zero(s, c) if s is not None else 0.0 for s, c in found if s is not None or c == 0]
        assert made.m_interval == pytest.approx((min(scores), max(scores)), abs=1e-12)
    else:
        assert made.reliability_interval is None
        assert made.m_interval == ((0, 0) if made.coverage[1] == 0 else None)
    if not unknown and made.m_interval:
        assert made.m_score == made.m_interval[0]


def test_nothing_posed_is_a_coverage_of_zero_and_no_reliability():
    made = model_standing([ItemOutcome(0.9, posed=False), ItemOutcome(0.8, posed=False)], 3, with_coverage=True)
    assert made.reliability is None and made.coverage == (0, 0) and made.m_score == 0
    assert made.ungated == pytest.approx(0.85), "what the metric said is kept beside it"


def test_a_silent_judge_makes_coverage_an_interval_and_never_a_zero():
    outcomes = [ItemOutcome(0.8), ItemOutcome(0.4, posed=None), ItemOutcome(0.6, posed=False), ItemOutcome(0.8)]
    made = model_standing(outcomes, 4, with_coverage=True)
    assert made.coverage == (0.5, 0.75) and made.reliability == pytest.approx(0.8) and made.unknown == 1
    assert made.m_score is None and made.m_interval[0] < made.m_interval[1]
    assert made.m_interval[0] == pytest.approx(harmonic_mean_or_zero(0.8, 0.5))
    assert made.m_interval[1] == pytest.approx(harmonic_mean_or_zero(2 / 3, 0.75))


def test_missing_videos_lower_coverage_and_not_reliability():
    made = model_standing([ItemOutcome(0.5)], 4, with_coverage=True)
    assert made.reliability == 0.5 and made.coverage == (0.25, 0.25) and made.strict == 0.125
    without = model_standing([ItemOutcome(0.5), ItemOutcome(None)], 4, with_coverage=False)
    assert without.coverage is None and without.m_score is None and (without.n, without.of) == (1, 4)


# The leaderboard

HY = {
    "mb_object_geometry": 47.12, "mb_object_texture": 68.54, "mb_human_identity": 52.46, "mb_human_appearance": 66.58,
    "mb_spatial_epipolar": 83.86, "mb_spatial_reprojection": 68.17, "mb_rendering_lighting": 82.67,
    "mb_rendering_style": 98.23, "judged_progress": 49.5, "judged_correctness": 62.4, "mb_camera_interaction": 85.69,
}  # fmt: skip


def test_axes_and_total_are_those_of_the_published_row():
    published = {"entity": 58.68, "environment": 83.23, "causal": 65.86, "total": 69.26}
    assert axis_and_total_means(HY, "A") == pytest.approx(published, abs=0.0051)
    with_text = {**HY, "mb_prompt_interaction": 1.0}
    assert axis_and_total_means(with_text, "A") == axis_and_total_means(HY, "A"), "text is no part of A's causal axis"


def test_an_axis_with_a_gap_is_no_axis():
    made = axis_and_total_means({**HY, "mb_object_texture": None}, "A")
    assert made["entity"] is None and made["total"] is None and made["causal"] is not None
    reported = [id for id in HY if id != "mb_object_texture"]
    assert axis_and_total_means({**HY, "mb_object_texture": None}, "A", reported)["total"] is not None
    assert axis_and_total_means(HY, "T")["causal"] is None, "T has text interaction and no action interaction"


# Names


def test_upstream_registers_twelve_names_for_a_and_eleven_for_t():
    names = list(dimensions_by_upstream_name())
    assert len(names) == 23 and sum(name.startswith("mbencha.") for name in names) == 12
    assert "mbencht.causal.camera_interaction" not in names and "mbencht.entity.object_texture_consistency" in names
    assert {d.id for d in DIMENSIONS} == set(BY_ID) and len(dimensions_of_setting("T")) == 11


def test_names_are_chosen_by_setting():
    assert [d.id for d in named_dimensions_or_all(["mbencha.environment.spatial_epipolar"], "A")] == [
        "mb_spatial_epipolar"
    ]
    assert [d.id for d in named_dimensions_or_all(["state_progress", "mb_object_texture"], "T")] == [
        "judged_progress",
        "mb_object_texture",
    ]
    assert len(named_dimensions_or_all([], "T")) == 11
    with pytest.raises(UsageError, match="is for setting A, but this is a dataset of setting T"):
        named_dimensions_or_all(["mbencha.environment.spatial_epipolar"], "T")
    with pytest.raises(UsageError, match=r"did you mean mbencha\.environment\.spatial_epipolar"):
        named_dimensions_or_all(["mbencha.environment.spatial_epipolr"], "A")


# Tables


def made_up(
    setting: str, scores: dict[str, float], gates: dict[str, str], protocol: str = "corrected", per: int = 2
) -> Results:
    """Models whose every score is one number and whose every gate has one state."""
    cases, records = [], []
    gate = MOVED if setting == "A" else TRIGGER
    known = [d for d in dimensions_of_setting(setting) if d.id in METRICS]
    for model, score in scores.items():
        for subset in ("object", "human", "environment", "causal"):
            for k in range(per):
                annotations = {"setting": setting, "item_id": f"{subset}:s{k}:c", "action": "left_then_right"}
                id, clip = f"{subset}:s{k}:c@{model}", Clip(Path(f"{model}.mp4"))
                case = Case(id, "mbench", model, f"s{k}", clip, subset=subset, annotations=annotations)
                cases.append(case)
                if state := gates[model]:
                    facts = {"confidence": 0.9} if gate == TRIGGER else {}
                    reason = None if state == "open" else Reason(OF_STATE[state], "why")
                    records.append(
                        Record(
                            case, gate, True, state, label=state, reason=reason, facts=facts, protocol=f"{protocol}:0"
                        )
                    )
                for dimension in known:
                    if dimension.subset == subset:
                        rests = dimension.id == "mb_camera_interaction" and gates[model] == "closed"
                        value = 0.0 if rests else score
                        records.append(Record(case, dimension.id, False, "scored", value, protocol=f"{protocol}:0"))
    return Results(cases, records, asks=SUITES["mbench"].asks)


OF_STATE = {"closed": "gate_closed", "failed": "failed", "unsure": "undecided"}


def without(results: Results, metric: str, model: str, kind: str = "unanswered") -> Results:
    """The results without the scores of a model under a metric."""

    def change(record: Record) -> Record:
        if record.question != metric or record.case.model != model:
            return record
        return record.with_changed_fields(status="unscored", value=None, reason=Reason(kind, "no answer"))

    return results.mapped(change)


@pytest.mark.parametrize(("setting", "protocol"), [("A", "corrected"), ("T", "corrected"), ("T", "paper")])
def test_a_frozen_model_with_perfect_scores_ranks_first_on_no_table(setting: str, protocol: str):
    states = {"frozen": "closed", "good": "open", "poor": "open"}
    results = made_up(setting, {"frozen": 1.0, "good": 0.7, "poor": 0.2}, states, protocol)
    made = summarise(results)
    ranking = made["mbench"]["ranking"]
    assert [row["model"] for row in ranking][:2] == ["good", "poor"] and ranking[0]["rank"] == 1
    frozen = next(row for row in ranking if row["model"] == "frozen")
    assert frozen["rank"] is None and frozen["reason"] == "0 of 8 clips pose the test"
    for table in [*made["tables"]]:
        names = [row["name"].split(". ")[-1] for row in table["rows"]]
        if not table["title"].startswith("Ranks with and without"):
            for column in range(len(table["columns"])):
                values = {n: row["cells"][column].get("mean", -1) for n, row in zip(names, table["rows"], strict=True)}
                assert values["frozen"] <= 0 or values["frozen"] < values["good"], (table["title"], column)
        assert names[-1] == "frozen", "it stands last, whatever its numbers"
    for entry in (made["models"], *(part["models"] for part in made["parts"].values())):
        for cell in entry["frozen"]["scores"].values():
            # What is not conditioned has no interval, so that no column can name it the best.
            assert "mean" not in cell or cell["interval"] is None or cell["mean"] == 0


@pytest.mark.parametrize("protocol", ["paper", "readme"])
def test_the_paper_ranks_everybody_in_a_and_a_sentence_says_who_rests(protocol: str):
    states = {"frozen": "closed", "good": "open", "poor": "open"}
    results = made_up("A", {"frozen": 1.0, "good": 0.7, "poor": 0.2}, states, protocol)
    made = summarise(results)
    assert [(row["model"], row["rank"]) for row in made["mbench"]["ranking"]] == [
        ("frozen", 1),
        ("good", 2),
        ("poor", 3),
    ]
    assert made["mbench"]["rule"] == "all"
    assert "the paper ranks every model: the camera of frozen stays still in 8 of 8 clips" in made["sentences"]


@pytest.mark.parametrize("setting", ["A", "T"])
def test_ranks_with_and_without_the_gate_stand_side_by_side(setting: str):
    """A model that mostly rests is first without the gate and last with it, in T by its coverage."""
    results = made_up(setting, {"shy": 0.9, "bold": 0.8, "poor": 0.2}, dict.fromkeys(("shy", "bold", "poor"), "open"))
    shy = [record for record in results.records if record.is_gate and record.case.model == "shy"]
    shut = {record.case.id for k, record in enumerate(shy) if (k % 4 == 3 if setting == "A" else k % 2 == 1)}

    def close(record: Record) -> Record:
        closed = record.is_gate and record.case.id in shut
        return record.with_changed_fields(status="closed", reason=Reason("gate_closed", "why")) if closed else record

    made = summarise(results.mapped(close))
    rows = {row["model"]: row for row in made["mbench"]["ranking"]}
    assert {m: row["ungated"]["rank"] for m, row in rows.items()} == {"shy": 1, "bold": 2, "poor": 3}
    assert rows["shy"]["ungated"]["total"] == pytest.approx(90)
    expected = 1 if setting == "A" else 2  # the clips that shy poses are as good as the others
    assert rows["shy"]["rank"] == expected
    table = next(t for t in made["tables"] if t["title"].startswith("Ranks with and without"))
    cells = {row["name"]: [cell.get("mean") for cell in row["cells"]] for row in table["rows"]}
    assert cells["bold"][1:] == [3 - expected, pytest.approx(80), 2, 2 - (3 - expected)]
    if setting == "T":
        assert cells["shy"][0] == pytest.approx(100 * harmonic_mean_or_zero(0.9, 0.5)) and cells["bold"][4] == 1


def test_equal_models_share_a_rank_and_the_next_one_comes_after_both():
    scores = {"a": 0.7, "b": 0.7, "c": 0.2}
    results = made_up("T", scores, dict.fromkeys(scores, "open"))
    ranking = summarise(results)["mbench"]["ranking"]
    assert [(row["model"], row["rank"], row["ungated"]["rank"]) for row in ranking] == [
        ("a", 1, 1),
        ("b", 1, 1),
        ("c", 3, 3),
    ]


def test_what_an_axis_leaves_out_is_left_out_everywhere():
    """Text interaction is no part of an axis in A: neither totals nor the submission's means know it."""
    results = made_up("A", {"good": 0.7, "poor": 0.2}, {"good": "open", "poor": "open"})
    results = without(results, "mb_prompt_interaction", "poor", "no_file").mapped(
        lambda record: (
            record.with_changed_fields(value=0.0)
            if record.question == "mb_prompt_interaction" and record.scored
            else record
        )
    )
    made = summarise(results)
    row = made["mbench"]["ranking"][0]
    assert row["model"] == "good" and row["total"] == pytest.approx([70, 70]) and row["left_out"] == []
    assert row["ungated"]["total"] == pytest.approx(70)
    sent = submission_content(made, "good", "", "https://x.org")
    assert sent["total_m_score"] == 70 == sent["memory_reliability"]
    assert not any("text interaction" in sentence for sentence in made["sentences"])


GEOMETRY, FOLLOWED = "mb_object_geometry", "box of the followed target"


def by_stand_in(results: Results, *models: str) -> Results:
    """The results; object geometry of these models was measured in a box, not in the masks of the published network."""
    return results.mapped(
        lambda record: (
            record.with_changed_fields(
                facts={"target_from": FOLLOWED if record.case.model in models else "masks by sam2.1"}
            )
            if record.question == GEOMETRY
            else record
        )
    )


def cells_by_title(table: dict) -> dict[str, dict[str, float | None]]:
    return {
        row["name"].split(". ")[-1]: {
            title: cell.get("mean") for title, cell in zip(table["columns"], row["cells"], strict=True)
        }
        for row in table["rows"]
    }


@pytest.mark.parametrize("setting", ["A", "T"])
def test_what_a_stand_in_measured_is_in_no_published_column(setting: str):
    states = {"good": "open", "poor": "open"}
    results = by_stand_in(made_up(setting, {"good": 0.7, "poor": 0.2}, states), "good")
    made = summarise(results)
    apart = f"geometry by {FOLLOWED} (stand-in)"
    for table in made["tables"]:
        if table["title"].startswith("Ranks"):
            assert table["columns"][0] == "total with stand-ins (with)"
            continue
        cells = cells_by_title(table)
        assert cells["good"]["geometry"] is None and cells["good"][apart] is not None, table["title"]
        assert cells["poor"]["geometry"] is not None and cells["poor"][apart] is None, table["title"]
    assert cells["good"]["texture"] is not None
    for total in ("entity axis", "total"):
        assert cells["good"][total] is None and cells["good"][f"{total} with stand-ins"] is not None
        assert cells["poor"][total] is not None and cells["poor"][f"{total} with stand-ins"] is None
    assert cells["good"]["causal axis"] is not None and "causal axis with stand-ins" not in cells["good"]
    protocol = {"name": "corrected", "hash": "abc", "metrics": dict.fromkeys(results.metrics, "tag"), "gates": {}}
    facts = {"suite": "mbench", "set": "lite", "protocol": protocol}
    (board,) = boards_of(RunFacts("run", facts, {"cases": []}, results, made))
    mixed = [column.title for column in board.columns if column.title.endswith("with stand-ins")]
    assert mixed == ["entity axis with stand-ins", "total with stand-ins"]
    good, poor = (row.cells for row in sorted(board.rows, key=lambda row: row.model))
    assert good["total.stand_in"].mean is not None and good["total"].reason == "measured by a stand-in"
    assert poor["total"].mean is not None and poor["total.stand_in"].reason == "no stand-in"
    (sentence,) = [sentence for sentence in made["sentences"] if "stand-ins" in sentence]
    assert f"Object geometry by {FOLLOWED} (published: SAM 2)" in sentence
    assert made["metrics"][GEOMETRY]["stand_in"] == FOLLOWED and "stand_in" not in made["metrics"]["mb_object_texture"]
    published = summarise(by_stand_in(made_up(setting, {"good": 0.7, "poor": 0.2}, states)))
    assert not any("stand-in" in title for table in published["tables"] for title in table["columns"])


def test_both_totals_are_over_the_same_dimensions_and_say_over_which():
    """`frozen` may not be ranked and lacks a dimension: it takes it from nobody, also where all clips count."""
    states = {"good": "open", "poor": "open", "frozen": "closed"}
    results = made_up("A", {"good": 0.7, "poor": 0.2, "frozen": 1.0}, states)
    lower = results.mapped(
        lambda r: r.with_changed_fields(value=0.1) if r.question == "judged_progress" and r.scored else r
    )
    made = summarise(without(lower, "judged_progress", "frozen", "no_file"))
    rows = {row["model"]: row for row in made["mbench"]["ranking"]}
    assert rows["good"]["left_out"] == []
    assert rows["good"]["ungated"]["total"] == pytest.approx(rows["good"]["total"][0])
    assert rows["frozen"]["ungated"]["total"] is None or rows["frozen"]["rank"] is None
    table = next(table for table in made["tables"] if table["title"].startswith("Ranks with and without"))
    assert table["columns"][0] == "total (with)" and "no total" not in table["note"]
    entity = [d.id for d in DIMENSIONS if d.axis == "entity"]
    lacking = results.mapped(lambda record: None if record.question in entity else record)
    table = next(t for t in summarise(lacking)["tables"] if t["title"].startswith("Ranks with and without"))
    assert table["columns"][0] == "mean of axes (environment, causal) (with)" and "no total" in table["note"]


def with_hard_item(results: Results, sample: str = "s1", value: float = 0.0) -> Results:
    """The results; one sample of every subset is hard for every model."""
    return results.mapped(
        lambda record: (
            record.with_changed_fields(value=value)
            if not record.is_gate and record.scored and record.case.sample == sample
            else record
        )
    )


def places(made: dict) -> list[tuple[str, int | None]]:
    return [(row["model"], row["rank"]) for row in made["mbench"]["ranking"]]


@pytest.mark.parametrize("setting", ["A", "T"])
@pytest.mark.parametrize("absence", ["not listed", "missing", "unreadable", "no file"])
def test_a_model_that_lacks_hard_items_does_not_come_out_ahead(setting: str, absence: str):
    states = {"good": "open", "poor": "open"}
    results = with_hard_item(made_up(setting, {"good": 0.7, "poor": 0.6}, states, per=4))

    def is_gone(entry: Case | Rejected) -> bool:
        return entry.model == "poor" and ":s1:" in entry.id

    def lose(record: Record) -> Record:
        if not is_gone(record.case):
            return record
        if absence == "unreadable":
            return record.with_changed_fields(
                status="failed", value=None, label=None, reason=Reason("failed", "no video")
            )
        if record.is_gate:
            return record
        return record.with_changed_fields(status="unscored", value=None, reason=Reason("no_file", "no results.npz"))

    if absence in ("not listed", "missing"):
        fewer = results.only(lambda entry: not is_gone(entry))
        gone = [Rejected(c.id, "missing video", c.model, c.subset, missing=True) for c in results.cases if is_gone(c)]
        fewer = Results(fewer.cases, fewer.records, gone if absence == "missing" else (), asks=results.asks)
    else:
        fewer = results.mapped(lose)
    made = summarise(fewer)
    assert places(made) == [("good", 1), ("poor", 2)] == places(summarise(results))
    dimension = made["mbench"]["dimensions"]["judged_progress"]
    assert dimension["on_shared"]["good"]["n"] == dimension["on_shared"]["poor"]["n"] == 3
    assert dimension["models"]["good"]["n"] == 4, "its own list stays as the public evaluator averages it"
    rows = {row["model"]: row for row in made["mbench"]["ranking"]}
    for model, score in (("good", 0.7), ("poor", 0.6)):
        expected = 100 * (score if setting == "A" else harmonic_mean_or_zero(score, 1))
        assert rows[model]["total"] == pytest.approx([expected, expected])
    assert rows["good"]["own"]["total"][0] < rows["good"]["total"][0]
    (sentence,) = [sentence for sentence in made["sentences"] if "lack items" in sentence]
    assert "(poor 1), so tables and ranks are on the 3 of 4 that all compared models have" in sentence
    table = next(table for table in made["tables"] if "MBench" in table["title"])
    assert table["note"].endswith("on the items that all compared models have")
    own = {row["name"].split(". ")[1]: row["cells"][-1]["mean"] for row in table["rows"]}
    assert table["columns"][-1] == "total on its own list"
    assert own["good"] == pytest.approx(rows["good"]["own"]["total"][0])


def test_models_with_the_same_items_are_compared_on_all_of_them():
    """An item that no model has is missing to all, and counts in every denominator."""
    results = made_up("T", {"good": 0.7, "poor": 0.2}, {"good": "open", "poor": "open"})
    gone = [Rejected(f"causal:x:c@{m}", "missing video: x", m, "causal", missing=True) for m in ("good", "poor")]
    made = summarise(Results(results.cases, results.records, gone, asks=results.asks))
    assert not any("lack items" in sentence for sentence in made["sentences"])
    assert not any("own list" in title for table in made["tables"] for title in table["columns"])
    row = made["mbench"]["ranking"][0]
    assert row["causal"] == pytest.approx([100 * harmonic_mean_or_zero(0.7, 2 / 3)] * 2)
    assert row["own"]["total"] == row["total"]


def test_a_model_with_few_items_is_not_ranked_and_takes_none_from_the_others():
    scores = {"few": 0.9, "good": 0.7, "poor": 0.6}
    results = with_hard_item(made_up("A", scores, dict.fromkeys(scores, "open"), per=4))
    made = summarise(results.only(lambda entry: entry.model != "few" or ":s0:" in entry.id))
    assert places(made) == [("good", 1), ("poor", 2), ("few", None)]
    assert "few is not ranked: it has 4 videos, fewer than half of the median model's 16" in made["sentences"]
    assert made["mbench"]["ranking"][0]["total"] == pytest.approx([52.5, 52.5]), "over all four items"


def test_a_model_without_a_subset_is_named_and_its_dimensions_are_left_out_for_all():
    results = made_up("A", {"good": 0.7, "poor": 0.2}, {"good": "open", "poor": "open"}, per=4)
    made = summarise(results.only(lambda entry: entry.model == "good" or not entry.id.startswith("human")))
    assert (
        "poor: no value for human identity and human appearance; axes and total leave them out for all models"
        in made["sentences"]
    )
    good = made["mbench"]["dimensions"]["mb_human_identity"]["models"]["good"]
    assert good["n"] == 4, "the others keep their values in the columns"


def test_a_camera_that_rests_has_disobeyed():
    results = made_up("A", {"frozen": 1.0, "good": 0.7}, {"frozen": "closed", "good": "open"})
    made = summarise(results)["mbench"]["dimensions"]
    if "mb_camera_interaction" in made:
        assert made["mb_camera_interaction"]["models"]["frozen"]["reliability"] == 0, "not left out of the mean"
    assert made["judged_progress"]["models"]["frozen"]["reliability"] is None


def test_without_a_judge_nobody_is_ranked_and_there_is_no_m_score():
    results = made_up("T", {"frozen": 1.0, "good": 0.7}, {"frozen": "", "good": ""})
    made = summarise(results)
    assert made["mbench"]["rule"] == "all" and all(row["rank"] is None for row in made["mbench"]["ranking"])
    for entry in made["mbench"]["dimensions"].values():
        assert entry["models"]["good"]["m_score"] is None and entry["models"]["good"]["reliability"] == pytest.approx(
            0.7
        )
    assert any("no model is ranked" in sentence for sentence in made["sentences"])


def test_a_judge_that_fails_everywhere_leaves_everything_open():
    results = made_up("T", {"mute": 1.0, "good": 0.7}, {"mute": "failed", "good": "open"})
    made = summarise(results)
    mute = next(row for row in made["mbench"]["ranking"] if row["model"] == "mute")
    assert next(row for row in made["mbench"]["ranking"] if row["rank"] == 1)["model"] == "good"
    assert mute["rank"] is None, "nothing is known to pose the test"
    assert mute["order"][0] == 0 and mute["order"][1] == pytest.approx(100), "from never posed to always"
    entry = next(iter(made["mbench"]["dimensions"].values()))["models"]["mute"]
    assert entry["coverage"] == (0, 1) and entry["m_score"] is None


def test_a_model_without_a_score_where_others_have_one_gains_and_loses_nothing():
    results = made_up(
        "A", {"good": 0.7, "poor": 0.2, "frozen": 1.0}, {"good": "open", "poor": "open", "frozen": "closed"}
    )
    gone = "judged_correctness"
    ranking = summarise(without(results, gone, "good"))["mbench"]["ranking"]
    assert [row["model"] for row in ranking] == ["good", "poor", "frozen"] and ranking[0]["left_out"] == [gone]
    assert ranking[0]["causal"] == pytest.approx([70, 70]) and ranking[0]["own"]["causal"] is None


def test_missing_items_count_in_every_denominator():
    results = made_up("T", {"good": 0.7}, {"good": "open"})
    gone = [Rejected("causal:x:c@good", "missing video: x", "good", "causal", "c", missing=True)] * 2
    made = summarise(Results(results.cases, results.records, gone, asks=results.asks))
    entry = made["mbench"]["dimensions"]["judged_progress"]["models"]["good"]
    assert entry["of"] == 4 and entry["coverage"] == (0.5, 0.5) and entry["reliability"] == pytest.approx(0.7)
    assert made["coverage"]["good"]["causal"] == {"expected": 4, "found": 2, "missing": 2, "refused": 0}
    assert made["models"]["good"]["scores"]["judged_progress"]["of"] == 4


def test_an_unreadable_video_is_not_posed_and_a_silent_judge_is_not_an_unreadable_video():
    results = made_up("T", {"good": 0.7}, {"good": "open"}, per=1)

    def fail(record: Record) -> Record | None:
        if record.case.subset not in ("environment", "causal"):
            return None
        if record.case.subset == "causal" and record.question not in JUDGED:
            return None
        return record.with_changed_fields(status="failed", value=None, reason=Reason("failed", "no"))

    answers = answers_with_counting_rule(results.mapped(fail))
    verdicts = {case.subset: answers.posed[case.id] for case in results.cases if answers.posed[case.id]}
    assert verdicts["environment"].posed is False and verdicts["causal"].posed is None


def test_what_does_not_count_is_counted_by_kind():
    results = made_up(
        "T", {"shut": 0.7, "mute": 0.7, "good": 0.7}, {"shut": "closed", "mute": "unsure", "good": "open"}
    )
    scores = {model: made["scores"]["judged_progress"] for model, made in summarise(results)["models"].items()}
    assert scores["shut"] == {"n": 0, "of": 2, "failed": 0, "unscored": {"gate_closed": 2}}
    assert scores["mute"] == {"n": 0, "of": 2, "failed": 0, "unscored": {"undecided": 2}}
    assert (scores["good"]["n"], scores["good"]["mean"]) == (2, pytest.approx(0.7))


def test_how_the_engine_says_that_there_is_no_judge(tmp_path: Path, make_clip):
    from revisit.engine.dependencies import ObserverSet
    from revisit.observers.sets import load_roles
    from tests.mbench import small_dataset

    root = small_dataset(tmp_path, make_clip, setting="T")
    plan = make_plan(SUITES["mbench"], root, ObserverSet("lite", load_roles("lite")), metrics=[TRIGGER])
    assert plan.gates and not plan.metrics
    assert all(wanted.absent["trigger_answer"].kind == "no_judge" for wanted in plan.wanted.values())
