"""A run that grows: what is there already is kept, and what comes out is what a fresh build would make."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest

from revisit.core import METRICS, Clip, Gate, digest, evidence_id
from revisit.engine.cache import EvidenceCache
from revisit.engine.dependencies import observed_kinds_needed_by
from revisit.engine.request import Request
from revisit.engine.resume import resume_run
from revisit.media import clip_digest, encode_mp4
from revisit.media import digest as clip_digests
from revisit.report.write_html import write_report
from revisit.results.record_files import RecordLines
from revisit.results.run import Run
from tests.conftest import moving_frames

CHANGES = ("another clip", "clip gone", "picture gone", "scene torn", "evidence gone", "video gone")
FEW = ("flicker", "lighting_consistency", "camera_moved", "frozen_camera", "view_return")


class Grown:
    """A finished run with a page, to which clips can be added."""

    def __init__(self, folder):
        self.folder, self.videos, self.out = folder, folder / "videos", folder / "run"
        self.cache = EvidenceCache(folder / "cache")

    def clip(self, name, seed):
        path = self.videos / name
        path.parent.mkdir(parents=True, exist_ok=True)
        encode_mp4(path, moving_frames(9, (72, 96), seed), fps=8)

    def evaluate(self, metrics=FEW):
        run = Request.from_options(self.videos, metrics=metrics).run(self.out, workers=0, cache=self.cache)
        write_report(run)
        return run

    def page(self):
        folder = self.out / "report"
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != "made.json"
        }

    def fresh_page(self):
        """The page of the same run, made with nothing to start from."""
        shutil.rmtree(self.out / "report")
        write_report(Run(self.out))
        return self.page()


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The run as it was made, and a copy of it."""
    made = Grown(tmp_path_factory.mktemp("grown") / "now")
    for k, name in enumerate(("a/one.mp4", "a/two.mp4", "b/one.mp4")):
        made.clip(name, seed=k)
    made.evaluate()
    shutil.copytree(made.folder, made.folder.with_name("kept"))
    return made


@pytest.fixture
def grown(kept):
    """The run, put back to where it was made."""
    shutil.rmtree(kept.folder)
    shutil.copytree(kept.folder.with_name("kept"), kept.folder)
    return Grown(kept.folder)


def written(folder):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "report/scenes").iterdir()}


def test_an_added_clip_gives_the_bytes_of_a_fresh_build_and_leaves_other_scenes_alone(grown, tmp_path):
    before = written(grown.out)
    grown.clip("b/three.mp4", seed=7)
    run = grown.evaluate()
    assert run.facts["counters"]["clips_decoded"] == 1
    after = written(grown.out)
    assert len(after) == 3 and before.items() <= after.items()
    assert grown.page() == grown.fresh_page()

    whole = Request.from_options(grown.videos, metrics=FEW).run(
        tmp_path / "whole", workers=0, cache=EvidenceCache(tmp_path / "c2")
    )
    assert (whole.path / "summary.json").read_bytes() == (grown.out / "summary.json").read_bytes()


def test_a_new_metric_observes_nothing_and_is_on_every_scene(grown):
    before = written(grown.out)
    run = grown.evaluate(metrics=(*FEW, "style_consistency"))
    assert run.facts["counters"]["frames_decoded"] == 0 or "lite.style" in run.facts["counters"]["observer_runs"]
    assert all(moment != before[name] for name, moment in written(grown.out).items())
    assert grown.page() == grown.fresh_page()


def test_a_gate_that_has_answered_is_not_asked_again(grown, tmp_path, monkeypatch):
    request = Request.from_options(grown.videos, metrics=(*FEW, "return_consistency"))
    whole = request.run(tmp_path / "whole", workers=0, cache=grown.cache)
    asked = []
    monkeypatch.setattr(Gate, "__call__", lambda gate, *evidence, **params: asked.append(gate.id))
    run = request.run(grown.out, workers=0, cache=grown.cache)
    assert not asked
    assert (run.path / "summary.json").read_bytes() == (whole.path / "summary.json").read_bytes()
    kept = [[(r.question, r.status, r.value, r.reason, r.facts) for r in one.results.records] for one in (run, whole)]
    assert kept[0] == kept[1]


