"""Datasets of LeRobot, WebDataset and Hugging Face, and iterators: the numbers of the same clips as lossless frames."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest

import revisit
from revisit.core import Case, Rejected, Remark, UsageError
from revisit.datasets.lerobot import camera_action_columns, camera_script_of_actions
from revisit.geometry.camera_script import parse_script
from revisit.media import encode_mp4
from revisit.suites.folder.datasets import read
from tests.conftest import moving_frames

METRICS = ["flicker", "motion_amount", "psnr"]
FPS = 10
NAMES = ("episode_000000", "episode_000001")


@pytest.fixture(scope="module")
def clips() -> dict[str, np.ndarray]:
    return {name: np.stack(moving_frames(8 + n, (32, 48), seed=n, speed=3)) for n, name in enumerate(NAMES)}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REVISIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def truth_of(frames: np.ndarray) -> np.ndarray:
    return np.clip(frames.astype(int) + 3, 0, 255).astype(np.uint8)


def png(frame: np.ndarray) -> bytes:
    import cv2

    return cv2.imencode(".png", frame[..., ::-1])[1].tobytes()


def write_pngs(folder: Path, frames: np.ndarray) -> None:
    folder.mkdir(parents=True)
    for number, frame in enumerate(frames):
        (folder / f"{number:03d}.png").write_bytes(png(frame))


def write_lossless(path: Path, frames: np.ndarray) -> None:
    """H.264 of RGB without loss, in mp4."""
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264rgb", rate=FPS)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt, stream.options = "rgb24", {"qp": "0", "preset": "ultrafast"}
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


def scores(source, out: Path, **more) -> dict[str, dict[str, float | None]]:
    results = revisit.evaluate(source, metrics=METRICS, out=out, workers=0, truth=False, **more)
    assert not results.failures, results.failures
    return {
        case.clip_name.partition("#")[0]: {metric: results.score(case, metric) for metric in METRICS}
        for case in results.cases
    }


@pytest.fixture(scope="module")
def expected(clips, tmp_path_factory) -> dict[str, dict[str, float | None]]:
    """Of the clips as folders of PNG files, with their references."""
    folder = tmp_path_factory.mktemp("frames")
    lines = []
    for name, frames in clips.items():
        write_pngs(folder / name, frames)
        write_pngs(folder / f"{name}-truth", truth_of(frames))
        lines.append({"id": name, "video": name, "reference": f"{name}-truth", "fps": FPS})
    (folder / "manifest.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = scores(folder, folder / "run")
    assert all(value is not None for one in found.values() for value in one.values())
    return found


def without_truth(expected):
    return {name: {**one, "psnr": None} for name, one in expected.items()}


def write_lerobot(root: Path, clips, version: str, video: bool, names: list[str] | None = None) -> Path:
    """As LeRobot writes datasets: an mp4 for each episode (v2), one for all (v3), or pictures in parquet."""
    import pyarrow
    from pyarrow import parquet

    key, many = "observation.images.front", version == "v3.0"
    (root / "meta").mkdir(parents=True)
    rows, episodes, at = [], [], 0
    for number, frames in enumerate(clips.values()):
        for index in range(len(frames)):
            row: dict[str, object] = {"episode_index": number, "frame_index": index, "timestamp": index / FPS}
            row["action"] = [6.0 if index < len(frames) // 2 else -6.0, 0.0]
            rows.append(row if video else {**row, key: {"bytes": png(frames[index]), "path": None}})
        episode = {"episode_index": number, "tasks": ["look around"], "length": len(frames)}
        if many:
            episode |= {"data/chunk_index": 0, "data/file_index": 0}
            episode |= {f"videos/{key}/chunk_index": 0, f"videos/{key}/file_index": 0}
            episode[f"videos/{key}/from_timestamp"] = at / FPS
        episodes.append(episode)
        at += len(frames)
    features = {
        key: {"dtype": "video" if video else "image", "shape": [32, 48, 3], "names": ["height", "width", "channel"]},
        "action": {"dtype": "float32", "shape": [2], "names": names or ["camera_yaw_deg", "camera_pitch_deg"]},
    }
    info = {"codebase_version": version, "fps": FPS, "chunks_size": 1000, "features": features}
    if many:
        info |= {"data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"}
        info |= {"video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"}
        (root / "meta/episodes/chunk-000").mkdir(parents=True)
        parquet.write_table(pyarrow.Table.from_pylist(episodes), root / "meta/episodes/chunk-000/file-000.parquet")
        write_lossless(root / f"videos/{key}/chunk-000/file-000.mp4", np.concatenate(list(clips.values())))
        files = {root / "data/chunk-000/file-000.parquet": rows}
    else:
        info |= {"data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"}
        info |= {"video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"}
        (root / "meta/episodes.jsonl").write_text("\n".join(map(json.dumps, episodes)))
        for name, frames in clips.items() if video else ():
            write_lossless(root / f"videos/chunk-000/{key}/{name}.mp4", frames)
        files = {
            root / f"data/chunk-000/{name}.parquet": [row for row in rows if row["episode_index"] == number]
            for number, name in enumerate(clips)
        }
    for path, some in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.Table.from_pylist(some), path)
    (root / "meta/info.json").write_text(json.dumps(info))
    return root


@pytest.mark.parametrize(("version", "video"), [("v2.1", True), ("v3.0", True), ("v2.1", False)])
def test_lerobot(version: str, video: bool, clips, expected, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    source = write_lerobot(tmp_path / "robot", clips, version, video)
    assert scores(source, tmp_path / "run") == without_truth(expected)
    entries = list(read(source))
    cases = [entry for entry in entries if isinstance(entry, Case)]
    assert [(case.model, case.prompt) for case in cases] == [("robot", "look around")] * 2
    assert cases[0].camera == "yaw:right:24@4,yaw:right:-18@3" and cases[0].clip.count == (
        8 if version == "v3.0" else None
    )
    (remark,) = [entry.sentence for entry in entries if isinstance(entry, Remark)]
    assert "2 camera actions became the camera request, positive values as yaw right, tilt up" in remark


def test_two_cameras_whose_names_end_alike(clips, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    source = write_lerobot(tmp_path / "robot", clips, "v2.1", True)
    info = json.loads((source / "meta/info.json").read_text())
    front = info["features"].pop("observation.images.front")
    for camera in ("front", "wrist"):
        info["features"][f"observation.images.{camera}.rgb"] = front
        shutil.copytree(
            source / "videos/chunk-000/observation.images.front",
            source / f"videos/chunk-000/observation.images.{camera}.rgb",
        )
    (source / "meta/info.json").write_text(json.dumps(info))
    cases, refused = split(read(source))
    assert not refused and len({case.id for case in cases}) == 4
    assert [case.clip_name for case in cases][:2] == ["episode_000000/front.rgb", "episode_000000/wrist.rgb"]


def test_actions_of_an_arm_request_no_camera(clips, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    source = write_lerobot(tmp_path / "arm", clips, "v2.1", False, ["yaw", "gripper"])
    entries = list(read(source))
    assert [entry.camera for entry in entries if isinstance(entry, Case)] == ["", ""]
    assert "are no camera actions by their names" in str(entries[0])
    assert "says no unit" in camera_action_columns(["camera_yaw"])[1]
    columns, _ = camera_action_columns(["speed", "cam.pitch.rad", "camera_forward_m"])
    script = camera_script_of_actions(np.array([[9, np.pi / 4, 0.5], [9, 0, 0], [0, 0, 0]]), columns)
    assert script == "tilt:up:45+dolly:forward:0.5@1,hold@1"
    steps = parse_script(script)
    assert steps[0].total_change("pitch") == 45 and steps[0].total_change("forward") == 0.5


def test_a_lossy_codec_costs_what_it_costs_in_a_folder(clips, tmp_path: Path) -> None:
    """4:2:0 and quantisation are the file's; nothing is added by the dataset around it."""
    pytest.importorskip("pyarrow")
    source = write_lerobot(tmp_path / "robot", clips, "v2.1", True)
    for name, frames in clips.items():
        for path in (source / f"videos/chunk-000/observation.images.front/{name}.mp4", tmp_path / f"plain/{name}.mp4"):
            path.parent.mkdir(exist_ok=True)
            encode_mp4(path, frames, FPS)
    assert scores(source, tmp_path / "run") == scores(tmp_path / "plain", tmp_path / "other")


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


