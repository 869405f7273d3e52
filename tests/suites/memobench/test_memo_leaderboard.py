"""MemoBench's table of models, in the columns and units of the public script, both ways.

`public_table` makes the table with pandas as the benchmark's description has it, apart from our code; `SCHEMA` is what
the description says of its columns.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from revisit.cli.main import app
from revisit.core import Case, MediaError, Record, UsageError
from revisit.results import Results
from revisit.suites.memobench import leaderboard
from revisit.suites.memobench.exports import FOLDER, export
from revisit.suites.memobench.leaderboard import board_as_public_csv, read_saved_board
from tests.suites.memobench.test_memo_exports import FACTS, case, scored

pd = pytest.importorskip("pandas", reason="needs pandas: pip install 'revisit-bench[tables]'")

PERCENT = (0.0, 100.0)
SCHEMA = {  # column -> range of its values, in the order of the file
    "VisualQuality": PERCENT, "MotionSmoothness": PERCENT, "ObjIdentityConsistency": PERCENT,
    "Geo3DConsistency": PERCENT, "CameraControllability": PERCENT, "ImageRewardScore": PERCENT, "ORS": PERCENT,
    "GT_ALL_PSNR": (0.0, 99.0), "GT_ALL_SSIM": (-1.0, 1.0), "GT_ALL_LPIPS": (0.0, 2.0), "InstructionFollowing": PERCENT,
    "ObjectBackground": PERCENT, "ContinuityOfMemory": PERCENT, "PhysicsAdherence": PERCENT,
}  # fmt: skip
QUESTIONS = {
    "Instruction Following": "InstructionFollowing",
    "Object and Background": "ObjectBackground",
    "Continuity of Memory": "ContinuityOfMemory",
    "Physics Adherence": "PhysicsAdherence",
}
EVAL = list(SCHEMA)[:6] + list(SCHEMA)[7:10]
KNOWN = {
    "Wan2.2": "Wan2.2",
    "wan2.2": "Wan2.2",
    "StableVirtualCamera": "SVC",
    "stable-virtual-camera": "SVC",
    "LTX-Video": "LTX-Video",
}


def command(*arguments: object) -> Any:
    done = CliRunner().invoke(app, ["memobench", "leaderboard", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def public_table(folder: Path) -> Any:
    """The table of all models by pandas: means over clips that skip what is missing, shares times 100."""
    rows: dict[str, dict[str, float]] = {}
    for path in sorted(folder.glob("outputs/*/eval_*.csv")):
        found = pd.read_csv(path)
        mine = rows.setdefault(KNOWN.get(path.parent.name, path.parent.name.lower()), {})
        for name in EVAL:
            column = "ImageRewardScore_pct" if name == "ImageRewardScore" else name
            mine[name] = found[column].mean()
    for path in sorted(folder.glob("ors_results/*/ors_scores.csv")):
        mine = rows.setdefault(KNOWN.get(path.parent.name, path.parent.name.lower()), {})
        mine["ORS"] = pd.read_csv(path)["ors"].mean() * 100
    for place in sorted(folder.glob("vqa_results/*")):
        tables = [pd.read_csv(path) for path in sorted(place.glob("*.csv"))]
        scores = [json.loads(text) for table in tables if "score" in table for text in table["score"]]
        mine = rows.setdefault(KNOWN.get(place.name, place.name.lower()), {})
        for said, name in QUESTIONS.items():
            mine[name] = pd.Series([100 * one.get(said, np.nan) for one in scores]).mean()
    made = pd.DataFrame([{"Model": model, **cells} for model, cells in rows.items()])
    return made.reindex(columns=["Model", *SCHEMA])


def cells(text: str) -> dict[str, dict[str, str]]:
    """Model -> column -> what is written."""
    table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    return {row["Model"]: row for row in table.to_dict("records")}


def draw_results(folder: Path) -> None:
    """Result files of four models as the public scripts write them: gaps, both splits, eleven and seven clips."""
    rng = np.random.default_rng(11)
    extra = ["CameraControllability_pct", "ImageRewardScore_pct", "GT_R_PSNR"]
    for model in ("Wan2.2", "stable-virtual-camera", "Nobody_7B", "über-modell"):
        ids = [f"Havana_{k:03d}" for k in range(1, 12)] + [f"{k:03d}" for k in (3, 19, 44, 71, 105, 106, 273)]
        values = {name: rng.uniform(*_span(name), len(ids)).round(4 if "GT_" in name else 2) for name in EVAL + extra}
        table = pd.DataFrame({"id": ids, "data_type": ["synthetic"] * 11 + ["real"] * 7, **values})
        for name in EVAL:
            table.loc[rng.random(len(ids)) < 0.3, name] = np.nan
        _write(folder / f"outputs/{model}/eval_both_20260714_101112.csv", table)
    for model in ("Wan2.2", "StableVirtualCamera", "Nobody_7B"):
        ors = pd.DataFrame({"clip_id": ids, "data_type": "real", "ors": rng.uniform(0, 1, len(ids)).round(4)})
        _write(folder / f"ors_results/{model}/ors_scores.csv", ors)
    for model in ("wan2.2", "Nobody_7B", "LTX-Video"):
        for scene, number in (("Zen_Garden", 3), ("Nordic", 14), ("Japanese_Street", 2)):
            score = {said: round(rng.uniform(), 4) for said in QUESTIONS if rng.random() < 0.9}
            one = pd.DataFrame([{"scene": scene, "video_id": number, "Evaluation": "[]", "score": json.dumps(score)}])
            _write(folder / f"vqa_results/{model}/{scene}-{number}.csv", one)
        overall = pd.DataFrame([{"scene": "Nordic", "video_id": 14, "Instruction Following": 0.5}])
        _write(folder / f"vqa_results/{model}/overall.csv", overall)


def _span(name: str) -> tuple[float, float]:
    return SCHEMA.get(name, PERCENT)


def _write(path: Path, table: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False)


def folders(place: Path) -> tuple[str, ...]:
    return (
        "--eval-dir", str(place / "outputs"), "--ors-dir", str(place / "ors_results"), "--vqa-dir",
        str(place / "vqa_results"),
    )  # fmt: skip


def test_the_published_example_comes_out_in_every_cell(shared: Path, tmp_path: Path) -> None:
    """Both files of the public script, byte by byte; and its own file once it was read and written again."""
    golden = shared / "golden/memobench_leaderboard"
    places = ("--eval-dir", golden / "outputs", "--ors-dir", golden / "ors", "--vqa-dir", golden / "vqa")
    done = command(*places, "--output", tmp_path / "board.csv", "--format", "csv")
    assert (tmp_path / "board.csv").read_bytes() == (golden / "upstream_output.csv").read_bytes()
    assert done.stdout == (golden / "upstream_format_csv.txt").read_text()
    command("--load", golden / "upstream_output.csv", "--output", tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (golden / "upstream_output.csv").read_bytes()


def test_the_table_of_a_public_script_has_its_values_on_the_board(shared: Path) -> None:
    golden = shared / "golden/memobench_leaderboard"
    board = read_saved_board(golden / "upstream_output.csv")
    theirs = pd.read_csv(golden / "upstream_output.csv").set_index("Model")
    titles = [column.title for column in board.columns]
    assert len(titles) == 14 and theirs.shape == (5, 14)
    for row in board.rows:
        for column, (name, value) in zip(board.columns, theirs.loc[row.model].items(), strict=True):
            mean = row.cell(column).mean
            if np.isnan(value):
                assert mean is None, (row.model, name)
            else:
                assert mean == pytest.approx(value / 100 if name == "ORS" else value), (row.model, name)


def test_result_files_of_the_public_scripts_give_their_table(tmp_path: Path) -> None:
    """On drawn results: every cell as pandas has it, the columns and units of the schema."""
    draw_results(tmp_path)
    expected = cells(public_table(tmp_path).to_csv(index=False, float_format="%.4f"))
    command(*folders(tmp_path), "--output", tmp_path / "board.csv")
    made = cells((tmp_path / "board.csv").read_text())
    assert made == expected and len(made) == 5 and sum(cell == "" for row in made.values() for cell in row.values()) > 8
    keep_to_schema(tmp_path / "board.csv")
    printed = cells(command(*folders(tmp_path), "--format", "csv").stdout)
    assert printed == cells(public_table(tmp_path).to_csv(index=False, float_format="%.2f"))
    shown = read_saved_board(tmp_path / "board.csv")
    assert board_as_public_csv(shown) == (tmp_path / "board.csv").read_text()


def keep_to_schema(path: Path) -> Any:
    """The table as pandas reads it, once its columns and ranges are those of the description."""
    table = pd.read_csv(path)
    assert list(table.columns) == ["Model", *SCHEMA]
    for name, (low, high) in SCHEMA.items():
        assert table[name].dropna().between(low, high).all(), name
    assert table["ORS"].max() > 1.5  # percent, not a share
    return table


def records(one: Case, rng: np.random.Generator) -> list[Record]:
    """Scores of every metric of the table, some of them missing."""
    whole = {"memo_psnr": 30, "memo_ssim": 1, "memo_lpips": 1}
    made = []
    for id, high in {**whole, "memo_visual_quality": 100, "memo_motion_smoothness": 100, "memo_identity": 100}.items():
        value = round(rng.uniform(0, high), 4 if id in whole else 2)
        made.append(scored(one, id, value, mean={"all": value}))
    for id in ("memo_geo3d", "memo_camera", "memo_image_reward"):
        made.append(scored(one, id, round(rng.uniform(0, 100), 1)))
    share = round(rng.uniform(), 4)
    made.append(scored(one, "memo_ors", share, ors=share, detection_rate=1.0, mean_confidence=share))
    if not one.sample.isdigit():
        dimensions = ("if", "ob", "cm", "pa")
        made += [scored(one, f"memo_vqa_{short}", float(rng.integers(0, 7)) * 12.5) for short in dimensions]
    return [record for record in made if rng.random() < 0.85]


def test_the_files_of_a_run_give_the_public_table(tmp_path: Path) -> None:
    """Ours, through a reader of the schema: the run's own leaderboard.csv, and that of the command on its files."""
    rng = np.random.default_rng(5)
    cases = [
        case(sample, model)
        for model in ("A model", "fast_one", "Zeta")
        for sample in ("Barnyard_001", "Barnyard_002", "Zen_Garden_004", "007", "016", "101")
    ]
    run = export(Path("run"), FACTS, Results(cases, [record for one in cases for record in records(one, rng)]))
    for name, text in run.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    files = tmp_path / FOLDER
    theirs = public_table(files).sort_values("Model", ignore_index=True)
    own = keep_to_schema(files / "leaderboard.csv")
    assert list(own["Model"]) == ["A model", "Zeta", "fast_one"]  # as the run calls them
    command(*folders(files), "--output", tmp_path / "board.csv")
    made = keep_to_schema(tmp_path / "board.csv")
    assert list(made["Model"]) == list(theirs["Model"]) == ["a_model", "fast_one", "zeta"]
    own = own.iloc[[0, 2, 1]].reset_index(drop=True)
    for name in SCHEMA:
        assert np.allclose(made[name], theirs[name].round(4), atol=1e-9, equal_nan=True), name
        assert np.allclose(made[name], own[name], atol=1.1e-4, equal_nan=True), name


