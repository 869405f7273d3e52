"""The runner: a user's command that works, crashes, hangs, writes nothing or writes the wrong length."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from revisit.control.generators import generator
from revisit.control.runner import arguments, generate, read_records, write_manifest
from revisit.core import UsageError
from revisit.media import encode_mp4

FRAMES = 9
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
    wanted = read_records(records(folder, ["fine", "crash", "hang", "nothing", "short", "fine; rm -rf {out}"]))
    out = folder / "out"
    ended = list(generate(wanted, generator("minwm-wan"), command, out, timeout=4, workers=2))
    assert [made.status for made in ended] == ["made", "crashed", "hung", "wrote nothing", "wrong length", "made"]
    assert "out of memory" in ended[1].reason
    assert "5 frames, and 9" in ended[4].reason
    logged = [json.loads(line)["status"] for line in (out / "generation.jsonl").read_text().splitlines()]
    assert logged == [made.status for made in ended]
    assert not list(out.glob(".making-*"))

    manifest = [
        json.loads(line) for line in write_manifest(wanted, generator("minwm-wan"), out).read_text().splitlines()
    ]
    assert [entry["id"] for entry in manifest] == ["r0", "r5"]
    record = json.loads((out / "r0.provenance.json").read_text())
    assert record["output"]["frames"] == FRAMES
    assert record["delivered"]["family"] == "tokens"
    assert np.load(out / "r0.target_c2w.npy").shape == (FRAMES, 4, 4)


def test_a_second_run_keeps_what_is_there_and_makes_the_rest(setting: tuple[Path, str]) -> None:
    folder, command = setting
    wanted = read_records(records(folder, ["fine", "fine too"]))
    to, out = generator("minwm-wan"), folder / "out"
    assert [made.status for made in generate(wanted, to, command, out)] == ["made", "made"]
    (out / "r1.mp4").write_bytes(b"spoilt")
    assert [made.status for made in generate(wanted, to, command, out)] == ["kept", "made"]
    other_prompt = read_records(records(folder, ["fine", "another wish"]))
    assert [made.status for made in generate(other_prompt, to, command, out)] == ["kept", "made"]


def test_what_cannot_be_asked_is_refused_by_record(setting: tuple[Path, str]) -> None:
    folder, command = setting
    wanted = read_records(records(folder, ["fine"]))
    (ended,) = generate(wanted, generator("gen3c"), command, folder / "out")
    assert ended.status == "refused" and "source_video" in ended.reason
    (ended,) = generate(wanted, generator("minwm-wan"), "no-such-program-here {out}", folder / "out")
    assert ended.status == "crashed" and "cannot be started" in ended.reason


def test_placeholders() -> None:
    assert arguments("run --p {prompt} --o {out}", {"prompt": "a; b", "out": "x"}) == ["run", "--p", "a; b", "--o", "x"]
    with pytest.raises(UsageError, match="placeholder"):
        arguments("run {whim} {out}", {"whim": "", "out": ""})
    with pytest.raises(UsageError, match="where the clip shall be written"):
        arguments("run", {})


def test_broken_records_are_named(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"id": "a", "prompt": "p", "camera": "c"}\n{"id": "b"}\n')
    with pytest.raises(UsageError, match=r"records\.jsonl:2"):
        read_records(path)
    path.write_text('{"id": "a", "prompt": "p", "camera": "c"}\n' * 2)
    with pytest.raises(UsageError, match="more than once"):
        read_records(path)
    with pytest.raises(UsageError, match="no such file"):
        read_records(tmp_path / "nowhere.jsonl")
