"""The suite memobench: trees as people have them, sheets as people save them, and runs on small datasets."""

from __future__ import annotations

import csv
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from revisit.core import SUITES, Case, Record, Rejected, UsageError
from revisit.core.phase_pairs import frame_pairs_by_phase
from revisit.engine.cache import EvidenceCache
from revisit.engine.dependencies import ObserverSet
from revisit.engine.plan import make_plan
from revisit.engine.run import evaluate
from revisit.metrics.fidelity import psnr_per_frame
from revisit.observers.poses import read_poses, read_poses_and_format
from revisit.observers.sets import load_roles
from revisit.results import Results
from revisit.runs.group_by import parse_group_key, score_tables_by_group
from revisit.suites.memobench.layouts import find_clip_location, find_model_trees
from revisit.suites.memobench.metadata import find_xlsx_or_csv, read_marks_sheet, read_metadata_rows_by_clip
from revisit.suites.memobench.names import ClipName, canonical_scene_name, parse_clip_name
from revisit.suites.memobench.read import is_memobench_source, read
from tests.conftest import moving_frames

GT_FRAMES, FRAMES, MARKS = 24, 12, (6, 15)
BARN5, REAL7 = ClipName("Synthetic", "Barnyard", 5), ClipName("Real", "", 7)


def write_frames(folder: Path, pictures, name="{:05d}.png") -> Path:
    import cv2

    folder.mkdir(parents=True, exist_ok=True)
    for k, picture in enumerate(pictures):
        cv2.imwrite(str(folder / name.format(k)), picture[:, :, ::-1])
    return folder


def write_xlsx(path: Path, rows) -> Path:
    from openpyxl import Workbook

    path.parent.mkdir(parents=True, exist_ok=True)
    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def turning(count: int, degrees: float) -> np.ndarray:
    """Poses of a camera that turns right evenly."""
    angle = np.radians(np.linspace(0, degrees, count))
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, 0, 0] = poses[:, 2, 2] = np.cos(angle)
    poses[:, 0, 2], poses[:, 2, 0] = np.sin(angle), -np.sin(angle)
    return poses


def make_dataset(root: Path, marks=MARKS) -> Path:
    """A dataset of Barnyard 5 and 9 (9 is skipped), and of the real clip 7."""
    from revisit.media import encode_mp4

    data = root / "data"
    truth = moving_frames(GT_FRAMES, seed=1)
    for number in (5, 9):
        home = data / f"Synthetic_processed/Barnyard/Barnyard_{number:03d}"
        write_frames(home / f"RGB{number}", truth, f"NewLevelSequence{number}.{{:04d}}.jpg")
        (home / str(number)).mkdir()
        np.save(home / f"{number}/poses.npy", turning(GT_FRAMES, 100))
        np.save(home / f"{number}/intrinsics.npy", np.tile([960.0, 950.0, 480.0, 270.0], (GT_FRAMES, 1)))
    write_xlsx(
        data / "Synthetic_processed/Synthetic_ExitReenter.xlsx",
        [
            ["video_folder", "exits", "re-enter", "frame_num", "Skip", "prompt"],
            ["Barnyard_005", marks[0], float(marks[1]), GT_FRAMES, None, "sees a pig(subject) running. It is back."],
            ["Barnyard_009", 6, 15, GT_FRAMES, "Yes", ""],
            [None, None, None, None, None, None],
        ],
    )
    real = data / "Real_Raw/007"
    (real / "raw").mkdir(parents=True)
    encode_mp4(real / "007.mp4", moving_frames(GT_FRAMES, seed=2), fps=30)
    np.savez(real / "raw/007_mapanything.npz", cam_c2w=turning(GT_FRAMES, 40), intrinsic=np.diag([900.0, 901, 1]))
    write_xlsx(data / "Real_Raw/Real_ExitReenter.xlsx", [["id", "exit", "reenter"], [7, 6, 15]])
    (data / "sam3_metadata").mkdir()
    (data / "sam3_metadata/synthetic_metadata.csv").write_bytes(
        b"scene,video_id,subject,exr_path,prompt\r\n"
        b'Barnyard,5,pig,data/x/RGB5/a.jpg,"sees a pig(subject) running, then"\r\n'
    )
    (data / "sam3_metadata/real_metadata.csv").write_bytes(
        b"video_id,subject,full_image_path,prompt\r\n7,a test tube filled,x.jpg,A tube.\r\n"
    )
    return data


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("dataset"))


def generated(tree: Path, seed: int = 1, count: int = FRAMES) -> Path:
    """A model that shows every second frame of the ground truth, and the real clip as a video."""
    from revisit.media import encode_mp4

    pictures = moving_frames(GT_FRAMES, seed=seed)[:: GT_FRAMES // count][:count]
    write_frames(tree / "Synthetic/Barnyard/Barnyard_005/frames", pictures)
    (tree / "Real").mkdir(parents=True)
    encode_mp4(tree / "Real/007.mp4", moving_frames(GT_FRAMES, seed=seed + 1)[::2], fps=15)
    return tree


def run_memo(source, out, cache=None, protocol=None, metrics=(), **options):
    plan = make_plan(
        SUITES["memobench"], source, ObserverSet("lite", load_roles("lite")),
        protocol=protocol, metrics=metrics, options={name: str(value) for name, value in options.items()},
    )  # fmt: skip
    return evaluate(plan, out, workers=0, cache=cache)


def only(entries) -> Case:
    (entry,) = entries
    assert isinstance(entry, Case), entry
    return entry


# ---- names and layouts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Barnyard_005", BARN5),
        ("Barnyard_5", BARN5),
        ("Zen_Garden_3", ClipName("Synthetic", "ZenGarden", 3)),
        ("ZenGarden_003", ClipName("Synthetic", "ZenGarden", 3)),
        ("Japanese_Street_011", ClipName("Synthetic", "Japanese_Street", 11)),
        ("007", REAL7),
        ("7", REAL7),
        ("real_007", REAL7),
        ("Real_007", REAL7),
        ("frames", None),
        ("Barnyard", None),
    ],
)
def test_names(text, expected):
    assert parse_clip_name(text) == expected