def test_rows_are_written_in_the_order_that_is_asked_for(tmp_path: Path) -> None:
    draw_results(tmp_path)
    board = leaderboard.board_from_public_folders(
        tmp_path / "outputs", tmp_path / "ors_results", tmp_path / "vqa_results"
    )
    for sort, name, rising in (("LPIPS", "GT_ALL_LPIPS", True), ("ORS", "ORS", False)):
        table = pd.read_csv(io.StringIO(board_as_public_csv(board, sort=sort)))
        assert list(table["Model"]) == list(table.sort_values(name, ascending=rising)["Model"])
        command(*folders(tmp_path), "--output", tmp_path / "sorted.csv", "--sort", sort)
        assert (tmp_path / "sorted.csv").read_text() == board_as_public_csv(board, sort=sort)
    with pytest.raises(UsageError, match="unknown column 'Elo'"):
        command(*folders(tmp_path), "--output", tmp_path / "elo.csv", "--sort", "Elo")
    assert not (tmp_path / "elo.csv").exists()


def test_a_clip_that_only_others_have_counts_as_missing_and_is_said(tmp_path: Path) -> None:
    for model, clips in {"all": (1, 2, 3), "fewer": (1, 2)}.items():
        place = tmp_path / "outputs" / model / "eval_synthetic.csv"
        place.parent.mkdir(parents=True)
        lines = [f"Barnyard_{n:03d},Barnyard,synthetic,{40 - 10 * (n == 3)}" for n in clips]
        place.write_text("\n".join(["id,scene,data_type,GT_ALL_PSNR", *lines]) + "\n")
    board = leaderboard.board_from_public_folders(tmp_path / "outputs", None, None)
    cells = {row.model: row.cells["memo_psnr"] for row in board.rows}
    assert (cells["all"].n, cells["all"].of, cells["fewer"].n, cells["fewer"].of) == (3, 3, 2, 3)
    assert "models lack clips that others have (fewer 1), and each mean is over a model's own clips" in board.note
    alone = leaderboard.board_from_public_folders(tmp_path / "outputs", None, None, "real")
    assert "lack clips" not in alone.note


