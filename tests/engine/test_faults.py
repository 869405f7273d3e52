"""Faults that once gave a wrong number without a word, lost a file or stalled a run; each must stay mended."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from revisit.core import OBSERVERS, SUITES, Case, Clip, MediaError, UsageError, to_arrays
from revisit.engine.cache import EvidenceCache, cache_root
from revisit.engine.dataset_cases import mark_and_add_truth_cases
from revisit.engine.evidence_plan import EvidencePlanner
from revisit.engine.jobs import ClipTask, ObserverTask, ObservingJob
from revisit.engine.observe import observe_job
from revisit.engine.request import Request, load_observer_set
from revisit.engine.run import evaluate
from revisit.engine.worker_processes import temporary_environment_variables
from revisit.evidence.frames import FrameFacts
from revisit.judges.store import AnswerStore
from revisit.media import Limits, clip_digest, load_npz, open_clip, save_npz, write_picture
from revisit.results.run import Run
from tests.conftest import moving_frames


def folder_plan(source: Path, **more):
    return Request.from_options(source, **{"suite": "folder", "metrics": ("flicker",), "truth": False, **more}).plan()


# Two clips of one name


def test_clips_that_differ_only_in_their_endings_are_two_clips(make_clip, tmp_path):
    videos = tmp_path / "videos"
    make_clip(videos / "m" / "clip.mp4", seed=1)
    make_clip(videos / "m" / "clip.mov", seed=2)
    frames = videos / "m" / "clip"
    frames.mkdir()
    (frames / "0001.png").write_bytes(picture())
    plan = folder_plan(videos)
    assert [case.id for case in plan.cases] == ["clip@m#0", "clip.mov@m#0", "clip.mp4@m#0"]
    assert len(set(plan.digests.values())) == 3
    assert any("clip.mov" in remark for remark in plan.remarks)


def test_every_suite_keeps_ids_apart(make_clip, tmp_path):
    """A folder named like its root gives its clips the same model: the second is refused, and said to be."""
    videos = tmp_path / "videos"
    make_clip(videos / "a.mp4", seed=1)
    make_clip(videos / "videos" / "a.mp4", seed=2)
    plan = folder_plan(videos)
    assert len(plan.cases) == 1
    (refused,) = plan.rejected
    assert refused.reason.startswith("videos/a.mp4 and a.mp4 have one id, a@videos#0;")
    assert refused.id not in {case.id for case in plan.cases}


def test_two_references_of_one_sample_are_two_truths():
    def case(seed: int) -> Case:
        return Case(f"s@m#{seed}", "t", "m", "s", Clip(Path(f"{seed}.mp4")), Clip(Path(f"truth{seed}.mp4")), seed=seed)

    ids = [case.id for case in mark_and_add_truth_cases([case(0), case(1), case(2)])]
    assert len(set(ids)) == 6


# A clip that is replaced while it is evaluated


def picture(level: int = 90) -> bytes:
    import cv2

    return cv2.imencode(".png", np.full((32, 48, 3), level, np.uint8))[1].tobytes()


@pytest.mark.parametrize("kind", ["video", "folder"])
def test_a_clip_that_is_replaced_while_it_is_evaluated_is_refused(kind, make_clip, tmp_path):
    videos = tmp_path / "videos"
    if kind == "video":
        make_clip(videos / "m" / "a.mp4", seed=1)
    else:
        (videos / "m" / "a").mkdir(parents=True)
        for number in range(4):
            (videos / "m" / "a" / f"{number}.png").write_bytes(picture(40 * number))
    make_clip(videos / "m" / "b.mp4", seed=3)
    plan = folder_plan(videos)
    if kind == "video":  # after it was hashed, before it is decoded
        make_clip(videos / "m" / "a.mp4", seed=2)
    else:
        (videos / "m" / "a" / "2.png").write_bytes(picture(200))
    cache = EvidenceCache(cache_root())
    run = evaluate(plan, tmp_path / "run", workers=0, cache=cache)
    changed = [record for record in run.results.records if record.case.sample == "a" and not record.is_gate]
    assert changed and all("was changed while it was evaluated" in record.sentence for record in changed)
    assert all(key not in cache for key in plan.wanted["a@m#0"].keys.values()), "kept for ever under a wrong address"
    others = [record for record in run.results.records if record.case.sample == "b"]
    assert others and not any(record.failed for record in others)
    again = evaluate(folder_plan(videos), tmp_path / "run", workers=0, cache=cache)
    assert not any(record.failed for record in again.results.records)


def test_a_file_beside_a_clip_that_changes_under_way_is_refused(make_clip, tmp_path):
    poses = tmp_path / "poses.npy"
    np.save(poses, np.tile(np.eye(4), (12, 1, 1)))
    case = Case("a@m", "t", "m", "a", Clip(make_clip(tmp_path / "a.mp4")), artifacts={"poses": poses})
    maker = OBSERVERS["import.poses"]
    planner = EvidencePlanner(SUITES["folder"], [], load_observer_set("lite"), {}, "auto", tmp_path)
    task = planner.task_or_reason(case, maker.makes)
    assert isinstance(task, ObserverTask)
    cache, job = (
        EvidenceCache(cache_root()),
        ObservingJob((ClipTask(clip_digest(case.clip), case.clip, (task,)),), frozenset()),
    )
    np.save(poses, np.tile(np.diag([1.0, -1.0, -1.0, 1.0]), (12, 1, 1)))
    ((_, outcome),) = observe_job(job, cache, Limits())
    assert "was changed while it was evaluated" in outcome.failed[task.key]
    assert task.key not in cache


# Damaged evidence


def facts_of(seed: int, count: int = 9) -> FrameFacts:
    """A record with arrays, numbers and text."""
    from revisit.observers.frames import frame_facts

    made: FrameFacts = frame_facts(np.stack(moving_frames(count, seed=seed)))
    return made


def flipped(content: bytes, bit: int) -> bytes:
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def test_no_flipped_bit_of_evidence_goes_unnoticed(tmp_path):
    cache, chance = EvidenceCache(tmp_path), random.Random(5)
    key = "ab" * 20
    cache.save(key, facts_of(1))
    content = cache.path(key).read_bytes()
    assert len(to_arrays(cache.load(FrameFacts, key))) == len(to_arrays(facts_of(1)))
    ends = range(8 * len(content) - 8 * 600, 8 * len(content))  # the directory: no checksum of the zip covers it
    for bit in [*chance.sample(range(8 * len(content)), 600), *chance.sample(ends, 1400)]:
        cache.path(key).write_bytes(flipped(content, bit))
        assert cache.load(FrameFacts, key) is None, f"bit {bit} of {8 * len(content)}"
        assert key not in cache, "it is dropped, so that it is made again"


def test_a_smaller_shape_does_not_leave_the_checksum_unread(tmp_path):
    """Also in files that nobody sealed: those of users, and evidence of earlier versions."""
    path = tmp_path / "a.npz"
    save_npz(path, {"x": np.arange(48.0)})
    content = path.read_bytes()
    assert content.count(b"(48,)") == 1
    path.write_bytes(content.replace(b"(48,)", b"(40,)"))
    with pytest.raises(MediaError, match=r"damaged|more data than its shape"):
        load_npz(path)


def test_damaged_evidence_heals_in_the_next_run(make_clip, tmp_path, revisit):
    videos = tmp_path / "videos"
    make_clip(videos / "m" / "a.mp4")
    cache, plan = EvidenceCache(cache_root()), folder_plan(videos)
    first = evaluate(plan, tmp_path / "one", workers=0, cache=cache)
    files = list(cache.files())
    assert files
    for number, file in enumerate(files):
        content = file.read_bytes()
        file.write_bytes(flipped(content, 8 * len(content) - 8 * (90 + number)))
    second = evaluate(plan, tmp_path / "two", workers=0, cache=cache)
    assert (second.path / "summary.json").read_bytes() == (first.path / "summary.json").read_bytes()

    for number, file in enumerate(files):
        file.write_bytes((b"", b"PK\5\6", b"\x93NUMPY", bytes(400), b"PK\3\4" + bytes(90))[number % 5])
    done = revisit("cache", "verify", check=1)
    assert f"{len(files)} damaged pieces removed" in done.stdout
    assert not list(cache.files())


def test_damaged_evidence_that_cannot_be_removed_is_missing(tmp_path, monkeypatch):
    """As in a cache that others own: the sentence on the cache says what to do, and no traceback."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    cache = EvidenceCache(tmp_path)
    cache.save("ab" * 20, facts_of(2))
    path = cache.path("ab" * 20)
    path.write_bytes(path.read_bytes()[:-30])
    monkeypatch.setattr(Path, "unlink", refuse)
    assert not cache.verify_or_drop("ab" * 20)
    assert cache.load(FrameFacts, "ab" * 20) is None


