"""The suite mbench: datasets as people really have them, the README's own commands, exports, packaging, submission."""

from __future__ import annotations

import base64
import json
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from revisit.cli.main import app
from revisit.core import METRICS, SUITES, Case, MissingPrerequisite, Rejected, Remark, UsageError
from revisit.media import load_npz, save_npz
from revisit.results import Results
from revisit.suites.mbench import submission
from revisit.suites.mbench.check import check_dataset_items, pose_artifact_problem
from revisit.suites.mbench.dataset import open_mbench_dataset
from revisit.suites.mbench.evidence import ProgressRatings
from revisit.suites.mbench.names import dimensions_by_upstream_name, dimensions_of_setting
from revisit.suites.mbench.package import add_model_to_dataset
from revisit.suites.mbench.read import Filter, is_mbench_dataset, read
from revisit.suites.mbench.submission import partial_run_reason, submission_problems
from revisit.suites.mbench.world import LAYOUT
from revisit.worlds import make_world, play
from revisit.worlds.layouts.common import Model
from tests.judging import MODEL, completion, images_of, question_of, sees_cards, serving
from tests.mbench import ANCHOR, CONDITIONS, SUBSETS, add_row, row, small_dataset, write_sample

KEY = "sk-not-to-be-seen"


def invoke(*arguments: object, code: int = 0, env: dict[str, str] | None = None):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env=env)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def found(root: Path, setting: str = "A", **filters: str):
    data = open_mbench_dataset(root)
    keep = Filter.from_options(
        data, *(filters.get(name, "") for name in ("models", "subsets", "conditions", "samples"))
    )
    return check_dataset_items(data, keep, dimensions_of_setting(setting))[0]


# Reading


def test_cases_hold_what_the_samples_say(tmp_path: Path, make_clip):
    root = small_dataset(tmp_path / "a", make_clip, models=("one", "two"), samples=2)
    assert is_mbench_dataset(root) and not is_mbench_dataset(tmp_path)
    cases = [case for case in read(root) if isinstance(case, Case)]
    assert len(cases) == 16 and [case.model for case in cases[:8]] == ["one"] * 8
    case = next(case for case in cases if case.subset == "object")
    assert (case.suite, case.sample, case.condition) == ("mbench", "s0", "left_then_right_3s")
    assert case.prompt == "A gift on a table.", "a caption at the top level is lifted"
    assert case.camera == "left_then_right" and case.annotations["length"] == 3 and case.annotations["setting"] == "A"
    assert case.annotations["anchor"] == ANCHOR and case.annotations["anchor_kind"] == "point"
    x0, y0, x1, y1 = case.target.box
    assert (x0 + x1) / 2 == pytest.approx(0.5) and (y1 - y0) * 48 == pytest.approx((x1 - x0) * 64), "a square"
    assert case.artifacts == {} and case.clip.path.is_file()


def test_text_datasets_have_segments_and_no_action(tmp_path: Path, make_clip):
    root = small_dataset(tmp_path, make_clip, setting="T")
    (root / "mapping.jsonl").write_text('{"sample_id": "s0", "source": "elsewhere"}\n')  # of the release
    (root / "_original_json").mkdir()
    (root / "_original_json/s0.json").write_text('{"caption": "before it was packed"}')
    assert is_mbench_dataset(root) and all(isinstance(case, Case) for case in read(root))
    case = next(case for case in read(root) if case.subset == "causal")
    assert case.annotations["segments"] == case.annotations["caption_segments"] == ["a", "b", "c", "d", "e"]
    assert case.annotations["setting"] == "T" and case.camera == "" and case.condition == "text"
    write_sample(
        root, "causal", "s0", "T", caption="", metadata={"caption_segments": [{"caption": "x"}, {"text": "y"}]}
    )
    case = next(case for case in read(root) if case.subset == "causal")
    assert case.annotations["segments"] == ["x", "y"] and case.prompt == ""


def test_filters(tmp_path: Path, make_clip):
    root = small_dataset(tmp_path, make_clip, models=("one", "two"), samples=2)
    assert {case.model for case in read(root, models="two")} == {"two"}
    assert {case.subset for case in read(root, subsets="object,causal")} == {"object", "causal"}
    assert {case.sample for case in read(root, samples="s1")} == {"s1"}
    with pytest.raises(UsageError, match=r"has no condition 'text'; it has \w+"):
        list(read(root, conditions="text"))
    with pytest.raises(UsageError, match="has no sample 's7'; it has s0 and s1"):
        list(read(root, samples="s1,s7"))
    with pytest.raises(UsageError, match="has no model 'three'; it has one and two"):
        list(read(root, models="three"))
    with pytest.raises(UsageError, match="has no subset 'objects'"):
        list(read(root, subsets="objects"))


def test_default_places_side_files_and_boxes(tmp_path: Path, make_clip):
    root = small_dataset(tmp_path, make_clip)
    listed = root / "models/one/samples.jsonl"
    listed.write_text("")
    for subset in SUBSETS:
        add_row(root, "one", row("one", subset, "s0", CONDITIONS["A"], "A", None))
    write_sample(root, "object", "s0", metadata={})
    (root / "anchors.json").write_text(json.dumps({"s0": {**ANCHOR, "center_x": 16}}))
    artifact = root / "models/one/artifacts/object/s0/left_then_right_3s/da3/results.npz"
    save_npz(artifact, poses())
    case = next(case for case in read(root) if case.subset == "object")
    assert case.artifacts["da3"] == artifact and case.annotations["anchor_from"] == "anchors.json"
    assert sum(case.target.box[::2]) / 2 == pytest.approx(0.25)
    # With a first frame of another size than beside the anchor, the anchor is a box.
    import cv2

    cv2.imwrite(str(root / "samples/object/s0/first_frame.png"), np.zeros((100, 200, 3), np.uint8))
    box = {"center_x": 100, "center_y": 50, "width": 40, "height": 20}
    write_sample(root, "object", "s0", metadata={"object_anchor": box, "object_card": {"name": "vase"}})
    case = next(case for case in read(root) if case.subset == "object")
    assert case.target.box == pytest.approx((0.4, 0.4, 0.6, 0.6)) and case.target.name == "vase"
    assert case.annotations["anchor_kind"] == "box"


@pytest.mark.parametrize(
    ("card", "words"),
    [
        ({"name": "cup", "attributes": ["red", "chipped"]}, "red chipped cup"),
        ({"name": "cup", "attributes": "small red"}, "small red cup"),
        ({"name": "cup", "attributes": {"colour": "red", "material": "clay", "count": 1}}, "red clay cup"),
        ({"name": "cup"}, "cup"),
        ("a red cup", "a red cup"),
        ({"attributes": ["red"]}, ""),
        (None, ""),
    ],
)
def test_objects_without_a_place_have_words_to_look_for(tmp_path: Path, make_clip, card: object, words: str):
    root = small_dataset(tmp_path, make_clip, setting="T")
    write_sample(root, "object", "s0", "T", metadata={"object_card": card, "caption_segments": ["a"]})
    case = next(case for case in read(root) if case.subset == "object")
    assert case.target is None and case.target_name == words and case.target_or_name == (words or None)
    assert any(p.kind == "no object card" for p in found(root, "T")) == (not words)


def test_an_anchor_is_a_point_where_it_says_no_size_of_its_own(tmp_path: Path, make_clip):
    import cv2

    root = small_dataset(tmp_path, make_clip)
    case = next(case for case in read(root) if case.subset == "object")
    assert case.target.point == (0.5, 0.5) and case.target_or_name is case.target and case.target_name == ""
    cv2.imwrite(str(root / "samples/object/s0/first_frame.png"), np.zeros((100, 200, 3), np.uint8))
    write_sample(root, "object", "s0", metadata={"object_anchor": {"center_x": 50, "center_y": 75}})
    case = next(case for case in read(root) if case.subset == "object")
    assert case.target.point == (0.25, 0.75) and case.annotations["anchor_kind"] == "point"
    write_sample(root, "object", "s0", metadata={"object_anchor": {"center_x": 250, "center_y": 75}})
    assert any(p.kind == "bad anchor" for p in found(root)), "it lies outside of the frame"


