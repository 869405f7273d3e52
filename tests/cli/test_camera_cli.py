"""`revisit camera` as a user types it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from revisit.cli.main import app
from revisit.core import UsageError
from revisit.media import encode_mp4


def said(*words: str, group: tuple[str, ...] = ("camera",), code: int = 0) -> str:
    result = CliRunner().invoke(app, [*group, *words])
    assert result.exit_code == code, result.output
    return result.output


def test_models_say_what_their_payload_was_checked_against() -> None:
    listed = {entry["id"]: entry for entry in json.loads(said("models", "--json"))}
    assert listed["voyager"]["converter"] and listed["spatia"]["loader"].startswith("ZhaoJingjing713/Spatia @ 5dd3457")
    assert listed["hyworld"]["aliases"] == ["hyworld-worldgen"]
    table = said("models")
    assert "converter needed" in table and "loader's facts and WRBench's file" in table


def test_a_word_that_is_no_preset() -> None:
    for script, sentence in (
        ("pan_LRR", "called 'pan_LRR'; did you mean pan_LR"),
        ("nonsense", "called 'nonsense'; `revisit camera presets` lists them"),
        ("hold", "add @20"),
    ):
        with pytest.raises(UsageError, match=sentence):
            CliRunner().invoke(app, ["camera", "show", script], catch_exceptions=False)


def test_compile_writes_what_the_loader_opens_and_tells_what_is_lost(tmp_path: Path) -> None:
    out = str(tmp_path / "cup")
    text = said("compile", "yaw:left:60@40,yaw:right:60@41", "--model", "lingbot-world", "--out", out)
    assert np.load(tmp_path / "cup.camera/poses.npy").shape == (81, 4, 4)
    assert np.load(tmp_path / "cup.target_c2w.npy").shape == (81, 4, 4)
    assert "amplified by 3" in text
    said("compile", "pan_LR", "--model", "spatia", "--out", out)
    assert sorted(path.name for path in (tmp_path / "cup.camera").iterdir()) == ["intrinsics.txt", "poses.txt"]
    text = said("compile", "dolly:forward:2@98", "--model", "magicworld", "--out", out)
    assert "above 0.6 metres" in text and "1.400 metres" in text
    facts = json.loads(said("compile", "dolly:forward:2@98", "--model", "magicworld", "--out", out, "--json"))
    assert facts["clipped"] and not facts["exact"]
    told = json.loads(
        said("compile", "yaw:left:30@40,static@36", "--model", "minwm-hy-action2v", "--out", out, "--prompt", "a cup",
             "--json")
    )  # fmt: skip
    sample = json.loads(Path(told["payload"]).read_text())
    assert sample == [{"caption": "a cup", "image": "", "trajectory": "j*10"}] and told["exact"]
    assert "give the picture" in said("compile", "yaw_LR", "--model", "sana-wm", "--out", out)


def test_show_counts_frames_as_upstream_does() -> None:
    assert len(json.loads(said("show", "static@81", "--json"))["poses"]) == 81
    poses = json.loads(said("show", "arc_LR", "--first-view", "--json"))["poses"]
    assert poses[40] == {"frame": 40, "yaw": pytest.approx(-60), "pitch": 0, "x": 0, "y": 0, "z": 1}
    assert set(json.loads(said("presets", "--json"))) >= {"static", "yaw_LR", "pan_RL", "arc_LR", "orbit", "circle"}
    assert {"camera_text", "named_move"} <= {entry["id"] for entry in json.loads(said("families", "--json"))}


def test_run_tells_what_was_not_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    encode_mp4(Path("clip.mp4"), np.zeros((49, 16, 16, 3), np.uint8), 24)
    encode_mp4(Path("first.mp4"), np.zeros((1, 16, 16, 3), np.uint8), 24)
    rows = [
        {"id": "turn", "prompt": "p", "camera": "yaw:left:60@48", "image": "first.mp4"},
        {"id": "and/back", "prompt": "p\ud800", "camera": "yaw:left:60@24,yaw:right:60@25", "image": "first.mp4"},
        {"id": "back", "prompt": "p", "camera": "yaw:left:60@24,yaw:right:60@25", "image": "first.mp4"},
    ]
    Path("records.jsonl").write_text("\n".join(map(json.dumps, rows)))
    copy = (
        f"'{sys.executable}' -c 'import shutil, sys; assert sys.argv[1] == \"turn_left\"; shutil.copy(*sys.argv[2:])'"
    )
    words = (
        "records.jsonl",
        "--generator",
        "voyager",
        "--out",
        "clips",
        "--command",
        f"{copy} {{line}} clip.mp4 {{out}}",
    )
    text = said(*words, group=("generate",), code=1)
    assert "turn: made" in text and "1 made, 2 refused" in text
    assert "lone surrogate" in text and "one of six moves by name" in text
    assert "1 of 3: the generator does not get the exact path: it is off by up to 15.00 degrees" in text
    assert "1 of 3: converter needed" in text
    old = [word.replace("--generator", "--model") for word in (*words, "--json")]
    counts = json.loads(said(*old, group=("camera", "run"), code=1).split("\n}")[0].partition("{")[2].join(["{", "}"]))[
        "counts"
    ]
    assert counts == {"kept": 1, "refused": 2}
