"""`revisit check`: planted faults of every kind are found, and where there are none nothing is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from revisit.control.generation import (
    GeneratorChoice,
    batch_request_per_size,
    generate_batch,
    generation_settings_for,
    load_batch,
)
from revisit.control.jobs import Job
from revisit.core import Clip
from revisit.geometry.camera_script import camera_path_of_length, parse_script
from revisit.geometry.formats import parse_realestate10k
from revisit.media import encode_mp4, open_clip
from revisit.preflight.check import (
    APART,
    KINDS,
    RELATED,
    UNLIKE,
    camera_fault,
    check_clips,
    lightness_correlation,
    mean_difference_without_tint,
    turn_fault,
    turns_from_first_view,
)
from revisit.preflight.check import read_small_copy as small_copy
from revisit.preflight.expected import expected_in_folder, expected_of_job
from tests.painted_datasets import film, memobench, picture, wrbench

# The first half turns, the others rest or are as short as clips come.
SCRIPTS = [
    "yaw:left:40@20,yaw:right:40@20", "yaw:right:40@20,yaw:left:40@20", "tilt:up:20@10,tilt:down:20@10",
    "yaw:left:30@20", "yaw:right:60@20,hold@8,yaw:left:60@20", "yaw:left:40@20,yaw:right:40@20",
    "yaw:right:40@20,yaw:left:40@20", "yaw:left:40@20,yaw:right:40@20", "yaw:right:40@20,yaw:left:40@20",
    "yaw:left:40@20,yaw:right:40@20", "yaw:right:40@20,yaw:left:40@20", "hold@20", "hold@20", "hold@2", "yaw:left:4@2",
]  # fmt: skip
CLIP = {"fps": 16.0, "size": (160, 96), "suite": "x", "model": "m"}


@pytest.fixture(scope="module")
def faultless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every clip begins with its picture and turns as asked."""
    folder = tmp_path_factory.mktemp("faultless")
    for number, script in enumerate(SCRIPTS):
        frames, _ = film(script, 100 + number)
        noise = np.random.default_rng(number).normal(0, 2, frames.shape)
        encode_mp4(folder / f"c{number:02d}.mp4", np.clip(frames + noise, 0, 255).astype(np.uint8), 16)
        picture(folder / f"given/c{number:02d}.png", frames[0])
    return folder


def jobs_in(folder: Path) -> list[Job]:
    found = []
    for number, script in enumerate(SCRIPTS):
        steps = parse_script(script)
        frames = 1 + sum(step.frames for step in steps)
        found.append(
            Job(f"c{number:02d}", folder / f"c{number:02d}.mp4", frames, sample=f"c{number:02d}", camera=script,
                path=camera_path_of_length(steps, frames), image=folder / f"given/c{number:02d}.png",
                prompt=f"scene {number}",
                **CLIP)
        )  # fmt: skip
    return found


@pytest.mark.long
def test_a_set_without_faults_is_left_alone(faultless: Path) -> None:
    found = check_clips([expected_of_job(job, faultless) for job in jobs_in(faultless)])
    assert not found.faults, found.faults
    assert found.clips == found.there == len(SCRIPTS)
    assert found.unchecked == {  # the two clips of three frames
        "camera: no turn was asked for that could be seen": 1,
        "camera: the picture does not tell how it turns": 1,
    }


