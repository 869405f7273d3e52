"""`revisit memobench`: the commands of the public scripts, with their flags, on our engine.

`eval` (run_eval.py), `ors` (compute_ors.py), `vqa` (llm-vqa.py) and `leaderboard` (leaderboard.py) write the files that
the public scripts write, where they write them. A model need not be registered in a source file: it is the folder that
is named. Everything else that Revisit does with a run works on these runs, too; they lie below --run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.eval_ import run_evaluation
from revisit.cli.help import Commands
from revisit.cli.options import FRESH, JSON, WORKERS, run_option
from revisit.suites.memobench import commands_build

app = Commands("MemoBench: the commands of its public scripts.")

DATA = typer.Option(Path("data"), help="The dataset, with Synthetic_processed and Real_Raw.")
SET = typer.Option("lite", "--set", metavar="SET", help="Observer set.")
PROTOCOL = typer.Option(None, help="corrected (default), upstream or paper.")
RUN = run_option("Folder of the runs.", Path("runs/memobench"))
MODEL_NAME = typer.Option(..., "--model-name", help="The model: a folder in output/, or a name.")
SKIP_EXISTING = typer.Option(
    False, "--skip-existing", help="Accepted for compatibility: existing answers are always kept."
)
OUTPUT = Path("output")  # where the public scripts look for clips
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"  # whom llm-vqa.py asks, as a server of our protocol
GEMINI_KEY, GEMINI_MODEL = "GEMINI_API_KEY", "gemini-3.1-pro-preview"


@app.command("eval")
def score_automated_metrics(
    mode: str = typer.Option("synthetic", help="synthetic, real or both."),
    gen_root: Path = typer.Option(
        None,
        "--gen_root",
        help="Generated clips of the split, or the folder above; output/Synthetic or output/Real by default.",
    ),
    gen_root_syn: Path = typer.Option(None, "--gen_root_syn", help="Synthetic clips, for --mode both."),
    gen_root_real: Path = typer.Option(None, "--gen_root_real", help="Real clips, for --mode both."),
    prompt_src_syn: Path = typer.Option(
        None,
        "--prompt_src_syn",
        help="CSV of the synthetic clips' prompts (video_folder, prompt); the dataset's by default.",
    ),
    prompt_src_real: Path = typer.Option(
        None,
        "--prompt_src_real",
        help="CSV of the real clips' prompts (id or video_folder, prompt); the dataset's by default.",
    ),
    clip: str = typer.Option("", help="Only this clip, such as Barnyard_001."),
    scene: str = typer.Option("", help="Only clips of this scene."),
    max_side: int = typer.Option(
        None, "--max_side", min=16, help="Longest side of frames in pixels; the protocol's value (640) by default."
    ),
    sample_step: int = typer.Option(
        None,
        "--sample_step",
        min=1,
        help="Use every N-th frame for motion and quality; the protocol's value by default.",
    ),
    device: str = typer.Option("", help="cuda, cuda:1 or cpu."),
    out_csv: Path = typer.Option(None, "--out_csv", help="The CSV file; outputs/<model>/eval_<mode>.csv by default."),
    camera_ctrl: bool = typer.Option(True, "--camera_ctrl/--no-camera_ctrl", help="Also evaluate camera control."),
    model: str = typer.Option("", help="Name of the model; the name of the folder above the split by default."),
    data: Path = DATA,
    observer_set: str = SET,
    protocol: str = PROTOCOL,
    run: Path = RUN,
    fresh: bool = FRESH,
    workers: int = WORKERS,
    json: bool = JSON,
) -> None:
    """Score the automated metrics of clips, as run_eval.py does. One CSV file with a row per clip."""
    from revisit.core import UsageError
    from revisit.networks import settings
    from revisit.suites.memobench.metrics import OWN

    if mode not in ("synthetic", "real", "both"):
        raise UsageError(f"--mode takes synthetic, real or both, not {mode!r}")
    if device:
        os.environ[settings.DEVICE] = device
    splits = ("synthetic", "real") if mode == "both" else (mode,)
    named = {"synthetic": gen_root_syn, "real": gen_root_real}
    roots = {split: named[split] or _clips_folder_of_split(gen_root, split.capitalize()) for split in splits}
    for split in splits:
        if not roots[split].is_dir():
            other = "synthetic" if split == "real" else "real"
            hint = f"; --mode {other} evaluates the {other} clips alone" if mode == "both" else ""
            raise UsageError(f"{roots[split]}: there is no such folder of {split} clips{hint}")
    if mode == "both" and roots["synthetic"].resolve() == roots["real"].resolve():
        raise UsageError(
            f"{roots['real']} would be evaluated twice: --mode both takes --gen_root_syn and --gen_root_real, or a "
            "--gen_root with the folders Synthetic and Real"
        )
    left_out = {"memo_ors", *(() if camera_ctrl else ("memo_camera",))}
    metrics = [metric for metric in OWN if metric not in left_out and not metric.startswith("memo_vqa")]
    only = [f"only={','.join(filter(None, (clip, scene)))}"] if clip or scene else []
    prompts = {"synthetic": ("--prompt_src_syn", prompt_src_syn), "real": ("--prompt_src_real", prompt_src_real)}
    sampling = {name: value for name, value in (("long_side", max_side), ("step", sample_step)) if value is not None}
    evaluations = Evaluations(data, observer_set, protocol, workers, json, fresh)
    files: list[Path] = []
    for split in splits:
        name = model or _model_name_of_clips_folder(roots[split])
        options, place = [*only, *_prompt_file_option(*prompts[split])], run / name / f"eval-{split}"
        finished = evaluations.score_clips_into_run(roots[split], name, metrics, options, place, sampling=sampling)
        files += sorted((finished / "memobench_csv/outputs").rglob("eval_*.csv"))
    csv_path = out_csv or Path("outputs") / name / f"eval_{mode}.csv"
    _join_csv_files(files, csv_path)
    evaluations.print_summaries_if_json()


def _clips_folder_of_split(root: Path | None, split: str) -> Path:
    """The folder of a split: in the folder that the user named, or that folder where it has no splits."""
    if root is None:
        return OUTPUT / split
    return root / split if any((root / name).is_dir() for name in ("Synthetic", "Real")) else root


@app.command("ors")
def score_object_reappearance(
    model_name: str = MODEL_NAME,
    video_dirs: list[Path] = typer.Option([], "--video-dirs", help="Its folder; output/<model> by default."),
    output_dir: Path = typer.Option(Path("ors_results"), "--output-dir", help="Folder for <model>/ors_scores.csv."),
    skip_existing: bool = SKIP_EXISTING,
    detections: str = typer.Option("", help="Folder of detections by another program; the set's detector by default."),
    data: Path = DATA,
    observer_set: str = typer.Option("paper", "--set", metavar="SET", help="Observer set."),
    protocol: str = PROTOCOL,
    run: Path = RUN,
    fresh: bool = FRESH,
    workers: int = WORKERS,
    json: bool = JSON,
) -> None:
    """Score the object reappearance of clips, as compute_ors.py does."""
    options = [f"detections={detections}"] if detections else []
    evaluations = Evaluations(data, observer_set, protocol, workers, json, fresh)
    for name, folders in _clip_folders_by_model(model_name, video_dirs).items():
        files: list[Path] = []
        for number, folder in enumerate(folders):
            place = run / name / (f"ors-{number}" if number else "ors")
            finished = evaluations.score_clips_into_run(folder, name, ["memo_ors"], options, place)
            files += sorted((finished / "memobench_csv/ors_results").rglob("*.csv"))
        if files:
            _join_csv_files(files, output_dir / name / "ors_scores.csv")
    evaluations.print_summaries_if_json()


@app.command("vqa")
def score_question_answers(
    model_name: str = MODEL_NAME,
    video_dirs: list[Path] = typer.Option([], "--video-dirs", help="Its folders; output/<model> by default."),
    further: list[Path] = typer.Argument(None, help="Further folders after --video-dirs."),
    output_dir: Path = typer.Option(Path("vqa_results"), "--output-dir", help="Folder for <model>/<Scene>-<n>.csv."),
    questions_dir: Path = typer.Option(Path("data/vqa_questions"), "--questions-dir", help="Folder of question banks."),
    cases_csv: Path = typer.Option(None, "--cases-csv", help="Only the clips of this list (failure-cases.csv)."),
    skip_existing: bool = SKIP_EXISTING,
    model_id: str = typer.Option("", "--model-id", help="Name of the judge's model, for Gemini or a url."),
    judge: str = typer.Option(
        "", "--judge", help="A judge file (YAML), a url, or recorded answers; Gemini by default, with $GEMINI_API_KEY."
    ),
    data: Path = DATA,
    observer_set: str = SET,
    protocol: str = PROTOCOL,
    run: Path = RUN,
    fresh: bool = FRESH,
    workers: int = WORKERS,
    json: bool = JSON,
) -> None:
    """Ask a judge the questions about clips, as llm-vqa.py does."""
    from revisit.suites.memobench.question_bank import read_failure_hints

    if model_id:
        os.environ["REVISIT_JUDGE_MODEL"] = model_id
    judge = judge or _configure_gemini_judge(model_id)
    options = [f"questions={questions_dir}"]
    if cases_csv is not None:
        options.append(f"only={','.join(read_failure_hints(cases_csv))}")
    evaluations = Evaluations(data, observer_set, protocol, workers, json, fresh)
    for name, folders in _clip_folders_by_model(model_name, [*video_dirs, *(further or [])]).items():
        overall: list[Path] = []
        for number, folder in enumerate(folders):
            place = run / name / f"vqa-{number}"
            finished = evaluations.score_clips_into_run(folder, name, ["vqa"], options, place, judge)
            _copy_result_csv_files(finished / "memobench_csv/vqa_results", output_dir / name)
            overall += (finished / "memobench_csv/vqa_results").rglob("overall.csv")
        if len(overall) > 1:
            _join_csv_files(overall, output_dir / name / "overall.csv")
    evaluations.print_summaries_if_json()


@app.command("leaderboard")
def print_or_save_leaderboard(
    eval_dir: Path = typer.Option(Path("outputs"), "--eval-dir", help="Folder with <model>/eval_*.csv."),
    ors_dir: Path = typer.Option(Path("ors_results"), "--ors-dir", help="Folder with <model>/ors_scores.csv."),
    vqa_dir: Path = typer.Option(Path("vqa_results"), "--vqa-dir", help="Folder with <model>/<Scene>-<n>.csv."),
    load: Path = typer.Option(
        None, "--load", help="A table that --output or leaderboard.py wrote, instead of result files."
    ),
    output: Path = typer.Option(None, "--output", help="Write the table as CSV, a row per model."),
    table_format: str = typer.Option(
        "terminal", "--format", metavar="FORMAT", help="terminal, markdown, latex, csv or html."
    ),
    sort: str = typer.Option("", "--sort", help="Column to sort by, such as ORS; the best come first."),
    subset: str = typer.Option("", "--subset", help="synthetic, real or all."),
    merge: bool = typer.Option(False, "--merge", help="MyModel and my-model are one model; leaderboard.py says two."),
    json: bool = JSON,
) -> None:
    """Compare the result files of models, as leaderboard.py does."""
    from revisit.cli.leaderboard import print_boards, require_sort_column
    from revisit.core import UsageError
    from revisit.suites.memobench.leaderboard import board_as_public_csv, board_from_public_folders, read_saved_board

    if subset.lower() not in ("", "synthetic", "real", "all"):
        raise UsageError(f"--subset takes synthetic, real or all, not {subset!r}")
    part = "" if subset.lower() == "all" else subset
    board = read_saved_board(load) if load else board_from_public_folders(eval_dir, ors_dir, vqa_dir, part, merge=merge)
    require_sort_column([board], sort)
    if output is not None:
        output.write_text(board_as_public_csv(board, sort=sort), encoding="utf-8")
        console.print_to_stderr(f"written: {output}")
    if json:
        console.print_json(board.as_json())
    elif table_format == "csv":
        console.print_to_stderr(board.note)
        typer.echo(board_as_public_csv(board, decimals=2, sort=sort))
    else:
        print_boards([board], table_format, sort)


@dataclass
class Evaluations:
    """Evaluations of one command, with what is the same for all of them."""

    data: Path
    observer_set: str
    protocol: str | None
    workers: int | None
    json: bool
    fresh: bool = False
    summaries: dict[str, Any] = field(default_factory=dict)  # folder of a run -> its summary

    def score_clips_into_run(
        self, source: Path, model: str, metrics: list[str], options: list[str], out: Path, judge: str = "",
        sampling: Mapping[str, int] | None = None,
    ) -> Path:  # fmt: skip
        """Score a folder of clips, and print what came of it unless JSON is printed later; the folder of the run."""
        from revisit.cli.run_summary import print_run_summary
        from revisit.engine.parameters import default_parameters_of_plan
        from revisit.engine.request import Request

        suite_options = [f"gt={self.data.resolve()}", f"model={model}", *options]
        request = Request.from_options(
            source, "memobench", self.observer_set, self.protocol, metrics, None, "auto", [], suite_options, judge,
            truth=False,
        )  # fmt: skip
        if sampling:  # for everything in the request that has a size or a step of frames
            parameters = {}
            for check, has in default_parameters_of_plan(request.plan()).items():
                if own := {name: value for name, value in sampling.items() if name in has}:
                    parameters[check] = own
            request = replace(request, parameters=parameters)
        finished_run = run_evaluation(request, out, fresh=self.fresh, workers=self.workers)
        self.summaries[str(finished_run.path)] = finished_run.summary
        if not self.json:
            print_run_summary(finished_run.summary, show_all=True, folder=finished_run.path)
        return finished_run.path

    def print_summaries_if_json(self) -> None:
        """Print the summaries of all runs, where JSON was asked for."""
        if self.json:
            console.print_json(self.summaries)


def _prompt_file_option(flag: str, file: Path | None) -> list[str]:
    """The option that names a file of prompts. The one that the public manual names is not in the dataset."""
    if file is not None and not file.is_file():
        console.print_to_stderr(f"{flag} {file}: there is no such file; the prompts of the dataset are used")
    return [f"prompts={file.resolve()}"] if file is not None and file.is_file() else []


def _configure_gemini_judge(model: str) -> str:
    """The url of the judge that the public script asks; its model and key are left where judges look for them."""
    from revisit.core import UsageError

    if not os.environ.get(GEMINI_KEY):
        raise UsageError(f"no judge was given: pass --judge, or set {GEMINI_KEY} to use Gemini")
    os.environ |= {"REVISIT_JUDGE_MODEL": model or GEMINI_MODEL, "REVISIT_JUDGE_KEY": os.environ[GEMINI_KEY]}
    return GEMINI


def _model_name_of_clips_folder(folder: Path) -> str:
    """The model of a folder of clips, which may be named after the split."""
    resolved = folder.resolve()
    return resolved.parent.name if resolved.name in ("Synthetic", "Real") else resolved.name


def _clip_folders_by_model(model: str, paths: list[Path]) -> dict[str, list[Path]]:
    """The folders of a model's clips, under its name; with `all` those of every model in output/, or among these."""
    from revisit.core import UsageError
    from revisit.core.grouping import group_items
    from revisit.suites.memobench.leaderboard import canonical_model_key

    folders = sorted(entry for entry in OUTPUT.iterdir() if entry.is_dir()) if OUTPUT.is_dir() else []
    if model == "all":
        return group_items(paths or folders, _model_name_of_clips_folder)
    if paths:
        return {model: paths}
    match = {canonical_model_key(entry.name): entry for entry in folders}.get(canonical_model_key(model))
    if match is None:
        raise UsageError(f"there is no {OUTPUT / model}; give the folder of its clips with --video-dirs")
    return {model: [match]}


def _copy_result_csv_files(results: Path, place: Path) -> None:
    """Copy the result files of a run to where the public script writes them."""
    place.mkdir(parents=True, exist_ok=True)
    for path in sorted(results.rglob("*.csv")):
        shutil.copyfile(path, place / path.name)
        console.print_to_stderr(f"results: {place / path.name}")


def _join_csv_files(files: list[Path], place: Path) -> None:
    """One CSV file of the rows of several; a column that only some of them have is empty in the others."""
    from revisit.media.files import write_text_atomically
    from revisit.media.text_files import csv_dict_reader, csv_text

    readers = [csv_dict_reader(path.read_text(encoding="utf-8")) for path in files]
    columns = list(dict.fromkeys(name for reader in readers for name in reader.fieldnames or ()))
    rows = ([row.get(name) or "" for name in columns] for reader in readers for row in reader)
    write_text_atomically(place, csv_text(columns, rows))
    console.print_to_stderr(f"results: {place}")


COMMANDS = {
    "build memobench": commands_build.build,
    "memobench": app,
    "judge questions": commands_build.write_question_banks,
    "judge wording": commands_build.extract_upstream_wording,
    "judge review": commands_build.apply_question_reviews,
}
