"""`revisit memobench`: the public scripts' commands, up to the program's name and paths."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from revisit.cli.main import app
from revisit.core import UsageError
from revisit.evidence.judged import BankQuestion
from revisit.suites.memobench.exports import EVAL_COLUMNS
from revisit.suites.memobench.question_bank import Bank, write_bank
from tests.judging import MODEL, serving
from tests.suites.memobench.test_memo_judging import judge, settings
from tests.suites.memobench.test_suite_memobench import generated, make_dataset


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
    assert float(one["GT_ALL_PSNR"]) > 20 and one["CameraControllability"] == ""  # odometry is a stand-in
    assert (one["fx"], one["fy"]) == ("960.0", "950.0")  # of the dataset's intrinsics.npy
    memobench(
        "eval", "--mode", "both", "--gen_root_syn", "output/mine/Synthetic", "--gen_root_real", "output/mine/Real",
        "--out_csv", "all.csv", "--workers", 0,
    )  # fmt: skip
    assert [row["id"] for row in rows(place / "all.csv")] == ["Barnyard_005", "007"]
    memobench("eval", "--mode", "both", "--gen_root", "output/mine", "--out_csv", "tree.csv", "--workers", 0)
    assert rows(place / "tree.csv") == rows(place / "all.csv"), "each clip once"
    with pytest.raises(UsageError, match="would be evaluated twice: --mode both takes"):
        memobench("eval", "--mode", "both", "--gen_root", "output/mine/Synthetic")
    with pytest.raises(UsageError, match="no such folder of real clips; --mode synthetic evaluates the synthetic"):
        memobench("eval", "--mode", "both", "--gen_root_syn", "output/mine/Synthetic", "--gen_root_real", "none")
    memobench("eval", "--mode", "real", "--gen_root", "output/mine/Real", "--clip", "007", "--workers", 0)
    assert [row["id"] for row in rows(place / "outputs/mine/eval_real.csv")] == ["007"]
    with pytest.raises(UsageError, match="--mode takes synthetic, real or both"):
        memobench("eval", "--mode", "some")


def test_clips_of_another_folder_take_another_run_or_replace_it(place: Path) -> None:
    """Both ways out that the message names are options of this command."""
    eval_ = ("eval", "--model", "mine", "--workers", 0, "--gen_root")
    memobench(*eval_, "output/mine/Synthetic")
    generated(place / "output/other")
    with pytest.raises(UsageError, match=r"holds a run of .*choose another --out, or --fresh to replace it"):
        memobench(*eval_, "output/other/Synthetic")
    memobench(*eval_, "output/other/Synthetic", "--out", "runs/second")
    memobench(*eval_, "output/other/Synthetic", "--fresh")
    for run in ("runs/memobench", "runs/second"):
        request = json.loads((place / run / "mine/eval-synthetic/run.json").read_text())["request"]
        assert request["source"] == str(place / "output/other/Synthetic")


def records(run: str) -> dict[str, dict]:
    """Answers of a run of one clip, by metric."""
    lines = Path("runs/memobench/mine", run, "records.jsonl").read_text().splitlines()
    return {record["metric"]: record for record in map(json.loads, lines) if record["status"] == "scored"}


def test_max_side_and_sample_step_are_those_of_the_frames(place: Path) -> None:
    frames = ("--gen_root", "output/mine/Synthetic", "--protocol", "upstream", "--workers", 0)
    written = place / "outputs/mine/eval_synthetic.csv"
    memobench("eval", *frames)
    before = records("eval-synthetic")["memo_motion_smoothness"]["facts"]
    assert before["step"] == 4 and before["compared_at"] == [64, 48]  # smaller than 640, and never enlarged
    assert float(rows(written)[0]["GT_ALL_PSNR"]) == pytest.approx(psnr_by_opencv(place, (64, 48)), abs=1e-3)
    memobench("eval", "--max_side", 32, "--sample_step", 2, *frames)
    after = records("eval-synthetic")["memo_motion_smoothness"]["facts"]
    assert after["step"] == 2 and after["compared_at"] == [32, 24]
    assert sum(after["pairs"].values()) > sum(before["pairs"].values())
    assert float(rows(written)[0]["GT_ALL_PSNR"]) == pytest.approx(psnr_by_opencv(place, (32, 24)), abs=1e-3)


def psnr_by_opencv(place: Path, size: tuple[int, int]) -> float:
    """Mean PSNR of the clip, its frames and those of the ground truth as OpenCV reads them, at this size by area."""
    import cv2

    def pictures(folder: str) -> list[np.ndarray]:
        read = (cv2.imread(str(path)) for path in sorted((place / folder).iterdir()))
        return [cv2.resize(picture, size, interpolation=cv2.INTER_AREA) for picture in read]

    shown = pictures("output/mine/Synthetic/Barnyard/Barnyard_005/frames")
    truth = pictures("data/Synthetic_processed/Barnyard/Barnyard_005/RGB5")
    partners = [truth[round(k * (len(truth) - 1) / (len(shown) - 1))] for k in range(len(shown))]
    return float(np.mean([cv2.PSNR(*pair) for pair in zip(shown, partners, strict=True)]))


def test_quality_is_rated_on_every_so_many_frames(place: Path) -> None:
    """What was rated lies in files here, so --sample_step says which of their frames count."""
    from revisit.suites.memobench.commands import Evaluations

    ratings = place / "rated/aesthetic"
    ratings.mkdir(parents=True)
    np.savez(ratings / "Barnyard_005.npz", index=np.arange(12), value=np.arange(12.0), maker="made up")
    means = {}
    evaluations = Evaluations(Path("data"), "lite", "upstream", 0, json=False)
    for step in (None, 3):
        evaluations.score_clips_into_run(
            Path("output/mine/Synthetic"), "mine", ["memo_aesthetic"], ["evidence=rated"],
            Path("runs/memobench/mine/rated"), sampling={} if step is None else {"step": step},
        )  # fmt: skip
        means[step] = records("rated")["memo_aesthetic"]["score"]
    assert means == {None: np.mean([0, 4, 8]), 3: np.mean([0, 3, 6, 9])}


def test_prompt_sources(place: Path) -> None:
    """The prompts of a file count before the dataset's, for the clips that it has and does not skip."""
    from revisit.suites.memobench.read import read

    (place / "syn.csv").write_text("video_folder,prompt,skip\nBarnyard_005,A cow walks.,no\nBarnyard_006,x,yes\n")
    (place / "real.csv").write_text("id,prompt\n7,Water is poured.\n")
    (place / "shipped.csv").write_text('scene,video_id,subject,prompt\nBarnyard,5,cow,"A cow, walking."\n')

    def prompt(**options: str) -> dict[str, str]:
        return {case.sample: case.prompt for case in read(place / "output/mine", gt=str(place / "data"), **options)}

    dataset = {"Barnyard_005": "sees a pig(subject) running, then", "007": "A tube."}
    assert prompt() == dataset
    assert prompt(prompts=str(place / "syn.csv")) == {**dataset, "Barnyard_005": "A cow walks."}
    assert prompt(prompts=str(place / "real.csv")) == {**dataset, "007": "Water is poured."}
    assert prompt(prompts=str(place / "shipped.csv")) == {**dataset, "Barnyard_005": "A cow, walking."}
    asked = next(iter(read(place / "output/mine", gt=str(place / "data"), prompts=str(place / "syn.csv"))))
    assert asked.annotations["ors_prompt"] == "a pig(subject) running"  # the target is the dataset's
    (place / "bad.csv").write_text("clip,text\n7,x\n")
    with pytest.raises(UsageError, match="expected video_folder or id, and prompt"):
        prompt(prompts=str(place / "bad.csv"))

    memobench(
        "eval", "--mode", "both", "--gen_root_syn", "output/mine/Synthetic", "--gen_root_real", "output/mine/Real",
        "--prompt_src_syn", "syn.csv", "--prompt_src_real", "real.csv", "--workers", 0,
    )  # fmt: skip
    kept = {split: Path(f"runs/memobench/mine/eval-{split}/run.json").read_text() for split in ("synthetic", "real")}
    assert "syn.csv" in kept["synthetic"] and "real.csv" in kept["real"] and "syn.csv" not in kept["real"]
    # The file that the public manual names is not part of the dataset; upstream goes on without a word.
    said = memobench(
        "eval", "--mode", "synthetic", "--gen_root", "output/mine/Synthetic",
        "--prompt_src_syn", "data/Synthetic_processed/metadata.csv", "--run", "other", "--workers", 0,
    )  # fmt: skip
    assert "metadata.csv: there is no such file; the prompts of the dataset are used" in said


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
    with pytest.raises(UsageError, match="give the folder of its clips with --video-dirs"):
        memobench("ors", "--model-name", "nobody")
    splits = ("--video-dirs", "output/mine/Synthetic", "--video-dirs", "output/mine/Real", "--run", "by_split")
    memobench("ors", "--model-name", "mine", *splits, "--detections", "found", "--set", "lite", "--workers", 0)
    assert {row["clip_id"]: row for row in rows(place / "ors_results/mine/ors_scores.csv")} == made


