"""Layouts: each suite reads what its writer wrote, and rendering goes on where it stopped."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
import yaml
from openpyxl import load_workbook
from typer.testing import CliRunner

from revisit.core import Case, Remark, UsageError
from revisit.core.suites import SUITES
from revisit.media import load_npz
from revisit.suites.folder import world as folder
from revisit.suites.mbench import world as mbench
from revisit.suites.memobench import world as memobench
from revisit.suites.mind import world as mind
from revisit.suites.wrbench import world as wrbench
from revisit.worlds import Film, make_world, play
from revisit.worlds.failures import camera_path
from revisit.worlds.layouts import rendering
from revisit.worlds.layouts.common import Model, write_spreadsheet
from revisit.worlds.layouts.film_orders import LAYOUTS, Layout
from revisit.worlds.workers import Progress

SIZE, FRAMES = (64, 112), 17
MODELS = [Model("perfect"), Model("vanish"), Model("timid_camera", 0.5)]
NAMES = ["perfect", "vanish", "timid_camera@0.5"]


@pytest.fixture(scope="module")
def film() -> Film:
    return play(make_world(2, "room", "gift"), "yaw", "both", SIZE, frames=FRAMES)


def cases(suite: str, source: Path, **options: str) -> list[Case]:
    """The cases that a suite reads, none of them rejected."""
    found = [entry for entry in SUITES[suite].read(source, **options) if not isinstance(entry, Remark)]
    assert all(isinstance(entry, Case) for entry in found), [e for e in found if not isinstance(e, Case)]
    return [entry for entry in found if isinstance(entry, Case)]


def frames_of(case: Case) -> int:
    from revisit.media import open_clip

    with open_clip(case.clip) as stream:
        return sum(1 for _ in stream)


def test_the_folder_suite_reads_its_layout(film: Film, tmp_path: Path):
    found = cases("folder", folder.LAYOUT.write(tmp_path, {"one": film}, MODELS))
    assert [case.model for case in found] == NAMES
    for case in found:
        assert case.phases == film.phases and case.target is not None and case.reference is not None
        assert frames_of(case) == FRAMES and case.reference.path.is_file()
    assert found[2].annotations == {"kind": "timid_camera", "strength": 0.5}
    assert load_npz(tmp_path / "truth/one.npz")["poses"].shape == (FRAMES, 4, 4)


@pytest.fixture(scope="module")
def memory(film: Film, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("memobench")
    memobench.LAYOUT.write(root, {"Living_Room_003": film, "012": film}, MODELS)
    return root


def test_the_memobench_suite_reads_its_layout(film: Film, memory: Path):
    found = cases("memobench", memory / "output", gt=str(memory / "data"), targets=str(memory / "targets.json"))
    assert {case.model for case in found} == set(NAMES) and len(found) == 6
    for case in found:
        synthetic = case.subset == "Synthetic"
        assert case.sample == ("Living_Room_003" if synthetic else "012")
        assert case.annotations["gt_phases"] == list(film.phases) and case.annotations["gt_frames"] == FRAMES
        assert case.annotations["frames"] == FRAMES == frames_of(case)
        assert case.annotations["subject"] == "gift box" and "gift box (subject)" in case.prompt
        assert case.target is not None and case.target.box == film.target_box()
        kind, _, strength = case.model.partition("@")
        made = load_npz(case.artifacts["poses"])["poses"]
        assert made == pytest.approx(camera_path(kind, film, float(strength or 1)))
        assert case.artifacts["true_poses"].is_file()
    truth = cases("memobench", memory / "data")
    assert [case.model for case in truth] == ["gt", "gt"]


def test_memobench_files_are_as_the_dataset_has_them(film: Film, memory: Path):
    clip = memory / "data/Synthetic_processed/Living_Room/Living_Room_003"
    assert sorted(path.name for path in (clip / "RGB3").iterdir())[0] == "NewLevelSequence3.0000.jpg"
    poses, lens = np.load(clip / "3/poses.npy"), np.load(clip / "3/intrinsics.npy")
    assert poses.shape == (FRAMES, 4, 4) and lens.shape == (FRAMES, 4)
    assert poses[:, :3, 3] == pytest.approx(100 * film.poses[:, :3, 3])
    assert lens[0] == pytest.approx([film.K[0, 0], film.K[1, 1], film.K[0, 2], film.K[1, 2]])
    with (clip / "camera_full3.csv").open(newline="") as file:
        track = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    for row, pose in zip(track, poses, strict=True):
        assert from_track(row) == pytest.approx(pose)
    metadata = (memory / "data/sam3_metadata/synthetic_metadata.csv").read_bytes()
    assert metadata.startswith(b"scene,video_id,subject,exr_path,prompt\r\n") and not metadata.startswith(b"\xef")
    real = load_npz(memory / "data/Real_Raw/012/raw/012_mapanything.npz")
    assert real["cam_c2w"].shape == (FRAMES, 4, 4) and real["intrinsic"] == pytest.approx(film.K)
    assert (memory / "data/Real_Raw/012/FRAMES/frame_0001.jpg").is_file()
    assert (memory / "output/vanish/Real/012/frames/00001.png").is_file()


def from_track(row: Mapping[str, float]) -> np.ndarray:
    """A pose from an engine's track, as the dataset's own fallback reads it."""
    x, y, z = (row[f"rot_{axis}"] for axis in "xyz")
    about_x = np.array([[1, 0, 0], [0, np.cos(x), np.sin(x)], [0, -np.sin(x), np.cos(x)]])
    about_y = np.array([[np.cos(y), 0, -np.sin(y)], [0, 1, 0], [np.sin(y), 0, np.cos(y)]])
    about_z = np.array([[np.cos(z), np.sin(z), 0], [-np.sin(z), np.cos(z), 0], [0, 0, 1]])
    pose = np.eye(4)
    pose[:3, :3] = about_z @ about_y @ about_x
    pose[:3, 3] = row["loc_x"], row["loc_y"], row["loc_z"]
    return pose @ np.diag([1.0, -1, -1, 1])


@pytest.fixture(scope="module")
def events(film: Film, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("wrbench")
    way = "RL" if film.world.turn == "right" else "LR"
    wrbench.LAYOUT.write(root, {f"room_02_gift__T2_div_b__yaw60_{way}": film}, MODELS[:2])
    return root


def test_the_wrbench_suite_reads_its_layout(film: Film, events: Path):
    options = {"poses": str(events / "poses"), "targets": str(events / "targets.json")}
    found = cases("wrbench", events / "manifest.json", **options)
    assert [case.model for case in found] == NAMES[:2]
    for case in found:
        assert case.annotations["factor"] == "full" and "gift box" in case.annotations["event"]
        assert case.condition == f"yaw_{'RL' if film.world.turn == 'right' else 'LR'}"
        assert case.target is not None and case.artifacts["poses"].is_file() and frames_of(case) == FRAMES


def test_wrbench_files_are_as_the_suite_has_them(film: Film, events: Path):
    variants = [json.loads(line) for line in (events / "natural25/variants.jsonl").read_text().splitlines()]
    assert len({row["variant_id"] for row in variants}) == 16 == len(variants)
    assert all(row["expected_state"] == row["world_state_prompt"] for row in variants)
    families = [json.loads(line) for line in (events / "natural25/families.jsonl").read_text().splitlines()]
    assert [thing["role"] for thing in families[0]["supporting_objects"]] == ["anchor", "anchor", "interactor"]
    with (events / "natural25/scene_events_25x4.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert [row[f"event_delta_{tier}"] for tier in wrbench.TIERS] == ["none", "spatial", "state_only", "full"]
    clip = next((events / "videos/perfect").glob("*.mp4"))
    target = np.load(clip.with_suffix(".target_c2w.npy"))
    assert target.shape == (FRAMES, 4, 4) and target[0] == pytest.approx(np.eye(4))
    facts = json.loads(clip.with_suffix(".camera.json").read_text())
    assert abs(facts["yaw_peak_deg"]) == pytest.approx(60, abs=0.5)
    assert (facts["yaw_peak_deg"] > 0) == (film.world.turn == "right"), "right is positive, and right first is RL"
    assert facts["control_direction"] == ("RL" if film.world.turn == "right" else "LR")


def test_mbench_files_are_as_its_description_has_them(film: Film, tmp_path: Path):
    root = mbench.LAYOUT.write(tmp_path, {"object__sample_001__left_then_right_3s": film}, MODELS)
    card = yaml.safe_load((root / "dataset.yaml").read_text())
    assert card["dataset_id"] == "mbencha" and list(card["subsets"]) == ["object"]
    sample = json.loads((root / "samples/object/sample_001/sample.json").read_text())
    anchor = sample["metadata"]["object_anchor"]
    assert (anchor["width"], anchor["height"]) == SIZE[::-1]
    assert film.truth(0).mask[int(anchor["center_y"]), int(anchor["center_x"])] == 1
    assert all((root / "samples/object/sample_001" / file).is_file() for file in sample["ground_truth_media"].values())
    for model in NAMES:
        home = root / "models" / model
        (item,) = [json.loads(line) for line in (home / "samples.jsonl").read_text().splitlines()]
        assert item["item_id"] == "object:sample_001:left_then_right_3s" and item["model_id"] == model
        assert (home / item["media"]["videos"][0]["path"]).is_file()
        path = card["paths"]["artifact_da3"].format(
            **{k: item[k] for k in ("model_id", "subset", "sample_id", "condition_id")}
        )
        assert root / path == home / item["artifacts"]["da3"]["path"]
        results = load_npz(root / path)
        count = len(results["frame_indices"])
        assert (
            results["depth"].shape == (count, SIZE[0] // 2, SIZE[1] // 2) and str(results["convention"]) == "w2c_opencv"
        )
        assert len(list((root / path).parent.glob("input_images/*.png"))) == count == len(results["extrinsics"])
    assert reprojection_error(load_npz(root / "models/perfect" / item["artifacts"]["da3"]["path"])) < 0.05


def test_the_mbench_suite_reads_its_layout(film: Film, tmp_path: Path):
    source = mbench.LAYOUT.write(tmp_path, {"object__sample_001__left_then_right_3s": film}, MODELS[:2])
    found = cases("mbench", source)
    assert [case.model for case in found] == NAMES[:2]
    assert all(frames_of(case) == FRAMES for case in found)


def test_mbench_by_text_tells_the_film_in_five_parts(film: Film, tmp_path: Path):
    found = cases("mbench", mbench.LAYOUT.write(tmp_path, {"object__sample_001__text": film}, MODELS[:1]))
    (case,) = found
    assert case.annotations["setting"] == "T" and len(case.annotations["segments"]) == 5 and case.condition == "text"
    assert case.annotations["object_card"]["name"] in case.annotations["segments"][1] and case.camera == ""
    names = [order.name for order in mbench.LAYOUT_OF_TEXT.films(3)]
    assert all(name.endswith("__sample_003__text") for name in names) and len(set(names)) == 4


def reprojection_error(results: Mapping[str, np.ndarray]) -> float:
    """Median difference in metres between the depth of the second frame and what the first predicts of it."""
    depth, K = results["depth"], results["intrinsics"][0]
    to_world = [np.vstack([w2c, [0, 0, 0, 1]]) for w2c in results["extrinsics"]]
    y, x = np.mgrid[: depth.shape[1], : depth.shape[2]]
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ np.linalg.inv(K).T
    points = rays * depth[0][..., None]
    change = to_world[1] @ np.linalg.inv(to_world[0])
    seen = points @ change[:3, :3].T + change[:3, 3]
    pixels = seen @ K.T
    u, v = np.round(pixels[..., 0] / pixels[..., 2]).astype(int), np.round(pixels[..., 1] / pixels[..., 2]).astype(int)
    inside = (u >= 0) & (v >= 0) & (u < depth.shape[2]) & (v < depth.shape[1])
    return float(np.median(np.abs(depth[1][v[inside], u[inside]] - seen[..., 2][inside])))


def test_mind_is_rendered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    calls = []

    def rendered(folder: Path, *, size: tuple[int, int], progress: Progress, **length: object) -> None:
        calls.append((size, length.get("future")))
        for step in range(mind.STEPS):
            progress(step + 1, mind.STEPS, "a part")
        (folder / "complete").touch()

    monkeypatch.setattr("revisit.suites.mind.world.render_mind", rendered)
    told: list[str] = []
    for _ in range(2):
        assert mind.write(tmp_path, (48, 80), told.append, 120) == tmp_path / "predictions"
    assert calls == [((48, 80), 120)] and len(told) == 2 * mind.STEPS


@pytest.mark.long
def test_rendering_goes_on_where_it_stopped(tmp_path: Path):
    options = {"seeds": 1, "size": SIZE, "frames": FRAMES, "workers": 0, "models": MODELS[:2]}
    told: list[tuple[int, int, str]] = []
    rendering.render_layouts(tmp_path, ["folder"], progress=lambda *news: told.append(news), **options)
    assert told == [(1, 2, "folder 000-gift-both: perfect"), (2, 2, "folder 000-gift-both: vanish")]
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.mp4")}
    lost = tmp_path / "folder/vanish/000-gift-both.mp4"
    bytes_before = lost.read_bytes()
    lost.unlink()
    (tmp_path / "folder/vanish/.writing-1-1.mp4").write_bytes(b"cut off")
    rendering.render_layouts(tmp_path, ["folder"], **options)
    assert lost.read_bytes() == bytes_before
    assert all(path.stat().st_mtime_ns == when for path, when in made.items() if path != lost)
    assert [case.model for case in cases("folder", tmp_path / "folder")] == ["perfect", "vanish"]
    with pytest.raises(UsageError, match="--fresh"):
        rendering.render_layouts(tmp_path, ["folder"], **{**options, "size": (68, 112)})


def test_folders_of_pictures_are_written_once(film: Film, memory: Path):
    made = {path: path.stat().st_mtime_ns for path in memory.rglob("*.[pj][np]g")}
    memobench.LAYOUT.write(memory, {"Living_Room_003": film, "012": film}, MODELS)
    assert len(made) == 5 * FRAMES
    assert {path: path.stat().st_mtime_ns for path in memory.rglob("*.[pj][np]g")} == made


def test_spreadsheets_do_not_say_when_they_were_written(tmp_path: Path):
    path = tmp_path / "marks.xlsx"
    write_spreadsheet(path, ["name", "exit"], [{"name": "a", "exit": 3}])
    with ZipFile(path) as parts:
        assert {part.date_time[0] for part in parts.infolist()} == {1980}
        assert parts.read("docProps/core.xml").count(b">1980-01-01T00:00:00Z<") == 2
    page = load_workbook(path).active
    assert page is not None and list(page.values) == [("name", "exit"), ("a", 3)]


def test_every_order_of_the_default_layouts_can_be_made():
    for layout in LAYOUTS.values():
        if not isinstance(layout, Layout):
            continue
        for seed in range(12):
            orders = layout.films(seed)
            assert len({order.name for order in orders}) == len(orders), layout.id
            for order in orders:
                assert make_event_fits(order.kind, order.event), order
        assert all(Model.parse(model) for model in layout.models)


def make_event_fits(kind: str, event: str) -> bool:
    from revisit.worlds import EVENTS

    return kind in EVENTS[event].kinds


@pytest.mark.long
@pytest.mark.slow
def test_the_command_renders_in_worker_processes(tmp_path: Path):
    from revisit.cli.main import app

    arguments = ["world", "render", "--suite", "folder", "--out", str(tmp_path / "w"), "--seeds", "2"]
    arguments += ["--size", "64x112", "--failures", "perfect,vanish@0.5", "--workers", "2", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    found = cases("folder", tmp_path / "w/folder")
    assert [case.model for case in found] == ["perfect", "vanish@0.5", "perfect", "vanish@0.5"]
    assert "revisit eval" in result.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--suite", "vbench"], "unknown layout 'vbench'"),
        (["--failures", "forgets"], "unknown failure 'forgets'"),
        (["--failures", "vanish@2"], "a strength is a number from 0 to 1"),
        (["--size", "large"], "no size; a size is height x width"),
        (["--size", "61x100"], "multiples of 4"),
    ],
)
def test_what_cannot_be_rendered_is_refused_with_a_sentence(arguments: list[str], sentence: str, tmp_path: Path):
    from revisit.cli.main import app

    result = CliRunner().invoke(app, ["world", "render", "--out", str(tmp_path), *arguments])
    assert isinstance(result.exception, UsageError) and sentence in str(result.exception)