def test_evidence_that_may_not_be_read_is_no_damaged_evidence(tmp_path, monkeypatch, revisit):
    """It was removed, as if its bytes were wrong."""
    cache, key, opened = EvidenceCache(cache_root()), "ab" * 20, Path.open
    cache.save(key, facts_of(2))

    def refuse(path: Path, *arguments: Any, **settings: Any) -> Any:
        if path.suffix == ".npz":
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        assert not cache.verify_or_drop(key) and cache.load(FrameFacts, key) is None
        done = revisit("cache", "verify", check=1)
    assert f"{key}.npz (Permission denied): it counts as missing, and is not removed" in cache.problems["read"]
    assert "0 damaged pieces removed" in done.stdout and "(Permission denied)" in done.stderr
    assert cache.verify_or_drop(key)


def test_a_cache_that_takes_no_evidence_costs_no_score(make_clip, tmp_path, monkeypatch, revisit):
    """As one that others own, or that is full: it cost the scores of all new clips. The run says it once."""
    for seed in range(2):
        make_clip(tmp_path / "videos/m" / f"{seed}.mp4", seed=seed)
    for fan_out in range(256):
        place = cache_root() / "evidence" / f"{fan_out:02x}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()  # a file where a folder should be made; rights do not stop the user of a container
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("revisit.engine.run.gettempdir", lambda: str(tmp_path / "temporary"))
    done = revisit("eval", "videos", "--out", "run", "--metric", "flicker", "--no-report", "--workers", 1)
    assert done.stderr.count("cannot be written (") == 1, done.stderr
    run = Run(tmp_path / "run")
    assert len(run.results.scores("flicker")) == 2 and not run.results.failures
    assert "cannot be written" in (run.path / "run.log").read_text()
    assert not list((tmp_path / "temporary").iterdir())
    assert "has no evidence" in revisit("eval", "run", "--rescore", "--no-report", check=None).stderr


