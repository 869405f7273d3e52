"""The commands of docs/wrbench.md, as they stand there, from a fresh install: records, clips, poses, judge, table."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import PROJECT
from tests.judging import MODEL, completion, question_of, sees_cards, serving, token

LIMIT = 5  # records of each generator
# A stand-in for a generator: it starts from an image, or from the first frame of a video, and turns by 60 degrees.
GENERATOR = """
import argparse
from pathlib import Path
import cv2
import numpy as np
from revisit.media import encode_mp4
said = argparse.ArgumentParser()
for name in ("image", "video", "prompt", "camera", "frames", "out"):
    said.add_argument("--" + name)
said = said.parse_args()
start = cv2.imread(said.image) if said.image else cv2.VideoCapture(said.video).read()[1]
paint = np.tile(cv2.resize(start, (900, 300)), (1, 4, 1))
half = int(said.frames) // 2
share = np.r_[np.linspace(0, 1, half), np.linspace(1, 0, int(said.frames) - half)]
x, y = np.meshgrid(np.arange(208) - 103.5, np.arange(120) - 59.5)
across, rows = np.degrees(np.arctan2(x, 180)), (150 + y / np.hypot(x, 180) * 573).astype(np.float32)
frames = [cv2.remap(paint, ((across - 60 * s + 180) * 10).astype(np.float32), rows, cv2.INTER_LINEAR) for s in share]
encode_mp4(Path(said.out), np.stack(frames)[..., ::-1], 16)
"""


def commands() -> list[str]:
    """The first block of commands in the page."""
    page = (PROJECT / "docs/wrbench.md").read_text(encoding="utf-8")
    block = re.search(r"```\n(revisit wrbench records.*?)```", page, re.DOTALL)
    assert block is not None
    return [line for line in block[1].splitlines() if line]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as pip installs it, without its dependencies, which are those of this Python."""
    site = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(PROJECT)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"needs pip and its build backend to install the package: {done.stderr.strip()[-200:]}")
    return site


def judged(body: dict[str, Any]) -> Any:
    """A judge that sees the subject leave and return, and is rather sure that all is well."""
    if (card := sees_cards(body)) is not None:
        return "yes" if card else "no"
    text = question_of(body)
    if '"seconds"' in text:
        count = int(text.rpartition("from second 0 to second ")[2].partition(".")[0].partition(":")[0]) + 1
        return json.dumps({"subject": "it", "seconds": ["yes", *["no"] * (count - 2), "yes"]})
    word, other = ("No", "Yes") if any(w in text for w in ("mistake", "missing", "stopped")) else ("Yes", "No")
    return completion(word, {"content": [token(word, -0.2, **{word: -0.2, other: -1.7})]})


