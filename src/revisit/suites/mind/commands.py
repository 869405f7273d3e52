"""`revisit mind`: the command of MIND's public evaluator, with its flags, on our engine.

The run lies in a folder of its own (--run), as that of `revisit eval` does; --output gets a copy of its result.json,
which grows with every clip.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import typer

from revisit.cli import console
from revisit.cli.eval_ import run_evaluation, write_report_and_print_summary
from revisit.cli.judge import FRAMES, open_judge_client, read_spread_frames
from revisit.cli.options import FRESH, JSON, QUIET, WORKERS, out_option, run_option

DINO = "dinov3-base"
DINO_PATH = Path("dinov3_vitb16")  # where the public evaluator looks
CACHED_FILES = {  # weights -> where the public evaluator keeps them below its cache
    "musiq-spaq": "pyiqa_model/musiq_spaq_ckpt-358bb6af.pth",
    "clip-vit-l-14-openai": "clip_model/ViT-L-14.pt",
    "laion-aesthetic-v1": "vitl_model/sa_0_4_vit_l_14_linear.pth",
}


def evaluate_mind_predictions(
    gt_root: Path = typer.Option(..., "--gt_root", help="The dataset, with 1st_data/test and 3rd_data/test."),
    test_root: Path = typer.Option(..., "--test_root", help="The predictions of one model."),
    dino_path: Path = typer.Option(
        None,
        "--dino_path",
        help="Folder of DINOv3's weights; ./dinov3_vitb16 by default, or the weights of `revisit weights`.",
    ),
    num_gpus: int = typer.Option(1, "--num_gpus", min=1, help="Number of GPUs to use; at most those available."),
    video_max_time: int = typer.Option(
        None, "--video_max_time", min=1, help="Only the first N frames of a prediction, for lcm, visual and dino."
    ),
    output: Path = typer.Option(None, "--output", help="The JSON file; result_<model>_<time>.json by default."),
    metrics: str = typer.Option(
        "lcm,visual,dino,action,gsc", "--metrics", help="Groups or metrics, separated by commas."
    ),
    poses: str = typer.Option("", help="Folder of poses that `revisit camera poses` estimated, for action."),
    protocol: str = typer.Option(None, help="corrected (default) or upstream."),
    observer_set: str = typer.Option("paper", "--set", metavar="SET", help="Observer set."),
    run: Path = run_option("Run directory; runs/<name of the predictions> by default."),
    workers: int = WORKERS,
    fresh: bool = FRESH,
    report: bool = typer.Option(False, "--report/--no-report", help="Also write the HTML report."),
    quiet: bool = QUIET,
    json: bool = JSON,
) -> None:
    """MIND: score a model's predictions, as its evaluator does. The same command resumes."""
    from dataclasses import replace

    from revisit.core import METRICS, SUITES, UsageError
    from revisit.engine.request import Request
    from revisit.media.files import atomic_write_path

    _use_dino_weights(dino_path)
    _install_cached_weights(Path(os.environ.get("MIND_CACHE_DIR") or "~/.cache/mind").expanduser())
    _select_gpus(num_gpus)
    for folder, flag in ((gt_root, "--gt_root"), (test_root, "--test_root")):
        if not folder.is_dir():
            raise UsageError(f"{flag} {folder}: there is no such folder")
    name = test_root.resolve().name
    options = [f"gt={gt_root.resolve()}", f"model={name}", *([f"poses={poses}"] if poses else [])]
    request = Request.from_options(
        test_root, "mind", observer_set, protocol, [metrics], None, "auto", [], options, truth=False
    )
    if video_max_time is not None:
        metrics_used = [METRICS[metric] for metric in SUITES["mind"].resolve_check_ids([metrics]) if metric in METRICS]
        limit = {"video_max_time": video_max_time}
        limited = [one.id for one in metrics_used if limit.keys() <= one.params.keys()]
        request = replace(request, parameters=dict.fromkeys(limited, limit))
    json_path = output or Path(f"result_{name}_{datetime.now():%Y-%m-%d-%H:%M:%S}.json")

    def copy_result_json(folder: Path) -> None:
        with atomic_write_path(json_path) as temporary:
            shutil.copyfile(folder / "result.json", temporary)

    place = run or Path("runs") / name
    finished_run = run_evaluation(request, place, quiet=quiet, fresh=fresh, workers=workers, on_export=copy_result_json)
    code = write_report_and_print_summary(finished_run, report=report, show_all=True, json=json)
    console.print_to_stderr(f"results: {json_path}")
    raise typer.Exit(code)


def _use_dino_weights(folder: Path | None) -> None:
    """Take DINOv3's weights from this folder, or from the public evaluator's own where there is one."""
    from revisit.core import UsageError
    from revisit.weights.weights_folder import folder_variable_of

    weights_folder = folder or DINO_PATH
    if weights_folder.is_dir():
        os.environ[folder_variable_of(DINO)] = str(weights_folder.resolve())
    elif folder is not None:
        raise UsageError(f"--dino_path {folder}: there is no such folder; it holds model.safetensors and config.json")


