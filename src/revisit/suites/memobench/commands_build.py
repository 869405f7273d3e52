"""`revisit build memobench`: a dataset in MemoBench's layout from recordings and a table of marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.judge import FRAMES, open_judge_client, read_spread_frames
from revisit.cli.options import JSON, out_option

WIDTH = 384  # pixels: what odometry works with


def build(
    videos: Path = typer.Argument(help="A folder of mp4 files that look away and come back."),
    marks: Path = typer.Option(..., help="CSV or xlsx: video, exits, returns, and where known subject and prompt."),
    out: Path = out_option("An empty folder; the dataset is made in data/.", required=True),
    judge: str = typer.Option("", "--judge", help="A judge file, url or recorded answers, for subjects and questions."),
    frames: int = FRAMES,
    questions: bool = typer.Option(True, "--questions/--no-questions", help="Write question banks with the judge."),
    poses: bool = typer.Option(True, "--poses/--no-poses", help="Estimate the camera's turns by odometry."),
    licence: str = typer.Option(..., "--licence", help="Of the recordings; it goes onto the card."),
    source: str = typer.Option(..., help="Where the recordings are from; it goes onto the card."),
    json: bool = JSON,
) -> None:
    """Make a dataset in MemoBench's layout from recordings.

    Numbers them, estimates their camera, writes sheets, subjects, question banks and sheets for review.
    """
    from contextlib import ExitStack

    from revisit.suites.memobench.build import fill_subject_and_prompt, read_marked_recordings, write_memobench_dataset

    recordings = read_marked_recordings(marks, videos)
    with ExitStack() as stack:
        client: Any = stack.enter_context(open_judge_client(judge)) if judge else None
        described = [
            fill_subject_and_prompt(client, one, lambda path: read_spread_frames(path, frames)) for one in recordings
        ]
        banks = (lambda data: _write_question_banks(client, data, frames)) if client is not None and questions else None
        estimate = estimate_camera_turns if poses else lambda video: "no poses were estimated"
        data, notes = write_memobench_dataset(out, described, estimate, licence=licence, source=source, banks=banks)
    for sentence in notes if poses else ():
        console.print_to_stderr(sentence)
    if json:
        console.print_json({"dataset": str(data), "recordings": len(recordings), "notes": list(notes)})
    else:
        typer.echo(f"revisit build check {data}")


def _write_question_banks(client: Any, data: Path, frames: int) -> None:
    """Question banks of the whole set, each with a sheet for review."""
    from revisit.suites.memobench.commands_judge import _make_and_write_bank
    from revisit.suites.memobench.ground_truth import MemoBenchDataset
    from revisit.suites.memobench.question_pipeline import make_bank_tasks

    dataset = MemoBenchDataset(data)
    tasks, left_out = make_bank_tasks(dataset, dataset.read_metadata())
    for sentence in left_out:
        console.print_to_stderr(sentence)
    for task in tasks:
        _make_and_write_bank(client, task, frames, data / "vqa_questions", {})


def estimate_camera_turns(video: Path) -> Any:
    """The camera's turns by odometry, forwards and backwards; how far both are apart is its own error."""
    import cv2
    import numpy as np

    from revisit.core import OBSERVERS, Clip, RevisitError
    from revisit.geometry.poses import make_rigid_poses, make_trajectory, resample
    from revisit.geometry.rotations import angle_between_rotations
    from revisit.media import open_clip
    from revisit.suites.memobench.build import PoseEstimate

    small = []
    with open_clip(Clip(video)) as stream:
        info = stream.info
        for frame in stream:
            height = round(frame.rgb.shape[0] * WIDTH / frame.rgb.shape[1])
            fits = frame.rgb.shape[1] <= WIDTH
            small.append(frame.rgb if fits else cv2.resize(frame.rgb, (WIDTH, height), interpolation=cv2.INTER_AREA))
    rgb_frames = np.stack(small)
    try:
        there, back = (OBSERVERS["lite.odometry"](rgb) for rgb in (rgb_frames, rgb_frames[::-1].copy()))
    except RevisitError as error:
        return f"its poses are left out: {error}"
    if not (there.reliable.all() and back.reliable.all()):
        return "its poses are left out: odometry loses the picture somewhere"

    def pose_of_every_frame(odometry: Any) -> Any:
        path = make_trajectory(make_rigid_poses(odometry.rotation), odometry.index)
        return resample(path, np.arange(len(rgb_frames))).c2w

    forward, backward = pose_of_every_frame(there), pose_of_every_frame(back)[::-1]
    reversed_turns = backward[0, :3, :3].T @ backward[:, :3, :3]
    focal = info.width / 2 / np.tan(np.radians(there.field_of_view) / 2)
    K = np.array([[focal, 0, info.width / 2], [0, focal, info.height / 2], [0, 0, 1.0]])
    apart = float(angle_between_rotations(forward[:, :3, :3], reversed_turns).max())
    return PoseEstimate(forward, apart, K, "odometry, turns only")