def test_the_question_bank_spells_a_scene_differently():
    assert ClipName("Synthetic", "ZenGarden", 3).question_key == "Zen_Garden-3" and REAL7.question_key == "7"
    assert canonical_scene_name("nyc_east") == "NYC_East" and canonical_scene_name("Attic") == "Attic"


LAYOUTS = {
    "Synthetic/Barnyard/Barnyard_005/frames/00000.png": ("frames", BARN5),
    "Barnyard/Barnyard_005/frames/00000.jpg": ("frames", BARN5),
    "Barnyard_005/frames/0.png": ("frames", BARN5),
    "Synthetic/Barnyard_5/samples-rgb/00000.png": ("samples-rgb", BARN5),
    "Barnyard/Barnyard_005/00000.png": ("images", BARN5),
    "Barnyard_005/video.mp4": ("video", BARN5),
    "Synthetic/Barnyard/Barnyard_005/video.mp4": ("video", BARN5),
    "Synthetic/Barnyard/Barnyard_005.mp4": ("file", BARN5),
    "Barnyard_005.mp4": ("file", BARN5),
    "Real/007/frames/00001.png": ("frames", REAL7),
    "Real/7.mp4": ("file", REAL7),
    "7.mp4": ("file", REAL7),
    "007/video.mp4": ("video", REAL7),
    "real_007/frames/00001.png": ("frames", REAL7),
    "Real/real_7/video.mp4": ("video", REAL7),
    "Zen_Garden/Zen_Garden_003/frames/0.png": ("frames", ClipName("Synthetic", "ZenGarden", 3)),
    "Synthetic/ZenGarden/ZenGarden_003/0.jpg": ("images", ClipName("Synthetic", "ZenGarden", 3)),
}


@pytest.mark.parametrize("place", LAYOUTS)
def test_every_layout_is_found(tmp_path, place):
    kind, name = LAYOUTS[place]
    path = tmp_path / "model" / place
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    found = find_clip_location(tmp_path / "model", name)
    assert found is not None and found.kind == kind and not found.others
    assert found.path == (path if path.suffix == ".mp4" else path.parent)
    assert find_model_trees(tmp_path / "model") == {"model": tmp_path / "model"}
    assert find_model_trees(tmp_path) == {"model": tmp_path / "model"}


def test_one_precedence_and_what_was_passed_over_is_told(tmp_path, data):
    tree = generated(tmp_path / "mine")
    home = tree / "Synthetic/Barnyard/Barnyard_005"
    shutil.copy(tree / "Real/007.mp4", home / "video.mp4")
    shutil.copy(tree / "Real/007.mp4", tree / "Barnyard_005.mp4")
    cases = {case.sample: case for case in read(tree, gt=str(data))}
    case = cases["Barnyard_005"]
    assert case.annotations["layout"] == "frames"
    assert case.annotations["notes"] == [
        "Synthetic/Barnyard/Barnyard_005/frames was used (frames); also found, and not used: "
        "Synthetic/Barnyard/Barnyard_005/video.mp4, Barnyard_005.mp4"
    ]
    assert "notes" not in cases["007"].annotations
    other = {case.sample: case for case in read(tree, gt=str(data), prefer="video")}["Barnyard_005"]
    assert other.annotations["layout"] == "video" and other.clip.path.name == "video.mp4"
    with pytest.raises(UsageError, match="prefer takes frames or video"):
        list(read(tree, gt=str(data), prefer="best"))


def test_a_link_to_a_clip_does_not_lower_its_rank(tmp_path):
    tree = tmp_path / "mine"
    files = [tree / place for place in ("Barnyard_005/video.mp4", "Barnyard_005.mp4")]
    files[0].parent.mkdir(parents=True)
    for number, file in enumerate(files):
        file.write_bytes(bytes([number]))
    (tree / "Barnyard_005.mov").symlink_to(files[0])
    found = find_clip_location(tree, BARN5)
    assert found is not None and (found.kind, found.path, found.others) == ("video", files[0], (files[1],))


def test_unpadded_frames_are_in_natural_order_and_last_as_long_as_the_truth(tmp_path, data):
    from revisit.media.frame_folder import find_frame_files

    folder = write_frames(tmp_path / "m/Barnyard_5/frames", moving_frames(FRAMES), "{}.png")
    assert [path.stem for path in find_frame_files(folder).paths] == [str(k) for k in range(FRAMES)]
    case = only(read(tmp_path / "m", gt=str(data)))
    assert case.clip.fps == pytest.approx(FRAMES / (GT_FRAMES / 60)) and case.id == "Synthetic/Barnyard_005@m"


# ---- cases --------------------------------------------------------------------------------------


def test_a_case_carries_what_the_dataset_says(tmp_path, data):
    tree = generated(tmp_path / "mine")
    cases = {case.sample: case for case in read(tree, gt=str(data))}
    case, real = cases["Barnyard_005"], cases["007"]
    assert case.phases == (3, 8) and case.align == "phases:3,8/6,15"  # 7.5 to even
    assert case.subset == "Synthetic" and case.condition == "Barnyard" and case.model == "mine"
    assert case.annotations["gt_frames"] == GT_FRAMES and case.annotations["frames"] == FRAMES
    assert case.annotations["gt_phases"] == [6, 15] and case.annotations["vqa_key"] == "Barnyard-5"
    assert case.annotations["subject"] == "pig" and case.annotations["ors_prompt"] == "a pig(subject) running"
    assert case.annotations["fx"] == 960 and case.annotations["fy"] == 950
    assert case.artifacts["true_poses"].name == "poses.npy" and "poses" not in case.artifacts
    assert case.reference is not None and case.reference.path.name == "RGB5" and case.reference.fps == 60
    assert real.reference is not None and real.reference.path.name == "007.mp4"
    assert real.artifacts["true_poses"].name == "007_mapanything.npz" and real.annotations["fx"] == 900
    assert real.condition == "Real" and real.annotations["ors_prompt"] == "a test tube filled"


