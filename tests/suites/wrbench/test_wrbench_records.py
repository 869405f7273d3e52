"""WRBench's prompts and records: our own scenes, the published files, and how they are enumerated."""

from __future__ import annotations

import csv
import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from revisit.core import UsageError
from revisit.suites.wrbench.commands_writing import image_prompts_by_name
from revisit.suites.wrbench.prompts import (
    CAMERA_WORDS,
    own_event_tasks,
    read_json_lines_with_keys,
    read_natural25_tasks,
)
from revisit.suites.wrbench.records import CAMERAS, INTERFACES, event_view_records, record_row

COUNTS = {"path": 500, "moving_path": 400, "words": 300}


def test_our_own_scenes_cross_two_factors() -> None:
    tasks = own_event_tasks()
    assert len(tasks) == 100 and len({task.family for task in tasks}) == 25
    assert Counter(task.factor for task in tasks) == {"none": 25, "spatial": 25, "state_only": 25, "full": 25}
    for task in tasks:
        assert task.expected not in task.prompt and task.expected not in task.from_nothing
        assert "camera" not in task.prompt.lower()
        # An event in place says so, so that walking off is plainly wrong.
        assert ("staying in place" in task.prompt) == (task.factor == "state_only")


@pytest.mark.parametrize("interface", sorted(INTERFACES))
def test_our_own_records_enumerate_to_the_same_counts(interface: str) -> None:
    views = list(event_view_records(own_event_tasks(), interface))
    assert len(views) == COUNTS[interface]
    assert len({view.id for view in views}) == COUNTS[interface]


def test_words_say_turn_where_a_rotation_is_meant() -> None:
    for view in event_view_records(own_event_tasks()[:4], "words"):
        preset = CAMERAS[view.annotations["camera"]][0]
        words = CAMERA_WORDS[preset]
        assert words in view.prompt
        assert ("turns" in words) == preset.startswith("yaw")
    for camera, words in CAMERA_WORDS.items():
        assert ("slides" in words) == camera.startswith(("pan", "orbit"))


def test_paths_are_not_put_into_words() -> None:
    prompts = {task.id: task.prompt for task in own_event_tasks()[:4]}
    for view in event_view_records(own_event_tasks()[:4], "path"):
        assert view.prompt == prompts[view.annotations["task"]]
    nothing = next(event_view_records(own_event_tasks(), "path", first_frame=False))
    assert "on the left" in nothing.prompt


def test_further_scopes_by_name() -> None:
    views = list(event_view_records(own_event_tasks()[:2], "path", ["pan_LR", "arc_RL", "orbit"]))
    assert [view.annotations["camera"] for view in views] == ["pan_LR", "arc_RL", "orbit"] * 2
    with pytest.raises(UsageError, match="unknown camera 'zoom'"):
        list(event_view_records(own_event_tasks(), "path", ["zoom"]))
    with pytest.raises(UsageError, match="unknown interface"):
        list(event_view_records(own_event_tasks(), "telepathy"))
    assert set(INTERFACES["path"]) <= set(CAMERAS)


def test_a_record_keeps_the_end_apart_from_what_is_told() -> None:
    line = record_row(next(event_view_records(own_event_tasks(), "words", seed=3)))
    assert line["annotations"]["expected"] == own_event_tasks()[0].expected and line["seed"] == 3
    assert own_event_tasks()[0].expected not in line["prompt"]


@pytest.fixture(scope="module")
def natural25(shared: Path) -> Path:
    return shared / "wrbench/natural25"


def test_the_published_variants(natural25: Path) -> None:
    tasks = read_natural25_tasks(natural25)
    assert len(tasks) == 100
    variants = {f"{task.id}__{camera}" for task in tasks for camera in ("none", *task.camera_prompts)}
    written = {json.loads(line)["variant_id"] for line in (natural25 / "variants.jsonl").read_text().splitlines()}
    assert variants == written and len(variants) == 400
    with (natural25 / "scene_events_25x4.csv").open(encoding="utf-8", newline="") as file:
        events = {row["family_id"]: row for row in csv.DictReader(file)}
    assert all(task.expected == events[task.family][f"event_{task.id.split('__')[1]}"] for task in tasks)
    assert sum(task.first_frame is not None for task in tasks) == 5 * 4  # of the 25 frames, five are here


@pytest.mark.parametrize("interface", sorted(INTERFACES))
def test_the_published_records_enumerate(natural25: Path, interface: str) -> None:
    views = list(event_view_records(read_natural25_tasks(natural25), interface))
    assert len(views) == COUNTS[interface]
    assert len({view.id for view in views}) == COUNTS[interface]
    assert all(view.prompt for view in views)
    if interface == "words":
        told = {view.prompt for view in views if view.annotations["camera"] == "yaw_LR"}
        assert told == {task.camera_prompts["yaw_LR"] for task in read_natural25_tasks(natural25)}


