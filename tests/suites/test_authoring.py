"""Builders: datasets that their own reader accepts, in the layouts and with the counts and timings of the papers."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from revisit.control.generation import load_batch
from revisit.control.jobs import BatchRequest, Job
from revisit.core import SUITES, Case, RevisitError, UsageError
from revisit.geometry.camera_script import camera_path_of_length, parse_script
from revisit.judges.batch import JudgeClient
from revisit.judges.protocol import Frames, Reply
from revisit.judges.questions import Question
from revisit.media import encode_mp4
from revisit.suites.authoring import CARD
from revisit.suites.memobench.build import PoseEstimate, _excessive_pose_error_sentence
from revisit.suites.memobench.question_bank import read_bank
from revisit.suites.mind.build import MIRRORS, KeySteps, camera_path_of_keys, infer_keys_from_path, keys_out_and_back
from revisit.suites.wrbench.build import prompts_revealing_end_or_camera, read_scene_families
from tests.judging import question_of, serving
from tests.painted_datasets import film, mbench, picture
from tests.suites.memobench.test_memo_judging import judge as bank_judge
from tests.suites.memobench.test_memo_judging import settings

SCENES = Path(__file__).parents[2] / "src/revisit/suites/wrbench/scenes.yaml"
WHO = {"licence": "CC0-1.0", "source": "a test"}
CLIPS = 20
ASKED = ("--licence", "CC0-1.0", "--source", "a test")


class Scripted:
    """A judge that reads no pictures: every video is of another kind, in turn; some challenge nobody."""

    batch = 1

    def __init__(self) -> None:
        self.facts = {"kind": "scripted", "model": "scripted"}
        self.videos: dict[str, int] = {}

    def check(self) -> None: ...

    def close(self) -> None: ...

    def reply(self, frames: Frames, questions: Sequence[Question], notes: Sequence[str]) -> list[Reply]:
        return [Reply(json.dumps(self.said(frames, question))) for question in questions]

    def said(self, frames: Frames, question: Question) -> Any:
        number = self.videos.setdefault(frames.digest, len(self.videos))
        if question.id == "mbench.select":
            if number % 10 == 9:
                return {"entity": 1, "environment": 2, "causal": 1}
            return {name: 5 if k == number % 3 else 2 for k, name in enumerate(("entity", "environment", "causal"))}
        if question.id == "mbench.describe":
            return {
                "caption": "A wall of coloured squares.", "kind": "human" if number % 2 else "object",
                "name": f"thing {number}",
                "attributes": ["red", "square"], "x": 0.3 if number % 2 else 0.7, "y": 0.5,
            }  # fmt: skip
        return [f"Part {k + 1} of {number}." for k in range(5)]


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty clips that look away and come back."""
    folder = tmp_path_factory.mktemp("videos")
    for k in range(CLIPS):
        away, back = ("left", "right") if k % 2 else ("right", "left")
        encode_mp4(folder / f"clip {k:02d}.mp4", film(f"yaw:{away}:40@6,hold@3,yaw:{back}:40@6", 200 + k)[0], 16)
    return folder


def jobs_of(suite: str, data: Path, out: Path | None, wanted: BatchRequest) -> Sequence[Job]:
    return load_batch(suite, data, out, wanted).jobs


def look(video: Path) -> Frames:
    return Frames.of([video.read_bytes()[:4000]])