def test_what_is_missing_is_counted_and_splits_that_nobody_made_are_not(tmp_path, data):
    tree = generated(tmp_path / "all/one")
    shutil.copytree(tree / "Real", tmp_path / "all/two/Real")
    entries = list(read(tmp_path / "all", gt=str(data)))
    missing = [entry for entry in entries if isinstance(entry, Rejected)]
    assert [entry.id for entry in missing] == ["Synthetic/Barnyard_005@two"] and missing[0].missing
    alone = list(read(tmp_path / "all/two", gt=str(data)))
    assert [entry.id for entry in alone] == ["Real/007@two"]
    with pytest.raises(UsageError, match="holds 2 models"):
        list(read(tmp_path / "all", gt=str(data), model="x"))


def test_a_clip_that_no_sheet_knows_is_refused_and_a_skipped_one_passed_over(tmp_path, data):
    tree = generated(tmp_path / "m")
    for number in (2, 9):
        shutil.copytree(tree / "Synthetic/Barnyard/Barnyard_005", tree / f"Synthetic/Barnyard/Barnyard_{number:03d}")
    refused = [entry for entry in read(tree, gt=str(data)) if isinstance(entry, Rejected)]
    assert [entry.id for entry in refused] == ["Synthetic/Barnyard_002@m"]
    assert "is not in Synthetic_ExitReenter.xlsx" in refused[0].reason and not refused[0].missing


def test_without_ground_truth_or_sheets_clips_are_judged_without_phases(tmp_path, data):
    tree = generated(tmp_path / "m")
    alone = {case.sample: case for case in read(tree)}
    assert alone["007"].reference is None and alone["Barnyard_005"].phases is None
    bare = tmp_path / "bare"
    shutil.copytree(data, bare)
    (bare / "Real_Raw/Real_ExitReenter.xlsx").unlink()
    case = {entry.sample: entry for entry in read(tree, gt=str(bare)) if isinstance(entry, Case)}["007"]
    assert case.phases is None and case.align == "stretch" and case.reference is not None
    assert case.annotations["notes"] == ["there is no Real_ExitReenter.xlsx, so phases are unknown"]
    own = tmp_path / "mine.csv"
    own.write_text("video_folder;exits;re-enter\nReal_007;6;15\n")
    again = {entry.sample: entry for entry in read(tree, gt=str(bare), marks=str(own)) if isinstance(entry, Case)}
    assert again["007"].phases == (3, 8)


def test_what_is_wrong_with_one_clip_costs_only_that_clip(tmp_path, data):
    tree = generated(tmp_path / "m")
    broken = tmp_path / "broken"
    shutil.copytree(data, broken)
    shutil.rmtree(broken / "Synthetic_processed/Barnyard/Barnyard_005/RGB5")
    entries = list(read(tree, gt=str(broken)))
    assert "has no Synthetic_processed/Barnyard/Barnyard_005/RGB5; download it" in entries[0].reason
    assert isinstance(entries[1], Case)
    with pytest.raises(UsageError, match="expected Synthetic_processed or Real_Raw"):
        list(read(tree, gt=str(tmp_path / "m")))
    with pytest.raises(UsageError, match="no generated clips found"):
        list(read(tmp_path / "broken/sam3_metadata"))


@pytest.mark.parametrize("marks", [(15, 6), (6, 25), (-1, 6)])
def test_impossible_marks_are_refused(tmp_path, marks):
    data = make_dataset(tmp_path, marks)
    entry = next(iter(read(generated(tmp_path / "m"), gt=str(data))))
    assert isinstance(entry, Rejected) and "the ground truth has 24 frames" in entry.reason


@pytest.mark.parametrize("marks", [(15, 6), (15, 15)])
def test_a_return_before_the_exit_is_clamped_as_upstream_does(tmp_path, marks):
    """The public evaluator keeps the return two frames behind the exit; other protocols refuse such marks."""
    gt, source = make_dataset(tmp_path, marks), generated(tmp_path / "m")
    run = run_memo(source, tmp_path / "upstream", protocol="upstream", metrics=["memo_psnr"], gt=gt)
    case = next(case for case in run.results.cases if case.sample == "Barnyard_005")
    assert case.phases == (8, 10) and f"returns at {marks[1]}" in case.annotations["notes"][0]
    facts = next(one.facts for one in run.results.scores("memo_psnr") if one.case.id == case.id)
    assert facts["frames"] == {"all": 12, "visible": 9, "hidden": 3, "returned": 2} and not run.results.rejected
    run = run_memo(source, tmp_path / "corrected", metrics=["memo_psnr"], gt=gt)
    assert [entry.id for entry in run.results.rejected] == ["Synthetic/Barnyard_005@m"]


def test_too_short_clips_are_refused(tmp_path, data):
    write_frames(tmp_path / "m/Barnyard_005/frames", moving_frames(4))
    (entry,) = read(tmp_path / "m", gt=str(data))
    assert isinstance(entry, Rejected) and entry.reason == "too short: the clip has 4 frames, but three phases need 5"


