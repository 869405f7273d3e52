"""The folder suite: what becomes a case, what is rejected and with which sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from revisit.core import Case, Clip, Rejected, Remark, Target, UsageError
from revisit.datasets.folder.read import read, scan_folder
from revisit.engine.dataset_cases import select_stratified_cases
from revisit.engine.request import Request
from revisit.media import encode_mp4


def write_manifest(folder, *entries):
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    (folder / "manifest.jsonl").write_text("\n".join(lines), encoding="utf-8")
    remark, *others = read(folder)
    assert remark == Remark("read from manifest.jsonl; clips that it does not name are left out")
    return others


def touch(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def test_folders_name_models_and_paths_name_samples(tmp_path):
    touch(tmp_path / "wan/kitchen.mp4", tmp_path / "wan/sub/hall 10.webm", tmp_path / "svc/kitchen.MOV")
    touch(tmp_path / "svc/frames/0001.png", tmp_path / "svc/notes.txt", tmp_path / ".hidden/x.mp4")
    found = {(case.model, case.sample) for case in read(tmp_path) if isinstance(case, Case)}
    assert found == {("wan", "kitchen"), ("wan", "sub/hall 10"), ("svc", "kitchen"), ("svc", "frames")}


def test_videos_in_the_root_belong_to_one_model_in_natural_order(tmp_path):
    root = tmp_path / "my model"
    touch(root / "clip10.mp4", root / "clip2.mp4")
    told, example, *cases = read(root)
    assert [(case.model, case.sample) for case in cases] == [("my model", "clip2"), ("my model", "clip10")]
    assert told.sentence == "1 model (my model) × 2 scenes (clip2 and clip10)"
    assert example.sentence == "read as {scene}.mp4; for example clip2.mp4 is model my model, scene clip2"


def test_a_manifest_line_becomes_a_case(tmp_path):
    [case] = write_manifest(
        tmp_path,
        {
            "id": "kitchen-01", "model": "mine", "video": "a b/é.mp4", "reference": "gt.mp4", "prompt": "turn",
            "target": {"name": "cup", "box": [0.1, 0.2, 0.3, 0.4]}, "camera": "yaw:right:60@40", "seed": 3,
            "group": "kitchen", "phases": [10, 20], "annotations": {"mine": 1},
        },
    )  # fmt: skip
    assert isinstance(case, Case)
    assert case.id == "kitchen-01@mine#3" and case.sample == "kitchen"
    assert case.clip == Clip(tmp_path / "a b/é.mp4") and case.reference == Clip(tmp_path / "gt.mp4")
    assert case.target is not None and case.target.box == (0.1, 0.2, 0.3, 0.4)
    assert case.phases == (10, 20) and case.annotations == {"mine": 1}


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("{not json", "not JSON"),
        ("[1, 2]", "found a list; a manifest line is a JSON object"),
        ({"model": "m"}, "video: Field required"),
        ({"video": "../secret.mp4"}, "leads out of the manifest's folder"),
        ({"video": "/etc/passwd"}, "leads out of the manifest's folder"),
        ({"video": "a.mp4", "reference": "../../b.mp4"}, "leads out of the manifest's folder"),
        ({"video": "https://example.org/a.mp4"}, "is a web address"),
        ({"video": "a\u0000.mp4"}, "NUL character"),
        ({"video": "a.mp4", "refrence": "b.mp4"}, "did you mean reference?"),
        ({"video": "a.mp4", "target": {"box": [0.5, 0.5, 0.2, 0.9]}}, "a box is [x0, y0, x1, y1] as fractions"),
        ({"video": "a.mp4", "phases": [20, 10]}, "phases are [first hidden frame, first returned frame]"),
        ({"video": "a.mp4", "model": "m\u001b[31m"}, "only printable characters"),
        ({"video": "a.mp4", "fps": 0}, "fps"),
    ],
)
def test_an_unusable_line_is_rejected_with_one_sentence_and_the_rest_is_read(tmp_path, entry, sentence):
    bad, good = write_manifest(tmp_path, entry, {"id": "ok", "video": "ok.mp4"})
    assert isinstance(bad, Rejected) and sentence in bad.reason and "\n" not in bad.reason
    assert bad.id == "manifest.jsonl line 1"
    assert isinstance(good, Case)


def test_a_link_that_leads_out_is_refused(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "secret.mp4").write_bytes(b"")
    (tmp_path / "data/innocent.mp4").symlink_to(tmp_path / "secret.mp4")
    [entry] = write_manifest(tmp_path / "data", {"video": "innocent.mp4"})
    assert isinstance(entry, Rejected)
    [_, entry] = list(read(tmp_path / "data", [tmp_path]))
    assert isinstance(entry, Case)


def test_duplicate_ids_are_rejected_but_models_and_seeds_may_share_them(tmp_path):
    entries = write_manifest(
        tmp_path,
        {"id": "a", "model": "x", "video": "1.mp4"},
        {"id": "a", "model": "y", "video": "2.mp4"},
        {"id": "a", "model": "x", "video": "3.mp4", "seed": 1},
        {"id": "a", "model": "x", "video": "4.mp4"},
    )
    assert [isinstance(entry, Case) for entry in entries] == [True, True, True, False]
    assert "already on line 1" in entries[3].reason


def test_scan_reads_names_out_of_paths(tmp_path):
    touch(tmp_path / "Real_007_gt.mp4", tmp_path / "Real_007_svc.mp4", tmp_path / "other.mp4")
    entries = list(
        scan_folder(
            tmp_path,
            pattern="{id}_{model}.mp4",
            reference="gt",
            targets={"Real_007": Target("cup", (0.0, 0.0, 1.0, 1.0))},
        )
    )
    assert [(entry["model"], entry["reference"]) for entry in entries] == [("svc", "Real_007_gt.mp4")]
    assert entries[0]["target"] == {"name": "cup", "box": [0, 0, 1, 1]}
    with pytest.raises(UsageError, match="a layout must contain"):
        list(scan_folder(tmp_path, pattern="{name}.mp4"))
    with pytest.raises(UsageError, match="no clip belongs to the reference model"):
        list(scan_folder(tmp_path, pattern="{id}_{model}.mp4", reference="truth"))


SCENE_FIRST = [f"{scene}/{name}.mp4" for scene in ("Real_007", "Real_024") for name in ("gt", "svc", "wan")]
FLAT = [
    f"{scene}_{model}_seed{seed}.mp4" for scene in ("Real_007", "hall") for model in ("svc", "wan") for seed in (0, 1)
]
MODELS_FIRST = ["gt/a.mp4", "wan/a.mp4", "svc/a.mp4", "svc/b.mp4", "svc/notes.txt"]


@pytest.mark.parametrize("names", [SCENE_FIRST, FLAT, MODELS_FIRST])
def test_scan_writes_what_eval_reads(tmp_path, names):
    touch(*(tmp_path / name for name in names))
    (tmp_path / "targets.json").write_text(json.dumps({"Real_007": {"box": [0.1, 0.2, 0.3, 0.4], "target": "cup"}}))
    by_eval = [entry for entry in read(tmp_path) if isinstance(entry, Case)]
    remarks: list[str] = []
    by_scan = write_manifest(tmp_path, *scan_folder(tmp_path, on_remark=remarks.append))
    assert by_scan == by_eval and len(by_eval) >= 3
    assert any(remark.startswith("read as {") for remark in remarks)


def test_scan_takes_the_model_that_is_named_for_the_truth(tmp_path):
    touch(*(tmp_path / f"{model}/{scene}.mp4" for model in ("film", "wan") for scene in "ab"))
    entries = list(scan_folder(tmp_path, reference="film"))
    assert [(entry["video"], entry["reference"]) for entry in entries] == [
        ("wan/a.mp4", "film/a.mp4"),
        ("wan/b.mp4", "film/b.mp4"),
    ]


def test_limit_is_spread_over_models_and_takes_the_same_samples(tmp_path):
    cases = [
        Case(id=f"{sample}@{model}#0", suite="folder", model=model, sample=str(sample), clip=Clip(tmp_path / "x.mp4"))
        for model in ("a", "b", "c")
        for sample in range(20)
    ]
    picked = select_stratified_cases(cases, 9)
    samples = {model: {case.sample for case in picked if case.model == model} for model in ("a", "b", "c")}
    assert len(picked) == 9 and samples["a"] == samples["b"] == samples["c"] and len(samples["a"]) == 3
    assert select_stratified_cases(list(reversed(cases)), 9) == list(reversed(picked))
    assert len(select_stratified_cases(cases, 7)) == 7


def test_flat_names_that_form_a_grid_are_read_as_scenes_and_models(tmp_path):
    for scene in ("Real_020", "Barnyard_001"):
        for model in ("wan", "svc", "gt"):
            touch(tmp_path / f"{scene}_{model}.mp4")
    entries = list(read(tmp_path))
    cases = [entry for entry in entries if isinstance(entry, Case)]
    assert {(case.sample, case.model) for case in cases} == {
        (scene, model) for scene in ("Real_020", "Barnyard_001") for model in ("wan", "svc")
    }
    assert all(case.reference == Clip(tmp_path / f"{case.sample}_gt.mp4") for case in cases)
    told, example = [entry.sentence for entry in entries if isinstance(entry, Remark)]
    assert told == "2 models (svc and wan) × 2 scenes (Barnyard_001 and Real_020), truth from *_gt.mp4"
    assert example.startswith("read as {scene}_{model}.mp4; for example Barnyard_001_svc.mp4 is model svc")


@pytest.mark.parametrize("name", ["Real_007_{}", "{}-7"])
def test_one_scene_is_enough_where_a_name_says_that_it_is_the_truth(tmp_path, name):
    for model in ("wan", "svc", "gt"):
        touch(tmp_path / f"{name.format(model)}.mp4")
    cases = [entry for entry in read(tmp_path) if isinstance(entry, Case)]
    assert {case.model for case in cases} == {"wan", "svc"}
    assert {case.reference for case in cases} == {Clip(tmp_path / f"{name.format('gt')}.mp4")}


def test_names_in_the_only_folder_within_are_read_where_one_says_that_it_is_the_truth(tmp_path):
    for name in ("notes/plan.txt", *(f"videos/{scene}_{model}.mp4" for scene in "ab" for model in ("gt", "wan"))):
        touch(tmp_path / name)
    (tmp_path / "videos/targets.json").write_text(json.dumps({"a_wan": {"box": [0.1, 0.2, 0.3, 0.4]}}))
    entries = list(read(tmp_path))
    cases = {entry.id: entry for entry in entries if isinstance(entry, Case)}
    assert {id: case.reference for id, case in cases.items()} == {
        f"{scene}@wan#0": Clip(tmp_path / f"videos/{scene}_gt.mp4") for scene in "ab"
    }
    assert cases["a@wan#0"].target and not cases["b@wan#0"].target
    assert Remark("targets were read from videos/targets.json") in entries
    for scene in "ab":
        touch(tmp_path / f"other/mine/{scene}_left.mp4")
        touch(tmp_path / f"other/mine/{scene}_right.mp4")
    found = [entry.model for entry in read(tmp_path / "other") if isinstance(entry, Case)]
    assert found == ["mine"] * 4, "the folder may be the model"


def test_a_folder_of_the_truth_is_the_reference_of_the_others(tmp_path):
    for name in ("Ground Truth/a", "Ground Truth/c", "wan/a", "wan/b"):
        touch(tmp_path / f"{name}.mp4")
    entries = list(read(tmp_path))
    found = {entry.id: entry.reference for entry in entries if isinstance(entry, Case)}
    assert found == {"a@wan#0": Clip(tmp_path / "Ground Truth/a.mp4"), "b@wan#0": None}
    told = [entry.sentence for entry in entries if isinstance(entry, Remark)]
    assert (
        "truth from Ground Truth/ for 1 of them" in told[0]
        and "no model has a clip of 1 scene of the truth: c" in told[2]
    )
    only = tmp_path / "Ground Truth"
    assert [entry.model for entry in read(only) if isinstance(entry, Case)] == ["Ground Truth"] * 2  # nothing beside it
    for name in ("truth/a", "gt/a"):
        touch(tmp_path / f"two/{name}.mp4")
    assert {entry.model for entry in read(tmp_path / "two") if isinstance(entry, Case)} == {"truth", "gt"}


def test_targets_that_lie_beside_the_clips_are_read(tmp_path):
    for name in ("wan/a", "wan/b", "svc/a"):
        touch(tmp_path / f"{name}.mp4")
    table = {"wan/a": {"box": [0.1, 0.2, 0.3, 0.4], "target": "cup"}, "b": {"box": [0.9, 0, 0.1, 1]}}
    table |= {"_": "a word", "svc/a": {"gate": "never hidden"}}
    (tmp_path / "targets.json").write_text(json.dumps(table))
    entries = {getattr(entry, "id", "remark"): entry for entry in read(tmp_path)}  # the last remark
    assert entries["a@wan#0"].target == Target("cup", (0.1, 0.2, 0.3, 0.4)) and entries["a@svc#0"].target is None
    assert isinstance(entries["b@wan#0"], Rejected)
    assert entries["b@wan#0"].reason.startswith("targets.json: the target of b has the box [0.9, 0.0, 0.1, 1.0]; ")
    assert entries["remark"].sentence == "targets were read from targets.json"
    (tmp_path / "targets.json").write_text("[1, 2")
    again = list(read(tmp_path))
    assert all(entry.target is None for entry in again if isinstance(entry, Case))
    *_, told = [entry.sentence for entry in again if isinstance(entry, Remark)]
    assert told.startswith("clips have no targets: ") and "targets.json" in told


@pytest.mark.parametrize(
    "names",
    [
        ["kitchen", "garden_big", "a_b", "c_d"],  # no grid
        ["a_x", "b_x", "c_x", "d_x"],  # one model
        ["a_x", "a_y", "a_z"],  # one scene
        ["a_x", "a_y", "b_z", "c_w", "d_v"],  # hardly filled
    ],
)
def test_other_names_are_taken_as_they_are(tmp_path, names):
    for name in names:
        touch(tmp_path / "mine" / f"{name}.mp4")
    entries = list(read(tmp_path / "mine"))
    assert [entry.model for entry in entries if isinstance(entry, Case)] == ["mine"] * len(names)
    told, _ = [entry.sentence for entry in entries if isinstance(entry, Remark)]
    assert told.startswith(f"1 model (mine) × {len(names)} scenes (")


def test_models_may_come_first_and_numbers_leave_it_open(tmp_path):
    for name in ("wan-hall", "wan-yard", "svc-hall", "svc-yard"):
        touch(tmp_path / f"grid/{name}.mp4")
    assert {entry.sample for entry in read(tmp_path / "grid") if isinstance(entry, Case)} == {"hall", "yard"}
    for name in ("walk_001", "walk_002", "run_001", "run_002"):
        touch(tmp_path / f"mine/{name}.mp4")
    _, _, told, *cases = read(tmp_path / "mine")
    assert {case.model for case in cases} == {"mine"}
    assert "2 models (run and walk) × 2 scenes (001 and 002) with --layout '{model}_{scene}.mp4'" in told.sentence


def test_files_that_are_not_read_are_told(tmp_path):
    touch(tmp_path / "mine/a.mp4")
    for name in ("mine/b.wmv", "c.flv", "d/e.pt", "notes.txt", ".hidden.wmv"):
        touch(tmp_path / name)
    (tmp_path / "linked").symlink_to(tmp_path / "mine")
    np.save(tmp_path / "d/grey.npy", np.zeros((4, 32, 32), np.uint8))
    np.save(tmp_path / "mine/a.depth.npy", np.zeros((4, 32, 32), np.float32))  # beside clips: no clip was meant
    told = {entry.id: entry.reason for entry in read(tmp_path) if isinstance(entry, Rejected)}
    assert sorted(told) == ["c.flv", "d/e.pt", "d/grey.npy", "linked", "mine/b.wmv"]
    assert "link to a folder" in told["linked"] and "load it with torch" in told["d/e.pt"]
    assert "no array of frames (grey uint8 (4, 32, 32)); frames are (T, H, W, 3)" in told["d/grey.npy"]


def test_a_small_limit_takes_a_clip_of_every_model_before_other_conditions(tmp_path):
    cases = [
        Case(f"{k}-{condition}@{model}", "folder", model, str(k), Clip(tmp_path / "x.mp4"), condition=condition)
        for model in ("a", "b", "c")
        for condition in ("far", "near", "turn")
        for k in range(3)
    ]
    assert sorted(case.model for case in select_stratified_cases(cases, 3)) == ["a", "b", "c"]
    picked = select_stratified_cases(cases, 6)
    assert sorted(case.model for case in picked) == ["a", "a", "b", "b", "c", "c"]
    assert {case.condition for case in picked} == {"far", "near"}


def test_a_truth_of_another_shape_is_told(tmp_path: Path) -> None:
    for name, shape in (("gt/a", (72, 128)), ("wide/a", (74, 128)), ("tall/a", (128, 72))):
        (tmp_path / "clips" / name).parent.mkdir(parents=True)
        encode_mp4(tmp_path / f"clips/{name}.mp4", [np.full((*shape, 3), 90, np.uint8)] * 3, 8)
    run = Request.from_options(tmp_path / "clips", metrics=["psnr"]).run(tmp_path / "run", workers=0)
    digests = {entry["digest"]: entry["id"] for entry in run.plan["cases"]}
    shapes = {digests[clip]: note for clip, notes in run.facts["notes"].items() for note in notes if "shape" in note}
    assert shapes == {
        "a@tall#0": "the clip is 72x128 and its reference 128x72: they are compared stretched to one shape"
    }