def test_a_shared_cache_that_fails_costs_no_score(make_clip, tmp_path, monkeypatch):
    """Its evidence is in the cache of this machine, too; what is not answered is made here."""
    fsspec = pytest.importorskip("fsspec", reason="needs fsspec: pip install 'revisit-bench[ray]'")
    make_clip(tmp_path / "videos/m/a.mp4")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    for name in ("pipe_file", "cat_file", "find"):
        monkeypatch.setattr(fsspec.get_filesystem_class("memory"), name, refuse)
    cache = EvidenceCache(cache_root(), "memory://failing")
    with pytest.raises(PermissionError):
        cache.save("ab" * 20, facts_of(1))  # on a node of a cluster: nobody could read it here
    run = evaluate(folder_plan(tmp_path / "videos"), tmp_path / "run", workers=0, cache=cache)
    assert run.results.scores("flicker") and not run.results.failures
    assert run.facts["notes"]["cache"] == [
        "REVISIT_SHARED_CACHE=memory://failing cannot be used (Permission denied); the run goes on without it"
    ]


def test_evidence_of_earlier_versions_is_still_read(tmp_path):
    cache, record = EvidenceCache(tmp_path), facts_of(2)
    path = cache.path("cd" * 20)
    path.parent.mkdir(parents=True)
    save_npz(path, to_arrays(record))
    assert cache.verify_or_drop("cd" * 20)
    assert np.array_equal(cache.load(FrameFacts, "cd" * 20).index, record.index)


# Answers of one server for another


def test_recorded_answers_belong_to_the_server_that_gave_them(tmp_path):
    from revisit.judges.protocol import JudgeAnswer
    from revisit.judges.questions import Question, YesNo
    from revisit.judges.settings import judge_from_source
    from revisit.judges.store import ReplayJudge
    from tests.judging import pictures

    def judge(name: str, **more: str):
        path = tmp_path / f"{name}.yaml"
        path.write_text("".join(f"{key}: {value}\n" for key, value in {"model": "qwen", **more}.items()))
        return judge_from_source(str(path)).judge

    one, other = (judge(name, url=f"http://127.0.0.1:{port}/v1") for name, port in (("one", 8000), ("other", 9000)))
    store = AnswerStore(tmp_path / "answers.jsonl")
    frames, question = pictures(), Question("seen", "Is there a cup?", YesNo())
    store.record_answer(frames, question, one.facts, JudgeAnswer("answered", "yes", reply="yes"))
    assert store.find_answer(frames, question, one.facts) is not None
    assert store.find_answer(frames, question, other.facts) is None, (
        "the other server may serve other weights by this name"
    )
    store.record_answer(frames, question, other.facts, JudgeAnswer("answered", "no", reply="no"))
    store.close()
    with pytest.raises(UsageError, match=r"qwen at http://127.0.0.1:8000/v1, qwen at http://127.0.0.1:9000/v1"):
        ReplayJudge(tmp_path / "answers.jsonl")
    again = judge("again", kind="replay", path="answers.jsonl", server="http://127.0.0.1:9000/v1")
    assert again.reply(frames, [question], [""])[0].text == "no"
    moved = [judge(name, url=f"http://127.0.0.1:{port}/v1", server="lab") for name, port in (("a", 1), ("b", 2))]
    assert moved[0].facts == moved[1].facts, "a server with a name may move"