def test_files_beside_the_clips(tmp_path, data):
    tree = generated(tmp_path / "m")
    poses = tmp_path / "estimated/m"
    poses.mkdir(parents=True)
    np.save(poses / "Barnyard_005.npy", turning(FRAMES, 90))
    answers = tmp_path / "vqa/m"
    answers.mkdir(parents=True)
    (answers / "Barnyard-5.csv").write_text("x")
    cases = {c.sample: c for c in read(tree, gt=str(data), poses=str(poses.parent), vqa=str(answers.parent))}
    assert cases["Barnyard_005"].artifacts["poses"] == poses / "Barnyard_005.npy"
    assert cases["Barnyard_005"].artifacts["vqa_answers"] == answers / "Barnyard-5.csv"
    assert "poses" not in cases["007"].artifacts
    np.save(tree / "Synthetic/Barnyard/Barnyard_005/poses.npy", turning(FRAMES, 90))
    own = {case.sample: case for case in read(tree, gt=str(data))}["Barnyard_005"]
    assert own.artifacts["poses"].parent.name == "Barnyard_005"
    with pytest.raises(UsageError, match="poses=nowhere: there is no such folder"):
        list(read(tree, gt=str(data), poses="nowhere"))
    with pytest.raises(UsageError, match="it has no folder called"):
        list(read(tree, gt=str(data), evidence=str(poses)))


def test_a_camera_table_is_the_last_resort_for_poses(tmp_path, data):
    copy = tmp_path / "copy"
    shutil.copytree(data, copy)
    home = copy / "Synthetic_processed/Barnyard/Barnyard_005"
    (home / "5/poses.npy").unlink()
    rows = [f"{k},0,5,0,0,{0.05 * k},960,960,960,540" for k in range(GT_FRAMES)]
    (home / "camera_full5.csv").write_text(
        "loc_x,loc_y,loc_z,rot_x,rot_y,rot_z,fx,fy,cx,cy\r\n" + "\r\n".join(rows) + "\r\n"
    )
    case = next(iter(read(generated(tmp_path / "m"), gt=str(copy))))
    assert isinstance(case, Case) and case.artifacts["true_poses"] == home / "camera_full5.csv"
    found, format_name = read_poses_and_format(home / "camera_full5.csv")
    assert format_name == "camera_table" and len(found) == GT_FRAMES


def test_the_camera_table_in_closed_form(tmp_path):
    """c2w = Rz(-z) Ry(-y) Rx(-x) diag(1, -1, -1): each elementary rotation against the right-handed sense."""

    def rotation(axis: int, angle: float) -> np.ndarray:
        made = np.eye(3)
        a, b = (axis + 1) % 3, (axis + 2) % 3
        made[a, a] = made[b, b] = np.cos(angle)
        made[a, b], made[b, a] = -np.sin(angle), np.sin(angle)
        return made

    x, y, z = 0.3, -0.7, 1.9
    path = tmp_path / "camera_full1.csv"
    path.write_text(f"loc_x,loc_y,loc_z,rot_x,rot_y,rot_z\n1,2,3,{x},{y},{z}\n1,2,3,0,0,0\n")
    c2w = read_poses(path).c2w
    expected = rotation(2, -z) @ rotation(1, -y) @ rotation(0, -x) @ np.diag([1.0, -1, -1])
    assert np.allclose(c2w[0][:3, :3], expected) and c2w[0][:3, 3].tolist() == [1, 2, 3]
    assert np.allclose(c2w[1][:3, :3], np.diag([1.0, -1, -1]))
    for text, said in (
        ("loc_x,loc_y\n1,2\n", "the table has 1 rows of loc_x and loc_y; expected loc_x, loc_y, loc_z, rot_x"),
        ("loc_x,loc_y,loc_z,rot_x,rot_y,rot_z\n1,2,3,0,0\n", "line 2 has no number in each of rot_x, rot_y, rot_z"),
        ("loc_x,loc_y,loc_z,rot_x,rot_y,rot_z\n1,2,nan,0,0,0\n", "is not finite"),
    ):
        path.write_text(text)
        with pytest.raises(Exception, match=said):
            read_poses(path)


@pytest.mark.parametrize(
    ("shape", "known"),
    [((GT_FRAMES, 4), True), ((4,), True), ((3, 3), True), ((GT_FRAMES, 3, 3), True), ((2, 5), False)],
)
def test_intrinsics_of_any_shape_that_occurs(tmp_path, shape, known):
    data = make_dataset(tmp_path)
    values = np.arange(1, 10.0).reshape(3, 3) if shape[-1:] == (3,) else np.arange(1.0, shape[-1] + 1)
    np.save(data / "Synthetic_processed/Barnyard/Barnyard_005/5/intrinsics.npy", np.broadcast_to(values, shape))
    case = next(iter(read(generated(tmp_path / "m"), gt=str(data))))
    assert isinstance(case, Case) and (case.annotations.get("fx") == 1) == known
    assert known or "intrinsics of shape (2, 5), which are ignored" in case.annotations["notes"][0]


def test_files_of_the_dataset_that_disagree_are_told(tmp_path):
    data = make_dataset(tmp_path)
    home = data / "Synthetic_processed/Barnyard/Barnyard_005"
    np.save(home / "5/intrinsics.npy", np.ones((GT_FRAMES + 2, 4)))
    write_frames(data / "Real_Raw/007/FRAMES", moving_frames(GT_FRAMES - 1), "frame_{:04d}.jpg")
    cases = {case.sample: case for case in read(generated(tmp_path / "m"), gt=str(data))}
    assert cases["Barnyard_005"].annotations["notes"] == [
        "RGB5 has 24 images and intrinsics.npy 26 rows; the images count"
    ]
    assert cases["007"].annotations["notes"] == ["007.mp4 has 24 frames and FRAMES 23 images; the video counts"]
    (data / "Real_Raw/007/007.mp4").unlink()
    again = {case.sample: case for case in read(tmp_path / "m", gt=str(data))}["007"]
    assert again.reference is not None and again.reference.path.name == "FRAMES"
    assert again.annotations["gt_frames"] == GT_FRAMES - 1