def test_a_model_is_found_however_its_folder_is_spelled(place: Path) -> None:
    (place / "output/mine").rename(place / "output/my-model")
    (place / "found").mkdir()
    masks = [{"frame": k, "masks": [{"coverage": 0.1, "score": 0.8}]} for k in range(12)]
    (place / "found/007.json").write_text(json.dumps({"prompt": "a tube", "frames": masks}))
    files = ("--detections", "found", "--set", "lite", "--workers", 0)
    memobench("ors", "--model-name", "MyModel", "--output-dir", "results/ors/", *files)
    assert len(rows(place / "results/ors/MyModel/ors_scores.csv")) == 1
    memobench("ors", "--model-name", "all", *files)
    assert len(rows(place / "ors_results/my-model/ors_scores.csv")) == 1
    memobench("eval", "--mode", "real", "--gen_root", "output/my-model/Real", "--device", "cpu", "--workers", 0)
    folders = ("--eval-dir", "outputs/", "--ors-dir", "results/ors/")
    said = memobench("leaderboard", *folders, "--output", "board.csv")
    assert [row["Model"] for row in rows(place / "board.csv")] == ["my-model", "mymodel"]  # as leaderboard.py has it
    assert "my-model and mymodel look like one model" in " ".join(said.split())
    memobench("leaderboard", *folders, "--output", "board.csv", "--merge")
    [row] = rows(place / "board.csv")
    assert row["GT_ALL_PSNR"] and row["ORS"] == "80.0000"