# Folders that were never a run


def test_fresh_takes_nothing_from_a_folder_that_was_never_a_run(make_clip, tmp_path, revisit):
    make_clip(tmp_path / "videos" / "m" / "a.mp4")
    mine = tmp_path / "mine"
    (mine / "report").mkdir(parents=True)
    (mine / "report" / "thesis.tex").write_text("years of work")
    (mine / "plan.json").write_text('{"buy": "milk"}')
    for more in (["--fresh"], []):
        done = revisit("eval", "videos", "--out", "mine", "--metric", "flicker", *more, check=2)
        assert "was never a run" in done.stderr and "Traceback" not in done.stderr
    assert (mine / "report" / "thesis.tex").read_text() == "years of work"
    assert (mine / "plan.json").read_text() == '{"buy": "milk"}'
    assert revisit("eval", "videos", "--out", "run", "--metric", "flicker", "--workers", "0").returncode == 0
    assert revisit("eval", "videos", "--out", "run", "--metric", "flicker", "--fresh", "--workers", "0").returncode == 0
    (tmp_path / "run" / "plan.json").write_text('{"suite": "fol')  # torn by a full disk
    assert revisit("eval", "videos", "--out", "run", "--metric", "flicker", "--workers", "0").returncode == 0


@pytest.mark.parametrize("key", ["cases", "made_by", "total_cases"])
def test_a_plan_file_without_what_every_plan_has_is_damaged(make_clip, tmp_path, key):
    make_clip(tmp_path / "videos" / "a.mp4")
    plan, out = folder_plan(tmp_path / "videos"), tmp_path / "run"
    evaluate(plan, out, workers=0)
    content = json.loads((out / "plan.json").read_text())
    del content[key]
    (out / "plan.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match=r"plan\.json is damaged; add --fresh"):
        evaluate(plan, out, workers=0, dataset_case_ids={case.id for case in plan.cases})


def test_a_kill_while_fresh_removes_a_run_leaves_a_run(make_clip, tmp_path, monkeypatch):
    """It left answers without the files that say whose they are: every later call was refused, --fresh too."""
    make_clip(tmp_path / "videos" / "a.mp4")
    plan, out = folder_plan(tmp_path / "videos"), tmp_path / "run"
    expected = evaluate(plan, out, workers=0).results.scalars()

    def killed(path: Path, **_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("revisit.engine.resume.shutil.rmtree", killed)
        evaluate(plan, out, workers=0, fresh=True)
    assert evaluate(plan, out, workers=0).results.scalars() == expected


def test_out_on_a_file_is_one_sentence(make_clip, tmp_path, revisit):
    make_clip(tmp_path / "videos" / "m" / "a.mp4")
    (tmp_path / "taken").write_text("mine")
    for out in ("taken", "taken/run"):
        done = revisit("eval", "videos", "--out", out, "--metric", "flicker", check=None)
        said = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
        assert done.returncode in (1, 2) and len(said) == 1 and "Traceback" not in done.stderr
    assert (tmp_path / "taken").read_text() == "mine"


def test_prune_must_be_told_what(tmp_path, revisit):
    cache = EvidenceCache(cache_root())
    cache.save("ab" * 20, facts_of(1))
    done = revisit("cache", "prune", check=2)
    assert "--days" in done.stderr and "--all" in done.stderr
    assert cache.verify_or_drop("ab" * 20)
    assert "0 pieces" in revisit("cache", "prune", "--days", "30").stdout
    assert "1 pieces" in revisit("cache", "prune", "--all", "--yes").stdout


# What is not read is told


def test_each_video_that_is_not_read_is_told_and_counted(make_clip, tmp_path):
    videos = tmp_path / "videos"
    make_clip(videos / "m" / "a.mp4")
    elsewhere = make_clip(tmp_path / "elsewhere" / "b.mp4").parent
    (videos / "linked").symlink_to(elsewhere, target_is_directory=True)
    (videos / "m" / "gone.mp4").symlink_to(tmp_path / "nowhere.mp4")
    (videos / "m" / "old.wmv").write_bytes(b"RIFF")
    (videos / "m" / "small.flv").write_bytes(b"FLV")
    os.mkfifo(videos / "m" / "pipe.mp4")
    (videos / "m" / "what.blend").write_bytes(b"?")
    plan = folder_plan(videos)
    assert [case.sample for case in plan.cases] == ["a"]
    told = {entry.id: entry.reason for entry in plan.rejected}
    assert sorted(told) == ["linked", "m/gone.mp4", "m/old.wmv", "m/pipe.mp4", "m/small.flv"]
    assert "link to a folder" in told["linked"] and "not there" in told["m/gone.mp4"]
    assert ".wmv is not read" in told["m/old.wmv"] and "no regular file" in told["m/pipe.mp4"]
    assert {entry.model for entry in plan.rejected} == {"linked", "m"}
    assert any("1 other file" in remark and "m/what.blend" in remark for remark in plan.remarks)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["0001", "0002", "0005", "0006"], "between 0002.png and 0005.png"),
        (["f0", "f10", "f20", "f40", "f50", "f80"], "between f20.png and f40.png, and 1 more"),
        (["0001", "0002", "0003"], ""),
        (["a10", "a20", "a30"], ""),
        (["left", "right"], ""),
        (["shot2_1", "shot2_2", "shot2_3"], ""),
    ],
)
def test_missing_frame_numbers_are_told(names, told, tmp_path):
    from revisit.media.frame_folder import find_frame_files

    for name in names:
        (tmp_path / f"{name}.png").write_bytes(picture())
    notes = " ".join(find_frame_files(tmp_path).notes)
    assert (told in notes) if told else not notes