def test_a_new_metric_reads_no_evidence_but_its_own(grown, tmp_path):
    before = [id for id in FEW if id != "flicker"]
    Request.from_options(grown.videos, metrics=before).run(tmp_path / "two", workers=0, cache=grown.cache)
    request = Request.from_options(grown.videos, metrics=FEW)
    plan = request.plan()
    used = {key for case in plan.cases for key in plan.evidence_keys_for(case, [METRICS["flicker"]])}
    assert used < set(plan.tasks)
    for key in set(plan.tasks) - used:
        grown.cache.path(key).unlink()
    run = request.run(tmp_path / "two", workers=0, cache=grown.cache)
    assert run.facts["counters"]["clips_decoded"] == 0 and run.facts["counters"]["evidence_from_cache"] == len(used)
    assert not run.results.failures and len(run.results.scores("flicker")) == len(plan.cases)


@pytest.mark.parametrize(
    "change", ["another clip", "clip gone", "picture gone", "scene torn", "evidence gone", "video gone"]
)
def test_what_changed_is_made_again(grown, change):
    if change == "another clip":
        grown.clip("a/two.mp4", seed=11)
    elif change == "clip gone":
        (grown.videos / "a/two.mp4").unlink()
    elif change == "picture gone":
        next((grown.out / "report/frames").rglob("*.jpg")).unlink()
    elif change == "scene torn":
        scene = next((grown.out / "report/scenes").iterdir())
        scene.write_bytes(scene.read_bytes()[:-3])
    if change in ("evidence gone", "video gone"):
        run = Run(grown.out)
        key = run.plan["cases"][0]["evidence"]["thumbnails"]
        grown.cache.path(key).unlink() if change == "evidence gone" else (grown.videos / "a/one.mp4").unlink()
        write_report(run)
    else:
        grown.evaluate()
    assert len(written(grown.out)) == (1 if change == "clip gone" else 2)
    assert grown.page() == grown.fresh_page()


def test_a_page_with_copied_clips_and_back(grown):
    run = Run(grown.out)
    plain = grown.page()
    write_report(run, copy_clips=True)
    assert any(name.startswith("clips/") for name in grown.page())
    write_report(run)
    assert grown.page() == plain


def test_addresses_of_answers_are_the_digests_of_what_they_rest_on(grown):
    """Put together from parts for speed; a run of an earlier version is not scored again for it."""
    plan = Request.from_options(grown.videos, metrics=FEW).plan()
    for case in plan.cases:
        wanted = plan.wanted[case.id]
        keys = plan.answer_keys_by_check(case, plan.checks)
        for check in plan.checks:
            kinds = sorted(evidence_id(kind) for kind in observed_kinds_needed_by(check))
            said = {name: getattr(case, name) for name in ("phases", "camera", "prompt", "condition")}
            facts = {
                "asker": plan.protocol_with_hash(check),
                "evidence": {id: wanted.keys.get(id) or wanted.absent[id].sentence for id in kinds},
                "case": {**said, "annotations": dict(case.annotations)},
            }
            assert keys[check.id] == digest(facts, 24)


def test_settled_cases_are_believed_only_with_the_lines_they_were_seen_with(grown):
    settled, records = grown.out / "settled.json", grown.out / "records.jsonl"

    def open_now():
        plan = Request.from_options(grown.videos, metrics=FEW).plan()
        resumed = resume_run(grown.out, plan, fresh=False, request=None, dataset_case_ids=None)
        return sorted(f"{case} {check.id}" for case, checks in resumed.questions.items() for check in checks)

    assert open_now() == [] and len(json.loads(settled.read_bytes())["cases"]) == 3
    lines = records.read_bytes().splitlines(keepends=True)
    lost = json.loads(lines[2])
    asked = [f"{lost['case']} {lost.get('metric') or lost['gate']}"]
    for damage in (lines[2][:30] + b"\n", lines[2].replace(b'"facts"', b'"facts": {"x": "\xff"}, "f"'), b""):
        records.write_bytes(b"".join([*lines[:2], damage, *lines[3:]]))
        assert open_now() == asked
    records.write_bytes(b"".join(lines))
    for content in (b"", b"[]", b'{"basis": 1, "cases": []}', settled.read_bytes()[:-40]):
        settled.write_bytes(content)
        assert open_now() == []