def test_camera_run_ends_with_the_command_that_reads_it_as_wrbench(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from revisit.cli.main import app
    from revisit.engine.request import recognise_suite
    from revisit.media import encode_mp4

    encode_mp4(tmp_path / "clip.mp4", np.random.default_rng(0).integers(0, 255, (9, 48, 64, 3), dtype=np.uint8), 8)
    (tmp_path / "frames").mkdir()
    (tmp_path / "frames/park_dog_stick.png").write_bytes(b"a picture")
    records, out = tmp_path / "records.jsonl", tmp_path / "my clips"
    words = [
        "wrbench",
        "records",
        "--out",
        records,
        "--frames",
        9,
        "--family",
        "park_dog_stick",
        "--camera",
        "yaw30_LR",
    ]
    made = CliRunner().invoke(app, [*map(str, words), "--first-frames", str(tmp_path / "frames")])
    assert made.exit_code == 0, made.output
    (tmp_path / "copy.py").write_text("import shutil, sys; shutil.copy(*sys.argv[1:])")
    command = f"{shlex.quote(sys.executable)} {tmp_path / 'copy.py'} {tmp_path / 'clip.mp4'} {{out}}"
    words = ["generate", records, "--generator", "poses", "--out", out, "--checkpoint", "v1", "--command", command]
    made = CliRunner().invoke(app, [*map(str, words)])
    assert made.exit_code == 0, made.output
    assert f"revisit eval '{out / 'manifest.jsonl'}' --suite wrbench" in made.stdout
    assert recognise_suite(out / "manifest.jsonl").id == recognise_suite(out).id == "wrbench"
    kept = json.loads(next(out.glob("*.provenance.json")).read_text())
    assert kept["made_with"] == {"command": command, "checkpoint": "v1"}
    assert kept["output"] | {"frames": 9, "fps": 8.0, "size": [64, 48]} == kept["output"]


@pytest.mark.long
@pytest.mark.slow
def test_the_commands_of_the_page(installed: Path, shared: Path, tmp_path: Path) -> None:
    import cv2

    from revisit.media import encode_mp4
    from revisit.suites.wrbench.prompts import own_event_tasks

    env = {**os.environ, "PYTHONPATH": str(installed), "REVISIT_CACHE": str(tmp_path / "cache")}
    (tmp_path / "generate.py").write_text(GENERATOR)
    (tmp_path / "sources").mkdir()
    rng = np.random.default_rng(0)
    for family in {task.family for task in own_event_tasks()}:
        coarse = rng.integers(0, 255, (24, 40, 3), dtype=np.uint8)
        picture = cv2.resize(coarse, (160, 96), interpolation=cv2.INTER_CUBIC)
        encode_mp4(tmp_path / f"sources/{family}.mp4", np.stack([picture] * 5), 16)
    (tmp_path / "Natural-25").symlink_to(shared / "wrbench/natural25")
    said: list[str] = []
    with serving(judged) as server:
        (tmp_path / "judge.yaml").write_text(f"url: {server.url}\nmodel: {MODEL}\npause: 0.01\n")
        for line in commands():
            # What only a test needs: few records, of families with a first frame, and no gated network for the poses.
            line = line.replace("--with vggt-omega", "--with odometry").replace(
                "python generate", f"{sys.executable} generate"
            )
            words = shlex.split(line, comments=True)
            if "records" in words[:3]:
                frames = sorted(path.stem for path in (shared / "wrbench/natural25/first_frames").glob("*.png"))
                families = [word for name in frames for word in ("--family", name)] if "--data" in words else []
                words += ["--limit", str(LIMIT), *families]
            done = subprocess.run(
                [sys.executable, "-m", "revisit", *words[1:]], cwd=tmp_path, env=env, capture_output=True, text=True,
                timeout=900, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
            said.append(done.stdout)
    assert "5 records in spatia.jsonl" in said[0] and "5 records in wan.jsonl" in said[1]
    assert "5 made\nrevisit eval clips/spatia/manifest.jsonl --suite wrbench" in said[2] and "5 made" in said[3]
    kept = json.loads(next((tmp_path / "clips/spatia").glob("*.provenance.json")).read_text())
    assert kept["made_with"]["checkpoint"] == "spatia-v1" and "{source_video}" in kept["made_with"]["command"]
    assert kept["output"] | {"fps": 16.0, "size": [208, 120], "frames": 121} == kept["output"]

    table = said[5]
    for word in ("D1 CamPrec", "D2 integrity", "support", "D6 ret. state", "Avg", "geometry cache", "model inferred"):
        assert word in table, table
    summary = json.loads((tmp_path / "runs/wr/summary.json").read_text())
    rows = {row["model"]: row for row in summary["wrbench"]["rows"]}
    assert rows["spatia"]["outputs"] == rows["wan22-fun-5b"]["outputs"] == LIMIT
    for row in rows.values():
        assert row["visible_spatial"]["n"] == LIMIT and row["returned_state"]["n"] == LIMIT and row["sparse"]
        assert row["support"]["judged"]["share"] == 1
        # Odometry, even through a file, and classical descriptors are no published measures.
        assert row["alignment"]["value"] is None and row["integrity"]["value"] is None and row["average"] is None
        assert set(row["average_with_stand_ins"]["stand_ins"]) == {"alignment_odometry", "integrity_lite"}
    page = (tmp_path / "runs/wr/report/index.html").read_text()
    assert "<h3>WRBench</h3>" in page and "<h3>Stand-ins</h3>" in page and "D5 ret. place" in page
    assert "† returned scores" in page and "Support by direction" in page
    assert "Hunyuan WorldPlay" in said[6] and "another protocol" in said[6]
