"""The audit: films by seed, a small grid end to end, and the analysis on scores made by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from revisit.audit import cards, text
from revisit.audit.analyse import (
    MEANS,
    _metrics_responding_to_kind,
    analyse_grid_results,
    claimed_failures,
    is_memory_metric,
    score_kinds,
)
from revisit.audit.cards import load_saved_audit, saved_metric_audit
from revisit.audit.grid import grid_film, render_grid, story
from revisit.audit.horizon import curves
from revisit.audit.page import write_audit_page, write_horizon_page
from revisit.audit.run import AuditGrid, audit_plan_and_request, run_audit
from revisit.audit.schema import AuditOptions, Content
from revisit.core import METRICS, Case, Clip, Reason, Record, UsageError, evidence_id
from revisit.engine.dependencies import observed_kinds_needed_by
from revisit.engine.request import Request
from revisit.observers.sets import load_roles
from revisit.results import Results
from revisit.worlds.failures import FAILURES, FLOORS

SMALL = (48, 80)


# Films and grid


@pytest.mark.long
def test_a_seed_is_a_film_and_seeds_differ() -> None:
    one, again, other = grid_film(2, size=SMALL), grid_film(2, size=SMALL), grid_film(3, size=SMALL)
    assert len(one) == 33 and one.fps == 8
    assert np.array_equal(one.truth(20).rgb, again.truth(20).rgb)
    assert one.world.kind != other.world.kind
    assert 0 < one.phases[0] < one.phases[1] < len(one)


@pytest.mark.long
def test_time_away_makes_the_film_longer_and_the_gap_with_it() -> None:
    short, long = grid_film(1, size=SMALL), grid_film(1, size=SMALL, away=8)
    assert len(long) == len(short) + 8
    assert long.phases[1] - long.phases[0] == short.phases[1] - short.phases[0] + 8


def test_stories_mix_and_a_negative_seed_is_refused() -> None:
    told = [story(seed) for seed in range(40)]
    assert len(set(told)) > 20
    assert len({entry.script for entry in told[:6]}) > 2
    with pytest.raises(UsageError, match="0 or more"):
        story(-1)


@pytest.mark.long
@pytest.mark.slow
def test_the_grid_is_resumed_and_lists_what_was_asked(tmp_path: Path) -> None:
    heard: list[str] = []
    manifest = render_grid(tmp_path, ["vanish"], (1.0,), [1], size=SMALL, options=AuditOptions(workers=0))
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    assert [line["model"] for line in lines] == ["truth@0", "perfect@0", "vanish@1"]
    assert all((tmp_path / line["video"]).is_file() and line["phases"][0] > 0 for line in lines)
    clip = tmp_path / lines[2]["video"]
    before = clip.stat().st_mtime_ns
    (tmp_path / lines[1]["video"]).unlink()
    options = AuditOptions(workers=0, render_progress=lambda done, total, what: heard.append(what))
    render_grid(tmp_path, ["vanish"], (1.0,), [1], size=SMALL, options=options)
    assert clip.stat().st_mtime_ns == before and (tmp_path / lines[1]["video"]).is_file() and len(heard) == 3
    with pytest.raises(UsageError, match="unknown failure 'vanis'"):
        render_grid(tmp_path, ["vanis"], (1.0,), [1])


def test_a_grid_that_cannot_be_compared_is_refused() -> None:
    with pytest.raises(UsageError, match="including 1"):
        AuditGrid(strengths=(0.5,))
    with pytest.raises(UsageError, match="2 scenes"):
        AuditGrid(seeds=1)
    with pytest.raises(UsageError, match="unknown failure"):
        AuditGrid(kinds=("nothing",))


# Claims


def test_every_claim_of_an_audited_metric_has_a_meaning_here() -> None:
    known = {*MEANS, *FAILURES, *(failure.title for failure in FAILURES.values())}
    audited_by_default = [metric for metric in METRICS.values() if "folder" in metric.suites]
    words = {word: metric.id for metric in audited_by_default for word in metric.responds_to}
    missing = {word: id for word, id in words.items() if word not in known}
    assert not missing, f"say in audit/claims.yaml which failures test these words: {missing}"


def test_meanings_name_failures_that_exist() -> None:
    assert {kind for kinds in MEANS.values() for kind in kinds} <= set(FAILURES)


def test_claims_and_memory_metrics() -> None:
    assert claimed_failures(METRICS["target_reappearance"]) == ["vanish"]
    assert claimed_failures(METRICS["lighting_consistency"]) == ["lighting"]
    assert is_memory_metric(METRICS["target_reappearance"]) and is_memory_metric(METRICS["psnr_returned"])
    assert not is_memory_metric(METRICS["flicker"]) and not is_memory_metric(METRICS["motion_amount"])
    assert not is_memory_metric(METRICS["target_doubled"])  # a sign of one fault


# Analysis


Scores = Callable[[str, float, int], float | None]


def answers(metric: str, score: Scores, kinds: list[str], seeds: int = 4) -> Results:
    """Results of one metric on a grid, from a function of kind, strength and seed; None is unscored."""
    records = []
    cells = [("truth", 0.0), ("perfect", 0.0), *((kind, at) for kind in kinds for at in (0.5, 1.0))]
    for kind, strength in [*cells, *((floor, 1.0) for floor in FLOORS)]:
        for seed in range(seeds):
            about = {"kind": kind, "strength": strength}
            clip = Clip(Path("x.mp4"))
            case = Case(f"{seed}@{kind}@{strength}", "folder", kind, str(seed), clip, seed=seed, annotations=about)
            value = score(kind, strength, seed)
            reason = Reason("no_return", "it never left") if value is None else None
            status = "scored" if reason is None else "unscored"
            records.append(Record(case, metric, False, status, value, reason=reason))
    return Results([record.case for record in records], records)


def audited(metric: str, score: Scores, kinds: list[str]) -> Content:
    return analyse_grid_results(answers(metric, score, kinds), kinds, tuple(FLOORS))


def test_a_metric_that_falls_with_the_strength_responds() -> None:
    def score(kind: str, strength: float, seed: int) -> float:
        return 0.9 - 0.4 * strength * (kind in ("vanish", *FLOORS)) + 0.01 * seed

    found = audited("target_reappearance", score, ["vanish", "lighting"])
    metric = found["metrics"]["target_reappearance"]
    cell = metric["kinds"]["vanish"]
    assert cell["claimed"] and cell["auc"] == 1 and cell["tau"] == 1 and cell["response"] == "responds"
    assert cell["effect"]["difference"] == pytest.approx(-0.4)
    quiet = metric["kinds"]["lighting"]
    assert not quiet["claimed"] and quiet["auc"] == 0.5 and quiet["response"] == "quiet"
    assert metric["specificity"] == {"quiet": ["lighting"], "of": 1, "share": 1.0}
    assert metric["failing"] == []
    assert found["diagonal"]["vanish"]["passes"] and not found["diagonal"]["lighting"]["passes"]


def test_where_lower_is_better_the_order_is_turned_round() -> None:
    found = audited("flicker", lambda kind, strength, seed: 1.0 + 5 * strength * (kind == "flicker"), ["flicker"])
    cell = found["metrics"]["flicker"]["kinds"]["flicker"]
    assert cell["auc"] == 1 and cell["tau"] == 1 and cell["claimed"]


def test_a_description_is_read_in_the_direction_that_separates() -> None:
    still = audited(
        "frozen_camera", lambda kind, strength, seed: strength * (kind == "frozen_camera"), ["frozen_camera"]
    )
    cell = still["metrics"]["frozen_camera"]["kinds"]["frozen_camera"]
    assert cell["auc"] == 1 and cell["read"] == "describes; read as: rises"


def test_a_broken_claim_is_listed() -> None:
    found = audited("target_reappearance", lambda kind, strength, seed: 0.9 + 0.01 * seed, ["vanish"])
    assert found["failing"][0]["problem"] == "claimed, not noticed"
    assert "its AUC is 0.50" in found["failing"][0]["sentence"]


def unresponsive(audit: Content) -> bool:
    """Whether a metric claims failures and tells none of them from perfect memory better than chance would."""
    claimed = [cell["auc"] for cell in audit["kinds"].values() if cell["claimed"] and cell["auc"] is not None]
    return bool(claimed) and max(claimed) <= 0.6


def test_metrics_of_our_own_that_do_not_notice_their_failure_are_in_no_suite() -> None:
    shown = [metric for metric in METRICS.values() if metric.suites and not (metric.upstream or metric.paper)]
    audits = {metric.id: saved_metric_audit(metric.id, metric.version) for metric in shown}
    assert sum(audit is not None for audit in audits.values()) > 20
    silent = [name for name, audit in audits.items() if audit is not None and unresponsive(audit)]
    assert not silent, f"take {', '.join(silent)} out of `suites`, so that only `-m` by name asks for them"


def test_a_metric_that_says_the_same_of_its_failure_and_of_perfect_memory_is_unresponsive() -> None:
    audit = json.loads(json.dumps(load_saved_audit()["metrics"]["time_to_collapse"]))
    assert not unresponsive(audit)
    for cell in audit["kinds"].values():
        cell["auc"] = 0.5
    assert unresponsive(audit)


def test_noticing_without_order_is_told_apart() -> None:
    worse = {0.0: 0.0, 0.5: 0.6, 1.0: 0.3}

    def score(kind: str, strength: float, seed: int) -> float:
        return 0.9 - worse[strength] * (kind == "vanish") - (kind in FLOORS)

    cell = audited("target_reappearance", score, ["vanish"])["metrics"]["target_reappearance"]["kinds"]["vanish"]
    assert cell["auc"] == 1 and cell["tau"] == pytest.approx(1 / 3) and cell["response"] == "responds, not in order"


def test_a_closed_gate_is_neither_good_nor_bad() -> None:
    def score(kind: str, strength: float, seed: int) -> float | None:
        return None if kind == "frozen_camera" or kind in FLOORS else 0.9

    found = audited("target_reappearance", score, ["frozen_camera", "vanish"])
    metric = found["metrics"]["target_reappearance"]
    cell = metric["kinds"]["frozen_camera"]
    assert cell["auc"] is None and cell["response"] == "unscored" and cell["unscored"] == {"no_return": 4}
    assert metric["floors"]["noise"] == {"n": 0, "of": 4, "auc": None}
    assert not any(entry["problem"].startswith("frozen") for entry in found["failing"])


def test_a_memory_metric_that_scores_a_frozen_camera_well_is_listed() -> None:
    found = audited("target_reappearance", lambda kind, strength, seed: 0.9, ["frozen_camera"])
    assert "frozen camera scored as memory" in {entry["problem"] for entry in found["failing"]}


def test_a_truth_that_scores_low_is_listed() -> None:
    def score(kind: str, strength: float, seed: int) -> float:
        return 0.5 - 0.4 * strength

    problems = {entry["problem"] for entry in audited("target_reappearance", score, ["vanish"])["failing"]}
    assert problems == {"low ceiling"}


def test_a_floor_that_wins_is_listed_with_what_the_card_admits() -> None:
    def score(kind: str, strength: float, seed: int) -> float:
        return 1.0 if kind in ("frozen_camera", "noise") else 0.7

    found = audited("visual_integrity_lite", score, ["frozen_camera", "cut"])
    wins = {entry["kind"]: entry for entry in found["failing"] if entry["problem"] == "a floor wins"}
    assert wins["frozen_camera"]["admitted"] and "better than perfect memory" in wins["frozen_camera"]["sentence"]
    assert not wins["noise"]["admitted"]
    assert found["metrics"]["visual_integrity_lite"]["kinds"]["frozen_camera"]["response"] == "rewards"


def test_a_word_of_a_card_that_is_part_of_a_floor_s_name_admits_nothing() -> None:
    """A card that was blind to "a smear while another view is seen" was said to admit another clip."""
    found = audited("time_to_collapse", lambda kind, strength, seed: 1.0, ["frozen_camera", "collapse"])
    wins = {entry["kind"]: entry["admitted"] for entry in found["failing"] if entry["problem"] == "a floor wins"}
    assert wins == {"noise": False, "shuffled": False, "other_clip": False, "frozen_camera": True}


def test_a_claim_that_cannot_be_compared_says_that_perfect_memory_has_no_score() -> None:
    def score(kind: str, strength: float, seed: int) -> float | None:
        return None if kind == "perfect" else 0.9

    (problem,) = audited("target_reappearance", score, ["vanish"])["failing"]
    assert problem["sentence"].endswith("but scored no clip of perfect memory to compare with")


def test_a_failure_without_a_clip_has_no_nearest_metric(tmp_path: Path) -> None:
    """The table could not be printed where no scene has a state to reset."""
    found = analyse_grid_results(
        answers("psnr", lambda kind, strength, seed: 30 - strength, ["vanish"]),
        ["vanish", "state_reset"],
        tuple(FLOORS),
    )
    found["grid"] = load_saved_audit("lite")["grid"]
    assert found["diagonal"]["state_reset"]["best"] is None
    assert re.search(r"state reset +none: nothing was scored", text.audit_text(found))
    assert '<span class="miss">none</span></td>' in write_audit_page(tmp_path, found).read_text()


def test_the_nearest_metric_is_the_one_that_rather_follows_the_strength() -> None:
    cells = {"a": (0.7, None), "b": (0.7, 0.0), "c": (0.7, -0.5), "d": (0.6, 1.0)}
    metrics = {
        id: {"kinds": {"vanish": {"response": "quiet", "claimed": False, "auc": auc, "tau": tau}}}
        for id, (auc, tau) in cells.items()
    }
    assert _metrics_responding_to_kind("vanish", metrics)["best"] == {"metric": "b", "auc": 0.7, "tau": 0.0}


def test_without_a_frozen_camera_nothing_is_said_of_who_is_fooled_by_one(tmp_path: Path) -> None:
    with_and_without = []
    for kinds in (["frozen_camera", "vanish"], ["vanish"]):
        found = audited("target_reappearance", lambda kind, strength, seed: 0.9 - 0.5 * strength, kinds)
        found["grid"] = load_saved_audit("lite")["grid"]
        html = write_audit_page(tmp_path, found).read_text()
        sentences = ("a frozen camera fools", "scores a frozen camera as good memory")
        with_and_without.append([sentence in html + text.audit_text(found) for sentence in sentences])
    assert with_and_without == [[True, True], [False, False]]


def test_kinds_of_the_diagnosis_are_those_that_were_rendered() -> None:
    found = audited("target_reappearance", lambda kind, strength, seed: 0.9 - 0.5 * strength, ["vanish"])
    found["grid"] = load_saved_audit("lite")["grid"]
    found["diagnosis"] = score_kinds(["vanish", "cut"], [("vanish", {"vanish"}), ("vanish", set()), ("perfect", set())])
    assert "Diagnosis: macro F1 0.67 over 1 kind, 2 clips" in text.audit_text(found)


def test_a_metric_that_responds_to_everything_is_quiet_nowhere() -> None:
    found = audited(
        "psnr", lambda kind, strength, seed: 40 - 20 * strength + 0.1 * seed, ["lighting", "flicker", "style"]
    )
    assert "quiet nowhere" in {entry["problem"] for entry in found["failing"]}


def test_a_metric_that_was_never_scored_is_not_asked() -> None:
    found = audited("target_reappearance", lambda kind, strength, seed: None, ["vanish"])
    assert found["not_asked"] == {"target_reappearance": "it never left"} and not found["metrics"]


# Horizon


def test_curves_follow_the_gap() -> None:
    def case(model: str, gap: int, seed: int) -> Case:
        id = f"{seed}-{gap}@{model}"
        sample = f"scene {seed}"
        return Case(id, "folder", model, sample, Clip(Path("x.mp4")), condition=f"away-{gap}", phases=(8, 8 + gap))

    cases = [case(model, gap, seed) for model in ("perfect", "fades") for gap in (16, 32, 64) for seed in range(3)]
    scores = [0.9 - (one.model == "fades") * 0.01 * (one.phases or (0, 0))[1] for one in cases]
    records = [Record(one, "target_identity", False, "scored", score) for one, score in zip(cases, scores, strict=True)]
    found = curves(Results(cases, records), fps=8)["target_identity"]["models"]
    assert [point["gap"] for point in found["fades"]["points"]] == [2, 4, 8]
    assert found["fades"]["tau"] == -1 and found["perfect"]["tau"] is None
    assert all(point["n"] == point["of"] == 3 for point in found["perfect"]["points"])


def test_models_of_other_scenes_share_the_gaps(tmp_path: Path) -> None:
    """A failure that cannot happen in every scene had the gaps of its own scenes, below those of the first model."""

    def case(model: str, gap: int, seed: int) -> Case:
        phases = (8, 8 + gap + 8 * seed)
        return Case(
            f"{seed}-{gap}@{model}", "folder", model, f"scene {seed}", Clip(Path("x.mp4")), condition=f"away-{gap}",
            phases=phases,
        )  # fmt: skip

    cases = [case("perfect", gap, seed) for gap in (16, 32) for seed in range(2)] + [case("state_reset", 32, 1)]
    records = [Record(one, "target_identity", False, "scored", 0.5) for one in cases]
    found = curves(Results(cases, records), fps=8)
    points = {model: curve["points"] for model, curve in found["target_identity"]["models"].items()}
    assert [point["gap"] for point in points["perfect"]] == [point["gap"] for point in points["state_reset"]]
    assert [point["of"] for point in points["state_reset"]] == [0, 1]
    horizon = {"set": "lite", "fps": 8.0, "scenes": ["scene 0", "scene 1"], "forgotten_after": 6.0, "curves": found}
    horizon |= {"unread": {}, "failed": {"x": "it is broken"}}
    table = text.horizon_table(horizon)
    assert re.search(r"state_reset +– \(0/0\) +0\.50 \(1/1\)", table) and "failed, and not counted: x: it is" in table
    assert "–" in write_horizon_page(tmp_path, horizon).read_text()


# The whole of it


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Content]]:
    """An audit of three metrics that are cheap to observe, on two scenes."""
    out = tmp_path_factory.mktemp("audit")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REVISIT_CACHE", str(out / "cache"))
        yield (
            out,
            run_audit(
                out, AuditGrid(("frozen_camera", "vanish"), (1.0,), seeds=2, size=(120, 208), floors=("noise",)),
                options=AuditOptions(workers=0, metrics=("psnr_returned", "frozen_camera", "flicker")),
            ),
        )  # fmt: skip


@pytest.mark.slow
@pytest.mark.long
def test_the_audit_finds_what_the_metrics_are_for(small: tuple[Path, Content]) -> None:
    out, found = small
    metrics = found["metrics"]
    assert found["grid"]["failed"] == 0 and not found["not_asked"]
    assert metrics["frozen_camera"]["kinds"]["frozen_camera"]["auc"] == 1
    assert metrics["psnr_returned"]["kinds"]["vanish"]["response"] == "responds"
    assert metrics["psnr_returned"]["memory"] and metrics["psnr_returned"]["floors"]["frozen_camera"]["auc"] == 1
    assert metrics["frozen_camera"]["kinds"]["vanish"]["response"] == "quiet"
    assert metrics["flicker"]["kinds"]["vanish"]["response"] != "responds"  # quiet or not is chance with two scenes
    assert metrics["psnr_returned"]["ceiling"]["mean"] > metrics["psnr_returned"]["perfect"]["mean"]
    assert json.loads((out / "audit.json").read_text()) == json.loads(json.dumps(found))


@pytest.mark.slow
@pytest.mark.long
def test_the_matrix_and_the_page_show_every_metric(small: tuple[Path, Content]) -> None:
    out, found = small
    shown = text.audit_text(found)
    assert max(map(len, shown.splitlines()[:8])) <= 160
    assert "[100*]" in shown and "2 of 2 failures" in shown
    html = write_audit_page(out, found).read_text()
    assert "<script" not in html and "unsafe-inline" not in html
    assert all(metric["title"] in html for metric in found["metrics"].values())
    assert len(re.findall(r'<td class="l\d+', html)) == 6


def test_abbreviations_differ() -> None:
    short = text.abbreviate_kinds(list(FAILURES))
    assert len(set(short.values())) == len(FAILURES) and all(len(word) <= 5 for word in short.values())


def test_a_page_escapes_what_comes_from_outside(tmp_path: Path) -> None:
    points = [{"gap": 1.0, "n": 1, "of": 1, "mean": 0.5, "interval": None}, {"gap": 2.0, "n": 0, "of": 1}]
    models = {name: {"points": points, "tau": None} for name in ("<b>", *(f"model {k}" for k in range(8)))}
    curve = {"title": "A", "higher_is_better": True, "range": [0, 1], "models": models}
    found = {"set": "lite", "fps": 8.0, "scenes": ["a"], "forgotten_after": 6.0, "curves": {"x": curve}}
    html = write_horizon_page(tmp_path, found).read_text()
    assert "<b>" not in html.replace("<b>fades</b>", "") and "&lt;b&gt;" in html
    assert len(re.findall(r'<li class="k\d">', html)) == 9  # each curve is named


def test_a_page_is_written_whatever_a_model_is_called(tmp_path: Path) -> None:
    curve = {"title": "A", "higher_is_better": True, "range": [0, 1]}
    curve["models"] = {"\udcff": {"points": [{"gap": 1.0, "n": 1, "of": 1, "mean": 0.5}], "tau": None}}
    horizon = {"set": "lite", "fps": 8.0, "scenes": ["a"], "forgotten_after": 6.0, "curves": {"x": curve}}
    assert "\ufffd" in write_horizon_page(tmp_path, horizon).read_text()


def test_what_a_cell_says_stands_on_lines_of_its_own(tmp_path: Path) -> None:
    audit = audited("target_reappearance", lambda kind, strength, seed: 0.9 - strength, ["vanish"])
    html = write_audit_page(tmp_path, {**audit, "grid": load_saved_audit("lite")["grid"]}).read_text()
    tips = re.findall(r'data-tip="([^"]*)"', html)
    assert tips and all("\n" in tip for tip in tips)


# What is kept with the package


def test_the_saved_results_are_of_these_metrics_and_failures() -> None:
    saved = load_saved_audit("lite")
    assert set(saved["kinds"]) == set(FAILURES), "run `revisit audit --save-results` after changing the failures"
    made = set(load_roles("lite"))
    folder = {
        one.id
        for one in METRICS.values()
        if "folder" in one.suites
        and {evidence_id(kind) for kind in observed_kinds_needed_by(one, optional=False)} <= made
    }
    known = set(saved["metrics"]) | set(saved["not_asked"])
    # Their cards say that they were not audited: they are for longer clips than the audit's, or newer than it.
    folder -= {"long_drift", "time_to_collapse", "edge_sharpness", "target_in_view"}
    folder = {id for id in folder if not id.startswith(("drift_", "half_life_"))}
    assert folder <= known, f"run `revisit audit --save-results`: not audited are {sorted(folder - known)}"


def test_no_metric_claims_a_failure_that_it_does_not_notice() -> None:
    """Of the metrics that were audited as they are: half or less of right pairs is a coin."""
    blind = {
        (id, kind)
        for id, saved in load_saved_audit("lite")["metrics"].items()
        if id in METRICS and METRICS[id].version == saved["version"]
        for kind, cell in saved["kinds"].items()
        if kind in claimed_failures(METRICS[id]) and cell["auc"] is not None and 2 * cell["n"] >= cell["of"]
        if cell["auc"] <= 0.55
    }
    assert not blind, f"take the claim off their cards, or mend them: {sorted(blind)}"


def test_the_saved_results_show_no_frozen_camera_as_memory() -> None:
    saved = load_saved_audit("lite")["metrics"]
    fooled = [
        id
        for id, metric in saved.items()
        for fault in metric["failing"]
        if fault["problem"].startswith("frozen camera")
    ]
    assert not fooled


def test_cards_show_the_audit_of_their_version_only() -> None:
    version = METRICS["psnr_returned"].version
    assert any(line.startswith("AUC") for line in cards.audit_lines("psnr_returned", version).values())
    assert cards.audit_lines("psnr_returned", version + 1) == {} and cards.audit_lines("nothing", 1) == {}


@pytest.mark.parametrize("suites", [("folder",), ("folder", "wrbench")])
def test_the_request_of_an_audit_makes_its_plan_again(
    suites: tuple[str, ...], make_clip: Callable[..., Path], tmp_path: Path
) -> None:
    """`revisit eval --rescore` looked for evidence of another alignment, and did not find it."""
    for name in ("a", "truth"):
        make_clip(tmp_path / f"grid/{name}.mp4")
    (tmp_path / "grid/manifest.jsonl").write_text(json.dumps({"id": "a", "video": "a.mp4", "reference": "truth.mp4"}))
    plan, request = audit_plan_and_request(tmp_path / "grid", "lite", suites)
    again = Request.from_json(json.loads(json.dumps(request.as_json()))).plan()
    assert plan.wanted == again.wanted
    for case in plan.cases:
        checks = plan.checks_for(case)
        assert checks == again.checks_for(case)
        assert plan.answer_keys_by_check(case, checks) == again.answer_keys_by_check(case, checks)