# ---- sheets -------------------------------------------------------------------------------------


def test_both_sheets_and_their_exports_say_the_same(tmp_path):
    rows = [
        ["video_folder", "exits", "re-enter", "skip"],
        ["Barnyard_005", 6, 15.0, ""],
        ["Middle_Age_004", "7", 9, "YES"],
    ]
    sheet = read_marks_sheet(write_xlsx(tmp_path / "a.xlsx", rows), "Synthetic")
    (tmp_path / "a.csv").write_bytes(
        b"\xef\xbb\xbfvideo_folder,exits,re-enter,skip\r\nBarnyard_005,6,15.0,\r\nMiddle_Age_004,7,9,YES\r\n"
    )
    export = read_marks_sheet(tmp_path / "a.csv", "Synthetic")
    assert sheet.marks == export.marks and [*sheet.marks] == [BARN5]
    assert (sheet.marks[BARN5].exits, sheet.marks[BARN5].returns) == (6, 15)
    assert sheet.skipped == export.skipped == {ClipName("Synthetic", "Middle_Age", 4)}
    real = read_marks_sheet(
        write_xlsx(tmp_path / "r.xlsx", [["id", "exit", "reenter"], [7, 6, 15], ["12.0", "30", "60"]]), "Real"
    )
    assert [name.id for name in real.marks] == ["007", "012"]  # gaps are no matter


def test_rows_that_cannot_be_used_are_named(tmp_path):
    rows = [
        ["video_folder", "exits", "re-enter"],
        ["Barnyard_005", "soon", 15],
        ["what", 1, 2],
        ["Barnyard_006", 1, 2],
        ["Barnyard_006", 3, 4],
        ["Barnyard_007", None, 9],
    ]
    sheet = read_marks_sheet(write_xlsx(tmp_path / "a.xlsx", rows), "Synthetic")
    assert [name.id for name in sheet.marks] == ["Barnyard_006"] and sheet.marks[next(iter(sheet.marks))].exits == 1
    said = list(sheet.unusable.values())
    assert said[0] == "row 2 of a.xlsx: exit and re-entry are 'soon' and '15'; expected two frame numbers"
    assert "has the clip 'what'; expected a name such as Barnyard_001" in said[1]
    assert "lists Barnyard_006 again; the first row counts" in said[2]
    assert len(said) == 4


def test_a_damaged_xlsx_is_one_sentence_and_no_traceback(tmp_path, data):
    """Whatever became of the sheet, it is read or refused in a sentence, before a clip is looked at."""
    tree = generated(tmp_path / "m")
    sheet = data / "Real_Raw/Real_ExitReenter.xlsx"
    sound = sheet.read_bytes()
    refused = 0
    try:
        for at in range(0, len(sound), len(sound) // 15):
            for damaged in (sound[:at], sound[:at] + bytes([sound[at] ^ 0x55]) + sound[at + 1 :]):
                sheet.write_bytes(damaged)
                try:
                    list(read(tree, gt=str(data)))
                except UsageError as error:
                    assert sheet.name in str(error) and "\n" not in str(error)
                    refused += 1
    finally:
        sheet.write_bytes(sound)
    assert refused > 15


def test_hostile_and_foreign_sheets_are_refused_in_a_sentence(tmp_path, monkeypatch):
    import revisit.suites.memobench.metadata as sheets

    (tmp_path / "old").mkdir()
    (tmp_path / "old/Real_ExitReenter.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    with pytest.raises(UsageError, match=r"Real_ExitReenter.xls: the old Excel format is not read; .* save it as"):
        find_xlsx_or_csv((tmp_path / "old",), "Real_ExitReenter")
    good = write_xlsx(tmp_path / "good.xlsx", [["id", "exit", "reenter"], [7, 6, 15]])
    (tmp_path / "text.xlsx").write_text("id,exit,reenter")
    with pytest.raises(
        UsageError, match=r"text.xlsx cannot be read as a spreadsheet \(BadZipFile\); save it again as xlsx"
    ):
        read_marks_sheet(tmp_path / "text.xlsx")
    (tmp_path / "cut.xlsx").write_bytes(good.read_bytes()[:-200])
    with pytest.raises(UsageError, match=r"cut.xlsx cannot be read as a spreadsheet"):
        read_marks_sheet(tmp_path / "cut.xlsx")
    with zipfile.ZipFile(tmp_path / "other.xlsx", "w") as archive:
        archive.writestr("hello.txt", "x")
    with pytest.raises(UsageError, match=r"other.xlsx cannot be read as a spreadsheet"):
        read_marks_sheet(tmp_path / "other.xlsx")
    with zipfile.ZipFile(tmp_path / "entities.xlsx", "w") as archive, zipfile.ZipFile(good) as old:
        for name in old.namelist():
            start = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]>' if "sheet1" in name else b""
            archive.writestr(name, start + old.read(name))
    with pytest.raises(UsageError, match="declares XML entities"):
        read_marks_sheet(tmp_path / "entities.xlsx")
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * (5 << 20))
    monkeypatch.setattr(sheets, "MOST_UNPACKED", 4 << 20)
    with pytest.raises(UsageError, match=r"bomb.xlsx unpacks to 5 MiB in 1 parts"):
        read_marks_sheet(tmp_path / "bomb.xlsx")
    monkeypatch.setattr(sheets, "MOST_BYTES", 100)
    with pytest.raises(UsageError, match=r"good.xlsx is larger than .* the most that is allowed"):
        read_marks_sheet(good)
    monkeypatch.undo()
    (tmp_path / "names.csv").write_text("clip,from,to\n1,2,3\n")
    with pytest.raises(UsageError, match=r"names.csv has the columns clip, from and to; expected video_folder, exits"):
        read_marks_sheet(tmp_path / "names.csv")
    (tmp_path / "latin.csv").write_bytes("id,exit,reenter\n7,6,ü".encode("latin-1"))
    with pytest.raises(UsageError, match=r"latin.csv is not UTF-8 text"):
        read_marks_sheet(tmp_path / "latin.csv")


