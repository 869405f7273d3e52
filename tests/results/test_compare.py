"""Compare and trend: paired, corrected, seeds folded, and refused where two runs were not made alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

from revisit.core import Case, Clip, Record, import_registering_modules
from revisit.report.plots import trend_svg
from revisit.results import Results
from revisit.results.compare import Contender, compare_coverage, compare_with_first
from revisit.results.question_ranking import SuiteQuestion, rank_question
from revisit.results.record_files import case_to_json
from revisit.results.run import Run
from revisit.results.trend import common_clips_sentence, score_trends
from revisit.runs.comparability import Side, protocol_difference_text
from tests.stats.test_stats import by_scipy

import_registering_modules()


def entry(name: str, scores: Mapping[str, Sequence[float] | np.ndarray], seeds: Sequence[int] = (0,)) -> Contender:
    """A model with a score per clip and seed; conditions alternate between near and far."""
    cases, records = [], []
    count = len(next(iter(scores.values()))) // len(seeds)
    for k in range(count):
        for place, seed in enumerate(seeds):
            where = {"condition": ("near", "far")[k % 2], "seed": seed}
            one = Case(f"{k}@{name}#{seed}", "folder", name, f"s{k}", Clip(Path("x")), **where)  # type: ignore[arg-type]
            cases.append(one)
            for metric, values in scores.items():
                records.append(Record(one, metric, False, "scored", float(values[k * len(seeds) + place])))
    return Contender(name, Results(cases, records))


RNG = np.random.default_rng(4)
SCENE = RNG.normal(0.5, 0.1, 12)
BEFORE = {"event_outcome": SCENE + RNG.normal(0, 0.02, 12), "psnr": 30 + RNG.normal(0, 1, 12)}
AFTER = {"event_outcome": SCENE + 0.1 + RNG.normal(0, 0.02, 12), "psnr": 30 + RNG.normal(0, 1, 12)}


def test_differences_p_and_corrections_are_those_of_scipy_and_statsmodels() -> None:
    many = pytest.importorskip("statsmodels.stats.multitest")
    deltas = compare_with_first(entry("a", BEFORE), [entry("b", AFTER)], ["event_outcome", "psnr"])
    plain = [by_scipy(AFTER[id] - BEFORE[id]) for id in ("event_outcome", "psnr")]
    for delta, (interval, p) in zip(deltas, plain, strict=True):
        assert delta.p == pytest.approx(p) and delta.interval == pytest.approx(interval)
    corrected = many.multipletests([p for _, p in plain], method="holm")[1]
    assert [delta.corrected for delta in deltas] == pytest.approx(list(corrected))
    assert deltas[0].significantly_better_side == "b" and deltas[1].significantly_better_side is None
    assert deltas[0].wins + deltas[0].losses == 12
    sizes = [abs(look.difference) for look in deltas[0].looks]
    assert sizes == sorted(sizes, reverse=True) and deltas[0].looks[0].cases[0].endswith("@a#0")


def test_collapses_of_a_checkpoint_where_the_other_has_none_are_counted_and_tested() -> None:
    before = entry("before", {"time_to_collapse": [1.0, 1.0, 1.0, 0.4]})
    after = entry("after", {"time_to_collapse": [1.0, 0.3, 0.5, 0.4]})
    coverage = compare_coverage(before, after)
    assert coverage.collapsed == (1, 3) and coverage.newly_collapsed == ("s1", "s2")
    expected = "the picture of after collapses on 3 clips (s1 and s2), that of before on 1 (not significant, p 0.250)"
    assert coverage.problems == () and coverage.warnings == (expected,)
    for calm in (compare_coverage(after, before), compare_coverage(before, before)):
        assert calm.problems == () and calm.warnings == ()
    elsewhere = compare_coverage(before, entry("other", {"time_to_collapse": [0.4, 1.0, 1.0, 1.0]}))
    assert elsewhere.newly_collapsed == ("s0",) and not elsewhere.problems and not elsewhere.warnings
    assert compare_coverage(entry("a", BEFORE), entry("b", AFTER)).collapsed is None


def test_seeds_are_folded_into_their_clip() -> None:
    noise = RNG.normal(0, 0.05, (12, 3))
    three = entry("b", {"event_outcome": (AFTER["event_outcome"][:, None] + noise).ravel()}, seeds=(5, 6, 7))
    delta = compare_with_first(entry("a", {"event_outcome": BEFORE["event_outcome"]}), [three], ["event_outcome"])[0]
    _, expected = by_scipy(AFTER["event_outcome"] + noise.mean(axis=1) - BEFORE["event_outcome"])
    assert delta.clips == 12 and delta.seeds == 24
    assert delta.p == pytest.approx(expected)


def test_parts_of_the_clips() -> None:
    delta = compare_with_first(
        entry("a", BEFORE), [entry("b", AFTER)], ["psnr"], {"condition": lambda case: case.condition}
    )[0]  # fmt: skip
    parts = {part.group: part for part in delta.parts["condition"]}
    near, _ = by_scipy(AFTER["psnr"][::2] - BEFORE["psnr"][::2])
    assert parts["near"].clips == 6 and parts["near"].interval == pytest.approx(near)
    assert parts["near"].difference + parts["far"].difference == pytest.approx(2 * delta.difference)


def test_a_mean_has_one_interval_and_a_difference_has_one_everywhere() -> None:
    """Table, trend, verdict and compare of the same two models on the same clips."""
    rng = np.random.default_rng(8)
    scores = {
        name: {
            "event_outcome": np.clip(SCENE + level, 0, 1),  # continuous
            "return_consistency": rng.uniform(0.97, 0.99, 12),  # good and alike: too few scenes for an interval
            "target_reappearance": (rng.random(12) < share).astype(float),  # yes or no
        }
        for name, level, share in (("a", rng.normal(0, 0.05, 12), 0.5), ("b", rng.normal(0.1, 0.05, 12), 1.1))
    }
    points = [entry(name, own) for name, own in scores.items()]
    together = Results(
        [case for point in points for case in point.results.cases],
        [record for point in points for record in point.results.records],
    )
    for metric in scores["a"]:
        (trend,) = score_trends(points, [metric])
        (delta,) = compare_with_first(points[0], [points[1]], [metric])
        question = rank_question(together, SuiteQuestion("?", (metric,)))
        places = {place.model: place.cell for place in question.places}
        for point, cell in zip(points, trend.cells, strict=True):
            table = point.results.cell(metric)
            assert (cell.mean, cell.interval, cell.few_scenes) == (table.mean, table.interval, table.few_scenes), metric
            assert places[point.name].interval == table.interval
        (pair,) = question.pairs
        ends = delta.interval if pair.ahead == "b" else tuple(-end for end in reversed(delta.interval or ()))
        assert pair.interval == pytest.approx(ends) and pair.uncorrected == pytest.approx(delta.p)
        assert trend.slope is not None and trend.slope.p == pytest.approx(delta.p)  # of two points, their difference
    assert trend.cells[1].interval is not None and trend.cells[1].interval[0] < 0.9  # twelve of twelve is no certainty


def test_what_a_trend_is_of_is_said_where_it_is_not_what_tables_show() -> None:
    first, second = entry("a", {"psnr": BEFORE["psnr"]}), entry("b", {"psnr": AFTER["psnr"]})
    assert common_clips_sentence(score_trends([first, second], ["psnr"])) == ""
    fewer = Contender("b", second.results.only(lambda case: case.sample != "s3"))
    words = "means are over the 11 clips that every point has a score of, and not over all of each run"
    assert common_clips_sentence(score_trends([first, fewer], ["psnr"])) == words
    seeds = entry("b", {"psnr": np.repeat(AFTER["psnr"], 2)}, seeds=(1, 2))
    assert "seeds of a clip are folded" in common_clips_sentence(score_trends([first, seeds], ["psnr"]))


def test_a_group_s_interval_ends_where_differences_do() -> None:
    low, high = [0.0, 0.02] * 6, [0.99, 0.97, 1.0, 0.1, 0.98, 1.0] * 2
    first, second = entry("a", {"event_outcome": low}), entry("b", {"event_outcome": high})
    (delta,) = compare_with_first(first, [second], ["event_outcome"], {"condition": lambda case: case.condition})
    ends = [part.interval for part in delta.parts["condition"]]
    assert all(interval is not None and interval[1] <= 1 for interval in ends)


def test_significant_alone_is_told_from_significant_among_all() -> None:
    rng = np.random.default_rng(5)
    change = rng.normal(0.045, 0.06, 12)
    before = {"event_outcome": SCENE, "psnr": BEFORE["psnr"], "ssim": SCENE}
    after = {"event_outcome": SCENE + change, "psnr": AFTER["psnr"], "ssim": SCENE + rng.normal(0, 0.1, 12)}
    delta, *_ = compare_with_first(entry("a", before), [entry("b", after)], list(after))
    assert delta.p is not None and delta.p <= 0.05 < (delta.corrected or 0)
    assert delta.word == "" and delta.p_text == f"{delta.corrected:.3f} ({delta.p:.3f} alone)"
    assert "-" not in delta.interval_text.replace("−", "-")  # the interval of this one alone leaves out 0


def test_a_trend_is_told_with_its_certainty_and_drawn() -> None:
    rng = np.random.default_rng(2)
    points = [
        entry(f"step{k}", {"event_outcome": np.clip(SCENE - 0.05 * k + rng.normal(0, 0.01, 12), 0, 1)})
        for k in range(5)
    ]
    made = score_trends(points, ["event_outcome", "psnr"])
    assert made[0].monotone_direction == "falls" and "for the worse" in made[0].sentence
    assert made[1].cells == () and "no clip" in made[1].sentence
    uneven = [entry(f"step{k}", {"event_outcome": SCENE * 0.5 + level}) for k, level in enumerate((0.0, 0.2, 0.1, 0.4))]
    (up,) = score_trends(uneven, ["event_outcome"])
    assert up.sentence == "goes up and down, on the whole better (p < 0.001)"
    table = np.array([[record.value for record in point.results.scores("event_outcome")] for point in points])
    slopes = np.polyfit(range(5), table, 1)[0]
    assert made[0].slope.p == pytest.approx(by_scipy(slopes)[1])
    drawn = ElementTree.fromstring(
        trend_svg(made, ["<b>", "\x1b[31m", "2", "3", "\u202e4"])
    )  # well-formed, and only text
    texts = [node.text for node in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "<b>" in texts and not any("\x1b" in (text or "") or "\u202e" in (text or "") for text in texts)
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}circle"))) == 5


def test_scores_of_few_levels_show_a_trend_over_many_points_as_they_do_over_two() -> None:
    since = np.random.default_rng(0).uniform(1, 9, 12)  # the checkpoint from which on a clip remembers
    points = [entry(f"step-{k}", {"target_reappearance": (since <= k).astype(float)}) for k in range(10)]
    trend, ends = (
        score_trends(some, ["target_reappearance"])[0].slope for some in (points, points[:: len(points) - 1])
    )
    assert trend is not None and trend.p is not None and ends is not None and ends.p is not None
    by_hand = [stats.linregress(range(10), (since[k] <= np.arange(10)).astype(float)).slope for k in range(12)]
    assert trend.change == pytest.approx(by_hand)
    assert stats.ttest_1samp(by_hand, 0).pvalue < trend.p < 0.001 and ends.p < 0.001


def test_a_trend_of_yes_and_no_that_is_none_is_seen_as_often_as_promised() -> None:
    rng, seen = np.random.default_rng(1), 0
    for _ in range(400):
        points = [entry(f"{k}", {"target_reappearance": rng.integers(0, 2, 12).astype(float)}) for k in range(6)]
        slope = score_trends(points, ["target_reappearance"])[0].slope
        seen += slope is not None and slope.p is not None and slope.p <= 0.05
    assert 1 <= seen <= 30


@pytest.mark.long
def test_five_rendered_checkpoints_of_growing_forgetfulness_fall_at_every_step(tmp_path: Path, revisit: Any) -> None:
    """Checkpoints undo more and more of what happened unseen; the outcome of the event falls, run by run."""
    from revisit.media import encode_mp4
    from revisit.worlds.failures import generate
    from revisit.worlds.film import play
    from revisit.worlds.places import make_room

    films = []
    for seed, kind in ((0, "ball"), (1, "gift"), (2, "vase")):
        room = make_room(seed, kind, kind)
        away, back = ("right", "left") if room.turn == "right" else ("left", "right")
        films.append(play(room, f"yaw:{away}:60@20,yaw:{back}:60@20", "moved", (144, 256), fps=8))
    for step, strength in enumerate((0.0, 0.25, 0.5, 0.75, 1.0)):
        folder = tmp_path / f"step-{1000 * (step + 1)}"
        lines = []
        for film in films:
            name = film.world.name
            encode_mp4(folder / f"truth/{name}.mp4", (film.truth(k).rgb for k in range(len(film))), 8)
            encode_mp4(folder / f"mine/{name}.mp4", generate("state_reset", film, strength), 8)
            lines.append({"id": name, "model": "mine", "video": f"mine/{name}.mp4", "reference": f"truth/{name}.mp4",
                          "phases": film.phases, "target": {"name": name, "box": film.target_box()}})  # fmt: skip
        (folder / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        words = ("--no-report", "--workers", 0, "-m", "event_outcome")
        revisit("eval", folder, "--out", tmp_path / f"runs/{folder.name}", *words)
    runs = sorted((tmp_path / "runs").iterdir(), reverse=True)  # the order of the names in the call does not matter
    out = tmp_path / "trend.svg"
    content = json.loads(revisit("trend", *runs, "-m", "event_outcome", "--out", out, "--json").stdout)
    assert content["points"] == ["1000", "2000", "3000", "4000", "5000"]
    assert content["metrics"][0]["monotone"] == "falls" and content["metrics"][0]["slope"]["p"] < 0.05
    assert len(list(ElementTree.fromstring(out.read_bytes()).iter("{http://www.w3.org/2000/svg}circle"))) == 5


@pytest.fixture
def two_models(tmp_path: Path, make_clip: Callable[..., Path]) -> Path:
    for model in ("one", "two"):
        for k in range(3):
            make_clip(tmp_path / "videos" / model / f"clip{k}.mp4", seed=k + 7 * (model == "two"))
    return tmp_path / "videos"


def test_the_command_compares_models_of_a_run_and_gates(two_models: Path, tmp_path: Path, revisit: Any) -> None:
    revisit(
        "eval", two_models, "--out", tmp_path / "run", "--no-report", "--workers", 0, "-m", "flicker,motion_smoothness"
    )
    told = revisit("compare", tmp_path / "run", "two", "one", "-m", "flicker", "--json")
    content = json.loads(told.stdout)
    assert [(delta["first"], delta["second"], delta["clips"]) for delta in content["deltas"]] == [("two", "one", 3)]
    same = revisit("compare", tmp_path / "run:one", tmp_path / "run:one", "-m", "flicker", "--gate")
    assert "no metric of memory was asked; all their answers are the same" in same.stderr
    assert "gate: passed" in same.stderr
    gated = revisit("compare", tmp_path / "run", "two", "one", "-m", "flicker", "--gate", "--json", check=1)
    assert json.loads(gated.stdout)["gate"] == {
        "passed": False,
        "problems": [
            "one is worse than two in Flicker of brightness",
            "memory was not tested between two and one: no metric of it was compared",
        ],
        "warnings": [],
    }
    assert "'three'" in revisit("compare", tmp_path / "run", "three", check=2).stderr
    nothing = revisit("compare", tmp_path / "run", "two", "one", "-m", "psnr", "--gate", check=2)  # not asked
    assert "psnr was not asked in these runs" in nothing.stderr  # and no gate is passed by comparing nothing


def test_a_trend_names_each_point_and_counts_the_clips_that_one_lacks(
    two_models: Path, tmp_path: Path, revisit: Any
) -> None:
    (two_models / "two/clip2.mp4").unlink()
    revisit("eval", two_models, "--out", tmp_path / "run", "--no-report", "--workers", 0, "-m", "flicker")
    told = revisit("trend", tmp_path / "run", "-m", "flicker", "--by", "date")
    assert "of the clips that other points have, " in told.stderr and "(two) lacks 1 of 3\n" in told.stderr
    content = json.loads(revisit("trend", tmp_path / "run", "-m", "flicker", "--by", "date", "--json").stdout)
    first, second = content["points"]  # begun in the same minute
    assert first.endswith(" (one)") and second.endswith(" (two)") and first[:16] == second[:16]
    assert [(point["lacks"], point["of"]) for point in content["coverage"]] == [(0, 3), (1, 3)]
    again = revisit("trend", tmp_path / "run:one", tmp_path / "run:one", "-m", "flicker", "--by", "order", "--json")
    assert json.loads(again.stdout)["points"] == ["run:one (1)", "run:one (2)"]


@pytest.mark.slow
def test_runs_made_by_other_rules_are_refused_with_the_difference(
    two_models: Path, tmp_path: Path, revisit: Any
) -> None:
    lines = [
        {"id": f"clip{k}", "model": "one", "video": f"one/clip{k}.mp4", "reference": f"two/clip{k}.mp4"}
        for k in range(3)
    ]
    (two_models / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for name, more in (("usual", ()), ("other", ("--param", "lite.fidelity.long_side=32"))):
        revisit(
            "eval", two_models, "--out", tmp_path / name, "--no-report", "--workers", 0, "-m", "psnr,flicker", *more
        )
    words = (tmp_path / "usual", tmp_path / "other")
    refused = revisit("compare", *words, "-m", "psnr", check=2)
    assert "cannot be subtracted" in refused.stderr
    assert "frame_fidelity by lite.fidelity" in refused.stderr and "'long_side': 32" in refused.stderr
    assert "put on one curve" in revisit("trend", *words, "--by", "order", "-m", "psnr", check=2).stderr
    partly = revisit("compare", *words, "-m", "psnr", "-m", "flicker")  # the other observer has no part in flicker
    assert "Flicker" in partly.stdout and "not compared: psnr" in partly.stderr
    changed = make_other_truth(two_models, tmp_path, revisit)
    assert "the reference of clip1 is not the same file" in changed


def make_other_truth(videos: Path, tmp_path: Path, revisit: Any) -> str:
    """What is said of a run whose reference was another file under the same name."""
    (videos / "two/clip1.mp4").write_bytes((videos / "two/clip2.mp4").read_bytes())
    revisit("eval", videos, "--out", tmp_path / "later", "--no-report", "--workers", 0, "-m", "psnr")
    told: str = revisit("compare", tmp_path / "usual", tmp_path / "later", "-m", "psnr", check=2).stderr
    return told


def test_references_are_compared_by_clip(tmp_path: Path) -> None:
    """A sample may have a reference for each condition: a side that lacks one of its clips compares on the others."""

    def side(name: str, references: Mapping[str, str]) -> Side:
        cases = [
            Case(f"s-{condition}@{name}#0", "folder", name, "s", Clip(Path("c")), condition=condition)
            for condition in references
        ]
        entries = [
            {**case_to_json(case), "reference_digest": digest}
            for case, digest in zip(cases, references.values(), strict=True)
        ]
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(
            '{"suite": "folder", "protocol": {"metrics": {"psnr": "corrected:1"}}}'
        )
        (tmp_path / name / "plan.json").write_text(json.dumps({"cases": entries}))
        run = Run(tmp_path / name)
        return Side(Contender(name, Results(cases, [])), run, name)

    both = side("both", {"near": "1", "far": "2"})
    assert protocol_difference_text(both, side("one", {"near": "1"}), "psnr") == ""
    swapped = protocol_difference_text(both, side("swapped", {"near": "2", "far": "1"}), "psnr")
    assert swapped == "the reference of s-far is not the same file"