def _install_cached_weights(cache: Path) -> None:
    """Install the weights that the public evaluator has fetched before, where they are not installed yet."""
    import tempfile

    from revisit.weights.lock import require_lock_entry
    from revisit.weights.pull import pull_weights
    from revisit.weights.weights_folder import find_local_weights

    files = {
        id: cache / place
        for id, place in CACHED_FILES.items()
        if (cache / place).is_file() and isinstance(find_local_weights(require_lock_entry(id)), str)
    }
    if not files:
        return
    with tempfile.TemporaryDirectory() as mirror:
        for id, path in files.items():
            place = Path(mirror) / id / path.name
            place.parent.mkdir()
            place.symlink_to(path.resolve())
        outcomes = pull_weights(list(files), offline=True, mirror=mirror)
    for outcome in outcomes:
        console.print_to_stderr(f"{outcome.id}: {outcome.state} from {files[outcome.id]}")


def _select_gpus(number: int) -> None:
    """Let the networks run on as many GPUs as were asked for, or as there are."""
    from importlib.util import find_spec

    from revisit.networks import settings

    if number < 2 or find_spec("torch") is None:
        return
    import torch

    available = torch.cuda.device_count()
    if available < number:
        console.print_to_stderr(f"--num_gpus {number}: only {available} available, which the networks run on")
    if available:
        os.environ[settings.DEVICE] = ",".join(f"cuda:{k}" for k in range(min(number, available)))


def build_mind_dataset(
    recordings: Path = typer.Argument(help="A folder of <name>.mp4 with <name>.keys.csv or <name>.poses.npy."),
    out: Path = out_option("An empty folder; the dataset is made in MIND-Data/.", required=True),
    perspective: str = typer.Option("1st_data", help="1st_data or 3rd_data."),
    mark: float = typer.Option(0.5, help="Share of a recording that is context; the rest is to be predicted."),
    metres: float = typer.Option(0.05, help="What a key walks in a frame, where only keys are known."),
    degrees: float = typer.Option(2.0, help="What a key turns in a frame, where only keys are known."),
    judge: str = typer.Option("", "--judge", help="A judge, for captions and kinds of scenes."),
    frames: int = FRAMES,
    scenes: Path = typer.Option(None, help="CSV with name and kind of scene; it goes before what a judge says."),
    licence: str = typer.Option(..., "--licence", help="Of the recordings; it goes onto the card."),
    source: str = typer.Option(..., help="Where they are from; it goes onto the card."),
    json: bool = JSON,
) -> None:
    """Make a dataset in MIND's layout from recordings.

    Writes action.json and images.txt, and the ten go-and-return tests from the first frames.
    """
    from revisit.suites.authoring import videos_in
    from revisit.suites.mind.build import write_mind_dataset
    from revisit.suites.mind.read import read_scene_kinds
    from revisit.suites.mind.world_keys import KeySteps

    videos = videos_in(recordings)
    table = {} if scenes is None else read_scene_kinds(None, scenes)  # before a judge is paid
    captions, kinds, trouble = _caption_recordings(videos, judge, frames) if judge else ({}, {}, [])
    kinds |= {name: kind for (_, name), kind in table.items()}
    data, left_out = write_mind_dataset(
        out, videos, perspective=perspective, mark=mark, steps=KeySteps(metres, degrees), licence=licence,
        source=source, captions=captions, kinds=kinds,
    )  # fmt: skip
    for sentence in (*trouble, *(f"left out: {sentence}" for sentence in left_out)):
        console.print_to_stderr(sentence)
    if json:
        console.print_json({"dataset": str(data), "left_out": list(left_out), "problems": list(trouble)})
    else:
        typer.echo(f"revisit build check {data}")
    raise typer.Exit(1 if trouble else 0)


def _caption_recordings(
    videos: Sequence[Path], judge: str, frames: int
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Captions and kinds of scenes by the names of recordings, as a judge tells them, and what it could not tell."""
    from revisit.suites.mind.build import CAPTION

    captions: dict[str, str] = {}
    kinds: dict[str, str] = {}
    trouble = []
    with open_judge_client(judge) as client:
        futures = [client.submit_questions(read_spread_frames(video, frames), [CAPTION])[0] for video in videos]
        for video, future in zip(videos, futures, strict=True):
            name, answer = video.stem, future.result()
            if answer.status == "answered":
                captions[name], kinds[name] = answer.value["caption"], answer.value["kind"]
            else:
                trouble.append(f"{name}: the judge wrote no caption: {answer.reason}")
    return captions, kinds, trouble


COMMANDS = {"build mind": build_mind_dataset, "mind": evaluate_mind_predictions}
