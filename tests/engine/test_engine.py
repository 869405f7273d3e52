"""The engine: one decode per clip, one run per observer, resuming, and failures that stay where they are."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from revisit.core import (
    GATES,
    METRICS,
    OBSERVERS,
    Case,
    Clip,
    GateResult,
    MissingPrerequisite,
    Record,
    Score,
    Series,
    Suite,
    Target,
    Unscored,
    UsageError,
    derived,
    evidence,
    gate,
    metric,
    observer,
)
from revisit.engine.cache import EvidenceCache, cache_root
from revisit.engine.dependencies import ObserverSet
from revisit.engine.jobs import ClipTask, ObserverTask, ObservingJob
from revisit.engine.observe import make_partners_function
from revisit.engine.plan import make_plan
from revisit.engine.request import rescore_run_folder
from revisit.engine.run import Progress, evaluate, rescore
from revisit.engine.score import Scorers, make_scoring_input
from revisit.results.record_files import RecordLines, RecordWriter
from revisit.results.run import Run
from revisit.results.tables import standard_summary as summarise


@evidence(id="test_brightness")
@dataclass(frozen=True)
class Brightness:
    index: np.ndarray
    mean: np.ndarray


@evidence(id="test_difference")
@dataclass(frozen=True)
class Difference:
    value: np.ndarray


@evidence(id="test_spot")
@dataclass(frozen=True)
class Spot:
    x: float


@evidence(id="test_trouble")
@dataclass(frozen=True)
class Trouble:
    x: float


@evidence(id="test_change")
@dataclass(frozen=True)
class Change:
    size: float


@observer(id="test.brightness", version=1, kind="frame", makes=Brightness, size=32)
def brightness(batch):
    return Brightness(batch.index, np.array([rgb.mean() for rgb in batch.rgb]))


@observer(id="test.difference", version=1, kind="sequence", makes=Difference, pairs=True)
def difference(clip):
    values = []
    while (pair := (yield)) is not None:
        mine, truth = pair
        values.append(float(np.abs(mine.rgb.astype(int) - truth.rgb.astype(int)).mean()))
    return Difference(np.array(values))


@observer(id="test.spot", version=1, kind="sequence", makes=Spot, inputs=("target",))
def spot(clip, target):
    while (yield) is not None:
        pass
    return Spot(target.box[0])


@observer(id="test.trouble", version=1, kind="sequence", makes=Trouble)
def trouble(clip):
    while (frame := (yield)) is not None:
        if frame.index == 3:
            raise RuntimeError("a cable\nwas loose")
    return Trouble(0.0)


@derived(makes=Change, needs=(Brightness,), version=1)
def change(seen):
    return Change(float(np.ptp(seen.mean)))


@gate(id="test_gate", version=1, title="long enough", needs=(Brightness,))
def long_enough(seen, *, frames: int = 5):
    """Open for clips that are not short."""
    if len(seen.index) < frames:
        return GateResult("closed", "short", f"too short: {len(seen.index)} frames")
    return GateResult("open", "long")


def _metric(id, needs, gates=()):
    return metric(
        id=id, version=1, title=id, unit="score", range=(0, None), higher_is_better=True, needs=needs, gates=gates
    )


@_metric("test_mean", (Brightness,))
def mean_brightness(seen):
    return Score(seen.mean.mean(), units=Series(frame=seen.index, value=seen.mean))


@_metric("test_gated", (Change,), ("test_gate",))
def gated(seen):
    return Score(seen.size)


@_metric("test_difference_mean", (Difference,))
def difference_mean(seen):
    return Score(seen.value.mean()) if len(seen.value) else Unscored("no_overlap", "nothing to compare")


@_metric("test_spot_x", (Spot,))
def spot_x(seen):
    return Score(seen.x)


@_metric("test_trouble_x", (Trouble,))
def trouble_x(seen):
    return Score(seen.x)


@_metric("test_bug", (Brightness,))
def bug(seen):
    return Score(1 / 0)


ALL = ("test_mean", "test_gated", "test_difference_mean", "test_spot_x")
SET = {obs.makes.evidence_id: obs for obs in (brightness, difference, spot, trouble)}  # type: ignore[attr-defined]


def plan_for(cases, metrics=ALL, parameters=None, **options):
    suite = Suite(
        "test",
        {"protocols": {"p": parameters or {}}},
        lambda source, roots: cases,
        lambda source: True,
        lambda: metrics,
        summarise,
    )
    return make_plan(suite, cases[0].clip.path, ObserverSet("test", SET), metrics=metrics, **options)


def case(path, sample="s", **more):
    model = more.pop("model", "m")
    return Case(id=f"{sample}@{model}", suite="test", model=model, sample=sample, clip=Clip(path), **more)


def by_question(run):
    return {(r.case.id, r.question): r for r in run.results.records}


@pytest.fixture
def cases(make_clip, tmp_path):
    truth = make_clip(tmp_path / "truth.mp4", seed=9)
    target = Target("cup", (0.25, 0.1, 0.5, 0.5))
    return [
        case(make_clip(tmp_path / f"{name}.mp4", seed=i), name, reference=Clip(truth), target=target)
        for i, name in enumerate("abc")
    ] + [case(truth, "truth", reference=Clip(truth))]


def test_each_clip_is_decoded_once_and_each_observer_runs_once_per_clip(cases, tmp_path):
    run = evaluate(plan_for(cases), tmp_path / "run", workers=0)
    counters = run.facts["counters"]
    assert counters["clips_decoded"] == counters["decodes"] == 4  # the truth is a case and everybody's reference
    assert counters["most_decodes_of_one_clip"] == counters["most_runs_of_one_observer_on_one_clip"] == 1
    assert counters["observer_runs"] == {"test.brightness": 4, "test.difference": 4, "test.spot": 3}
    found = by_question(run)
    assert found["truth@m", "test_difference_mean"].value == 0
    assert found["a@m", "test_difference_mean"].value > 1
    assert found["a@m", "test_spot_x"].value == 0.25
    assert found["truth@m", "test_spot_x"].sentence == "no target was given for this case"


@pytest.mark.long
@pytest.mark.slow
def test_worker_processes_give_the_same_summary(cases, tmp_path, monkeypatch):
    here = evaluate(plan_for(cases), tmp_path / "here", workers=0)
    monkeypatch.setenv("REVISIT_CACHE", str(tmp_path / "other"))
    watching = Counting()
    there = evaluate(plan_for(cases), tmp_path / "there", workers=2, progress=watching)
    assert (here.path / "summary.json").read_bytes() == (there.path / "summary.json").read_bytes()
    counters = there.facts["counters"]
    # one reference ties all clips together, and yet both workers had something to do
    assert (counters["clips_decoded"], counters["decodes"], counters["most_decodes_of_one_clip"]) == (4, 5, 2)
    assert counters["most_runs_of_one_observer_on_one_clip"] == 1
    assert (watching.clips, watching.done) == (4, 4)


@pytest.mark.long
def test_the_last_scenes_are_shared_out_among_workers_that_would_wait(make_clip, tmp_path):
    """Three scenes on two workers: the third one is split, and only that."""
    cases = []
    for scene in "xyz":
        truth = Clip(make_clip(tmp_path / f"{scene}.mp4", seed=ord(scene)))
        clips = [make_clip(tmp_path / f"{scene}{n}.mp4", seed=n + 2 * ord(scene)) for n in range(2)]
        cases += [case(path, path.stem, reference=truth) for path in clips]
    counters = evaluate(plan_for(cases), tmp_path / "run", workers=2).facts["counters"]
    assert (counters["clips_decoded"], counters["decodes"], counters["most_decodes_of_one_clip"]) == (9, 10, 2)
    assert counters["most_runs_of_one_observer_on_one_clip"] == 1


class Counting(Progress):
    clips = done = 0

    def start(self, clips: int, cases: int, done: int) -> None:
        self.clips, self.done = clips, done

    def advance(self, what: str, failed: int) -> None:
        self.done += 1


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 50])
def test_a_job_is_split_so_that_nothing_is_lost_or_done_twice(parts):
    """Two references, one of which is compared with the other, and clips compared with one or both of them."""

    def clip(name, *references):
        watched = ObserverTask(f"{name}:", "look", "m", {})
        compared = (ObserverTask(f"{name}:{other}", "compare", "m", {}, reference=other) for other in references)
        return ClipTask(name, Clip(Path(name)), (watched, *compared))

    clips = clip("r"), clip("s", "r"), *(clip(f"c{n}", *("rs", "r", "s")[n % 3]) for n in range(9)), clip("alone")
    job = ObservingJob(clips, frozenset("rs"))
    assert job.max_split_parts == 10
    made = job.split(parts, lambda clip: len(clip.observers))
    assert len(made) == min(parts, 10)
    done = [task.key for part in made for clip in part.clips for task in clip.observers]
    assert sorted(done) == sorted(task.key for clip in clips for task in clip.observers)
    for part in made:
        before: set[str] = set()
        for one in part.clips:
            assert {task.reference for task in one.observers if task.reference} <= before & part.references
            before.add(one.digest)
    first_seen = [one.digest for part in made for one in part.clips if not one.again]
    assert sorted(first_seen) == sorted(one.digest for one in clips)
    if parts < 6:  # the largest is at most one clip more than the smallest, where there is enough to share
        load = [sum(len(one.observers) for one in part.clips) for part in made]
        assert max(load) - min(load) <= 3


@pytest.mark.long
def test_other_processes_score_with_the_same_bytes(cases, tmp_path, monkeypatch):
    here = evaluate(plan_for(cases), tmp_path / "here", workers=0)
    monkeypatch.setattr("revisit.engine.run.scoring_worker_count", lambda *_: 2)
    with monkeypatch.context() as patched:
        patched.setattr("revisit.engine.score.score_case", lambda *_: pytest.fail("scored here"))
        there = evaluate(plan_for(cases), tmp_path / "there", workers=0)
        rescore(plan_for(cases), there.path)
    assert (here.path / "summary.json").read_bytes() == (there.path / "summary.json").read_bytes()
    assert told(here) == told(there)
    assert {path.name for path in (here.path / "units").rglob("*.npz")} == {
        path.name for path in (there.path / "units").rglob("*.npz")
    }


def told(run: Run) -> list[Record]:
    return sorted(
        (record.with_changed_fields(seconds=0.0) for record in run.results.records),
        key=lambda r: (r.case.id, r.question),
    )


@pytest.mark.slow
def test_a_scorer_that_is_killed_or_knows_less_costs_nothing(cases, tmp_path):
    plan, cache = plan_for(cases, ("test_mean",)), EvidenceCache(cache_root())
    good = evaluate(plan, tmp_path / "run", workers=0, cache=cache)
    case, asked = plan.cases[0], plan.checks_for(plan.cases[0])
    scoring_input = make_scoring_input(plan, case, asked, {})
    wanted = [record.with_changed_fields(seconds=0.0) for record in good.results.records if record.case.id == case.id]
    found: list[list[Record]] = []
    with Scorers(1, cache, tmp_path / "run/units") as scorers:
        scorers.submit_case(
            scoring_input, [replace(check, version=99) for check in asked], found.append
        )  # of which it has another
        scorers.collect(all=True)
        scorers.submit_case(scoring_input, asked, found.append)
        for process in multiprocessing.active_children():
            process.kill()
        scorers.collect(all=True)
        scorers.submit_case(scoring_input, asked, found.append)
        scorers.collect(all=True)
    assert [record.version for record in found[0]] == [99] * len(asked)
    assert [[record.with_changed_fields(seconds=0.0) for record in one] for one in found[1:]] == [wanted, wanted]


def test_a_second_run_answers_from_records_and_a_new_metric_from_cached_evidence(cases, tmp_path):
    out = tmp_path / "run"
    evaluate(plan_for(cases), out, workers=0)
    lines = (out / "records.jsonl").read_bytes()
    again = evaluate(plan_for(cases), out, workers=0)
    assert (out / "records.jsonl").read_bytes() == lines
    assert again.facts["counters"]["decodes"] == 0
    more = evaluate(plan_for(cases, (*ALL, "test_bug")), out, workers=0)
    assert more.facts["counters"]["decodes"] == 0
    assert (out / "records.jsonl").read_bytes().startswith(lines)


def test_a_changed_clip_or_parameter_is_asked_again(cases, make_clip, tmp_path):
    out = tmp_path / "run"
    before = by_question(evaluate(plan_for(cases), out, workers=0))
    make_clip(tmp_path / "a.mp4", seed=77)
    after = by_question(evaluate(plan_for(cases), out, workers=0))
    assert after["a@m", "test_mean"].value != before["a@m", "test_mean"].value
    assert after["b@m", "test_mean"] == before["b@m", "test_mean"]
    stricter = by_question(evaluate(plan_for(cases, parameters={"test_gate": {"frames": 50}}), out, workers=0))
    assert stricter["b@m", "test_gated"].sentence == "too short: 12 frames"
    assert stricter["b@m", "test_gated"].protocol != before["b@m", "test_gated"].protocol
    assert stricter["b@m", "test_mean"].protocol == before["b@m", "test_mean"].protocol


def test_one_bad_case_never_stops_the_others(cases, tmp_path):
    (tmp_path / "bad.mp4").write_text("not a video")
    broken = [*cases, case(tmp_path / "bad.mp4", "bad"), case(tmp_path / "missing.mp4", "missing")]
    run = evaluate(plan_for(broken, (*ALL, "test_bug", "test_trouble_x")), tmp_path / "run", workers=2)
    found = by_question(run)
    assert run.exit_code == 1
    assert "this is text, not a video" in found["bad@m", "test_mean"].sentence
    assert "no such file" in found["missing@m", "test_mean"].sentence
    assert found["a@m", "test_mean"].status == "scored"
    fault = found["a@m", "test_bug"].sentence
    assert re.fullmatch(r"test_bug failed: ZeroDivisionError: .* \(tests/engine/test_engine.py:\d+\)", fault), fault
    assert "a cable was loose" in found["a@m", "test_trouble_x"].sentence


def test_a_broken_reference_costs_only_the_comparison(make_clip, tmp_path):
    (tmp_path / "truth.mp4").write_text("not a video")
    one = case(make_clip(tmp_path / "a.mp4"), "a", reference=Clip(tmp_path / "truth.mp4"))
    found = by_question(evaluate(plan_for([one], ("test_mean", "test_difference_mean")), tmp_path / "run", workers=0))
    assert found["a@m", "test_mean"].status == "scored"
    assert "the reference cannot be read" in found["a@m", "test_difference_mean"].sentence


def test_references_of_another_length_ask_for_a_rule(make_clip, tmp_path):
    truth = Clip(make_clip(tmp_path / "truth.mp4", count=20))
    one = case(make_clip(tmp_path / "a.mp4", count=12), "a", reference=truth)
    found = by_question(evaluate(plan_for([one], ("test_difference_mean",)), tmp_path / "run", workers=0))
    assert "the reference has 20 frames and the video 12; pass --align" in found["a@m", "test_difference_mean"].sentence
    for rule in ("index", "time", "stretch"):
        run = evaluate(plan_for([one], ("test_difference_mean",), align=rule), tmp_path / rule, workers=0)
        assert by_question(run)["a@m", "test_difference_mean"].status == "scored"


def test_alignment_rules():
    from revisit.core import ClipInfo, Frame

    info = ClipInfo(4, 4, 5, 10.0, np.arange(5) / 10)
    frames = [Frame(i, i / 10, np.zeros((4, 4, 3), np.uint8), "") for i in range(5)]
    times = np.arange(10) / 20
    picks = {
        rule: [partner for frame in frames for partner in make_partners_function(rule, info, 10, times)(frame)]
        for rule in ("index", "time", "stretch")
    }
    assert picks == {"index": [0, 1, 2, 3, 4], "time": [0, 2, 4, 6, 8], "stretch": [0, 2, 4, 7, 9]}
    assert [make_partners_function("index", info, 3, times)(frame) for frame in frames] == [[0], [1], [2], [], []]


def test_a_torn_last_line_is_cut_off_and_answered_again(cases, tmp_path):
    out = tmp_path / "run"
    run = evaluate(plan_for(cases), out, workers=0)
    summary = (out / "summary.json").read_bytes()
    whole = (out / "records.jsonl").read_bytes()
    (out / "records.jsonl").write_bytes(whole[:-40])
    evaluate(plan_for(cases), out, workers=0)
    assert (out / "summary.json").read_bytes() == summary
    assert len((out / "records.jsonl").read_text().splitlines()) == len(run.results.records)


def test_files_that_a_kill_left_half_written_are_removed(cases, tmp_path):
    out = evaluate(plan_for(cases), tmp_path / "run", workers=0).path
    torn = next((out / "units").iterdir()) / ".writing-1-2-value.npz"
    torn.touch()
    evaluate(plan_for(cases), out, workers=0)
    assert torn.exists(), "no invocation was killed"
    facts = json.loads((out / "run.json").read_text())
    facts["invocations"][0]["finished"] = None
    (out / "run.json").write_text(json.dumps(facts))
    evaluate(plan_for(cases), out, workers=0)
    assert not torn.exists()


def test_a_damaged_cache_file_is_made_again(cases, tmp_path):
    evaluate(plan_for(cases), tmp_path / "one", workers=0)
    for file in EvidenceCache(cache_root()).files():
        file.write_bytes(file.read_bytes()[:50])
    run = evaluate(plan_for(cases), tmp_path / "two", workers=0)
    assert {record.status for record in run.results.records} == {"open", "scored", "unscored"}


def test_fresh_forgets_and_another_source_is_refused(cases, tmp_path):
    out = tmp_path / "run"
    evaluate(plan_for(cases), out, workers=0, request={"source": "one"})
    (out / "mine.txt").write_text("keep me")
    with pytest.raises(UsageError, match="holds a run of one"):
        evaluate(plan_for(cases), out, workers=0, request={"source": "two"})
    fresh = evaluate(plan_for(cases), out, workers=0, fresh=True, request={"source": "two"})
    assert len((out / "records.jsonl").read_text().splitlines()) == len(fresh.results.records)
    assert (out / "mine.txt").is_file()


def test_rescoring_decodes_nothing(cases, tmp_path, monkeypatch):
    run = evaluate(plan_for(cases), tmp_path / "run", workers=0)
    summary = (run.path / "summary.json").read_bytes()
    monkeypatch.setattr("revisit.engine.observe.open_clip", lambda *a, **k: pytest.fail("decoded"))
    rescore(plan_for(cases), run.path)
    assert (run.path / "summary.json").read_bytes() == summary


def test_rescoring_without_evidence_leaves_the_run_as_it_is_and_names_its_command(cases, tmp_path):
    """Failures must not take the place of scores because somebody cleaned the cache."""
    run = evaluate(plan_for(cases), tmp_path / "run", workers=0, command="revisit audit --seeds 1")
    before = {path.name: path.read_bytes() for path in run.path.glob("*.json*")}
    way = "`revisit audit --seeds 1` makes it again with --fresh or another --out"  # alone, it has no open question
    with pytest.raises(MissingPrerequisite, match=rf"evidence of 4 of 4 clips.*{way}"):
        rescore(plan_for(cases), run.path, EvidenceCache(tmp_path / "other cache"))
    assert {path.name: path.read_bytes() for path in run.path.glob("*.json*")} == before
    cache = EvidenceCache(tmp_path / "other cache")
    evaluate(plan_for(cases), tmp_path / "another", workers=0, cache=cache)
    rescore(plan_for(cases), run.path, cache)
    with pytest.raises(UsageError, match="does not say how its clips are read, because it was not made by"):
        rescore_run_folder(run.path)


def test_rescoring_keeps_the_reason_of_what_failed(cases, tmp_path):
    (tmp_path / "bad.mp4").write_bytes(b"no video at all" * 100)
    plan = plan_for([*cases[:1], case(tmp_path / "bad.mp4", "bad")], (*ALL, "test_trouble_x"))
    run = evaluate(plan, tmp_path / "run", workers=0)
    before = {(r.case.id, r.question): r.sentence for r in run.results.records if r.failed}
    assert {id for id, _ in before} == {"a@m", "bad@m"}
    rescore(plan, run.path)
    after = {(r.case.id, r.question): r.sentence for r in Run(run.path).results.records if r.failed}
    assert after == before


def test_limit_marks_the_result_partial(cases, tmp_path):
    run = evaluate(plan_for(cases, limit=2), tmp_path / "run", workers=0)
    assert run.summary["partial"] == 2 and run.summary["total_cases"] == 4 and run.summary["cases"] == 2


def test_a_protocol_that_names_nothing_real_is_refused(cases):
    with pytest.raises(UsageError, match="which does not exist"):
        plan_for(cases, parameters={"no_such_metric": {"x": 1}})
    with pytest.raises(UsageError, match="sets x on test_mean, whose parameters are none"):
        plan_for(cases, parameters={"test_mean": {"x": 1}})


def test_summary_counts_what_is_unscored_by_reason_and_never_averages_it(cases, make_clip, tmp_path):
    short = case(make_clip(tmp_path / "short.mp4", count=3, seed=5), "short", target=Target("cup", (0.5, 0, 1, 1)))
    run = evaluate(plan_for([*cases[:2], short]), tmp_path / "run", workers=0)
    cell = run.summary["models"]["m"]["scores"]["test_gated"]
    scores = [r.value for r in run.results.records if r.question == "test_gated" and r.scored]
    assert cell["n"] == 2 and cell["of"] == 3 and cell["unscored"] == {"gate_closed": 1}
    assert cell["mean"] == pytest.approx(np.mean(scores))


def test_records_never_hold_numbers_that_are_not(tmp_path):
    with pytest.raises(ValueError, match="finite"):
        Score(float("nan"))
    with RecordWriter(tmp_path / "r.jsonl") as writer, pytest.raises(ValueError, match="JSON compliant"):
        writer.append(Record(case("a.mp4"), "m", False, "scored", float("inf")))
    assert RecordLines(tmp_path / "r.jsonl").newest == {}


def test_the_last_record_of_a_question_counts(tmp_path):
    with RecordWriter(tmp_path / "r.jsonl") as writer:
        for value in (1, 2):
            writer.append(Record(case("a.mp4"), "m", False, "scored", value))
    assert [mine["m"].score for mine in RecordLines(tmp_path / "r.jsonl").newest.values()] == [2]


def test_a_writer_knows_whether_others_write(tmp_path):
    record, path = Record(case("a.mp4"), "m", False, "scored", 1), tmp_path / "r.jsonl"
    with RecordWriter(path) as one, RecordWriter(path) as other:
        one.append(record)
        one.append(record)
        assert one.is_only_writer() and not other.is_only_writer()
        with RecordWriter(path, size=path.stat().st_size) as late:
            assert late.is_only_writer()
        other.append(record)
        assert not one.is_only_writer()
        one.append(record)
        assert not one.is_only_writer() and not other.is_only_writer(), "it stays so"


def test_two_things_of_one_name_are_refused():
    with pytest.raises(UsageError, match="two metrics are called 'test_mean'"):
        _metric("test_mean", (Brightness,))(lambda seen: Score(1))
    METRICS.add("test_mean", mean_brightness)
    assert "test_gate" in GATES and "test.spot" in OBSERVERS


def test_a_run_directory_that_is_none_says_so(tmp_path):
    with pytest.raises(UsageError, match="is not a run"):
        Run(tmp_path)


def test_plan_json_can_be_read_a_year_later(cases, tmp_path):
    run = evaluate(plan_for(cases), tmp_path / "run", workers=0)
    plan = json.loads((run.path / "plan.json").read_text())
    assert plan["cases"][0]["clip"]["path"].endswith("a.mp4")
    assert set(plan["cases"][0]["evidence"]) == {"test_brightness", "test_difference", "test_spot"}
    assert replace(cases[0], seed=1) != cases[0]


@evidence(id="test_crash")
@dataclass(frozen=True)
class Crash:
    x: float


@observer(id="test.crash", version=1, kind="sequence", makes=Crash)
def crash(clip):
    yield
    os._exit(11)


@_metric("test_crash_x", (Crash,))
def crash_x(seen):
    return Score(seen.x)


@pytest.mark.slow
def test_a_worker_that_dies_costs_only_the_clips_it_held(cases, make_clip, tmp_path):
    good = by_question(evaluate(plan_for(cases[:1]), tmp_path / "good", workers=1))
    fatal = replace(plan_for([cases[1]], ("test_mean", "test_crash_x")).observers, roles={**SET, "test_crash": crash})
    suite = Suite("test", {}, lambda *a: cases[1:3], lambda s: True, lambda: ("test_mean", "test_crash_x"), summarise)
    run = evaluate(make_plan(suite, tmp_path, fatal), tmp_path / "run", workers=2)
    found = by_question(run)
    assert good["a@m", "test_mean"].status == "scored"
    assert all("ended with code 11" in record.sentence for record in found.values())
    assert run.exit_code == 1


def test_long_clips_come_first_by_what_earlier_runs_took(make_clip, tmp_path):
    from revisit.engine.costs import Costs, load_costs
    from revisit.engine.request import Request

    cache = EvidenceCache(tmp_path / "cache")
    for name, count in (("a", 5), ("b", 21), ("c", 12)):
        make_clip(tmp_path / f"videos/m/{name}.mp4", seed=count, size=(32, 48), count=count)
    assert load_costs(cache).per_frame == {}
    seen = []

    class Watching:
        def start(self, clips, cases, done): ...
        def advance(self, what, failed):
            seen.append(what)

        def show_judge_progress(self, done, total, said): ...
        def finish(self): ...

    Request.from_options(tmp_path / "videos", metrics=["flicker"]).run(
        tmp_path / "run", workers=0, cache=cache, progress=Watching()
    )
    assert seen == ["b.mp4", "c.mp4", "a.mp4"]
    costs = load_costs(cache)
    assert costs.per_frame and all(0 <= seconds < 1 for seconds in costs.per_frame.values())
    plan = Request.from_options(tmp_path / "videos", metrics=["flicker"]).plan()
    by_clip = [(clip, task) for _, clip, task in plan.tasks.values()]
    assert {costs.frames(clip) for clip, _ in by_clip} == {5, 21, 12}
    slow = dict.fromkeys(costs.per_frame, 1.0)
    assert Costs(slow).estimate_total_seconds(by_clip) == 38 * len({task.observer for _, task in by_clip})
    (tmp_path / "cache/costs.json").write_text("[torn")
    assert load_costs(cache).per_frame == {}
