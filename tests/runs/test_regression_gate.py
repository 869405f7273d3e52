"""The gate: identical runs pass, what was lost fails, and collapses are tested instead of counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from revisit.core import Case, Clip, Reason, Record, UsageError, import_registering_modules
from revisit.results import Results
from revisit.results.compare import Contender, compare_coverage, compare_with_first, correct_coverage_p_values_by_holm
from revisit.results.pairing import rank_models_by_scores
from revisit.results.run import Run
from revisit.runs.comparability import (
    RegressionGate,
    Side,
    SideComparison,
    check_regressions,
    order_sides,
    pair_sides,
    read_sides,
    unpaired_models,
)
from tests.run_directories import make_scenes

import_registering_modules()
METRIC, COLLAPSE = "event_outcome", "time_to_collapse"
CLOSED = Reason("gate_closed", "the camera never looked away")


def contender(
    name: str, scores: Sequence[float | None], collapses: Sequence[bool] = (), suite: str = "folder",
    metric: str = METRIC, seeds: Sequence[int] = (0,),
) -> Contender:  # fmt: skip
    """A model with a score of memory per scene and seed; None where its camera never looks away."""
    cases, records = [], []
    for k, score in enumerate(scores):
        scene, seed = f"s{k // len(seeds)}", seeds[k % len(seeds)]
        one = Case(f"{scene}@{name}#{seed}", suite, name, scene, Clip(Path("x")), seed=seed)
        cases.append(one)
        state, label = ("closed", "never left") if score is None else ("open", "left, returned")
        records.append(Record(one, "view_return", True, state, label=label))
        status = "unscored" if score is None else "scored"
        records.append(Record(one, metric, False, status, score, reason=CLOSED if score is None else None))
    for one, does in zip(cases, collapses, strict=False):
        records.append(Record(one, COLLAPSE, False, "scored", 0.4 if does else 1.0))
    return Contender(name, Results(cases, records))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "run.json").write_text("{}")
    return Run(tmp_path)


def gate(run: Run, *pairs: tuple[Contender, Contender], metrics: Sequence[str] = (METRIC,)) -> RegressionGate:
    coverages = correct_coverage_p_values_by_holm([compare_coverage(*pair) for pair in pairs])
    return check_regressions(
        [
            SideComparison(
                Side(first, run, first.name), Side(second, run, second.name), tuple(metrics), {},
                tuple(compare_with_first(first, [second], metrics)), coverage,
            )
            for (first, second), coverage in zip(pairs, coverages, strict=True)
        ]
    )  # fmt: skip


GOOD = np.random.default_rng(3).uniform(0.6, 0.9, 8).tolist()
OTHER = np.random.default_rng(4).uniform(0.6, 0.9, 8).tolist()


def test_identical_runs_pass_and_what_could_not_be_tested_is_said(run: Run) -> None:
    frozen = contender("frozen", [None] * 6)
    same = gate(run, (frozen, contender("frozen", [None] * 6)))
    assert same.passed and same.warnings == (
        "memory was not tested between frozen and frozen: neither has a score of it (test not posed on 6 of 6 clips); "
        "all their answers are the same",
    )
    few = gate(run, (contender("m", [0.5, 0.7]), contender("m", [0.5, 0.7])))  # two scenes have no test
    assert few.passed and "3 scenes are needed" in few.warnings[0]
    assert not gate(run, (contender("m", [0.5, 0.7]), contender("m", [0.5, 0.6]))).passed
    assert gate(run, (frozen, frozen), metrics=["flicker"]).passed
    tested = gate(run, (contender("m", GOOD), contender("m", GOOD)))
    assert tested.passed and not tested.warnings


def test_a_model_that_cannot_be_tested_is_a_warning_beside_others_and_alone_no_pass(run: Run) -> None:
    still = contender("still", [None] * 8, [False] * 8), contender("still", [None] * 8, [True] + [False] * 7)
    alone = gate(run, still)
    assert not alone.passed and alone.untested == alone.problems
    assert alone.problems == (
        "memory was not tested between still and still: neither has a score of it (test not posed on 8 of 8 clips)",
    )
    beside = gate(run, still, (contender("m", GOOD), contender("m", OTHER)))
    assert beside.passed and alone.problems[0] in beside.warnings


def test_questions_of_memory_of_every_suite_count(run: Run) -> None:
    for suite, metric in (("mind", "mind_gsc_psnr"), ("wbench", "wb_gated_spatial"), ("worldmark", "worldmark_global")):
        sides = contender("a", GOOD, suite=suite, metric=metric), contender("b", OTHER, suite=suite, metric=metric)
        assert gate(run, sides, metrics=(metric,)).passed
        elsewhere = contender("a", GOOD, metric=metric), contender("b", OTHER, metric=metric)
        assert not gate(run, elsewhere, metrics=(metric,)).passed  # no question of memory there


def test_what_the_second_run_can_no_longer_be_tested_by_fails(run: Run) -> None:
    lost = gate(run, (contender("m", GOOD), contender("m", [None] * 8)))
    assert not lost.passed and not lost.untested
    assert lost.worse == (
        "the camera of m looked away and came back on 0 of 8 clips, that of m on 8 of 8",
        "m can no longer be tested: m has a score of memory on 8 clips, m on none (test not posed on 8 of 8 clips)",
    )
    gained = gate(run, (contender("m", [None] * 8), contender("m", GOOD)))
    assert gained.passed and "m has no score of it (test not posed on 8 of 8 clips)" in gained.warnings[0]
    apart = gate(run, (contender("m", [*GOOD[:4], *[None] * 4]), contender("m", [*[None] * 4, *GOOD[:4]])))
    assert not apart.passed and "no scored clip in common" in apart.problems[0]
    assert not gate(run, (contender("m", GOOD), contender("m", OTHER)), metrics=["flicker"]).passed


def test_collapses_are_tested_over_scenes_and_a_few_more_are_a_warning(run: Run) -> None:
    before = contender("before", GOOD, [False] * 8)
    some = gate(run, (before, contender("after", GOOD, [True] * 4 + [False] * 4)))
    words = "the picture of after collapses on 4 clips (s0, s1, s2 and s3), that of before on 0"
    assert some.passed and some.warnings == (f"{words} (not significant, p 0.062)",)
    most = gate(run, (before, contender("after", GOOD, [True] * 5 + [False] * 3)))
    assert not most.passed and "collapses on 5 clips" in most.worse[0] and most.worse[0].endswith("(p 0.031)")
    twice = gate(run, *[(before, contender("after", GOOD, [True] * 5 + [False] * 3))] * 2)
    assert twice.passed and len(twice.warnings) == 2  # two such comparisons are less of a surprise (Holm)


def test_collapses_and_returns_are_tested_between_runs_of_other_seeds(run: Run) -> None:
    """As scores are: seeds of a clip are folded, and each scene counts once."""
    before = contender("before", GOOD, [False] * 8, seeds=(3,))
    half = contender("after", [value for value in GOOD for _ in "ab"], [True, False] * 5 + [False] * 6, seeds=(7, 8))
    more = gate(run, (before, half))
    words = "the picture of after collapses on 5 clips (s0, s1, s2 and 2 more), that of before on 0"  # as many seeds
    assert not more.passed and more.worse == (f"{words} (p 0.031)",)
    still = contender("after", [value for value in GOOD[:3] for _ in "ab"] + [None] * 10, seeds=(7, 8))
    fewer = gate(run, (before, still))
    assert fewer.worse == ("the camera of after looked away and came back on 6 of 16 clips, that of before on 8 of 8",)


def test_other_seeds_and_collapses_that_nobody_could_test_are_said() -> None:
    seeds = [contender(name, GOOD, [False] * 8, seeds=(seed,)) for name, seed in (("before", 3), ("after", 7))]
    coverage = compare_coverage(*seeds)
    assert coverage.collapsed == (0, 0) and coverage.seeds_text.startswith("8 clips of before and after have no seed")
    assert compare_coverage(seeds[0], seeds[0]).seeds_text == ""
    half = compare_coverage(seeds[0], contender("after", GOOD, seeds=(3,)))
    assert half.warnings == ("collapses were not tested: only before was asked for them",)
    assert compare_coverage(contender("a", GOOD), contender("b", GOOD)).warnings == ()


def test_fewer_returns_by_chance_are_a_warning(run: Run) -> None:
    before = contender("before", [*GOOD[:6], None, None])
    rarely = gate(run, (before, contender("after", [*OTHER[:2], *[None] * 6])))
    words = "the camera of after looked away and came back on 2 of 8 clips, that of before on 6 of 8"
    assert not rarely.worse and f"{words} (not significant, p 0.062)" in rarely.warnings
    never = gate(run, (before, contender("after", [OTHER[0], *[None] * 7])))
    assert never.worse == (words.replace("2 of 8", "1 of 8"),)


def test_fewer_seeds_are_no_fewer_returns() -> None:
    thrice = contender("before", [value for value in GOOD for _ in "abc"], seeds=(1, 2, 3))
    once = contender("after", GOOD, seeds=(1,))
    assert compare_coverage(thrice, once).warnings == ()
    rarely = contender("after", [value for value in [*OTHER[:2], *[None] * 6] for _ in "abc"], seeds=(1, 2, 3))
    assert "on 6 of 24 clips" in compare_coverage(contender("before", [*GOOD[:6], None, None]), rarely).warnings[0]


def test_a_gate_of_checkpoints_that_do_not_differ_rarely_finds_one_worse(run: Run) -> None:
    rng = np.random.default_rng(53)
    draws, scenes = 150, 12

    def model(name: str, level: np.ndarray) -> Contender:
        returns = rng.random(scenes) < 0.5
        scores = [float(one) if does else None for one, does in zip(level, returns, strict=True)]
        return contender(name, scores, (rng.random(scenes) < 0.3).tolist())

    worse = 0
    for _ in range(draws):
        level = rng.normal(0.5, 0.15, scenes)
        sides = [model(name, level + rng.normal(0, 0.05, scenes)) for name in "ab"]
        worse += bool(gate(run, (sides[0], sides[1])).worse)
    assert worse / draws <= 0.1  # three kinds of tests, each with 5 %


def test_a_run_with_more_seeds_does_not_collapse_more_by_chance() -> None:
    """A rare failure is seen on more clips where more seeds were drawn: as many of each side are compared."""
    rng = np.random.default_rng(54)
    draws, scenes, more = 200, 24, 0
    for _ in range(draws):
        one = contender("a", [0.5] * scenes, (rng.random(scenes) < 0.1).tolist(), seeds=(0,))
        four = contender("b", [0.5] * 4 * scenes, (rng.random(4 * scenes) < 0.1).tolist(), seeds=(1, 2, 3, 4))
        more += compare_coverage(one, four).second_collapses_significantly_more
    assert more / draws <= 0.06


@pytest.mark.parametrize("share", (0.1, 0.5))
def test_checkpoints_that_collapse_by_chance_alone_rarely_fail_the_gate(share: float) -> None:
    """False in at most 5 % of comparisons, where a count fails far more often; a plain loss is found."""
    rng = np.random.default_rng(52)
    draws, scenes = 250, 12

    def problems(first: float, second: float) -> tuple[float, float]:
        found = counted = 0
        for _ in range(draws):
            sides = [
                contender(name, [0.5] * scenes, rng.random(scenes) < p) for name, p in (("a", first), ("b", second))
            ]
            coverage = compare_coverage(*sides)
            assert coverage.collapsed is not None
            found += coverage.second_collapses_significantly_more
            counted += coverage.collapsed[1] > coverage.collapsed[0]
        return found / draws, counted / draws

    false, by_count = problems(share, share)
    assert false <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / draws) and by_count > 0.25
    assert problems(0.1, 0.8)[0] > 0.85


def test_a_run_that_is_named_twice_is_compared_with_itself(run: Run) -> None:
    sides = [Side(contender(name, GOOD), run, name) for name in ("a", "b")]
    assert [(one.model, other.model) for one, other in pair_sides([*sides, *sides])] == [("a", "a"), ("b", "b")]
    assert [(one.model, other.model) for one, other in pair_sides(sides)] == [("a", "b")]


def test_runs_of_one_name_are_told_apart_and_a_better_one_passes(tmp_path: Path, run: Run) -> None:
    places = [make_scenes(tmp_path / name, ["wan:2.1"], ["kitchen"], pictures=False) for name in ("main", "branch")]
    sides = read_sides([str(place) for place in places])
    assert [side.entry.name for side in sides] == ["main/run", "branch/run"]
    models = read_sides([f"{place}:wan:2.1" for place in places])
    assert [(side.model, side.entry.name) for side in models] == [("wan:2.1", "main/run"), ("wan:2.1", "branch/run")]
    before, after = (contender("m", [level + 0.013 * k + 0.001 * k**2 for k in range(9)]) for level in (0.3, 0.6))
    assert compare_with_first(before, [after], [METRIC])[0].word == "better" and gate(run, (before, after)).passed
    assert compare_with_first(after, [before], [METRIC])[0].word == "worse" and not gate(run, (after, before)).passed


def test_runs_with_other_models_are_compared_model_by_model(tmp_path: Path, run: Run) -> None:
    """A checkpoint that became worse is found beside a new model, and one that is gone fails the gate."""
    (tmp_path / "branch").mkdir()
    (tmp_path / "branch/run.json").write_text("{}")
    before, after = run, Run(tmp_path / "branch")

    def sides(place: Run, models: Mapping[str, Sequence[float | None]], named: bool = False) -> list[Side]:
        return [Side(contender(f"{place.path.name}:{name}", own), place, name, named) for name, own in models.items()]

    worse = [score and score - 0.2 for score in GOOD]
    old = sides(before, {"s1": GOOD, "s2": GOOD})
    new = sides(after, {"fresh": GOOD, "s1": GOOD, "s2": worse})
    pairs = pair_sides([*old, *new])
    assert [(one.model, other.model) for one, other in pairs] == [("s1", "s1"), ("s2", "s2")]
    assert not gate(run, *((one.entry, other.entry) for one, other in pairs)).passed
    lost, added = unpaired_models([*old, *new], pairs)
    assert not lost and len(added) == 1 and "fresh" in added[0]
    gone, _ = unpaired_models([*new, *old], pair_sides([*new, *old]))
    assert len(gone) == 1 and "no clips of fresh" in gone[0]
    assert gate(run, (old[0].entry, new[1].entry)).passed
    assert gone[0] in check_regressions([], gone).worse
    with pytest.raises(UsageError, match="no model in common"):
        pair_sides([*old, *sides(after, {"fresh": GOOD})])
    chosen = [*sides(before, {"s1": GOOD}, named=True), *new]
    assert [other.model for _, other in pair_sides(chosen)] == ["fresh", "s1", "s2"]


def test_models_of_one_run_without_numbers_are_no_checkpoints(run: Run) -> None:
    several = [Side(contender(name, GOOD), run, name) for name in ("svc", "wan")]
    with pytest.raises(UsageError, match="svc and wan have no number in their names"):
        order_sides(several, "step")
    assert [label for label, _ in order_sides(several, "order")] == ["svc", "wan"]


def test_errors_of_measurement_are_no_difference(run: Run) -> None:
    """Cameras that are right by construction measure as 0.0001 to 0.003 of the way, by what is in the picture."""
    right, blurred = ([level * (k + 1) for k in range(9)] for level in (2e-6, 3e-4))
    off = [0.02 + value for value in blurred]
    sides = [contender(name, own, metric="return_shortfall") for name, own in (("a", right), ("b", blurred))]
    (delta,) = compare_with_first(sides[0], sides[1:], ["return_shortfall"])
    assert delta.word == "" and delta.wins == delta.losses == 0
    assert not rank_models_by_scores(
        [record for side in sides for record in side.results.scores("return_shortfall")], "return_shortfall", False
    ).best
    (delta,) = compare_with_first(sides[0], [contender("c", off, metric="return_shortfall")], ["return_shortfall"])
    assert delta.word == "worse"