# One bad text value


def test_one_bad_value_costs_one_clip(make_clip, tmp_path, revisit):
    videos = tmp_path / "videos"
    make_clip(videos / "a.mp4")
    deep = "[" * 100_000 + "]" * 100_000
    lines = [
        '{"id": "nan", "video": "a.mp4", "annotations": {"x": NaN}}',
        '{"id": "infinite", "video": "a.mp4", "annotations": {"x": [1e999]}}',
        '{"id": "half \\ud83d", "video": "a.mp4", "prompt": "half \\udc00"}',
        '{"id": "half", "video": "half \\udc00.mp4"}',
        f'{{"id": "deep", "video": "a.mp4", "annotations": {{"x": {deep}}}}}',
        f'{{"id": "rather deep", "video": "a.mp4", "annotations": {{"x": {"[" * 400 + "]" * 400}}}}}',
        json.dumps({"id": "long", "video": "x" * 4000}),
        json.dumps({"id": "longer", "video": "/".join(["y" * 200] * 20)}),
        '{"id": "line\u2028end", "video": "a.mp4"}',
        '{"id": "next", "video": "a.mp4", "prompt": "one\u2028two\u0085three"}',
        '{"id": "good", "video": "a.mp4"}',
    ]
    (videos / "manifest.jsonl").write_text("\n".join(lines), encoding="utf-8")
    plan = folder_plan(videos)
    ids = {case.sample for case in plan.cases}
    assert {"good", "next"} <= ids and not ids & {"nan", "infinite", "deep", "long"}
    assert all("\n" not in entry.reason and entry.reason for entry in plan.rejected)
    run = evaluate(plan, tmp_path / "run", workers=0)
    scored = {record.case.sample for record in run.results.records if record.scored}
    assert {"good", "next"} <= scored

    plain = tmp_path / "plain"
    make_clip(plain / "m" / "a.mp4")
    try:
        make_clip(plain / "m" / "b.mp4").rename(plain / "m" / os.fsdecode(b"\xff\xfe.mp4"))
    except OSError:
        pytest.skip("this disk takes only names in UTF-8")
    done = revisit("eval", "plain", "--metric", "flicker", "--workers", "0", "--out", "plain_run", check=1)
    assert "Traceback" not in done.stderr and "UTF-8" in done.stderr + done.stdout
    assert revisit("eval", "plain", "--metric", "flicker", "--workers", "0", "--out", "plain_run", "--json", check=1)


def test_a_name_that_is_too_long_for_any_disk_is_no_file(tmp_path):
    from revisit.suites.mbench.read import find_source_video

    item = SimpleNamespace(subset="object", sample="x" * 5000)
    assert find_source_video(SimpleNamespace(root=tmp_path), item) is None


