"""`revisit build memobench` makes a dataset in MemoBench's layout from recordings and a table of marks.

`revisit judge questions`, `wording` and `review` write question banks for such a dataset with a judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from revisit.cli import console
from revisit.cli.judge import FRAMES, JUDGE, open_judge_client, read_spread_frames
from revisit.cli.options import JSON, out_option

WIDTH = 384  # pixels: what odometry works with
ASKED_TWICE = 0.9  # likeness of two questions, by MiniLM


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
    console.print_to_stderr(*(notes if poses else ()))
    if json:
        console.print_json({"dataset": str(data), "recordings": len(recordings), "notes": list(notes)})
    else:
        typer.echo(f"revisit build check {data}")


def _write_question_banks(client: Any, data: Path, frames: int) -> None:
    """Question banks of the whole set, each with a sheet for review."""
    from revisit.suites.memobench.ground_truth import MemoBenchDataset
    from revisit.suites.memobench.question_pipeline import make_bank_tasks

    dataset = MemoBenchDataset(data)
    tasks, left_out = make_bank_tasks(dataset, dataset.read_metadata())
    console.print_to_stderr(*left_out)
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


def write_question_banks(
    truth: Path = typer.Argument(help="The true clip, or MemoBench's dataset for all of its clips."),
    prompt: str = typer.Option("", help="The prompt of the clip; not needed for a dataset."),
    scene: str = typer.Option("", help="Scene of the clip, such as Barnyard, or Real; not needed for a dataset."),
    number: int = typer.Option(
        None, min=0, max=999_999, help="Number of the clip in its scene; not needed for a dataset."
    ),
    failure: Path = typer.Option(
        None,
        help="A clip of the same prompt that fails; for a dataset, a folder of such clips with failure-cases.csv.",
    ),
    hint: str = typer.Option("", help="What is wrong with the failure clip."),
    metadata: Path = typer.Option(None, help="Folder of the dataset's metadata CSV files, if they are elsewhere."),
    judge: str = JUDGE,
    frames: int = FRAMES,
    wording: Path = typer.Option(None, help="YAML file with your own wording; `revisit judge wording` makes one."),
    out: Path = out_option("Folder for the banks and the sheets for review.", Path("questions")),
    limit: int = typer.Option(None, min=1, help="At most this many clips of a dataset."),
    fresh: bool = typer.Option(False, "--fresh", help="Write existing banks again."),
    json: bool = JSON,
) -> None:
    """Write and filter MemoBench questions with a judge.

    Makes a question bank and a sheet for human review per clip. With a dataset, the same command resumes.
    """
    from revisit.core import Clip, RevisitError, UsageError
    from revisit.core.text import count_and_noun
    from revisit.suites.memobench.ground_truth import MemoBenchDataset, find_dataset_root
    from revisit.suites.memobench.names import parse_clip_name
    from revisit.suites.memobench.question_pipeline import BankTask, make_bank_tasks
    from revisit.suites.memobench.questions import read_question_wording

    words = {} if wording is None else read_question_wording(wording)
    root = find_dataset_root(truth) if truth.is_dir() else None
    if root is not None:
        if prompt or scene or number is not None or hint:
            raise UsageError(f"{truth} is a dataset: leave out --prompt, --scene, --number and --hint")
        dataset = MemoBenchDataset(root)
        folders = [] if metadata is None else [metadata]
        tasks, left_out = make_bank_tasks(dataset, dataset.read_metadata(*folders), failure)
        console.print_to_stderr(*left_out)
        without_bank = [task for task in tasks if fresh or not (out / f"{task.name.bank_name}-questions.csv").is_file()]
        todo = without_bank[:limit]
        done, later = len(tasks) - len(without_bank), len(without_bank) - len(todo)
        console.print_to_stderr(
            f"{count_and_noun(len(tasks), 'clip')}: {done} done before, {len(todo)} to do now, {later} left for later"
        )
    else:
        if not prompt or not scene or number is None:
            raise UsageError("a single clip needs --prompt, --scene and --number; or give the folder of the dataset")
        if (failure is None) != (not hint):
            raise UsageError("--failure and --hint go together: the hint says what is wrong with the failure clip")
        name = parse_clip_name(f"{number}" if scene.lower() == "real" else f"{scene}_{number}")
        assert name is not None
        todo = [BankTask(name, Clip(truth), prompt, failure, hint)]
    failed = 0
    with open_judge_client(judge) as client:
        for task in todo:
            try:
                _make_and_write_bank(client, task, frames, out, words)
            except RevisitError as error:
                if root is None:
                    raise
                failed += 1
                console.print_to_stderr(f"{task.name.title}: {error}")
    if json:
        console.print_json({"folder": str(out), "clips": [task.name.title for task in todo], "failed": failed})
    if root is not None:
        console.print_to_stderr(f"{len(todo) - failed} banks written; score with --option questions={out}")
    raise typer.Exit(1 if failed else 0)


def _make_and_write_bank(client: Any, task: Any, frames: int, out: Path, words: Mapping[str, str]) -> None:
    """Make the bank of one clip, and say what became of its questions."""
    from revisit.media.files import write_text_atomically
    from revisit.suites.memobench.question_bank import thin_dimensions, write_bank
    from revisit.suites.memobench.question_pipeline import make_question_bank, review_sheet_csv

    failure = None if task.failure is None else read_spread_frames(task.failure, frames)
    first, truth = (read_spread_frames(task.truth.path, count) for count in (1, frames))
    bank = make_question_bank(client, task, first, truth, failure, words)
    name = task.name.bank_name
    path, sheet = out / f"{name}-questions.csv", out / f"{name}-review.csv"
    write_text_atomically(path, write_bank(bank))
    write_text_atomically(sheet, review_sheet_csv(bank))
    console.print_to_stderr(
        f"{len(bank.start)} questions written, {len(bank.final)} left; fill in {sheet}, then: revisit judge review "
        f"{path}"
    )
    sentences = [f"{dimension} has only {n} questions left" for dimension, n in thin_dimensions(bank.final).items()]
    if failure is None:
        sentences.insert(0, "no failure clip was given: the questions were filtered on the true clip only")
    for sentence in (*sentences, *_near_duplicate_sentences({one.id: one.text for one in bank.final})):
        console.print_to_stderr(f"{name}: {sentence}")


def _near_duplicate_sentences(texts: Mapping[int, str]) -> list[str]:
    """A sentence for each pair of questions that ask about the same; none where MiniLM is not at hand.

    Of the 12420 pairs within the published banks three are above the limit; each asks one thing and its contrary.
    """
    from revisit import weights

    if weights.why_missing(("minilm",)) is not None:
        return []
    from revisit.networks.minilm import similar_pairs_with_cosine

    ids = list(texts)
    pairs = similar_pairs_with_cosine(list(texts.values()), ASKED_TWICE)
    return [
        f"questions {ids[a]} and {ids[b]} ask nearly the same (similarity {likeness:.2f}); keep one of them"
        for a, b, likeness in pairs
    ]


def extract_upstream_wording(
    repository: Path = typer.Argument(help="Your copy of MemoBench's repository."),
    out: Path = out_option("The file to write.", Path("memobench-wording.yaml")),
    json: bool = JSON,
) -> None:
    """Extract the wording of MemoBench's questions from its repository."""
    from revisit.core import UsageError
    from revisit.suites.memobench.questions import wording_as_yaml, wording_from_repository

    if out.exists():
        raise UsageError(f"{out} already exists; choose another file with --out")
    out.write_text(wording_as_yaml(wording_from_repository(repository)), encoding="utf-8")
    if json:
        console.print_json({"file": str(out)})
    console.print_to_stderr(f"{out}: pass it as --option wording={out} to eval, or as --wording to judge questions")