def poses(count: int = 3, size: tuple[int, int] = (24, 32), centre: tuple[float, float] | None = None) -> dict:
    height, width = size
    x, y = centre or (width / 2, height / 2)
    K = np.array([[30.0, 0, x], [0, 30, y], [0, 0, 1]])
    return {
        "depth": np.ones((count, height, width), np.float32), "intrinsics": np.tile(K, (count, 1, 1)),
        "extrinsics": np.tile(np.eye(4)[:3], (count, 1, 1)),
    }  # fmt: skip


# Everything that can be wrong


@pytest.fixture
def broken(tmp_path: Path, make_clip) -> Path:
    """Ten faults beside two sound items per subset."""
    root = small_dataset(tmp_path / "set", make_clip, samples=2)
    condition, home = CONDITIONS["A"], root / "models/one"
    for subset in SUBSETS:
        for sample in ("s0", "s1"):
            save_npz(home / f"artifacts/{subset}/{sample}/{condition}/da3/results.npz", poses())

    def add(subset: str, sample: str, path: str | None, **changes: object) -> None:
        add_row(root, "one", {**row("one", subset, sample, condition, "A", path), **changes})

    write_sample(root, "object", "bare", metadata={})
    place = f"outputs/object/s0/{condition}/video.mp4"
    add("object", "bare", place)
    save_npz(home / f"artifacts/object/bare/{condition}/da3/results.npz", poses())
    write_sample(root, "environment", "grid")
    add("environment", "grid", place)
    save_npz(home / f"artifacts/environment/grid/{condition}/da3/results.npz", poses(centre=(64, 48)))
    write_sample(root, "environment", "nopose")
    add("environment", "nopose", place)
    write_sample(root, "human", "gone")
    add("human", "gone", f"outputs/human/gone/{condition}/video.mp4")
    write_sample(root, "human", "linked")
    (home / "links").mkdir()
    (home / "links/good.mp4").symlink_to(home / place)
    add("human", "linked", "links/good.mp4")
    write_sample(root, "human", "dangling")
    (home / "links/bad.mp4").symlink_to(tmp_path / "nowhere.mp4")
    add("human", "dangling", "links/bad.mp4")
    write_sample(root, "human", "absolute")
    add("human", "absolute", str(home / place))
    write_sample(root, "human", "outside")
    shutil.copy(home / place, tmp_path / "elsewhere.mp4")
    add("human", "outside", "../../../elsewhere.mp4")
    add("weather", "s0", place)  # no such subset
    add("human", "bare", place)  # the sample is an object
    add("causal", "s0", f"outputs/causal/s0/{condition}/video.mp4")  # there already
    add_row(root, "one", "{not json")
    return root


NAMED = {
    "no anchor": "object:bare", "bad artifact": "environment:grid", "missing artifact": "environment:nopose",
    "missing video": "human:gone", "broken video link": "human:dangling", "absolute video path": "human:absolute",
    "video outside": "human:outside", "duplicate item": "causal:s0", "wrong subset": "human:bare", "not JSON": "",
}  # fmt: skip


@pytest.mark.long
def test_validate_names_every_fault_with_file_and_line(broken: Path, monkeypatch):
    monkeypatch.chdir(broken)
    told = found(broken)
    for kind, item in NAMED.items():
        assert any(p.kind == kind and p.item.startswith(item) and p.violation for p in told), kind
    assert any(p.kind == "video is a link" and not p.violation for p in told), "a link that works is told, not blamed"
    assert any(p.kind == "wrong subset" and "'weather'" in p.text for p in told)
    sound = {f"{subset}:{s}:left_then_right_3s" for subset in SUBSETS for s in ("s0", "s1")} - {
        "causal:s0:left_then_right_3s"
    }
    assert not {problem.item for problem in told} & sound
    numbers = {p.kind: p.line for p in told}
    listed = (broken / "models/one/samples.jsonl").read_text().splitlines()
    assert '"gone"' in listed[numbers["missing video"] - 1] and "not json" in listed[numbers["not JSON"] - 1]
    done = invoke("mbench", "validate", broken, code=1)
    assert "models/one/samples.jsonl:" in done.output and f"{sum(p.violation for p in told)} violations" in done.output
    only = invoke("mbench", "validate", broken, "--metrics", "mbencha.environment.rendering_style", "--json", code=1)
    kinds = {entry["kind"] for entry in json.loads(only.stdout)}
    assert "no anchor" not in kinds and "bad artifact" not in kinds and "missing video" in kinds, "by what metrics need"


def test_a_sound_dataset_is_valid(tmp_path: Path, make_clip):
    root = small_dataset(tmp_path, make_clip)
    assert "valid" in invoke("mbench", "validate", root, "--metrics", "object_texture_consistency").output
    done = invoke("mbench", "validate", root, "--metrics", "mbencha.environment.spatial_epipolar", code=1)
    assert "missing artifact" in done.output and "revisit mbench prepare" in done.output


def test_validate_fails_when_it_checked_nothing(tmp_path: Path, make_clip):
    root = small_dataset(tmp_path / "a", make_clip)
    for flags in (("--subsets", "human"), ("--sample-ids", "no_such"), ("--conditions", "text")):
        done = invoke("mbench", "validate", root, "--metrics", "object_texture_consistency", *flags, code=1)
        assert "nothing was checked" in done.output
    assert "valid: 1 items checked" in invoke("mbench", "validate", root, "--metrics", "rendering_lighting").output


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"<html>404 not found</html>", "text, not a video"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "a PNG image"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"", "the file is empty"),
        (None, "truncated"),
    ],
)
def test_validate_notices_what_is_not_a_video(tmp_path: Path, make_clip, content: bytes | None, says: str):
    root = small_dataset(tmp_path, make_clip)
    video = root / f"models/one/outputs/human/s0/{CONDITIONS['A']}/video.mp4"
    video.write_bytes(content if content is not None else video.read_bytes()[:-200])
    done = invoke("mbench", "validate", root, "--metrics", "human_identity_consistency", code=1)
    assert "not a video (human:s0:" in done.output and says in done.output and "samples.jsonl:2" in done.output


def test_text_contracts(tmp_path: Path, make_clip):
    root = small_dataset(tmp_path, make_clip, setting="T")
    assert {p.kind for p in found(root, "T")} == {"missing artifact"}
    write_sample(root, "object", "s0", "T", metadata={})
    write_sample(root, "causal", "s0", "T", metadata={}, caption="x")
    assert {p.kind for p in found(root, "T")} == {"missing artifact", "no object card", "no caption segments"}