def test_numbers_that_are_none_are_passed_over(tmp_path):
    """What a long fuzz run found: NaN in recorded answers, and a target further away than any number goes."""
    from revisit.judges.store import read_answer_lines
    from revisit.suites.mbench.read import ObjectAnchor, find_object_anchor

    kept = {"key": "k", "frames": "f", "question": {"digest": "q"}, "judge": {}, "answer": {"status": "answered"}}
    lines = [{**kept, "key": "n", "asked": float("nan")}, {**kept, "key": "i", "judge": {"x": float("inf")}}, kept]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [line["key"] for line in read_answer_lines(path)] == ["k"]
    AnswerStore(path).close()

    data = SimpleNamespace(root=tmp_path, anchors_from_side_file={})
    for far in (10**400, float("nan"), float("inf")):
        item = SimpleNamespace(sample="s", subset="object")
        item.facts = {"object_anchor": {"center_x": 30, "center_y": far, "width": 64, "height": 64}}
        assert find_object_anchor(data, item) == ObjectAnchor()
        item.facts = {"object_anchor": {"center_x": 30, "center_y": 30, "width": far, "height": 64}}
        anchor = find_object_anchor(data, item)
        assert anchor.source == "sample" and anchor.target is None and anchor.kind is None


def test_deep_and_swollen_yaml_is_one_sentence(make_clip, tmp_path, revisit):
    make_clip(tmp_path / "videos" / "m" / "a.mp4")
    bomb = "\n".join(
        ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        + [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 12)]
    )
    for number, text in enumerate(("[" * 20_000, "{a: " * 5_000, bomb, "url: &x [*x]", "date: 2020-99-99")):
        (tmp_path / f"{number}.yaml").write_text(text)
        done = revisit("eval", "videos", "--judge", f"{number}.yaml", "--metric", "flicker", check=2)
        assert "Traceback" not in done.stderr and len(done.stderr) < 2000, text[:20]


@pytest.mark.parametrize("how", ["closed", "full", "gone"])
def test_an_output_that_cannot_be_written_to_is_no_traceback(how):
    words = {"closed": ">&-", "full": ">/dev/full", "gone": "| true"}[how]
    if how == "full" and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; '{sys.executable}' -m revisit list --json {words}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
    assert done.returncode in {"closed": (0,), "full": (1,), "gone": (0, 1)}[how], done.stderr


# Full disks


