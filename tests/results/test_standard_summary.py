"""The tables that all suites share: one rule for coverage, for what was not asked, and for what is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import revisit.suites.memobench  # noqa: F401 - registers the metrics below
from revisit.core import Case, Clip, Reason, Record, Rejected, Target
from revisit.results import Results
from revisit.results.funnel import count_funnel_stages, count_testable_and_all
from revisit.results.tables import standard_summary

SCORED, LACKING = "memo_psnr", "memo_lpips"
NOT_HERE = Reason("not_in_set", "needs a network")


def case(sample: str, model: str = "m", **facts: Any) -> Case:
    return Case(f"{sample}@{model}", "folder", model, sample, Clip(Path("a.mp4")), **facts)


def scored(case: Case, value: float = 1.0, metric: str = SCORED) -> Record:
    return Record(case, metric, False, "scored", value, protocol="p:1")


def unscored(case: Case, reason: Reason, metric: str = SCORED) -> Record:
    return Record(case, metric, False, "unscored", reason=reason)


def failed(case: Case, metric: str = SCORED) -> Record:
    return Record(case, metric, False, "failed", reason=Reason("failed", "it is text"))


def test_coverage_is_of_all_clips_asked_for_and_reasons_count_by_kind() -> None:
    cases = [case(name, subset="A") for name in "abcd"]
    records = [
        scored(cases[0], 10.0),
        unscored(cases[1], Reason("too_short", "3 frames")),
        unscored(cases[2], Reason("too_short", "4 frames")),
        failed(cases[3]),
    ]
    lacking = [Rejected("e@m", "nobody made it", "m", "A", missing=True), Rejected("f@m", "odd", "m", "B")]
    results = Results(cases, records, lacking)
    made = standard_summary(results, parts={name: results.where(subset=name) for name in "ABC"})
    assert made["models"]["m"]["scores"][SCORED] == {
        "n": 1, "of": 6, "failed": 1, "mean": 10.0, "interval": None, "unscored": {"missing": 2, "too_short": 2},
    }  # fmt: skip
    assert made["failed"] == [{"case": "d@m", "reason": "it is text"}]
    missing = {"id": "A@m", "reason": "1 clip is missing: e", "missing": True}
    assert made["rejected"] == [{"id": "f@m", "reason": "odd"}, missing]
    assert made["coverage"]["m"] == {
        "A": {"expected": 5, "found": 4, "missing": 1, "refused": 0},
        "B": {"expected": 1, "found": 0, "missing": 0, "refused": 1},
    }
    assert {name: part["models"]["m"]["scores"][SCORED]["of"] for name, part in made["parts"].items()} == {
        "A": 5,
        "B": 1,
    }


def test_what_nobody_could_be_asked_has_no_column_even_beside_a_broken_clip() -> None:
    cases = [case("a"), case("b"), case("c")]
    results = Results(
        cases,
        [
            *(scored(one) for one in cases),
            unscored(cases[0], NOT_HERE, LACKING),
            unscored(cases[1], Reason("not_in_set", "needs another network"), LACKING),
            failed(cases[2], LACKING),
        ],
    )
    made = standard_summary(results)
    assert [*made["metrics"]] == [SCORED] and made["not_asked"] == {LACKING: "needs a network"}
    assert "parts" not in made and "coverage" not in made
    first, *_ = results.records
    mixed = Results(cases, [first, unscored(cases[1], NOT_HERE)])
    assert [*standard_summary(mixed)["metrics"]] == [SCORED]  # one clip has a score


@pytest.mark.parametrize(("of_truth", "best"), [(0.6, None), (0.99, "resets")])
def test_a_reset_is_not_marked_as_best_where_it_looks_less_changed_than_the_truth(
    of_truth: float, best: str | None
) -> None:
    cases, records = [], []
    for k in range(9):
        truth = Case(f"{k}@truth", "folder", "truth", f"s{k}", Clip(Path(f"t{k}")), truth=True)
        models = [
            Case(f"{k}@{name}", "folder", name, f"s{k}", Clip(Path(f"{name}{k}")), reference=truth.clip)
            for name in ("goes on", "resets")
        ]
        cases += [truth, *models]
        for case, value in zip((truth, *models), (of_truth, 0.55, 0.98), strict=True):
            records.append(Record(case, "return_consistency", False, "scored", value + 0.001 * k**2 % 0.01))
    assert standard_summary(Results(cases, records))["metrics"]["return_consistency"]["best"] == best


def test_the_funnel_has_the_stages_that_were_asked() -> None:
    target = Target("cup", (0.1, 0.1, 0.2, 0.2))
    cases = [case("a", target=target), case("b", target=target), case("c", target=target)]

    def gate(case: Case, id: str, label: str) -> Record:
        return Record(case, id, True, "open", label=label)

    records = [
        gate(cases[0], "target_return", "hidden, returned"),
        gate(cases[1], "target_return", "hidden, not returned"),
        scored(cases[0], metric="target_identity"),
        failed(cases[2], "target_identity"),
    ]
    stages = count_funnel_stages(Results(cases, records))
    assert {stage["stage"]: stage["n"] for stage in stages} == {
        "all clips": 3, "readable": 2, "target given": 2, "target hidden": 2, "target returned": 1, "memory scored": 1,
    }  # fmt: skip
    assert count_testable_and_all(stages) == (1, 3)
    records += [Record(one, "look_away", True, state) for one, state in zip(cases[:2], ("closed", "open"), strict=True)]
    asked = {stage["stage"]: stage["n"] for stage in count_funnel_stages(Results(cases, records))}
    assert asked["camera looked away"] == 1
    assert asked["target hidden"] == 1 and asked["target returned"] == 0  # that one was hidden by something else
    assert count_testable_and_all(count_funnel_stages(Results(cases, [scored(cases[0])]))) is None