def test_llm_vqa_asks_gemini_where_no_other_judge_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REVISIT_JUDGE_MODEL", "REVISIT_JUDGE_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "")  # so that what the command sets is forgotten afterwards
    with pytest.raises(UsageError, match="set GEMINI_API_KEY to use Gemini"):
        memobench("vqa", "--model-name", "mine")
    monkeypatch.setenv("GEMINI_API_KEY", "a-key")
    with serving(judge) as server:
        monkeypatch.setattr("revisit.suites.memobench.commands.GEMINI", server.url)
        monkeypatch.setattr("revisit.suites.memobench.commands.GEMINI_MODEL", MODEL)
        file = settings(place, server.url)
        made = ["judge", "questions", "data", "--judge", str(file), "--out", "data/vqa_questions", "--frames", "2"]
        assert CliRunner().invoke(app, made).exit_code == 0
        foretold = [
            "plan",
            "output/mine",
            "--option",
            "gt=data",
            "-m",
            "vqa",
            "--protocol",
            "paper",
            "--judge",
            str(file),
            "--no-truth",
        ]
        planned = CliRunner().invoke(app, foretold)
        assert planned.exit_code == 0 and "2 calls" in planned.output, planned.output  # frames at their own size
        memobench("vqa", "--model-name", "mine", "--workers", 0)
        memobench("vqa", "--model-name", "mine", "--skip-existing", "--model-id", MODEL, "--workers", 0)
    assert (place / "vqa_results/mine/Barnyard-5.csv").is_file()


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
        generated(place / "output/other", seed=5)
        memobench(
            "vqa", "--model-name", "all", "--judge", file, "--output-dir", "answers", "--run", "all", "--workers", 0
        )
    assert {path.name for path in (place / "answers").glob("*/Barnyard-5.csv")} == {"Barnyard-5.csv"}
    assert sorted(path.parent.name for path in (place / "answers").glob("*/Barnyard-5.csv")) == ["mine", "other"]
    assert MODEL and {path.name for path in (place / "vqa_results/mine").glob("*-5.csv")} == {"Barnyard-5.csv"}
    assert len(rows(place / "vqa_results/mine/overall.csv")) == 2  # of both folders
    memobench("eval", "--gen_root", "output/mine/Synthetic", "--workers", 0)
    said = memobench("leaderboard", "--eval-dir", "outputs", "--vqa-dir", "vqa_results", "--output", "board.csv")
    assert "VQA-IF" in said and "100" in said
    [row] = rows(place / "board.csv")
    assert row["Model"] == "mine" and row["InstructionFollowing"] == "100.0000" and row["ORS"] == ""
    again = memobench("leaderboard", "--load", "board.csv", "--format", "markdown", "--sort", "PSNR")
    assert "| mine |" in again and "VQA-IF" in again
    for format in ("latex", "csv", "html"):
        assert "mine" in memobench("leaderboard", "--format", format, "--subset", "synthetic")
    with pytest.raises(UsageError, match="unknown column 'x'"):
        memobench("leaderboard", "--sort", "x")


def test_a_review_sheet_that_is_no_utf_8_is_named(tmp_path: Path, revisit: Any) -> None:
    """As a spreadsheet in Windows-1252 saves it."""
    questions = [BankQuestion(1, "Physics Adherence", True, "Does the caf\u00e9 door swing?")]
    bank = tmp_path / "Barnyard-1-questions.csv"
    bank.write_text(write_bank(Bank("Barnyard", 1, tuple(questions), (), (), (), tuple(questions))))
    sheet = tmp_path / "Barnyard-1-review.csv"
    sheet.write_bytes("ID,Question\n1,Does the caf\u00e9 door swing?\n".encode("cp1252"))
    said = revisit("judge", "review", bank, check=1).stderr
    assert f"{sheet.name}: it is not a UTF-8 text file" in said