@contextmanager
def files_of_at_most(size: int):
    """What is longer cannot be written: the system refuses it half-way, as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_terminal_that_lacks_characters_gets_question_marks():
    command = [sys.executable, "-m", "revisit", "list", "distances"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and b"Traceback" not in done.stderr, done.stderr


def test_a_user_without_a_home_is_told(monkeypatch):
    for name in ("HOME", "REVISIT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda number: {}[number])
    with pytest.raises(UsageError, match="set HOME or XDG_CACHE_HOME"):
        cache_root()


def test_what_does_not_fit_is_not_appended_in_part(tmp_path):
    from revisit.media.files import append_all_or_nothing

    file = os.open(tmp_path / "lines", os.O_RDWR | os.O_APPEND | os.O_CREAT)
    append_all_or_nothing(file, b"one\n")
    with files_of_at_most(10), pytest.raises(OSError, match="too large"):
        append_all_or_nothing(file, b"two that is too long\n")
    assert (tmp_path / "lines").read_bytes() == b"one\n"
    append_all_or_nothing(file, b"three\n")
    os.close(file)
    assert (tmp_path / "lines").read_bytes() == b"one\nthree\n"


def test_a_full_disk_is_one_sentence_and_the_same_command_goes_on(make_clip, tmp_path, revisit, monkeypatch):
    """Wherever it fills up: plan, evidence, units, records, and frames of references in the temporary folder."""
    monkeypatch.setattr("revisit.engine.observe.KEPT_BYTES", 0)  # frames of references that memory has no room for
    references(tmp_path, make_clip)
    asked = ("eval", "videos", "--metric", "flicker", "--metric", "psnr", "--workers", "0", "--no-report")
    revisit(*asked, "--out", "whole")
    expected = (tmp_path / "whole" / "summary.json").read_bytes()
    shutil.rmtree(cache_root())
    ends = []
    for size in (0, 2_500, 200_000):
        with files_of_at_most(size):
            done = revisit(*asked, "--out", "run", check=None)
        assert done.returncode == 1 and "Traceback" not in done.stderr, (size, done.stderr)
        ends.append(done.stderr)
    assert sum("too large" in said and "\nrevisit: " in f"\n{said}" for said in ends) >= 2, "some end the command"
    failed = Run(tmp_path / "run").results.failures
    assert failed and all("could not be observed" in record.sentence for record in failed), "and some cost a clip"
    assert not list(tmp_path.rglob(".writing-*"))
    revisit(*asked, "--out", "run")
    assert (tmp_path / "run" / "summary.json").read_bytes() == expected


@pytest.mark.parametrize("ending", [".png", ".jpg"])
def test_a_picture_that_the_disk_has_no_room_for_is_told(tmp_path, ending):
    picture = np.random.default_rng(0).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    with files_of_at_most(2_000), pytest.raises(OSError, match="File too large"):
        write_picture(tmp_path / f"a{ending}", picture)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [ValueError("odd"), UsageError("odd"), KeyError("odd")])
def test_what_nobody_expected_of_a_clip_costs_that_clip(make_clip, tmp_path, monkeypatch, error):
    """It ended the run, or a worker with all that it had."""
    from revisit.engine import observe

    def open_or_fail(clip: Clip, *arguments, **settings):
        if clip.path.name == "a.mp4":
            raise error
        return open_clip(clip, *arguments, **settings)

    monkeypatch.setattr(observe, "open_clip", open_or_fail)
    for seed, name in enumerate(("a", "b", "truth")):
        make_clip(tmp_path / f"{name}.mp4", seed=seed)
    lines = [json.dumps({"id": name, "video": f"{name}.mp4", "reference": "truth.mp4"}) for name in ("a", "b")]
    (tmp_path / "manifest.jsonl").write_text("\n".join(lines))
    plan = Request.from_options(tmp_path / "manifest.jsonl", metrics=["psnr"], truth=False).plan()
    records = {record.case.sample: record for record in evaluate(plan, tmp_path / "run", workers=0).results.records}
    assert records["b"].scored and records["a"].failed and "odd" in records["a"].sentence


UNKNOWN_MODULE = """
from revisit.engine.jobs import ObserverTask, observer_of
task = ObserverTask("key", "lite.lab", "no_such_module", {})
print(observer_of(task).id)
"""


def test_an_observer_of_an_unknown_module_is_looked_up_in_the_catalogue():
    """Decorators may say another module of a function than the one that registered it."""
    done = subprocess.run([sys.executable, "-c", UNKNOWN_MODULE], capture_output=True, text=True)
    assert done.stdout == "lite.lab\n", done.stderr


def test_threads_that_start_processes_restore_the_variables(monkeypatch):
    """Two runs at a time left each other's settings behind, or ended in a KeyError when both were done."""
    monkeypatch.delenv("REVISIT_DEVICE", raising=False)
    entered, seen = threading.Barrier(2, timeout=0.5), []

    def work(device: str) -> None:
        with temporary_environment_variables({"REVISIT_DEVICE": device}):
            for _ in range(2):
                with suppress(threading.BrokenBarrierError):
                    entered.wait()
                seen.append(os.environ["REVISIT_DEVICE"])

    threads = [threading.Thread(target=work, args=(device,)) for device in ("cpu", "cuda:1")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == ["cpu", "cpu", "cuda:1", "cuda:1"] and "REVISIT_DEVICE" not in os.environ


# What a killed or stopped process leaves


def references(tmp_path, make_clip, count: int = 2) -> Path:
    """A folder with clips that are compared with a reference."""
    lines = []
    make_clip(tmp_path / "videos" / "truth.mp4", seed=9, count=40)
    for number in range(count):
        make_clip(tmp_path / "videos" / f"{number}.mp4", seed=number, count=40)
        lines.append(json.dumps({"id": f"s{number}", "video": f"{number}.mp4", "reference": "truth.mp4"}))
    (tmp_path / "videos" / "manifest.jsonl").write_text("\n".join(lines))
    return tmp_path / "videos"


def test_frames_of_references_vanish_with_the_process(make_clip, tmp_path, monkeypatch):
    """However a process ends: while the frames are on disk, no name leads to them."""
    import tempfile

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr("revisit.engine.observe.KEPT_BYTES", 0)
    plan = folder_plan(references(tmp_path, make_clip), metrics=("psnr",))
    (job,) = plan.observing_jobs_for(plan.tasks)
    under_way = observe_job(job, EvidenceCache(cache_root()), Limits())
    next(under_way)  # the reference
    assert not list(scratch.iterdir())
    assert all(not outcome.failed and not outcome.broken for _, outcome in under_way)


@pytest.mark.long
def test_a_stopped_worker_stalls_neither_the_run_nor_its_end(make_clip, tmp_path):
    import multiprocessing
    import signal
    import threading
    import time

    from revisit.engine.worker_processes import Local, one_network_task_per_observer

    plan = folder_plan(references(tmp_path, make_clip, 4))
    jobs = plan.observing_jobs_for(plan.tasks)
    resumed = Local(1)(iter(jobs), EvidenceCache(cache_root()), Limits(), networks=one_network_task_per_observer(jobs))
    halted = []

    def stop() -> None:
        until = time.monotonic() + 60
        while not multiprocessing.active_children() and time.monotonic() < until:
            time.sleep(0.01)
        for child in multiprocessing.active_children():
            os.kill(child.pid, signal.SIGSTOP)
            halted.append(child)

    threading.Thread(target=stop).start()
    assert len(list(resumed)) == sum(len(job.clips) for job in jobs)
    assert halted and not any(child.is_alive() for child in halted)

    resumed = Local(1)(
        iter(jobs), EvidenceCache(tmp_path / "other"), Limits(), networks=one_network_task_per_observer(jobs)
    )
    next(resumed)
    (child,) = multiprocessing.active_children()
    os.kill(child.pid, signal.SIGSTOP)
    resumed.close()  # as Ctrl-C does
    assert not child.is_alive()


TIGHT = """
import resource, sys, threading
from pathlib import Path
from revisit.core.concurrency import start_thread as started
from revisit.media import open_clip
from revisit.core import Clip

def within(kib, what):
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + kib * 1024, resource.RLIM_INFINITY))
    try:
        what()
        return True
    except MemoryError:
        return False
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)

def frames():
    with open_clip(Clip(Path(sys.argv[1]))) as stream:
        for _ in stream:
            pass

frames()
stack = min(resource.getrlimit(resource.RLIMIT_STACK)[0] >> 10, 1 << 20)
ends = [within(kib, lambda: started(int).join()) for kib in range(stack - 64, stack + 6000, 16)]
print(ends.count(True) > 0, ends.count(False) > 0, within(stack + 70, frames), within(stack + 400_000, frames))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux to limit the address space")
def test_no_memory_for_a_thread_is_told_and_nobody_waits_for_it(make_clip, tmp_path):
    """Python waits for ever for a thread that found memory for its stack and for nothing else."""
    clip = make_clip(tmp_path / "a.mp4")
    done = subprocess.run([sys.executable, "-c", TIGHT, clip], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["True", "True", "False", "True"], done.stderr


def test_a_server_that_drips_headers_is_given_up(tmp_path):
    import socket
    import threading
    import time

    from revisit import http_client

    listening = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def drip() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not over.wait(0.05):
                try:
                    connection.sendall(b"a")
                except OSError:
                    return

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    resumed = time.monotonic()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    with (
        http_client.make_http_client(timeout=0.5) as client,
        pytest.raises(http_client.Unavailable, match="no answer"),
        http_client.open_response(client, "GET", url, within=1.0) as response,
    ):
        response.read()
    assert time.monotonic() - resumed < 20
    over.set()
    thread.join(10)
    listening.close()


def test_another_cache_of_evidence_takes_no_weights_away(tmp_path, monkeypatch):
    from revisit.media.cache_folders import user_cache
    from revisit.weights import weights_folder

    monkeypatch.setattr(weights_folder, "user_cache", user_cache)  # as it is outside of tests
    monkeypatch.delenv("REVISIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    pulled = weights_folder.weights_root()
    assert pulled == tmp_path / "home" / "revisit" / "weights"
    monkeypatch.setenv("REVISIT_CACHE", str(tmp_path / "evidence"))
    assert weights_folder.weights_root() == pulled
    (tmp_path / "evidence" / "weights").mkdir(parents=True)
    assert weights_folder.weights_root() == tmp_path / "evidence" / "weights", (
        "weights that were pulled beside evidence are still found"
    )


def test_a_plugin_with_a_command_of_our_name_is_told_that_it_is_left_out(tmp_path, plugin_path, revisit):
    example = tmp_path / "rival"
    (example / "rival").mkdir(parents=True)
    (example / "rival" / "__init__.py").write_text("")
    (example / "rival" / "commands.py").write_text(
        "def mine() -> None:\n    pass\n\nCOMMANDS = {'eval': mine, 'mbench': mine, 'rival': mine}\n"
    )
    info = example / "rival-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[revisit.plugins]\nrival = rival\n")
    done = revisit("--help", env={"PYTHONPATH": f"{example}:{plugin_path}"})
    assert "`eval` is left out" in done.stderr and "`mbench` is left out" in done.stderr
    assert "rival" in done.stdout and "`rival`" not in done.stderr