def test_a_subset_counts_its_own_clips(tmp_path: Path) -> None:
    draw_results(tmp_path)
    board = leaderboard.board_from_public_folders(tmp_path / "outputs", None, None, "real")
    table = pd.read_csv(tmp_path / "outputs/Nobody_7B/eval_both_20260714_101112.csv")
    expected = table[table["data_type"] == "real"]["GT_ALL_PSNR"].mean()
    row = next(row for row in board.rows if row.model == "nobody_7b")
    assert row.cells["memo_psnr"].mean == pytest.approx(expected) and row.cells["memo_psnr"].of == 7


def test_models_are_named_as_the_public_script_names_them(tmp_path: Path) -> None:
    """Eight models have names of their own; a folder of answers is passed over and said so; a small score, too."""
    head = "id,CameraControllability"
    for model in ("Lingbot", "FantasyWorld", "fantasyworld", "CogVideoX"):
        (tmp_path / f"outputs/{model}").mkdir(parents=True)
        (tmp_path / f"outputs/{model}/eval_real_1.csv").write_text(f"{head}\n001,0.4\n")
    (tmp_path / "vqa_results/Lingbot").mkdir(parents=True)
    score = json.dumps({"Physics Adherence": 0.25}).replace('"', '""')
    (tmp_path / "vqa_results/Lingbot/Nordic-1.csv").write_text(f'scene,video_id,score\nNordic,1,"{score}"\n')
    board = leaderboard.board_from_public_folders(tmp_path / "outputs", None, tmp_path / "vqa_results")
    assert [row.model for row in board.rows] == ["CogVideoX", "FantasyWorld", "fantasyworld", "LingBot-World"]
    assert all(row.cells["memo_vqa_pa"].mean is None for row in board.rows)
    assert "vqa_results/Lingbot: passed over, as the public script does" in board.note
    assert "FantasyWorld and fantasyworld look like one model" in board.note
    assert "is below 1 as in the files; the public script shows a hundred times that" in board.note
    merged = leaderboard.board_from_public_folders(tmp_path / "outputs", None, tmp_path / "vqa_results", merge=True)
    assert {row.model for row in merged.rows} == {"CogVideoX", "FantasyWorld", "Lingbot"}
    with pytest.raises(UsageError, match="no result files of the public scripts"):
        leaderboard.board_from_public_folders(tmp_path / "nowhere", None, None)