@pytest.mark.slow
@pytest.mark.long
def test_mbench_has_five_segments_and_sequences_of_twenty_five_seconds(videos: Path, tmp_path: Path, revisit) -> None:
    from revisit.suites.authoring import videos_in
    from revisit.suites.mbench.build import describe_source_video, write_mbench_a_and_t

    told, left_out = [], []
    with JudgeClient(Scripted()) as client:
        for video in videos_in(videos):
            try:
                told.append(describe_source_video(client, video, look(video)))
            except RevisitError as error:
                left_out.append(str(error))
    assert len(told) == 18 and len(left_out) == 2 and all("no challenge" in sentence for sentence in left_out)
    by_action, by_text = write_mbench_a_and_t(tmp_path, told, **WHO)
    subsets = {one.subset for one in told}
    assert subsets == {"human", "object", "environment", "causal"}
    for place in (by_action, by_text):
        assert "nothing is wrong" in revisit("build", "check", place).stdout
        assert json.loads((place / CARD).read_text())["counts"]["samples"] == 18
    jobs = jobs_of("mbench", by_action, None, BatchRequest("m"))
    assert len(jobs) == 18
    for (
        job
    ) in jobs:  # exit 10 s, wait 5 s, reenter 10 s, back on the same path (paper, section 3.2.2; 16 frames a second)
        assert job.frames == 401 and job.fps == 16
        words = [row["action"] for row in job.actions]
        away = "right" if job.sample.startswith("clip") and words[0] == "right" else "left"
        back = {"right": "left", "left": "right"}[away]
        assert words == [away] * 160 + ["wait"] * 80 + [back] * 160
        assert np.allclose(job.path[:161], job.path[-161:][::-1], atol=1e-9)
        assert np.allclose(job.path[160:241], job.path[160], atol=1e-9)
    told_jobs = jobs_of("mbench", by_text, None, BatchRequest("m"))
    for job in told_jobs:
        assert len(job.segments) == 5 and job.frames == 401
        assert [segment.frames for segment in job.segments] == [80, 80, 81, 80, 80]
        assert all("Part" in segment.prompt and segment.prompt.split(" Part")[0] for segment in job.segments)
    motions = {json.loads(path.read_text())["annotations"]["camera_motion"] for path in by_text.rglob("sample.json")}
    assert motions == {"rotation", "translation", "zoom", "occlusion"}
    # Targets on the left leave to the left: the camera turns right.
    sample = json.loads(next((by_action / "samples").rglob("*clip 01*/sample.json")).read_text())
    assert sample["annotations"]["action"] == "right_then_wait_then_left"
    assert sample["metadata"]["object_anchor"]["center_x"] == pytest.approx(0.3 * 160)
    (next((by_action / "samples").rglob("first_frame.png"))).write_bytes(b"")
    assert "is not what it was" in revisit("build", "check", by_action, check=1).stdout


@pytest.mark.long
def test_the_evaluators_list_accepts_what_was_built(videos: Path, tmp_path: Path, revisit) -> None:
    """A baseline on the built set passes `revisit mbench validate`, as strict as the contracts of the README."""
    from revisit.suites.mbench.build import describe_source_video, write_mbench_a_and_t

    with JudgeClient(Scripted()) as client:
        told = []
        for video in sorted(videos.glob("*.mp4"))[:4]:
            with suppress(RevisitError):  # no challenge to memory
                told.append(describe_source_video(client, video, look(video)))
    by_action, _ = write_mbench_a_and_t(tmp_path / "set", told, **WHO)
    revisit("generate", "mbench", "--data", by_action, "--baseline", "hold", "--frames", 9, "--size", "64x48")
    names = ["mbencha.entity.object_texture_consistency", "mbencha.causal.state_progress"]
    revisit("mbench", "validate", by_action, "--metrics", ",".join(names), check=0)