def apply_question_reviews(
    bank: Path = typer.Argument(
        help="A file of questions, *-questions.csv, with its *-review.csv beside it; a folder of them with --reviews."
    ),
    reviews: Path = typer.Option(None, help="What raters of `revisit annotate --task review` said: reviews.json."),
    out: Path = out_option("Folder for the reviewed banks, with --reviews."),
    json: bool = JSON,
) -> None:
    """Keep the questions of a bank that people approved. In its sheet, or those that most raters keep."""
    from dataclasses import replace

    from revisit.core import UsageError
    from revisit.media.error_names import raise_media_errors_naming_file
    from revisit.media.text_files import read_text
    from revisit.suites.memobench.question_bank import read_bank, review_filter, write_bank, write_reviewed_banks
    from revisit.suites.memobench.question_pipeline import parse_review_sheet

    if reviews is not None:
        if out is None:
            raise UsageError("say with --out where the reviewed banks go")
        lines = write_reviewed_banks(bank, reviews, out)
        console.print_to_stderr(*lines)
        if json:
            console.print_json({"folder": str(out), "banks": list(lines)})
        return
    sheet = bank.with_name(bank.name.replace("-questions.csv", "-review.csv"))
    if sheet == bank or not sheet.is_file():
        raise UsageError(f"{sheet}: no such review sheet; `revisit judge questions` writes it beside the bank")
    questions = read_bank(bank)
    with raise_media_errors_naming_file(sheet):
        final = review_filter(questions.final, parse_review_sheet(read_text(sheet)))
    bank.write_bytes(write_bank(replace(questions, final=final)).encode())
    if json:
        console.print_json({"file": str(bank), "approved": len(final), "questions": len(questions.final)})
    console.print_to_stderr(f"{len(final)} of {len(questions.final)} questions were approved")