def test_tables_that_were_saved_before_still_open(tmp_path: Path) -> None:
    """Their heads are titles, and ORS is a share."""
    (tmp_path / "old.csv").write_text("Model,VisQual,ORS,PSNR,VQA-PA\nmine,41.5000,0.2500,15.1000,\n")
    board = read_saved_board(tmp_path / "old.csv")
    assert board.rows[0].cells["memo_ors"].mean == 0.25 and board.rows[0].cells["memo_psnr"].mean == 15.1
    command("--load", tmp_path / "old.csv", "--output", tmp_path / "new.csv")
    assert cells((tmp_path / "new.csv").read_text())["mine"]["ORS"] == "25.0000"


def test_what_is_wrong_with_a_saved_table_costs_its_cell_only(tmp_path: Path) -> None:
    (tmp_path / "odd.csv").write_text(
        "Model,ORS,GT_ALL_SSIM,GT_ALL_LPIPS,VQA-All,GT_ALL_PSNR\na,130,0.5,-1,7,n/a\nb,50,2.5,0.25,7,12.5\n"
    )
    board = read_saved_board(tmp_path / "odd.csv")
    first, second = ({id: cell.mean for id, cell in row.cells.items() if cell.mean is not None} for row in board.rows)
    assert first == {"memo_ssim": 0.5} and second == {"memo_ors": 0.5, "memo_lpips": 0.25, "memo_psnr": 12.5}
    for said in (
        "ORS of a is 130, but can be 0 to 100 only",
        "GT_ALL_SSIM of b is 2.5, but can be -1 to 1 only",
        "GT_ALL_LPIPS of a is -1, but can be 0 or more only",
        "GT_ALL_PSNR of a is 'n/a', which is no number",
        "not read, because the benchmark has no such column: VQA-All",
    ):
        assert said in board.note
    for head, sentence in (
        ("Model,Elo\na,1", "it has no column of the benchmark"),
        ("Model,VisQual,VisualQuality\na,1,1", "keep the names of one kind"),
        ("Name,ORS\na,1", "it has no column Model"),
    ):
        (tmp_path / "bad.csv").write_text(head + "\n")
        with pytest.raises(MediaError, match=sentence):
            read_saved_board(tmp_path / "bad.csv")


def test_a_part_that_the_benchmark_does_not_have_is_refused(tmp_path: Path) -> None:
    draw_results(tmp_path)
    words = ["memobench", "leaderboard", "--eval-dir", str(tmp_path / "outputs"), "--subset"]
    assert CliRunner().invoke(app, [*words, "Real"]).exit_code == 0
    with pytest.raises(UsageError, match="--subset takes synthetic, real or all, not 'xx'"):
        CliRunner().invoke(app, [*words, "xx"], catch_exceptions=False, standalone_mode=False)
