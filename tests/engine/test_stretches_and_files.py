"""Clips that begin later, clips against themselves backwards, and evidence from files beside a clip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from revisit.core import (
    Case,
    Clip,
    ClipInfo,
    Frame,
    MediaError,
    Score,
    Suite,
    Unscored,
    UsageError,
    every,
    evidence,
    metric,
    observer,
)
from revisit.engine import observe as observing
from revisit.engine.cache import EvidenceCache
from revisit.engine.dependencies import ObserverSet
from revisit.engine.plan import make_plan
from revisit.engine.run import evaluate
from revisit.media import clip_digest, file_digest, frame_count_in_mp4_index, open_clip, save_npz
from revisit.observers.sets import load_roles
from revisit.results.tables import standard_summary as summarise


@evidence(id="test_pairs_seen")
@dataclass(frozen=True)
class PairsSeen:
    index: np.ndarray
    other: np.ndarray
    difference: np.ndarray


@evidence(id="test_some_pairs_seen")
@dataclass(frozen=True)
class SomePairsSeen(PairsSeen):
    pass


@evidence(id="test_note_of_file")
@dataclass(frozen=True)
class NoteOfFile:
    words: int


@observer(id="test.pairs_seen", version=1, kind="sequence", makes=PairsSeen, pairs=True)
def pairs_seen(clip):
    rows = []
    while (pair := (yield)) is not None:
        mine, truth = pair
        rows.append((mine.index, truth.index, np.abs(mine.rgb.astype(float) - truth.rgb).mean()))
    table = np.array(rows).reshape(-1, 3)
    return PairsSeen(table[:, 0].astype(int), table[:, 1].astype(int), table[:, 2])


@observer(
    id="test.some_pairs_seen", version=1, kind="sequence", makes=SomePairsSeen, pairs=True, frames=every(at_most=8)
)
def some_pairs_seen(clip):
    seen = yield from pairs_seen.fn(clip)
    return SomePairsSeen(seen.index, seen.other, seen.difference)


@observer(id="test.note", version=1, kind="file", makes=NoteOfFile, artifact="test_note")
def note(path: Path):
    words = path.read_text().split()
    if not words:
        raise MediaError(f"{path.name}: there are no words in it; expected some")
    return NoteOfFile(len(words))


def _metric(id, needs):
    return metric(id=id, version=1, title=id, unit="n", range=(0, None), higher_is_better=None, needs=needs)


@_metric("test_pairs", (PairsSeen,))
def pairs(seen):
    return Score(float(seen.difference.sum()), facts={"index": seen.index, "other": seen.other})


@_metric("test_some_pairs", (SomePairsSeen,))
def some_pairs(seen):
    return Score(float(seen.difference.sum()), facts={"index": seen.index, "other": seen.other})


@_metric("test_words", (NoteOfFile,))
def words(seen):
    return Score(seen.words)


@_metric("test_words_and_pairs", (NoteOfFile, PairsSeen))
def words_and_pairs(seen, pairs):
    return Score(seen.words) if len(pairs.index) else Unscored("no_overlap", "no pairs")


SET = ObserverSet(
    "test", {"test_pairs_seen": pairs_seen, "test_some_pairs_seen": some_pairs_seen, "test_note_of_file": note}
)


def plan_for(cases, metrics, **options):
    suite = Suite(
        "test",
        {"protocols": {"p": {}}, "options": {"colour": "of the sky"}},
        lambda source, roots, colour="": cases,
        lambda source: True,
        lambda: metrics,
        summarise,
    )
    return make_plan(suite, cases[0].clip.path, SET, metrics=metrics, **options)


def case(clip, sample="s", **more):
    return Case(id=f"{sample}@m", suite="test", model="m", sample=sample, clip=clip, **more)


def record(run, metric_id, case_id="s@m"):
    return run.results.answer(case_id, metric_id)


@pytest.mark.parametrize("kind", ["video", "folder"])
def test_a_stretch_is_a_clip_of_its_own(kind, make_clip, tmp_path):
    path = make_clip(tmp_path / "a.mp4", count=12)
    if kind == "folder":
        import cv2

        with open_clip(Clip(path)) as stream:
            frames = [frame.rgb for frame in stream]
        path = tmp_path / "frames"
        path.mkdir()
        for k, rgb in enumerate(frames):
            cv2.imwrite(str(path / f"{k:03d}.png"), rgb[:, :, ::-1])
    with open_clip(Clip(path)) as stream:
        whole = list(stream)
    with open_clip(Clip(path, start=5, count=4)) as stream:
        assert stream.info.count == 4 and stream.info.times[0] == 0
        part = list(stream)
    assert [frame.index for frame in part] == [0, 1, 2, 3]
    assert [frame.digest for frame in part] == [frame.digest for frame in whole[5:9]]
    with open_clip(Clip(path, start=5), wanted=np.array([0, 6])) as stream:
        assert [frame.digest for frame in stream] == [whole[5].digest, whole[11].digest]


def test_a_stretch_beyond_the_end_is_told(make_clip, tmp_path):
    path = make_clip(tmp_path / "a.mp4", count=12)
    with pytest.raises(MediaError, match="it should be read from frame 12 on, but has only 12 frames"):
        open_clip(Clip(path, start=12))
    with pytest.raises(UsageError, match="starts at frame 0 or later"):
        open_clip(Clip(path, start=-1))


def test_nothing_behind_the_end_of_a_stretch_is_decoded(make_clip, tmp_path):
    path = make_clip(tmp_path / "a.mp4", count=12)
    passed = {}
    for name, clip in {"whole": Clip(path), "later": Clip(path, start=5), "part": Clip(path, start=5, count=3)}.items():
        with open_clip(clip) as stream:
            assert len(list(stream)) == stream.info.count
        passed[name] = stream.passed
    assert passed == {"whole": 12, "later": 12, "part": 8}


def test_a_video_announces_its_length(make_clip, tmp_path):
    assert frame_count_in_mp4_index(make_clip(tmp_path / "a.mp4", count=11)) == 11
    for name, content in {
        "text": b"not a video at all",
        "empty": b"",
        "loop": b"\0\0\0\0free",
        "moov": b"\0\0\0\x08moov",
    }.items():
        (tmp_path / name).write_bytes(content)
        assert frame_count_in_mp4_index(tmp_path / name) is None


def test_a_stretch_is_part_of_the_digest(make_clip, tmp_path):
    clip = Clip(make_clip(tmp_path / "a.mp4"))
    found = {
        clip_digest(c) for c in (clip, replace(clip, start=3), replace(clip, start=3, count=4), replace(clip, count=4))
    }
    assert len(found) == 4
    assert clip_digest(clip) == file_digest(clip.path)  # as before there were stretches


def test_a_reference_from_a_frame_on_is_decoded_once_and_kept_as_far_as_needed(make_clip, tmp_path, monkeypatch):
    truth = make_clip(tmp_path / "truth.mp4", count=30, seed=4)
    kept: list[int] = []
    put = observing.ReferenceFrames.put

    def counted(self, frame):
        kept.append(frame.index)
        put(self, frame)

    monkeypatch.setattr(observing.ReferenceFrames, "put", counted)
    mine = [case(Clip(truth, start=10, count=6), "copy", reference=Clip(truth, start=10), align="index"),
            case(Clip(truth, start=3, count=4), "other", reference=Clip(truth, start=10), align="index")]  # fmt: skip
    run = evaluate(plan_for(mine, ("test_pairs",)), tmp_path / "run", workers=0)
    same = record(run, "test_pairs", "copy@m")
    assert same.value == 0 and same.facts == {"index": list(range(6)), "other": list(range(6))}
    assert record(run, "test_pairs", "other@m").value > 0
    assert kept == list(range(6))  # of 20 that follow the mark
    assert run.facts["counters"]["most_decodes_of_one_clip"] == 1
    assert run.facts["counters"]["decodes"] == 3


@pytest.mark.parametrize("room", [0, 20_000, 1 << 20])
def test_frames_of_a_reference_are_the_same_in_memory_and_on_disk(room, tmp_path):
    pictures = np.random.default_rng(0).integers(0, 256, (5, 48, 64, 3), dtype=np.uint8)
    stored = observing.ReferenceFrames(room)
    for number, picture in enumerate(pictures):
        stored.put(Frame(2 * number, number / 8, picture))
    stored.info = ClipInfo(64, 48, 10, 8.0, np.arange(10) / 8)
    assert len(stored.kept) == min(5, room // pictures[0].nbytes) and (stored.file is None) == (len(stored.kept) == 5)
    for number in (4, 0, 2, 3, 1, 4):
        frame = stored.get(2 * number)
        assert frame.index == 2 * number and frame.time == number / 8 and (frame.rgb == pictures[number]).all()


def test_references_give_the_same_however_many_clips_are_opened_before(make_clip, tmp_path, monkeypatch):
    """With one pair in three compared: what is known of a clip beforehand changes what is kept, and no number."""
    truth = make_clip(tmp_path / "truth.mp4", count=25, seed=4)
    clips = [Clip(make_clip(tmp_path / f"{k}.mp4", count=25, seed=k)) for k in range(2)]
    kept: list[int] = []
    put = observing.ReferenceFrames.put

    def counted(self, frame):
        kept.append(frame.index)
        put(self, frame)

    monkeypatch.setattr(observing.ReferenceFrames, "put", counted)
    outcomes, counts = [], []
    for ahead in (0, 4):
        monkeypatch.setattr(observing, "OPEN_AHEAD", ahead)
        cases = [case(clip, f"c{k}", reference=Clip(truth), align="auto") for k, clip in enumerate(clips)]
        plan = plan_for(cases, ("test_some_pairs",))
        run = evaluate(plan, tmp_path / f"run{ahead}", workers=0, cache=EvidenceCache(tmp_path / f"cache{ahead}"))
        outcomes.append([(r.value, r.facts) for r in (record(run, "test_some_pairs", f"c{k}@m") for k in range(2))])
        counts.append(len(kept))
        kept.clear()
    assert outcomes[0] == outcomes[1] and outcomes[0][0][0] > 0
    assert counts == [25, len(outcomes[0][0][1]["index"])] and counts[1] < 25


@pytest.mark.parametrize(("count", "pairs"), [(12, 6), (11, 5), (1, 0)])
def test_a_clip_against_itself_backwards(count, pairs, make_clip, tmp_path):
    clip = Clip(make_clip(tmp_path / "a.mp4", count=count))
    run = evaluate(plan_for([case(clip, reference=clip, align="mirror")], ("test_pairs",)), tmp_path / "run", workers=0)
    facts = record(run, "test_pairs").facts
    with open_clip(clip) as stream:
        frames = [frame.rgb.astype(float) for frame in stream]
    expected = sum(np.abs(frames[i] - frames[count - 1 - i]).mean() for i in range(pairs))
    assert record(run, "test_pairs").value == pytest.approx(expected)
    assert facts["other"] == list(range(pairs))[::-1]
    assert facts["index"] == [count - 1 - other for other in facts["other"]]
    assert run.facts["counters"]["decodes"] == 1


def test_rates_that_differ_are_noted(tmp_path):
    from revisit.media import encode_mp4
    from tests.conftest import moving_frames

    for name, fps in (("a", 8), ("b", 16)):
        encode_mp4(tmp_path / f"{name}.mp4", moving_frames(), fps=fps)
    one = case(Clip(tmp_path / "a.mp4"), reference=Clip(tmp_path / "b.mp4"), align="index")
    run = evaluate(plan_for([one], ("test_pairs",)), tmp_path / "run", workers=0)
    assert [*run.facts["notes"].values()] == [
        ["the clip has 8 frames per second and its reference 16; frames are compared by number"]
    ]


def test_a_clip_that_is_only_imported_for_is_not_decoded(make_clip, tmp_path):
    (tmp_path / "note.txt").write_text("three little words")
    one = case(Clip(make_clip(tmp_path / "a.mp4")), artifacts={"test_note": tmp_path / "note.txt"})
    run = evaluate(plan_for([one], ("test_words",)), tmp_path / "run", workers=0)
    assert record(run, "test_words").value == 3
    assert run.facts["counters"]["decodes"] == 0 and run.facts["counters"]["observer_runs"] == {"test.note": 1}
    (tmp_path / "note.txt").write_text("two words")
    assert record(evaluate(plan_for([one], ("test_words",)), tmp_path / "run", workers=0), "test_words").value == 2


def test_files_that_are_missing_or_broken(make_clip, tmp_path):
    clip = Clip(make_clip(tmp_path / "a.mp4"))
    (tmp_path / "empty.txt").write_text("")
    mine = [case(clip, "none"), case(clip, "gone", artifacts={"test_note": tmp_path / "gone.txt"}),
            case(clip, "empty", artifacts={"test_note": tmp_path / "empty.txt"})]  # fmt: skip
    run = evaluate(plan_for(mine, ("test_words",)), tmp_path / "run", workers=0)
    found = {record.case.id: (record.status, record.sentence) for record in run.results.records}
    assert found["none@m"] == ("unscored", "no test note file was given for this case")
    assert found["gone@m"][0] == "unscored" and "gone.txt: there is no such file" in found["gone@m"][1]
    assert found["empty@m"] == ("failed", "empty.txt: there are no words in it; expected some")


def test_evidence_that_nobody_can_use_is_not_made(make_clip, tmp_path):
    clip = Clip(make_clip(tmp_path / "a.mp4"))
    one = case(clip, reference=clip)  # pairs could be seen, but the metric also needs a file that is not there
    run = evaluate(plan_for([one], ("test_words_and_pairs",)), tmp_path / "run", workers=0)
    assert record(run, "test_words_and_pairs").sentence == "no test note file was given for this case"
    assert run.facts["counters"]["decodes"] == 0
    both = evaluate(plan_for([one], ("test_words_and_pairs", "test_pairs")), tmp_path / "both", workers=0)
    assert record(both, "test_pairs").status == "scored"
    assert record(both, "test_words_and_pairs").sentence == "no test note file was given for this case"


def test_a_suite_is_told_its_options_and_no_others(make_clip, tmp_path):
    one = case(Clip(make_clip(tmp_path / "a.mp4")))
    assert plan_for([one], ("test_pairs",), options={"colour": "blue"}).cases == (one,)
    with pytest.raises(UsageError, match="suite test has no option 'color'; its options are colour"):
        plan_for([one], ("test_pairs",), options={"color": "blue"})


def test_only_importers_name_an_artifact():
    with pytest.raises(TypeError, match="must name its artifact"):
        observer(id="test.wrong", version=1, kind="frame", makes=NoteOfFile, artifact="x")(lambda batch: None)


def test_poses_and_actions_are_imported(tmp_path):
    from revisit.observers.imports import import_poses
    from revisit.suites.mind.imports import read_action_track

    save_npz(tmp_path / "poses.npz", {"poses": np.tile(np.eye(4), (3, 1, 1))})
    track = import_poses.fn(tmp_path / "poses.npz")
    assert track.frame.tolist() == [0, 1, 2] and track.source == "c2w" and not track.metres
    good = '{"data": [{"time": 7, "ws": 1, "ad": 0, "ud": 0, "lr": 2}]}'
    (tmp_path / "action.json").write_text(good)
    found = read_action_track.fn(tmp_path / "action.json")
    assert (found.frame[0], found.forward[0], found.turn[0]) == (7, 1, 2)
    for bad, said in [
        (good.replace('"lr": 2', '"lr": 3'), "row 0 has lr = '3'"),
        ("[]", "found a list"),
        ("{", "not a JSON"),
    ]:
        (tmp_path / "action.json").write_text(bad)
        with pytest.raises(MediaError, match=said):
            read_action_track.fn(tmp_path / "action.json")


def test_pickled_poses_are_refused_with_a_sentence_and_the_rest_is_scored(make_clip, tmp_path):
    clip = Clip(make_clip(tmp_path / "a.mp4"))
    np.savez(tmp_path / "trap.npz", data=np.array([{"a": 1}], dtype=object))
    np.savez(tmp_path / "good.npz", data=np.tile(np.eye(4), (12, 1, 1)), inds=np.arange(12))
    files = {
        name: {"poses": tmp_path / f"{name}.npz", "true_poses": tmp_path / "good.npz"} for name in ("trap", "good")
    }
    mine = [case(clip, name, artifacts=paths) for name, paths in files.items()]
    observers = ObserverSet("lite", load_roles("lite"))
    suite = Suite("test", {}, lambda *a: mine, lambda s: True, lambda: ("camera_rpe_rotation",), summarise)
    run = evaluate(make_plan(suite, tmp_path, observers), tmp_path / "run", workers=0)
    trap, good = run.results.of("trap@m"), run.results.of("good@m")
    assert all(record.failed and "never loaded" in record.sentence for record in trap.values())
    assert not any(record.failed for record in good.values()) and run.exit_code == 1
