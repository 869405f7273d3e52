"""Results: filters, means, pairs, ranks and exports, against libraries and sums that this project did not write."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from revisit.core import Case, Clip, Reason, Record, Rejected, UsageError
from revisit.core.cases import CEILING
from revisit.results import Results
from tests.stats.test_stats import by_scipy

RNG = np.random.default_rng(5)
SCORES = {"a": RNG.normal(30, 2, 9), "b": RNG.normal(30, 2, 9), "c": RNG.normal(20, 1, 9)}
SCORES["b"] = SCORES["a"] + RNG.normal(0.8, 0.5, 9)


def case(model: str, k: int) -> Case:
    where = {"subset": "xy"[k % 2], "annotations": {"speed": k // 3}}
    return Case(f"{k}@{model}", "folder", model, f"s{k}", Clip(Path("x")), **where)  # type: ignore[arg-type]


def made(metric: str = "psnr", without: tuple[tuple[str, int], ...] = ()) -> Results:
    cases = [case(model, k) for model in SCORES for k in range(9)]
    records = []
    for one in cases:
        k = int(one.sample[1:])
        if (one.model, k) in without:
            records.append(Record(one, metric, False, "unscored", reason=Reason("too_short", "one frame")))
        else:
            records.append(Record(one, metric, False, "scored", float(SCORES[one.model][k])))
    return Results(cases, records, [Rejected("9@c", "there is no clip", "c", missing=True)])


def test_a_mean_has_the_interval_of_scipy_and_counts_who_was_asked() -> None:
    cells = made(without=(("c", 4),)).mean("psnr")
    for model in ("a", "b"):
        assert cells[model].interval == pytest.approx(by_scipy(SCORES[model])[0], rel=1e-9)
        assert (cells[model].n, cells[model].of) == (9, 9)
    assert (cells["c"].n, cells["c"].of, cells["c"].unscored) == (8, 10, {"too_short": 1, "missing": 1})


def test_paired_differences_are_those_of_scipy_on_the_clips_both_have() -> None:
    paired = made(without=(("a", 0), ("b", 8))).paired("psnr", "a", "b")
    both = slice(1, 8)
    wanted, _ = by_scipy((SCORES["b"] - SCORES["a"])[both])
    assert len(paired.pairs) == 7 and paired.interval == pytest.approx(wanted, rel=1e-9)
    assert paired.difference == pytest.approx((SCORES["b"] - SCORES["a"])[both].mean())
    assert paired.wins == ((SCORES["b"] - SCORES["a"])[both] > 0).sum() and paired.wins + paired.losses == 7
    sizes = [abs(pair.difference) for pair in paired.pairs]
    assert sizes == sorted(sizes, reverse=True)
    nothing = made().paired("flicker", "a", "b")
    assert nothing.pairs == () and nothing.interval is None and nothing.better is None


def test_three_of_three_is_no_certainty_but_the_limit_of_a_measure_is_none_of_its_business() -> None:
    cases = [case("a", k) for k in range(3)]
    came = Results(cases, [Record(one, "target_reappearance", False, "scored", 1.0) for one in cases])
    interval = came.cell("target_reappearance").interval
    assert interval is not None and 0 < interval[0] < 0.5 and interval[1] == 1
    same = Results(cases, [Record(one, "ssim", False, "scored", 1.0) for one in cases])
    assert same.cell("ssim").interval is None and same.cell("ssim").few_scenes  # a rare failure may be yet unseen
    many = [case("a", k) for k in range(29)]
    assert Results(many, [Record(one, "ssim", False, "scored", 1.0) for one in many]).cell("ssim").interval == (1, 1)


def test_better_follows_the_direction_of_the_metric() -> None:
    assert made("psnr").paired("psnr", "c", "a").better == "a"
    assert made("flicker").paired("flicker", "c", "a").better == "c"  # less of it is better
    assert made("motion_amount").paired("motion_amount", "c", "a").better is None  # it describes


def test_ranks_are_by_common_clips_of_pairs_with_the_places_a_model_may_have() -> None:
    found = {rank.model: rank for rank in made().ranks("psnr")}
    assert [found[model].rank for model in ("b", "a", "c")] == [1, 2, 3]
    assert (found["c"].low, found["c"].high) == (3, 3)  # far behind both
    sure = made().paired("psnr", "a", "b").better == "b"
    assert (found["a"].low, found["a"].high) == ((2, 2) if sure else (1, 2))
    lacking = made(without=(("a", 3),))  # a clip that one lacks counts for the others
    assert {rank.model: rank.n for rank in lacking.ranks("psnr")} == {"a": 8, "b": 9, "c": 9}
    assert [rank.model for rank in lacking.ranks("psnr")] == ["b", "a", "c"]
    with pytest.raises(UsageError, match="without a better direction"):
        made("motion_amount").ranks("motion_amount")


def test_filters_take_fields_and_annotations() -> None:
    results = made()
    assert {one.sample for one in results.where(model="a", subset="y").cases} == {"s1", "s3", "s5", "s7"}
    assert len(results.where(speed=[0, 2]).records) == 18
    assert results.where(model="c").rejected and not results.where(model="a").rejected
    assert [len(part.cases) for part in results.groups("subset").values()] == [0, 15, 12]  # the missing clip has none
    with pytest.raises(UsageError, match="no clip has a fact called 'speeed'"):
        results.where(speeed=1)
    with pytest.raises(UsageError, match="no clip has a fact called 'speeed'"):
        results.groups("speeed")


def test_other_libraries_read_what_is_exported(tmp_path: Path) -> None:
    results = made(without=(("b", 2),))
    rows = list(csv.DictReader(io.StringIO(results.to_csv(tmp_path / "r.csv"))))
    assert len(rows) == 27 and (tmp_path / "r.csv").read_text() == results.to_csv()
    assert [float(row["value"]) for row in rows if row["model"] == "a"] == SCORES["a"].tolist()  # every digit
    pandas = pytest.importorskip("pandas")
    frame = results.to_frame()
    means = frame.groupby("model")["value"].mean()
    assert means["b"] == pytest.approx(results.mean("psnr")["b"].mean) and frame["reason_kind"].notna().sum() == 1
    assert isinstance(frame, pandas.DataFrame)
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(results.to_arrow(), tmp_path / "r.parquet")
    assert parquet.read_table(tmp_path / "r.parquet")["value"].to_pylist() == [r.value for r in results.records]


def test_cases_that_are_asked_different_things_are_counted_each_under_its_own() -> None:
    first, second, third = (case(model, k) for model, k in (("a", 0), ("a", 1), ("b", 0)))
    short = Reason("too_short", "one frame")
    whole = Results(
        [first, second, third],
        [
            Record(first, "ssim", False, "scored", 0.25), Record(second, "psnr", False, "unscored", reason=short),
            Record(second, "ssim", False, "failed", reason=Reason("failed", "no")),
            Record(third, "camera_moved", True, "open", label="moves"), Record(third, "ssim", False, "scored", 0.75),
        ],
    )  # fmt: skip
    assert (whole.metrics, whole.gates) == (["ssim", "psnr"], ["camera_moved"])
    part = whole.where(model="a")
    assert (part.metrics, part.gates) == (["ssim", "psnr"], []) and part.records_for("camera_moved") == []
    cell = part.cell("ssim")
    assert (cell.n, cell.of, cell.mean, cell.failed, cell.unscored) == (1, 2, 0.25, 1, {})
    assert (part.cell("psnr").n, part.cell("psnr").unscored) == (0, {"too_short": 1})
    assert whole.where(model="b").metrics == ["ssim"] and whole.cell("ssim").mean == 0.5
    assert [record.case.id for record in part.failures] == [second.id]


def test_a_rendered_ceiling_stands_for_the_truth_where_nothing_has_a_reference() -> None:
    def case(model: str, condition: str, *, ceiling: bool = False) -> Case:
        clip = Clip(Path(f"{model}-{condition}.mp4"))
        notes = {"category": CEILING} if ceiling else {}
        return Case(
            f"{condition}@{model}", "wrbench", model, "s", clip, condition=condition, annotations=notes, truth=ceiling
        )

    cases = [case("pan", "left"), case("pan", "right"), *(case("rendered", c, ceiling=True) for c in ("left", "right"))]
    results = Results(cases, [Record(one, "visual", False, "scored", 0.5) for one in cases])
    assert results.truth_name == "rendered" and len(results.truth.cases) == 2
    assert [one.condition for one in results.where(condition="left").truth.cases] == ["left"]
    assert len(results.asking("visual").truth.records) == 2


def test_a_ceiling_that_is_the_reference_of_other_clips_says_nothing_of_those_without_one() -> None:
    truth = Clip(Path("truth.mp4"))
    gt = Case("s@gt", "folder", "gt", "s", truth, annotations={"category": CEILING}, truth=True)
    compared = Case("s@a", "folder", "a", "s", Clip(Path("a.mp4")), reference=truth)
    alone = Case("s@b", "folder", "b", "s", Clip(Path("b.mp4")))
    results = Results(
        [compared, alone, gt], [Record(one, "visual", False, "scored", 0.5) for one in (compared, alone, gt)]
    )
    assert len(results.where(model="a").truth.cases) == 1 and not results.where(model="b").truth.cases
