"""`revisit memobench`: the public scripts' commands, up to the program's name and paths."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from revisit.cli.main import app
from revisit.core import UsageError
from revisit.suites.memobench.exports import EVAL_COLUMNS
from tests.judging import MODEL, serving
from tests.test_memo_judging import judge, settings
from tests.test_suite_memobench import generated, make_dataset


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the public scripts want it: data/ and output/<model>/{Synthetic,Real}."""
    make_dataset(tmp_path)
    generated(tmp_path / "output/mine")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def memobench(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["memobench", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_run_eval_for_one_split_and_for_both(place: Path) -> None:
    memobench("eval", "--mode", "synthetic", "--gen_root", "output/mine/Synthetic", "--workers", 0)
    [one] = rows(place / "outputs/mine/eval_synthetic.csv")
    assert (one["id"], one["data_type"]) == ("Barnyard_005", "synthetic") and list(one) == list(EVAL_COLUMNS)
    assert float(one["GT_ALL_PSNR"]) > 20 and one["CameraControllability"]
    memobench(
        "eval", "--mode", "both", "--gen_root_syn", "output/mine/Synthetic", "--gen_root_real", "output/mine/Real",
        "--out_csv", "all.csv", "--workers", 0,
    )  # fmt: skip
    assert [row["id"] for row in rows(place / "all.csv")] == ["Barnyard_005", "007"]
    memobench("eval", "--mode", "real", "--gen_root", "output/mine/Real", "--clip", "007", "--workers", 0)
    assert [row["id"] for row in rows(place / "outputs/mine/eval_real.csv")] == ["007"]
    with pytest.raises(UsageError, match="--mode takes synthetic, real or both"):
        memobench("eval", "--mode", "some")


def test_one_clip_or_scene_of_a_split(place: Path) -> None:
    memobench(
        "eval", "--gen_root", "output/mine/Synthetic", "--scene", "Barnyard", "--out_csv", "a.csv", "--workers", 0
    )
    assert len(rows(place / "a.csv")) == 1
    with pytest.raises(UsageError, match="only=Havana_001: there is no clip and no scene of that name"):
        memobench("eval", "--gen_root", "output/mine/Synthetic", "--clip", "Havana_001", "--run", "other")


def test_compute_ors(place: Path) -> None:
    found = place / "found"
    found.mkdir()
    for name in ("Barnyard_005", "007"):
        masks = [{"frame": k, "masks": [{"coverage": 0.1, "score": 0.8}]} for k in range(12)]
        (found / f"{name}.json").write_text(json.dumps({"prompt": "a pig", "frames": masks}))
    memobench(
        "ors", "--model-name", "mine", "--skip-existing", "--detections", "found", "--set", "lite", "--workers", 0
    )
    made = {row["clip_id"]: row for row in rows(place / "ors_results/mine/ors_scores.csv")}
    assert made.keys() == {"Barnyard_005", "007"} and float(made["007"]["ors"]) == 0.8
    with pytest.raises(UsageError, match="name the folder of its clips with --video-dirs"):
        memobench("ors", "--model-name", "nobody")


def test_llm_vqa_and_leaderboard(place: Path) -> None:
    with serving(judge) as server:
        file = settings(place, server.url)
        asked = CliRunner().invoke(
            app, ["judge", "questions", "data", "--judge", str(file), "--out", "data/vqa_questions", "--frames", "2"]
        )
        assert asked.exit_code == 0, asked.output
        memobench(
            "vqa", "--model-name", "mine", "--judge", file, "--video-dirs", "output/mine/Synthetic", "output/mine/Real",
            "--questions-dir", "data/vqa_questions", "--skip-existing", "--protocol", "upstream", "--workers", 0,
        )  # fmt: skip
    assert MODEL and {path.name for path in (place / "vqa_results/mine").glob("*-5.csv")} == {"Barnyard-5.csv"}
    memobench("eval", "--gen_root", "output/mine/Synthetic", "--workers", 0)
    said = memobench("leaderboard", "--eval-dir", "outputs", "--vqa-dir", "vqa_results", "--output", "board.csv")
    assert "VQA-IF" in said and "100.00" in said
    [row] = rows(place / "board.csv")
    assert row["Model"] == "mine" and row["VQA-IF"] == "100.0000" and row["ORS"] == ""
    again = memobench("leaderboard", "--load", "board.csv", "--format", "markdown", "--sort", "PSNR")
    assert "| mine |" in again and "VQA-IF" in again
    for format in ("latex", "csv", "html"):
        assert "mine" in memobench("leaderboard", "--format", format, "--subset", "synthetic")
    with pytest.raises(UsageError, match="there is no column 'x'"):
        memobench("leaderboard", "--sort", "x")