@pytest.mark.long
def test_memobench_from_marks_with_poses_and_their_own_error(videos: Path, tmp_path: Path, revisit) -> None:
    rows = [
        [video.name, 5, 11, "a wall", "The camera turns away and back."] for video in sorted(videos.glob("*.mp4"))[:4]
    ]
    with (tmp_path / "marks.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["video", "exits", "returns", "subject", "prompt"], *rows])
    out = tmp_path / "built"
    revisit("build", "memobench", videos, "--marks", tmp_path / "marks.csv", "--out", out, *ASKED)
    assert "nothing is wrong" in revisit("build", "check", out / "data").stdout
    true = camera_path_of_length(parse_script("yaw:right:40@6,hold@3,yaw:left:40@6"), 16)
    found = np.load(out / "data/Real_Raw/001/raw/001_mapanything.npz")
    assert found["cam_c2w"].shape == (16, 4, 4) and float(found["own_error_degrees"]) < 3
    cosine = (np.einsum("nij,nij->n", found["cam_c2w"][:, :3, :3], true[:, :3, :3]) - 1) / 2
    # Smoothing rounds the corners, and poses are worked out for every second frame of a camera that turns and stops
    # within one; the lens is assumed to see 60 degrees, which is right here.
    assert np.degrees(np.arccos(np.clip(cosine, -1, 1))).max() < 6
    cases = list(SUITES["memobench"].read(out / "data"))
    assert len(cases) == 4 and {case.annotations["gt_phases"][0] for case in cases} == {5}
    assert len(list((out / "data/Real_Raw/003/FRAMES").iterdir())) == 16
    said = json.loads(revisit("describe", out / "data", "--json").stdout)
    assert said["facts"]["clips"] == said["facts"]["with poses"] == 4
    rows[0][1] = 14
    with (tmp_path / "marks.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["video", "exits", "returns", "subject", "prompt"], *rows])
    words = ("build", "memobench", videos, "--marks", tmp_path / "marks.csv", "--out", tmp_path / "other", *ASKED)
    assert "leaves at frame 14" in revisit(*words, check=2).stderr


DRAW = "import sys, cv2, numpy; cv2.imwrite(sys.argv[2], numpy.full((72, 128, 3), len(sys.argv[1]) % 255, numpy.uint8))"


def test_wrbench_files_have_the_keys_of_the_published_ones(tmp_path: Path, revisit, shared: Path) -> None:
    out = tmp_path / "scenes"
    (tmp_path / "draw.py").write_text(DRAW)
    draw = f"'{sys.executable}' '{tmp_path / 'draw.py'}' {{prompt}} {{out}}"
    text = SCENES.read_text()
    (tmp_path / "scenes.yaml").write_text(text[: text.index("  greenhouse_gardener_watering:")])
    revisit("build", "wrbench", tmp_path / "scenes.yaml", "--out", out, "--t2i", draw, *ASKED)
    assert "nothing is wrong" in revisit("build", "check", out).stdout
    theirs = shared / "wrbench/natural25"
    for name in ("families.jsonl", "variants.jsonl", "t2v_layout_anchors.jsonl", "t2v_event_tails.jsonl"):
        mine, published = (json.loads((place / name).read_text().splitlines()[0]) for place in (out, theirs))
        assert list(mine) == list(published), name
    frames, published = (json.loads((place / "first_frames_manifest.json").read_text())[0] for place in (out, theirs))
    assert set(frames) == {*published, "sha256"} and (frames["width"], frames["height"]) == (128, 72)
    heads = [(place / "scene_events_25x4.csv").read_text().splitlines()[0] for place in (out, theirs)]
    assert heads[0] == heads[1]
    jobs = jobs_of("wrbench", out, tmp_path / "clips", BatchRequest("m"))
    assert len(jobs) == 2 * 4 * 5 and all(job.image is not None for job in jobs)
    tails = [json.loads(line) for line in (out / "t2v_event_tails.jsonl").read_text().splitlines()]
    assert len(tails) == 2 * 4 * 4


def test_the_end_may_not_be_told(tmp_path: Path) -> None:
    families = read_scene_families(SCENES)
    assert not prompts_revealing_end_or_camera(families) and len(families) == 25
    name, facts = next(iter(families.items()))
    ends = facts["moves"]["ends"]
    spoilt = {name: {**facts, "moves": {"told": f"walks until {ends}", "ends": ends}}}
    assert any("tells how it ends" in sentence for sentence in prompts_revealing_end_or_camera(spoilt))
    filmed = {name: {**facts, "rests": {**facts["rests"], "told": "stands still while the camera pans"}}}
    assert any("speaks of the camera: 'camera'" in sentence for sentence in prompts_revealing_end_or_camera(filmed))
    (tmp_path / "x.yaml").write_text("families: {a_scene: {place: a room}}")
    with pytest.raises(UsageError, match="lacks subject"):
        read_scene_families(tmp_path / "x.yaml")
    (tmp_path / "x.yaml").write_text("cards:\n  one: [")
    with pytest.raises(UsageError, match=r"\(line 2: expected"):
        read_scene_families(tmp_path / "x.yaml")


def test_published_prompts_are_described_as_the_paper_has_them(shared: Path, revisit) -> None:
    said = json.loads(revisit("describe", shared / "wrbench/natural25", "--json").stdout)
    assert said["suite"] == "wrbench" and said["facts"]["families"] == 25 and said["facts"]["events"] == 100
    assert said["facts"]["venues"] == 19
    tables = {table["title"]: table["rows"] for table in said["tables"]}
    assert tables["Families by venue"][0] == ["a bedroom", 3] and tables["Prompts"] == [["words", "41", "69", "87"]]
    assert [count for _, count in tables["Events by factor"]] == [25, 25, 25, 25]


def test_mind_from_keys_and_from_poses(tmp_path: Path, revisit) -> None:
    folder = tmp_path / "recordings"
    frames, poses = film("yaw:right:20@10,hold@4,yaw:left:20@10", 3)
    for name in ("by-keys", "by-poses", "by-nothing"):
        encode_mp4(folder / f"{name}.mp4", frames, 24)
    (folder / "by-keys.keys.csv").write_text("frame,keys\n0,r\n10,\n14,l\n")
    np.save(folder / "by-poses.poses.npy", poses)
    done = revisit("build", "mind", folder, "--out", tmp_path / "built", *ASKED)
    assert "by-nothing.mp4: neither by-nothing.keys.csv" in done.stderr
    data = tmp_path / "built/MIND-Data"
    assert "nothing is wrong" in revisit("build", "check", data).stdout
    one, other = (
        json.loads((data / f"1st_data/test/mem_test/{n}/action.json").read_text()) for n in ("by-keys", "by-poses")
    )
    assert one["mark_time"] == other["mark_time"] == 12 and one["total_time"] == 25
    assert [row["lr"] for row in other["data"]] == [2] * 10 + [0] * 4 + [1] * 10 + [0]
    assert [row["lr"] for row in one["data"]][:24] == [row["lr"] for row in other["data"]][:24]
    assert [row["actor_rpy"]["z"] for row in one["data"]] == pytest.approx(
        [row["actor_rpy"]["z"] for row in other["data"]], abs=1e-6
    )
    images = (data / "1st_data/test/mem_test/by-keys/images.txt").read_text().splitlines()
    assert sum(line[:1].isdigit() for line in images) == 13
    mirror = data / "1st_data/test/mirror_test"
    assert sorted(path.stem for path in mirror.glob("*.json")) == sorted(MIRRORS) and len(MIRRORS) == 10
    assert all(len(json.loads(path.read_text())["data"]) == 48 for path in mirror.glob("*.json"))
    jobs = jobs_of("mind", data, tmp_path / "clips", BatchRequest("m"))
    assert len(jobs) == 2 + 2 * 10
    said = revisit("describe", data, "--figures", tmp_path / "figures").stdout
    assert "1st_data mirror_test" in said and len(list((tmp_path / "figures").glob("*.svg"))) == 2
    (mirror / "-w.json").unlink()
    said = revisit("build", "check", data, check=1).stdout
    assert "is on the card and not there" in said and "MIND-Data: 1 problem\n" in said
    (data / CARD).unlink()
    assert f"there is no {CARD} in {data};" in revisit("build", "check", data, check=1).stdout


def test_a_sample_begins_with_its_source_video_whatever_its_ending(tmp_path: Path) -> None:
    data = mbench(tmp_path)
    for number, sample in enumerate(sorted(data.glob("samples/*/*"))):
        (sample / "first_frame.png").unlink()
        (sample / "source_video.mp4").rename(sample / ("source_video.mkv" if number else "notes.mp4"))
    first, *others = sorted(jobs_of("mbench", data, tmp_path / "out", BatchRequest("m")), key=lambda job: job.subset)
    assert first.image is None
    assert [one.image.path.name for one in others] == ["source_video.mkv"] * 3  # type: ignore[union-attr]
    (problem,) = [one for one in SUITES["mbench"].dataset.problems(data) if "first_frame" in one]
    assert problem.endswith("its sample has neither first_frame.png nor a source_video")


def test_a_recording_that_cannot_be_used_costs_itself_only(tmp_path: Path, revisit) -> None:
    folder = tmp_path / "recordings"
    for name in ("good.mp4", "good.mov", "torn.mp4", "objects.mp4"):
        encode_mp4(folder / name, np.zeros((12, 16, 16, 3), np.uint8), 8)
    (folder / "good.keys.csv").write_text("frame,keys\n0,w\n")
    (folder / "torn.poses.npy").write_bytes(b"nothing of the kind")
    np.save(folder / "objects.poses.npy", np.array([{}], dtype=object), allow_pickle=True)
    said = revisit("build", "mind", folder, "--out", tmp_path / "built", *ASKED).stderr
    assert "good.mp4: another recording is called good" in said, "natural order: .mov first"
    assert all(f"{name}.poses.npy: " in said for name in ("torn", "objects"))
    assert len(list((tmp_path / "built").rglob("action.json"))) == 1
    said = revisit("build", "mind", folder, "--out", tmp_path / "late", "--mark", "0.99", *ASKED, check=2).stderr
    assert "with --mark 0.99 none of its 12 frames is left to predict" in said
    (folder / "scenes.csv").write_text("title\nkitchen\n")
    told = ("--scenes", folder / "scenes.csv", "--judge", "nowhere.yaml")
    said = revisit("build", "mind", folder, "--out", tmp_path / "paid", *told, *ASKED, check=2).stderr
    assert "scenes.csv: this is not a CSV file with the columns name, kind" in said, "read before a judge is asked"


def test_poses_that_are_too_uncertain_are_told_in_a_sentence() -> None:
    poses = PoseEstimate(np.tile(np.eye(4), (3, 1, 1)), 6.9, np.eye(3), "odometry, turns only")
    assert _excessive_pose_error_sentence(poses) == (
        "its poses are left out: they are uncertain by 6.9 degrees (odometry, turns only), and the camera turns by 0"
    )


def test_keys_and_paths_agree() -> None:
    for held in ("w", "sl", "d", "u", "wr", "a"):
        keys = keys_out_and_back(held, 6)
        path = camera_path_of_keys(keys, KeySteps())
        assert ["".join(sorted(one)) for one in infer_keys_from_path(path)[:-1]] == [
            "".join(sorted(one)) for one in keys[:-1]
        ], held
    path = camera_path_of_keys(["w"] * 5, KeySteps(metres=0.1))
    assert path[-1, :3, 3] == pytest.approx((0, 0, 0.4))
    assert camera_path_of_keys(["r"] * 46, KeySteps())[-1, :3, 2] == pytest.approx(
        (1, 0, 0), abs=1e-9
    )  # 90 degrees to the right


def test_every_dataset_says_whose_it_is(tmp_path: Path) -> None:
    from revisit.suites.authoring import write_dataset_card

    picture(tmp_path / "a.png", np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(UsageError, match="whose it is"):
        write_dataset_card(tmp_path, "mind", title="x", licence="", source="y", counts={})
    card = json.loads(
        write_dataset_card(tmp_path, "mind", title="x", licence="z", source="y", counts={"a": 1}).read_text()
    )
    again = json.loads(
        write_dataset_card(tmp_path, "mind", title="x", licence="z", source="y", counts={"a": 1}).read_text()
    )
    assert card["fingerprint"] == again["fingerprint"] and list(card["files"]) == ["a.png"]


@pytest.mark.long
def test_twenty_clips_with_question_banks_through_the_builder_of_memobench(
    videos: Path, tmp_path: Path, revisit
) -> None:
    """A judge names what is remembered, writes the prompts and a bank of 24 questions for every clip."""
    rows = [[video.name, 5, 11] for video in sorted(videos.glob("*.mp4"))]
    with (tmp_path / "marks.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["video", "exits", "returns"], *rows])

    def answer(body: dict[str, Any]) -> str:
        if "Name what it comes back to" in question_of(body):
            return json.dumps({"subject": "a wall", "prompt": "The camera turns away from a wall and comes back."})
        return bank_judge(body)

    with serving(answer) as server:
        judge = settings(tmp_path, server.url)
        words = ("--marks", tmp_path / "marks.csv", "--judge", judge, "--frames", 2, "--out", tmp_path / "built")
        revisit("build", "memobench", videos, *words, *ASKED)
    data = tmp_path / "built/data"
    assert "nothing is wrong" in revisit("build", "check", data).stdout
    card = json.loads((data / CARD).read_text())["counts"]
    assert card == {"clips": CLIPS, "clips with poses": CLIPS, "question banks": CLIPS}
    banks = [read_bank(path) for path in sorted((data / "vqa_questions").glob("*-questions.csv"))]
    assert len(banks) == CLIPS and all(len(bank.start) == len(bank.final) == 24 for bank in banks)
    assert len(list((data / "vqa_questions").glob("*-review.csv"))) == CLIPS
    cases = [case for case in SUITES["memobench"].read(data) if isinstance(case, Case)]
    assert len(cases) == CLIPS and {case.annotations["subject"] for case in cases} == {"a wall"}
    assert len(jobs_of("memobench", data, tmp_path / "clips", BatchRequest("m", frames=17))) == CLIPS


@pytest.mark.long
def test_twenty_clips_through_the_builder_of_mind(videos: Path, tmp_path: Path, revisit) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    for k, video in enumerate(sorted(videos.glob("*.mp4"))):
        shutil.copy(video, folder / f"r{k:02d}.mp4")
        away, back = ("l", "r") if k % 2 else ("r", "l")
        if k < CLIPS // 2:
            (folder / f"r{k:02d}.keys.csv").write_text(f"frame,keys\n0,{away}\n6,\n9,{back}\n")
        else:
            ways = {"l": "left", "r": "right"}
            np.save(folder / f"r{k:02d}.poses.npy", film(f"yaw:{ways[away]}:40@6,hold@3,yaw:{ways[back]}:40@6")[1])
    revisit("build", "mind", folder, "--out", tmp_path / "built", *ASKED)
    data = tmp_path / "built/MIND-Data"
    assert "nothing is wrong" in revisit("build", "check", data).stdout
    turns = [json.loads(path.read_text())["data"] for path in sorted(data.glob("1st_data/test/mem_test/*/action.json"))]
    assert [[row["lr"] for row in rows][:15] for rows in turns] == [
        [2 - k % 2] * 6 + [0] * 3 + [1 + k % 2] * 6 for k in range(CLIPS)
    ]
    assert len(jobs_of("mind", data, tmp_path / "clips", BatchRequest("m"))) == CLIPS + CLIPS * len(MIRRORS)


@pytest.mark.long
def test_all_scenes_through_the_builder_of_wrbench(videos: Path, tmp_path: Path, revisit) -> None:
    """First frames are those of the clips: the command that draws takes one of them."""
    (tmp_path / "draw.py").write_text(
        "import av, cv2, pathlib, sys, zlib\n"
        f"clips = sorted(pathlib.Path({str(videos)!r}).glob('*.mp4'))\n"
        "clip = av.open(str(clips[zlib.crc32(sys.argv[1].encode()) % len(clips)]))\n"
        "cv2.imwrite(sys.argv[2], next(clip.decode(video=0)).to_ndarray(format='bgr24'))\n"
    )
    draw = f"'{sys.executable}' '{tmp_path / 'draw.py'}' {{prompt}} {{out}}"
    out = tmp_path / "scenes"
    revisit("build", "wrbench", SCENES, "--out", out, "--t2i", draw, *ASKED)
    assert "nothing is wrong" in revisit("build", "check", out).stdout
    assert len(jobs_of("wrbench", out, tmp_path / "clips", BatchRequest("m"))) == 25 * 4 * 5
