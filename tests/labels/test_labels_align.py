"""Simulated raters with known noise: planted rankings, agreement, tie regions, reversals and judgeability come back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from revisit.core import Case, Clip, Record, UsageError
from revisit.labels import formats
from revisit.labels.agreement import agreement_report, rater_qualities
from revisit.labels.alignment import majority_votes, people_alignment
from revisit.labels.items import (
    compared_dimensions,
    items_of_task,
    sample_items,
    sample_least_certain,
    sample_survey_questions,
)
from revisit.labels.label import CANNOT, Box, Label, label_lines, read_label_files
from revisit.labels.label_files import label_export_files, preference_pairs, review_decisions, targets_by_clip
from revisit.labels.tables import agreement_tables, alignment_tables
from revisit.results import Results

MODELS = ("a", "b", "c", "d", "e")
WORTH = dict(zip(MODELS, (1.5, 0.8, 0.0, -0.7, -1.4), strict=True))
METRIC, DIMENSION = "return_consistency", "same_look"


def case(sample: str, model: str, subset: str = "", suite: str = "folder", **facts) -> Case:
    return Case(
        f"{sample}@{model}#0", suite, model, sample, Clip(Path(f"/videos/{model}/{sample}.mp4")), subset=subset, **facts
    )


def vote(one: Case, other: Case, answer: str, rater: str = "r1", question: str = DIMENSION, **more) -> Label:
    return Label(
        "pairwise", f"{one.id}|{other.id}", rater, question, answer, one.id, one.model, one.sample, one.subset,
        other=other.id, other_model=other.model, dimension=question, **more,
    )  # fmt: skip


def results(cases: Sequence[Case], scores: dict[str, float], gates: dict[str, str] | None = None) -> Results:
    records = [Record(c, METRIC, False, "scored", scores[c.id]) for c in cases if c.id in scores]
    records += [Record(c, "target_return", True, gates[c.id]) for c in cases if gates and c.id in gates]
    return Results(cases, records)


def study(seed: int, scenes: int = 24, raters: int = 3, noise: float = 1.0) -> tuple[Results, list[Label]]:
    """Models of known worth; raters and the metric see it with noise; small differences are ties to people."""
    rng = np.random.default_rng(seed)
    cases = [case(f"s{k}", model) for k in range(scenes) for model in MODELS]
    seen = {c.id: WORTH[c.model] + rng.normal(0, 0.3) for c in cases}
    scores = {id: 0.5 + 0.15 * value + rng.normal(0, 0.02) for id, value in seen.items()}
    by = {c.id: c for c in cases}
    labels = []
    for k in range(scenes):
        for x, y in combinations(MODELS, 2):
            one, other = by[f"s{k}@{x}#0"], by[f"s{k}@{y}#0"]
            if rng.random() < 0.5:
                one, other = other, one
            for rater in range(raters):
                gap = seen[one.id] - seen[other.id] + rng.normal(0, noise)
                labels.append(vote(one, other, "tie" if abs(gap) < 0.5 else "a" if gap > 0 else "b", f"r{rater}"))
    return results(cases, scores), labels


def test_a_planted_ranking_is_recovered_with_its_intervals():
    run, labels = study(1)
    found = people_alignment(run, labels)
    bridge: Any = found.bridges[0]
    assert (bridge.dimension, bridge.metric) == (DIMENSION, METRIC)
    assert bridge.win_ratios.rho == pytest.approx(1) and bridge.win_ratios.tau == pytest.approx(1)
    strengths: Any = {one["model"]: one for one in found.strengths[DIMENSION]["models"]}
    assert [one["model"] for one in found.strengths[DIMENSION]["models"]] == list(MODELS)
    assert strengths["a"]["low"] > strengths["c"]["high"] > strengths["e"]["high"]
    assert bridge.holdout["n"] + bridge.fitted_on == bridge.bridged
    assert bridge.holdout["reversals"] / bridge.holdout["preferred"] < 0.1
    assert bridge.rho > 0.6 and bridge.holdout_rho > 0.6
    noise: Any = people_alignment(
        run.mapped(lambda r: Record(r.case, METRIC, False, "scored", crc32(r.case.id.encode()) % 97 / 97)), labels
    )
    assert abs(noise.bridges[0].rho) < 0.25  # a metric that knows nothing agrees with nobody


def test_planted_agreement_is_within_the_interval():
    """AC1 of one study is within its interval about that of a study of twelve times as many scenes."""
    truth: Any = agreement_report(study(99, 120)[1]).rows[0]
    inside = 0
    for seed in range(12):
        row: Any = agreement_report(study(seed, 10)[1]).rows[0]
        inside += row.ac1.interval[0] <= truth.ac1.value <= row.ac1.interval[1]
    assert inside >= 10
    assert truth.ac2.value > truth.ac1.value and truth.alpha_ordinal.value > truth.alpha.value


def test_votes_in_closed_form():
    """Majorities, full ties, both bad, cannot judge, win ratios, reversals: counted by hand."""
    cases = [case(f"s{k}", m) for k in range(4) for m in "xyz"]
    by = {c.id: c for c in cases}
    scores = {f"s{k}@{m}#0": {"x": 0.9, "y": 0.5, "z": 0.4}[m] for k in range(4) for m in "xyz"}

    def said(k: int, one: str, other: str, answers: str) -> list[Label]:
        names = {"a": "a", "b": "b", "t": "tie", "n": "both_bad", "?": "cannot_judge"}
        pair = by[f"s{k}@{one}#0"], by[f"s{k}@{other}#0"]
        return [vote(*pair, names[answer], f"r{n}") for n, answer in enumerate(answers)]

    labels = [
        *said(0, "x", "y", "aab"), *said(0, "x", "z", "abt"), *said(0, "y", "z", "bb?"),
        *said(1, "x", "y", "nta"), *said(1, "x", "z", "a??"), *said(2, "y", "z", "ab"), *said(3, "y", "z", "???"),
    ]  # fmt: skip
    votes = {(v.case[:2], v.model, v.other_model): v.verdict for v in majority_votes(labels)}
    assert votes == {
        ("s0", "x", "y"): 1, ("s0", "x", "z"): None, ("s0", "y", "z"): -1, ("s1", "x", "y"): 0, ("s1", "x", "z"): 1,
        ("s2", "y", "z"): None,
    }  # fmt: skip
    found = people_alignment(results(cases, scores), labels)
    assert found.split_votes == 2
    bridge = found.bridges[0]
    assert (bridge.pairs, bridge.bridged) == (4, 4)
    assert bridge.win_ratios.people == {"x": 2.5 / 3, "y": 0.5 / 3, "z": 0.5}
    assert bridge.win_ratios.metric == {"x": 1.0, "y": 1 / 3, "z": 0.0}
    assert bridge.holdout is None  # two scenes cannot be split to fit and to report


def test_less_is_better_is_turned_round():
    cases = [case(f"s{k}", m) for k in range(3) for m in "xy"]
    by = {c.id: c for c in cases}
    records = [Record(c, "flicker", False, "scored", 0.1 if c.model == "x" else 0.4) for c in cases]
    labels = [vote(by[f"s{k}@x#0"], by[f"s{k}@y#0"], "a", question="integrity") for k in range(3)]
    from revisit.core import METRICS

    assert METRICS["flicker"].higher_is_better is False
    found = people_alignment(Results(cases, records), labels, {"integrity": ["flicker"]})
    assert found.bridges[0].win_ratios.metric == {"x": 1.0, "y": 0.0}


def test_judgeable_or_not_follows_the_gate():
    cases = [case(f"s{k}", m) for k in range(4) for m in "xy"]
    by = {c.id: c for c in cases}
    scores = {c.id: 0.5 + 0.1 * (c.model == "x") for c in cases}
    gates = {c.id: "open" for c in cases} | {"s0@y#0": "closed", "s1@y#0": "closed", "s2@y#0": "unsure"}
    labels = []
    for k, whose in enumerate(("both", "a", "a", "neither")):
        pair = by[f"s{k}@x#0"], by[f"s{k}@y#0"]
        labels += [vote(*pair, whose, question="judgeable"), vote(*pair, "a")]
    found = people_alignment(results(cases, scores, gates), labels).bridges[0].judgeable
    # judgeable by people: x of s0, s1, s2 (gate open) and y of s0 (closed); not: y of s1 (closed), x and y of s3
    # (open); the gate could not decide on y of s2
    assert found == {
        "judgeable": 3 / 4, "not_judgeable": 1 / 3, "balanced": (3 / 4 + 1 / 3) / 2, "n_judgeable": 4, "n_not": 3,
    }  # fmt: skip


def test_triggers_as_in_the_papers_table():
    cases = [case(f"s{k}", "m", "object" if k < 5 else "human") for k in range(8)]
    gates = {c.id: "open" if k in (0, 1, 2, 5, 6) else "closed" for k, c in enumerate(cases)}
    right = [True, True, False, True, False, True, True, False]
    labels = []
    for c, yes in zip(cases, right, strict=True):
        for rater, answer in (("r1", yes), ("r2", yes), ("r3", not yes)):
            said = "yes" if answer else "no"
            labels.append(Label("trigger", c.id, rater, "trigger", said, c.id, c.model, c.sample, c.subset))
    found = people_alignment(results(cases, {}, gates), labels).triggers
    assert list(found) == ["object", "human", "all"]
    assert (found["object"]["accuracy"], found["object"]["precision"], found["object"]["recall"]) == (
        3 / 5,
        2 / 3,
        2 / 3,
    )
    assert found["human"]["f1"] == 1 and found["all"]["n"] == 8
    assert found["all"]["accuracy"] == 6 / 8
    for undecided, why in (({}, "the run asked no gate"), (dict.fromkeys(gates, "unsure"), "decided none")):
        nothing = people_alignment(results(cases, {}, undecided), labels)
        assert not nothing.triggers and any(why in note for note in nothing.notes)


def test_answers_against_the_bank_by_scene_and_dimension():
    labels = []
    for scene in ("Barn", "Lake"):
        for n, (dimension, polarity, said) in enumerate(
            [("CM", "positive", "yyn"), ("CM", "negative", "yyn"), ("PA", "positive", "yn"), ("PA", "negative", "nnn")]
        ):
            for rater, answer in enumerate(said):
                word = {"y": "yes", "n": "no"}[answer]
                labels.append(
                    Label("answer", f"{scene}{n}", f"r{rater}", str(n), word, f"{scene}@reference", "reference", scene,
                          dimension=dimension, polarity=polarity)
                )  # fmt: skip
    found = people_alignment(results([case("Barn", "m")], {}), labels).answers
    assert found["heat"] == {s: {"CM": (0.5, 2), "PA": (1.0, 1)} for s in ("Barn", "Lake")}
    assert (found["questions"], found["left_out"], found["agreement"]) == (6, 2, 4 / 6)
    assert any(
        "figure 4" in table["note"]
        for table in alignment_tables(people_alignment(results([case("Barn", "m")], {}), labels))
    )


def test_labels_of_another_run_are_refused():
    run, _ = study(0, 2)
    with pytest.raises(UsageError, match="none of the labels"):
        people_alignment(run, [vote(case("other", "q"), case("other", "r"), "a")])


def test_raters_who_guess_are_seen():
    rng = np.random.default_rng(3)
    _, labels = study(3, 20, noise=0.3)
    guesses = [
        vote(
            case(one.sample, one.model), case(one.sample, one.other_model), str(rng.choice(["a", "tie", "b"])),
            "guesser", right="a", swapped=bool(rng.integers(2)),
        )
        for one in labels
        if one.rater == "r0"
    ]  # fmt: skip
    known: Any = {one.rater: one for one in rater_qualities([*labels, *guesses])}
    assert known["guesser"].agrees < 0.5 < known["r0"].agrees and known["guesser"].kappa < 0.15
    assert known["guesser"].gold == len(guesses) and known["guesser"].gold_interval[1] < 0.5
    assert known["r0"].gold_right is None and 0.35 < known["guesser"].left < 0.65


def test_of_several_answers_of_a_rater_the_last_counts_also_where_it_is_none():
    one, other = case("s0", "a"), case("s0", "b")
    first = [vote(one, other, "a", rater) for rater in ("r0", "r1", "r2")]
    row: Any = agreement_report([*first, vote(one, other, "b", "r1"), vote(one, other, CANNOT, "r2")]).rows[0]
    assert (row.items, row.ratings, row.alike) == (1, 2, 0.0)


def test_examples_are_in_no_figure():
    _, labels = study(2, 4)
    practice = [vote(case("s0", "a"), case("s0", "b"), "b", "r0", example=True, right="a") for _ in range(50)]
    assert agreement_report([*labels, *practice]).rows == agreement_report(labels).rows
    assert agreement_report([*labels, *practice]).examples == 50
    assert preference_pairs([*labels], {}) == preference_pairs(
        [one for one in [*labels, *practice] if not one.example], {}
    )


def test_preferences_for_training():
    _, labels = study(4, 3)
    pairs = preference_pairs(labels, {"s0@a#0": case("s0", "a", prompt="Turn away.")})
    assert pairs and all(pair["votes"].get("a", 0) * 2 > 3 or pair["votes"].get("b", 0) * 2 > 3 for pair in pairs)
    first = next(pair for pair in pairs if pair["chosen"]["case"] == "s0@a#0")
    assert first["rule"]["by"] == "people" and first["dimension"] == DIMENSION
    split_ = [
        vote(case("s0", "a"), case("s0", "b"), answer, f"r{k}") for k, answer in enumerate(("a", "b", "tie", "a"))
    ]
    assert preference_pairs(split_, {}) == []  # half is no majority


def test_marks_of_several_raters_become_one():
    c = case("cup", "wan")
    made = []
    for rater, verdict, frames, x in (
        ("r1", "hidden, returned", {"gone": 10, "back": 20}, 0.1),
        ("r2", "hidden, returned", {"gone": 12, "back": 26}, 0.2),
        ("r3", "hidden, returned", {"gone": 11, "back": 21}, 0.12), ("r4", "never hidden", {}, 0.9),
    ):  # fmt: skip
        box = Box("mug" if rater == "r1" else "cup", (x, 0.2, 0.95, 0.5))
        made.append(
            Label(
                "marks",
                "m",
                rater,
                "target",
                verdict,
                c.id,
                "wan",
                "cup",
                clip=str(c.clip.path),
                frames=frames,
                boxes=(box,),
            )
        )
    found = targets_by_clip(made)["cup"]
    assert found["gate"] == "hidden, returned" and found["target"] == "cup" and found["raters"] == 4
    assert (found["first_hidden_frame"], found["first_returned_frame"]) == (11, 21)
    assert found["box"] == [0.16, 0.2, 0.95, 0.5]
    assert targets_by_clip([made[0], made[3]])["cup"]["gate"] == "borderline"


def test_shapes_of_other_tools(tmp_path):
    _, labels = study(5, 2)
    trigger = Label(
        "trigger",
        "t",
        "r1",
        "trigger",
        "yes",
        "object:s0:left_10s@a",
        "a",
        "s0",
        "object",
        "left_10s",
        dimension="trigger",
    )
    rows = formats.wrbench_rows(labels)
    assert {row["y"] for row in rows} == {-1, 0, 1} and all(row["judgeable"] for row in rows)
    back = formats.labels_from_rows(rows, "wrbench")
    assert [(one.case, one.other, one.rater, one.answer) for one in back] == [
        (one.case, one.other, one.rater, one.answer) for one in labels
    ]
    assert agreement_report(back).rows[0].ac1.value == agreement_report(labels).rows[0].ac1.value
    mbench = formats.labels_from_rows(formats.mbench_rows([trigger, *labels]), "mbench")
    assert (mbench[0].case, mbench[0].answer, mbench[0].task) == ("object:s0:left_10s@a", "yes", "trigger")
    assert [one.answer for one in mbench[1:]] == [one.answer for one in labels]
    marks = Label(
        "marks", "m", "r1", "target", "hidden, returned", "cup@wan", "wan", "cup", clip="cup.mp4", seconds=4.5,
        frames={"gone": 10, "back": 20}, boxes=(Box("cup", (0.125, 0.25, 0.5, 0.75)),), comment="ok <b>",
    )  # fmt: skip
    tasks = json.loads(json.dumps(formats.label_studio_tasks([marks, trigger])))
    region = next(one for one in tasks[0]["annotations"][0]["result"] if one["type"] == "videorectangle")
    assert region["value"]["sequence"][0] == {
        "frame": 1, "enabled": True, "rotation": 0, "time": 0, "x": 12.5, "y": 25.0, "width": 37.5, "height": 50.0,
    }  # fmt: skip
    found = formats.labels_from_label_studio(tasks)
    assert (found[0].frames, found[0].boxes, found[0].comment, found[0].seconds) == (
        marks.frames,
        marks.boxes,
        "ok <b>",
        4.5,
    )
    # as Label Studio itself exports: a number for who did it, one range while hidden, a skipped annotation
    foreign = [{"id": 7, "data": {"video": "/data/cup.mp4", "task": "marks"}, "annotations": [
        {"completed_by": 3, "was_cancelled": False, "lead_time": 12.1, "result": [
            {"type": "choices", "from_name": "target", "to_name": "video", "value": {"choices": ["hidden, returned"]}},
            {"type": "timelinelabels", "from_name": "t", "to_name": "video",
             "value": {"ranges": [{"start": 11, "end": 20}], "timelinelabels": ["hidden"]}}]},
        {"completed_by": 4, "was_cancelled": True, "result": []}]}]  # fmt: skip
    assert formats.labels_from_label_studio(foreign)[0].frames == {"gone": 10, "back": 20}
    assert (
        formats.labels_from_label_studio(foreign)[0].rater == "3"
        and formats.labels_from_label_studio(foreign)[0].case == "cup"
    )
    odd: list[Any] = [{}, [{"data": 3}], [{"data": {"video": "x", "task": "nonsense"}}]]
    for wrong in odd:
        with pytest.raises(UsageError):
            formats.labels_from_label_studio(wrong)
    with pytest.raises(UsageError, match="row 1"):
        formats.labels_from_rows([{"y": 5}], "wrbench")


def test_parquet_and_all_files(tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    _, labels = study(6, 2)
    review = [
        Label("review", "q", f"r{k}", "4", answer, "s0@a#0", "a", "s0", comment="why", text=text)
        for k, (answer, text) in enumerate((("edit", "New?"), ("edit", "New?"), ("keep", "Old?")))
    ]
    files = label_export_files([*labels, *review], tmp_path)
    (tmp_path / "labels.parquet").write_bytes(files["labels.parquet"])
    table = pyarrow.read_table(tmp_path / "labels.parquet").to_pylist()
    assert len(table) == len(labels) + 3 and table[0]["answer"] == labels[0].answer and table[-1]["comment"] == "why"
    (tmp_path / "labels.jsonl").write_text(files["labels.jsonl"])
    assert [one.answer for one in read_label_files([tmp_path])] == [row["answer"] for row in table]
    assert (
        review_decisions(review)["s0"]["4"]["decision"] == "edit"
        and review_decisions(review)["s0"]["4"]["text"] == "New?"
    )
    assert {
        "wrbench_labels.jsonl",
        "mbench_labels.jsonl",
        "preferences.jsonl",
        "label_studio.json",
        "reviews.json",
    } <= set(files)
    assert "targets.json" not in files and "marks.csv" not in files
    assert list(label_lines(labels[:1], tmp_path))


def test_samples_are_balanced_over_models_and_conditions():
    cases = [case(f"s{k}", m, condition="left" if k % 2 else "right") for k in range(12) for m in MODELS]
    items = items_of_task("pairwise", cases)
    assert len(items) == 120
    chosen = sample_items(items, "balanced", 40, seed=3)
    strata = {s: sum(item.stratum == s for item in chosen) for s in {item.stratum for item in items}}
    assert set(strata.values()) == {2}  # ten pairs of models, two conditions
    assert len({item.id for item in chosen}) == 40
    assert sample_items(items, "balanced", 40, seed=3) == chosen != sample_items(items, "balanced", 40, seed=4)
    scenes = sample_items(items, "scenes", 24)
    assert all(sum(item.scene == f"s{k}" for item in scenes) == 2 for k in range(12))
    run: Any = study(1, 12)[0]
    doubtful = sample_least_certain(items_of_task("pairwise", list(run.cases)), [run], METRIC, 10)
    gaps = [abs(run.score(i.cases[0], METRIC) - run.score(i.cases[1], METRIC)) for i in doubtful]
    every = [
        abs(run.score(i.cases[0], METRIC) - run.score(i.cases[1], METRIC))
        for i in items_of_task("pairwise", list(run.cases))
    ]
    assert gaps == sorted(every)[:10]
    with pytest.raises(UsageError, match="unknown sampling rule"):
        sample_items(items, "best", 3)


def test_a_survey_has_so_many_questions_a_scene_over_interleaved_forms():
    """MemoBench's: 8 questions of each of 12 scenes, four dimensions, both polarities, four forms."""
    dimensions = ("IF", "OB", "CM", "PA")
    cases = []
    for k in range(12):
        bank = [
            {"id": n, "dimension": dimensions[n % 4], "positive": n // 4 % 2 == 0, "text": f"Question {n}?"}
            for n in range(20)
        ]
        cases.append(case(f"Scene{k}", "reference", annotations={"questions": bank}))
    items = sample_survey_questions(items_of_task("answer", cases), 8, 4)
    assert len({item.id for item in items}) == len(items) == 48
    asked = [(item.scene, question.id, item.form) for item in items for question in item.questions]
    assert len(asked) == 96 == len({(scene, id) for scene, id, _ in asked})
    for form in range(4):
        assert sum(one[2] == form for one in asked) == 24
        assert {scene for scene, _, f in asked if f == form} == {f"Scene{k}" for k in range(12)}
    for scene in {item.scene for item in items}:
        mine = [question for item in items if item.scene == scene for question in item.questions]
        assert {d: sum(q.dimension == d for q in mine) for d in dimensions} == dict.fromkeys(dimensions, 2)
        assert {q.polarity for q in mine} == {"positive", "negative"}


def test_dimensions_of_every_suite_have_metrics_that_exist():
    from revisit.core import METRICS, SUITES

    for suite in ("folder", "memobench", "wrbench", "mbench", "mind"):
        found = compared_dimensions(suite)
        assert found and len({d.id for d in found}) == len(found)
        for dimension in found:
            assert dimension.text.endswith("?")
            assert all(metric in METRICS for metric in dimension.metrics), dimension
    assert {d.subset for d in compared_dimensions("mbench")} == {"human", "object", "environment", "causal"}
    assert "object" in SUITES["mbench"].card["people"]["triggers"]


def test_tables_say_what_they_are():
    run, labels = study(1, 6)
    tables = [*alignment_tables(people_alignment(run, labels)), *agreement_tables(agreement_report(labels))]
    titles = [table["title"] for table in tables]
    assert titles == [
        "Metric and people: win ratios of models", "Metric and people: pairs", "Win ratios",
        "Strengths by people's preferences", "Agreement of raters", "Raters",
    ]  # fmt: skip
    for table in tables:
        assert all(len(row["cells"]) == len(table["columns"]) for row in table["rows"])


def test_pairs_that_drop_out_are_counted_by_their_reasons():
    from revisit.core.reasons import Reason

    cases = [case(f"s{k}", model) for k in range(6) for model in "ab"]
    scores = {c.id: 0.9 if c.model == "a" else 0.4 for c in cases if c.sample in ("s0", "s1", "s2")}
    records = [Record(c, METRIC, False, "scored", scores[c.id]) for c in cases if c.id in scores]
    records += [
        Record(c, METRIC, False, "unscored", reason=Reason("gate_closed", "the camera stays"))
        for c in cases
        if c.sample in ("s3", "s4")
    ]
    labels = [vote(cases[2 * k], cases[2 * k + 1], "a", rater) for k in range(5) for rater in ("r1", "r2")]
    labels += [vote(cases[10], cases[11], "cannot_judge", rater) for rater in ("r1", "r2")]
    run = Results(cases, records)
    found = people_alignment(run, labels, {DIMENSION: [METRIC, "psnr"]})
    assert (found.bridges[0].pairs, found.bridges[0].bridged, found.bridges[0].left_out) == (
        5,
        3,
        {"test not posed": 2},
    )
    assert found.notes == (
        "1 of 6 questions about pairs: nobody could judge them",
        f"{DIMENSION}: the run did not ask psnr",
        f"{DIMENSION}: {METRIC} compares 3 of 5 pairs with a verdict of people; left out, a clip without a score: "
        "test not posed 2",
    )


@pytest.mark.parametrize("things", [1, 2, 3])
def test_too_few_things_give_no_coefficient(things):
    labels = []
    for k in range(things):
        one, other = case(f"s{k}", "a"), case(f"s{k}", "b")
        labels += [vote(one, other, "a", "r1"), vote(one, other, "b", "r2")]
    row = agreement_report(labels).rows[0]
    values = [one.value for one in (row.ac1, row.ac2, row.fleiss, row.alpha) if one is not None]
    assert (row.rated_twice, row.alike) == (things, 0.0)
    cells = agreement_tables(agreement_report(labels))[0]["rows"][0]["cells"]
    if things < 3:
        assert values == [None] * 4 and cells[4:] == ["too few"] * 6
    else:
        assert all(value is not None and value < 0 for value in values) and "too few" not in cells


def test_who_cannot_judge_neither_agrees_nor_disagrees():
    def votes(rater: str, answers: str) -> list[Any]:
        names = {"a": "a", "b": "b", "-": CANNOT}
        return [vote(case(f"s{k}", "x"), case(f"s{k}", "y"), names[one], rater) for k, one in enumerate(answers)]

    known = {one.rater: one for one in rater_qualities([*votes("r", "aabb-a"), *votes("q", "abbba-")])}
    assert (known["r"].compared, known["r"].agrees) == (4, 0.75)  # the last two have one answer each
    assert known["r"].kappa == pytest.approx(0.5) and known["r"].cannot == pytest.approx(1 / 6)


def test_pairs_without_a_dimension_of_their_subset_are_left_out():
    """A dimension of another subset than the first pair's ended with an IndexError."""
    cases = [
        Case(f"{subset}:s@{model}", "mbench", model, "s", Clip(Path("x.mp4")), subset=subset)
        for subset in ("human", "object")
        for model in ("a", "b")
    ]
    (item,) = items_of_task("pairwise", cases, dimensions=["object_texture"])
    assert item.cases == ("object:s@a", "object:s@b")
    with pytest.raises(UsageError, match="no clip of these runs is compared in object_texture"):
        items_of_task("pairwise", cases[:2], dimensions=["object_texture"])
