"""The runner: a user's command that works, crashes, hangs, writes nothing or writes the wrong length."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from revisit.control.generation import generate_clips_of_records, read_generation_records, write_clip_manifest
from revisit.control.generator_backends import command_arguments
from revisit.control.generators import Generator, find_generator
from revisit.control.jobs import BatchRequest
from revisit.core import UsageError
from revisit.media import encode_mp4

FRAMES = 9
ANY = Generator("stand-in", "Stand-in", "pose_folder", "nothing", "model_inferred", FRAMES, 16, (832, 480), (1, 1, 1))
SCRIPT = "yaw:left:10@4,yaw:right:10@4"
# A stand-in for a generator: what it does is written in the prompt.
GENERATOR = """
import pathlib, shutil, sys, time
prompt, clip, short, out = sys.argv[1:5]
if "crash" in prompt: sys.exit("out of memory")
if "hang" in prompt: time.sleep(60)
if "nothing" in prompt: sys.exit(0)
shutil.copy(short if "short" in prompt else clip, out)
"""


@pytest.fixture
def setting(tmp_path: Path) -> tuple[Path, str]:
    frames = np.random.default_rng(0).integers(0, 255, (FRAMES, 16, 16, 3), dtype=np.uint8)
    encode_mp4(tmp_path / "clip.mp4", frames, 16)
    encode_mp4(tmp_path / "short.mp4", frames[:5], 16)
    (tmp_path / "generator.py").write_text(GENERATOR)
    words = [sys.executable, tmp_path / "generator.py", "{prompt}", tmp_path / "clip.mp4", tmp_path / "short.mp4"]
    return tmp_path, " ".join(f"'{word}'" for word in words) + " {out}"


def records(folder: Path, prompts: list[str]) -> Path:
    path = folder / "records.jsonl"
    rows = [{"id": f"r{k}", "prompt": prompt, "camera": SCRIPT, "seed": k} for k, prompt in enumerate(prompts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_every_end_is_recorded_and_none_stops_the_batch(setting: tuple[Path, str]) -> None:
    folder, command = setting
    wanted = read_generation_records(
        records(folder, ["fine", "crash", "hang", "nothing", "short", "fine; rm -rf {out}"])
    )
    out = folder / "out"
    ended = list(generate_clips_of_records(wanted, ANY, command, out, timeout=4, workers=2))
    assert [made.status for made in ended] == ["made", "crashed", "hung", "wrote nothing", "wrong length", "made"]
    assert "out of memory" in ended[1].reason
    assert "5 frames" in ended[4].reason
    logged = [json.loads(line) for line in (out / "generation.jsonl").read_text().splitlines()]
    assert {line["id"]: line["status"] for line in logged} == {made.id: made.status for made in ended}
    assert not list(out.glob(".making-*"))

    manifest = [json.loads(line) for line in write_clip_manifest(wanted, ANY, out, ended).read_text().splitlines()]
    assert [entry["id"] for entry in manifest] == ["r0", "r5"]
    record = json.loads((out / "r0.provenance.json").read_text())
    assert record["output"]["frames"] == FRAMES
    assert record["delivered"]["family"] == "pose_folder"
    assert sorted(path.name for path in (out / "r0.camera").iterdir()) == ["intrinsics.npy", "poses.npy"]
    assert np.load(out / "r0.target_c2w.npy").shape == (FRAMES, 4, 4)


def test_a_second_run_keeps_what_is_there_and_makes_the_rest(setting: tuple[Path, str]) -> None:
    folder, command = setting
    wanted = read_generation_records(records(folder, ["fine", "fine too"]))
    to, out = ANY, folder / "out"
    assert [made.status for made in generate_clips_of_records(wanted, to, command, out)] == ["made", "made"]
    (out / "r1.mp4").write_bytes(b"spoilt")
    assert [made.status for made in generate_clips_of_records(wanted, to, command, out)] == ["kept", "made"]
    other_prompt = read_generation_records(records(folder, ["fine", "another wish"]))
    assert [made.status for made in generate_clips_of_records(other_prompt, to, command, out)] == ["kept", "made"]


def test_what_cannot_be_asked_is_refused_by_record(setting: tuple[Path, str]) -> None:
    folder, command = setting
    wanted = read_generation_records(records(folder, ["fine"]))
    (ended,) = generate_clips_of_records(wanted, find_generator("gen3c"), command, folder / "out")
    assert ended.status == "refused" and "source_video" in ended.reason
    fixed = replace(ANY, lengths=(77,), frames=77)
    (ended,) = generate_clips_of_records(wanted, fixed, command, folder / "out", frames=FRAMES)
    assert ended.status == "refused" and "give --frames 77" in ended.reason
    (ended,) = generate_clips_of_records(
        wanted, fixed, command, folder / "out"
    )  # the path is spread over what it makes
    assert ended.status == "wrong length" and "9 frames" in ended.reason and "77" in ended.reason
    assert "the script has 9 frames; the path was spread over 77" in ended.remarks
    (ended,) = generate_clips_of_records(wanted, ANY, "no-such-program-here {out}", folder / "out")
    assert ended.status == "crashed" and "cannot be started" in ended.reason


def test_placeholders() -> None:
    assert command_arguments("run --p {prompt} --o {out}", {"prompt": "a; b", "out": "x"}) == [
        "run",
        "--p",
        "a; b",
        "--o",
        "x",
    ]
    with pytest.raises(UsageError, match="placeholder"):
        command_arguments("run {whim} {out}", {"whim": "", "out": ""})
    with pytest.raises(UsageError, match="the file to write the clip to"):
        command_arguments("run", {})


def test_broken_records_are_named(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"id": "a", "prompt": "p", "camera": "c"}\n{"id": "b"}\n')
    with pytest.raises(UsageError, match=r"records\.jsonl:2"):
        read_generation_records(path)
    path.write_text('{"id": "a", "prompt": "p", "camera": "c"}\n' * 2)
    with pytest.raises(UsageError, match="more than once"):
        read_generation_records(path)
    with pytest.raises(UsageError, match="no such file"):
        read_generation_records(tmp_path / "nowhere.jsonl")
    path.write_bytes(b'{"id": "\xff"}')
    with pytest.raises(UsageError, match="not UTF-8"):
        read_generation_records(path)


def test_a_command_gets_the_files_and_lines_of_a_payload(setting: tuple[Path, str]) -> None:
    folder, _ = setting
    (folder / "look.py").write_text(
        "import pathlib, sys\nprint(pathlib.Path(sys.argv[1]).is_file(), sys.argv[2])\nsys.exit(1)\n"
    )
    words = f"'{sys.executable}' '{folder / 'look.py'}' {{camera}}/poses.npy {{line}} {{out}}"
    (ended,) = generate_clips_of_records(read_generation_records(records(folder, ["fine"])), ANY, words, folder / "out")
    assert "True" in ended.reason
    words = f"'{sys.executable}' '{folder / 'look.py'}' {{camera}} {{line}} {{out}}"
    told = replace(find_generator("minwm-wan"), lengths=(), frames=FRAMES)
    path = folder / "records.jsonl"
    path.write_text(json.dumps({"id": "t", "prompt": "p", "camera": "yaw:left:3@4,yaw:right:3@4"}))
    (ended,) = generate_clips_of_records(read_generation_records(path), told, words, folder / "out")
    assert "True j*1,l*1" in ended.reason


def test_what_is_not_delivered_is_told_with_the_record(setting: tuple[Path, str]) -> None:
    folder, command = setting
    path = folder / "records.jsonl"
    path.write_text(json.dumps({"id": "far", "prompt": "fine", "camera": "dolly:forward:2@8"}))
    (made,) = generate_clips_of_records(
        read_generation_records(path), replace(ANY, gain=(1, 1, 0.6)), command, folder / "out"
    )
    assert made.is_clip_there and any("above 0.6 metres" in remark for remark in made.remarks)
    known = json.loads((folder / "out/far.provenance.json").read_text())["delivered"]
    assert known["clipped"] and not known["exact"] and known["largest_way_error_metres"] == pytest.approx(1.4)
    logged = json.loads((folder / "out/generation.jsonl").read_text())
    assert logged["remarks"] == list(made.remarks)


STRANGE = {
    "NUL": {"id": "a", "prompt": "a\0b", "camera": SCRIPT},
    "half a character": {"id": "b", "prompt": "\ud800", "camera": SCRIPT},
    "half a character in the id": {"id": "\udfff", "prompt": "p", "camera": SCRIPT},
    "half a character in a note": {"id": "c", "prompt": "p", "camera": SCRIPT, "annotations": {"x": ["\ud800"]}},
    "a long id": {"id": "x" * 300, "prompt": "p", "camera": SCRIPT},
    "a long prompt": {"id": "d", "prompt": "p" * 300, "camera": SCRIPT},
    "an endless prompt": {"id": "e", "prompt": "p" * 300_000, "camera": SCRIPT},
    "a billion frames": {"id": "f", "prompt": "p", "camera": "static@1000000000"},
    "many frames in many steps": {"id": "g", "prompt": "p", "camera": ",".join(["static@99999"] * 9)},
    "a number without an end": {"id": "h", "prompt": "p", "camera": "static@" + "9" * 9999},
    "no script": {"id": "i", "prompt": "p", "camera": "\0 {out} %s ;rm -rf"},
    "a huge way": {"id": "j", "prompt": "p", "camera": "dolly:forward:1e308@4,dolly:forward:1e308@4"},
    "a huge turn": {"id": "k", "prompt": "p", "camera": "yaw:left:1e308@8"},
    "nothing": {"id": "", "prompt": "", "camera": ""},
    "dots": {"id": "..", "prompt": "../..", "camera": SCRIPT},
    "braces": {"id": "{out}", "prompt": "{out} {whim} $(ls)", "camera": SCRIPT},
    "separators": {"id": "l", "prompt": "one\u2028two\x0b\x0c\x85three\r", "camera": SCRIPT},
    "a far image": {"id": "m", "prompt": "p", "camera": SCRIPT, "image": "x" * 5000},
    "an image that is none": {"id": "n", "prompt": "p", "camera": SCRIPT, "image": "\0"},
    "policy": {"id": "o", "prompt": "p", "camera": SCRIPT, "policy": "☃"},
    "right to left": {"id": "\u202eabc", "prompt": "\u202e\u0000"[:1], "camera": SCRIPT},
}


@pytest.mark.parametrize("takes", ["nothing", "image"])
def test_no_text_stops_a_batch(setting: tuple[Path, str], takes: str) -> None:
    folder, command = setting
    path = folder / "records.jsonl"
    rows = [*STRANGE.values(), {"id": "last", "prompt": "fine", "camera": SCRIPT, "image": "first.png"}]
    # As tools write them: some escape what is not ASCII, some do not.
    lines = [json.dumps(row) if k % 2 else _raw(row) for k, row in enumerate(rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    cv2.imwrite(str(folder / "first.png"), np.zeros((12, 20, 3), np.uint8))
    wanted = read_generation_records(path)
    assert len(wanted) == len(rows)
    out = folder / "out"
    ended = list(generate_clips_of_records(wanted, replace(ANY, takes=takes), command, out, timeout=60))
    status = dict(zip([*STRANGE, "last"], ended, strict=True))
    assert status["last"].status == "made"
    for name in (
        "NUL",
        "half a character",
        "half a character in the id",
        "a billion frames",
        "no script",
        "policy",
        "right to left",
    ):
        assert status[name].status == "refused" and status[name].reason, name
    if takes == "nothing":
        assert "NUL" in status["NUL"].reason and "lone surrogate" in status["half a character"].reason
        assert "100000" in status["a billion frames"].reason
        for name in ("a long id", "a long prompt", "dots", "braces", "separators"):
            assert status[name].status == "made", (name, status[name])
    assert all(made.status in ("made", "refused", "crashed") and len(made.reason) <= 1000 for made in ended)
    logged = [json.loads(line) for line in (out / "generation.jsonl").read_text().splitlines()]
    assert len(logged) == len(rows)
    assert all(entry.is_relative_to(out) and len(os.fsencode(entry.name)) < 200 for entry in out.iterdir())
    manifest = write_clip_manifest(wanted, ANY, out, ended).read_text().splitlines()
    assert len(manifest) == sum(made.is_clip_there for made in ended)


def _raw(row: dict[str, object]) -> str:
    text = json.dumps(row, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(row)
    return text


@pytest.mark.long
def test_ids_that_look_alike_keep_their_own_clips(setting: tuple[Path, str]) -> None:
    folder, command = setting
    ids = ["a/b", "a_b", "a b", "a\\b", "_a_b", "猫", "犬", "é", "e\u0301", "a", "a.", ".a", "x" * 300, "x" * 301]
    path = folder / "records.jsonl"
    path.write_text(
        "".join(json.dumps({"id": id, "prompt": f"fine {k}", "camera": SCRIPT}) + "\n" for k, id in enumerate(ids))
    )
    wanted = read_generation_records(path)
    out = folder / "out"
    assert [made.status for made in generate_clips_of_records(wanted, ANY, command, out)] == ["made"] * len(ids)
    ended = list(generate_clips_of_records(wanted, ANY, command, out))
    assert [made.status for made in ended] == ["kept"] * len(ids)
    assert len(list(out.glob("*.mp4"))) == len(ids)
    rows = [json.loads(line) for line in write_clip_manifest(wanted, ANY, out, ended).read_text().splitlines()]
    assert [row["id"] for row in rows] == ids and len({row["video"] for row in rows}) == len(ids)
    for row in rows:
        known = json.loads((out / row["video"]).with_suffix(".provenance.json").read_text())
        assert known["record"] == row["id"] and known["inputs"]["prompt"] == row["prompt"]
    assert (out / "a_b.mp4").is_file()  # a plain id is a plain name
    assert all(path.name[0].isalnum() for path in out.glob("*.mp4"))


def test_a_clip_of_an_earlier_prompt_is_not_listed_under_the_new_one(setting: tuple[Path, str]) -> None:
    """Making it anew fails: the earlier clip stays, and the manifest does not take it for what was asked now."""
    folder, command = setting
    out = folder / "out"
    list(
        generate_clips_of_records(
            read_generation_records(records(folder, ["a red cup", "a blue cup"])), ANY, command, out
        )
    )
    wanted = read_generation_records(records(folder, ["crash: a green cup", "a blue cup"]))
    ended = list(generate_clips_of_records(wanted, ANY, command, out))
    assert [made.status for made in ended] == ["crashed", "kept"] and (out / "r0.mp4").is_file()
    rows = [json.loads(line) for line in write_clip_manifest(wanted, ANY, out, ended).read_text().splitlines()]
    assert [(row["id"], row["prompt"]) for row in rows] == [("r1", "a blue cup")]


def test_files_beside_a_clip_tell_of_it_where_making_it_anew_failed(setting: tuple[Path, str]) -> None:
    folder, command = setting
    path, out = folder / "records.jsonl", folder / "out"

    def run(prompt: str, degrees: int) -> str:
        camera = f"yaw:left:{degrees}@4,yaw:right:{degrees}@4"
        path.write_text(json.dumps({"id": "r0", "prompt": prompt, "camera": camera}))
        (made,) = generate_clips_of_records(read_generation_records(path), ANY, command, out)
        return made.status

    def contents() -> dict[Path, bytes]:
        return {one: one.read_bytes() for one in out.rglob("*") if one.is_file() and one.name != "generation.jsonl"}

    assert run("crash", 10) == "crashed" and (out / "r0.job.json").is_file()  # it says what is missing
    assert run("fine", 10) == "made"
    before = contents()
    assert run("crash", 20) == "crashed" and contents() == before
    assert run("fine", 10) == "kept" and contents() == before
    assert run("fine", 20) == "made"
    job = json.loads((out / "r0.job.json").read_text())
    assert job["out"] == str(out / "r0.mp4") and Path(job["control"]["path"]) == out / "r0.target_c2w.npy"
    assert Path(job["control"]["payload"]).parent == out and job["control"]["script"].startswith("yaw:left:20")
    assert all(now != before[one] for one, now in contents().items() if one.name in ("r0.target_c2w.npy", "poses.npy"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"prompt": None}, "it has no prompt"),  # str(None) was sent to the generator as its prompt
        ({"camera": 5}, "its camera is 5 instead of text"),
        ({"seed": 1.5}, "its seed is 1.5 instead of a whole number"),
        ({"annotations": 5}, "its annotations are 5 instead of an object"),
        ({"image": 5}, "its image is 5 instead of text"),
        ({"id": None}, "it has no id"),
    ],
)
def test_fields_of_a_record_are_what_they_should_be(tmp_path: Path, change: dict[str, object], sentence: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps({"id": "a", "prompt": "p", "camera": SCRIPT, **change}))
    with pytest.raises(UsageError, match=rf"records\.jsonl:1: .*\({sentence}\)"):
        read_generation_records(path)


def test_records_may_leave_fields_empty(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    empty = dict.fromkeys(("image", "source_video", "seed", "policy", "annotations"))
    path.write_text(json.dumps({"id": 7, "prompt": "", "camera": "", **empty}))
    (record,) = read_generation_records(path)
    assert (record.id, record.prompt, record.image, record.seed, record.policy) == ("7", "", None, 0, "none")
    for seed in (12, 12.0, "12", "12.0"):  # as tables of another program write it
        path.write_text(json.dumps({"id": 7, "prompt": "", "camera": "", "seed": seed}))
        assert read_generation_records(path)[0].seed == 12


@pytest.mark.parametrize("fps", [0, -1, float("inf"), float("nan")])
def test_a_frame_rate_is_above_zero(fps: float) -> None:
    with pytest.raises(UsageError, match="is not a rate"):
        BatchRequest("m", fps=fps)