def test_a_selection_of_real_clips_is_followed(tmp_path):
    data = make_dataset(tmp_path)
    tree = generated(tmp_path / "m")
    write_xlsx(data / "Real_Selected.xlsx", [["ID", "Availability"], [7, "no"]])
    assert [entry.sample for entry in read(tree, gt=str(data))] == ["Barnyard_005"]
    write_xlsx(data / "Real_Selected.xlsx", [["ID", "Availability"], [7, "Yes"]])
    assert [entry.sample for entry in read(tree, gt=str(data))] == ["Barnyard_005", "007"]
    (data / "Real_Selected.xlsx").rename(data / "Real_Selected.xls")
    with pytest.raises(UsageError, match=r"Real_Selected.xls: the old Excel format is not read; open it"):
        list(read(tree, gt=str(data)))


def test_the_metadata_of_the_benchmark(shared):
    folder = shared / "memobench/metadata"
    synthetic = read_metadata_rows_by_clip(folder / "synthetic_metadata.csv", "Synthetic")
    real = read_metadata_rows_by_clip(folder / "real_metadata.csv", "Real")
    assert (len(synthetic), len(real)) == (196, 164)
    assert max(name.number for name in real) == 273 and len({name.scene for name in synthetic}) == 14
    assert all(row["prompt"] and not row["prompt"].endswith("\r") for row in [*synthetic.values(), *real.values()])


# ---- runs ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> EvidenceCache:
    return EvidenceCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("models")
    generated(root / "good")
    generated(root / "other", seed=5)
    return root


@pytest.fixture(scope="module")
def run(models, data, cache, tmp_path_factory):
    chosen = ("memo_psnr", "memo_ssim", "memo_lpips", "true_turn")
    return run_memo(models, tmp_path_factory.mktemp("run"), cache, metrics=chosen, gt=data)


def test_fidelity_pairs_each_phase_with_its_own_and_decodes_once(run, data, models):
    from revisit.core import Clip
    from revisit.media import open_clip

    record = run.results.answer("Synthetic/Barnyard_005@other", "memo_psnr")
    clips = [
        data / "Synthetic_processed/Barnyard/Barnyard_005/RGB5",
        models / "other/Synthetic/Barnyard/Barnyard_005/frames",
    ]
    pictures = []
    for path in clips:
        with open_clip(Clip(path)) as stream:
            pictures.append([frame.rgb.astype(float) for frame in stream])
    truth, shown = pictures
    for name, (frames, partners) in frame_pairs_by_phase(FRAMES, GT_FRAMES, (3, 8), MARKS, closed=False).items():
        mse = [((shown[a] - truth[b]) ** 2).mean() for a, b in zip(frames, partners, strict=True)]
        assert record.facts["mean"][name] == pytest.approx(psnr_per_frame(np.array(mse)).mean(), abs=1e-6), name
    assert run.facts["counters"]["most_decodes_of_one_clip"] == 1
    assert record.value == pytest.approx(record.facts["mean"]["all"])


def test_tables_per_model_and_split_with_coverage_phases_and_order(run):
    summary = run.summary
    assert run.exit_code == 0
    assert summary["models"]["good"]["scores"]["memo_psnr"]["n"] == 2
    assert (
        summary["models"]["good"]["scores"]["memo_psnr"]["mean"]
        > summary["models"]["other"]["scores"]["memo_psnr"]["mean"]
    )
    assert [*summary["parts"]] == ["Synthetic", "Real"]
    assert summary["coverage"]["good"]["Real"] == {"expected": 1, "found": 1, "missing": 0, "refused": 0}
    assert summary["layouts"]["good"] == {"file": 1, "frames": 1}
    assert summary["not_asked"]["memo_lpips"].startswith("needs perceptual_distance")
    psnr = summary["tables"][0]
    assert psnr["columns"] == ["visible", "hidden", "returned", "whole clip", "drop"]
    (row,) = [row for row in psnr["rows"] if row["name"] == "good"]
    visible, _, returned, _, drop = (cell["mean"] for cell in row["cells"])
    assert drop == pytest.approx(visible - returned) and row["cells"][4]["n"] == 2
    (said,) = [sentence for sentence in summary["sentences"] if sentence.startswith("PSNR")]
    assert "best mean first: good" in said and "(2/2" in said


def test_the_page_shows_them_and_groups_on_request(run, revisit):
    done = revisit("report", run.path, "--by", "rotation>=90", "--by", "subset,model", "--metric", "memo_psnr")
    assert "rotation >= 90 (2 clips)" in done.stdout and "rotation < 90 (2 clips)" in done.stdout
    assert "subset: Real, model: good (1 clip)" in done.stdout
    page = (run.path / "report/index.html").read_text()
    assert "PSNR against the true video, by phase" in page and "By rotation&gt;=90" in page
    assert "subset: Synthetic, model: other (1 clip)" in page