def test_lines_are_read_on_where_reading_stopped(tmp_path):
    path = tmp_path / "records.jsonl"
    said = {"status": "scored", "key": "k"}
    first, second, third = (json.dumps({"case": case, "metric": "m", **said}) + "\n" for case in "aba")
    path.write_text(first + second[:20])
    lines = RecordLines(path)
    assert {case: list(mine) for case, mine in lines.newest.items()} == {"a": ["m"]}
    before = lines.digest_of_case_lines("a")
    with path.open("a") as file:
        file.write(second[20:] + third.replace("scored", "failed"))
    assert [mine["m"].status for mine in lines.read_appended_lines().newest.values()] == ["failed", "scored"]
    assert lines.digest_of_case_lines("a") not in (before, "") and lines.digest_of_case_lines("a") == RecordLines(
        path
    ).digest_of_case_lines("a")
    path.write_text('{"case": "c", "gate": "g", "status": "open", "key": "\\udc80"}\n')  # anew, with half a character
    assert [(case, list(mine)) for case, mine in lines.read_appended_lines().newest.items()] == [("c", ["g"])]


def test_a_video_that_has_not_changed_is_not_read_again(tmp_path, monkeypatch):
    path, root = tmp_path / "a.mp4", tmp_path / "cache"
    clip = Clip(path)

    def told(later=3 * 10**9):
        now = path.stat().st_ctime_ns + later
        monkeypatch.setattr(clip_digests.time, "time_ns", lambda: now)
        known = clip_digests.ClipDigests(root, tmp_path)
        found = known.find_or_compute(clip)
        known.save()
        return found

    path.write_bytes(b"one")
    read = []

    def reading(clip):
        read.append(clip)
        return clip_digest(clip)

    monkeypatch.setattr(clip_digests, "clip_digest", reading)
    assert told(later=1) == told() == told() == clip_digest(clip)
    assert len(read) == 2  # what has just been written is read once more
    times = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # the same size and time of change, with other bytes
    assert told() == clip_digest(clip) and len(read) == 3
    assert clip_digest(clip) != clip_digests.ClipDigests(root, tmp_path).find_or_compute(Clip(path, start=1))
    assert clip_digests.ClipDigests(root, tmp_path / "other").earlier == {}
    (next((root / "digests").iterdir())).write_text("[1")
    assert told() == clip_digest(clip)


def test_clips_that_are_planned_together_have_the_addresses_of_clips_planned_alone(tmp_path):
    """Cases alike are planned from one of them; a case that brings more, or is asked after them, is not alike."""
    grown = Grown(tmp_path)
    for seed, name in enumerate(("a/one.mp4", "a/two.mp4", "b/one.mp4", "b/three.mp4")):
        grown.clip(name, seed)
    (grown.videos / "targets.json").write_text(json.dumps({"three": {"box": [0.2, 0.2, 0.6, 0.6], "name": "box"}}))
    together = Request.from_options(grown.videos).plan()
    boxed = {case.id: case.target is not None for case in together.cases}
    assert sum(boxed.values()) == 1
    for case in together.cases:
        alone = Request.from_options(case.clip.path).plan()
        wanted = together.wanted[case.id]
        for kind, key in alone.wanted[alone.cases[0].id].keys.items():
            assert wanted.keys[kind] == key and together.tasks[key][2].key == key
            assert together.tasks[key][:2] == (together.digests[case.id], case.clip)
        assert (len(wanted.keys) > len(alone.wanted[alone.cases[0].id].keys)) == boxed[case.id]


def test_the_rate_of_an_array_is_part_of_what_is_remembered(tmp_path, monkeypatch):
    path, root = tmp_path / "a.npy", tmp_path / "cache"
    np.save(path, np.zeros((4, 16, 16, 3), np.uint8))
    later = path.stat().st_ctime_ns + 3 * 10**9
    monkeypatch.setattr(clip_digests.time, "time_ns", lambda: later)
    for fps in (8.0, 32.0, None, 8.0):
        known = clip_digests.ClipDigests(root, tmp_path)
        assert known.find_or_compute(Clip(path, fps=fps)) == clip_digest(Clip(path, fps=fps))
        known.save()