def plant(folder: Path) -> dict[str, set[str]]:
    """A fault of every kind, each in a clip of its own; kind -> the clips that have it."""

    def frames(number: int) -> np.ndarray:
        with open_clip(Clip(folder / f"c{number:02d}.mp4")) as stream:
            return np.stack([frame.rgb for frame in stream])

    def write(number: int, rgb: np.ndarray, fps: float = 16) -> None:
        encode_mp4(folder / f"c{number:02d}.mp4", rgb, fps)

    (folder / "c02.mp4").unlink()
    content = (folder / "c03.mp4").read_bytes()
    (folder / "c03.mp4").write_bytes(content[: len(content) // 2])
    write(4, frames(4)[:-2])
    write(5, frames(5)[:, :90, :150])
    write(6, frames(6), fps=24)
    write(7, np.zeros_like(frames(7)))
    write(8, np.repeat(frames(8)[:1], 41, axis=0))
    write(9, _mirrored(9))
    first, second = frames(0), frames(1)  # swapped samples
    write(0, second)
    write(1, first)
    shutil.copy(folder / "c10.mp4", folder / "c11.mp4")  # a clip that moves in the place of one that rests
    (folder / "given/c12.png").unlink()
    write(13, film("hold@2", 999)[0])  # of a sample that is not in the set
    return {
        "missing": {"c02"}, "unreadable": {"c03"}, "wrong length": {"c04", "c11"}, "wrong size": {"c05"},
        "wrong rate": {"c06"},
        "black": {"c07"}, "frozen": {"c08"}, "camera": {"c09"}, "another sample": {"c00", "c01", "c11"},
        "duplicate": {"c11"}, "bad input": {"c12"}, "first frame": {"c13"},
    }  # fmt: skip


def _mirrored(number: int) -> np.ndarray:
    """The same start, turned to the other side."""
    words = SCRIPTS[number].replace("left", "X").replace("right", "left").replace("X", "right")
    return film(words, 100 + number)[0]


@pytest.mark.long
def test_planted_faults_of_every_kind_are_found(faultless: Path, tmp_path: Path) -> None:
    folder = tmp_path / "faulty"
    shutil.copytree(faultless, folder)
    planted = plant(folder)
    found = check_clips([expected_of_job(job, folder) for job in jobs_in(folder)], workers=2)
    said: dict[str, set[str]] = {}
    for fault in found.faults:
        said.setdefault(fault.kind, set()).add(fault.id)
    assert set(planted) == set(KINDS) - {"not asked for"}  # every kind that a job can have; that one is of no job
    for kind, clips in planted.items():
        assert clips <= said.get(kind, set()), (kind, found.faults)
    # Swapped samples turn to the other side, and so does the clip in another's place: the camera is told there, too.
    assert said["camera"] <= {"c00", "c01", "c09", "c11"}
    assert {kind: clips for kind, clips in said.items() if kind != "camera"} == {
        kind: clips for kind, clips in planted.items() if kind != "camera"
    }
    by_id = {(fault.kind, fault.id): fault.sentence for fault in found.faults}
    assert "40 degrees to the right, and 40 degrees to the left was asked for" in by_id["camera", "c09"]
    assert by_id["another sample", "c00"] == "it begins with the first frame of c01"
    assert list(KINDS) == sorted(KINDS, key=list(KINDS).index) and [f.kind for f in found.faults] == sorted(
        (f.kind for f in found.faults), key=list(KINDS).index
    )


def test_turns_are_held_to_side_and_amount() -> None:
    asked = turns_from_first_view(camera_path_of_length(parse_script("yaw:left:60@20,yaw:right:60@20"), 41))
    assert (
        turn_fault(asked, asked, False)
        == turn_fault(asked, 0.7 * asked, False)
        == turn_fault(asked, 1.6 * asked, False)
        == ""
    )
    assert "the other way" in turn_fault(asked, -asked, False)
    assert "by 6 degrees, and 60 were asked for" in turn_fault(asked, 0.1 * asked, False)
    assert "by 240 degrees" in turn_fault(asked, 4 * asked, False)
    assert "another way" in turn_fault(asked, asked[:, ::-1], False)
    assert turn_fault(0 * asked, 0.1 * asked, True) == "" and "should rest" in turn_fault(0 * asked, asked, True)


@pytest.mark.slow
def test_before_there_are_clips_only_inputs_are_checked(tmp_path: Path, revisit) -> None:
    data = memobench(tmp_path, clips=1)
    words = ("check", "memobench", "--data", data, "--model", "pan", "--out", tmp_path / "clips", "--frames", 17)
    said = revisit(*words, "--size", "160x96")
    assert "there are no clips yet; the inputs of 2 clips were checked: no faults found" in said.stdout
    make = ("generate", *words[1:4], "--baseline", "pan", *words[6:], "--size", "160x96")
    revisit(*make)
    assert "2 of 2 clips exist; no faults found" in revisit(*words, "--size", "160x96").stdout
    assert "no faults found" in revisit("check", tmp_path / "clips").stdout  # by the job files alone
    found = json.loads(revisit(*words, "--size", "144x96", "--json", check=1).stdout)
    assert {fault["kind"] for fault in found["faults"]} == {"wrong size"}
    next((tmp_path / "clips").rglob("*.mp4")).unlink()
    assert "missing" in revisit(*words, "--size", "160x96", check=1).stdout
    assert "missing" in revisit("check", tmp_path / "clips", check=1).stdout
    assert "no such suite, file or folder" in revisit("check", "nowhere", check=2).stderr


def test_a_held_first_frame_is_frozen_where_the_camera_was_to_move(tmp_path: Path) -> None:
    (wanted,) = batch_request_per_size("hold", ["160x96"], True, frames=17, limit=5)
    batch = load_batch("wrbench", wrbench(tmp_path), tmp_path / "clips", wanted)
    by = GeneratorChoice(baseline="hold")
    assert all(ended.is_clip_there for ended in generate_batch(batch, by, generation_settings_for(by)))
    found = check_clips([expected_of_job(job, batch.home) for job in batch.jobs])
    assert {fault.kind for fault in found.faults} == {"frozen"}
    assert len(found.faults) == sum(job.condition != "static" for job in batch.jobs) == 4


def test_a_clip_that_two_models_share_is_named(tmp_path: Path, revisit) -> None:
    rng = np.random.default_rng(0)
    for model in ("mine", "other", "gt"):
        for scene in ("kitchen", "hall"):
            encode_mp4(tmp_path / f"clips/{model}/{scene}.mp4", rng.integers(0, 256, (3, 48, 64, 3), np.uint8), 8)
    assert not json.loads(revisit("check", tmp_path / "clips", "--json").stdout)["remarks"]
    shutil.copyfile(tmp_path / "clips/mine/hall.mp4", tmp_path / "clips/other/hall.mp4")
    shutil.copyfile(tmp_path / "clips/gt/kitchen.mp4", tmp_path / "clips/mine/kitchen.mp4")
    (remark,) = json.loads(revisit("check", tmp_path / "clips", "--json").stdout)["remarks"]
    copies = "mine/kitchen.mp4 is gt/kitchen.mp4 and other/hall.mp4 is mine/hall.mp4"
    assert remark == f"2 clips are copies of another model's or the truth's: {copies}"


def test_folders_of_frames_are_checked_as_eval_reads_them(tmp_path: Path, revisit) -> None:
    """Beside the clips a run directory, whose pictures are no clips."""
    rng = np.random.default_rng(0)
    for name, frames in (("moving", rng.integers(0, 256, (3, 48, 64, 3))), ("black", np.zeros((3, 48, 64, 3)))):
        for number, rgb in enumerate(frames.astype(np.uint8)):
            picture(tmp_path / "clips/mine" / name / f"frame_{number}.png", rgb)
    run = tmp_path / "clips/runs/old"
    picture(run / "report/worst.png", np.zeros((48, 64, 3), np.uint8))
    for name in ("run.json", "plan.json"):
        (run / name).write_text("{}")
    answer = json.loads(revisit("check", tmp_path / "clips", "--json", check=1).stdout)
    assert (answer["clips"], answer["there"]) == (2, 2)
    assert [(fault["kind"], fault["id"]) for fault in answer["faults"]] == [("black", "mine/black")]


def test_lines_of_a_manifest_are_checked_as_eval_reads_them(tmp_path: Path, revisit) -> None:
    """A line that is none, a clip that is not there and one elsewhere; a clip in no line is named."""
    rng = np.random.default_rng(0)
    for name in ("clips/a.mp4", "clips/unlisted.mp4", "elsewhere/c.mp4"):
        encode_mp4(tmp_path / name, rng.integers(0, 256, (3, 48, 64, 3), np.uint8), 8)
    videos = ("a.mp4", "nowhere.mp4", "../elsewhere/c.mp4")
    lines = [json.dumps({"id": f"scene-{k}", "model": "mine", "video": video}) for k, video in enumerate(videos)]
    manifest = tmp_path / "clips/manifest.jsonl"
    manifest.write_text("\n".join([*lines, "{"]))
    for asked, further, faults in (
        (tmp_path / "clips", (), 3),
        (manifest, (), 3),
        (manifest, ("--root", tmp_path / "elsewhere"), 2),
    ):
        done = revisit("check", asked, *further, "--json", check=1)
        answer = json.loads(done.stdout)
        kinds = [(fault["kind"], fault["id"]) for fault in answer["faults"]]
        assert {("bad input", "manifest.jsonl line 4"), ("missing", "scene-1")} < {*kinds, ()} and len(kinds) == faults
        assert ("does not list 1 clip of the folder" in done.stderr) == (asked != manifest)
    manifest.write_text("\n".join([lines[0], lines[0].replace("mine", "other"), lines[0].replace("scene-0", "again")]))
    answer = json.loads(revisit("check", manifest, "--json").stdout)
    assert answer["clips"] == 2 and not answer["faults"], "once for a model"
    assert "scene-0 of other is scene-0 of mine" in str(answer["remarks"])
    assert "1 of 1 clips exist; no faults found" in revisit("check", tmp_path / "clips/a.mp4").stdout


@pytest.mark.long
def test_real_clips_raise_no_alarm(shared: Path) -> None:
    expected = expected_in_folder(shared / "clips", sorted((shared / "clips").glob("*.mp4")))[:8]
    assert not check_clips(expected).faults
    for text in sorted((shared / "clips").glob("re10k_*.txt")):
        true = parse_realestate10k(text.read_text())
        video = text.with_suffix(".mp4")
        assert camera_fault(video, true.c2w) in ("", None), video
        mirrored = true.c2w.copy()
        mirrored[:, :3, :3] = np.swapaxes(true.c2w[0, :3, :3].T @ true.c2w[:, :3, :3], 1, 2)
        if np.abs(turns_from_first_view(true.c2w)).max() > 20:
            assert "other way" in (camera_fault(video, mirrored) or ""), video


@pytest.mark.long
def test_first_frames_by_real_models_are_told_from_other_pictures(shared: Path, tmp_path: Path) -> None:
    """Eight models and three scenes: each begins with its own picture, and with nobody else's."""
    scenes = ("Real_007", "Barnyard_001", "HongKong_001")
    first: dict[str, np.ndarray] = {}
    for path in sorted((shared / "memobench/videos").glob("*.mp4")):
        with open_clip(Clip(path, count=1)) as stream:
            picture(tmp_path / f"{path.stem}.png", next(iter(stream)).rgb)
        small = small_copy(tmp_path / f"{path.stem}.png")
        assert small is not None
        first[path.stem] = small
    for name, small in first.items():
        for scene in scenes:
            given = first[f"{scene}_gt"]
            away = mean_difference_without_tint(small, given)
            another = away > UNLIKE or (away > APART and lightness_correlation(small, given) < RELATED)
            assert another == (not name.startswith(scene)), (name, scene)
