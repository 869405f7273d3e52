"""Build: a MemoBench dataset from recordings that look away and come back, and a table of when they do.

The table (CSV or xlsx) has `video`, `exits` and `returns`, the frames at which the target has left and is back, and may
have `subject` and `prompt`; a judge writes these where they are missing. Recordings become clips of the real split.
Their camera poses come from whoever estimates them, with an error of its own: a path whose error is too great for its
turn is left out, and told.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from revisit.core import Clip, RevisitError, UsageError
from revisit.geometry.rotations import angle_between_rotations, smooth_rotations
from revisit.judges.batch import JudgeClient
from revisit.judges.protocol import Frames
from revisit.judges.questions import JsonObject, Question, Text
from revisit.media import frame_count_in_mp4_index, open_clip, save_npz, write_picture
from revisit.media.text_files import write_xlsx
from revisit.suites import authoring
from revisit.suites.memobench.metadata import Marks, iter_numbered_table_rows, parse_integer_cell
from revisit.suites.memobench.questions import WORDS

# A short phrase for the target, and the prompt of the clip.
SUBJECT = Question("memobench.subject", WORDS["subject"], JsonObject({"subject": Text(60), "prompt": Text(900)}))
SMOOTH = 1.5  # frames: the width of the smoothing of turns
MOST_ERROR, SHARE = 3.0, 0.15  # degrees, and of the whole turn: a path that is less sure is left out


@dataclass(frozen=True)
class MarkedRecording:
    """A row of the table."""

    video: Path
    exits: int
    returns: int
    subject: str = ""
    prompt: str = ""


@dataclass(frozen=True, eq=False)
class PoseEstimate:
    """Poses of a recording, how far the estimator is from itself, and the lens in pixels."""

    c2w: np.ndarray  # (frames, 4, 4)
    error: float  # degrees
    K: np.ndarray
    producer: str


def read_marked_recordings(table: Path, videos: Path) -> list[MarkedRecording]:
    """The recordings of a table, whose videos lie in a folder."""
    recordings = []
    columns = "video, exits, returns, and where known subject and prompt"
    for number, facts in iter_numbered_table_rows(table, [("video",), ("exits",), ("returns",)], columns):
        video = videos / facts["video"]
        exits, returns = parse_integer_cell(facts["exits"]), parse_integer_cell(facts["returns"])
        if not video.is_file() or video.suffix.lower() != ".mp4":
            raise UsageError(f"row {number} of {table.name}: {video} is no mp4 file that is there")
        if exits is None or returns is None:
            raise UsageError(f"row {number} of {table.name}: exits and returns are frame numbers")
        if problem := Marks(exits, returns).problem_sentence(frame_count_in_mp4_index(video) or 10**9):
            raise UsageError(f"row {number} of {table.name}: {problem}")
        recordings.append(MarkedRecording(video, exits, returns, facts.get("subject", ""), facts.get("prompt", "")))
    if not recordings:
        raise UsageError(f"{table.name} has no rows")
    return recordings


def fill_subject_and_prompt(
    client: JudgeClient | None, recording: MarkedRecording, sample_frames: Callable[[Path], Frames]
) -> MarkedRecording:
    """The recording with its subject and prompt; a judge is asked where one is missing."""
    if recording.subject and recording.prompt:
        return recording
    if client is None:
        raise UsageError(f"{recording.video.name} has no subject or no prompt; fill in the table, or name a --judge")
    (answer,) = client.ask(sample_frames(recording.video), [SUBJECT])
    if answer.status != "answered":
        raise RevisitError(f"{recording.video.name}: the judge wrote no subject: {answer.reason}")
    texts = {name: getattr(recording, name) or answer.value[name] for name in ("subject", "prompt")}
    return replace(recording, **texts)


def write_memobench_dataset(
    root: Path,
    recordings: Sequence[MarkedRecording],
    estimate_poses: Callable[[Path], PoseEstimate | str],
    *,
    licence: str,
    source: str,
    banks: Callable[[Path], None] | None = None,
) -> tuple[Path, list[str]]:
    """The dataset of some recordings, and a sentence for each path that was left out."""
    data = authoring.make_empty_folder(root) / "data"
    sentences: list[str] = []
    marks, facts = [], []
    for number, one in enumerate(recordings, start=1):
        place = data / "Real_Raw" / f"{number:03d}"
        place.mkdir(parents=True)
        shutil.copyfile(one.video, place / f"{number:03d}.mp4")
        with open_clip(Clip(one.video)) as stream:
            for frame in stream:
                write_picture(place / "FRAMES" / f"frame_{frame.index + 1:04d}.jpg", frame.rgb)
        poses = estimate_poses(one.video)
        trouble = _excessive_pose_error_sentence(poses) if isinstance(poses, PoseEstimate) else poses
        if isinstance(poses, PoseEstimate) and not trouble:
            _write_smoothed_poses(place / "raw" / f"{number:03d}_mapanything.npz", poses)
        else:
            sentences.append(f"{one.video.name}: {trouble}")
        marks.append([number, one.exits, one.returns])
        first = f"Real_Raw/{number:03d}/FRAMES/frame_0001.jpg"
        facts.append([number, one.subject, first, one.prompt])
    write_xlsx(data / "Real_Raw" / "Real_ExitReenter.xlsx", ("id", "exit", "reenter"), marks)
    columns = ("video_id", "subject", "full_image_path", "prompt")
    authoring.write_csv_file(data / "sam3_metadata" / "real_metadata.csv", columns, facts)
    if banks is not None:
        banks(data)
    bank_count = len(list(data.glob("vqa_questions/*-questions.csv")))
    with_poses = len(recordings) - len(sentences)
    counts = {"clips": len(recordings), "clips with poses": with_poses, "question banks": bank_count}
    title = f"MemoBench clips of {source}"
    authoring.write_dataset_card(data, "memobench", title=title, licence=licence, source=source, counts=counts)
    return data, sentences


def _excessive_pose_error_sentence(estimate: PoseEstimate) -> str:
    """Why a path is not used, or nothing."""
    turn = float(angle_between_rotations(estimate.c2w[0, :3, :3], estimate.c2w[:, :3, :3]).max())
    if estimate.error <= max(MOST_ERROR, SHARE * turn):
        return ""
    return (
        f"its poses are left out: they are uncertain by {estimate.error:.1f} degrees ({estimate.producer}), and "
        f"the camera turns by {turn:.0f}"
    )


def _write_smoothed_poses(path: Path, estimate: PoseEstimate) -> None:
    poses = estimate.c2w.copy()
    poses[:, :3, :3] = smooth_rotations(poses[:, :3, :3], SMOOTH)
    error, producer = np.array(estimate.error), np.array(estimate.producer)
    save_npz(path, {"cam_c2w": poses, "intrinsic": estimate.K, "own_error_degrees": error, "producer": producer})