def npy(frames: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, frames)
    return stream.getvalue()


def test_webdataset(clips, expected, tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    (first, one), (second, two) = clips.items()
    (tmp_path / "shards").mkdir()
    with webdataset.TarWriter(str(tmp_path / "shards/000.tar"), encoder=False) as writer:  # by the format's own writer
        sample = {f"{number:03d}.png": png(frame) for number, frame in enumerate(one)}
        sample |= {f"reference.{number:03d}.png": png(frame) for number, frame in enumerate(truth_of(one))}
        writer.write({"__key__": first, **sample, "json": json.dumps({"fps": FPS, "model": "mine"}).encode()})
    with tarfile.open(tmp_path / "shards/001.tar", "w") as tar:
        add(tar, f"{second}.npy", npy(two))
        add(tar, f"{second}.gt.npy", npy(truth_of(two)))
        add(tar, f"{second}.json", json.dumps({"fps": FPS, "model": "mine", "caption": "a walk"}).encode())
        add(tar, "note.txt", b"no clip at all")
    whole = (tmp_path / "shards/001.tar").read_bytes()
    (tmp_path / "shards/002.tar").write_bytes(b"not a tar" * 200)
    (tmp_path / "shards/003.tar").write_bytes(whole[:2000])
    entries = list(read(tmp_path / "shards"))
    refused = {entry.id: entry.reason for entry in entries if isinstance(entry, Rejected)}
    assert refused["002.tar"].startswith("the shard cannot be read beyond its sample 0")
    assert refused["note"].startswith("none of its files is a video") and "003.tar" in refused
    for shard in ("002.tar", "003.tar"):
        (tmp_path / "shards" / shard).unlink()
    assert scores(tmp_path / "shards", tmp_path / "run") == expected
    assert [case.prompt for case in read(tmp_path / "shards") if isinstance(case, Case)] == ["", "a walk"]


def test_names_that_begin_anew_in_every_shard(clips, tmp_path: Path) -> None:
    pytest.importorskip("webdataset", reason="webdataset is not installed")
    for shard, frames in zip(("a", "b"), clips.values(), strict=True):
        with tarfile.open(tmp_path / f"{shard}.tar", "w") as tar:
            add(tar, "0000.npy", npy(frames))
            add(tar, "0001.npy", npy(frames[::-1].copy()))
            add(tar, "0001.json", json.dumps({"model": shard}).encode())  # the same scene of another model
    entries = list(read(tmp_path))
    cases, refused = split(entries)
    assert not refused and len({case.id for case in cases}) == 4
    assert [(case.model, case.sample) for case in cases[1:]] == [
        ("a", "0001"),
        (tmp_path.name, "b/0000"),
        ("b", "0001"),
    ]
    (told,) = [entry.sentence for entry in entries if isinstance(entry, Remark)]
    assert told.startswith("1 sample with the name of one in an earlier shard") and "such as b/0000" in told


def test_hugging_face(clips, expected, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    pictures = datasets.List(datasets.Image())
    features = {"name": datasets.Value("string"), "fps": datasets.Value("float32"), "frames": pictures}
    rows = {"name": list(clips), "fps": [float(FPS)] * 2, "prompt": ["x", "y"]}
    for column, change in (("frames", lambda one: one), ("reference", truth_of)):
        rows[column] = [[{"bytes": png(frame), "path": None} for frame in change(one)] for one in clips.values()]
    whole = datasets.Features({**features, "reference": pictures, "prompt": datasets.Value("string")})
    dataset = datasets.Dataset.from_dict(rows, features=whole)
    dataset.save_to_disk(str(tmp_path / "saved"), num_shards=2)
    assert scores(tmp_path / "saved", tmp_path / "run") == expected
    (tmp_path / "hub/data").mkdir(parents=True)
    dataset.to_parquet(str(tmp_path / "hub/data/train-00000-of-00001.parquet"))
    assert scores(tmp_path / "hub", tmp_path / "other") == expected

    (tmp_path / "saved/data-00001-of-00002.arrow").write_bytes(b"torn")
    cases, refused = split(read(tmp_path / "saved"))
    assert [case.prompt for case in cases] == ["x"]
    assert "the shard cannot be read" in refused["data-00001-of-00002.arrow"]


def split(entries) -> tuple[list[Case], dict[str, str]]:
    entries = list(entries)
    refused = {entry.id: entry.reason for entry in entries if isinstance(entry, Rejected)}
    return [entry for entry in entries if isinstance(entry, Case)], refused


def test_hugging_face_videos_and_paths_that_lead_out(clips, expected, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    name, frames = next(iter(clips.items()))
    write_lossless(tmp_path / "a.mp4", frames)
    videos = [{"bytes": (tmp_path / "a.mp4").read_bytes(), "path": None}, {"bytes": None, "path": "/etc/passwd"}]
    features = datasets.Features({"id": datasets.Value("string"), "video": datasets.Video()})
    table = {"id": [name, "out"], "video": videos}
    import pyarrow

    storage = pyarrow.Table.from_pydict(table, schema=features.arrow_schema)
    (tmp_path / "hub").mkdir()
    from pyarrow import parquet

    parquet.write_table(storage, tmp_path / "hub/train.parquet")
    cases, refused = split(read(tmp_path / "hub"))
    assert refused["out"] == "/etc/passwd leads out of the dataset; move it there, or allow its folder with --root"
    assert [case.sample for case in cases] == [name]
    found = revisit.evaluate(tmp_path / "hub", metrics=METRICS, out=tmp_path / "run", workers=0)
    assert found.score(found.cases[0], "flicker") == expected[name]["flicker"]


def test_a_table_beside_clips_is_no_dataset(clips, tmp_path: Path) -> None:
    """prompts.parquet or results.parquet of the user's own, in the folder of the clips."""
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    name, frames = next(iter(clips.items()))
    write_lossless(tmp_path / f"wan/{name}.mp4", frames)
    datasets.Dataset.from_dict({"file": [name], "prompt": ["a walk"]}).to_parquet(str(tmp_path / "prompts.parquet"))
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    (case,) = split(read(tmp_path))[0]
    assert (case.model, case.sample) == ("wan", name)
    features = datasets.Features({"video": datasets.Video(), "prompt": datasets.Value("string")})
    rows = {"video": [{"bytes": None, "path": f"wan/{name}.mp4"}], "prompt": ["a walk"]}
    import pyarrow
    from pyarrow import parquet

    (tmp_path / "torn.parquet").unlink()
    parquet.write_table(pyarrow.Table.from_pydict(rows, schema=features.arrow_schema), tmp_path / "prompts.parquet")
    (case,) = split(read(tmp_path))[0]
    assert case.prompt == "a walk", "a list of the clips as a dataset's library writes it"


def test_an_iterator(clips, expected, tmp_path: Path) -> None:
    def samples():
        for name, frames in clips.items():
            yield {"name": name, "frames": frames, "reference": truth_of(frames), "fps": FPS, "prompt": "a walk"}

    assert scores(samples(), tmp_path / "run") == expected
    assert scores(samples(), tmp_path / "run") == expected  # the same call resumes
    with pytest.warns(UserWarning, match="bad is refused: bad: pixels are bytes"):
        results = revisit.evaluate(
            [{"name": "bad", "frames": np.zeros((3, 8, 8, 3))}, {"name": "good", "frames": clips[NAMES[0]]}],
            metrics=["flicker"], out=tmp_path / "other", workers=0,
        )  # fmt: skip
    assert [record.status for record in results.records_for("flicker")] == ["failed", "scored"]
    with pytest.raises(UsageError, match="sample 0 is a int; a sample is a mapping"):
        revisit.evaluate([1], out=tmp_path / "third")  # type: ignore[list-item]
    with pytest.raises(UsageError, match="sample 0 has no `frames`; a sample is a mapping"):
        revisit.evaluate([{"nam": "bad"}], out=tmp_path / "third")


def test_a_dataset_is_the_reference_of_a_folder_and_the_other_way_round(clips, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    robot = write_lerobot(tmp_path / "robot", clips, "v3.0", True)
    for name, frames in clips.items():
        write_pngs(tmp_path / "mine" / name, frames)
    found = [case for case in read(robot, reference=str(tmp_path / "mine")) if isinstance(case, Case)]
    assert [case.reference.path.name for case in found] == list(clips)
    found = [case for case in read(tmp_path / "mine", reference=str(robot)) if isinstance(case, Case)]
    assert [(case.reference.start, case.reference.count) for case in found] == [(0, 8), (8, 9)]
    write_pngs(tmp_path / "others/somewhere", clips[NAMES[0]])
    with pytest.raises(UsageError, match=r"no clip .* has the name of one in .* \(somewhere\)"):
        list(read(robot, reference=str(tmp_path / "others")))