def test_groups_by_anything_that_is_known(run):
    by = {
        name: score_tables_by_group(run, name)
        for name in ("layout", "subject", "memo_psnr>=20", "true_turn.farthest>=100", "fx=960")
    }
    assert [*by["layout"]] == ["layout: file (2 clips)", "layout: frames (2 clips)"]
    assert [*by["subject"]] == ["subject: a test tube filled (2 clips)", "subject: pig (2 clips)"]
    assert sum(part["models"].get("good", {"cases": 0})["cases"] for part in by["memo_psnr>=20"].values()) == 2
    assert next(iter(by["true_turn.farthest>=100"])) == "true_turn.farthest >= 100 (2 clips)"
    assert [*by["fx=960"]] == ["fx = 960 (2 clips)", "fx is not 960 (2 clips)"]
    assert [*score_tables_by_group(run, "scene")] == ["scene: Barnyard (2 clips)", "scene: Real (2 clips)"]
    for wrong, said in (
        ("weather", "nothing in this run is called 'weather'"),
        ("true_turn", "is a score; compare it with a number"),
        ("subject>=3", "which is not a number"),
        ("a b", "takes a name such as subset"),
    ):
        with pytest.raises(UsageError, match=said):
            score_tables_by_group(run, wrong)
    with pytest.raises(UsageError, match="psnr was not asked"):
        score_tables_by_group(run, "subset", ["psnr"])
    assert parse_group_key("rotation >= 90", "memobench").path == ("true_turn",)


def test_protocols_share_evidence_and_differ_where_they_say(models, data, cache, run, tmp_path):
    chosen = ("memo_psnr",)
    paper = run_memo(models, tmp_path / "paper", cache, "paper", chosen, gt=data)
    assert paper.facts["counters"]["decodes"] == 0
    upstream = run_memo(models, tmp_path / "up", cache, "upstream", chosen, gt=data)
    assert upstream.facts["counters"]["decodes"] > 0  # its pixels are OpenCV's, and so its evidence is its own
    assert upstream.facts["protocol"]["decoded_by"].startswith("OpenCV ")
    frames = {}
    for done, name in ((run, "corrected"), (upstream, "upstream")):
        frames[name] = done.results.answer("Synthetic/Barnyard_005@good", "memo_psnr").facts["frames"]
    assert frames["corrected"] == {"all": 12, "visible": 3, "hidden": 5, "returned": 4}
    assert frames["upstream"] == {"all": 12, "visible": 4, "hidden": 6, "returned": 4}
    assert list(SUITES["memobench"].protocols) == ["corrected", "upstream", "paper"]