def test_prompts_for_text_alone(natural25: Path) -> None:
    views = list(event_view_records(read_natural25_tasks(natural25), "path", first_frame=False))
    assert len(views) == 500
    assert all("left third" in view.prompt for view in views[:5])


def test_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_natural25_tasks(tmp_path)
    (tmp_path / "families.jsonl").write_text('{"family_id": "f"}\n')
    (tmp_path / "variants.jsonl").write_text('{"variant_id": "odd"}\n')
    with pytest.raises(UsageError, match="odd"):
        read_natural25_tasks(tmp_path)
    (tmp_path / "variants.jsonl").write_text("not json\n")
    with pytest.raises(UsageError, match=r"variants\.jsonl:1"):
        read_natural25_tasks(tmp_path)


def test_text_alone_keeps_the_published_words_and_no_image(natural25: Path) -> None:
    tails = {
        row["variant_id"]: row["t2v_event_tail"]
        for row in map(json.loads, (natural25 / "t2v_event_tails.jsonl").read_text().splitlines())
    }
    for interface, variant in (("path", "none"), ("words", "yaw_LR")):
        views = event_view_records(read_natural25_tasks(natural25), interface, ["yaw_LR"], first_frame=False)
        for view in views:
            line = record_row(view)
            assert line["prompt"].endswith(tails[f"{view.annotations['task']}__{variant}"])
            assert "image" not in line and "source_video" not in line
    # Our own scenes put the camera into words, too.
    told = next(event_view_records(own_event_tasks(), "words", ["yaw_LR"], first_frame=False)).prompt
    assert "on the left" in told and CAMERA_WORDS["yaw_LR"] in told


@cache
def poses(script: str) -> int:
    """How many frames a script gives."""
    from revisit.geometry.camera_script import camera_path_of_length, parse_script

    return len(camera_path_of_length(parse_script(script)))


def invoke(*words: str) -> tuple[int, str]:
    from typer.testing import CliRunner

    from revisit.cli.main import app

    made = CliRunner().invoke(app, ["wrbench", "records", *words])
    return made.exit_code, f"{made.output}{made.exception or ''}"


def test_records_follow_the_generators_card(tmp_path: Path) -> None:
    from revisit.control.generators import find_generator

    out = tmp_path / "records.jsonl"
    for model in ("hydra", "kling"):
        code, said = invoke("--out", str(out), "--model", model)
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        card = find_generator(model)
        interface = "words" if model == "kling" else "path" if card.static else "moving_path"
        assert code == 0 and len(rows) == COUNTS[interface]
        assert {poses(row["camera"]) for row in rows} == {card.frames}
        assert {row["annotations"]["interface"] for row in rows} == {interface}
        lacks = {"image": "no first frame", "source_video": "no source video", "nothing": ""}[card.takes]
        assert lacks in said if lacks else "no first" not in said
    (tmp_path / "videos").mkdir()
    family, task = "studio_potter_wheel", "garage_mechanic_hood__moves"
    for name in (family, task):
        (tmp_path / f"videos/{name}.mp4").write_bytes(b"")
    code, _ = invoke("--out", str(out), "--model", "spatia", "--source-videos", str(tmp_path / "videos"))
    named = {row["id"]: row.get("source_video") for row in map(json.loads, out.read_text().splitlines())}
    assert named[f"{family}__rests__static"] == str(tmp_path / f"videos/{family}.mp4")
    assert named[f"{task}__static"] == str(tmp_path / f"videos/{task}.mp4")
    assert sum(video is not None for video in named.values()) == 20 + 5


def test_limit_and_family(tmp_path: Path) -> None:
    out = tmp_path / "records.jsonl"
    assert invoke("--out", str(out), "--limit", "7", "--frames", "66")[0] == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 7
    for name in ("family", "factor", "camera"):
        assert len({row["annotations"][name] for row in rows}) > 2  # a choice that mixes all of them
    assert all(poses(row["camera"]) in (66, 67) for row in rows)  # out and back; `generate` spreads it over the clip
    assert invoke("--out", str(out), "--family", "park_dog_stick", "--family", "farm_goose_puddle")[0] == 0
    assert len(out.read_text().splitlines()) == 40
    code, said = invoke("--out", str(out), "--family", "park_dog")
    assert code and "unknown family 'park_dog'" in said


@pytest.mark.parametrize("text", [b'{"family_id": "caf\xe9"}\n', b'{"family_id": \n', b'{"t2i_scene": "x"}'])
def test_damaged_prompts_are_named_in_one_sentence(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "families.jsonl"
    path.write_bytes(text)
    with pytest.raises(UsageError, match=r"families\.jsonl"):
        read_json_lines_with_keys(path, "family_id")
    with pytest.raises(UsageError, match=r"families\.jsonl"):
        image_prompts_by_name(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + b'{"family_id": "f"}\n')  # with a byte order mark, as some editors save it
    assert read_json_lines_with_keys(path, "family_id") == [{"family_id": "f"}]