def test_eval_scores_the_rest_and_prints_coverage(broken: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # so that ../elsewhere.mp4 may be found, and is still outside the dataset
    entries = list(read(broken))
    cases = {case.id: case for case in entries if isinstance(case, Case)}
    rejected = {entry.id: entry for entry in entries if isinstance(entry, Rejected)}
    gone = [id for id, entry in rejected.items() if entry.missing]
    assert sorted(id.split(":")[1] for id in gone) == ["dangling", "gone"]
    assert {"human:linked:left_then_right_3s@one", "human:absolute:left_then_right_3s@one"} <= cases.keys()
    assert sum(id.startswith("causal:s0") for id in cases) == 1, "the last of two equal lines counts"
    (remark,) = [entry.sentence for entry in entries if isinstance(entry, Remark)]
    assert remark.startswith("1 item on several lines of a model's list, of which the last counts: causal:s0")
    assert "da3" not in cases["environment:nopose:left_then_right_3s@one"].artifacts
    done = invoke("mbench", "eval", broken, "--output", tmp_path / "run", "--workers", 0, "--subsets", "human", code=1)
    assert "coverage: " in done.output and "2 videos are missing" in done.output
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["coverage"]["one"]["human"]["missing"] == 2 and summary["coverage"]["one"]["human"]["found"] >= 5


def test_paths_out_of_the_dataset_need_leave(broken: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(broken)
    refused = {entry.id.split("@")[0]: entry for entry in read(broken) if isinstance(entry, Rejected)}
    reason = refused[f"human:outside:{CONDITIONS['A']}"].reason
    assert "leads out of the dataset; allow its folder with --root" in reason
    assert "the sample bare is in samples/object" in refused[f"human:bare:{CONDITIONS['A']}"].reason
    allowed = [entry for entry in read(broken, [tmp_path]) if isinstance(entry, Case)]
    assert any(case.sample == "outside" for case in allowed)


@pytest.mark.parametrize(
    ("arrays", "kind", "says"),
    [
        ({"depth": np.ones((3, 4, 4))}, "bad artifact", "no array 'extrinsics', only depth"),
        ({**poses(), "depth": np.ones((2, 24, 32))}, "bad artifact", "beside 3 poses"),
        ({**poses(), "extrinsics": np.ones((3, 6))}, "bad artifact", "(3, 6)"),
        ({**poses(), "extrinsics": np.full((3, 3, 4), np.nan)}, "bad artifact", "NaN"),
        (
            {name: array for name, array in poses().items() if name != "depth"},
            "bad artifact",
            "neither depth nor 'size'",
        ),
        (poses(centre=(640, 360)), "bad artifact", "(640, 360) and its depth is 32 x 24"),
    ],
)
def test_artifacts_that_cannot_be_used(tmp_path: Path, arrays, kind: str, says: str):
    save_npz(tmp_path / "results.npz", arrays)
    assert pose_artifact_problem(tmp_path / "results.npz")[0] == kind
    assert says in pose_artifact_problem(tmp_path / "results.npz")[1]
    save_npz(tmp_path / "results.npz", {**poses(centre=(640, 360)), "size": np.array([1280, 720])})
    assert pose_artifact_problem(tmp_path / "results.npz") is None, "intrinsics may be for another size, if it is told"


def test_folders_that_are_no_dataset(tmp_path: Path):
    for text, says in (
        ("[", "not YAML"),
        ("dataset_id: other", "expected mbencha or mbencht"),
        ("", "dataset_id is None"),
    ):
        (tmp_path / "dataset.yaml").write_text(text)
        with pytest.raises(UsageError, match=says):
            open_mbench_dataset(tmp_path)
    (tmp_path / "dataset.yaml").write_text("dataset_id: mbencha\n")
    with pytest.raises(UsageError, match="no model has a list"):
        list(read(tmp_path))


def test_odd_lines_and_patterns_are_told_and_never_followed(tmp_path: Path, make_clip):
    root = small_dataset(tmp_path, make_clip)
    listed = root / "models/one/samples.jsonl"
    rows = [json.loads(line) for line in listed.read_text().splitlines()]
    for row_, media in zip(
        rows, ({"videos": 5}, {"videos": [{"path": 7}]}, {"videos": ["x"]}, {"videos": []}), strict=True
    ):
        row_["media"] = media
    loop = root / "models/one/loop.mp4"
    loop.symlink_to(loop)
    rows.append({**rows[0], "sample_id": "loop", "media": {"videos": [{"path": "loop.mp4"}]}})
    rows.append({**rows[0], "sample_id": "../../etc"})
    listed.write_text("".join(json.dumps(entry) + "\n" for entry in rows))
    kinds = {problem.kind for problem in found(root)}
    assert {"no generated video", "bad video path", "broken video link", "no name", "wrong item_id"} <= kinds
    (root / "dataset.yaml").write_text("dataset_id: mbencha\npaths: {output_video: /etc/hostname}\n")
    assert any(p.kind == "video outside" and "/etc/hostname" in p.text for p in found(root))
    (root / "dataset.yaml").write_text("dataset_id: mbencha\npaths: {output_video: '{model}/x.mp4'}\n")
    with pytest.raises(UsageError, match=r"it may hold \{model_id\}"):
        found(root)


# Conditions of one's own


SWING = "yaw:left:20@3,yaw:right:40@6,yaw:left:20@2"
OWN = """
actions:
  left_right: [left, right]
  swing_3s: [{left: 3}, {right: 6}, {left: 2}]
  left_then_right_then_left: [{left: 3}, {right: 6}, {left: 2}]
"""


@pytest.fixture
def own_conditions(tmp_path: Path, make_clip) -> Path:
    """A perfect camera under five conditions, four of which are nobody's but ours; clips of 12 frames."""
    from revisit.geometry.camera_script import camera_path, parse_script

    root = small_dataset(tmp_path / "set", make_clip)
    (root / "models/one/samples.jsonl").write_text("")
    clip = f"outputs/causal/s0/{CONDITIONS['A']}/video.mp4"
    there_and_back = "yaw:left:30@5,hold@1,yaw:right:30@5"
    for condition, script in {
        "left_then_right_3s": there_and_back, "left_right_3s": there_and_back,
        "left_then_wait_then_right_3s": "yaw:left:30@4,hold@3,yaw:right:30@4", "swing_3s": SWING,
        "left_then_right_then_left": SWING,
    }.items():  # fmt: skip
        add_row(root, "one", row("one", "causal", "s0", condition, "A", clip))
        c2w = np.array(camera_path(parse_script(script), np.eye(4)))
        made = {**poses(len(c2w)), "extrinsics": np.linalg.inv(c2w)[:, :3], "convention": np.array("w2c_opencv")}
        save_npz(root / f"models/one/artifacts/causal/s0/{condition}/da3/results.npz", made)
    return root


def test_conditions_of_ones_own_are_scored_once_their_motion_is_declared(own_conditions: Path, tmp_path: Path):
    """A name that does not say the motion is asked for, with file and line; declared, a perfect camera scores 1."""
    name = "mbencha.causal.camera_interaction"
    flags = ("--metrics", name, "--workers", 0)
    invoke("mbench", "eval", own_conditions, *flags, "--output", tmp_path / "before")
    items = {i["condition_id"]: i for i in lines(tmp_path / f"before/metrics/{name}/items.jsonl")}
    known = {"left_then_right_3s", "left_then_wait_then_right_3s"}
    assert {id for id, item in items.items() if item["valid"]} == known
    for condition, says in {
        "left_right_3s": "the action 'left_right' is not", "swing_3s": "the action 'swing' is not",
        "left_then_right_then_left": "the action 'left_then_right_then_left' does not say how long",
    }.items():  # fmt: skip
        assert items[condition]["reason"].startswith(says) and "dataset.yaml" in items[condition]["reason"]
    told = [p for p in found(own_conditions) if p.kind.startswith("unknown")]
    assert [p.line for p in told] == [2, 4, 5]
    card = own_conditions / "dataset.yaml"
    card.write_text(card.read_text() + OWN)
    assert not [p for p in found(own_conditions) if p.kind.startswith("unknown")]
    invoke("mbench", "eval", own_conditions, *flags, "--output", tmp_path / "after")
    for item in lines(tmp_path / f"after/metrics/{name}/items.jsonl"):
        assert item["scores"]["score"] == pytest.approx(1, abs=1e-6), item["condition_id"]
    card.write_text("dataset_id: mbencha\nactions: {swing: [wave]}\n")
    with pytest.raises(UsageError, match=r"actions\.swing: 'wave' is not a phase; expected a list such as"):
        list(read(own_conditions))
    invoke("mbench", "validate", own_conditions, "--metrics", "mbencha.causal.state_progress")  # asks for no motion


def test_a_declared_rest_needs_no_gate(tmp_path: Path, make_clip):
    root = small_dataset(tmp_path, make_clip)
    (root / "dataset.yaml").write_text("dataset_id: mbencha\nactions: {left_then_right: [hold]}\n")
    case = next(case for case in read(root) if case.subset == "causal")
    assert case.annotations["motion"] == [("wait", 1.0)]


# The README's own commands on rendered datasets


@pytest.fixture(scope="module")
def rendered(tmp_path_factory) -> dict[str, Path]:
    """Both settings, all four subsets, three models; one small film serves all."""
    film = play(make_world(2, "room", "gift"), "yaw", "changed", (96, 160), frames=17)
    models = [Model("perfect"), Model("frozen_camera"), Model("state_reset")]
    root = tmp_path_factory.mktemp("mbench")
    sets = {}
    for setting, condition in (("A", f"{film.world.turn}_then_back_1s"), ("T", "text")):
        films = {f"{subset}__sample_001__{condition}": film for subset in SUBSETS}
        sets[setting] = LAYOUT.write(root / setting, films, models)
    return sets


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


def judge(body: dict):
    """Sees whether the pictures change at all; says that everything went perfectly."""
    import cv2

    right = sees_cards(body)
    if right is not None:
        return completion("yes" if right else "no")
    if "Rate two things" in question_of(body):
        return completion(json.dumps({"progress": 5, "correctness": 4}))
    seen = [cv2.imdecode(np.frombuffer(base64.b64decode(u.partition(",")[2]), np.uint8), 1) for u in images_of(body)]
    first = seen[0].astype(float)
    moves = max(np.abs(picture - first).mean() for picture in seen if picture.shape == first.shape) > 12
    return completion(json.dumps({"triggered": "yes" if moves else "no", "confidence": 0.8}))


def test_list_metrics_prints_the_23_names():
    printed = invoke("mbench", "list-metrics").stdout.splitlines()
    assert [line.split()[0] for line in printed] == list(dimensions_by_upstream_name()) and len(printed) == 23


def test_the_first_example_of_the_readme(rendered, shared_cache, tmp_path: Path):
    env = {"REVISIT_CACHE": shared_cache}
    flags = ("--metrics", "mbencha.environment.spatial_epipolar", "--models", "perfect", "--subsets", "environment")
    invoke("mbench", "validate", rendered["A"], *flags, "--limit", 4)
    run = tmp_path / "runs/my_first_run"
    has = "mb_spatial_epipolar" in METRICS
    invoke("mbench", "eval", rendered["A"], *flags, "--output", run, "--workers", 0, env=env, code=0 if has else 1)
    if not has:
        pytest.skip("mb_spatial_epipolar is not in this version")
    folder = run / "metrics/mbencha.environment.spatial_epipolar"
    assert sorted(path.name for path in folder.iterdir()) == ["items.jsonl", "summary.json", "units.jsonl"]
    (item,) = lines(folder / "items.jsonl")
    assert item["item_id"].startswith("environment:sample_001:") and item["model_id"] == "perfect"
    assert set(item["scores"]) <= {"score", "score_raw"}, "A knows no trigger"
    assert (run / "eval.log").is_file() and lines(run / "items.jsonl")[0]["model_id"] == "perfect"


def test_the_usage_reference_of_the_readme(rendered, tmp_path: Path, monkeypatch):
    """Every flag that its usage reference lists, in one command each; the judge per run, as it shows it."""
    monkeypatch.chdir(tmp_path)
    names = "mbencht.causal.state_progress,mbencht.environment.spatial_reprojection"
    some = ("--metrics", names, "--subsets", "causal,environment")
    invoke("mbench", "validate", rendered["T"], *some, "--models", "perfect", "--limit", 2)
    with serving(judge) as server:
        for output, more in (("runs/gated", ()), ("runs/ablation", ("--ignore-trigger",))):
            done = invoke(
                "mbench", "eval", rendered["T"], *some, "--output", output, "--models", "perfect,state_reset",
                "--conditions", "text", "--sample-ids", "sample_001", "--limit", 4, "--vlm-judge", "openai-compatible",
                "--vlm-base-url", server.url, "--vlm-api-key", KEY, "--vlm-model", MODEL, "--vlm-n-frames", 8,
                "--vlm-max-retries", 3, "--workers", 0, *more, "--no-progress-bar", "--quiet", "--no-log-file",
            )  # fmt: skip
            assert done.output == ""
            assert not (tmp_path / output / "eval.log").exists()
            assert sorted(p.name for p in (tmp_path / output / "metrics").iterdir()) == sorted(names.split(","))
    gated, free = (json.loads((tmp_path / f"runs/{name}/summary.json").read_text()) for name in ("gated", "ablation"))
    assert gated["mbench"]["rule"] == "trigger" and free["mbench"]["rule"] == "all"


def test_the_python_call_of_the_readme(rendered, shared_cache, tmp_path: Path, monkeypatch):
    """Its lines as they stand there, but for where the names come from and the paths."""
    from revisit.mbench import adapter_registry, aggregator_registry, metric_registry, run_eval

    monkeypatch.setenv("REVISIT_CACHE", shared_cache)
    adapter = adapter_registry.get("mbench-dir")
    items = adapter.load(str(rendered["A"]), subsets=["environment"], limit=4)
    metric = metric_registry.get("mbencha.environment.spatial_epipolar")
    aggregator = aggregator_registry.get("mean")
    summary = run_eval(items, [metric], aggregator, str(tmp_path / "python_api_demo"), workers=0)
    assert len(items) == 3 and {case.subset for case in items} == {"environment"}
    assert summary["mbench"]["dimensions"]["mb_spatial_epipolar"]["models"]["perfect"]["n"] == 1
    folder = tmp_path / "python_api_demo/metrics/mbencha.environment.spatial_epipolar"
    assert sorted(path.name for path in folder.iterdir()) == ["items.jsonl", "summary.json", "units.jsonl"]
    assert len(adapter.load(rendered["A"], limit=2)) == 2 and metric_registry.names() == list(
        dimensions_by_upstream_name()
    )
    with pytest.raises(UsageError, match="there is no aggregator called 'median'; choose one of mean"):
        aggregator_registry.get("median")
    other = metric_registry.get("mbencht.environment.spatial_epipolar")
    with pytest.raises(UsageError, match="is for setting T, but this is a dataset of setting A"):
        run_eval(items, [other], aggregator, tmp_path / "other")


def test_the_second_example_on_the_default_set_says_which_set_has_the_observer(rendered, shared_cache, tmp_path: Path):
    """Nothing finds faces in the set lite: one sentence says which sets do."""
    name = "mbencht.entity.human_identity_consistency"
    done = invoke(
        "mbench", "eval", rendered["T"], "--metrics", name, "--models", "perfect", "--subsets", "human", "--output",
        tmp_path / "run", "--workers", 0, env={"REVISIT_CACHE": shared_cache}, code=1,
    )  # fmt: skip
    assert "no faces file was given" in done.output
    assert "; --set small or paper makes it from the frames" in done.output


@pytest.fixture(scope="module")
def judged(rendered, shared_cache, tmp_path_factory) -> tuple[Path, list[str], str]:
    """A run of setting T with a judge, all dimensions, as the README's second example has it."""
    run = tmp_path_factory.mktemp("runs") / "my_t_run_with_trigger"
    with serving(judge) as server:
        env = {
            "MBENCH_VLM_BASE_URL": server.url, "MBENCH_VLM_API_KEY": KEY, "MBENCH_VLM_MODEL": MODEL,
            "REVISIT_CACHE": shared_cache,
        }  # fmt: skip
        done = invoke(
            "mbench", "eval", rendered["T"], "--vlm-judge", "openai-compatible", "--output", run, "--workers", 0,
            "--report", env=env,
        )  # fmt: skip
        assert any(headers.get("Authorization") == f"Bearer {KEY}" for headers in server.headers)
        asked = [question_of(body) for body in server.requests]
    return run, asked, done.output


def test_the_second_example_of_the_readme(rendered, shared_cache, tmp_path: Path):
    root = tmp_path / "set"
    shutil.copytree(rendered["T"], root)
    frame = np.arange(0, 17, 2)
    like = np.random.default_rng(0).normal(size=(len(frame), 8)) * 0.05 + 1
    for model in ("perfect", "frozen_camera"):
        place = root / "models" / model / "artifacts/human/sample_001/text/faces.npz"
        save_npz(place, {"vector": like, "frame": frame, "looked": frame, "maker": np.array("buffalo_l")})
    name = "mbencht.entity.human_identity_consistency"
    flags = ("--metrics", name, "--models", "perfect,frozen_camera", "--subsets", "human", "--workers", 0)
    with serving(judge) as server:
        env = {"MBENCH_VLM_BASE_URL": server.url, "MBENCH_VLM_MODEL": MODEL, "REVISIT_CACHE": shared_cache}
        invoke(
            "mbench", "eval", root, *flags, "--vlm-judge", "openai-compatible", "--output", tmp_path / "with", env=env
        )
    groups = json.loads((tmp_path / f"with/metrics/{name}/summary.json").read_text())["groups"]
    assert groups["perfect"]["score"] > 0.99 and groups["perfect"]["triggered"] == 1.0
    assert groups["frozen_camera"]["triggered"] == 0.0 and "score" not in groups["frozen_camera"]
    # Without --vlm-judge the same command gives raw consistency.
    invoke("mbench", "eval", root, *flags, "--output", tmp_path / "raw", env={"REVISIT_CACHE": shared_cache})
    items = lines(tmp_path / f"raw/metrics/{name}/items.jsonl")
    assert [set(item["scores"]) - {"score_raw"} for item in items] == [{"score"}, {"score"}]
    units = lines(tmp_path / f"raw/metrics/{name}/units.jsonl")
    assert len(units) == 2 * len(frame) and units[0]["unit_id"].endswith("__f0")


def test_a_run_with_a_judge_conditions_on_the_trigger(judged):
    run, asked, output = judged
    part = json.loads((run / "summary.json").read_text())["mbench"]
    assert part["setting"] == "T" and part["rule"] == "trigger"
    models = part["dimensions"]["judged_progress"]["models"]
    assert models["perfect"]["coverage"] == [1, 1] and models["perfect"]["m_score"] == pytest.approx(1)
    assert models["frozen_camera"]["coverage"] == [0, 0] and models["frozen_camera"]["m_score"] == 0
    assert part["ranking"][0]["model"] != "frozen_camera" and part["ranking"][-1]["model"] == "frozen_camera"
    rated = sum("Rate two things" in text for text in asked)
    assert rated == 3, "the ratings are asked of the causal subset alone, once per model"
    assert "M-Score, MBench-T" in output and (run / "report/index.html").is_file()


def test_exports_have_the_canonical_scores(judged):
    run, _, _ = judged
    folder = run / "metrics/mbencht.causal.progress_correctness"
    items = {item["model_id"]: item for item in lines(folder / "items.jsonl")}
    assert items["perfect"]["scores"] == {
        "score": pytest.approx(0.75), "score_raw": 4, "triggered": 1.0, "trigger_score": 0.8,
    }  # fmt: skip
    assert items["frozen_camera"]["scores"] == {"triggered": 0.0, "trigger_score": 0.8}
    assert items["frozen_camera"]["status"] == "not_triggered" and not items["frozen_camera"]["valid"]
    assert items["frozen_camera"]["metadata"]["raw_scores"]["correctness"] == 4, "raw fields are kept"
    units = lines(folder / "units.jsonl")
    assert {unit["model_id"] for unit in units} == {"perfect", "state_reset"}
    assert all(unit["unit_id"].startswith(unit["item_id"] + "__") and "score" in unit["scores"] for unit in units)
    summary = json.loads((folder / "summary.json").read_text())
    group = summary["groups"]["perfect"]
    assert summary["metric"] == "mbencht.causal.progress_correctness"
    assert {name: group[name] for name in ("score", "score_raw", "triggered", "trigger_score")} == {
        "score": pytest.approx(0.75), "score_raw": 4, "triggered": 1.0, "trigger_score": 0.8,
    }  # fmt: skip
    assert "score" not in summary["groups"]["frozen_camera"] and summary["groups"]["frozen_camera"]["m_score"] == 0


def test_the_key_is_nowhere(judged):
    run, _, output = judged
    assert KEY not in output
    for path in run.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
    assert "key_env: MBENCH_VLM_API_KEY" in (run / "judge.yaml").read_text()


def test_a_key_on_the_command_line_is_not_recorded(rendered, shared_cache, tmp_path: Path, monkeypatch):
    flags = [
        "mbench", "eval", str(rendered["T"]), "--metrics", "state_progress", "--models", "perfect", "--vlm-judge",
        "openai-compatible", "--vlm-model", MODEL, "--vlm-api-key", KEY, "--output", str(tmp_path / "run"),
        "--ignore-trigger", "--workers", "0", "--vlm-n-frames", "4", "--vlm-max-retries", "1", "--progress-every", "5",
        "--vlm-max-tokens", "77", "--vlm-api-style", "chat_completions", "--log-file", str(tmp_path / "my.log"),
    ]  # fmt: skip
    with serving(judge) as server:
        flags += ["--vlm-base-url", server.url]
        monkeypatch.setattr(sys, "argv", ["revisit", *flags])
        monkeypatch.setenv("MBENCH_VLM_API_KEY", "")
        invoke(*flags, env={"REVISIT_CACHE": shared_cache})
        assert all("Rate two things" in question_of(body) or sees_cards(body) is not None for body in server.requests)
        assert any(len(images_of(body)) in (4, 5) for body in server.requests)
        assert {body.get("max_tokens", body.get("max_completion_tokens")) for body in server.requests} == {77}
        assert set(server.paths) == {"/v1/chat/completions"}
    assert (tmp_path / "my.log").read_text() and not (tmp_path / "run/eval.log").exists()
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert KEY not in json.dumps(run) and "[key]" in run["invocations"][0]["command"]
    part = json.loads((tmp_path / "run/summary.json").read_text())["mbench"]
    assert part["rule"] == "all" and part["dimensions"]["judged_progress"]["models"]["perfect"]["m_score"] is None
    again = invoke("eval", tmp_path / "run", "--rescore", "--json", "--no-report", env={"REVISIT_CACHE": shared_cache})
    assert json.loads(again.stdout)["mbench"] == part, "the run can be scored again with the same frames"


def test_a_judge_that_cannot_be_reached_leaves_coverage_open(rendered, shared_cache, tmp_path: Path):
    def mute(body: dict):
        right = sees_cards(body)
        return completion("yes" if right else "no") if right is not None else completion("I would rather not say.")

    with serving(mute) as server:
        invoke(
            "mbench", "eval", rendered["T"], "--models", "perfect", "--subsets", "causal", "--vlm-judge",
            "openai-compatible", "--vlm-base-url", server.url, "--vlm-model", "mute", "--metrics",
            "mbencht.causal.state_progress", "--output", tmp_path / "run", "--workers", 0, "--vlm-max-retries", 0,
            "--quiet", env={"REVISIT_CACHE": shared_cache}, code=1,
        )  # fmt: skip
    part = json.loads((tmp_path / "run/summary.json").read_text())["mbench"]
    assert part["rule"] == "trigger"
    group = json.loads((tmp_path / "run/metrics/mbencht.causal.state_progress/summary.json").read_text())["groups"]
    assert group["perfect"]["coverage"] == [0, 1] and group["perfect"]["m_score"] is None


def test_wrong_endpoints_and_settings_are_sentences(rendered, tmp_path: Path):
    base = ("mbench", "eval", rendered["T"], "--output", tmp_path / "run", "--vlm-judge", "openai-compatible")
    for flags, says in (
        ((), "needs --vlm-base-url"),
        (("--vlm-base-url", "http://x/v1"), "needs --vlm-model"),
        (("--vlm-api-style", "responses"), "only chat_completions"),
    ):
        done = CliRunner().invoke(app, [str(part) for part in (*base, *flags)])
        assert isinstance(done.exception, UsageError) and says in str(done.exception)


def test_setting_a_has_reliability_alone_and_a_frozen_model_is_not_ranked(rendered, shared_cache, tmp_path: Path):
    with serving(judge) as server:
        done = invoke(
            "mbench", "eval", rendered["A"], "--vlm-judge", "openai-compatible", "--vlm-base-url", server.url,
            "--vlm-model", MODEL, "--output", tmp_path / "run", "--workers", 0, env={"REVISIT_CACHE": shared_cache},
        )  # fmt: skip
        assert not any("how sure" in question_of(body) for body in server.requests), "A never asks for a trigger"
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    part = summary["mbench"]
    assert part["rule"] == "camera"
    for entry in part["dimensions"].values():
        assert all(made["m_score"] is None and made["coverage"] is None for made in entry["models"].values())
    frozen = next(row for row in part["ranking"] if row["model"] == "frozen_camera")
    assert frozen["rank"] is None and frozen["reason"] == "0 of 4 clips pose the test"
    assert part["ranking"][0]["model"] in ("perfect", "state_reset") and "frozen_camera is not ranked" in done.output
    for id, column in summary["metrics"].items():
        cell = summary["models"]["frozen_camera"]["scores"][id]
        rests = id == "mb_camera_interaction" and cell.get("mean") == 0
        assert "mean" not in cell or column["higher_is_better"] is None or rests, id


def test_the_leaderboard_shows_no_values_of_a_frozen_model(judged):
    run, _, _ = judged
    (board,) = json.loads(invoke("leaderboard", run, "--json").stdout)
    assert board["title"] == "mbench T, M-Score"
    cells = {row["model"]: row["cells"] for row in board["rows"]}
    assert cells["perfect"]["judged_progress"]["mean"] == pytest.approx(100)
    assert all(cell["mean"] is None and cell["reason"] for cell in cells["frozen_camera"].values())
    assert (
        "judged_progress"
        not in json.loads(invoke("leaderboard", run, "--subset", "object", "--json").stdout)[0]["columns"]
    )


def test_what_networks_said_is_found_beside_the_poses(tmp_path: Path, make_clip):
    root = small_dataset(tmp_path, make_clip)
    home = root / "models/one"
    place = f"artifacts/human/s0/{CONDITIONS['A']}"
    for name in ("faces", "bodies"):
        save_npz(home / place / f"{name}.npz", poses())
    case = next(case for case in read(root) if case.subset == "human")
    assert sorted(case.artifacts) == ["bodies", "faces"]
    listed = home / "samples.jsonl"
    rows = [json.loads(line) for line in listed.read_text().splitlines()]
    rows[0]["artifacts"] = {"masks": {"path": f"{place}/faces.npz"}, "da3": {"path": f"{place}/none.npz"}}
    listed.write_text("".join(json.dumps(row) + "\n" for row in rows))
    case = next(case for case in read(root) if case.sample == "s0")
    assert case.artifacts == {"masks": home / place / "faces.npz"}
    assert any(p.kind == "missing artifact" and p.line == 1 for p in found(root))


# Packaging and submission


@pytest.mark.parametrize("mode", ["link", "hardlink", "copy"])
def test_import_makes_the_entry_of_a_model_and_does_it_once(tmp_path: Path, make_clip, mode: str):
    root = small_dataset(tmp_path / "set", make_clip)
    made = tmp_path / "made"
    condition = CONDITIONS["A"]
    for subset in ("object", "human"):
        make_clip(made / f"{subset}/s0_{condition}.mp4", seed=5)
    arguments = ("import", "mbench", made, "--dataset", root, "--model", "mine", "--mode", mode)
    assert "2 videos placed, 0 kept, 2 missing" in invoke(*arguments).output
    first = (root / "models/mine/samples.jsonl").read_bytes()
    place = root / f"models/mine/outputs/object/s0/{condition}/video.mp4"
    assert place.is_symlink() == (mode == "link") and place.stat().st_size > 0
    assert "0 videos placed, 2 kept, 2 missing" in invoke(*arguments).output
    assert (root / "models/mine/samples.jsonl").read_bytes() == first
    make_clip(made / f"causal/s0_{condition}.mp4", seed=6)
    before = place.read_bytes()
    (made / f"object/s0_{condition}.mp4").unlink()
    make_clip(made / f"object/s0_{condition}.mp4", seed=9)  # generated anew
    done = json.loads(invoke(*arguments, "--json").stdout)
    assert done["placed"] == (1 if mode == "link" else 2) and done["missing"] == [f"environment:s0:{condition}"]
    assert place.read_bytes() != before
    entries = list(read(root, models="mine"))
    assert (
        sum(isinstance(entry, Case) for entry in entries) == 3
        and sum(e.missing for e in entries if isinstance(e, Rejected)) == 1
    )
    assert "valid" in invoke("mbench", "validate", root, "--models", "mine", "--subsets", "human").output


def test_import_says_what_is_wrong(tmp_path: Path, make_clip):
    data = open_mbench_dataset(small_dataset(tmp_path / "set", make_clip))
    rows = tmp_path / "list.jsonl"
    rows.write_text(json.dumps({"subset": "object", "sample_id": "../x", "condition_id": "c"}) + "\n")
    for arguments, says in (
        ((data, "m", tmp_path, rows), "list.jsonl:1: expected subset"),
        ((data, "a/b", tmp_path, rows), "cannot be a model"),
        ((data, "m", tmp_path / "no", rows), "no such folder"),
        ((data, "m", tmp_path, rows, "move"), "unknown mode 'move'"),
    ):
        with pytest.raises(UsageError, match=says):
            add_model_to_dataset(*arguments)


def test_submission(judged, tmp_path: Path, monkeypatch):
    run, _, _ = judged
    summary = json.loads((run / "summary.json").read_text())
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    row = next(row for row in summary["mbench"]["ranking"] if row["model"] == "perfect")
    assert row["rank"] is not None
    scores = {"entity": [58.68, 58.68], "environment": [83.23, 83.23], "causal": [65.86, 65.86], "total": [69.26, 70.0]}
    if row["own"]["total"] is None:
        done = CliRunner().invoke(app, ["mbench", "submit", str(run), "--model", "perfect", "--link", "https://x.org"])
        assert "a total needs all dimensions of MBench-T" in str(done.exception)
    row["own"] = scores
    (copy / "summary.json").write_text(json.dumps(summary))
    out = tmp_path / "sent.zip"
    lines = (copy / "records.jsonl").read_text()
    followed = "box of the followed target"  # the paper has masks of SAM 2 in its place
    if any(followed in line and '"perfect"' in line and '"scored"' in line for line in lines.splitlines()):
        done = CliRunner().invoke(app, ["mbench", "submit", str(copy), "--model", "perfect", "--link", "https://x.org"])
        assert f"takes no stand-ins: Object geometry by {followed} (published: SAM 2)" in str(done.exception)
    (copy / "records.jsonl").write_text(lines.replace(followed, "masks by sam2.1-hiera-tiny"))
    invoke("mbench", "submit", copy, "--model", "perfect", "--link", "https://example.org/m", "--out", out)
    assert "valid" in invoke("mbench", "check-submission", out).output
    with zipfile.ZipFile(out) as archive:
        content = json.loads(archive.read("leaderboard_submission.json"))
        proof = [json.loads(line) for line in archive.read("verification/causal/items.jsonl").splitlines()]
    assert content["model_type"] == "text-conditioned" and content["total_m_score"] == 69.26
    assert content["entity_score"] == 58.68 and 0 <= content["trigger_coverage"] <= 100
    assert proof and {line["model_id"] for line in proof} == {"perfect"} and all("metric" in line for line in proof)
    first = out.read_bytes()
    invoke("mbench", "submit", copy, "--model", "perfect", "--link", "https://example.org/m", "--out", out)
    assert out.read_bytes() == first
    done = CliRunner().invoke(
        app, ["mbench", "submit", str(copy), "--model", "perfect", "--link", "x", "--out", str(out)]
    )
    assert isinstance(done.exception, UsageError) and "model_link" in str(done.exception)
    monkeypatch.setattr(submission, "LARGEST", 9)
    done = CliRunner().invoke(
        app, ["mbench", "submit", str(copy), "--model", "perfect", "--link", "https://x.org", "--out", str(out)]
    )
    assert isinstance(done.exception, UsageError) and "is larger than" in str(done.exception)
    assert out.read_bytes() == first and [path.name for path in tmp_path.glob("*.zip")] == ["sent.zip"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({}, "has no model_name"),
        ({"total_m_score": 101}, "total_m_score is 101; expected a number from 0 to 100"),
        ({"total_m_score": True}, "total_m_score is True"),
        ({"model_type": "both"}, "model_type is 'both'"),
        ({"model_link": "ftp://x"}, "expected an address"),
        ({"score": 3}, "unknown field 'score'"),
        ([], "is not a JSON object"),
    ],
)
def test_submissions_that_are_wrong(tmp_path: Path, content, says: str):
    sound = {"model_name": "m", "model_link": "https://x.org", "model_type": "action-conditioned", "total_m_score": 50}
    path = tmp_path / "s.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("leaderboard_submission.json", json.dumps({**sound, **content} if content else content))
        archive.writestr("verification/causal/items.jsonl", "{}\n")
    assert any(says in problem for problem in submission_problems(path)) == bool(says)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("leaderboard_submission.json", json.dumps(sound))
        archive.writestr("verification/causal/items.jsonl", "{}\nno\n")
        archive.writestr("../x.txt", "no")
    assert len(submission_problems(path)) == 2
    path.write_bytes(b"no")
    assert submission_problems(path) == ["s.zip is not a zip file that can be read"]


def test_a_list_with_missing_videos_is_not_submitted(tmp_path: Path, make_clip):
    """A mean over the videos that are there is easy to win."""
    root = small_dataset(tmp_path, make_clip)
    gone = next(entry for entry in read(root) if isinstance(entry, Case) and entry.model == "one")
    gone.clip.path.unlink()
    entries = list(read(root))
    results = Results(
        [entry for entry in entries if isinstance(entry, Case)], [],
        [entry for entry in entries if isinstance(entry, Rejected)],
    )  # fmt: skip
    facts = {"invocations": [{"finished": 1}]}
    plan: dict[str, object] = {"partial": None, "cases": []}
    why = partial_run_reason(open_mbench_dataset(root), facts, plan, results, "one")
    assert f"items of the model's list have no video that can be used, such as {gone.annotations['item_id']}" in why


# Preparing artifacts


def test_prepare_runs_a_command_once_per_video(tmp_path: Path, make_clip):
    root = small_dataset(tmp_path / "set", make_clip)
    script = tmp_path / "net.py"
    script.write_text(
        "import sys, numpy as np\n"
        "out, log = sys.argv[2], sys.argv[3]\n"
        "open(log, 'a').write(sys.argv[1] + '\\n')\n"
        "if 'human' in sys.argv[1]: sys.exit('no people please')\n"
        "K = np.array([[30., 0, 16], [0, 30, 12], [0, 0, 1]])\n"
        "np.savez(out, depth=np.ones((12, 24, 32)), extrinsics=np.tile(np.eye(4)[:3], (12, 1, 1)),\n"
        "         intrinsics=np.tile(K, (12, 1, 1)), image=np.zeros((12, 24, 32, 3), np.uint8))\n"
    )
    log = tmp_path / "log"
    command = f"{sys.executable} {script} {{video}} {{npz}} {log}"
    producer = ("--producer", "command", "--command", command, "--convention", "w2c")
    arguments = ("mbench", "prepare", root, *producer, "--subsets", "object,human")
    done = invoke(*arguments, code=1)
    assert "1 made, 0 kept, 1 failed" in done.output and "no people please" in done.output
    place = root / f"models/one/artifacts/object/s0/{CONDITIONS['A']}/da3/results.npz"
    arrays = load_npz(place)
    assert arrays["depth"].dtype == np.float16 and arrays["extrinsics"].dtype == np.float32 and "image" not in arrays
    assert arrays["frame_indices"].tolist() == list(range(12)) and str(arrays["convention"]) == "w2c_opencv"
    assert "0 made, 1 kept, 1 failed" in invoke(*arguments, code=1).output and len(log.read_text().splitlines()) == 3
    video = root / f"models/one/outputs/object/s0/{CONDITIONS['A']}/video.mp4"
    make_clip(video, seed=8)
    assert "1 made, 0 kept" in invoke(*arguments, code=1).output, "a new video needs a new artifact"
    assert not any(p.kind == "missing artifact" for p in found(root, subsets="object"))


def test_prepare_by_odometry(rendered, shared_cache, tmp_path: Path):
    arguments = (
        "mbench", "prepare", rendered["A"], "--producer", "odometry", "--output", tmp_path, "--models", "perfect",
        "--subsets", "environment", "--workers", 0, "--quiet",
    )  # fmt: skip
    assert "1 made, 0 kept" in invoke(*arguments, env={"REVISIT_CACHE": shared_cache}).output
    (path,) = tmp_path.rglob("results.npz")
    assert pose_artifact_problem(path) is None
    arrays = load_npz(path)
    assert "depth" not in arrays and str(arrays["producer"]).startswith("revisit odometry")
    assert np.linalg.det(arrays["extrinsics"][:, :, :3].astype(float)) == pytest.approx(
        np.ones(len(arrays["extrinsics"])), abs=1e-4
    )
    assert "0 made, 1 kept" in invoke(*arguments, env={"REVISIT_CACHE": shared_cache}).output


def test_what_prepare_wrote_elsewhere_is_found(rendered, shared_cache, tmp_path: Path, monkeypatch):
    """The README's command with --output, then validate and eval from the same folder, and from another one."""
    env = {"REVISIT_CACHE": shared_cache}
    root, work, elsewhere = tmp_path / "set", tmp_path / "work", tmp_path / "elsewhere"
    shutil.copytree(rendered["A"], root, ignore=shutil.ignore_patterns("da3", "artifacts.json"))
    work.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(work)
    only = ("--models", "perfect", "--subsets", "environment")
    flags = ("--metrics", "mbencha.environment.spatial_epipolar", *only)
    assert "missing artifact" in invoke("mbench", "validate", root, *flags, code=1).output
    done = invoke(
        "mbench", "prepare", root, "--producer", "odometry", "--output", "artifacts/", *only, "--quiet", "--workers", 0,
        env=env,
    )  # fmt: skip
    assert "eval finds them by artifacts.json of the dataset" in done.output
    assert "valid: 1 items checked" in invoke("mbench", "validate", root, *flags).output
    invoke("mbench", "eval", root, *flags, "--output", "run", "--workers", 0, env=env)
    (item,) = lines(work / "run/metrics/mbencha.environment.spatial_epipolar/items.jsonl")
    assert item["valid"]
    monkeypatch.chdir(elsewhere)
    told = invoke("mbench", "validate", root, *flags, code=1).output
    assert "artifact outside" in told and "--root" in told, "from elsewhere it is found, and needs leave"
    assert "valid: 1" in invoke("mbench", "validate", root, *flags, "--root", work).output
    (root / "artifacts.json").unlink()
    assert "missing artifact" in invoke("mbench", "validate", root, *flags, code=1).output
    assert "valid: 1" in invoke("mbench", "validate", root, *flags, "--artifacts", work / "artifacts").output


def test_prepare_by_a_network_in_its_own_environment(tmp_path: Path, make_clip, monkeypatch):
    """With a stand-in for Depth Anything 3; more of them are in test_pose_runner.py."""
    root = small_dataset(tmp_path / "set", make_clip)
    site = tmp_path / "site/depth_anything_3"
    site.mkdir(parents=True)
    (site / "__init__.py").touch()
    (site / "api.py").write_text(
        "import types, numpy as np\n"
        "class DepthAnything3:\n"
        "    from_pretrained = classmethod(lambda cls, name: cls())\n"
        "    to = lambda self, device: self\n"
        "    def inference(self, images, **how):\n"
        "        n, K = len(images), np.array([[30., 0, 16], [0, 30, 12], [0, 0, 1]])\n"
        "        return types.SimpleNamespace(extrinsics=np.tile(np.eye(4)[:3], (n, 1, 1)),\n"
        "            intrinsics=np.tile(K, (n, 1, 1)), depth=np.ones((n, 24, 32)))\n"
    )
    arguments = ("mbench", "prepare", root, "--producer", "da3", "--subsets", "object", "--quiet", "--device", "cpu")
    done = CliRunner().invoke(app, [str(part) for part in arguments])
    assert isinstance(done.exception, MissingPrerequisite) and "cannot load da3" in str(done.exception)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    assert "1 made" in invoke(*arguments).output
    place = root / f"models/one/artifacts/object/s0/{CONDITIONS['A']}/da3/results.npz"
    arrays = load_npz(place)
    assert arrays["frame_indices"].tolist() == list(range(12)) and arrays["size"].tolist() == [32, 24]
    assert pose_artifact_problem(place) is None and "0 made, 1 kept" in invoke(*arguments).output


def test_the_protocol_readme_gives_the_readmes_numbers():
    """Its examples of output: .5523 for an error of 2.964 px, and .74 for a mean rating of 3.7."""
    from revisit.suites.mbench.evidence import PairMatches
    from revisit.suites.mbench.metrics.judged import judged_correctness, judged_progress
    from revisit.suites.mbench.metrics.spatial import score_pair_errors
    from tests.mbench_world import track

    asked = SUITES["mbench"].protocols["readme"]
    poses_ = np.tile(np.eye(4), (2, 1, 1))
    poses_[1, 0, 3] = 0.1
    frame, other, row_, other_row = (np.array([k]) for k in (12, 48, 0, 1))
    matched = np.array([0, 30]), np.full((30, 4), 9.0)
    pair = PairMatches(frame, other, row_, other_row, np.zeros(1), *matched, "fold", "", "sift")
    for id in ("mb_spatial_epipolar", "mb_spatial_reprojection"):
        made = score_pair_errors(
            track(poses_), pair, lambda view: np.full(len(view.x1), 2.964), least_matches=20, **asked[id]
        )
        assert round(made.value, 4) == 0.5523 and made.raw == pytest.approx(2.964)
    ratings = [ProgressRatings(x, x, judge="m") for x in (3, 4, 4, 4, 3, 4, 3, 4, 4, 4)]
    for metric in (judged_progress, judged_correctness):
        scores = [metric(one, **asked[metric.id]) for one in ratings]
        assert np.mean([s.raw for s in scores]) == pytest.approx(3.7)
        assert np.mean([s.value for s in scores]) == pytest.approx(0.74)


def test_protocols_that_compute_the_same_share_a_tag(tmp_path: Path, make_clip):
    root = small_dataset(tmp_path, make_clip)
    tags = {}
    for protocol in ("corrected", "paper", "readme"):
        done = json.loads(invoke("plan", root, "--protocol", protocol, "--json").stdout)
        tags[protocol] = {id: tag.partition(":")[2] for id, tag in done["metrics"].items()}
    same = {id for id in tags["paper"] if tags["paper"][id] == tags["corrected"][id]}
    assert same == {"mb_prompt_interaction", "judged_progress", "judged_correctness"}
    other = {id for id in tags["readme"] if tags["readme"][id] != tags["paper"][id]}
    assert other == {"mb_spatial_epipolar", "mb_spatial_reprojection", "judged_progress", "judged_correctness"}
    with pytest.raises(UsageError, match="unknown rule 'upstream'"):
        METRICS["judged_progress"].fn(ProgressRatings(3, 3, judge="m"), rule="upstream")


def test_runs_of_protocols_that_compute_the_same_share_a_board(rendered, shared_cache, tmp_path: Path):
    flags = ("-m", "mb_prompt_interaction", "-m", "mb_rendering_lighting", "--workers", 0, "--no-report")
    for protocol in ("corrected", "paper"):
        invoke("eval", rendered["T"], *flags, "--protocol", protocol, "--out", tmp_path / protocol,
               env={"REVISIT_CACHE": shared_cache})  # fmt: skip
    both = json.loads(invoke("leaderboard", tmp_path / "corrected", tmp_path / "paper", "--json").stdout)
    assert len(both) == 2, "lighting takes other pairs"
    for path in (tmp_path / "corrected", tmp_path / "paper"):
        facts = json.loads((path / "run.json").read_text())
        facts["protocol"]["metrics"].pop("mb_rendering_lighting")
        (path / "run.json").write_text(json.dumps(facts))
    (one,) = json.loads(invoke("leaderboard", tmp_path / "corrected", tmp_path / "paper", "--json").stdout)
    assert [row["role"] for row in one["rows"]].count("") == 6
    assert [row["model"] for row in one["rows"] if row["role"]] == ["truth", "truth"]  # of both runs


def test_questions_in_words_of_ones_own(rendered, shared_cache, tmp_path: Path):
    words = tmp_path / "words.yaml"
    words.write_text("trigger.human: Does somebody come and go?\nprogress: 'Rate two things: progress, correctness.'\n")
    flags = ("--metrics", "trigger,state_progress", "--models", "perfect", "--workers", 0)
    with serving(judge) as server:
        shared = ("--vlm-judge", "openai-compatible", "--vlm-base-url", server.url, "--vlm-model", MODEL)
        invoke("mbench", "eval", rendered["T"], *flags, *shared, "--questions", words, "--output", tmp_path / "own",
               env={"REVISIT_CACHE": shared_cache})  # fmt: skip
        asked = [question_of(body) for body in server.requests]
        assert sum("Does somebody come and go? Say also" in text for text in asked) == 1
        assert sum("Rate two things: progress, correctness." in text for text in asked) == 1
        invoke("mbench", "eval", rendered["T"], *flags, *shared, "--output", tmp_path / "ours",
               env={"REVISIT_CACHE": shared_cache})  # fmt: skip
    boards = json.loads(invoke("leaderboard", tmp_path / "own", tmp_path / "ours", "--json").stdout)
    assert len(boards) == 2, "numbers by other questions do not share a board"
    for text, says in (
        ("trigger.people: x", "unknown question 'trigger.people'; the ids are trigger.object"),
        ("progress: 3", "progress is '3'; expected the wording"),
        ("[", "neither YAML nor JSON"),
        ("", "expected question ids with their wording"),
    ):
        words.write_text(text)
        done = CliRunner().invoke(app, ["plan", str(rendered["T"]), "--option", f"questions={words}"])
        assert isinstance(done.exception, UsageError) and says in str(done.exception)
    words.write_text(json.dumps({"trigger.object": "Is it?"}))
    case = next(case for case in read(rendered["T"], questions=str(words)) if case.subset == "object")
    assert case.annotations["wording"] == {"trigger.object": "Is it?"}


def test_the_card_keeps_questions_to_their_subsets():
    card = SUITES["mbench"].card
    assert set(card["protocols"]) == {"corrected", "paper", "readme"}
    for setting in ("A", "T"):
        for dimension in dimensions_of_setting(setting):
            assert card["asked_of"][dimension.id]["subset"] == [dimension.subset]