def test_broken_clips_cost_themselves(models, data, cache, tmp_path):
    source = tmp_path / "m"
    shutil.copytree(models / "good", source)
    video = source / "Real/007.mp4"
    video.write_bytes(video.read_bytes()[: video.stat().st_size // 2])
    write_frames(source / "Synthetic/Barnyard/Barnyard_005/frames", moving_frames(2), "x{}.jpg")
    done = run_memo(source, tmp_path / "run", cache, metrics=("memo_psnr",), gt=data)
    said = {entry["case"]: entry["reason"] for entry in done.summary["failed"]}
    assert set(said) == {"Real/007@m", "Synthetic/Barnyard_005@m"} and done.exit_code == 1
    assert "images of several formats" in said["Synthetic/Barnyard_005@m"]


def test_the_ground_truth_as_a_model(data, cache, tmp_path):
    assert is_memobench_source(data) and is_memobench_source(data.parent) is False
    estimated = tmp_path / "poses"
    estimated.mkdir()
    np.savez(estimated / "Barnyard_005.npz", cam_c2w=turning(GT_FRAMES, 100))
    np.savez(estimated / "007.npz", cam_c2w=turning(GT_FRAMES, 20))
    done = run_memo(data, tmp_path / "run", cache, metrics=("memo_camera", "memo_psnr"), poses=estimated)
    assert done.results.score("Synthetic/Barnyard_005@gt", "memo_camera") == pytest.approx(100)
    assert done.results.score("Real/007@gt", "memo_camera") < 80  # an estimator that sees half of the turn
    assert done.results.answer("Real/007@gt", "memo_psnr").reason.kind == "no_reference"
    assert done.facts["counters"]["most_decodes_of_one_clip"] == 1


def test_a_plain_folder(tmp_path, make_clip):
    for name in ("Barnyard_001_gt", "Barnyard_001_wan_22", "Real_007_gt", "Real_007_svc"):
        make_clip(tmp_path / f"v/{name}.mp4")
    (tmp_path / "boxes.json").write_text(json.dumps({"Real_007_svc": {"box": [0.1, 0.1, 0.5, 0.5], "target": "cup"}}))
    cases = {case.id: case for case in read(tmp_path / "v", targets=str(tmp_path / "boxes.json"))}
    assert list(cases) == ["Real/007@gt", "Synthetic/Barnyard_001@gt", "Real/007@svc", "Synthetic/Barnyard_001@wan_22"]
    svc = cases["Real/007@svc"]
    assert svc.reference is not None and svc.phases is None and svc.align == "stretch"
    assert svc.target is not None and svc.target.name == "cup" and cases["Real/007@gt"].reference is None
    (tmp_path / "marks.csv").write_text("video_folder,exits,re-enter\nReal_007,4,8\n")
    marked = {case.id: case for case in read(tmp_path / "v", marks=str(tmp_path / "marks.csv"))}
    assert marked["Real/007@svc"].phases == (4, 8) and marked["Synthetic/Barnyard_001@wan_22"].phases is None
    assert not is_memobench_source(tmp_path / "v")  # other folders look like this, too: the suite has to be named
    (tmp_path / "boxes.json").write_text(json.dumps({"Real_007": {"box": [0.5, 0.1, 0.2, 0.5]}}))
    with pytest.raises(UsageError, match="the target of Real_007 has the box"):
        list(read(tmp_path / "v", targets=str(tmp_path / "boxes.json")))


def test_csv_files_with_windows_line_ends_are_the_rule(data):
    with (data / "sam3_metadata/synthetic_metadata.csv").open(newline="") as file:
        assert file.readline().endswith("\r\n")
        assert next(csv.reader(file))[-1].endswith("then")


def test_the_pose_estimator_is_checked_on_the_ground_truth(tmp_path):
    """A rendered turn with exact poses: lite odometry follows it, and a mirrored file of poses shows at once."""
    from tests.observers.test_odometry import turned

    data = tmp_path / "data"
    yaws = np.linspace(0, 60, 31)
    for number, mirrored in ((1, False), (2, True)):
        home = data / f"Synthetic_processed/Barnyard/Barnyard_{number:03d}"
        write_frames(home / f"RGB{number}", turned(yaws), "NewLevelSequence.{:04d}.jpg")
        np.save(home / "poses.npy", turning(31, -60 if mirrored else 60))
    write_xlsx(
        data / "Synthetic_processed/Synthetic_ExitReenter.xlsx",
        [["video_folder", "exits", "re-enter"], ["Barnyard_001", 8, 20], ["Barnyard_002", 8, 20]],
    )
    done = run_memo(data, tmp_path / "run", metrics=("memo_camera", "true_turn"), model="odometry")
    right, wrong = done.results.scores("memo_camera")
    assert right.value > 90 and right.facts["ate_deg"] < 5 and right.facts["poses_from"] == "odometry"
    assert wrong.value < 10 and wrong.facts["better_than_static"] < 0
    assert done.results.score(right.case, "true_turn") == pytest.approx(60)
    poses = right.facts["poses"]
    resting = np.sqrt((2 * poses - 1) / (6 * (poses - 1)))  # root of the mean square of an even turn, of its whole
    assert right.facts["static_score"] == pytest.approx(100 * (1 - resting), abs=0.1)


# ---- what the tables say ------------------------------------------------------------------------


def scores_of(**models) -> Results:
    """Results from lists of scores, a clip each."""
    from revisit.core import Clip

    cases, records = [], []
    for model, values in models.items():
        for k, value in enumerate(values):
            case = Case(f"{k}@{model}", "memobench", model, str(k), Clip(Path("x.mp4")), subset="Real")
            cases.append(case)
            label = "never left" if value < 11 else "left, returned"
            records += [
                Record(case, "memo_psnr", False, "scored", value),
                Record(case, "view_return", True, "open", label=label),
                Record(case, "event_outcome", False, "scored", value / 100),
            ]
    return Results(cases, records)


def test_an_order_needs_differences_that_hold_clip_by_clip():
    from revisit.suites.memobench.summary import model_order_sentence, summary_sentences

    # Two models that are equally far apart on every clip, though the clips themselves differ by far more.
    clips = np.array([10.0, 20, 30, 40, 50, 60])
    results = scores_of(high=clips + 2, low=clips + 0.01 * np.arange(6), other=clips[::-1])
    said = model_order_sentence("memo_psnr", results) or ""
    assert said.startswith("PSNR against the true video, best mean first: high 37.00 [")
    assert said.endswith("Clip by clip: high beats low.")
    few = scores_of(a=[10, 30], b=[12, 33])
    assert (model_order_sentence("memo_psnr", few) or "").endswith("these clips do not give a ranking.")
    assert model_order_sentence("memo_psnr", scores_of(a=[10.0])) is None
    told = summary_sentences(results)
    assert told[0] == "The first view never left the frame: low 1 of 6, other 1 of 6."
    assert "in between: high 0.37 (6 clips)" in told[1] and len(told) == 3


@pytest.mark.parametrize("seed", range(8))
def test_the_order_and_the_verdict_name_the_same_pairs(seed):
    """One family-wise procedure: a sentence beside the verdict never says more or less than its pairs."""
    from revisit.results.verdict import make_verdict
    from revisit.suites.memobench.summary import model_order_sentence

    rng = np.random.default_rng(seed)
    scene = rng.normal(25, 5, 9)
    results = scores_of(**{f"m{k}": scene + 0.8 * k + rng.normal(0, 1.2, 9) for k in range(5)})
    answers = make_verdict(results, SUITES["memobench"].card).answers
    answer = next(answer for answer in answers if answer.metric == "memo_psnr")
    said = (model_order_sentence("memo_psnr", results) or "").partition("Clip by clip: ")[2].rstrip(".")
    pairs = set()
    for part in said.split("; "):
        ahead, _, behind = part.partition(" beats ")
        pairs |= {(ahead, name) for name in behind.replace(" and ", ", ").split(", ") if name}
    assert pairs == {(pair.ahead, pair.behind) for pair in answer.pairs if pair.decided}


@pytest.mark.slow
@pytest.mark.long
def test_a_real_clip_says_what_the_eye_sees(shared, tmp_path):
    """svc comes back with an empty beaker. All nine clips: docs/memobench.md; their gates: test_target, test_views."""
    folder = tmp_path / "videos"
    folder.mkdir()
    for model in ("gt", "svc"):
        (folder / f"Real_007_{model}.mp4").symlink_to(shared / f"memobench/videos/Real_007_{model}.mp4")
    done = run_memo(folder, tmp_path / "run", metrics=("memo_psnr", "event_outcome"))
    (said,) = done.summary["sentences"]
    assert "reset: svc 0.1" in said and "nearer" not in said
    oracle = json.loads((shared / "oracle/memobench/oracle.json").read_text())["psnr_ssim_site_videos"]
    mine = done.summary["models"]["svc"]
    assert mine["scores"]["memo_psnr"]["mean"] == pytest.approx(oracle["Real_007/svc"]["psnr"], abs=0.05)
    assert mine["funnel"][-1] == {"stage": "memory scored", "n": 1}
